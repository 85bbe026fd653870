#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tensors through every dialect and back: the same bits, dims and labels; files, pipes, compression, options."""

import gzip
import json
import math
import os
import random
import struct
import subprocess
import sys

from harness import (GOOD, WORK, check, equal, finish, folder, info, listing, refused, run, skip, text, write)

DIALECTS = run("list", "dialects", "--json", "-").json["dialects"]
WRITABLE = [d for d in DIALECTS if d["writes"]]
VALUES = [1e-300, 5e-324, 0.1, 1 / 3, 2 / 3, 1e308, 1.7976931348623157e308, 123456789.123, -0.0, 1, -2, 1e21, 1e22,
          9007199254740993,
          2.2250738585072014e-308, math.pi, -math.e, 100000, 0.00001, 4.35, 8e15]
HOLDS_DIMS = {"order-dims", "extended-frostt", "tensor-toolbox", "genten-text", "matrix-market", "ptn", "splatt-binary",
              "genten-binary", "alto-binary", "npz"}


def tensor_text(order, n=60):
    """Sorted nonzeros without duplicates or empty slices: every dialect, CSV too, can give the same text back."""
    dice = random.Random(order)
    rows = sorted({(i % 11 + 1,) if order == 1 else tuple([i % 4 + 1] + [dice.randint(1, 3) for _ in range(order - 1)])
                   for i in range(n)} | {(k,) * order for k in (1, 2, 3)})
    return rows, "".join(f"{' '.join(map(str, row))} {VALUES[i % len(VALUES)]!r}\n" for i, row in enumerate(rows))


def bits(lines):
    return [(line.split()[:-1], struct.pack("<d", float(line.split()[-1]))) for line in lines.splitlines()]


def convert(source, target, *args, name=None, **how):
    r = run("convert", source, target, *args, **how)
    return check(r.code == 0 and all(l.startswith("polyad: note: ") for l in r.lines),
                 name or f"convert {source} {target} {' '.join(args)}", r)


def round_trips():
    folder("trip")
    for order in (1, 2, 3, 5, 9):
        _, given = tensor_text(order)
        write(f"trip/given{order}.tns", given)
        convert(f"trip/given{order}.tns", f"trip/x{order}.tns")
        canonical = text(f"trip/x{order}.tns")
        equal(bits(canonical), bits(given), f"text of order {order} keeps every bit")
        columns = ",".join(str(m + 1) for m in range(order))
        for d in WRITABLE:
            if d["name"] == "matrix-market" and order != 2:
                r = run("convert", f"trip/x{order}.tns", "trip/no.mtx")
                check(r.code in (1, 2) and "order 2" in r.err and not os.path.exists(WORK / "trip/no.mtx"),
                      f"MatrixMarket refuses order {order}", r)
                continue
            back = ["--columns", columns, "--value", "value"] if d["name"] == "csv" else []
            compressions = ["", ".gz", ".zst"] if order == 3 or d["name"] == "matrix-market" else [""]
            for ending in [e + c for e in d["extensions"] for c in compressions]:
                file = f"trip/{d['name']}-{order}{ending}"
                first = run("convert", f"trip/x{order}.tns", file, "--to", d["name"], "--json", "-").json
                r = run("convert", file, "-", "--json", "trip/r.json", "--quiet", *back)
                what = f"order {order} through {d['name']} {ending}"
                equal(r.out if r.code == 0 else str(r), canonical, what)
                if r.code == 0:
                    equal(json.loads(text("trip/r.json"))["from"], d["name"], f"{what}: recognised")
                equal(first["files"], [file], f"{what}: one file")
                magic = {".gz": b"\x1f\x8b", ".zst": b"\x28\xb5\x2f\xfd"}.get("." + file.split(".")[-1])
                if magic:
                    check((WORK / file).read_bytes()[:len(magic)] == magic, f"{what}: is compressed")
    # the ending alone says it, in capitals too
    for name in ("e.ptn", "e.npz", "e.sptn", "e.bin", "e.alto", "e.txt", "e.TNS", "e.Ptn", "e.csv"):
        convert("trip/x3.tns", f"trip/{name}")
        back = ["--columns", "1,2,3", "--value", "value"] if name.endswith("csv") else []
        equal(run("convert", f"trip/{name}", "-", "--quiet", *back).out, text("trip/x3.tns"), f"by its ending: {name}")
    for name in ("e.xyz", "e", "e.gz", "e.tns.bz2", "e.tns.xz"):
        r = run("convert", "trip/x3.tns", f"trip/{name}")
        check(r.code == 2 and len(r.lines) == 1 and not os.path.exists(WORK / "trip" / name), f"unknown ending {name}",
              r)
    r = run("convert", "trip/x3.tns", "trip/e.xyz", "--to", "no-such-dialect")
    check(r.code == 2 and "frostt" in r.err, "unknown dialect to write", r)
    r = run("convert", "trip/x3.tns", "trip/e.tns", "--from", "no-such-dialect")
    check(r.code == 2 and "frostt" in r.err, "unknown dialect to read", r)


def pipes():
    given = text("trip/x3.tns")
    for d in WRITABLE:
        if d["name"] == "matrix-market":
            continue
        back = ["--columns", "1,2,3", "--value", "value"] if d["name"] == "csv" else []
        packed = run("convert", "-", "-", "--from", "frostt", "--to", d["name"], "--quiet", input=given)
        plain = run("convert", "-", "-", "--from", d["name"], "--to", "frostt", *back, "--quiet", input=packed.raw)
        equal(plain.out if packed.code == plain.code == 0 else f"{packed}; {plain}", given,
              f"{d['name']} through pipes")
        on_disk = next((WORK / "trip").glob(f"{d['name']}-3{d['extensions'][0]}")).read_bytes()
        equal(packed.raw, on_disk, f"{d['name']}: the same bytes through a pipe and in a file")
    r = run("convert", "-", "-", input=given)
    equal((r.code, r.out), (0, given), "standard output carries the tensor and nothing else")
    check(r.err and all(l for l in r.lines), "the line for people goes to standard error then", r)
    r = run("convert", "-", "-", input=gzip.compress(given.encode()))
    equal(r.out, given, "compressed standard input")
    r = run("convert", "trip/x3.tns", "-", "--json", "-")
    check(r.code == 2 and not r.out, "tensor and JSON cannot share standard output", r)
    convert("trip/x3.tns", "/dev/stdout", "--quiet", "--to", "frostt")


def bases_and_dims():
    folder("dims")
    write("dims/x.tns", GOOD)
    convert("dims/x.tns", "dims/zero.tns", "--output-base", "0")
    equal(text("dims/zero.tns"), "0 0 0 1.5\n1 2 3 2\n2 1 0 -0.001\n", "--output-base 0")
    equal(run("convert", "dims/zero.tns", "-", "--quiet").out, GOOD, "and back")
    for d in WRITABLE:
        if not d["text"] or d["name"] in ("csv", "matrix-market"):
            continue
        for base in "01":
            r = run("convert", "dims/x.tns", "-", "--to", d["name"], "--output-base", base, "--quiet")
            again = run("convert", "-", "-", "--index-base", base, "--quiet", input=r.raw)
            equal(again.out, GOOD, f"{d['name']} with base {base}")
            equal(run("convert", "-", "-", "--quiet", input=r.raw).out, GOOD,
                  f"{d['name']} with base {base}, recognised")
    write("dims/matrix.tns", "1 1 1\n2 2 1\n")
    for d in WRITABLE:
        matrix = d["name"] == "matrix-market"
        source, dims = ("dims/matrix.tns", "7x6") if matrix else ("dims/x.tns", "5x6x7")
        if d["name"] == "csv":
            continue
        file = f"dims/{d['name']}{d['extensions'][0]}"
        convert(source, file, "--to", d["name"], "--dims", dims)
        kept = [int(n) for n in dims.split("x")]
        found = info(file)
        equal(found["dims"] if isinstance(found, dict) else found, kept if d["name"] in HOLDS_DIMS else [3, 3, 4],
              f"{d['name']} keeps the dims it is able to hold")
    r = run("convert", "dims/x.tns", "dims/no.tns", "--dims", "2x3x4")
    refused(r, "--dims too small", "dims/x.tns", 3)
    for name in ("x.tns", "order-dims.tns", "ptn.ptn", "npz.npz", "splatt-binary.bin", "genten-binary.sptn",
                 "alto-binary.alto"):
        refused(run("info", f"dims/{name}", "--dims", "2x9x9"), f"--dims too small for {name}", f"dims/{name}")
        refused(run("info", f"dims/{name}", "--dims", "9x9"), f"--dims of another order for {name}", f"dims/{name}")
        equal(info(f"dims/{name}", "--dims", "8x9x10")["dims"], [8, 9, 10], f"--dims for {name}")
    for bad in ("3x", "x", "3x0x4", "3xax4", "-3x3x4", "", "99999999999999999999x1x1"):
        r = run("convert", "dims/x.tns", "dims/no.tns", f"--dims={bad}")
        check(r.code == 2 and r.err, f"--dims {bad!r} is a mistake of usage", r)
    for base in ("2", "-1", "x"):
        equal(run("info", "dims/x.tns", "--index-base", base).code, 2, f"--index-base {base}")
    # 64-bit indices
    wide = "1 1 1 1\n5000000000 2 2 2\n3 18446744073709551614 1 3\n"
    write("dims/wide.tns", wide)
    for d in WRITABLE:
        if d["name"] in ("csv", "matrix-market"):
            continue
        r = run("convert", "dims/wide.tns", "-", "--to", d["name"], "--quiet")
        if d["name"] in ("npz",):  # NumPy's integers end before; a sentence is right
            check(r.code in (1, 2) and len(r.lines) == 1 and not r.out, "npz refuses dims beyond 2^63-1", r)
            continue
        equal(run("convert", "-", "-", "--from", d["name"], "--quiet", input=r.raw).out, wide,
              f"64-bit indices through {d['name']}")


def operations():
    folder("ops")
    write("ops/x.tns", "3 1 1\n1 2 2\n1 1 3\n1 2 4\n2 1 0\n")
    for args, expected in {("--sort",): "1 1 3\n1 2 2\n1 2 4\n2 1 0\n3 1 1\n",
                           ("--merge",): "1 1 3\n1 2 6\n2 1 0\n3 1 1\n",
                           ("--transform", "binary"): "3 1 1\n1 2 1\n1 1 1\n1 2 1\n2 1 0\n",
                           ("--merge", "--transform", "binary"): "1 1 1\n1 2 1\n2 1 0\n3 1 1\n",
                           (): "3 1 1\n1 2 2\n1 1 3\n1 2 4\n2 1 0\n"}.items():
        equal(run("convert", "ops/x.tns", "-", "--quiet", *args).out, expected, f"convert {' '.join(args)}")
    r = run("convert", "ops/x.tns", "-", "--quiet", "--transform", "log1p")
    found, expected = [float(line.split()[2]) for line in r.out.splitlines()], [math.log1p(v) for v in (1, 2, 3, 4, 0)]
    check(all(abs(a - b) <= 1e-15 for a, b in zip(found, expected, strict=True)), "--transform log1p", r)
    write("ops/negative.tns", "1 1 1\n2 2 -3\n")  # negative values: sign(v) log(1 + |v|)
    r = run("convert", "ops/negative.tns", "-", "--quiet", "--transform", "log1p")
    check(abs(float(r.out.split()[-1]) + math.log1p(3)) <= 1e-15, "--transform log1p of a negative value", r)
    equal(run("convert", "ops/x.tns", "-", "--transform", "cube").code, 2, "unknown transform")
    for threads in ("1", "2", "7"):
        dice = random.Random(1)
        rows = [(dice.randint(1, 50), dice.randint(1, 20), dice.randint(1, 9)) for _ in range(40_000)]
        write("ops/many.tns", "".join("%d %d 1 %d\n" % row for row in rows))
        merged = {}
        for i, j, v in rows:
            merged[i, j] = merged.get((i, j), 0) + v
        expected = "".join(f"{i} {j} 1 {v}\n" for (i, j), v in sorted(merged.items()))
        equal(run("convert", "ops/many.tns", "-", "--quiet", "--merge", "--threads", threads).out, expected,
              f"--merge, {threads} threads")
    convert("ops/x.tns", "ops/f32.ptn", "--precision", "f32")
    write("ops/third.tns", "1 1 0.3333333333333333\n")
    equal(run("convert", "ops/third.tns", "-", "--quiet", "--precision", "f32").out, "1 1 0.33333334\n",
          "--precision f32")
    # over itself
    for name in ("self.tns", "self.ptn", "self.npz"):
        convert("ops/x.tns", f"ops/{name}")
        convert(f"ops/{name}", f"ops/{name}", "--sort")
        equal(run("convert", f"ops/{name}", "-", "--quiet").out, "1 1 3\n1 2 2\n1 2 4\n2 1 0\n3 1 1\n",
              f"{name} over itself")


NAMES = {"user": ["ann", "bob", "Zoë, the 3rd"], "item": ["tea", "", 'a "quoted" thing'],
         "day": ["mon", "tue", "wed", "thu"]}
MAPS = {f"mode-{m + 1}-{name}.map": "".join(f"{l}\n" for l in labels) for m, (name, labels) in enumerate(NAMES.items())}


def label_counts(file, *args):
    found = info(file, *args)
    return [(m["name"], m["labels"]) for m in found["modes"]] if isinstance(found, dict) else found


def labels():
    here, all_three = folder("from"), [("user", 3), ("item", 3), ("day", 4)]
    write("from/x.tns.gz", gzip.compress(GOOD.encode()))
    for name, content in MAPS.items():
        write(f"from/{name}.gz" if "item" in name else f"from/{name}",
              gzip.compress(content.encode()) if "item" in name else content)
    equal(label_counts("from/x.tns.gz"), all_three, "labels are found beside the tensor")
    equal([(m["name"], m["labels"]) for m in info("x.tns.gz", cwd=here)["modes"]], all_three,
          "also in the current folder")
    folder("through")
    convert("from/x.tns.gz", "through/x.ptn")
    equal(listing(WORK / "through"), ["x.ptn"], ".ptn holds the labels itself")
    equal(label_counts("through/x.ptn"), all_three, "labels in .ptn")
    for ending in (".tns", ".npz", ".bin", ".sptn", ".tns.zst"):
        to = folder("to")
        r = run("convert", "through/x.ptn", f"to/y{ending}", "--json", "-")
        equal(listing(to), sorted([*(f"y.{m}" for m in MAPS), f"y{ending}"]), f"label files appear beside {ending}")
        equal(sorted(r.json["files"]), sorted(f"to/{f}" for f in listing(to)), f"and are named in the JSON ({ending})")
        for name, content in MAPS.items():
            equal(text(f"to/y.{name}"), content, f"{name} beside {ending}")
        equal(label_counts(f"to/y{ending}"), all_three, f"and are found again ({ending})")

    folder("to")
    write("to/mode-1-user.map", "someone\nelse\nentirely\n")
    write("to/mode-2-item.map", MAPS["mode-2-item.map"])
    convert("through/x.ptn", "to/y.tns")
    equal(text("to/mode-1-user.map"), "someone\nelse\nentirely\n", "the label files of others are left alone")
    equal(listing(WORK / "to"), sorted(["mode-1-user.map", "mode-2-item.map", *(f"y.{m}" for m in MAPS), "y.tns"]),
          "label files are named after the tensor")
    convert("to/y.tns", "to/y.ptn")
    equal(run("convert", "to/y.ptn", "-", "--to", "csv", "--quiet").out.splitlines()[1].split(",")[0], "ann",
          "the tensor's own labels win")

    to = folder("to")
    os.mkdir(to / "y.mode-1-user.map")
    r = run("convert", "through/x.ptn", "to/y.tns")
    check(r.code == 1 and not os.path.exists(to / "y.tns"), "labels that cannot be written: no tensor either",
          f"{r} {listing(to)}")

    folder("given")
    write("given/x.tns", GOOD)
    for name, content in MAPS.items():
        write(f"given/other-{name}", content)
    files = [f"given/other-{name}" for name in MAPS]
    equal([n for _, n in label_counts("given/x.tns", "--labels", ",".join(files))], [3, 3, 4], "--labels a,b,c")
    equal([n for _, n in label_counts("given/x.tns", "--labels", *files)], [3, 3, 4], "--labels a b c")
    refused(run("info", "given/x.tns", "--labels", f"{files[0]},{files[1]},{files[1]}"), "--labels with too few labels",
            files[1], says="4")
    refused(run("info", "given/x.tns", "--labels", "given/missing.map"), "--labels of no file", "given/missing.map")
    equal(run("info", "given/x.tns", "--labels", ",".join(files + files[:1])).code, 2, "more label files than modes")
    write("given/mode-3-day.map", "mon\n")
    r = run("info", "given/x.tns", "--json", "-")
    check(r.code == 0 and any("mode-3-day.map" in note for note in r.json["notes"])
          and r.json["modes"][2]["labels"] == 0,
          "a found file with too few labels is not used, and that is said", r)
    write("given/mode-3-day.map", "".join(f"{i}\n" for i in range(9)))
    r = run("info", "given/x.tns", "--json", "-")
    check(r.code == 0 and any("mode-3-day.map" in note for note in r.json["notes"])
          and r.json["modes"][2]["labels"] == 4,
          "surplus labels are left out, and that is said", r)
    write("given/mode-3-day.map", "a\r\nb\r\nc\r\nd")
    equal(run("convert", "given/x.tns", "-", "--to", "csv", "--quiet").out,
          "mode 1,mode 2,day,value\n1,1,a,1.5\n2,3,d,2\n3,2,a,-0.001\n",
          "Windows line ends and no newline in a label file")


def csv_rows(data, *args, name="x.csv"):
    """A table as tensor text and its label files."""
    here = folder("csv")
    write(f"csv/{name}", data)
    r = run("convert", name, "x.tns", "--quiet", *args, cwd=here)
    if r.code != 0:
        return str(r)
    return text("csv/x.tns"), {p.name.removeprefix("x."): p.read_text() for p in sorted(here.glob("*.map"))}


def tables():
    log = "user,item,day,stars\nann,tea,mon,2\nbob,tea,tue,3\nann,tea,mon,0.5\n"
    maps = {"mode-1-user.map": "ann\nbob\n", "mode-2-item.map": "tea\n", "mode-3-day.map": "mon\ntue\n"}
    counted, valued = ("1 1 1 2\n2 1 2 1\n", maps), ("1 1 1 2.5\n2 1 2 3\n", maps)
    equal(csv_rows(log, "--columns", "user,item,day"), counted, "CSV without --value counts rows")
    equal(csv_rows(log, "--columns", "user,item,day", "--value", "stars"), valued, "CSV with --value")
    equal(csv_rows(log, "--columns", "1,2,3", "--value", "4"), valued, "columns by number")
    equal(csv_rows(log, "--columns", "day,user"),
          ("1 1 2\n2 2 1\n", {"mode-1-day.map": "mon\ntue\n", "mode-2-user.map": "ann\nbob\n"}),
          "columns in another order")
    for what, data in {"semicolons": log.replace(",", ";"), "tabs": log.replace(",", "\t"),
                       "CRLF": log.replace("\n", "\r\n"),
                       "no newline": log.rstrip("\n"), "byte order mark": "\ufeff" + log,
                       "blank lines": log.replace("\n", "\n\n"),
                       "blanks": log.replace(",", " , "),
                       "quotes": '"' + log.replace(",", '","').rstrip("\n").replace("\n", '"\n"') + '"\n'}.items():
        equal(csv_rows(data, "--columns", "user,item,day", "--value", "stars"), valued, f"CSV with {what}")
    equal(csv_rows(gzip.compress(log.encode()), "--columns", "user,item,day", name="x.csv.gz"), counted,
          "compressed CSV")
    equal(csv_rows(log, "--columns", "user,item,day", name="x.log"), counted, "--columns make any file a table")
    equal(csv_rows(log.split("\n", 1)[1], "--columns", "1,2,3", "--value", "4"),
          ("1 1 1 2.5\n2 1 2 3\n", {"mode-1.map": "ann\nbob\n", "mode-2.map": "tea\n", "mode-3.map": "mon\ntue\n"}),
          "CSV without a header, by number")
    equal(csv_rows('a,b\n"x, y",1\n"say ""hi""",1\n"two\nlines",1\n', "--columns", "a")[1],
          {"mode-1-a.map": 'say "hi"\ntwo lines\nx, y\n'}, "quoted commas, quotes and line ends")
    equal(csv_rows("n,v\n10,1\n9,1\n-3,1\n1e1,1\n2.5,1\n", "--columns", "n")[1],
          {"mode-1-n.map": "-3\n2.5\n9\n10\n1e1\n"}, "numeric labels are sorted as numbers")
    equal(csv_rows("n,v\n10,1\n9,1\nx,1\n", "--columns", "n")[1], {"mode-1-n.map": "10\n9\nx\n"},
          "other labels as text")
    equal(csv_rows("a/b,c\nx,y\n", "--columns", "a/b,c")[1], {"mode-1-a_b.map": "x\n", "mode-2-c.map": "y\n"},
          "a slash in a column's name")

    here = folder("csv")
    for what, data, args, line in (("bad value", "u,v\na,1\nb,two\n", ["--columns", "u", "--value", "v"], 3),
                                   ("empty value", "u,v\na,1\nb,\n", ["--columns", "u", "--value", "v"], 3),
                                   ("infinite value", "u,v\na,1\nb,inf\n", ["--columns", "u", "--value", "v"], 3),
                                   ("too large value", "u,v\na,1\nb,1e400\n", ["--columns", "u", "--value", "v"], 3),
                                   ("value of two lines", 'u,v\na,1\nb,"two\nlines"\n',
                                    ["--columns", "u", "--value", "v"], 3),
                                   ("value with an escape", "u,v\na,\033[31m\n", ["--columns", "u", "--value", "v"], 2),
                                   ("line after a field of two lines", 'u,v\n"a\nb",1\nc,x\n',
                                    ["--columns", "u", "--value", "v"], 4),
                                   ("short row", "u,v\na,1\nb\n", ["--columns", "u"], 3),
                                   ("long row", "u,v\na,1,2\n", ["--columns", "u"], 2),
                                   ("open quote", 'u,v\na,1\n"b,2\nc,3\n', ["--columns", "u"], 3),
                                   ("unknown column", "u,v\na,1\n", ["--columns", "w"], 1),
                                   ("column 3 of 2", "u,v\na,1\n", ["--columns", "3"], 1),
                                   ("column 0", "u,v\na,1\n", ["--columns", "0"], 1),
                                   ("unknown value column", "u,v\na,1\n", ["--columns", "u", "--value", "w"], 1),
                                   ("no --columns", "u,v\na,1\n", [], 1),
                                   ("no rows", "u,v\n", ["--columns", "u"], None),
                                   ("names of two lines", '"u\nw",v\na,1\n', ["--columns", "z"], 1),
                                   ("empty", "", ["--columns", "u"], None),
                                   ("f32", "u,v\na,1e39\n", ["--columns", "u", "--value", "v", "--precision", "f32"],
                                    2)):
        write("csv/bad.csv", data)
        refused(run("convert", "bad.csv", "no.tns", *args, cwd=here), f"CSV with {what}", "bad.csv", line)
    equal(listing(here), ["bad.csv"], "nothing is left of refused tables")
    # and back: a table with labels from a tensor with labels
    folder("csv")
    write("csv/log.csv", log)
    convert("csv/log.csv", "csv/log.ptn", "--columns", "user,item,day", "--value", "stars")
    convert("csv/log.ptn", "csv/again.csv")
    equal(text("csv/again.csv"), "user,item,day,value\nann,tea,mon,2.5\nbob,tea,tue,3\n", "a table written")
    odd = 'a,b,value\n" x",1,1\n"y ",2,1\n"",3,1\n"p,q",4,1\n"""",5,1\n'
    write("csv/odd.csv", odd)
    convert("csv/odd.csv", "csv/odd.ptn", "--columns", "a,b", "--value", "value")
    convert("csv/odd.ptn", "csv/odd2.csv")
    convert("csv/odd2.csv", "csv/odd2.ptn", "--columns", "a,b", "--value", "value")
    equal((WORK / "csv/odd.ptn").read_bytes(), (WORK / "csv/odd2.ptn").read_bytes(), "odd labels survive a table")
    folder("csv")
    write("csv/x.tns", "1 1\n2 5\n")
    write("csv/mode-1-a.map", "x\n x\n")
    convert("csv/x.tns", "csv/x.csv")
    equal(run("convert", "csv/x.csv", "-", "--columns", "a", "--value", "value", "--quiet").out, "1 5\n2 1\n",
          "labels that differ by a blank stay apart")
    found = info("csv/x.csv", "--columns", "a", "--dims", "5")
    check("exit 1" in found or "exit 2" in found if isinstance(found, str) else found["dims"] == [5],
          "--dims of a table are obeyed or refused", found)


NUMPY = r"""
import sys, numpy as np
folder = sys.argv[1]
z = np.load(folder + "/ours.npz")
rows = np.loadtxt(folder + "/ours.txt", ndmin=2)
assert set(z.files) >= {"coords", "data", "shape"}, z.files
assert z["coords"].shape == (3, len(rows)) and z["coords"].dtype.kind in "iu", z["coords"].dtype
assert (z["coords"].T + 1 == rows[:, :3]).all() and (z["data"] == rows[:, 3]).all() and z["data"].dtype == np.float64
assert z["shape"].tolist() == [5, 6, 7] and z["fill_value"] == 0
assert np.load(folder + "/ours32.npz")["data"].dtype == np.float32
coords, data = rows[:, :3].astype(int).T - 1, rows[:, 3]
for save in (np.savez, np.savez_compressed):
    for index in ("int64", "int32", "uint8", "uint16", ">i4"):
        for value in ("f8", "f4", ">f8", "i4", "bool"):
            big = "big-" * (index + value).count(">")
            np_name = f"{save.__name__}-{index.strip('>')}-{value.strip('>')}-{big}.npz"
            save(f"{folder}/theirs-{np_name}", coords=coords.astype(index), shape=np.array([5, 6, 7]),
                 data=np.abs(np.round(data)).astype(value), fill_value=np.zeros((), "f8"))
np.savez(folder + "/fortran.npz", coords=np.asfortranarray(coords), data=data, shape=(5, 6, 7), fill_value=0)
np.savez(folder + "/fill.npz", coords=coords, data=data, shape=(5, 6, 7), fill_value=1.0)
np.savez(folder + "/complex.npz", coords=coords, data=data.astype(complex), shape=(5, 6, 7), fill_value=0)
np.savez(folder + "/float-coords.npz", coords=coords.astype(float), data=data, shape=(5, 6, 7), fill_value=0)
np.savez(folder + "/dense.npz", np.zeros((3, 3)))
"""


def numpy_archives():
    pythons = [p for p in (sys.executable, "/usr/bin/python3") if os.path.exists(p)]
    python = next((p for p in pythons
                   if subprocess.run([p, "-c", "import numpy"], capture_output=True).returncode == 0), None)
    if python is None:
        return skip("NumPy archives", "no Python with NumPy (python3-numpy)")
    folder("npz")
    write("npz/ours.txt", GOOD)
    convert("npz/ours.txt", "npz/ours.npz", "--dims", "5x6x7")
    convert("npz/ours.txt", "npz/ours32.npz", "--precision", "f32")
    r = subprocess.run([python, "-c", NUMPY, WORK / "npz"], capture_output=True, text=True)
    if not check(r.returncode == 0, "NumPy loads our archive and saves its own", r.stderr):
        return
    theirs = sorted((WORK / "npz").glob("theirs-*.npz"))
    equal(len(theirs), 50, "archives that NumPy saved")
    for file in theirs:
        ones = "-bool-" in file.name
        expected = f"1 1 1 {1 if ones else 2}\n2 3 4 {1 if ones else 2}\n3 2 1 0\n"
        equal(run("convert", f"npz/{file.name}", "-", "--quiet").out, expected, file.name)
    equal(run("convert", "npz/fortran.npz", "-", "--quiet").out, GOOD, "coords in Fortran order")
    equal(info("npz/fortran.npz")["dims"], [5, 6, 7], "dims of an archive")
    for name in ("fill", "complex", "float-coords", "dense"):
        refused(run("info", f"npz/{name}.npz"), f"{name}.npz", f"{name}.npz")


def compact_files():
    folder("ptn")
    write("ptn/x.tns", "".join(f"{i % 200 + 1} {i * 7 % 60_000 + 1} {i * 31 % 100_000 + 1} {i}.5\n"
                               for i in range(20_000)))
    convert("ptn/x.tns", "ptn/plain.ptn")
    convert("ptn/x.tns", "ptn/compact.ptn", "--compact")
    check(os.path.getsize(WORK / "ptn/compact.ptn") < 0.8 * os.path.getsize(WORK / "ptn/plain.ptn"),
          "--compact is smaller")
    for name in ("plain", "compact"):
        convert(f"ptn/{name}.ptn", f"ptn/{name}.tns")
        equal(text(f"ptn/{name}.tns"), text("ptn/x.tns"), f"{name}.ptn back to text")
    convert("ptn/compact.ptn", "ptn/again.ptn")
    equal((WORK / "ptn/again.ptn").read_bytes(), (WORK / "ptn/plain.ptn").read_bytes(),
          "the same bytes by way of a compact file")
    for threads in ("1", "2", "7"):
        for name in ("t.tns", "t.tns.gz", "t.tns.zst", "t.ptn", "t.npz"):
            convert("ptn/x.tns", f"ptn/{threads}-{name}", "--threads", threads)
            equal((WORK / f"ptn/{threads}-{name}").read_bytes(), (WORK / f"ptn/1-{name}").read_bytes(),
                  f"{name}: the same bytes with {threads} threads")


round_trips()
pipes()
bases_and_dims()
operations()
labels()
tables()
numpy_archives()
compact_files()
finish()
