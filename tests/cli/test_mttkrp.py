#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""mttkrp: the numbers, against the definition worked out here; models of every kind of file; what is refused."""

import gzip
import itertools
import os
import random
import struct

from harness import WORK, check, equal, finish, folder, is_sentence, listing, npy, refused, run, text, write, zip_of

FORMATS = [e["name"] for e in run("list", "formats", "--json", "-").json["formats"]]
KERNELS = [e for e in run("list", "kernels", "--json", "-").json["kernels"] if e["operation"] == "mttkrp"]
dice = random.Random(5)


def make_tensor(dims, nnz):
    """Rows of 0-based indices and a value; the first two have the same indices."""
    rows = [(*(dice.randrange(d) for d in dims), dice.randrange(-9, 10) / 4) for _ in range(nnz)]
    return [(*(d - 1 for d in dims), 1.25), *rows, rows[0]]


def make_model(dims, rank):
    return [[[dice.randrange(-8, 9) / 8 for _ in range(rank)] for _ in range(d)] for d in dims]


def tns(rows):
    return "".join(" ".join(str(i + 1) for i in row[:-1]) + f" {row[-1]}\n" for row in rows)


def expected(dims, rows, factors, mode):
    rank = len(factors[0][0])
    out = [[0.0] * rank for _ in range(dims[mode])]
    for row in rows:
        for r in range(rank):
            product = row[-1]
            for m, i in enumerate(row[:-1]):
                if m != mode:
                    product *= factors[m][i][r]
            out[row[mode]][r] += product
    return out


def matrix(name):
    data = (WORK / name).read_bytes()
    data = gzip.decompress(data) if name.endswith(".gz") else data
    return [[float(v) for v in line.split()] for line in data.decode().splitlines()]


def distance(a, b):
    """Largest difference relative to the largest entry; infinite when the shapes differ."""
    if [len(r) for r in a] != [len(r) for r in b]:
        return float("inf")
    pairs = list(zip(itertools.chain(*a), itertools.chain(*b)))
    return max(abs(x - y) for x, y in pairs) / max(1.0, *(abs(y) for _, y in pairs))


def mat(rows):
    return "".join(" ".join(repr(v) for v in row) + "\n" for row in rows)


def write_splatt(name, factors, weights):
    folder(name)
    write(f"{name}/lambda.mat", "".join(f"{w}\n" for w in weights))
    for m, f in enumerate(factors):
        write(f"{name}/mode{m + 1}.mat", mat(f))


def ktensor(factors, weights, word="matrix"):
    dims, rank = [len(f) for f in factors], len(weights)
    head = f"ktensor\n{len(dims)}\n{' '.join(map(str, dims))}\n{rank}\n{' '.join(map(str, weights))}\n"
    return head + "".join(f"{word}\n2\n{len(f)} {rank}\n{mat(f)}" for f in factors)


def npz_model(factors, weights, kind="<f8", fortran=False, deflate=False):
    code = {"<f8": "<{}d", "<f4": "<{}f", ">f8": ">{}d"}[kind]
    numbers = lambda values: struct.pack(code.format(len(values)), *values)
    entries = [("lambda.npy", npy(kind, (len(weights),), numbers(weights)))]
    for m, f in enumerate(factors):
        flat = [v for column in zip(*f) for v in column] if fortran else [v for row in f for v in row]
        entries.append((f"mode{m + 1}.npy", npy(kind, (len(f), len(f[0])), numbers(flat), fortran)))
    return zip_of(entries, deflate)


def numbers():
    """Every format on small tensors of order 2 to 5 in both precisions, and every kernel by its name at order 3."""
    for dims, rank in (((7, 5), 3), ((6, 9, 4), 5), ((5, 3, 8, 6), 17), ((3, 4, 2, 5, 6), 2)):
        rows, factors = make_tensor(dims, 60), make_model(dims, rank)
        name = f"order{len(dims)}"
        write(f"{name}.tns", tns(rows))
        write_splatt(name, factors, [1] * rank)
        for mode in range(len(dims)):
            want = expected(dims, rows, factors, mode)
            for format in FORMATS:
                own = [k["name"] for k in KERNELS if len(dims) == 3 and (format in k["formats"] or "any" in k["formats"])]
                for precision, kernels in (("f64", ["", *own]), ("f32", [""])):
                    for kernel in kernels:
                        label = f"{name} mode {mode + 1} {format} {kernel} {precision}"
                        r = run("mttkrp", f"{name}.tns", "--mode", mode + 1, "--model", name, "--out", "m.mat", "--format",
                                format, "--precision", precision, "--threads", 2, "--json", "-",
                                *(["--kernel", kernel] if kernel else []))
                        if kernel and r.code == 2 and "cannot do this" in r.err:
                            continue  # a kernel may say why not; some kernel always can
                        if not check(r.code == 0, label, r):
                            continue
                        near = distance(matrix("m.mat"), want)
                        check(near < (1e-13 if precision == "f64" else 1e-5), label, f"off by {near}")
                        found = r.json
                        equal((found["mode"], found["rank"], found["format"], found["precision"]),
                              (mode + 1, rank, format, precision), f"{label}: JSON")
                        size = sum(v * v for row in want for v in row) ** 0.5
                        check(abs(found["norm"] - size) <= 1e-5 * max(1, size), f"{label}: norm", found["norm"])
                        check(not kernel or found["kernel"] == kernel, f"{label}: the kernel asked for", found["kernel"])
                        check(found["why"] and found["bytes"] > 0 and {"load", "build", "compute"} <= set(found["seconds"]),
                              f"{label}: why, bytes, seconds", found)


def models():
    """The same numbers from every kind of file; weights are not applied."""
    dims, weights = (6, 9, 4), [3, 0.5, 2, -1, 7]
    rows, factors = make_tensor(dims, 40), make_model(dims, 5)
    want = expected(dims, rows, factors, 1)
    write("x.tns", tns(rows))
    write_splatt("splatt", factors, weights)
    folder("toolbox")
    write("toolbox/model.ktensor", ktensor(factors, weights))
    write("alone.ktensor", ktensor(factors, weights))
    write("genten.txt", ktensor(factors, weights, "facmatrix").replace(" ", "\t").replace("\n", "\r\n"))
    write("alone.ktensor.gz", gzip.compress(ktensor(factors, weights).encode()))
    write("plain.npz", npz_model(factors, weights))
    write("packed.npz", npz_model(factors, weights, deflate=True))
    write("single.npz", npz_model(factors, weights, kind="<f4"))
    write("fortran.npz", npz_model(factors, weights, kind=">f8", fortran=True))
    for model in ("splatt", "toolbox", "alone.ktensor", "genten.txt", "alone.ktensor.gz", "plain.npz", "packed.npz",
                  "single.npz", "fortran.npz"):
        r = run("mttkrp", "x.tns", "--mode", 2, "--model", model, "--out", "m.mat")
        check(r.code == 0 and not r.err and distance(matrix("m.mat"), want) < 1e-13, f"a model from {model}", r)
    r = run("mttkrp", "x.tns", "--mode", 2, "--model", "splatt", "--out", "m.mat.gz")
    check(r.code == 0 and distance(matrix("m.mat.gz"), want) < 1e-13, "compressed output", r)
    r = run("mttkrp", "x.tns", "--mode", 2, "--model", "splatt", "--out", "-")
    equal(r.out, text("m.mat"), "--out -: the matrix and nothing else on standard output")
    check("norm" in r.err, "the rest goes to standard error", r.err)
    equal((run("mttkrp", "x.tns", "--mode", 2, "--model", "splatt", "--out", "-", "--quiet").err), "", "--quiet")
    # what generate wrote is read back
    run("generate", "p.tns", "--dims", "8x9x7", "--nnz", 200, "--planted", 2, "--truth", "truth", "--quiet")
    r = run("mttkrp", "p.tns", "--mode", 1, "--model", "truth", "--json", "-")
    check(r.code == 0 and r.json["rank"] == 2, "the truth of generate as a model", r)
    line = text("m.mat").splitlines()[0].split()
    check(all(len(v.lstrip("-")) == 22 for v in line), "17 significant digits", line)


def random_factors():
    run("generate", "g.tns", "--dims", "300x200x100", "--nnz", "20k", "--quiet")
    call = ["mttkrp", "g.tns", "--mode", 3, "--rank", 7, "--out", "-", "--quiet"]
    outputs = {run(*call, "--deterministic", "--threads", t).raw for t in (1, 2, 5)}
    equal(len(outputs), 1, "--deterministic: the same bytes for any number of threads")
    (first,) = outputs if len(outputs) == 1 else (b"",)
    check(run(*call, "--threads", 2).raw == run(*call, "--threads", 2).raw, "the same bytes for the same seed and threads")
    check(run(*call, "--deterministic", "--seed", 2).raw != first != b"", "another seed, other numbers")
    values = [float(v) for v in first.split()]
    check(len(values) == 700 and all(v > 0 for v in values), "factors are positive, the matrix is 100 x 7")


def bad_models():
    dims = (6, 9, 4)
    factors, weights = make_model(dims, 3), [1, 2, 3]
    good = ktensor(factors, weights)
    lines = good.splitlines(keepends=True)
    call = ["mttkrp", "x.tns", "--mode", 1, "--out", "bad.mat", "--model"]

    def no_good(name, content, line, says):
        write(name, content)
        refused(run(*call, name), f"{name}: {says}", name, line, says)

    no_good("b1.ktensor", "ktensr\n3\n", 1, "found 'ktensr', expected 'ktensor'")
    no_good("b2.ktensor", "", None, "expected 'ktensor'")
    no_good("b3.ktensor", "ktensor\n33\n", 2, "found 33 modes")
    no_good("b4.ktensor", "ktensor\n0\n", 2, "found 0 modes")
    no_good("b5.ktensor", "ktensor\n3\n6 9 4\n0\n", 4, "found 0 components")
    no_good("b6.ktensor", good.replace("matrix\n2\n9 3", "matrix\n2\n9 4"), None, "found a matrix of 9 x 4, expected 9 x 3")
    no_good("b7.ktensor", "".join(lines[:12]), None, "found the end of the file, expected a number")
    no_good("b8.ktensor", "".join(lines[:9]) + "0.5 nan 1\n" + "".join(lines[10:]), 10, "found 'nan', expected a number")
    no_good("b9.ktensor", good + "1 2 3\n", None, "nothing after the last matrix")
    no_good("b10.ktensor", "ktensor\n3\n6 9 4\n3\n1 x 3\n", 5, "found 'x', expected a weight")
    no_good("b11.ktensor", good.replace("matrix", "vector", 1), 6, "found 'vector'")
    no_good("b12.ktensor", "ktensor\n2\n99999999999999 6\n3\n1 1 1\nmatrix\n2\n99999999999999 3\n1 1 1\n", None,
            "found the end of the file")
    no_good("b13.ktensor", "ktensor\n1\n" + "7" * 30 + "\n", 3, "expected the length of a mode")
    no_good("b14.npz", b"PK\x03\x04 no archive", None, "")
    no_good("b15.npz", zip_of([("lambda.npy", npy("<f8", (1,), struct.pack("<d", 1)))]), None, "found no arrays")
    no_good("b16.npz", npz_model(factors, [1, 2]), None, "found 3 columns in mode1.npy, expected 2 as in lambda.npy")
    no_good("b17.npz", zip_of([("lambda.npy", npy("<f8", (2,), struct.pack("<d", 1))), ("mode1.npy", b"")]), None,
            "bytes of numbers in lambda.npy")
    no_good("b18.npz", zip_of([("lambda.npy", npy("<f8", (1, 1), struct.pack("<d", 1))), ("mode1.npy", b"")]), None,
            "of shape 1 x 1, expected one number per component")
    no_good("b19.npz", npz_model([[[float("inf")] * 3] * 6, *factors[1:]], weights), None, "found inf")
    no_good("b20.npz", npz_model(factors[:2], weights), None, "found a model of 2 modes, expected 3")
    no_good("b21.npz", npz_model([factors[0], factors[0], factors[2]], weights), None,
            "found 6 rows for mode 2, expected 9")
    for broken in range(3, len(good), 97):  # cut anywhere
        write("cut.ktensor", good[:broken])
        r = run(*call, "cut.ktensor")
        why = is_sentence(r) if r.code else "accepted"
        check(not why or len(good) - broken < 20, f"cut after {broken} bytes", why)
    folder("nothing")
    refused(run(*call, "nothing"), "a folder without a model", "nothing", says="found neither model.ktensor nor mode1.mat")
    write_splatt("ragged", factors, weights)
    write("ragged/mode2.mat", mat(factors[1]).replace("\n", " 7\n", 1))
    refused(run(*call, "ragged"), "a row with too many numbers", "ragged/mode2.mat", 1, "found 4 numbers, expected 3")
    write("ragged/mode2.mat", "\n")
    refused(run(*call, "ragged"), "an empty matrix", "ragged/mode2.mat", says="found no rows")
    os.remove(WORK / "ragged/lambda.mat")
    refused(run(*call, "ragged"), "no lambda.mat", "ragged/lambda.mat")
    refused(run(*call, "not-there"), "no such model", "not-there")
    write("big.npz", npz_model([[[1e300] * 3] * 6, *factors[1:]], weights))
    refused(run(*call, "big.npz", "--precision", "f32"), "a number that f32 cannot hold", says="f32 cannot hold")
    check("bad.mat" not in listing(), "no output was left by any of them")


def mistakes():
    base = ["mttkrp", "x.tns"]
    for args, says in ((["--mode", 1], "--model"), (["--rank", 2], "--mode"), (["--mode", 0, "--rank", 2], "1 to 3"),
                       (["--mode", 4, "--rank", 2], "1 to 3"), (["--mode", "x", "--rank", 2], "1 to 3"),
                       (["--mode", 1, "--rank", 0], "--rank"), (["--mode", 1, "--rank", 2, "--model", "splatt"], "--model"),
                       (["--mode", 1, "--rank", 2, "--format", "nonsense"], "there is no format 'nonsense'; there are coo"),
                       (["--mode", 1, "--rank", 2, "--kernel", "nonsense"], "there is no kernel 'nonsense'"),
                       (["--mode", 1, "--rank", 2, "--out", "-", "--json", "-"], "cannot both"),
                       (["--mode", 1, "--rank", 2, "--out", "x.tns"], "overwrite")):
        r = run(*base, *args)
        why = is_sentence(r, code=2) or (says not in r.err and f"expected {says!r} in {r.err!r}")
        check(not why, f"mttkrp x.tns {' '.join(map(str, args))}", why)
    refused(run("mttkrp", write("v.tns", "1 2\n3 4\n"), "--mode", 1, "--rank", 2), "a vector", "v.tns",
            says="expected at least 2 modes")
    refused(run(*base, "--mode", 1, "--rank", 2, "--out", "no/such/m.mat"), "no such folder", "no/such/m.mat")
    refused(run(*base, "--mode", 1, "--rank", 100000, "--memory", "1M"), "factors that do not fit", says="needs")


numbers()
models()
random_factors()
bad_models()
mistakes()
finish()
