#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""bench: the JSON that others read, the table, the picture, what is refused, Ctrl-C."""

import re
import signal
import time
import xml.etree.ElementTree as ET

from harness import Call, check, equal, finish, is_sentence, listing, refused, run, text, write

FORMATS = {e["name"]: e for e in run("list", "formats", "--json", "-").json["formats"]}
KERNELS = {e["name"]: e for e in run("list", "kernels", "--json", "-").json["kernels"]}
QUICK = ["--repeat", 2, "--threads", 2]


def bench(*args, **how):
    return run("bench", *args, *QUICK, "--json", "-", **how)


def rows_of(found, format, mode=None):
    return [r for r in found["results"] if r["format"] == format and (mode is None or r["mode"] == mode)]


def every_format():
    for file, order, precision in (("x.ptn", 3, "f64"), ("y.ptn", 4, "f32")):
        r = bench(file, "--rank", 5, "--precision", precision, timeout=120)
        if not check(r.code == 0 and not r.err, f"bench {file}", r):
            continue
        found = r.json
        equal(set(found["tensor"]), {"file", "order", "dims", "nnz"}, "tensor")
        equal((found["tensor"]["order"], found["tensor"]["nnz"], found["tensor"]["file"]), (order, 3000, file), "its numbers")
        equal((found["rank"], found["threads"], found["precision"], found["kernel"]), (5, 2, precision, "mttkrp"), "the rest")
        check(0.1 < found["stream_gbs"] < 10000, "stream_gbs", found["stream_gbs"])
        equal(list(dict.fromkeys(row["format"] for row in found["results"])), list(FORMATS),
              "all formats in the order of the registry")
        value, index = (8, 4) if precision == "f64" else (4, 4)
        for name in FORMATS:
            rows = rows_of(found, name)
            if "refused" in rows[0]:
                check(len(rows) == 1 and rows[0]["mode"] == "all" and rows[0]["refused"], f"{name} says why not", rows)
                continue
            equal([row["mode"] for row in rows], [*range(1, order + 1), "all"], f"{name}: modes, then all")
            for row in rows:
                seconds = row["seconds"]
                check(0 < seconds["min"] <= seconds["median"], f"{name}: seconds", row)
                modes = order if row["mode"] == "all" else 1
                flops = 3000 * 5 * order * modes
                traffic = ((order * 5 + 3) * value + order * index) * 3000 * modes
                check(abs(row["gflops"] * seconds["min"] * 1e9 / flops - 1) < 1e-9, f"{name}: gflops", row)
                check(abs(row["gbs"] * seconds["min"] * 1e9 / traffic - 1) < 1e-9, f"{name}: gbs", row)
            for row in rows[:-1]:
                kernel = KERNELS.get(row["kernel"], {})
                check(kernel.get("operation") == "mttkrp" and {name, "any"} & set(kernel["formats"]),
                      f"{name}: a kernel of the registry for it", row)
            check(rows[-1]["build_seconds"] >= 0 and rows[-1]["bytes"] > 0, f"{name}: build_seconds, bytes", rows[-1])
            check(sum(row["seconds"]["min"] for row in rows[:-1]) <= rows[-1]["seconds"]["min"] * (1 + 1e-9),
                  f"{name}: no sweep is faster than the best of each mode", rows)
        equal(rows_of(found, "coo", "all")[0]["bytes"], 3000 * (order * 4 + value), "the bytes of coo")


def choices():
    found = bench("x.ptn", "--formats", "coo", "--modes", "3,1").json
    equal([r["mode"] for r in found["results"]], [3, 1, "all"], "--modes, in the order given")
    r = run("bench", "x.ptn", "--formats", "auto", *QUICK, "--json", "-")
    check(r.code == 0 and r.json["results"][0]["format"] in FORMATS and "polyad: note: auto is" in r.err, "--formats auto", r)
    equal(len(bench("x.ptn", "--formats", "coo,coo").json["results"]), 4, "a format named twice is measured once")
    if "csf-all" in FORMATS:
        equal(bench("x.ptn", "--formats", "csf").json["results"][0]["format"], "csf-all", "csf is csf-all")
    found = bench("x.ptn", "--formats", "coo", "--kernels", "mttkrp/generic,mttkrp/coo/atomic").json["results"]
    equal([(r["kernel"], r["mode"]) for r in found],
          [(k, m) for k in ("mttkrp/generic", "mttkrp/coo/atomic") for m in (1, 2, 3, "all")], "--kernels")
    r = bench("x.ptn", "--formats", "coo", "--deterministic", "--kernels", "mttkrp/coo/atomic")
    check(r.code == 0 and "--deterministic" in r.json["results"][0]["refused"], "a kernel that may not is refused", r)
    found = bench("x.ptn", "--formats", "coo", "--kernel", "ttv").json
    equal((found["kernel"], found["rank"], len(found["results"])), ("ttv", 1, 4), "--kernel ttv")
    for row in found["results"]:
        check(abs(row["gflops"] * row["seconds"]["min"] * 1e9 / (2 * 3000 * (3 if row["mode"] == "all" else 1)) - 1) < 1e-9,
              "ttv: gflops", row)
    r = bench("one.tns")
    check(r.code == 0 and rows_of(r.json, "coo", "all")[0]["bytes"] == 20, "one nonzero", r)


def refusals():
    r = run("bench", "big.ptn", "--memory", "9M", *QUICK, "--json", "-")
    found = r.json if r.code == 0 else {"results": [], "stream_gbs": 0}
    check(r.code == 0 and found["stream_gbs"] is None and "memory bandwidth was not measured" in r.err,
          "no room for STREAM: a note", r)
    check(found["results"] and all("needs" in row["refused"] for row in rows_of(found, "coo")),
          "a format that does not fit is refused and the others go on", found["results"][:2])
    r = run("bench", "big.ptn", "--memory", "9M", *QUICK)
    check(r.code == 0 and re.search(r"^  coo +refused: .*needs", r.out, re.MULTILINE), "also in the table", r)
    refused(run("bench", "x.ptn", "--rank", 100000, "--memory", "1M", "--quiet"), "factors that do not fit", says="needs")
    refused(run("bench", "v.tns"), "a vector", "v.tns", says="expected at least 2 modes")
    for args, says in ((["--kernel", "x"], "expected mttkrp, ttv or cpd"), (["--kernel", "cpd", "--modes", "1"], "--modes"),
                       (["--formats", "nonsense"], "there is no format 'nonsense'; there are coo"),
                       (["--formats", ""], "--formats"), (["--modes", "4"], "1 to 3"), (["--modes", "1,1"], "twice"),
                       (["--modes", "0"], "1 to 3"), (["--modes", ""], "--modes"), (["--repeat", "0"], "--repeat"),
                       (["--rank", "0"], "--rank"), (["--kernels", "mttkrp/none"], "there is no kernel 'mttkrp/none'"),
                       (["--kernel", "ttv", "--kernels", "mttkrp/generic"], "for ttv"), (["--plot", "-"], "--plot"),
                       (["--plot", "x.ptn"], "overwrite")):
        r = run("bench", "x.ptn", *args)
        why = is_sentence(r, code=2) or (says not in r.err and f"expected {says!r} in {r.err!r}")
        check(not why, f"bench x.ptn {' '.join(args)}", why)
    r = run("bench", "x.ptn", "--kernel", "cpd", "--formats", "coo,csf", "--repeat", "2", "--plot", "cpd.svg", "--json", "-")
    found = r.json["results"] if r.code == 0 else []
    check(len(found) == 2 and all(row["mode"] == "all" and row["seconds"]["min"] > 0 for row in found),
          "iterations of CP-ALS", r)
    check("ms an iteration" in run("bench", "x.ptn", "--kernel", "cpd", "--formats", "coo", "--repeat", "1").out,
          "and for people")


def table():
    r = run("bench", "x.ptn", *QUICK, timeout=120)
    lines = r.out.splitlines()
    rows = [l for l in lines if re.match(r"[* ] [a-z]", l) and not l.startswith("  format")]
    names = [l[2:].split()[0] for l in rows if "is the fastest" not in l]
    equal(names, list(FORMATS), "a row per format")
    equal(len([l for l in rows if l.startswith("* ") and "fastest" not in l]), 1, "the best is marked")
    wide = [l for l in lines if len(l) > 100 and "refused" not in l and not l.startswith(("MTTKRP", "x.ptn"))]
    check(not wide, "100 columns are enough", wide)
    for file, order in (("y.ptn", 4), ("z.ptn", 5), ("w.ptn", 14)):
        r = run("bench", file, "--formats", "coo", *QUICK)
        body = r.out.split("\n\n", 1)[1] if "\n\n" in r.out else ""
        check(r.code == 0 and all(f"mode{m:>2}" in body for m in range(1, order + 1)), f"every mode of order {order}", r)
        check(all(len(l) <= 100 for l in body.splitlines()), f"100 columns for order {order}", body)
        equal(len(re.findall(r"^[* ] coo +\d", body, re.MULTILINE)) > 1, order > 5, f"modes of order {order} in lines of their own")


def picture():
    r = run("bench", "x.ptn", *QUICK, "--plot", "bench.svg", timeout=120)
    check(r.code == 0 and "bench.svg" in r.out, "--plot", r)
    svg = ET.fromstring(text("bench.svg"))
    equal(svg.tag, "{http://www.w3.org/2000/svg}svg", "an SVG")
    words = [e.text for e in svg.iter("{http://www.w3.org/2000/svg}text")]
    check(all(name in words for name in FORMATS), "a bar per format", words)
    check(all(f"mode {m}" in words for m in (1, 2, 3)) and any("milliseconds" in w for w in words), "legend and axis", words)
    check(not re.search(r"href|<script|<image|url\(", text("bench.svg")), "nothing from elsewhere")
    width, height = float(svg.get("width")), float(svg.get("height"))
    for e in svg.iter("{http://www.w3.org/2000/svg}rect"):
        x, y, w, h = (float(e.get(k)) for k in ("x", "y", "width", "height"))
        check(x >= 0 and y >= 0 and x + w <= width + 0.1 and y + h <= height + 0.1, "bars lie inside", e.attrib)
    write("a&b<.tns", "1 1 1\n")
    r = run("bench", "a&b<.tns", "--formats", "coo", *QUICK, "--plot", "odd.svg")
    check(r.code == 0 and "a&b<.tns" in "".join(ET.fromstring(text("odd.svg")).itertext()), "any file name", r)


def interrupted():
    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        call = Call("bench", "x.ptn", "--formats", "coo", "--repeat", 1000000, "--plot", "never.svg", "--json", "never.json")
        time.sleep(2)
        call.signal(number)
        r = call.finish()
        check(r.code == code and r.seconds < 12, f"{number.name}", r)
    check(not [f for f in listing() if "never" in f], "nothing is left", listing())


for name, dims in (("x", "40x50x60"), ("y", "20x30x40x50"), ("z", "9x9x9x9x9"), ("w", "x".join(["4"] * 14))):
    run("generate", f"{name}.ptn", "--dims", dims, "--nnz", 3000, "--quiet")
run("generate", "big.ptn", "--dims", "400x500x600", "--nnz", "600k", "--quiet")
write("v.tns", "1 2\n3 4\n")
write("one.tns", "1 1 1 1\n")
every_format()
choices()
refusals()
table()
picture()
interrupted()
finish()
