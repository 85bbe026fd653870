#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""bench --pipeline on a device, its timeline, and plan --device-model, which needs none."""

import xml.etree.ElementTree as ET

from harness import check, equal, finish, folder, is_sentence, run, skip, text

ROOM = {"address_space": 16 << 30, "timeout": 120}  # drivers map much more than they use
TTV = {"hocoo", "hocsr", "cfb", "hocfs-csr", "hocfs-ell", "stream"}


def device_formats(operation):
    kernels = run("list", "kernels", "--json", "-").json["kernels"]
    return {f for k in kernels if k["operation"] == operation and k["name"].split("/")[1] == "gpu" for f in k["formats"]}


def numbers(row, name):
    check(3 <= row["queues"] <= 5 and row["collections"] >= 1 and row["slot_bytes"] > 0, f"{name}: the cut", row)
    measured, model = row["measured"], row["model"]
    check(measured["ts"] > 0 and measured["tp"] > 0, f"{name}: measured", row)
    check(0 < model["tp"] <= model["ts"] and 0 < model["tp_of_measured_steps"], f"{name}: the model", row)
    check(all(r["begin"] >= 0 and r["each"] >= 0 for r in row["rates"].values()), f"{name}: rates", row)


def pipeline():
    r = run("bench", "x.ptn", "--device", "opencl:0", "--device-memory", "1M", "--pipeline", "--kernel", "ttv", "--modes", 2,
            "--json", "-", **ROOM)
    if check(r.code == 0 and r.err.count("\n") == 1 and "is no GPU" in r.err, "all formats of ttv", r):
        equal({row["format"] for row in r.json["pipeline"]}, TTV, "those that devices have kernels for")
        equal(TTV, device_formats("ttv"), "they are the registry's")
        for row in r.json["pipeline"]:
            numbers(row, row["format"])
            equal((row["mode"], row["kernel"]), (2, f"ttv/gpu/{row['format']}"), "mode and kernel")
        equal((r.json["device"], r.json["kernel"], r.json["tensor"]["nnz"]), ("opencl:0", "ttv", 60000), "the rest")
    r = run("bench", "x.ptn", "--device", "opencl:0", "--device-memory", "2M", "--pipeline", "--formats", "coo", "--rank", 8,
            "--modes", 1, "--timeline", "t.svg", "--json", "p.json", **ROOM)
    if not check(r.code == 0 and "Tp model" in r.out, "mttkrp with a timeline", r):
        return
    both = run("bench", "x.ptn", "--device", "opencl:0,opencl:1", "--device-memory", "2M", "--pipeline", "--formats", "coo,stream",
               "--rank", 8, "--modes", 3, "--timeline", "two.svg", "--json", "-", env={"POCL_DEVICES": "pthread pthread"}, **ROOM)
    if check(both.code == 0, "mttkrp on two devices, and from the file", both):
        for row in both.json["pipeline"]:
            numbers(row, f"two devices, {row['format']}")
        kernels = {e.text for e in ET.fromstring(text("two.svg")).iter() if e.text and "queue" in e.text}
        check(len(kernels) >= 6, "lanes of both devices", kernels)
    little = run("bench", "x.ptn", "--device", "opencl:0", "--device-memory", "20k", "--pipeline", "--kernel", "ttv", "--formats",
                 "hocoo,cfb", "--modes", 1, "--json", "-", **ROOM)
    if check(little.code == 0 and len(little.json["pipeline"]) == 2, "a format without room does not end it", little):
        rows = {row["format"]: row for row in little.json["pipeline"]}
        check("no room" in rows["hocoo"].get("refused", ""), "and says so", rows["hocoo"])
        check("refused" not in rows["cfb"], "the others go on", rows["cfb"])
    lanes = {e.text for e in ET.fromstring(text("t.svg")).iter() if e.text and "queue" in e.text and e.text.startswith("opencl:0 ")}
    check(len(lanes) >= 3, "a lane per queue", lanes)
    check("copy in" in text("t.svg") and "mttkrp_coo" in text("t.svg"), "copies and kernels", lanes)


def plan_on_a_device():
    here = run("plan", "x.ptn", "--rank", 16, "--json", "-").json
    r = run("plan", "x.ptn", "--rank", 16, "--device", "opencl:0", "--json", "-", **ROOM)
    if check(r.code == 0, "plan on a device", r):
        found = r.json
        equal({f["format"] for f in found["formats"]}, device_formats("mttkrp"), "formats that devices have kernels for")
        check(found["device_estimate"]["estimated"] is True and found["device_estimate"]["memory_gbs"] > 0, "from its bandwidths",
              found["device_estimate"])
        seconds = {f["format"]: f["seconds"] for f in found["formats"]}
        check(all(s > 0 for s in seconds.values()) and list(seconds.values()) == sorted(seconds.values()), "the fastest first", seconds)
        check(all(seconds[f["format"]] != f["seconds"] for f in here["formats"] if f["format"] in seconds),
              "they are not the processor's", seconds)
        page = run("plan", "x.ptn", "--rank", 16, "--device", "opencl:0", **ROOM).out
        check("in turn on the device" in page and "MTTKRPs were not" in page, "the page says what they are", page)
    r = run("plan", "x.ptn", "--rank", 64, "--device", "opencl:0", "--device-memory", "200k", "--json", "-", **ROOM)
    if check(r.code == 0, "plan on a device that is too small", r):
        check("cannot run there" in r.json["choice"]["why"] and "in parts" not in r.json["choice"]["why"], "no parts are promised",
              r.json["choice"])
        check(all("factors do not fit" in f["why"] for f in r.json["formats"]), "in no format", r.json["formats"])


def tuning():
    cache = {"POLYAD_CACHE": str(folder("cache"))}
    args = ["--rank", 8, "--iters", 1, "--quiet", "--json", "-"]
    device = ["--device", "opencl:0"]
    before = run("cpd", "x.ptn", *args, *device, env=cache, **ROOM).json
    check("measured" not in before["format_why"], "nothing is known yet", before["format_why"])
    tuned = run("cpd", "x.ptn", *args, *device, "--tune", env=cache, **ROOM).json
    after = run("cpd", "x.ptn", *args, *device, env=cache, **ROOM).json
    check("measured on opencl:0" in tuned["format_why"], "tuned on the device", tuned["format_why"])
    equal((after["format"], after["format_why"]), (tuned["format"], tuned["format_why"]), "and remembered")
    here = run("cpd", "x.ptn", *args, env=cache).json
    check("measured" not in here["format_why"], "but not for the processor", here["format_why"])


def refusals():
    for flags, word in (([], "--device"), (["--kernel", "cpd"], "--pipeline"), (["--plot", "x.svg"], "--pipeline")):
        r = run("bench", "x.ptn", "--pipeline", *flags)
        check(not is_sentence(r, code=2) and word in r.err, f"--pipeline {flags}", r)


def device_model():
    seconds = {}
    for name in ("p100", "a100", "h100"):
        found = run("plan", "x.ptn", "--rank", 16, "--device-model", name, "--json", "-").json["device_model"]
        check(found["estimated"] is True and found["name"] == name, f"{name}: it is an estimate", found)
        equal({f["format"] for f in found["formats"]}, device_formats("mttkrp"), f"{name}: formats with device kernels")
        order = [f["seconds"] for f in found["formats"]]
        check(order == sorted(order) and order[0] > 0 and all(f["fits"] for f in found["formats"]), f"{name}: times", order)
        seconds[name] = order[0]
    check(seconds["p100"] > seconds["a100"] > seconds["h100"], "newer ones are faster", seconds)
    page = run("plan", "x.ptn", "--rank", 16, "--device-model", "a100").out
    check("estimate, not measured" in page and "NVIDIA A100" in page, "the page says so", page)
    once, twice = (run("plan", f, "--rank", 16, "--device-model", "p100", "--json", "-").json["device_model"]["formats"] for f in ("x.ptn", "xx.ptn"))
    for f in once:
        ratio = next(t["seconds"] for t in twice if t["format"] == f["format"]) / f["seconds"]
        check(1.3 < ratio < 2.3, f"{f['format']}: twice the nonzeros, about twice the time", ratio)
    check("device_model" not in run("plan", "x.ptn", "--json", "-").json, "only when asked for")
    r = run("plan", "x.ptn", "--device-model", "k20")
    check(not is_sentence(r, code=2) and "p100, a100, h100" in r.err, "one that there is not", r)


run("generate", "x.ptn", "--dims", "200x300x400", "--nnz", "60000", "--quiet")
run("generate", "xx.ptn", "--dims", "200x300x400", "--nnz", "120000", "--quiet")
device_model()
if any(d["backend"] == "opencl" and d["available"] for d in run("list", "devices", "--json", "-", **ROOM).json["devices"]):
    pipeline()
    plan_on_a_device()
    tuning()
    refusals()
else:
    skip("bench --pipeline", "there is no OpenCL driver")
finish()
