#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""info on formats: the storage of every format, HiCOO's blocks, the choice. (test_contract has the statistics.)"""

import re

from harness import check, equal, finish, is_sentence, run, write

FORMATS = {e["name"]: e for e in run("list", "formats", "--json", "-").json["formats"]}
NNZ, ORDER = 5000, 3


def storage():
    for args, measured in (([], True), (["--measure"], True), (["--predict"], False)):
        found = run("info", "x.ptn", "--json", "-", *args).json["storage"]
        want = [(name, mode) for name, e in FORMATS.items()
                for mode in (range(1, ORDER + 1) if e["mode_specific"] else [None])]
        equal([(row["format"], row["mode"]) for row in found], want, f"storage {args}: every format and mode")
        for row in found:
            label = f"storage {args}: {row['format']} {row['mode']}"
            check({"bytes", "words", "predicted_bytes", "formula", "measured"} <= set(row), f"{label}: keys", row)
            if "refused" in row:
                check(row["bytes"] is None and not row["measured"] and row["refused"], f"{label}: refused", row)
                continue
            equal(row["measured"], measured, f"{label}: measured")
            check(row["bytes"] > 0 and row["words"] > 0 and row["formula"], f"{label}: numbers", row)
            if not measured:
                equal(row["bytes"], row["predicted_bytes"], f"{label}: bytes as predicted")
    coo = found[[row["format"] for row in found].index("coo")]
    equal((coo["bytes"], coo["words"]), (NNZ * (ORDER * 4 + 8), NNZ * ORDER), "coo: bytes and words")
    found = run("info", "x.ptn", "--json", "-", "--precision", "f32").json["storage"]
    equal(next(row for row in found if row["format"] == "coo")["bytes"], NNZ * (ORDER * 4 + 4), "coo in f32")


def blocks():
    # For blocks of side 4 to 256: nonzeros 1 and 2 in one, 3 in another, 4 to 7 in a third. Geometric mean of 2, 1, 4: 2.
    write("b.tns", "1 1 1 1\n2 2 2 1\n1001 1 1 1\n" + "".join(f"{2001 + i} 1 1 1\n" for i in range(4)))
    found = run("info", "b.tns", "--json", "-").json["hicoo"]
    check(found["block"] in (4, 8, 16, 32, 64, 128, 256), "hicoo.block", found)
    check(abs(found["alpha_b"] - 3 / 7) < 1e-12 and abs(found["c_b"] * found["block"] - 2) < 1e-12,
          "hicoo: alpha_b and c_b", found)


def choice():
    for file in ("x.ptn", "dense.ptn"):
        found = run("info", file, "--json", "-").json["choice"]
        check(found["format"] in FORMATS and len(found["why"]) > 10, f"{file}: choice", found)
        taken = run("mttkrp", file, "--mode", 1, "--rank", 16, "--json", "-").json
        equal((taken["format"], taken["format_why"]), (found["format"], found["why"]), f"{file}: auto takes the same")
    found = run("info", "dense.ptn", "--json", "-").json["choice"]["format"]
    check(found.startswith("sweep") or found == "merged",
          "long fibres: a tree, with or without a second one as the caches are, or short modes merged", found)


def page():
    r = run("info", "x.ptn")
    for name in FORMATS:
        check(re.search(rf"^  {name} .*\d", r.out, re.MULTILINE), f"the page has {name}", r.out)
    check("alpha_b" in r.out and "auto would take" in r.out, "and the rest", r.out)
    check(all(len(line) <= 160 for line in r.out.splitlines() if "refused" not in line), "in 160 columns", r.out)
    r = run("info", "x.ptn", "--measure", "--predict")
    check(not is_sentence(r, code=2), "--measure and --predict contradict each other", r)


def odd_ones():
    found = run("info", write("v.tns", "1 2\n3 4\n"), "--json", "-").json
    equal(found["storage"], [], "order 1 has no formats")
    r = run("info", "big.ptn", "--memory", "9M", "--json", "-")
    check(r.code == 0, "formats that do not fit the memory", r)
    if r.code == 0:
        rows = [row for row in r.json["storage"] if row["format"] == "coo"]
        check(rows and rows[0]["bytes"] == rows[0]["predicted_bytes"] and not rows[0]["measured"],
              "are predicted, not built", rows)


run("generate", "x.ptn", "--dims", "300x200x400", "--nnz", NNZ, "--quiet")
run("generate", "dense.ptn", "--dims", "30x20x40", "--nnz", 20000, "--quiet")
run("generate", "big.ptn", "--dims", "400x500x600", "--nnz", "600k", "--quiet")
storage()
blocks()
choice()
page()
odd_ones()
finish()
