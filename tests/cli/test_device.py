#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Decompositions on a device as users call them: the fits of the processor, formats, checkpoints, Ctrl-C."""

import json
import signal
import time

from harness import ROOT, WORK, Call, check, equal, finish, is_sentence, run, skip, text

KJV = ROOT / "data/kjv-words/kjv-words.tns.gz"
ROOM = {"address_space": 16 << 30, "timeout": 240}  # drivers map much more than they use
DEVICE = ["--device", "gpu"]
COMMON = ["--rank", "5", "--tol", "0", "--seed", "3", "--threads", "2"]


def cpd(*args, **how):
    r = run("cpd", KJV, *COMMON, *args, "--quiet", "--json", "-", **{**ROOM, **how})
    return r.json if check(r.code == 0, " ".join(map(str, args)), r) else {}


def near(found, expected, name, bound=1e-10):
    check(abs(found.get("fit", 9) - expected["fit"]) <= bound, name, f"{found.get('fit')} and {expected['fit']}")


def fits():
    want = cpd("--iters", "5")
    equal(want["dense"], ["host"] * 3, "the processor is the host")
    formats = {f for k in run("list", "kernels", "--json", "-").json["kernels"]
               if k["name"].startswith("mttkrp/gpu/") for f in k["formats"]}
    check(len(formats) >= 8, "formats with a device kernel", formats)
    for name in sorted(formats):
        near(cpd("--iters", "5", "--format", name, *DEVICE), want, f"the same fit in {name}")
    for dense in ("device", "host"):
        found = cpd("--iters", "5", "--dense", dense, *DEVICE)
        near(found, want, f"rows solved on the {dense}")
        equal(found.get("dense"), [dense] * 3, f"--dense {dense}")
        equal(found.get("format"), "hb-csf", "auto takes a format with a device kernel")
    single = cpd("--iters", "5", "--precision", "f32")
    near(cpd("--iters", "5", "--precision", "f32", "--dense", "device", *DEVICE), single, "f32", 1e-5)
    small = cpd("--iters", "5", "--dense", "device", "--device-memory", "5M", *DEVICE)
    near(small, want, "a tensor larger than the device")
    check("in parts" in small.get("format_why", ""), "it says so", small.get("format_why"))
    start = ["--iters", "4", "--nonnegative", "1,3", "--restarts", "2"]
    near(cpd(*start, *DEVICE), cpd(*start), "nonnegative, two starts")
    cpd("--iters", "3", "--out", "first.json")
    fixed = ["--iters", "3", "--init", "first.json", "--fix-mode", "2"]
    found = cpd(*fixed, "--dense", "device", *DEVICE)
    near(found, cpd(*fixed), "a fixed mode")
    equal(found.get("dense"), ["device", "fixed", "device"], "and where each mode was solved")
    r = run("cpd", KJV, *COMMON, "--iters", "4", *DEVICE, **ROOM)
    check(r.code == 0 and "device gpu, format hb-csf" in r.out and "rows solved on: " in r.out, "people see it too", r)


def from_the_file():
    """A tensor that neither the memory nor the device may have as a whole stays in its file."""
    run("generate", "big.ptn", "--dims", "300x400x500", "--nnz", "2M", "--seed", "5")
    common = ["cpd", "big.ptn", "--rank", "4", "--iters", "3", "--tol", "0", "--threads", "2", "--quiet", "--json", "-"]
    whole = run(*common, **ROOM)
    found = run(*common, "--memory", "16M", "--device-memory", "8M", *DEVICE, **ROOM)
    if check(found.code == 0, "streamed from its file through a device", found):
        equal(found.json["format"], "stream", "it stays in its file")
        near(found.json, whole.json, "the same fit")
    little = ["--memory", "16M", "--device-memory", "4M", "--json", "-", *DEVICE]
    here = run("mttkrp", "big.ptn", "--mode", "2", "--rank", "4", "--json", "-", **ROOM).json
    for format in ("auto", "stream"):
        r = run("mttkrp", "big.ptn", "--mode", "2", "--rank", "4", "--format", format, *little, **ROOM)
        if check(r.code == 0, f"mttkrp from the file, --format {format}", r):
            equal(r.json["kernel"], "mttkrp/gpu/stream/windows", "by windows")
            check(abs(r.json["norm"] / here["norm"] - 1) < 1e-12, "the same norm", (r.json["norm"], here["norm"]))
    r = run("mttkrp", "big.ptn", "--mode", "2", "--rank", "4", "--kernel", "mttkrp/gpu/stream/windows", *little, **ROOM)
    check(r.code == 0 and r.json["bytes"] < 4 << 20, "a kernel that is asked for leaves the tensor in its file too", r)
    for mode in (1, 2, 3):
        (WORK / "v.txt").write_text("0.5\n" * (200 + 100 * mode))
        args = ["ttv", "big.ptn", "--mode", mode, "--vector", "v.txt", "--format", "stream", "--out"]
        here = run(*args, "here.ptn", "--json", "-", **ROOM)
        there = run(*args, "there.ptn", "--memory", "32M", "--device-memory", "4M", "--json", "-", *DEVICE, **ROOM)
        if not check(here.code == 0 and there.code == 0, f"ttv from the file, mode {mode}", there):
            continue
        equal(there.json["kernel"], "ttv/gpu/stream", "by windows")
        found, want = (run("info", f, "--json", "-", **ROOM).json for f in ("there.ptn", "here.ptn"))
        equal(found["nnz"], want["nnz"], f"as many sums, mode {mode}")
        check(abs(found["norm"] / want["norm"] - 1) < 1e-12, f"the same norm, mode {mode}", (found["norm"], want["norm"]))


def balance():
    """Splitting slices and fibres makes the groups' work equal: bench says so."""
    run("generate", "skewed.ptn", "--like", "darpa", "--nnz", "200K", "--seed", "3")
    args = ["bench", "skewed.ptn", "--rank", "8", "--formats", "csf-all,b-csf", "--repeat", "1", "--modes", "1,2", *DEVICE]
    r = run(*args, "--quiet", "--json", "-", **ROOM)
    if not check(r.code == 0, "bench on a device", r):
        return
    ratios = {(row["format"], row["mode"]): row["groups"][0]["ratio"] for row in r.json["results"] if row["mode"] != "all"}
    for mode in (1, 2):
        check(ratios["csf-all", mode] > 10, f"a group per slice, mode {mode}", ratios)
        check(ratios["b-csf", mode] <= 1.2, f"bins, mode {mode}", ratios)
    check("heaviest work-group over the mean" in run(*args, **ROOM).out, "people see it too")


def little_room():
    """A format that does not fit after some modes were timed is a line of the table."""
    run("generate", "s3.tns", "--dims", "50x60x1000", "--nnz", "5k")
    r = run("bench", "s3.tns", *DEVICE, "--repeat", "1", "--device-memory", "100k", "--rank", "8", "--formats", "coo", **ROOM)
    check(r.code == 0 and "refused" in r.out, "bench with little room on the device", r)
    (WORK / "v.txt").write_text("1\n" * 60)
    here = run("ttv", "s3.tns", "--mode", "2", "--vector", "v.txt", "--out", "here.tns")
    there = run("ttv", "s3.tns", "--mode", "2", "--vector", "v.txt", "--out", "there.tns", *DEVICE, "--json", "-", **ROOM)
    if check(here.code == 0 and there.code == 0, "ttv takes a format of the devices by itself", there):
        check(there.json["devices"] == ["opencl:0"], "the JSON says where", there.json.get("devices"))
        numbers = [[list(map(float, line.split())) for line in text(f).splitlines()] for f in ("here.tns", "there.tns")]
        check(len(numbers[0]) == len(numbers[1]) and all(
            a[:-1] == b[:-1] and abs(a[-1] - b[-1]) <= 1e-12 * abs(a[-1]) for a, b in zip(*numbers)), "the same numbers")


def checkpoints():
    common = [*COMMON, "--deterministic", *DEVICE, "--quiet"]
    for dense in ("device", "auto"):
        for f in WORK.glob("d.*"):
            f.unlink()
        call = Call("cpd", KJV, *common, "--iters", "4000", "--dense", dense, "--checkpoint", "d.ckpt", "--every", "1",
                    "--out", "part", "--json", "part.json", **ROOM)
        while not (WORK / "d.ckpt.previous").exists() and time.monotonic() < call.begin + 120:
            time.sleep(0.01)
        call.signal(signal.SIGINT)
        r = call.finish()
        equal(r.code, 130, f"{dense}: Ctrl-C")
        check((WORK / "part" / "model.ktensor").exists(), f"{dense}: the model so far", r)
        upto = str(json.loads(text("part.json"))["iterations"] + 3)
        resumed = cpd("--deterministic", *DEVICE, "--dense", dense, "--checkpoint", "d.ckpt", "--resume", "--iters", upto)
        check(resumed.get("resumed_at", 0) > 0, f"{dense}: resumed", resumed)
        whole = cpd("--deterministic", *DEVICE, "--dense", dense, "--iters", upto)
        equal(resumed.get("fit"), whole.get("fit"), f"{dense}: the same bits")


def mistakes():
    for args, says in ((["--dense", "device"], "processor"), (["--dense", "gpu", *DEVICE], "auto, host or device"),
                       (["--dense", "device", "--device", "opencl:0,opencl:1"], "several devices"),
                       (["--format", "alto", *DEVICE], "no kernel of the devices")):
        r = run("cpd", KJV, *args, "--quiet", env={"POCL_DEVICES": "pthread pthread"}, **ROOM)
        why = is_sentence(r, code=2) or ("" if says in r.err else f"expected {says!r} in {r.err!r}")
        check(not why, f"cpd {' '.join(args)}", why)


if any(d["backend"] == "opencl" and d["available"] for d in run("list", "devices", "--json", "-", **ROOM).json["devices"]):
    fits()
    from_the_file()
    balance()
    little_room()
    checkpoints()
    mistakes()
else:
    skip("decompositions on a device", "there is no OpenCL driver")
finish()
