#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes docs/performance.md and its pictures: every format and the planner's choice against a plain CSF program, on
tensors shaped like those of the field. Everything in a table comes from one run of one program.

  bench/performance.py [--scale S] [--repeat K]      S: share of the usual sizes (default 1)
"""

import argparse
import json
import os
import pathlib
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
SIZES = {"uber": 3300000, "nell2": 10000000, "deli": 5000000, "vast": 5000000, "enron": 8000000, "darpa": 5000000,
         "random": 5000000}
COLOURS = {"auto": "#1b6ca8", "other": "#b9c4cc"}


def measure(name, nnz, precision, rank, repeat):
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "out.json"
        command = ["build/bench/mttkrp_bench", f"like:{name}:{nnz}", str(os.cpu_count()), precision, str(rank), str(repeat)]
        subprocess.run([*command, out], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        return " ".join(command), json.loads(out.read_text())


def bars(title, results, file):
    """Horizontal bars: how many times as fast as the plain program."""
    results = sorted(results, key=lambda r: -r["speed_up"])
    width, row, left = 640, 22, 90
    most = max(r["speed_up"] for r in results)
    height = 34 + row * len(results)
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
             f'<rect width="{width}" height="{height}" fill="white"/>',
             f'<text x="8" y="18" font-size="13" fill="#222">{title}: times as fast as the plain program</text>']
    for i, r in enumerate(results):
        y = 30 + i * row
        length = max(1, (width - left - 60) * r["speed_up"] / most)
        colour = COLOURS["auto" if r["auto"] else "other"]
        lines.append(f'<text x="{left - 8}" y="{y + 13}" text-anchor="end" fill="#222">{r["format"]}</text>')
        lines.append(f'<rect x="{left}" y="{y}" width="{length:.0f}" height="{row - 5}" fill="{colour}"/>')
        lines.append(f'<text x="{left + length + 6:.0f}" y="{y + 13}" fill="#222">{r["speed_up"]:.1f}x</text>')
    file.write_text("\n".join(lines) + "\n</svg>\n", encoding="utf-8")


def machine():
    name = "unknown processor"
    for line in open("/proc/cpuinfo", encoding="utf-8"):
        if line.startswith("model name"):
            name = line.split(":", 1)[1].strip()
            break
    return f"{name}, {os.cpu_count()} threads"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    pictures = ROOT / "docs" / "performance"
    pictures.mkdir(exist_ok=True)
    page = ["# Performance", "",
            "Made by `make bench`. All modes in turn, as in CP-ALS; the plain program is a CSF tree per mode with OpenMP over",
            "slices, compiled for the rank (`bench/mttkrp_bench.cpp`). Times are medians of one run; only ratios within a table",
            f"mean anything. Machine: {machine()}.", "",
            "* **speed**: times as fast as the plain program. **build**: in sweeps of the format itself. **model**: the planner's",
            "  estimate over the time measured; the estimate is made of the machine's own rates (rows read and added from tables of",
            "  each size, bytes streamed), so it says what share of its limits is reached.",
            "* the line in bold is what `auto` takes.", ""]
    summary = ["| tensor | precision | `auto` | speed | best other format | build, sweeps | bytes / nonzero | share of the model |",
               "|---|---|---|---|---|---|---|---|"]
    details = []
    for name, size in SIZES.items():
        for precision in ("f32", "f64"):
            nnz = max(1000, int(size * options.scale))
            command, found = measure(name, nnz, precision, 16, options.repeat)
            results = found["results"]
            auto = next(r for r in results if r["auto"])
            other = max((r for r in results if not r["auto"]), key=lambda r: r["speed_up"])
            share = auto["estimated_seconds"] / auto["seconds"]
            summary.append(f"| like {name}, {nnz:,} | {precision} | `{auto['format']}` | {auto['speed_up']:.1f}x | "
                           f"`{other['format']}` {other['speed_up']:.1f}x | {auto['build_seconds'] / auto['seconds']:.1f} | "
                           f"{auto['bytes_per_nonzero']:.1f} | {100 * share:.0f} % |")
            picture = f"performance/{name}-{precision}.svg"
            bars(f"like {name}, order {found['order']}, {nnz:,} nonzeros, {precision}, rank 16", results,
                 ROOT / "docs" / picture)
            details += [f"## like {name}, {precision}", "", f"`{command}`", "", f"![]({picture})", "",
                        "| format | seconds | speed | build, sweeps | bytes / nonzero | model |", "|---|---|---|---|---|---|",
                        f"| plain program | {found['plain_seconds']:.4f} | 1 | | | |"]
            for r in sorted(results, key=lambda r: r["seconds"]):
                bold = "**" if r["auto"] else ""
                details.append(f"| {bold}{r['format']}{bold} | {r['seconds']:.4f} | {r['speed_up']:.2f}x | "
                               f"{r['build_seconds'] / r['seconds']:.1f} | {r['bytes_per_nonzero']:.1f} | "
                               f"{100 * r['estimated_seconds'] / r['seconds']:.0f} % |")
            details.append("")
            print(summary[-1], flush=True)
    (ROOT / "docs" / "performance.md").write_text("\n".join(page + summary + [""] + details), encoding="utf-8")
    print("docs/performance.md")


if __name__ == "__main__":
    main()
