#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""cpd and plan as people use them: models, labels, starts, stopping, checkpoints, signals, bad options, memory."""

import json
import os
import signal
import time

from harness import (GOOD, MB, SANITIZED, WORK, Call, check, equal, finish, is_sentence, listing, refused, run, text,
                     write)

SMALL = ["cpd", "x.tns", "--rank", "3"]


def cpd(*args, **how):
    r = run("cpd", *args, "--quiet", "--json", "-", **how)
    try:
        return r.json
    except ValueError:
        return {"trouble": str(r)}


def what_is_written():
    r = run(*SMALL, "--iters", "7", "--tol", "0", "--out", "model", "--json", "j.json", "--report", "r.html")
    check(r.code == 0, "a model", r)
    found = json.loads(text("j.json"))
    equal((found["iterations"], found["converged"], found["stop"], found["rank"]), (7, False, "iterations", 3), "JSON")
    equal([h["iteration"] for h in found["history"]], list(range(1, 8)), "history")
    equal(found["history"][-1]["fit"], found["fit"], "the last fit is the fit")
    check(all(0 <= h["seconds"] for h in found["history"]) and found["seconds_per_iteration"] > 0, "seconds", found)
    check({"load", "build", "iterate", "total"} <= set(found["seconds"]), "seconds of the steps", found["seconds"])
    equal(len(found["weights"]), 3, "weights")
    check(found["weights"] == sorted(found["weights"], reverse=True), "sorted by weight", found["weights"])
    equal(sorted(os.listdir(WORK / "model")),
          ["lambda.mat", "mode1.mat", "mode2.mat", "mode3.mat", "model.ktensor", "summary.json"], "the model's files")
    check(sum(line.startswith("iteration ") for line in r.lines) == 7, "a line per iteration on standard error", r.err)
    check("component 3" in r.out and "fit 0." in r.out and "format" in r.out, "components on standard output", r.out)
    check("<html" in text("r.html") and 'src="http' not in text("r.html"), "the report")
    for name in ("m.npz", "m.json"):
        check(run(*SMALL, "--iters", "7", "--tol", "0", "--out", name, "--quiet").code == 0, f"--out {name}")
        equal(round(run("score", "model", name, "--json", "-").json["score"], 9), 1.0, f"{name} is the same model")


def labels():
    write("lab/x.tns", "1 1 1 5\n2 2 1 3\n2 1 2 1\n")
    write("lab/x.mode-1-animal.map", "cat\ndog\n")
    write("lab/x.mode-2-sound.map", "miaow\nw\\oof \u00e4\n")
    r = run("cpd", "lab/x.tns", "--rank", "1", "--out", "lab/m", "--report", "lab/r.html")
    check(r.code == 0 and "animal" in r.out and "miaow" in r.out and "mode 3" in r.out, "labels on the terminal", r)
    check("miaow" in text("lab/r.html"), "and in the report")
    r = run("cpd", "lab/x.tns", "--init", "lab/m", "--iters", "1")
    check(r.code == 0 and "rank 1" in r.out, "the rank of the model one goes on from", r)


def starts():
    a = cpd("x.tns", "--rank", "3", "--iters", "4", "--tol", "0", "--seed", "5")
    b = cpd("x.tns", "--rank", "3", "--iters", "4", "--tol", "0", "--seed", "6")
    check(a.get("fit") != b.get("fit"), "the seed matters", (a, b))
    both = cpd("x.tns", "--rank", "3", "--iters", "4", "--tol", "0", "--seed", "5", "--restarts", "2")
    equal([r["fit"] for r in both["runs"]], [a["fit"], b["fit"]], "restarts are the seeds that follow")
    equal(both["fit"], max(a["fit"], b["fit"]), "the best of them")
    check(cpd("x.tns", "--rank", "3", "--init", "rsvd").get("fit", -1) > 0, "--init rsvd")
    r = run("cpd", "x.tns", "--rank", "3", "--init", "rsvd", "--restarts", "3", "--iters", "2")
    check(r.code == 0 and "best of 3 starts" in r.out, "restarts are told", r)
    projected = cpd("x.tns", "--init", "model", "--fix-mode", "2,3", "--iters", "2", "--out", "projected")
    check("trouble" not in projected, "--fix-mode", projected)
    equal(text("projected/mode2.mat"), text("model/mode2.mat"), "a fixed factor stays to the last digit")
    positive = cpd("x.tns", "--rank", "3", "--nonnegative", "--out", "positive")
    check("trouble" not in positive and "-" not in text("positive/mode1.mat").replace("e-", ""), "--nonnegative",
          positive)
    some = cpd("x.tns", "--rank", "3", "--nonnegative", "1,3", "--l2", "0.1")
    equal((some["options"]["nonnegative"], some["options"]["l2"]), ([1, 3], 0.1), "options in the JSON")
    check(cpd("x.tns", "--rank", "3", "--max-seconds", "0.05", "--iters", "1000000000", "--tol", "0")["stop"]
          == "seconds", "--max-seconds")
    check(abs(cpd("x.tns", "--rank", "3", "--precision", "f32")["fit"] - cpd("x.tns", "--rank", "3")["fit"]) < 1e-3,
          "--precision f32")
    equal(cpd("x.tns", "--rank", "3", "--iters", "5", "--deterministic", "--threads", "1", "--out", "d1")["fit"],
          cpd("x.tns", "--rank", "3", "--iters", "5", "--deterministic", "--threads", "3", "--out", "d3")["fit"],
          "--deterministic")
    equal(text("d1/model.ktensor"), text("d3/model.ktensor"), "to the last byte")
    r = run("cpd", write("twice.tns", "1 1 1 1\n1 1 1 2\n2 2 2 1\n"), "--rank", "1")
    check(r.code == 0 and "1 nonzeros had the coordinate of another" in r.err, "duplicates are added and told", r)


def mistakes():
    before = listing()
    for args, code, says in (
            (["x.tns", "--rank", "0"], 2, "--rank"), (["x.tns", "--rank", "-3"], 2, "--rank"),
            (["x.tns", "--rank", "100000000"], 2, "--rank"), (["x.tns", "--tol", "-1"], 2, "--tol"),
            (["x.tns", "--tol", "nan"], 2, "--tol"), (["x.tns", "--l2", "-1"], 2, "--l2"),
            (["x.tns", "--restarts", "0"], 2, "--restarts"), (["x.tns", "--every", "0"], 2, "--every"),
            (["x.tns", "--format", "cheese"], 2, "cheese"), (["x.tns", "--resume"], 2, "--checkpoint"),
            (["x.tns", "--nonnegative", "4"], 2, "--nonnegative"), (["x.tns", "--nonnegative", "1,1"], 2, "twice"),
            (["x.tns", "--fix-mode", "1"], 2, "model"), (["x.tns", "--fix-mode", "1,2,3", "--init", "model"], 2, "free"),
            (["x.tns", "--init", "model", "--restarts", "2"], 2, "restarts"),
            (["x.tns", "--init", "model", "--rank", "4"], 1, "rank 3, expected 4"),
            (["x.tns", "--init", "nowhere"], 1, "nowhere"),
            (["other.tns", "--init", "model"], 1, "rows in mode 1"), (["flat.tns"], 1, "order 1"),
            (["x.tns", "--out", "x.tns"], 2, "overwrite"), (["x.tns", "--report", "x.tns"], 2, "overwrite"),
            (["x.tns", "--out", "x.tns/deep"], 1, "x.tns"), (["x.tns", "--report", "none/r.html"], 1, "none"),
            (["x.tns", "--checkpoint", "none/c"], 1, "none"), (["x.tns", "--json", "none/j"], 1, "none"),
            (["x.tns", "--report", "-"], 2, "--report"), (["x.tns", "--out", "-"], 2, "--out"),
            (["missing.tns"], 1, "missing.tns")):
        r = run("cpd", *args)
        why = is_sentence(r, code=code) or ("" if says in r.err else f"expected {says!r} in {r.err!r}")
        check(not why, f"cpd {' '.join(args)}", why)
    equal(listing(), before, "mistakes leave nothing behind")


def checkpoints():
    common = ["big.tns", "--rank", "8", "--tol", "0", "--seed", "2", "--threads", "2"]
    whole = cpd(*common, "--iters", "40", "--out", "whole")
    check("trouble" not in whole, "an unbroken run", whole)
    for number, name in ((signal.SIGKILL, "kill -9"), (signal.SIGINT, "Ctrl-C"), (signal.SIGTERM, "SIGTERM")):
        for f in WORK.glob("c.*"):
            f.unlink()
        call = Call("cpd", *common, "--iters", "40000", "--checkpoint", "c.ckpt", "--every", "1", "--quiet", "--out",
                    "part", "--json", "part.json", timeout=60)
        while not (WORK / "c.ckpt").exists():
            time.sleep(0.005)
        time.sleep(0.1)
        call.signal(number)
        r = call.finish()
        if number == signal.SIGKILL:
            equal(r.code, -9, name)
        else:
            equal(r.code, 128 + number, f"{name}: exit code")
            check(len(r.lines) == 1 and "stopped after" in r.err, f"{name}: one sentence", r)
            stopped = json.loads(text("part.json"))
            equal(stopped["stop"], "cancelled", f"{name}: JSON")
            check((WORK / "part" / "model.ktensor").exists(), f"{name}: the model so far")
        check(not [f for f in listing() if "tmp" in f or f.startswith(".")], f"{name}: nothing half-written",
              listing())
        resumed = cpd(*common, "--iters", "40", "--checkpoint", "c.ckpt", "--resume", "--out", "resumed")
        if resumed.get("resumed_at", 99) > 40:  # a fast machine was beyond it: there is nothing to compare
            check(resumed.get("iterations", 0) > 40, f"{name}: resumed beyond", resumed.get("trouble"))
            continue
        equal((resumed["iterations"], resumed["fit"]), (40, whole["fit"]), f"{name}: resumed")
        equal(text("resumed/model.ktensor"), text("whole/model.ktensor"), f"{name}: to the same bytes")
    refused(run("cpd", *common[:2], "9", *common[3:], "--checkpoint", "c.ckpt", "--resume", "--quiet"), "another rank",
            "c.ckpt", says="rank")
    refused(run("cpd", "x.tns", *common[1:], "--checkpoint", "c.ckpt", "--resume", "--quiet"), "another tensor",
            "c.ckpt", says="dims")
    data = bytearray((WORK / "c.ckpt").read_bytes())
    data[len(data) // 2] ^= 1
    (WORK / "c.ckpt").write_bytes(data)
    r = run("cpd", *common, "--iters", "3", "--checkpoint", "c.ckpt", "--resume")
    check(r.code == 0 and "damaged" in r.err and "the one before" in r.err, "a damaged one falls back", r)
    write("c.ckpt", "rubbish")
    write("c.ckpt.previous", "rubbish")
    refused(run("cpd", *common, "--checkpoint", "c.ckpt", "--resume", "--quiet"), "two damaged ones", "c.ckpt",
            says="expected a checkpoint")


def memory():
    if SANITIZED:
        return
    for args in (["--rank", "16"], ["--rank", "16", "--format", "coo"], ["--rank", "40", "--precision", "f32"]):
        planned = run("plan", "big.tns", *args[:2], *args[4:], "--json", "-").json
        name = args[3] if "--format" in args else planned["choice"]["format"]
        most = {p["format"]: p.get("peak_bytes") for p in planned["formats"]}[name]
        used = cpd("big.tns", *args, "--iters", "3")["peak_rss_bytes"]
        check(used <= most, f"peak memory of {' '.join(args)} is within the plan", f"{used} of {most}")
    r = run("cpd", "wide.tns", "--rank", "1000", "--memory", "1G", "--quiet")
    refused(r, "factors that do not fit", says="needs", rss=1200 * MB)
    refused(run("cpd", "x.tns", "--rank", "60000", "--memory", "1G", "--quiet"), "Gram matrices that do not fit",
            says="Gram", rss=1200 * MB)
    r = run("plan", "x.tns")
    check(r.code == 0 and "<- auto" in r.out and "peak" in r.out, "plan for people", r)


write("x.tns", "".join(f"{i * 7 % 11 + 1} {i * 5 % 9 + 1} {i * 3 % 7 + 1} {i % 5 + 1}\n" for i in range(200)))
write("other.tns", GOOD)
write("flat.tns", "1 2\n3 4\n")
write("wide.tns", "1 1 1 1\n100000000 2 2 2\n")
run("generate", "big.tns", "--dims", "400x300x200", "--nnz", "100000", "--skew", "0.8", "--quiet")
what_is_written()
labels()
starts()
mistakes()
checkpoints()
memory()
finish()
