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
    for name in ("m.npz", "m.json", "m.ktensor", "m.ktensor.gz"):
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


def known_factors():
    """New data with other labels in another order find the rows of the model by their labels."""
    write("old.csv", "who,what,n\n" + "".join(f"p{i},t{j},{(i + 1) * (j + 1)}\n" for i in range(4) for j in range(6)))
    write("new.csv", "who,what,n\n" + "".join(f"q{i},{t},{(i + 2) * n}\n" for i in range(3)
                                             for t, n in (("a new one", 5), ("t5", 6), ("t1", 2), ("t3", 4))))
    columns = ["--columns", "who,what", "--value", "n"]
    cpd("old.csv", *columns, "--rank", "1", "--out", "old")
    r = run("cpd", "new.csv", *columns, "--init", "old", "--fix-mode", "2", "--out", "new")
    check(r.code == 0 and "1 labels of the tensor are not in old" in r.err, "new labels are told", r)
    old = dict(zip(text("old/mode2.labels").split("\n"), text("old/mode2.mat").split("\n")))
    new = dict(zip(text("new/mode2.labels").split("\n"), text("new/mode2.mat").split("\n")))
    equal([new[t] for t in ("t1", "t3", "t5")], [old[t] for t in ("t1", "t3", "t5")], "rows follow their labels")
    equal(float(new["a new one"]), 0.0, "and an unknown one is 0")
    write("flip.csv", "who,what,n\nx1,t5,1\nx2,t0,1\n" + "".join(f"p{i},t{j},{(i + 1) * (j + 1)}\n" for i in range(4)
                                                              for j in range(6)))
    cpd("flip.csv", *columns, "--rank", "1", "--out", "flip")
    r = run("score", "old", "flip")
    check(r.code == 0 and "4 x 6" in r.out, "score compares the rows of the labels that A has", r)


def mistakes():
    before = listing()
    for args, code, says in (
            (["x.tns", "--rank", "0"], 2, "--rank"), (["x.tns", "--rank", "-3"], 2, "--rank"),
            (["x.tns", "--rank", "100000000"], 2, "--rank"), (["x.tns", "--tol", "-1"], 2, "--tol"),
            (["x.tns", "--tol", "nan"], 2, "--tol"), (["x.tns", "--l2", "-1"], 2, "--l2"),
            (["x.tns", "--restarts", "0"], 2, "--restarts"), (["x.tns", "--every", "0"], 2, "--every"),
            (["x.tns", "--format", "cheese"], 2, "cheese"), (["x.tns", "--resume"], 2, "--checkpoint"),
            (["x.tns", "--nonnegative", "4"], 2, "--nonnegative"),
            (["x.tns", "--nonnegative", "page"], 2, "modes such as 1,3"), (["x.tns", "--checkpoint", "/dev/null"], 1, "regular"), (["x.tns", "--nonnegative", "1,1"], 2, "twice"),
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
    for number, name in ((signal.SIGKILL, "kill -9"), (signal.SIGINT, "Ctrl-C"), (signal.SIGTERM, "SIGTERM")):
        for f in WORK.glob("c.*"):
            f.unlink()
        call = Call("cpd", *common, "--iters", "40000", "--checkpoint", "c.ckpt", "--every", "1", "--quiet", "--out",
                    "part", "--json", "part.json", timeout=60)
        while not (WORK / "c.ckpt").exists() and time.monotonic() < call.begin + 60:
            time.sleep(0.005)
        refused(run("cpd", *common, "--iters", "1", "--checkpoint", "c.ckpt", "--quiet"), f"{name}: a second run meanwhile",
                "c.ckpt", says="another run is using it now", rss=1200 * MB)
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
        resumed = cpd(*common, "--iters", "1", "--checkpoint", "c.ckpt", "--resume")
        upto = str(resumed.get("iterations", 0) + 20)
        resumed = cpd(*common, "--iters", upto, "--checkpoint", "c.ckpt", "--resume", "--out", "resumed")
        whole = cpd(*common, "--iters", upto, "--out", "whole")
        check("trouble" not in whole and "trouble" not in resumed, f"{name}: resumed", (whole, resumed))
        equal((resumed["iterations"], resumed["fit"]), (whole["iterations"], whole["fit"]), f"{name}: the same fit")
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
    run("generate", "long.ptn", "--dims", "1000000x50x60", "--nnz", "1000000", "--quiet")
    for file, args in (("big.tns", []), ("big.tns", ["--precision", "f32"]), ("long.ptn", []),
                       ("long.ptn", ["--nonnegative"]), ("long.ptn", ["--restarts", "2"]), ("long.ptn", ["--init", "rsvd"])):
        planned = run("plan", file, "--rank", "16", *args, "--json", "-").json["choice"]["peak_bytes"]
        used = cpd(file, "--rank", "16", *args, "--iters", "2").get("peak_rss_bytes", 1 << 60)
        check(used <= planned < 3 * used + 200 * MB, f"peak memory of {file} {' '.join(args)} is within the plan",
              f"{used} of {planned}")
    r = run("cpd", "wide.tns", "--rank", "1000", "--memory", "1G", "--quiet")
    refused(r, "factors that do not fit", says="needs", rss=1200 * MB)
    refused(run("cpd", "x.tns", "--rank", "60000", "--memory", "1G", "--quiet"), "Gram matrices that do not fit",
            says="Gram", rss=1200 * MB)
    r = run("plan", "x.tns")
    check(r.code == 0 and "auto takes" in r.out and "\n* " in r.out and "peak" in r.out, "plan for people", r)


write("x.tns", "".join(f"{i * 7 % 11 + 1} {i * 5 % 9 + 1} {i * 3 % 7 + 1} {i % 5 + 1}\n" for i in range(200)))
write("other.tns", GOOD)
write("flat.tns", "1 2\n3 4\n")
write("wide.tns", "1 1 1 1\n100000000 2 2 2\n")
run("generate", "big.tns", "--dims", "400x300x200", "--nnz", "100000", "--skew", "0.8", "--quiet")
what_is_written()
labels()
starts()
known_factors()
mistakes()
checkpoints()
memory()
finish()
