#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""plan, --tune, --lean and tensors that are larger than the memory."""

import os

from harness import WORK, check, equal, finish, is_sentence, run

FORMATS = {e["name"] for e in run("list", "formats", "--json", "-").json["formats"]}


def ranking():
    found = run("plan", "x.ptn", "--rank", 16, "--json", "-").json
    rows = [f for f in found["formats"] if "refused" not in f]
    equal({f["format"] for f in found["formats"]}, FORMATS, "every format is there")
    runs = [f["build_seconds"] + 50 * f["seconds"] for f in rows]
    check(all(f["seconds"] > 0 for f in rows) and runs == sorted(runs), "times, the fastest first", runs)
    for f in rows:
        check(f["bytes"] > 0 and f["build_seconds"] > 0 and f["why"] and f["fits"], f"{f['format']}: numbers", f)
        check(f["peak_bytes"] >= max(f["memory"].values()), f"{f['format']}: the peak is the most", f)
    choice = found["choice"]
    check(choice["format"] in FORMATS and len(choice["why"]) > 10 and choice["seconds"] > 0, "the choice", choice)
    equal(run("cpd", "x.ptn", "--rank", 16, "--iters", 1, "--json", "-").json["format"], choice["format"], "cpd takes it")
    page = run("plan", "x.ptn", "--rank", 16).out
    check(f"* {choice['format']} " in page and "auto takes" in page, "the page marks it", page)


def as_cpd_sees_it():
    """cpd adds up duplicates and sorts before it chooses: a plan for another tensor would be no use."""
    rows = [f"{k * 7919 % 200 + 1} {k * 104729 % 300 + 1} {k * 1299709 % 50 + 1} {k % 97 / 10 + 0.1:.1f}" for k in range(12000)]
    (WORK / "twice.tns").write_text("\n".join(rows + rows[:5000]) + "\n")
    for flags in ([], ["--precision", "f32"], ["--lean"], ["--deterministic"]):
        args = ("twice.tns", "--rank", 16, *flags, "--json", "-")
        plan, run_of_it = run("plan", *args).json, run("cpd", *args, "--iters", 1).json
        check(plan["nnz"] < len(rows) + 5000, f"{flags}: merged", plan["nnz"])
        equal(plan["choice"]["format"], run_of_it["format"], f"{flags}: the same choice")
    check(run("plan", "twice.tns", "--memory", "800k").code == 0, "what it would take is said also where there is no room")


def lean():
    coordinates = 60000 * (3 * 4 + 8)
    for flags, most in (([], 1.5), (["--lean"], 1.0)):
        found = run("cpd", "x.ptn", "--rank", 8, "--iters", 1, *flags, "--json", "-").json
        check(found["tensor_bytes"] <= most * coordinates, f"{flags}: size", found["tensor_bytes"] / coordinates)
    check(not is_sentence(run("cpd", "x.ptn", "--rank", 8, "--format", "coo", "--lean"), code=2), "--lean is about auto")


def tune():
    cache = WORK / "cache"
    os.environ["POLYAD_CACHE"] = str(cache)
    try:
        tuned = run("bench", "x.ptn", "--formats", "auto", "--tune", "--repeat", 1, "--json", "-").json["results"][0]["format"]
        check((cache / "tuned.json").exists(), "the answer is kept")
        found = run("plan", "x.ptn", "--rank", 16, "--json", "-").json["choice"]
        equal(found["format"], tuned, "and taken")
        check("measured on this machine" in found["why"], "with its reason", found)
        (cache / "tuned.json").write_text("rubbish")
        check(run("plan", "x.ptn", "--rank", 16).code == 0, "a damaged cache is no cache")
    finally:
        os.environ["POLYAD_CACHE"] = ""
    check(not is_sentence(run("cpd", "x.ptn", "--rank", 8, "--format", "alto", "--tune"), code=2), "--tune is about auto")


def larger_than_memory():
    """6 million nonzeros take 120 MB; with 24 MB they stay in the file."""
    run("generate", "big.ptn", "--dims", "900x800x700", "--nnz", "6M", "--quiet")
    args = ("cpd", "big.ptn", "--rank", 4, "--iters", 3, "--tol", 0, "--threads", 2, "--json", "-")
    free = run(*args).json
    found = run(*args, "--memory", "24M")
    if not check(found.code == 0, "it runs", found):
        return
    equal(found.json["format"], "stream", "it stays in its file")
    check("stay in the file" in found.json["format_why"], "and says so", found.json["format_why"])
    check(abs(found.json["fit"] - free["fit"]) < 1e-9, "the same fit", (found.json["fit"], free["fit"]))
    check(found.json["tensor_bytes"] < 24e6, "little of it is held", found.json["tensor_bytes"])
    most = found.json.get("peak_rss_bytes")
    if most and "POLYAD_SANITIZED" not in os.environ:
        check(most < 24e6 + 30e6, "and little memory is taken", most)
    equal(run("plan", "big.ptn", "--memory", "24M", "--json", "-").json["choice"]["format"], "stream", "plan knows it")
    timed = run("bench", "big.ptn", "--memory", "24M", "--formats", "auto", "--rank", 4, "--repeat", 1, "--threads", 2, "--json", "-")
    rows = timed.json["results"] if check(timed.code == 0, "bench times it there", timed) else []
    equal([(row["format"], row["kernel"]) for row in rows if row["mode"] != "all"],
          [("stream", "mttkrp/stream/windows")] * 3, "with its own kernel")
    check(rows and rows[-1]["bytes"] < 24e6, "and holds little", rows[-1:])
    zipped = run("convert", "big.ptn", "zipped.ptn.gz", "--quiet")
    check(zipped.code == 0 and not is_sentence(run("cpd", "zipped.ptn.gz", "--rank", 4, "--memory", "24M"), code=1),
          "what has no file of its own cannot stay in it")
    named = run("cpd", "zipped.ptn.gz", "--rank", 4, "--iters", 3, "--tol", 0, "--format", "stream", "--json", "-").json
    check(abs(named["fit"] - free["fit"]) < 1e-9, "unpacked in memory it is a copy", (named["fit"], free["fit"]))
    for kind, flags in (("compact", ["--compact"]), ("f32", ["--precision", "f32"])):
        run("convert", "big.ptn", f"{kind}.ptn", *flags, "--quiet")
        check(not is_sentence(run("cpd", f"{kind}.ptn", "--rank", 4, "--memory", "24M"), code=1), f"{kind}: a sentence")


run("generate", "x.ptn", "--dims", "200x300x400", "--nnz", 60000, "--quiet")
for test in (ranking, as_cpd_sees_it, lean, tune, larger_than_memory):
    test()
finish()
