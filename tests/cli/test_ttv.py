#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""polyad ttv: the numbers of the HOCFS paper's example in every format, files of vectors good and bad, output, JSON."""

import random

from harness import check, equal, finish, is_sentence, listing, refused, run, text, write

EXAMPLE = ("1 1 1 3|1 1 2 1|1 2 2 9|1 3 2 7|1 3 3 3|1 4 3 5|1 4 4 8|1 5 1 2|3 1 3 4|3 2 4 7|3 3 1 5|3 3 4 2|3 4 2 1|"
           "3 4 3 6|4 1 2 7|4 1 4 8|4 2 1 3|4 3 3 2|4 3 4 1|4 5 3 6|4 5 4 5")
ROWS = [tuple(map(int, row.split())) for row in EXAMPLE.split("|")]
FORMATS = ["auto"] + [f["name"] for f in run("list", "formats", "--json", "-").json["formats"]]


def product(rows, mode, vector):
    sums = {}
    for row in rows:
        at = row[:mode - 1] + row[mode:-1]
        sums[at] = sums.get(at, 0) + row[-1] * vector[row[mode - 1] - 1]
    return "".join(f"{' '.join(map(str, at))} {value}\n" for at, value in sorted(sums.items()))


def numbers():
    write("a.tns", EXAMPLE.replace("|", "\n") + "\n")
    for mode, vector in ((1, [1, 10, 100, 1000]), (2, [1, 2, 3, 4, 5]), (3, [1, 10, 100, 1000])):
        write("v.txt", "".join(f"{v}\n" for v in vector))
        for name in FORMATS:
            r = run("ttv", "a.tns", "--mode", mode, "--vector", "v.txt", "--out", "y.tns", "--format", name)
            if check(r.code == 0, f"ttv of mode {mode} with {name}", r):
                equal(text("y.tns"), product(ROWS, mode, vector), f"numbers of mode {mode} with {name}")
    write("matrix.tns", "1 2 3\n2 1 5\n2 3 -5\n")
    write("v.txt", "1 1 1")
    run("ttv", "matrix.tns", "--mode", 2, "--vector", "v.txt", "--out", "y.tns")
    equal(text("y.tns"), "1 3\n2 0\n", "a matrix gives order 1; sums that are 0 stay")
    back = run("info", "y.tns", "--json", "-")
    equal(back.code == 0 and back.json["order"], 1, "order 1 reads back")


def threads():
    dice = random.Random(1)
    rows = {(dice.randint(1, 50), dice.randint(1, 60), dice.randint(1, 70)): dice.random() for _ in range(20000)}
    write("r.tns", "".join(f"{i} {j} {k} {v!r}\n" for (i, j, k), v in rows.items()))
    write("w.txt", " ".join(repr(dice.random()) for _ in range(60)))
    for name in FORMATS:
        first = None
        for n in (1, 2, 5):
            r = run("ttv", "r.tns", "--mode", 2, "--vector", "w.txt", "--out", "y.tns", "--format", name, "--threads", n,
                    "--deterministic")
            found = text("y.tns") if check(r.code == 0, f"{name} with {n} threads", r) else ""
            first = first or found
            check(found == first, f"the same bytes with {n} threads, {name}", "they differ")


def vectors():
    def ttv(name):
        return run("ttv", "a.tns", "--mode", 3, "--vector", name, "--json", "-")

    for name, content in (("lines", "1\n10\n100\n1000\n"), ("no newline at the end", "1\n10\n100\n1000"),
                          ("blanks", "  1 10\t100\r\n\n\n1e3 "), ("signs", "+1 +10.0 1e2 1000.")):
        write("good.txt", content)
        equal(ttv("good.txt").json["nnz"], 13, f"a vector with {name}")
    for name, content, line, says in (
            ("a word", "1\n10\nabc\n1000\n", 3, "found 'abc', expected a number"),
            ("half a number", "1\n10\n100\n1000x\n", 4, "found '1000x', expected a number"),
            ("infinity", "1\ninf\n3\n4\n", 2, "found 'inf', expected a number"),
            ("not a number", "1 2 3 nan\n", 1, "found 'nan', expected a number"),
            ("two signs", "+-1 2 3 4\n", 1, "found '+-1', expected a number"),
            ("too large a number", "1\n2\n\n1e400\n", 4, "found '1e400', expected a number"),
            ("control characters", "1\n\x01\n", 2, "found '\\x01', expected a number"),
            ("one number too many", "1\n2\n3\n4\n\n5\n", 6, "found '5' after 4 numbers, expected no more: mode 3 has length 4"),
            ("too few numbers", "1\n2\n3\n", None, "found 3 numbers, expected 4, the length of mode 3"),
            ("nothing", "", None, "found 0 numbers, expected 4, the length of mode 3"),
            ("a long word", "7" * 5000000, 1, "expected a number")):
        write("bad.txt", content)
        refused(ttv("bad.txt"), f"a vector with {name}", "bad.txt", line, says)
    refused(ttv("absent.txt"), "no vector", "absent.txt", says="cannot be opened")
    refused(ttv("."), "a folder in place of a vector", says="is a folder")


def usage():
    for name, args, says in (("no mode", ("--vector", "v.txt"), "--mode"),
                             ("no vector", ("--mode", 1), "--vector"),
                             ("mode 0", ("--mode", 0, "--vector", "v.txt"), "--mode"),
                             ("mode 4 of 3", ("--mode", 4, "--vector", "good.txt"), "--mode 4: the tensor has 3 modes"),
                             ("no such format", ("--mode", 1, "--vector", "v.txt", "--format", "nosuch"),
                              "there is no format 'nosuch'"),
                             ("both to standard output", ("--mode", 3, "--vector", "good.txt", "--out", "-", "--json", "-"),
                              "cannot both go")):
        r = run("ttv", "a.tns", *args)
        why = is_sentence(r, code=2)
        check(not why and says in r.err, name, why or r)
    write("wide.tns", "100000 100000 1 1\n")
    write("one.txt", "1\n")
    r = run("ttv", "wide.tns", "--mode", 3, "--vector", "one.txt", "--format", "hocsr")
    refused(r, "hocsr of too many rows", says="10,000,000,000 rows")


def output():
    write("v.txt", "1\n10\n100\n1000\n")
    r = run("ttv", "a.tns", "--mode", 3, "--vector", "v.txt")
    equal(r.out.splitlines()[1:3] + r.out.splitlines()[-1:], ["1 1 13", "1 2 90", "... and 3 more (--out writes them)"],
          "without --out the first sums are printed")
    r = run("ttv", "a.tns", "--mode", 3, "--vector", "v.txt", "--out", "-")
    equal(r.out, product(ROWS, 3, [1, 10, 100, 1000]), "--out - gives the result and nothing else")
    r = run("ttv", "a.tns", "--mode", 3, "--vector", "v.txt", "--format", "cfb", "--json", "-", "--out", "z.ptn")
    found = r.json
    equal([found[k] for k in ("order", "dims", "nnz", "mode", "format", "kernel", "files")],
          [2, [4, 5], 13, 3, "cfb", "ttv/cfb/fibres", ["z.ptn"]], "JSON")
    check({"load", "build", "compute", "write", "total"} <= set(found["seconds"]), "seconds of the steps", found["seconds"])
    before = listing()
    r = run("ttv", "a.tns", "--mode", 3, "--vector", "v.txt", "--out", "no/such/folder/y.tns")
    refused(r, "an output that cannot be written", "no/such/folder/y.tns")
    equal(listing(), before, "nothing is left behind")


def labels():
    write("l/x.tns", "1 1 1 2\n2 1 1 3\n")
    for m, names in ((1, "ann\nbob\n"), (2, "tea\n"), (3, "mon\n")):
        write(f"l/mode-{m}-m{m}.map", names)
    write("one.txt", "1\n")
    r = run("ttv", "l/x.tns", "--mode", 2, "--vector", "one.txt", "--out", "l/out/y.ptn")
    refused(r, "a folder that is not there", "l/out/y.ptn")
    r = run("ttv", "l/x.tns", "--mode", 2, "--vector", "one.txt", "--out", "l/y.ptn")
    check(r.code == 0, "a tensor with labels", r)
    modes = run("info", "l/y.ptn", "--json", "-").json["modes"]
    equal([(m["name"], m["labels"]) for m in modes], [("m1", 2), ("m3", 1)], "labels of the modes that are left")


def safety():
    """Nothing that is read is overwritten, and a sum that does not fit is an error."""
    good = "1 1 1 2\n2 1 1 3\n"
    write("s/x.tns", good)
    write("s/v.txt", "1\n")
    for out in (["--out", "s/x.tns"], ["--out", "s/v.txt"], ["--json", "s/v.txt"], ["--out", "s/y.tns", "--json", "s/y.tns"]):
        r = run("ttv", "s/x.tns", "--mode", 2, "--vector", "s/v.txt", *out)
        check(not is_sentence(r, code=2), f"ttv {' '.join(out)}", r)
    equal((text("s/x.tns"), text("s/v.txt")), (good, "1\n"), "what was read is still there")
    write("s/big.tns", "1 1 1e308\n1 2 1e308\n")
    write("s/w.txt", "1 1\n")
    refused(run("ttv", "s/big.tns", "--mode", 2, "--vector", "s/w.txt", "--out", "s/z.tns"), "a sum above 1e308", "s/big.tns",
            says="f64")


safety()
numbers()
threads()
vectors()
usage()
output()
labels()
finish()
