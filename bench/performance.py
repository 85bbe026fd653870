#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes docs/performance.md and its pictures: every format and the planner's choice against a plain CSF program, on
tensors shaped like those of the field. Everything in a table comes from one run of one program.

  bench/performance.py [--scale S] [--repeat K]      S: share of the usual sizes (default 1)
"""

import argparse
import json
import math
import os
import pathlib
import subprocess
import tempfile

from planner_score import over_the_best, rank_correlation

ROOT = pathlib.Path(__file__).resolve().parents[1]
SIZES = {"uber": 3300000, "nell2": 10000000, "deli": 5000000, "vast": 5000000, "enron": 8000000, "darpa": 5000000,
         "random": 5000000}
THREADS = len(os.sched_getaffinity(0))
COLOURS = {"auto": "#1b6ca8", "other": "#b9c4cc"}


def measure(name, nnz, precision, rank, repeat):
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "out.json"
        command = ["build/bench/mttkrp_bench", f"like:{name}:{nnz}", str(THREADS), precision, str(rank), str(repeat)]
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


def polyad(*args, threads=None, cache=""):
    """Runs a verb with --json and returns what it says."""
    command = ["build/polyad", *map(str, args), "--json", "-", "--quiet"] + (["--threads", str(threads)] if threads else [])
    out = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE,
                         env={**os.environ, "POLYAD_CACHE": str(cache)}).stdout
    return json.loads(out)


def rates(folder, threads):
    """What the planner measured of this machine with so many threads."""
    cache = folder / f"cache-{threads}"
    polyad("plan", folder / "limits.ptn", threads=threads, cache=cache)
    return next(iter(json.loads((cache / "machine.json").read_text()).values()))


TABLES = ["16 kB", "512 kB", "2 MB", "4 MB", "6 MB", "8 MB", "16 MB", "128 MB"]


def limits(folder):
    """The rates that the planner counts in, as measured on this machine: a page's lines, STREAM and rows in bytes a nanosecond."""
    tensor = folder / "limits.ptn"
    polyad("generate", tensor, "--like", "nell2", "--nnz", "1100k")
    stream = polyad("bench", tensor, "--formats", "coo", "--repeat", 1)["stream_gbs"]
    found, alone = rates(folder, THREADS), rates(folder, 1)
    gbs = [64 * THREADS / ns for ns in found["read"]]
    row = lambda name, values, digits=2: f"| {name} | " + " | ".join(f"{v:.{digits}f}" for v in values) + " |"
    lines = ["## The machine's limits", "",
             f"STREAM triad {stream:.0f} GB/s with all threads (`polyad bench FILE --formats coo`). Rows of one cache line at random places of a table,",
             "requested 32 ahead, all threads at once (what `polyad plan FILE` measures once and keeps in `machine.json`):", "",
             "| table | " + " | ".join(TABLES) + " |", "|---" * (len(TABLES) + 1) + "|",
             row("reading, ns a thread", found["read"]), row("reading, GB/s", gbs, 0), row("a second line beside it, ns", found["next"]),
             row("two multiplied, not requested, ns a row", found["pair"]), row("adding to, ns a thread", found["add"]),
             row(f"reading, efficiency of {THREADS} threads over one, %", [100 * a / b for a, b in zip(alone["read"], found["read"])], 0), ""]
    return lines, stream, gbs


def intensity(order, precision, rank):
    """Operations for a byte by GenTen's model, in which every nonzero reads its rows and adds to one in every mode."""
    value = 4 if precision == "f32" else 8
    return order * rank / ((order * rank + 3) * value + order * 4)


def roofline(points, stream, gbs, file):
    """Operations a second over operations a byte: roofs are STREAM and rows from tables; points (name, precision, intensity, plain,
    auto) are joined from the plain program to what auto takes."""
    width, height, left, right, top, bottom = 860, 560, 64, 150, 40, 46
    x0, x1 = math.log2(0.08), math.log2(0.32)
    most = max(max(p[4] for p in points), gbs[0] * 0.3)
    y0, y1 = math.log2(min(p[3] for p in points) / 1.5), math.log2(most * 1.3)
    x = lambda v: left + (math.log2(v) - x0) / (x1 - x0) * (width - left - right)
    y = lambda v: height - bottom - (math.log2(v) - y0) / (y1 - y0) * (height - top - bottom)
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="11">',
             f'<rect width="{width}" height="{height}" fill="white"/>',
             f'<text x="{left}" y="20" font-size="13" fill="#222">MTTKRP in all modes, rank 16, {THREADS} threads: from the plain program to auto, under the roofs of the machine</text>',
             f'<text x="{(left + width - right) / 2:.0f}" y="{height - 10}" text-anchor="middle" fill="#222">operations for a byte (GenTen\'s model: nothing is shared)</text>',
             f'<text x="16" y="{height / 2:.0f}" transform="rotate(-90 16 {height / 2:.0f})" text-anchor="middle" fill="#222">GFLOP/s</text>']
    for power in range(math.ceil(y0), math.floor(y1) + 1):
        at = y(2.0 ** power)
        lines.append(f'<line x1="{left}" x2="{width - right}" y1="{at:.1f}" y2="{at:.1f}" stroke="#eee"/>')
        lines.append(f'<text x="{left - 6}" y="{at + 4:.1f}" text-anchor="end" fill="#555">{2.0 ** power:g}</text>')
    for v in (0.1, 0.15, 0.2, 0.25, 0.3):
        lines.append(f'<text x="{x(v):.1f}" y="{height - bottom + 16}" text-anchor="middle" fill="#555">{v}</text>')
    roofs = [("STREAM", stream, "#c0392b")] + [(f"rows of {TABLES[i]}", gbs[i], "#7f8c8d") for i in (0, 1, 3, 6, 7)]
    used = []
    for name, rate, colour in sorted(roofs, key=lambda r: -r[1]):
        ends = [(x(v), y(rate * v)) for v in (0.08, 0.32)]
        lines.append(f'<line x1="{ends[0][0]:.1f}" y1="{ends[0][1]:.1f}" x2="{ends[1][0]:.1f}" y2="{ends[1][1]:.1f}" stroke="{colour}" stroke-dasharray="5 3"/>')
        at = max([ends[1][1]] + [u + 13 for u in used])
        used.append(at)
        lines.append(f'<text x="{width - right + 6}" y="{at + 4:.1f}" fill="{colour}">{name}, {rate:.0f} GB/s</text>')
    for precision, colour in (("f32", "#1b6ca8"), ("f64", "#2d8a4e")):
        for k, (name, _, at, plain, auto) in enumerate(sorted((p for p in points if p[1] == precision), key=lambda p: -p[4])):
            px = x(at) - 42 + 14 * k  # side by side: the model has about the same intensity for all orders
            lines.append(f'<line x1="{px:.1f}" x2="{px:.1f}" y1="{y(plain):.1f}" y2="{y(auto):.1f}" stroke="{colour}" stroke-opacity="0.5"/>')
            lines.append(f'<circle cx="{px:.1f}" cy="{y(plain):.1f}" r="3" fill="white" stroke="{colour}"/>')
            lines.append(f'<circle cx="{px:.1f}" cy="{y(auto):.1f}" r="4" fill="{colour}"/>')
            lines.append(f'<text x="{px + 3:.1f}" y="{y(auto) - 8:.1f}" fill="{colour}" transform="rotate(-40 {px + 3:.1f} {y(auto) - 8:.1f})">{name}</text>')
        lines.append(f'<text x="{x(intensity(3, precision, 16)):.1f}" y="{height - bottom - 6}" text-anchor="middle" fill="{colour}">{precision}</text>')
    file.write_text("\n".join(lines) + "\n</svg>\n", encoding="utf-8")


def scaling(folder, scale):
    """The engine on one shape at several sizes, and with one thread against all."""
    lines = ["## Size and threads", "",
             "`polyad generate x.ptn --like nell2 --nnz N --precision f32`, `polyad bench x.ptn --formats FORMAT --precision f32 --rank 16 --repeat K --threads T` in turn with",
             f"one and with {THREADS} threads, twice, the best sweep of each: nanoseconds a nonzero, all modes. Dims, skew and clusters stay as they are.", "",
             "| nonzeros | format | ns, 1 thread | ns, all threads | efficiency |", "|---|---|---|---|---|"]
    flat = []
    for millions in (1, 5, 20, 50):
        nnz = int(millions * 1e6 * scale)
        tensor = folder / "scaling.ptn"
        polyad("generate", tensor, "--like", "nell2", "--nnz", nnz, "--precision", "f32")
        ns = {}
        # By what the machine takes, as `auto` does, not by the reference machine.
        taken = polyad("plan", tensor, "--precision", "f32", "--rank", 16, cache=folder / "machine")["choice"]["format"]
        repeat = max(5, 60_000_000 // nnz)  # sweeps of a millisecond are disturbed more often
        for threads in (1, THREADS) * 2:
            found = polyad("bench", tensor, "--formats", taken, "--precision", "f32", "--rank", 16, "--repeat", repeat,
                           threads=threads)
            result = next(r for r in found["results"] if r["mode"] == "all")
            ns[threads] = min(ns.get(threads, math.inf), result["seconds"]["min"] / nnz * 1e9)
        one, all_threads = ns[1], ns[THREADS]
        flat.append(all_threads)
        lines.append(f"| {nnz:,} | {taken} | {one:.2f} | {all_threads:.2f} | {100 * one / all_threads / THREADS:.0f} % |")
        print(lines[-1], flush=True)
    return lines + ["", f"The slowest takes {max(flat) / min(flat):.2f} times as long for a nonzero as the fastest.", ""]


def machine():
    name = "unknown processor"
    for line in open("/proc/cpuinfo", encoding="utf-8"):
        if line.startswith("model name"):
            name = line.split(":", 1)[1].strip()
            break
    return f"{name}, {THREADS} threads"


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
            "  each size, bytes streamed) without what surprises the processor, so it says how near to its limits a format comes; above",
            "  100 % the rates were measured in a bad moment.",
            "* the line in bold is what `auto` takes. **over the best**: its time over that of the fastest format that it may take (at most",
            "  1.5 times the coordinates). **correlation**: Spearman's, of the planner's order of all formats with the measured one.", ""]
    points = []
    summary = ["| tensor | precision | `auto` | speed | best other format | build, sweeps | bytes / nonzero | share of the model | over the best | correlation |",
               "|---|---|---|---|---|---|---|---|---|---|"]
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
                           f"{auto['bytes_per_nonzero']:.1f} | {100 * share:.0f} % | {over_the_best(found, precision):.2f} | "
                           f"{rank_correlation(results):.2f} |")
            flops = found["order"] ** 2 * 16 * nnz * 1e-9  # nnz * R * N a mode
            points.append((name, precision, intensity(found["order"], precision, 16), flops / found["plain_seconds"], flops / auto["seconds"]))
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
    with tempfile.TemporaryDirectory() as folder:
        rest, stream, gbs = limits(pathlib.Path(folder))
        roofline(points, stream, gbs, pictures / "roofline.svg")
        rest += ["![Roofline](performance/roofline.svg)", "",
                 "Every nonzero reads its rows and adds to one in every mode, says GenTen's model; what is above a roof shares rows between modes or",
                 "nonzeros, or takes them from nearer caches.", ""]
        rest += scaling(pathlib.Path(folder), options.scale)
    (ROOT / "docs" / "performance.md").write_text("\n".join(page + summary + [""] + rest + details), encoding="utf-8")
    print("docs/performance.md")


if __name__ == "__main__":
    main()
