#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""score: the numbers, against the definition worked out here over all permutations; every form of a model, with names;
what is refused."""

import itertools
import json
import math
import random
import struct

from harness import MB, WORK, check, equal, finish, folder, is_sentence, listing, npy, refused, run, text, write, zip_of

dice = random.Random(11)


def make_model(dims, rank):
    return [round(dice.uniform(0.5, 9), 3) for _ in range(rank)], [
        [[round(dice.gauss(0, 1), 3) for _ in range(rank)] for _ in range(d)] for d in dims]


def json_model(model, modes=None):
    return json.dumps({"weights": model[0], "factors": model[1], **({"modes": modes} if modes else {})})


def ktensor(model):
    weights, factors = model
    lines = ["ktensor", len(factors), " ".join(str(len(f)) for f in factors), len(weights), " ".join(map(str, weights))]
    for f in factors:
        lines += ["matrix", 2, f"{len(f)} {len(weights)}", *(" ".join(map(str, row)) for row in f)]
    return "\n".join(map(str, lines)) + "\n"


def write_folder(name, model):
    folder(name)
    write(f"{name}/lambda.mat", "".join(f"{w}\n" for w in model[0]))
    for m, f in enumerate(model[1]):
        write(f"{name}/mode{m + 1}.mat", "".join(" ".join(map(str, row)) + "\n" for row in f))


def texts(values):
    width = max(1, *map(len, values))
    return npy(f"<U{width}", (len(values),), b"".join(v.encode("utf-32-le").ljust(4 * width, b"\0") for v in values))


def npz_model(model, names=None, labels=None):
    numbers = lambda values: struct.pack(f"<{len(values)}d", *values)
    entries = [("lambda.npy", npy("<f8", (len(model[0]),), numbers(model[0])))]
    for m, f in enumerate(model[1]):
        entries.append((f"mode{m + 1}.npy", npy("<f8", (len(f), len(f[0])), numbers([v for row in f for v in row]))))
        if labels and labels[m]:
            entries.append((f"mode{m + 1}_labels.npy", texts(labels[m])))
    if names:
        entries.append(("mode_names.npy", texts(names)))
    return zip_of(entries)


def column(f, r):
    return [row[r] for row in f]


def cosine(u, v):
    size = math.sqrt(sum(x * x for x in u) * sum(y * y for y in v))
    return sum(x * y for x, y in zip(u, v)) / size if size else 0


def length(model, r):
    return abs(model[0][r]) * math.prod(math.sqrt(sum(v * v for v in column(f, r))) for f in model[1])


def expected(a, b):
    """The factor match score and its pairs (from 1), by trying everything."""
    ra, rb = len(a[0]), len(b[0])
    cosines = {(i, j): [cosine(column(f, i), column(g, j)) for f, g in zip(a[1], b[1])]
               for i in range(ra) for j in range(rb)}
    if ra <= rb:
        ways = ([(i, j) for i, j in enumerate(p)] for p in itertools.permutations(range(rb), ra))
    else:
        ways = ([(i, j) for j, i in enumerate(p)] for p in itertools.permutations(range(ra), rb))
    best = sorted(max(ways, key=lambda pairs: sum(abs(math.prod(cosines[p])) for p in pairs)))
    matches = []
    for i, j in best:
        wa, wb = length(a, i), length(b, j)
        penalty = abs(wa - wb) / max(wa, wb) if max(wa, wb) else 0
        congruence = math.prod(cosines[i, j])
        matches.append({"a": i + 1, "b": j + 1, "score": abs(congruence) * (1 - penalty), "congruence": congruence,
                        "cosines": cosines[i, j]})
    return sum(m["score"] for m in matches) / len(matches), matches


def near(found, want):
    if isinstance(want, list):
        return len(found) == len(want) and all(map(near, found, want))
    if isinstance(want, dict):
        return found.keys() == want.keys() and all(near(found[k], want[k]) for k in want)
    return abs(found - want) < 1e-12


def numbers():
    for dims, ra, rb in (((4, 5), 3, 3), ((3, 4, 2), 4, 4), ((2, 3, 2), 5, 3), ((2, 2), 2, 6), ((1, 3), 1, 1),
                         ((5,), 2, 2), ((2, 1, 3, 2, 2), 3, 4)):
        a, b = make_model(dims, ra), make_model(dims, rb)
        write("a.json", json_model(a))
        write("b.json", json_model(b))
        r = run("score", "a.json", "b.json", "--json", "-")
        name = f"dims {dims}, ranks {ra} and {rb}"
        if not check(r.code == 0 and not r.err, name, r):
            continue
        want, matches = expected(a, b)
        found = r.json
        check(near(found["score"], want), f"{name}: score", f"found {found['score']}, expected {want}")
        check(near(found["matches"], matches), f"{name}: matches", f"found {found['matches']}, expected {matches}")
        equal((found["rank_a"], found["rank_b"], found["order"], found["dims"]), (ra, rb, len(dims), list(dims)),
              f"{name}: shape")
        check({"load", "score", "total"} <= set(found["seconds"]) and found["threads"] > 0 and found["version"],
              f"{name}: what every JSON has", found)
    # the same model in another order, with other signs and lengths moved between columns
    weights, factors = make_model((6, 5, 4), 3)
    order = [2, 0, 1]
    moved = ([weights[r] for r in order], [[[row[r] * s for r in order] for row in f]
                                           for f, s in zip(factors, (-1e200, 2e-200, 0.5))])
    write("a.json", json_model((weights, factors)))
    write("b.json", json_model(moved))
    found = run("score", "a.json", "b.json", "--json", "-").json
    check(abs(found["score"] - 1) < 1e-12, "a model moved about scores 1", found)
    equal([(m["a"], m["b"]) for m in found["matches"]], [(1, 2), (2, 3), (3, 1)], "and every component is found")
    check(all(abs(m["congruence"] + 1) < 1e-12 for m in found["matches"]), "with the sign of its columns")
    # a component of zeros has no direction
    factors[1] = [[0, *row[1:]] for row in factors[1]]
    write("zero.json", json_model((weights, factors)))
    found = run("score", "zero.json", "zero.json", "--json", "-").json
    check(abs(found["score"] - 2 / 3) < 1e-12 and found["matches"][0]["cosines"][1] == 0, "a column of zeros", found)


def forms():
    """The same score from every form of a model; the page with the names of the modes."""
    dims = (3, 4)
    a, b = make_model(dims, 2), make_model(dims, 3)
    want, _ = expected(a, b)
    modes = [{"name": "bóok", "labels": ["x", "y\n", "é"]}, {"name": "", "labels": []}]
    write("b.json", json_model(b))
    write("a.json", json_model(a, modes))
    write("a.npz", npz_model(a, ["bóok", ""], [["x", "y\n", "é"], None]))
    write("plain.npz", npz_model(a))
    write("a.ktensor", ktensor(a))
    write_folder("splatt", a)
    write_folder("named", a)
    write("named/mode1.labels", "x\ny\\n\né\n")
    write("named/summary.json", json.dumps({"labels": ["bóok", ""]}))
    folder("toolbox")
    write("toolbox/model.ktensor", ktensor(a))
    for form in ("a.json", "a.npz", "plain.npz", "a.ktensor", "splatt", "named", "toolbox"):
        r = run("score", form, "b.json", "--json", "-")
        check(r.code == 0 and near(r.json["score"], want), f"a model from {form}", r)
        named = form in ("a.json", "a.npz", "named")
        for call in (("score", form, "b.json"), ("score", "b.json", form)):
            r = run(*call)
            head = [line for line in r.out.splitlines() if "congruence" in line]
            check(r.code == 0 and len(head) == 1 and ("bóok" in head[0]) == named and "mode 2" in head[0],
                  f"{' '.join(call)}: the head of the table", r.out)
            equal(r.out.splitlines()[-1], f"factor match score {want:.6f}", f"{' '.join(call)}: the last line")
    r = run("score", "-", "b.json", "--json", "-", input=ktensor(a))
    check(r.code == 0 and near(r.json["score"], want), "one model from standard input", r)
    lines = run("score", "a.json", "b.json").out.splitlines()
    rows = [line.split() for line in lines if line.split()[:1] in (["1"], ["2"])]
    equal(len(rows), 2, "one line per pair")
    check(all(len(row) == 6 for row in rows), "components, score, congruence, a cosine per mode", rows)
    check(any("without a partner: 1 of B" in line for line in lines), "what has no partner", lines)
    equal(run("score", "a.json", "b.json", "--quiet").out, "", "--quiet")
    outputs = {run("score", "a.json", "b.json", "--threads", t).raw for t in (1, 2, 3)}
    equal(len(outputs), 1, "the same bytes for any number of threads")
    write("evil.json", json_model(a, [{"name": "\x1b[31mred\nname"}, {"name": "n" * 500}]))
    out = run("score", "evil.json", "b.json").out
    check("\x1b" not in out and max(map(len, out.splitlines())) < 120, "names cannot spoil the table", out)
    # what generate wrote is read back
    run("generate", "p.tns", "--dims", "8x9x7", "--nnz", 200, "--planted", 2, "--truth", "truth", "--quiet")
    r = run("score", "truth", "truth/model.ktensor", "--json", "-")
    check(r.code == 0 and r.json["score"] > 0.999999 and r.json["rank_a"] == 2, "the truth of generate", r)


def mistakes():
    a = make_model((3, 4), 2)
    good = json_model(a)
    before = listing()
    for args, says in (([], "A"), (["a.json"], "B"), (["a.json", "b.json", "c"], ""), (["-", "-"], "only one"),
                       (["a.json", "b.json", "--json", "a.json"], "would overwrite a.json"),
                       (["a.json", "b.json", "--json", "./b.json"], "would overwrite b.json"),
                       (["named", "b.json", "--json", "named/mode1.labels"], "would overwrite named/mode1.labels"),
                       (["named", "b.json", "--json", "named/summary.json"], "would overwrite"),
                       (["a.json", "b.json", "--rank", 3], "--rank")):
        r = run("score", *args)
        why = is_sentence(r, code=2) or (says not in r.err and f"expected {says!r} in {r.err!r}")
        check(not why, f"score {' '.join(map(str, args))}", why)
    refused(run("score", "a.json", "not-there"), "no such model", "not-there")
    refused(run("score", "a.json", write("c.json", json_model(make_model((3, 5), 2)))), "other dims", "c.json",
            says="found a model of 3 x 5, expected 3 x 4 as a.json has")
    refused(run("score", "a.json", write("d.json", json_model(make_model((3, 4, 2), 2)))), "another order", "d.json",
            says="found a model of 3 x 4 x 2, expected 3 x 4 as a.json has")
    refused(run("score", "named", "a.json", "--json", "no/such/x.json"), "no such folder", "no/such/x.json", stdout=True)
    write("bad.json", good.replace("[", "[NaN, ", 1))
    refused(run("score", "a.json", "bad.json"), "not a number", "bad.json", 1, "found 'NaN', expected a finite number")
    write("bad.json", good[:-30])
    refused(run("score", "bad.json", "a.json"), "a file cut short", "bad.json", 1, "found the end of the file")
    write("named/mode1.labels", "x\ny\n")
    refused(run("score", "named", "a.json"), "too few labels", "named/mode1.labels", 3,
            "found the end of the file after 2 labels, expected 3")
    write("named/mode1.labels", "x\ny\nz\nw\n")
    refused(run("score", "named", "a.json"), "too many labels", "named/mode1.labels", 4, "found one more label")
    write("bad.npz", npz_model(a, labels=[["x"], None]))
    refused(run("score", "bad.npz", "a.json"), "too few texts", "bad.npz",
            says="found mode1_labels.npy of shape (1), expected 3 texts")
    write("bad.npz", npz_model(a, names=["x"]))
    refused(run("score", "bad.npz", "a.json"), "too few names", "bad.npz", says="found mode_names.npy of shape (1)")
    write("deep.json", '{"x": ' + "[" * 10 * MB)
    refused(run("score", "deep.json", "a.json"), "ten million brackets", "deep.json", 1, "brackets inside one another")
    write("long.json", '{"x": "' + "a" * 100 * MB)
    refused(run("score", "long.json", "a.json"), "a string without an end", "long.json", 1, "a string of more than",
            rss=300 * MB)
    write("big.json", json_model(make_model((2000, 4), 20)))
    refused(run("score", "big.json", "big.json", "--memory", "100k"), "a model that does not fit", says="needs")
    new = {"c.json", "d.json", "bad.json", "bad.npz", "deep.json", "long.json", "big.json"}
    equal(sorted(set(listing()) - set(before)), sorted(new), "mistakes leave nothing behind")
    check(text("a.json").startswith("{\"weights\""), "and change nothing", WORK)


numbers()
forms()
mistakes()
finish()
