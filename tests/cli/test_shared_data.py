#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Real tensors of the shared data folder beside the clone: `info` finds what their summaries say. Else skipped."""

import gzip
import hashlib
import json
import math

from harness import MB, ROOT, WORK, check, equal, finish, folder, run, skip

DATA = ROOT.parent / "shared" / "data"
SUMMARIES = sorted(DATA.rglob("summary.json")) if DATA.is_dir() else []


def close(found, expected):
    return math.isclose(found, expected, rel_tol=1e-12, abs_tol=0)


def one(summary_file):
    summary = json.loads(summary_file.read_text())
    here = summary_file.parent
    tensors = [p for p in sorted(here.iterdir()) if p.name.endswith((".tns", ".tns.gz", ".tns.zst"))]
    name = here.name
    if not check(len(tensors) == 1, f"{name}: one tensor", tensors):
        return
    r = run("info", tensors[0], "--predict", "--json", "-", "--quiet")
    if not check(r.code == 0, name, r):
        return
    found = r.json
    for key in ("order", "dims", "nnz"):
        equal(found[key], summary[key], f"{name}: {key}")
    for key, theirs in {"norm": "fro_norm", "sum": "sum_values", "min": "min", "max": "max",
                        "density": "density"}.items():
        if theirs in summary:
            check(close(found[key], summary[theirs]), f"{name}: {key}",
                  f"found {found[key]!r}, expected {summary[theirs]!r}")
    equal((found["duplicates"], found["zeros"], found["index_base"]), (0, 0, 1),
          f"{name}: no duplicates, no zeros, 1-based")
    equal(len(found["modes"]), len(summary["modes"]), f"{name}: modes")
    for mode, expected in zip(found["modes"], summary["modes"]):
        what = f"{name}, mode {expected['mode']}"
        equal((mode["dim"], mode["slices"], mode["nnz_per_slice"]["max"], mode["fibres"]),
              (expected["dim"], expected["nonempty_slices"], expected["max_slice_nnz"], expected["fibres"]),
              f"{what}: dim, slices, largest slice, fibres")
        check(close(mode["nnz_per_slice"]["mean"], expected["mean_nnz_per_nonempty_slice"])
              and close(mode["nnz_per_fibre"]["mean"], expected["mean_nnz_per_fibre"]), f"{what}: means", mode)
        if summary.get("maps"):
            equal((mode["name"], mode["labels"]), (expected["name"], expected["dim"]), f"{what}: labels")
    check(found["peak_rss_bytes"] < 3 * found["coo_bytes"] + 60 * MB, f"{name}: memory",
          f"{found['peak_rss_bytes']} for {found['coo_bytes']}")
    # to .ptn and back: the very text that was published, and its labels
    if found["nnz"] < 500_000 and "sha256_uncompressed_tns" in summary:
        to = folder("to")
        check(run("convert", tensors[0], "to/x.ptn", "--quiet").code == 0
              and run("convert", "to/x.ptn", "to/x.tns", "--quiet").code == 0, f"{name}: through .ptn")
        equal(hashlib.sha256((to / "x.tns").read_bytes()).hexdigest(), summary["sha256_uncompressed_tns"],
              f"{name}: the published text again")
        for label_file in summary.get("maps", []):
            published = gzip.decompress((here / (label_file + ".gz")).read_bytes())
            check((WORK / "to" / f"x.{label_file}").read_bytes() == published, f"{name}: {label_file} again")


for file in SUMMARIES:
    one(file)
if not SUMMARIES:
    skip("real tensors", "there is no shared data folder beside the clone")
finish()
