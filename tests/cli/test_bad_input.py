#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Files that break other programs: each is read rightly, or refused in one sentence with file and line, at once and in
little memory, by every verb, and nothing is left behind."""

import gzip
import os
import shutil
import signal
import struct
import threading
import time

from harness import (GOOD, MB, POLYAD, ROWS, SANITIZED, WORK, Call, alto, check, equal, finish, genten, is_sentence, listing, npy,
                     npz, refused, run, skip, splatt, write, zip_of)


def refuse(name, data, line=None, says="", args=(), verbs=("info", "check", "convert")):
    """The file is refused by every verb (binary files: `check` reads them as `info` does)."""
    if ".tns" not in name and verbs[1:2] == ("check",):
        verbs = ("info", "convert")
    if SANITIZED:  # convert reads as info does
        verbs = [verb for verb in verbs if verb != "convert"]
    if data is not None:
        write(name, data)
    before = listing()
    for verb in verbs:
        r = run(verb, name, *(["refused.ptn"] if verb == "convert" else []), *args)
        # check lists the problems on standard output, and says on standard error that there were some
        if verb == "check":
            refused(r, f"check {name}", name, stdout=True)
        else:
            refused(r, f"{verb} {name}", name, line, says)
    equal(listing(), before, f"{name} leaves nothing behind")


def accept(name, data, args=(), rss=150 * MB, **want):
    """The file is read, and `info --json` says this about it."""
    write(name, data)
    r = run("info", name, "--json", "-", *args)
    if not check(r.code == 0 and r.rss < rss, name, f"{r}, {r.rss // MB} MB"):
        return
    found = {key: r.json.get(key) for key in want}
    equal(found, want, name)


def convert_text(name, *args):
    """The tensor as FROSTT text."""
    r = run("convert", name, "-", "--quiet", *args)
    return r.out if r.code == 0 else str(r)


def same_tensor(name, data, expected=GOOD, args=()):
    """The file is read, and holds exactly this tensor."""
    write(name, data)
    equal(convert_text(name, *args), expected, name)


TEN = 10 ** 18


def text_that_is_read():
    three = {"order": 3, "dims": [3, 3, 4], "nnz": 3}
    accept("plain.tns", GOOD, **three, min=-0.001, max=2, sum=1.5 + 2 - 0.001, duplicates=0, zeros=0, dialect="frostt")
    same_tensor("no-newline.tns", GOOD.rstrip("\n"))
    same_tensor("crlf.tns", GOOD.replace("\n", "\r\n"))
    same_tensor("crlf-no-newline.tns", GOOD.replace("\n", "\r\n").rstrip("\n"))
    same_tensor("tabs.tns", GOOD.replace(" ", "\t"))
    same_tensor("mixed-blanks.tns", "\t1   1 \t 1 1.5 \n  2 3 4 2\t\n3 2\t1 -1e-3\r\n")
    same_tensor("commas.tns", GOOD.replace(" ", ","))
    same_tensor("commas-blanks.tns", GOOD.replace(" ", ", "))
    same_tensor("comments.tns", "# one\n\n   \n#two\n" + GOOD + "  # three\n \t \n")
    same_tensor("comment-at-end-of-line.tns", GOOD.replace("2\n", "2 # two\n").replace("1.5\n", "1.5#x\n"))
    same_tensor("long-comment.tns", "# " + "x" * 500_000 + "\n" + GOOD + "#" + "y" * 900_000 + "\n")
    for head in ("", "3\n3 3 4\n", "sptensor\n3\n3 3 4\n3\n"):
        same_tensor(f"many-comments-{len(head)}.tns", "# a licence, line by line\n" * 5000 + head + GOOD)
    same_tensor("plus.tns", "+1 1 1 +1.5E+02\n2 3 4 .5\n3 2 1 5.\n", "1 1 1 150\n2 3 4 0.5\n3 2 1 5\n")
    same_tensor("leading-zeros.tns", "001 1 1 01.50\n2 03 4 2e0\n3 2 1 -1e-03\n")
    accept("zero-based.tns", "0 0 0 1\n1 2 3 2\n", order=3, dims=[2, 3, 4], nnz=2, index_base=0)
    accept("zero-in-the-last-line.tns", "1 2 3 1\n" * 50_000 + "1 1 0 1\n", dims=[2, 3, 4], index_base=0)
    accept("forced-base.tns", "1 1 1 1\n2 2 2 1\n", args=["--index-base", "0"], dims=[3, 3, 3], index_base=0)
    accept("forced-dims.tns", GOOD, args=["--dims", "5x6x7"], dims=[5, 6, 7], nnz=3)
    accept("one.tns", "5 6 7 2\n", order=3, dims=[5, 6, 7], nnz=1)
    accept("one-one-one.tns", "1 1 1 1\n", order=3, dims=[1, 1, 1], nnz=1, density=1.0)
    accept("mode-of-length-1.tns", "1 1 3 2\n2 1 1 2\n", dims=[2, 1, 3], nnz=2)
    accept("duplicates.tns", "1 1 1 1\n1 1 1 2\n2 2 2 1\n1 1 1 3\n", nnz=4, duplicates=2)
    accept("all-zeros.tns", "1 1 1 0\n2 2 2 0.0\n", nnz=2, zeros=2, norm=0.0, min=0, max=0)
    accept("order-1.tns", "4 3\n9 1\n", order=1, dims=[9], nnz=2)
    accept("order-2.tns", "1 2 3\n2 1 4\n", order=2, dims=[2, 2], nnz=2)
    accept("order-32.tns", "2 " * 32 + "1\n", order=32, dims=[2] * 32, nnz=1)
    accept("small-values.tns", "1 1 1 1e-300\n2 2 2 3e-310\n3 3 3 0e-400\n", nnz=3)
    refuse("no-value.tns", "1,2,3,4\n1,2,3,\n", line=2, says="found nothing as the value")
    refuse("too-small.tns", "1 1 1 1\n2 2 2 1e-400\n", line=2)
    accept("huge-index.tns", "1 1 1 1\n5000000000 2 2 2\n", dims=[5_000_000_000, 2, 2], nnz=2, rss=60 * MB)
    accept("huge-index-zero-based.tns", "0 0 0 1\n5000000000 2 2 2\n", dims=[5_000_000_001, 3, 3], rss=60 * MB)
    accept("largest-32-bit.tns", "4294967295 1 1\n4294967296 1 1\n4294967294 2 1\n", dims=[1 << 32, 2], nnz=3)
    # Some blocks of lines need 64-bit indices and others do not: the indices must not depend on who read them.
    rows = [(i % 7, i % 5, i % 3) for i in range(60_000)]
    lines = "".join("%d %d %d 1\n" % row for row in rows)
    shifted = "".join("%d %d %d 1\n" % (i + 1, j + 1, k + 1) for i, j, k in rows)
    for threads in ("1", "2", "7"):
        same_tensor(f"huge-index-first-{threads}.tns", "5000000000 1 1 1\n" + lines,
                    "5000000001 2 2 1\n" + shifted, ["--threads", threads])
        same_tensor(f"huge-index-last-{threads}.tns", lines + "5000000000 1 1 1\n",
                    shifted + "5000000001 2 2 1\n", ["--threads", threads])


def text_that_is_refused():
    refuse("missing.tns", None, says="no such file")
    os.mkdir(WORK / "folder.tns")
    refuse("folder.tns", None, says="directory")
    refuse("empty.tns", "", says="empty")
    refuse("only-comments.tns", "# one\n# two\n", says="only comments")
    refuse("only-blanks.tns", "\n  \n\t\n")
    for name, bad in {"words": "this is not a number", "words-of-the-right-count": "one two three four",
                      "short": "1 2", "one-number": "7", "long": "1 2 3 4 5", "much-longer": "1 " * 500,
                      "negative": "-4 1 1 1", "minus-zero": "-0 1 1 1", "fraction": "4.7 1 1 1",
                      "exponent": "1e2 1 1 1",
                      "suffix": "4x 1 1 1", "hex-index": "0x10 1 1 1", "hex-value": "1 1 1 0x10",
                      "word-value": "1 1 1 abc",
                      "suffix-value": "1 1 1 1.5abc", "two-points": "1 1 1 1.5.2", "comma-value": "1 1 1 1,5",
                      "nan": "1 2 1 nan", "minus-nan": "1 2 1 -NaN", "inf": "1 2 1 inf", "minus-inf": "1 2 1 -Infinity",
                      "too-large-value": "1 1 1 1e400", "largest-64-bit": "18446744073709551615 1 1 1",
                      "too-large-index": "99999999999999999999999 1 1 1", "nul": "1 1\0 1 1",
                      "escape": "1 \033[31m 1 1",
                      "not-utf-8": b"1 \xff\xfe 1 1", "header-word": "sptensor", "value-only-sign": "1 1 1 -",
                      "value-only-point": "1 1 1 .", "value-only-exponent": "1 1 1 e5"}.items():
        bad = bad if isinstance(bad, bytes) else bad.encode()
        refuse(f"{name}.tns", GOOD.encode() + bad + b"\n" + GOOD.encode(), line=4, verbs=("info", "check"))
    refuse("without-newline.tns", GOOD + "1 2", line=4)
    refuse("first-line-is-wrong.tns", "1 x 1 1\n" + GOOD, line=1)
    refuse("after-comments.tns", "# a\n\n" + GOOD + "# b\n1 1 x 1\n", line=7)
    refuse("after-many-lines.tns", "1 1 1 1\n" * 300_000 + "1 1 1\n", line=300_001)
    refuse("first-of-two.tns", "1 1 1 1\n" * 70_000 + "1 1 1\n" + "1 1 1 1\n" * 70_000 + "1 1\n", line=70_001)
    refuse("f32.tns", GOOD + "1 1 1 1e39\n", line=4, args=["--precision", "f32"], says="f32")
    accept("f64.tns", GOOD + "1 1 1 1e39\n", nnz=4, max=1e39)
    refuse("33-modes.tns", "1 " * 33 + "1\n", line=1, says="32")
    refuse("5000-modes.tns", "1 " * 5000 + "1\n", line=1)
    refuse("one-column.tns", "1\n", says="")
    refuse("zero-though-told-one.tns", GOOD + "0 1 1 1\n", line=4, args=["--index-base", "1"])
    refuse("beyond-given-dims.tns", GOOD, line=2, args=["--dims", "3x2x4"])
    refuse("given-dims-of-another-order.tns", GOOD, args=["--dims", "3x3"])
    refuse("dense.tns", "tensor\n2\n2 2\n1\n2\n3\n4\n", line=1, says="dense")
    refuse("model.tns", "ktensor\n3\n2 2 2\n1\n1.0\n", line=1, says="model")
    refuse("utf-16.tns", GOOD.encode("utf-16"), line=1)
    refuse("utf-16be.tns", GOOD.encode("utf-16-be"), line=1)
    refuse("a-program.tns", open(POLYAD, "rb").read()[:200_000])
    refuse("binary-as-text.tns", GOOD, args=["--dialect", "ptn"], verbs=("info", "check"))


def headers_that_lie():
    # name: (header, the line of the first nonzero)
    heads = {"order-dims": ("3\n5 6 7\n", 3), "extended-frostt": ("# extended FROSTT format\n3 NNZ\n5 6 7\n", 4),
             "tensor-toolbox": ("sptensor\n3 \n5 6 7 \nNNZ \n", 5),
             "genten-text": ("sptensor indices-start-at-one\n3\n5 6 7\nNNZ\n", 5)}
    for name, (template, first) in heads.items():
        head = template.replace("NNZ", "3")
        dims_line = head[:head.index("5 6 7")].count("\n") + 1
        accept(f"{name}.tns", head + GOOD, dialect=name, order=3, dims=[5, 6, 7], nnz=3)
        accept(f"{name}-crlf.tns", (head + GOOD).replace("\n", "\r\n"), dialect=name, dims=[5, 6, 7], nnz=3)
        refuse(f"{name}-beyond-dims.tns", head + "6 1 1 1\n1 1 1 1\n5 6 7 1\n", line=first)
        refuse(f"{name}-zero.tns", head + "5 6 7 1\n0 1 1 1\n1 1 1 1\n", line=first + 1)
        refuse(f"{name}-too-short-line.tns", head + "1 1 1 1\n1 1 1\n1 1 1 1\n", line=first + 1)
        refuse(f"{name}-one-dim-less.tns", head.replace("5 6 7", "5 6") + GOOD)
        refuse(f"{name}-one-dim-more.tns", head.replace("5 6 7", "5 6 7 8") + GOOD)
        refuse(f"{name}-dim-zero.tns", head.replace("5 6 7", "5 0 7") + GOOD, line=dims_line)
        refuse(f"{name}-dim-negative.tns", head.replace("5 6 7", "5 -6 7") + GOOD, line=dims_line)
        refuse(f"{name}-dim-huge.tns", head.replace("5 6 7", "5 99999999999999999999999 7") + GOOD, line=dims_line)
        refuse(f"{name}-order-0.tns", head.replace("3", "0", 1) + GOOD)
        refuse(f"{name}-only-header.tns", head.split("5 6 7")[0])
        if "NNZ" in template:
            refuse(f"{name}-nnz-too-large.tns", head + GOOD.split("2 3 4")[0], says="promised 3")
            refuse(f"{name}-nnz-too-small.tns", head + GOOD + "1 2 3 4.5\n", line=first + 3, says="promised")
            refuse(f"{name}-nnz-huge.tns", template.replace("NNZ", str(TEN)) + GOOD, says=str(TEN))
            refuse(f"{name}-nnz-word.tns", template.replace("NNZ", "many") + GOOD)
    refuse("order-33.tns", "33\n" + "2 " * 33 + "\n" + "1 " * 33 + "1\n", line=1)
    for what, data in {"order": "\033[31m\n5 6 7\n" + GOOD, "dims": "3\n5 \033[31m 7\n" + GOOD,
                       "first-line": "\033[31m\n" + GOOD,
                       "first-index": "\033[31m 1 1 1\n" + GOOD, "sptensor": "sptensor \033[31m\n3\n5 6 7\n3\n" + GOOD,
                       "nnz": "sptensor\n3\n5 6 7\n\033[31m\n" + GOOD,
                       "order-of-sptensor": "sptensor\n\033[31m\n5 6 7\n3\n" + GOOD,
                       "mtx": "%%MatrixMarket matrix \033[31m real general\n1 1 1\n1 1 1\n"}.items():
        refuse(f"escape-in-{what}.tns", data, verbs=("info",))
    refuse("lies-order.tns", "4\n5 6 7\n1 1 1 1\n", line=2)
    refuse("order-dims-says-2.tns", "2\n5 6\n" + GOOD, line=3)
    refuse("genten-base.tns", "sptensor indices-start-at-two\n3\n5 6 7\n3\n" + GOOD, line=1)
    refuse("neither-base.tns", "sptensor\n3\n5 6 7\n2\n5 6 7 1\n0 1 1 1\n", line=6)
    accept("genten-zero.tns", "sptensor indices-start-at-zero\n3\n5 6 7\n2\n0 0 0 1\n4 5 6 2\n", dims=[5, 6, 7], nnz=2,
           index_base=0)
    accept("genten-zero-by-data.tns", "sptensor\n3\n5 6 7\n2\n0 0 0 1\n4 5 6 2\n", dims=[5, 6, 7], nnz=2, index_base=0)
    accept("header-without-nonzeros.tns", "sptensor\n3\n5 6 7\n0\n", dims=[5, 6, 7], nnz=0)

    mtx = "%%MatrixMarket matrix coordinate real general\n% a comment\n3 4 2\n1 1 1.5\n3 4 2\n"
    accept("good.mtx", mtx, order=2, dims=[3, 4], nnz=2, dialect="matrix-market")
    accept("symmetric.mtx", mtx.replace("general", "symmetric").replace("3 4 2\n1", "4 4 2\n1").replace("3 4 2",
                                                                                                        "4 3 2"),
           order=2, dims=[4, 4], nnz=3)
    accept("pattern.mtx", "%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 2\n", nnz=1, sum=1.0)
    refuse("no-banner.mtx", "3 4 2\n1 1 1.5\n3 4 2\n", line=1)
    refuse("array.mtx", "%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n4\n", line=1)
    refuse("complex.mtx", mtx.replace("real", "complex"), line=1)
    refuse("beyond.mtx", mtx.replace("3 4 2\n1", "2 4 2\n1"), line=5)
    refuse("zero.mtx", mtx.replace("1 1 1.5", "0 1 1.5"), line=4)
    refuse("nnz-too-large.mtx", mtx.replace("3 4 2\n1", "3 4 3\n1"), says="promised 3")
    refuse("nnz-too-small.mtx", mtx.replace("3 4 2\n1", "3 4 1\n1"), line=5, says="promised")
    refuse("nnz-huge.mtx", mtx.replace("3 4 2\n1", f"3 4 {TEN}\n1"), says=str(TEN))
    refuse("three-indices.mtx", mtx + "1 1 1 1\n", line=6)
    refuse("two-sizes.mtx", mtx.replace("3 4 2\n1", "3 4\n1"), line=3)
    refuse("only-banner.mtx", mtx.split("3 4")[0])


def binaries():
    name_of = {"splatt": (splatt, "bin"), "genten": (genten, "sptn"), "alto": (alto, "alto"), "npz": (npz, "npz")}
    for name, (make, ending) in name_of.items():
        file = lambda what: f"{name}-{what}.{ending}"
        same_tensor(file("good"), make())
        refuse(file("nnz-huge"), make(nnz=TEN))
        refuse(file("nnz-largest"), make(nnz=(1 << 63) - 1))
        refuse(file("nnz-one-more"), make(nnz=4))
        refuse(file("nnz-one-less"), make(nnz=2))
        refuse(file("beyond-dims"), make(dims=(3, 3, 3)))
        refuse(file("dim-zero"), make(dims=(3, 0, 4)))
        refuse(file("nan"), make(rows=[*ROWS[:2], (0, 0, 1, float("nan"))]), says="")
        refuse(file("inf"), make(rows=[*ROWS[:2], (0, 0, 1, float("inf"))]), says="")
        refuse(file("too-large-for-f32"), make(rows=[*ROWS, (0, 0, 1, 1e39)]), args=["--precision", "f32"])
        if name != "npz":
            refuse(file("order-0"), make(order=0))
            refuse(file("order-33"), make(order=33))
            refuse(file("order-huge"), make(order=(1 << 32) - 1))
            refuse(file("trailing-bytes"), make() + b"\0" * 8)
    same_tensor("splatt-4-8.bin", splatt(index=4))
    refuse("splatt-magic.bin", splatt(magic=1))
    refuse("splatt-width.bin", splatt(index=5))
    refuse("splatt-value-width.bin", splatt(value=16))
    same_tensor("genten-widths.sptn", genten(widths=[16, 32, 64]))
    refuse("genten-magic.sptn", genten(magic=b"sptm"))
    refuse("genten-bits.sptn", genten(bits=24))
    refuse("genten-index-bits.sptn", genten(widths=[16, 24, 64]))
    refuse("genten-dims-beyond-width.sptn", genten(dims=(3, 3, 4), rows=[(0, 0, 65535, 1.0)], widths=[16, 16, 16]))
    same_tensor("npz-deflated.npz", npz(deflate=True))
    refuse("npz-nnz-huge-deflated.npz", npz(nnz=TEN, deflate=True))
    refuse("npz-checksum.npz", npz(crc_xor=1), says="checksum")
    refuse("npz-checksum-deflated.npz", npz(crc_xor=1, deflate=True), says="checksum")
    for entry in ("coords.npy", "data.npy", "shape.npy"):
        refuse(f"npz-without-{entry}.npz", npz(without=(entry,)), says=entry)
    same_tensor("npz-without-fill-value.npz", npz(without=("fill_value.npy",)))
    refuse("npz-shape-of-another-order.npz", npz(shape=(3, 3)))
    refuse("npz-negative-index.npz", npz(rows=[(0, -1, 0, 1.0)]))
    refuse("npz-negative-dim.npz", npz(shape=(3, -3, 4)))
    refuse("npz-of-nothing.npz", zip_of([]))
    refuse("npz-strings.npz", zip_of([("coords.npy", npy("<U4", (3, 1), b"\0" * 48)),
                                      ("data.npy", npy("<f8", (1,), b"\0" * 8)),
                                      ("shape.npy", npy("<i8", (3,), struct.pack("<3q", 1, 1, 1)))]))
    refuse("npz-pickle.npz", zip_of([("coords.npy", b"\x80\x04K\x01."), ("data.npy", b""), ("shape.npy", b"")]))
    refuse("npz-not-a-zip.npz", b"PK\3\4" + b"\0" * 100)
    for name in ("bin", "alto", "sptn", "npz", "ptn"):
        refuse(f"empty.{name}", "")
        refuse(f"words.{name}", "hello, world; this is no tensor at all\n")
        refuse(f"noise.{name}", bytes(range(256)) * 40)
        refuse(f"zeros.{name}", b"\0" * 4096)
        same_tensor(f"text.tns.{name}.tns", GOOD)


def truncated():
    """Every dialect with a known length, cut at many places: never read, never a crash."""
    (WORK / "cut").mkdir()
    for name in ("whole.tns.gz", "whole.tns.zst", "whole.ptn", "compact.ptn", "whole.ptn.zst", "whole.npz.gz"):
        run("convert", "plain.tns", f"cut/{name}", "--quiet", *(["--compact"] if "compact" in name else []))
    for name, data in {"splatt.bin": splatt(), "genten.sptn": genten(), "alto.alto": alto(), "npz.npz": npz(),
                       "deflated.npz": npz(deflate=True)}.items():
        write(f"cut/{name}", data)
    for name in sorted(os.listdir(WORK / "cut")):
        whole = (WORK / "cut" / name).read_bytes()
        equal(convert_text(f"cut/{name}"), GOOD, f"{name} before it is cut")
        step = max(1, len(whole) // 16)
        lengths = sorted({*range(1, len(whole), step), *range(len(whole) - 3, len(whole)), 0, 4, 5, 8, 20})
        bad = []
        for n in (n for n in lengths if n < len(whole)):
            r = run("info", write(f"cut-{n}-{name}", whole[:n]))
            why = is_sentence(r, f"cut-{n}-{name}") or (r.rss > 150 * MB and "memory") or (r.out and "output")
            if why:
                bad.append(f"{n} of {len(whole)} bytes: {why}")
            os.remove(WORK / f"cut-{n}-{name}")
        check(not bad, f"{name} cut at {len(lengths)} lengths", "\n  ".join(bad[:3]))


def damaged():
    """Single bytes changed in files that have checksums."""
    def flip(name, whole, at):
        damaged = bytearray(whole)
        damaged[at] ^= 0x10
        return is_sentence(run("info", write(f"flip-{at}-{name}", bytes(damaged))), f"flip-{at}-{name}")
    for name in ("whole.ptn", "compact.ptn"):
        whole = (WORK / "cut" / name).read_bytes()
        head = struct.unpack_from("<Q", whole, 16)[0]
        places = {*range(0, head, 23), head - 1, head, head + 100, 4095, 4096, 4097, 8191, len(whole) - 24,
                  len(whole) - 1}
        bad = [f"byte {at}: {why}" for at in sorted(places) if (why := flip(name, whole, at))]
        check(not bad, f"{name} with one byte changed, at {len(places)} places", "\n  ".join(bad[:3]))
        refuse(f"longer-{name}", whole + b"\0")
        refuse(f"appended-{name}", whole + whole)
        refuse(f"version-2-{name}", whole[:8] + b"\2" + whole[9:], says="version")
        refuse(f"nnz-huge-{name}", whole[:32] + struct.pack("<Q", TEN) + whole[40:])
    whole = gzip.compress((GOOD * 3).encode(), mtime=0)
    bad = [why for at in range(len(whole) - 8, len(whole)) if (why := flip("sum.tns.gz", whole, at))]
    check(not bad, "gzip with a wrong checksum or length", bad[:1])
    for file in WORK.glob("flip-*"):
        file.unlink()


def compressed():
    gz, plain = gzip.compress(GOOD.encode()), GOOD.encode()
    zst = (WORK / "cut" / "whole.tns.zst").read_bytes()
    twice = GOOD + GOOD
    same_tensor("good.tns.gz", gz)
    same_tensor("good.tns.zst", zst)
    same_tensor("gzip-by-another-name.tns", gz)
    same_tensor("zstd-by-another-name.tns", zst)
    same_tensor("two-members.tns.gz", gz + gz, twice)
    same_tensor("cut-between-members.tns.gz",
                gzip.compress(plain[:13]) + gzip.compress(b"") + gzip.compress(plain[13:]))
    same_tensor("padded-with-zeros.tns.gz", gz + b"\0" * 512)
    same_tensor("two-frames.tns.zst", zst + zst, twice)
    skippable = b"\x50\x2a\x4d\x18" + struct.pack("<I", 5) + b"hello"
    same_tensor("skippable-frame-at-the-end.tns.zst", zst + skippable)
    same_tensor("skippable-frame-first.tns.zst", skippable + zst)
    refuse("garbage-after.tns.gz", gz + b"garbage")
    refuse("text-after.tns.gz", gz + plain)
    refuse("garbage-after.tns.zst", zst + b"garbage")
    refuse("second-member-cut.tns.gz", gz + gz[:-3])
    refuse("second-frame-cut.tns.zst", zst + zst[:-3])
    refuse("not-gzip.tns.gz", GOOD, says="gzip")
    refuse("not-zstd.tns.zst", GOOD, says="zstd")
    refuse("empty.tns.gz", "")
    refuse("empty.tns.zst", "")
    refuse("empty-inside.tns.gz", gzip.compress(b""))
    refuse("comments-inside.tns.gz", gzip.compress(b"# nothing\n"))
    refuse("error-inside.tns.gz", gzip.compress(plain + b"1 1 x 1\n"), line=4)
    refuse("error-inside.tns.zst", zst + zst + gz, says="")
    refuse("twice-compressed.tns.gz", gzip.compress(gz))


def sparse_file(name, head, size):
    with open(WORK / name, "wb") as f:
        f.write(head)
        f.truncate(size)
    return name


def endless_lines():
    """A gigabyte without a line end, as a file with holes, through a pipe, and compressed."""
    giga = 1 << 30
    for name, head, line in (("zeros", b"", 1), ("after-a-line", GOOD.encode(), 4), ("after-digits", b"1 1 1 1", 1),
                             ("in-a-comment", GOOD.encode() + b"# ", 4), ("sptensor", b"sptensor\n3\n5 6 7\n3\n", 5),
                             ("order-dims", b"3\n5 6 7\n", 3)):
        refuse(sparse_file(f"giga-{name}.tns", head, giga), None, line=line)
        os.remove(WORK / f"giga-{name}.tns")
    for ending in ("bin", "alto", "sptn", "npz", "ptn", "mtx"):
        refuse(sparse_file(f"giga.{ending}", b"", giga), None)
        os.remove(WORK / f"giga.{ending}")
    refuse(sparse_file("giga.csv", b"a,b,v\nx,y,1\n", giga), None, args=["--columns", "a,b"], line=3)
    os.remove(WORK / "giga.csv")
    member = gzip.compress(b"1" * MB)
    refuse("giga.tns.gz", gzip.compress(GOOD.encode()) + member * 1024, line=4)
    refuse("giga-first.tns.gz", member * 1024, line=1)

    def pour(pipe, head):
        try:
            os.write(pipe, head)
            for _ in range(1024):
                os.write(pipe, b"1" * MB)
        except BrokenPipeError:
            pass
        finally:
            os.close(pipe)

    for head, line in ((b"1", 1), (GOOD.encode(), 4)):
        out, into = os.pipe()
        call = Call("info", "-", stdin=out)
        os.close(out)
        thread = threading.Thread(target=pour, args=(into, head))
        thread.start()
        r = call.finish()
        thread.join()
        refused(r, f"a gigabyte through a pipe after {len(head)} bytes", "standard input", line)

    # Labels are lines as well.
    os.mkdir(WORK / "labels")
    write("labels/x.tns", GOOD)
    sparse_file("labels/mode-1-name.map", b"a\nb\nc\n", giga)
    refused(run("info", "labels/x.tns"), "a gigabyte of label", "mode-1-name.map", 4)
    shutil.rmtree(WORK / "labels")


def wait_for(call, ready, seconds=10):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if ready():
                return True
        except OSError:
            return False
        if os.waitid(os.P_PID, call.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            return False
    return False


def shrinking():
    """Files that become shorter while they are read."""
    big = b"1 2 3 4.5\n" * 2_000_000
    noise = b"".join(b"%d %d 1\n" % (i * 7919 % 99991, i * 104729 % 99989) for i in range(300_000))

    def position(call, path):
        for fd in os.listdir(f"/proc/{call.pid}/fd"):
            if os.readlink(f"/proc/{call.pid}/fd/{fd}") == str(path):
                return int(open(f"/proc/{call.pid}/fdinfo/{fd}").read().split()[1])
        return 0

    for name, data in (("shrinks.tns", big), ("shrinks.tns.gz", gzip.compress(noise, 1))):
        path = WORK / name
        for _ in range(20):
            path.write_bytes(data)
            call = Call("info", name, "--threads", "1", "--quiet")
            if wait_for(call, lambda: position(call, path) > 0):
                call.signal(signal.SIGSTOP)
                os.truncate(path, len(data) // 3)
                call.signal(signal.SIGCONT)
            r = call.finish()
            if r.code != 0:  # read to its end before we could cut it: again
                break
        if r.code == 0:  # the unit tests of the streams cut a file at a chosen moment
            skip(name, "the tool was too quick for us every time")
        else:
            refused(r, name, name)
        os.remove(path)

    # A .ptn is mapped. --labels is read after mapping and before the arrays are, and a FIFO makes it wait for us.
    write("rows.tns", "".join(f"1 {i} 1\n" for i in range(1, 100_001)))
    for threads in ("1", "2"):
        run("convert", "rows.tns", "shrinks.ptn", "--quiet")
        fifo = WORK / "labels.fifo"
        os.mkfifo(fifo)
        call = Call("info", "shrinks.ptn", "--labels", fifo, "--threads", threads, timeout=20)
        with open(fifo, "w") as labels:
            os.truncate(WORK / "shrinks.ptn", 4096)
            labels.write("one\n")
        refused(call.finish(), f"a mapped file that shrinks, {threads} threads", "shrinks.ptn")
        os.remove(fifo)
    os.remove(WORK / "shrinks.ptn")


def unreadable():
    """A file without permission to read; root may read everything, so root tries as nobody."""
    write("secret.tns", GOOD)
    os.chmod(WORK / "secret.tns", 0)
    if os.getuid() != 0:
        refuse("secret.tns", None, says="ermission")
        return
    os.chmod(WORK, 0o755)
    tool = shutil.copy(POLYAD, WORK / "polyad-copy")
    os.chmod(tool, 0o755)
    nobody = lambda: (os.setgid(65534), os.setuid(65534))
    import harness
    harness.POLYAD, kept = str(tool), harness.POLYAD
    try:
        if run("--version", setup=nobody).code != 0:
            skip("a file without permission to read", "this is root, and nobody cannot run the tool")
        else:
            refused(run("info", "secret.tns", setup=nobody), "secret.tns", "secret.tns", says="ermission")
    except (OSError, ValueError) as error:
        skip("a file without permission to read", f"this is root ({error})")
    finally:
        harness.POLYAD = kept
        os.remove(tool)
        os.chmod(WORK / "secret.tns", 0o600)


def standard_input():
    refused(run("info", "-", input=""), "empty standard input", "standard input")
    refused(run("info", "-", input=GOOD + "1 1 x 1\n"), "a bad line on standard input", "standard input", 4)
    refused(run("info", "-", input=splatt(nnz=TEN)), "nnz of 10^18 through standard input", "standard input")
    whole = (WORK / "cut" / "whole.ptn").read_bytes()
    for name, data in {"splatt": splatt(), "genten": genten(), "npz": npz(), "ptn": whole}.items():
        # A pipe has no length that could be compared with the header.
        for what, bytes_ in (("cut", data[:-5]), ("longer", data + b"12345678")):
            out, into = os.pipe()
            os.write(into, bytes_)
            os.close(into)
            refused(run("info", "-", stdin=out), f"{name} {what} through a pipe", "standard input")
            os.close(out)
    for name, make in (("splatt-binary", splatt), ("genten-binary", genten), ("alto-binary", alto)):
        out, into = os.pipe()
        os.write(into, make(nnz=TEN))
        os.close(into)
        refused(run("info", "-", "--dialect", name, stdin=out), f"{name} of 10^18 nonzeros through a pipe",
                "standard input")
        os.close(out)
    closed = run("info", "-", setup=lambda: os.close(0))
    refused(closed, "closed standard input", "standard input")


def main():
    text_that_is_read()
    text_that_is_refused()
    headers_that_lie()
    binaries()
    truncated()
    damaged()
    compressed()
    endless_lines()
    shrinking()
    unreadable()
    standard_input()
    finish()


main()
