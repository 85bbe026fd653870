#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Devices as users see them: what is listed, what is opened by which name, what is said when there is none."""

import xml.etree.ElementTree

from harness import GOOD, check, equal, finish, folder, is_sentence, listing, run, skip, text, write

NO_DRIVERS = {"POLYAD_OPENCL_LIBRARY": "/nowhere/libOpenCL.so.1", "POLYAD_CUDA_LIBRARY": "/nowhere/libcuda.so.1"}
ROOM = {"address_space": 16 << 30}  # drivers map much more than they use


def listed(**how):
    return run("list", "devices", "--json", "-", **ROOM, **how).json["devices"]


def without_drivers():
    found = listed(env=NO_DRIVERS)
    equal([d["name"] for d in found if d["available"]], ["cpu"], "without drivers there is the processor")
    why = {d["backend"]: d["summary"] for d in found if not d["available"]}
    equal(sorted(why), ["cuda", "opencl"], "and a reason for each backend")
    for backend, reason in why.items():
        check("/nowhere/" in reason and "not found" in reason, f"{backend}: the reason names the library", reason)
    r = run("list", "devices", env=NO_DRIVERS)
    check(r.code == 0 and "not available" in r.out and "/nowhere/libOpenCL.so.1" in r.out, "people see it too", r)
    for name in ("gpu", "opencl:0", "cuda:0", "opencl", "cpu,gpu"):
        r = run("info", "x.tns", "--device", name, env=NO_DRIVERS)
        why = is_sentence(r, code=2 if "cpu" in name else 1)
        check(not why and f"--device {name}:" in r.err, f"--device {name} without drivers is a sentence", why or r.err)
    equal(run("info", "x.tns", "--device", "cpu", "--quiet", env=NO_DRIVERS).code, 0, "the processor is always there")
    r = run("list", "devices", env={"POLYAD_OPENCL_LIBRARY": "libm.so.6"})
    check(r.code == 0 and "has no clGetPlatformIDs" in r.out, "a library that is no driver", r)


def with_opencl():
    devices = [d for d in listed() if d["backend"] == "opencl" and d["available"]]
    if not devices:
        return skip("OpenCL devices", "there is no OpenCL driver")
    for d in devices:
        check(d["memory_bytes"] > 0 and 0 < d["largest_group"] <= 256 and 0 < d["local_bytes"] <= 32768
              and isinstance(d["f64"], bool) and d["compute_units"] > 0, f"{d['name']} has facts", d)
    r = run("list", "devices", **ROOM)
    check(r.code == 0 and not r.err and "f32" in r.out and "compute units" in r.out, "people see them too", r)
    for name in ("gpu", "opencl", "opencl:0"):
        r = run("info", "x.tns", "--device", name, "--device-memory", "64M", "--quiet", **ROOM)
        check(r.code == 0 and not r.err, f"--device {name}", r)
    for names in ("opencl:0,opencl:0", "gpu,gpu"):
        r = run("info", "x.tns", "--device", names, **ROOM)
        check(not is_sentence(r, code=2) and "is named twice" in r.err, f"--device {names}", r)
    r = run("info", "x.tns", "--device", f"opencl:{len(devices)}", **ROOM)
    check(not is_sentence(r, code=2) and "there are cpu, opencl:0" in r.err, "one too many is a sentence with what there is", r)
    timeline()
    colours()
    why = next((d["summary"] for d in listed(env={"POCL_DEVICES": "nothing"}) if d["backend"] == "opencl" and not d["available"]), "")
    check(not why or ("installed but give no device: " in why and "install your" not in why), "a driver that fails is not one to install", why)
    two = {"POCL_DEVICES": "pthread pthread"}
    if len(listed(env=two)) > len(listed()):
        r = run("info", "x.tns", "--device", "opencl:0,opencl:1", "--quiet", env=two, **ROOM)
        check(r.code == 0 and not r.err, "two devices of PoCL", r)
    else:
        skip("two devices", "the driver is not PoCL")


def colours():
    """A decomposition runs more kinds of commands than there are hues: none shares its colour with another."""
    equal(run("generate", "c.tns", "--dims", "50x40x30", "--nnz", "2000", "--quiet").code, 0, "a tensor")
    r = run("cpd", "c.tns", "--rank", "4", "--iters", "4", "--tol", "0", "--format", "hb-csf", "--dense", "device", "--deterministic",
            "--device", "opencl:0", "--timeline", "c.svg", "--quiet", timeout=120, **ROOM)
    if not check(r.code == 0, "a timeline of a decomposition", r):
        return
    of = {}
    for box in xml.etree.ElementTree.fromstring(text("c.svg")).iter("{http://www.w3.org/2000/svg}rect"):
        for title in box:
            of.setdefault(title.text.split(":")[0], set()).add(box.get("fill"))
    fills = [fill for all_of in of.values() for fill in all_of]
    check(len(of) > 8 and len(fills) == len(set(fills)) == len(of), "every kind has a colour of its own", of)


def timeline():
    equal(run("generate", "t.tns", "--dims", "50x40x30", "--nnz", "2000", "--quiet").code, 0, "a tensor")
    cache = folder("cache")
    for passes in (1, 2):
        r = run("mttkrp", "t.tns", "--mode", "1", "--rank", "4", "--format", "b-csf", "--device", "opencl:0", "--timeline", "t.svg",
                "--json", "-", timeout=120, env={"POLYAD_CACHE": str(cache)}, **ROOM)
        if not check(r.code == 0, f"a timeline, pass {passes}", r):
            return
        found = r.json["timeline"]
        check(found["commands"] > 3 and found["conflicts"] == [] and found["file"] == "t.svg", "its JSON", found)
        picture = xml.etree.ElementTree.fromstring(text("t.svg"))
        texts = [t.text for t in picture.iter("{http://www.w3.org/2000/svg}text")]
        boxes = [b for b in picture.iter("{http://www.w3.org/2000/svg}rect") if len(b)]
        check("opencl:0 queue 1" in texts and "milliseconds" in texts and len(boxes) == found["commands"],
              "a lane per queue, a box per command", texts)
        kernels = [f for f in listing(cache) if f.startswith("kernels/")]
        check(kernels, "compiled kernels are kept in the cache folder", listing(cache))
    r = run("mttkrp", "x.tns", "--mode", "1", "--timeline", "t.svg")
    check(not is_sentence(r, code=2) and "--device" in r.err, "a timeline of the processor", r)


def options():
    for bad in ("much", "-1", "4X"):
        r = run("info", "x.tns", f"--device-memory={bad}")
        check(not is_sentence(r, code=2) and "--device-memory" in r.err, f"--device-memory {bad}", r)
    r = run("info", "x.tns", "--device-memory", "1G")
    check(not is_sentence(r, code=2) and "--memory" in r.err, "--device-memory of the processor", r)


write("x.tns", GOOD)
without_drivers()
with_opencl()
options()
finish()
