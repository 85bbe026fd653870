#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every device kernel under Oclgrind with the limits of small GPUs: no race, nothing uninitialised, nothing out of bounds.
And that this test would see such faults: some are planted in the texts (src/device/rows.h) by a define.

Oclgrind's exit status is that of the program, so what counts is its log."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
TESTS = pathlib.Path(os.environ.get("POLYAD_DEVICE_TESTS", ROOT / "build/tests/polyad_device_tests"))
# One thread: with two, 1 of 15 runs missed an addition that is not atomic.
LIMITS = ["--num-threads", "1", "--max-wgsize", "256", "--local-mem-size", "32768"]
PLANTED = {  # number in src/device/rows.h: what it is, what Oclgrind says
    1: ("a missing barrier", r"data race"),
    2: ("an addition that is not atomic", r"data race"),
    3: ("a row beyond the output", r"Invalid write"),
    4: ("a number beyond local memory", r"Invalid write"),
    5: ("a number that was never written", r"uninitialized"),
}


def watch(fault=0, test="EveryKernel", seconds=400, look="--data-races"):
    """Runs the kernels; returns (exit code, output, log)."""
    with tempfile.TemporaryDirectory(prefix="polyad-oclgrind-") as folder:
        log = pathlib.Path(folder) / "log"
        options = ["--build-options", f"-DPD_FAULT={fault}"] if fault else []
        command = ["oclgrind", look, *LIMITS, *options, "--max-errors", "20", "--log", str(log), str(TESTS),
                   f"--gtest_filter=Watched.{test}", "--gtest_brief=1"]
        done = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=seconds, check=False, env={**os.environ, "POLYAD_CACHE": ""})
        return done.returncode, done.stdout.decode(errors="replace"), log.read_text(errors="replace") if log.exists() else ""


def check_no_report(test, what, look="--data-races"):
    """The kernels as they are."""
    code, output, log = watch(test=test, look=look)
    ran = re.search(rf"(\d+) {what} of (\d+) kernels on (.*)", output)
    print(ran[0] if ran else output[-2000:])
    assert ran and code == 0, f"exit status {code}:\n{output[-2000:]}"
    assert "Oclgrind" in ran[3], f"it ran on {ran[3]}"
    assert log.strip() == "", log[:4000]


def check_planted(fault, test="Seams"):
    what, expected = PLANTED[fault]
    _, output, log = watch(fault, test) if fault != 5 else watch(fault, "SeamsWhole", look="--uninitialized")
    assert re.search(expected, log, re.IGNORECASE), f"{what} was not reported:\n{log[:2000]}\n{output[-1000:]}"


def main():
    checks = [(f"no report of {what}", lambda test=test, what=what: check_no_report(test, what))
              for test, what in (("EveryKernel", "MTTKRPs"), ("EveryTtv", "TTVs"), ("DenseRows", "decompositions"))]
    checks += [(f"{what}: nothing uninitialised", lambda test=test, what=what: check_no_report(test, what, "--uninitialized"))
               for test, what in (("Uninitialised", "MTTKRPs"), ("UninitialisedTtv", "TTVs"), ("UninitialisedRows", "decompositions"))]
    checks += [(PLANTED[f][0], lambda f=f: check_planted(f)) for f in PLANTED]
    checks += [("a missing barrier where rows are solved", lambda: check_planted(1, "DenseRows"))]
    failed = 0
    for name, check in checks:
        try:
            check()
        except (AssertionError, OSError, subprocess.TimeoutExpired) as error:
            print(f"{name}: {error}")
            failed += 1
    print(f"{len(checks) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
