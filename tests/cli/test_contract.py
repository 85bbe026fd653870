#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What users rely on everywhere: help, version, exit codes, JSON, --quiet, --threads, --memory, --device, list."""

import json
import os
import re
import resource

from harness import (DIMS, GOOD, MB, ROWS, WORK, check, equal, finish, folder, is_sentence, listing, refused, run,
                     skip, splatt, text, write)

VERBS = ["info", "check", "convert", "generate", "cpd", "plan", "mttkrp", "ttv", "score", "bench", "list"]
WHAT = ["formats", "kernels", "solvers", "backends", "devices", "dialects"]
# One good call of every verb, with room for more options.
CALLS = {"info": ["info", "x.tns"], "check": ["check", "x.tns"], "convert": ["convert", "x.tns", "y.ptn"],
         "generate": ["generate", "g.tns", "--dims", "9x9", "--nnz", "9"], "list": ["list", "formats"],
         "cpd": ["cpd", "x.tns", "--rank", "2", "--iters", "3", "--out", "model"], "score": ["score", "model", "model"],
         "plan": ["plan", "x.tns"], "mttkrp": ["mttkrp", "x.tns", "--mode", "2", "--rank", "3"],
         "ttv": ["ttv", "x.tns", "--mode", "1", "--vector", "v.txt"],
         "bench": ["bench", "x.tns", "--formats", "coo", "--repeat", "1"]}
NOBODY = 65534
ROOM = {"address_space": 16 << 30}  # drivers map much more than they use
MOST_MEMORY = {"bench": 2000 * MB}  # the arrays of STREAM are six times the cache


def help_and_version():
    r = run("--help")
    check(r.code == 0 and not r.err and len(r.out.splitlines()) <= 60 and "Example" in r.out, "polyad --help", r)
    check(all(re.search(rf"^  {verb} ", r.out, re.MULTILINE) for verb in VERBS), "--help names every verb", r.out)
    equal(run("-h").out, r.out, "-h")
    for verb in VERBS:
        r = run(verb, "--help")
        check(r.code == 0 and not r.err and len(r.out.splitlines()) <= 60 and "Example: polyad " + verb in r.out,
              f"{verb} --help is one screen with an example", r)
        for option in ("--threads", "--precision", "--json", "--quiet", "--verbose", "--memory", "--seed", "--device"):
            check(option in r.out, f"{verb} --help shows {option}")
    r = run("--version")
    check(r.code == 0 and re.fullmatch(r"polyad \d+\.\d+\.\d+\n", r.out), "--version", r)
    equal(json.loads(run("list", "formats", "--json", "-").out)["version"], r.out.split()[1],
          "the JSON has the same version")


def usage():
    for args in ([], ["nonsense"], ["info"], ["info", "x.tns", "y.tns"], ["info", "--no-such-flag", "x.tns"],
                 ["convert", "x.tns"], ["check"], ["generate"], ["cpd"], ["score", "x.tns"], ["plan"], ["mttkrp", "x.tns"], ["bench"],
                 ["list"], ["list", "nonsense"], ["list", "formats", "more"], ["info", "x.tns", "--threads", "0"],
                 ["info", "x.tns", "--threads", "-1"],
                 ["info", "x.tns", "--threads", "two"], ["info", "x.tns", "--precision", "f16"],
                 ["info", "x.tns", "--memory", "lots"], ["info", "x.tns", "--memory", "-1"],
                 ["info", "x.tns", "--memory", ""], ["info", "x.tns", "--seed", "-1"], ["info", "x.tns", "--seed", "x"],
                 ["info", "x.tns", "--json"], ["info", "x.tns", "--dialect", "nonsense"],
                 ["check", "x.tns", "--most", "-1"], ["check", "x.tns", "--most", "x"], ["--no-such-flag"],
                 ["info", "x.tns", "--dims", "3by3"], ["", "x.tns"]):
        r = run(*args)
        why = is_sentence(r, code=2) or (r.out and f"found {r.out[:80]!r} on standard output")
        check(not why, f"polyad {' '.join(args)}", why)
    for number in ("-1", "x", "1.5", "18446744073709551616"):
        r = run("info", "x.tns", "--seed", number)
        check(f"--seed: found '{number}', expected a whole number" in r.err, f"--seed {number}", r.err)
    equal(listing(), ["v.txt", "x.tns"], "mistakes of usage leave nothing behind")


def json_everywhere():
    for verb, call in CALLS.items():
        r = run(*call, "--json", "-", "--threads", "3", "--seed", "5")
        # Iterations are told as plain lines on standard error.
        told = [line for line in r.lines if not line.startswith(("iteration ", "polyad: note: "))]
        if not check(r.code == 0 and not told, f"{verb} --json -", r):
            continue
        try:
            found = json.loads(r.out)
        except ValueError as error:
            check(False, f"{verb} --json - prints JSON and nothing else", f"{error}: {r.out[:200]!r}")
            continue
        seconds = found.get("seconds", {})
        check(0 <= seconds.get("load", -1) <= seconds.get("total", -1) < 60, f"{verb}: seconds.load and seconds.total",
              seconds)
        check(MB < found.get("peak_rss_bytes", 0) < MOST_MEMORY.get(verb, 200 * MB), f"{verb}: peak_rss_bytes",
              found.get("peak_rss_bytes"))
        equal((found.get("threads"), found.get("seed")), (3, 5), f"{verb}: threads and seed")
        check(re.fullmatch(r"\d+\.\d+\.\d+", found.get("version", "")), f"{verb}: version", found.get("version"))
        r = run(*call, "--json", "out.json", "--threads", "3", "--seed", "5")
        check(r.code == 0 and r.out, f"{verb} --json FILE still speaks to people", r)
        equal(set(json.loads(text("out.json"))), set(found), f"{verb}: the same keys in a file")
        r = run(*call, "--quiet")
        equal((r.code, r.out, r.err), (0, "", ""), f"{verb} --quiet")
        r = run(*call, "--quiet", "--json", "-")
        check(r.code == 0 and set(json.loads(r.out)) == set(found), f"{verb} --quiet --json -", r)
        equal(run(*call, "--verbose").code, 0, f"{verb} --verbose")
    found = run("info", "x.tns", "--json", "-").json
    equal({k: found[k] for k in ("order", "dims", "nnz", "density", "duplicates")},
          {"order": 3, "dims": [3, 3, 4], "nnz": 3, "density": 3 / 36, "duplicates": 0}, "info")
    for mode, dim in zip(found["modes"], (3, 3, 4)):
        equal(mode["dim"], dim, "modes[].dim")
        check({"slices", "fibres", "nnz_per_slice", "nnz_per_fibre"} <= set(mode)
              and set(mode["nnz_per_slice"]) >= {"mean", "max", "stdev"} and
              set(mode["nnz_per_fibre"]) >= {"mean", "max", "stdev"}, "modes[] has its statistics", mode)
    r = run("info", write("bad.tns", GOOD + "x\n"), "--json", "-")
    refused(r, "a failure prints no JSON", "bad.tns", 4)
    r = run("info", "bad.tns", "--json", "bad.json")
    check(r.code == 1 and not os.path.exists(WORK / "bad.json"), "and writes none", r)
    # labels and names of any bytes still make JSON
    folder("odd")
    write("odd/x.tns", "1 1\n")
    write("odd/mode-1-caf\udce9.map".encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape"), "one\n")
    r = run("info", "odd/x.tns", "--json", "-")
    check(r.code == 0 and json.loads(r.raw.decode("utf-8"))["modes"][0]["labels"] == 1, "a mode name that is not UTF-8",
          r)


def statistics():
    # three slices of 4, 1, 1 nonzeros in mode 1; worked out by hand
    write("stat.tns", "1 1 1 3\n1 2 1 4\n1 1 2 12\n1 2 2 0\n2 1 1 -84\n4 2 2 1\n")
    found = run("info", "stat.tns", "--json", "-").json
    equal((found["norm"], found["sum"], found["min"], found["max"], found["zeros"]),
          ((3 * 3 + 4 * 4 + 12 * 12 + 84 * 84 + 1) ** 0.5, -64, -84, 12, 1), "norm, sum, range")
    equal(found["density"], 6 / 16, "density")
    first = found["modes"][0]
    equal((first["dim"], first["slices"], first["fibres"]), (4, 3, 4), "slices and fibres of mode 1")
    equal(first["nnz_per_slice"], {"mean": 2.0, "max": 4, "stdev": 2 ** 0.5}, "nonzeros per slice")
    equal(first["nnz_per_fibre"], {"mean": 1.5, "max": 2, "stdev": 0.5}, "nonzeros per fibre")
    results = set()
    write("many.tns", "".join(f"{i % 97 + 1} {i % 89 + 1} {i % 83 + 1} {i}.1\n" for i in range(50_000)))
    for threads in ("1", "2", "7"):
        # Without --deterministic formats may be built for the number of threads (flycoo's super-shards).
        found = run("info", "many.tns", "--deterministic", "--predict", "--json", "-", "--threads", threads).json
        for key in ("seconds", "peak_rss_bytes", "threads"):
            del found[key]
        results.add(json.dumps(found))
    equal(len(results), 1, "the same statistics for any number of threads")


def threads():
    count = lambda *args, **env: run("info", "x.tns", "--json", "-", *args, env=env).json["threads"]
    equal(count(OMP_NUM_THREADS="3"), 3, "threads from OMP_NUM_THREADS")
    equal(count(OMP_NUM_THREADS="5,2"), 5, "the first of OMP_NUM_THREADS' levels")
    equal(count("--threads", "2", OMP_NUM_THREADS="3"), 2, "--threads wins")
    for nothing in ("", "0", "many", "-4"):
        equal(count(OMP_NUM_THREADS=nothing), len(os.sched_getaffinity(0)),
              f"OMP_NUM_THREADS={nothing!r}: the cores there are")
    equal(count("--threads", "64"), 64, "more threads than cores")


def few_threads():
    """The system gives hardly any threads: the work is done with those."""
    def limit():
        resource.setrlimit(resource.RLIMIT_NPROC, (2, 2))
        if os.getuid() == 0:  # root may have as many as it likes
            os.setuid(NOBODY)

    if run("--version", setup=limit).code != 0:
        return skip("few threads", "another user may not run the tool")
    make = ["generate", "-", "--dims", "300x200x100", "--nnz", "50000", "--quiet"]
    found, wanted = run(*make, "--threads", "7", setup=limit), run(*make, "--threads", "7")
    check(found.code == 0 and not found.err and found.raw == wanted.raw, "7 threads where the system gives 2", found)
    return None


def memory():
    """A tensor that does not fit: one sentence that says what needed how much, and the process stays near the limit."""
    folder("memory")
    nnz = 600_000
    write("memory/x.tns", "1 2 3 4.5\n" * nnz)  # 12 MB as a tensor
    write("memory/x.csv", "a,b,c\n" + "".join(f"k{i % 977},m{i % 7},n\n" for i in range(nnz)))
    for ending in ("tns.gz", "tns.zst", "bin", "sptn", "alto", "npz", "npz.gz", "ptn.gz", "bin.gz"):
        run("convert", "memory/x.tns", f"memory/x.{ending}", "--quiet")
    for name in listing(WORK / "memory"):
        csv = ["--columns", "a,b,c"] if name.endswith("csv") else []
        r = run("info", f"memory/{name}", *csv, "--memory", "3M")
        refused(r, f"{name} in 3 MB", says="3.00 MB", rss=40 * MB)
        check(re.search(r"needs [\d.]+ [kMG]?B", r.err), f"{name}: how much was needed", r.err)
        r = run("info", f"memory/{name}", *csv, "--memory", "1G", "--quiet")
        check(r.code == 0, f"{name} in 1 GB", r)
    r = run("convert", "memory/x.tns", "memory/y.ptn", "--sort", "--memory", "13M", "--quiet")
    check(r.code == 0 or not is_sentence(r) and "13.0 MB" in r.err, "sorting near the limit works or says why not", r)
    equal(os.path.exists(WORK / "memory/y.ptn"), r.code == 0, "and leaves no file if not")
    for size in ("12000000", "12M", "12MB", "12m", "0.012G", "11.5Mi", "1.2e7"):
        r = run("info", "memory/x.tns", "--memory", size)
        check(r.code in (0, 1) and ("12." in r.err or r.code == 0), f"--memory {size} is understood", r)
    r = run("info", "memory/x.bin", "--memory", "0")
    equal(r.code, 0, "--memory 0: no limit")


def devices():
    for name in ("nonsense", "gpu7"):
        r = run("info", "x.tns", f"--device={name}")
        why = is_sentence(r, code=2)
        check(not why and "--device" in r.err, f"--device {name!r}", why or r.err)
    equal(run("info", "x.tns", "--device", "cpu", "--quiet").code, 0, "--device cpu")
    for device in run("list", "devices", "--json", "-", address_space=16 << 30).json["devices"]:
        r = run("info", "x.tns", "--device", device["name"], "--quiet", address_space=16 << 30)
        equal(r.code, 0 if device["available"] else 1, f"--device {device['name']}")
    # Where nothing runs on devices, options about them are mistakes.
    for verb, flags in {"info": ["--timeline"], "plan": ["--timeline"],
                        **dict.fromkeys(["check", "convert", "generate", "score", "list"],
                                        ["--device", "--device-memory", "--timeline"])}.items():
        for flag in flags:
            r = run(*CALLS[verb], flag, {"--device": "gpu", "--device-memory": "1G"}.get(flag, "t.svg"), **ROOM)
            why = is_sentence(r, code=2)
            check(not why and flag in r.err, f"{verb} {flag}", why or r.err)
    for verb, call in CALLS.items():
        equal(run(*call, "--device", "cpu", "--quiet").code, 0, f"{verb} --device cpu")
    for dense in ("device", "cheese"):
        r = run("cpd", "x.tns", "--dense", dense)
        why = is_sentence(r, code=2)
        check(not why and "--dense: found" in r.err, f"--dense {dense} on the processor", why or r.err)


def lists():
    for what in WHAT:
        r, found = run("list", what), run("list", what, "--json", "-").json[what]
        check(r.code == 0 and not r.err and r.out, f"list {what}", r)
        check(isinstance(found, list) and all(e["name"] and e["summary"] for e in found), f"list {what} --json -",
              found)
        check(all(re.search(rf"^{re.escape(e['name'])}\s", r.out, re.MULTILINE) for e in found),
              f"list {what} prints what the JSON has", r.out)
    for what, least in {"formats": "coo", "backends": "cpu", "devices": "cpu", "dialects": "frostt"}.items():
        names = [e["name"] for e in run("list", what, "--json", "-").json[what]]
        check(least in names and len(set(names)) == len(names), f"list {what} has {least}, and nothing twice", names)


def people():
    r = run("info", "x.tns")
    check(all(len(line) <= 160 for line in r.out.splitlines()) and "order 3" in r.out and "3 x 3 x 4" in r.out,
          "info is a page for people", r.out)
    write("s.bin", splatt(DIMS, ROWS))
    check("splatt-binary" in run("info", "s.bin").out, "it says which dialect it saw")
    check(re.search("taken as 1-based", run("info", write("amb.tns", "sptensor\n2\n5 5\n1\n2 2 1\n")).out),
          "and what was assumed")


write("x.tns", GOOD)
write("v.txt", "1\n" * DIMS[0])
usage()
help_and_version()
json_everywhere()
statistics()
threads()
few_threads()
memory()
devices()
lists()
people()
finish()
