#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The engine against a plain CSF program in one run, with a bound so generous that only a real loss of speed fails: what auto
takes was 4 to 7 times as fast on this tensor, and the best format at most a tenth faster."""

import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
failed = 0


def check(ok, name, why):
    global failed
    if not ok:
        failed += 1
        print(f"FAIL {name}: {why}")


with tempfile.TemporaryDirectory() as folder:
    out = pathlib.Path(folder) / "out.json"
    program = ROOT / "build" / "bench" / "mttkrp_bench"
    subprocess.run([program, "like:nell2:1000000", "2", "f32", "16", "5", out], check=True, stdout=subprocess.DEVNULL)
    found = json.loads(out.read_text(encoding="utf-8"))
auto = [r for r in found["results"] if r["auto"]]
best = min(found["results"], key=lambda r: r["seconds"])
check(len(auto) == 1, "auto takes one format", found)
check(auto and auto[0]["speed_up"] > 1.5, "auto is faster than a plain program", auto)
check(auto and auto[0]["seconds"] < 2 * best["seconds"], "no format is twice as fast", (auto, best))
print(f"{3 - failed} passed, {failed} failed")
sys.exit(1 if failed else 0)
