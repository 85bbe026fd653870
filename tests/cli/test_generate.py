#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""generate: the same bytes always, exactly what was asked for, and planted models that are what they say."""

import itertools
import math
import os

from harness import WORK, check, equal, finish, folder, info, is_sentence, listing, run, text, write

# Order and dims of the FROSTT tensors.
PRESETS = {"uber": [183, 24, 1140, 1717], "nell2": [12092, 9184, 28818], "deli": [532924, 17262471, 2480308],
           "vast": [165427, 11374, 2, 100, 89], "enron": [6066, 5699, 244268, 1176], "darpa": [22476, 22476, 23776223],
           "random": [30000, 40000, 50000]}


def generate(file, *args):
    r = run("generate", file, *args, "--json", "-")
    if not check(r.code == 0 and not r.err, f"generate {file} {' '.join(args)}", r):
        return {}
    return r.json


def same_bytes():
    cases = {"skewed": ["--dims", "100x200x300", "--nnz", "20000", "--skew", "1.1"],
             "uniform": ["--dims", "1000x1000", "--nnz", "5k"],
             "clustered": ["--dims", "500x400x30x20", "--nnz", "20000", "--burst", "6", "--widths", "1,3,3,3", "--skew",
                           "0.1,0.4,0.6,0.6"],
             "dense": ["--dims", "30x30x30", "--nnz", "20000"], "full": ["--dims", "7x8x9", "--nnz", "504"],
             "like": ["--like", "nell2", "--nnz", "20000"],
             "planted": ["--dims", "60x50x40", "--nnz", "5000", "--planted", "4", "--noise", "0.1"]}
    for name, args in cases.items():
        bytes_of = {}
        for threads in ("1", "2", "7", "1"):
            generate(f"{name}.ptn", *args, "--threads", threads, "--seed", "7")
            bytes_of.setdefault((WORK / f"{name}.ptn").read_bytes(), []).append(threads)
        equal(len(bytes_of), 1, f"{name}: the same bytes for any number of threads, and again")
        generate(f"{name}-8.ptn", *args, "--seed", "8")
        check((WORK / f"{name}-8.ptn").read_bytes() not in bytes_of, f"{name}: another seed, another tensor")
    one = run("generate", "-", "--dims", "9x8", "--nnz", "20", "--quiet")
    two = run("generate", "-", "--dims", "9x8", "--nnz", "20", "--quiet", "--seed", "1")
    equal((one.code, one.out), (0, two.out), "the seed is 1 unless it is given")
    check("seed 1" in run("generate", "seed.tns", "--dims", "9x8", "--nnz", "20").out, "and it is printed")
    equal(run("generate", "-", "--dims", "4x3", "--nnz", "5", "--quiet").out.count("\n"), 5, "text on standard output")


def shape():
    for dims, nnz, args in (("100x200x300", 20000, ["--skew", "1.1"]), ("7", 7, []), ("1x1x1", 1, []),
                            ("5x1x9", 30, []),
                            ("1000000000x2000000000", 1000, []), ("5000000000x3", 100, ["--skew", "0.5"]),
                            ("7x8x9", 504, []),
                            ("3x3", 2, []), ("x".join(["3"] * 12), 500, []),
                            ("50x60x70", 10000, ["--burst", "20", "--widths", "2,2,8"])):
        r = generate("shape.ptn", "--dims", dims, "--nnz", str(nnz), *args)
        found = info("shape.ptn")
        want = [int(d) for d in dims.split("x")]
        equal((found["dims"], found["nnz"], found["duplicates"], found["zeros"]), (want, nnz, 0, 0),
              f"{dims}, {nnz} nonzeros {' '.join(args)}")
        equal((r.get("dims"), r.get("nnz"), r.get("seed")), (want, nnz, 1), f"{dims}: the JSON says so")
    generate("kept.tns", "--dims", "100x200x300", "--nnz", "500", "--skew", "1.5")
    equal(info("kept.tns")["dims"], [100, 200, 300], "text without dims keeps them: the last index of each mode occurs")
    equal(info("kept.tns")["nnz"], 500, "and the nonzeros")
    for name, dims in PRESETS.items():
        generate(f"{name}.ptn", "--like", name, "--nnz", "20000")
        found = info(f"{name}.ptn")
        equal((found["order"], found["dims"], found["nnz"], found["duplicates"]), (len(dims), dims, 20000, 0),
              f"--like {name}")
    uniform, skewed = info("random.ptn"), info("enron.ptn")
    check(skewed["modes"][0]["nnz_per_slice"]["max"] > 3 * skewed["modes"][0]["nnz_per_slice"]["mean"],
          "a skewed preset is skewed")
    check(uniform["modes"][0]["nnz_per_slice"]["max"] < 20, "a uniform one is not")
    check(info("nell2.ptn")["modes"][2]["nnz_per_fibre"]["mean"] > 2 * uniform["modes"][2]["nnz_per_fibre"]["mean"],
          "clusters fill fibres")
    generate("f32.npz", "--dims", "9x9", "--nnz", "20", "--precision", "f32")
    check("'descr': '<f4'" in text("f32.npz"), "--precision f32")
    generate("zero.tns.gz", "--dims", "9x9", "--nnz", "20", "--output-base", "0")
    equal((info("zero.tns.gz")["dims"], info("zero.tns.gz")["nnz"]), ([9, 9], 20), "compressed text")
    generate("head.tns", "--dims", "9x9", "--nnz", "2", "--to", "order-dims")
    equal(text("head.tns").splitlines()[:2], ["2", "9 9"], "--to")


def matrix(name):
    return [[float(v) for v in line.split()] for line in text(name).splitlines()]


def planted():
    for dims, rank, nnz, precision in (([12, 9, 7], 3, 200, "f64"), ([6, 5], 2, 25, "f64"),
                                       ([20, 15, 10, 5], 4, 600, "f64"),
                                       ([40], 1, 20, "f64"), ([4, 4, 4], 2, 64, "f64"), ([12, 9, 7], 3, 200, "f32")):
        name = "x".join(map(str, dims)) + f"-{precision}"
        folder("truth")
        r = generate("planted.tns", "--dims", "x".join(map(str, dims)), "--nnz", str(nnz), "--planted", str(rank),
                     "--truth", "truth", "--precision", precision)
        files = sorted(["model.ktensor", "lambda.mat", "summary.json", *(f"mode{m + 1}.mat" for m in range(len(dims)))])
        equal(listing(WORK / "truth"), files, f"{name}: the files of the truth")
        weights = [row[0] for row in matrix("truth/lambda.mat")]
        factors = [matrix(f"truth/mode{m + 1}.mat") for m in range(len(dims))]
        equal([[len(f), len(f[0])] for f in factors], [[d, rank] for d in dims], f"{name}: shapes of the factors")
        equal(len(weights), rank, f"{name}: weights")
        words = text("truth/model.ktensor").split()
        equal(words[:3 + len(dims)], ["ktensor", str(len(dims)), *map(str, dims), str(rank)],
              f"{name}: model.ktensor begins as it should")
        numbers = [float(w) for w in words[3 + len(dims):] if w != "matrix"]
        flat = weights + [v for f in factors for v in (2, len(f), rank, *itertools.chain(*f))]
        equal(numbers, flat, f"{name}: model.ktensor and the .mat files say the same")
        # every entry of the model, and no other, is stored
        model = {}
        for cell in itertools.product(*map(range, dims)):
            value = math.fsum(w * math.prod(f[i][c] for f, i in zip(factors, cell)) for c, w in enumerate(weights))
            if value != 0:
                model[tuple(i + 1 for i in cell)] = value
        stored = {tuple(map(int, line.split()[:-1])): float(line.split()[-1])
                  for line in text("planted.tns").splitlines()}
        equal(sorted(stored), sorted(model), f"{name}: all nonzeros of the model are stored, and no others")
        largest = max(map(abs, model.values()))
        tolerance = 1e-12 if precision == "f64" else 1e-6
        worst = max((abs(stored[c] - model[c]) for c in model if c in stored), default=math.inf)
        check(worst <= tolerance * largest, f"{name}: without noise the tensor is the model",
              f"off by {worst} of {largest}")
        check(r.get("nnz") == len(stored) and 0.4 * nnz <= len(stored) <= 2 * nnz,
              f"{name}: about as many nonzeros as asked for", f"{len(stored)} of {nnz}")
    generate("clean.tns", "--dims", "50x40x30", "--nnz", "5000", "--planted", "3")
    generate("noisy.tns", "--dims", "50x40x30", "--nnz", "5000", "--planted", "3", "--noise", "0.1", "--truth", "truth")
    rows = [[line.split() for line in text(f).splitlines()] for f in ("clean.tns", "noisy.tns")]
    equal([r[:-1] for r in rows[0]], [r[:-1] for r in rows[1]], "noise changes values, not places")
    clean, noisy = ([float(r[-1]) for r in part] for part in rows)
    share = math.sqrt(sum((a - b) ** 2 for a, b in zip(clean, noisy)) / sum(a * a for a in clean))
    check(0.095 < share < 0.105, "noise of 0.1 is a tenth of the root mean square", share)


def mistakes():
    folder("no")
    base = ["no/x.tns", "--dims", "9x9", "--nnz", "10"]
    for args in (["no/x.tns"], ["no/x.tns", "--dims", "9x9"], ["no/x.tns", "--nnz", "10"], [*base[:-1], "many"],
                 [*base[:-1], "-5"], [*base[:-1], "100"],
                 [base[0], "--dims", "9y9", "--nnz", "1"], [base[0], "--dims", "0x9", "--nnz", "1"],
                 [base[0], "--dims", "x".join("2" * 33), "--nnz", "9"],
                 [base[0], "--like", "nobody"], [*base, "--like", "uber"], [*base, "--skew", "x"],
                 [*base, "--skew", "-1"], [*base, "--skew", "1,1,1"],
                 [*base, "--burst", "0.5"], [*base, "--burst", "1,2"], [*base, "--widths", "0"],
                 [*base, "--noise", "0.1"], [*base, "--truth", "no/t"],
                 [*base, "--planted", "0"], [*base, "--planted", "x"], [*base, "--planted", "11"],
                 [*base, "--planted", "2", "--noise", "-1"],
                 [*base, "--planted", "2", "--noise", "nan"], [*base, "--planted", "2", "--skew", "1"],
                 [*base, "--to", "nothing"], [*base, "--seed", "x"],
                 ["no/x.xyz", *base[1:]], [*base, "--skew", "inf"], [*base, "--threads", "0"],
                 ["no/x.mtx", "--dims", "3x3x3", "--nnz", "3"], []):
        why = is_sentence(run("generate", *args), code=2)
        check(not why, f"generate {' '.join(args)} is a mistake of usage", why)
    equal(listing(WORK / "no"), [], "and leaves nothing behind")
    why = is_sentence(run("generate", "no/missing/x.tns", *base[1:]), "no/missing/x.tns")
    check(not why, "a missing folder", why)
    write("no/file", "x")
    why = is_sentence(run("generate", *base, "--planted", "2", "--truth", "no/file"), "no/file")
    check(not why and not os.path.exists(WORK / "no/x.tns"), "--truth into a file", why or "the tensor was written")
    r = run("generate", "no/x.ptn", "--dims", "1000x1000x1000", "--nnz", "100M", "--memory", "10M")
    why = is_sentence(r)
    check(not why and "10.0 MB" in r.err and r.rss < 60 << 20, "--memory", why or r)
    r = run("generate", "no/x.ptn", "--dims", "1000000000x1000000000", "--nnz", "1000000000000", address_space=None,
            timeout=3)
    why = is_sentence(r)
    check(not why and r.rss < 100 << 20, "a tensor that no machine holds", why or r)
    equal(listing(WORK / "no"), ["file"], "and these leave nothing behind either")


same_bytes()
shape()
planted()
mistakes()
finish()
