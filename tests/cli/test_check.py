#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check lists every problem with its line; --fix repairs what has a meaning, and touches nothing else."""

import gzip
import os

from harness import (GOOD, WORK, check, equal, finish, folder, info, is_sentence, listing, refused, run, splatt, text,
                     write)


def checked(name, *args):
    """(exit code, JSON) of check."""
    r = run("check", name, "--json", "-", *args)
    try:
        return r.code, r.json
    except ValueError:
        check(False, f"check {name} --json -", r)
        return r.code, {"problems": [], "errors": None}


def lines_of(found, error=True):
    return [p["line"] for p in found["problems"] if p["error"] == error]


def errors():
    bad = ["x 1 1 1", "1 1", "1 1 1 1 1", "-1 1 1 1", "1.5 1 1 1", "1 1 1 nan", "1 1 1 1e400",
           "99999999999999999999 1 1 1", "one two three four",
           "1 1 1 0x10", "1,1,1,1"]
    # every third line is bad, with a comment and a blank line in between
    content, wanted, number = "", [], 0
    for b in bad:
        for line in (f"{number + 1} 1 1 1", "# comment", "", b):
            number += 1
            content += line + "\n"
        wanted.append(number)
    code, found = checked(write("bad.tns", content), "--most", "100")
    equal((code, lines_of(found), found["errors"]), (1, wanted, len(bad)), "every bad line is listed, with its number")
    check(all(p["what"] and "\n" not in p["what"] for p in found["problems"]), "each with a sentence", found)
    r = run("check", "bad.tns", "--most", "100")
    said = [line for line in r.out.splitlines() if line.startswith("bad.tns:") and line.split(":")[1].isdigit()
            and "note:" not in line]
    equal([int(line.split(":")[1]) for line in said], wanted, "people see the same lines")
    check(not is_sentence(r, "bad.tns") and str(len(bad)) in r.err, "and one sentence on standard error", r)
    code, found = checked("bad.tns", "--most", "3")
    equal((lines_of(found), found["errors"]), (wanted[:3], len(bad)), "--most 3 lists three and counts all")
    check("not listed" in run("check", "bad.tns", "--most", "3").out, "and says that there are more")
    code, found = checked("bad.tns", "--most", "0")
    equal((found["problems"], found["errors"]), ([], len(bad)), "--most 0 lists none and counts all")

    many = "".join(f"{i} 2 3 4\n" if i % 10 else "bad line here x\n" for i in range(1, 100_001))
    write("many.tns", many)
    for threads in ("1", "2", "7"):
        code, found = checked("many.tns", "--most", "20000", "--threads", threads)
        equal((code, lines_of(found)), (1, list(range(10, 100_001, 10))), f"ten thousand bad lines, {threads} threads")
    code, found = checked(write("zipped.tns.gz", gzip.compress(content.encode())), "--most", "100")
    equal(lines_of(found), wanted, "the same in a compressed file")
    r = run("check", "-", "--json", "-", input=content)
    equal(r.json["errors"], len(bad), "the same from standard input")

    code, found = checked(write("range.tns", "3\n2 2 2\n1 1 1 1\n3 1 1 1\n2 2 2 1\n0 1 1 1\n1 9 1 1\n"))
    equal((code, lines_of(found)), (1, [4, 6, 7]), "indices out of range are listed with their lines")
    code, found = checked(write("promise.tns", "sptensor\n1\n9\n5\n1 1\n2 1\n"))
    equal((code, found["errors"]), (1, 1), "a header that promises too much")
    code, found = checked(write("promise-less.tns", "sptensor\n1\n9\n1\n1 1\n2 1\n"))
    equal((code, lines_of(found)), (1, [6]), "a header that promises too little")
    code, found = checked(write("last.tns", "".join(f"{i} 1 1\n" for i in range(1, 50_001)) + "1 x 1"))
    equal((code, lines_of(found)), (1, [50_001]), "the last line, without a newline")
    code, found = checked(write("among-notes.tns", "1 1 1\n" * 1000 + "1 x 1\n"))
    equal((code, lines_of(found)), (1, [1001]), "notes do not crowd out an error")
    r = run("check", "among-notes.tns")
    check(not is_sentence(r, "among-notes.tns", 1001), "and the sentence names the line of the error", r.err)
    for name, data in {"nothing.tns": "", "comments.tns": "# a\n", "cut.bin": splatt()[:-4],
                       "cut.tns.gz": gzip.compress(content.encode())[:-9]}.items():
        refused(run("check", write(name, data)), f"check {name}", name)
    refused(run("check", "missing.tns"), "check of no file", "missing.tns")


def notes():
    content = "1 1 1 1\n2 2 2 0\n# comment\n1 1 1 2\n\n4 2 2 -1\n1 1 1 3\n2 2 2 0.0\n"
    code, found = checked(write("notes.tns", content))
    equal(code, 0, "duplicates and zeros are no errors")
    equal((found["errors"], found["duplicates"], found["zeros"], found["empty_slices"]), (0, 3, 2, [1, 0, 0]),
          "but they are counted")
    equal((found["order"], found["dims"], found["nnz"]), (3, [4, 2, 2], 6), "with the shape")
    equal(sorted(lines_of(found, error=False)), [2, 4, 7, 8, 8], "and listed with their lines")
    check(any(p["line"] == 7 and "line 1" in p["what"] for p in found["problems"]), "a duplicate names the first one",
          found)
    r = run("check", "notes.tns")
    check(r.code == 0 and "notes.tns:7: note: " in r.out and "mode 1 has 1 empty slices" in r.out and not r.err,
          "for people too", r)
    code, found = checked(write("clean.tns", GOOD))
    equal((code, found["problems"], found["errors"], found["duplicates"], found["zeros"]), (0, [], 0, 0, 0),
          "a clean file")
    code, found = checked(write("notes.bin",
                                splatt(dims=(2, 2, 2), rows=[(0, 0, 0, 1.0), (1, 1, 1, 0.0), (0, 0, 0, 2.0)])))
    equal((code, found["duplicates"], found["zeros"]), (0, 1, 1), "a binary file")
    equal(len(found["problems"]), 2, "whose problems have no lines but are listed")
    check(all(l["line"] == 0 for l in found["problems"]) and "nonzero 3" in str(found["problems"]),
          "by the number of the nonzero", found)
    code, found = checked(write("many-notes.tns", "1 1 1\n" * 1000), "--most", "7")
    equal((len(found["problems"]), found["duplicates"]), (7, 999), "--most limits notes as well")
    r = run("check", "notes.tns", "--quiet")
    equal((r.code, r.out, r.err), (0, "", ""), "--quiet")


def fix():
    here = folder("fix")
    # empty slices 2 in mode 1 and 1, 3 in mode 3; the zero leaves mode 2 without its third slice
    write("fix/x.tns", "4 1 2 1\n1 2 4 2\n4 1 2 5\n3 1 4 -2\n3 3 4 0\n1 1 2 1\n1 1 2 -1\n")
    for name, labels in {"mode-1-who.map": "ann bob cid dee", "mode-2-what.map": "tea pie ale",
                         "mode-3-when.map": "mon tue wed thu"}.items():
        write(f"fix/{name}", "".join(f"{l}\n" for l in labels.split()))
    to = folder("fixed")
    r = run("check", "fix/x.tns", "--fix", "fixed/y.tns", "--json", "-")
    equal(r.code, 0, "--fix")
    fixed = r.json["fixed"]
    equal((fixed["merged"], fixed["zeros_dropped"], fixed["empty_slices_dropped"], fixed["dims"], fixed["nnz"]),
          (2, 2, [1, 1, 2], [3, 2, 2], 3), "what --fix did")
    equal(text("fixed/y.tns"), "1 2 2 2\n2 1 2 -2\n3 1 1 6\n", "the repaired tensor: sorted, merged, renumbered")
    equal([text(f"fixed/y.mode-{m}.old") for m in (1, 2, 3)], ["1\n3\n4\n", "1\n2\n", "2\n4\n"],
          "the old index of each new one")
    equal([text(f"fixed/y.{n}.map") for n in ("mode-1-who", "mode-2-what", "mode-3-when")],
          ["ann\ncid\ndee\n", "tea\npie\n", "tue\nthu\n"], "labels follow")
    equal(sorted(fixed["files"]), sorted(f"fixed/{f}" for f in listing(to)), "every file is named in the JSON")
    code, again = checked("fixed/y.tns")
    equal((code, again["duplicates"], again["zeros"], again["empty_slices"]), (0, 0, 0, [0, 0, 0]),
          "nothing is left to repair")
    equal([m["labels"] for m in info("fixed/y.tns")["modes"]], [3, 2, 2], "the repaired tensor finds its labels")

    # beside the original: its label files stay as they are
    before = {f: text(f"fix/{f}") for f in listing(here)}
    equal(run("check", "fix/x.tns", "--fix", "fix/y.ptn.gz", "--quiet").code, 0, "--fix into the same folder")
    equal({f: text(f"fix/{f}") for f in before}, before, "leaves the original and its labels alone")
    check("y.mode-1.old" in listing(here), "and names the old indices after the tensor", listing(here))

    folder("clean")
    clean = "1 1 1.5\n1 2 3\n2 1 -0.001\n"
    write("clean/x.tns", clean)
    run("check", "clean/x.tns", "--fix", "clean/y.tns", "--quiet")
    equal(text("clean/y.tns"), clean, "a clean tensor stays as it is")
    equal(listing(WORK / "clean"), ["x.tns", "y.tns"], "and needs no map back")

    to = folder("refused")
    write("refused/bad.tns", GOOD + "1 x 1 1\n")
    write("refused/zeros.tns", "1 1 0\n2 2 0\n")
    write("refused/cancel.tns", "1 1 1\n1 1 -1\n")
    write("refused/out.tns", "old\n")
    before = {f: text(f"refused/{f}") for f in listing(to)}
    r = run("check", "refused/bad.tns", "--fix", "refused/out.tns")
    check(not is_sentence(r, "refused/bad.tns", 4) and "nothing is written" in r.err, "--fix of unreadable lines", r)
    for name in ("zeros", "cancel"):
        refused(run("check", f"refused/{name}.tns", "--fix", "refused/out.tns"), f"--fix of {name}", stdout=True)
    refused(run("check", "refused/bad.tns", "--fix", "refused/missing/out.tns"), "--fix into a missing folder",
            stdout=True)
    equal({f: text(f"refused/{f}") for f in listing(to)}, before, "leaves nothing behind and the old file whole")
    write("refused/good.tns", "1 1 1\n3 3 1\n")
    r = run("check", "refused/good.tns", "--fix", "refused/y.xyz")
    check(r.code == 2 and not os.path.exists(WORK / "refused/y.xyz"), "--fix with an unknown ending", r)
    r = run("check", "refused/good.tns", "--fix", "-")
    check(r.code == 2, "--fix to standard output", r)
    equal(listing(to), sorted([*before, "good.tns"]), "and these leave nothing either")


errors()
notes()
fix()
finish()
