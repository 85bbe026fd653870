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


def limits(folder):
    """The rates that the planner counts in, as measured on this machine."""
    tensor = folder / "limits.ptn"
    polyad("generate", tensor, "--like", "nell2", "--nnz", "1100k")
    stream = polyad("bench", tensor, "--formats", "coo", "--repeat", 1)["stream_gbs"]
    polyad("plan", tensor, cache=folder / "cache")
    rates = next(iter(json.loads((folder / "cache" / "machine.json").read_text()).values()))
    sizes = ["16 kB", "512 kB", "2 MB", "4 MB", "6 MB", "8 MB", "16 MB", "128 MB"]
    gbs = lambda ns: f"{64 * THREADS / ns:.0f}"
    return ["## The machine's limits", "",
            f"STREAM triad {stream:.0f} GB/s with all threads. Rows of one cache line at random places of a table, requested 32 ahead, all",
            "threads at once:", "",
            "| table | " + " | ".join(sizes) + " |", "|---" * (len(sizes) + 1) + "|",
            "| reading, ns a thread | " + " | ".join(f"{r:.2f}" for r in rates["read"]) + " |",
            "| reading, GB/s | " + " | ".join(gbs(r) for r in rates["read"]) + " |",
            "| two multiplied, not requested, ns a row | " + " | ".join(f"{r:.2f}" for r in rates["pair"]) + " |",
            "| adding to, ns a thread | " + " | ".join(f"{r:.2f}" for r in rates["add"]) + " |", ""]


def scaling(folder, scale):
    """The engine on one shape at several sizes, and with one thread against all."""
    lines = ["## Size and threads", "",
             "`polyad generate x.ptn --like nell2 --nnz N`, `polyad bench x.ptn --formats auto --precision f32 --rank 16`: nanoseconds a nonzero, all modes,",
             f"with one and with {THREADS} threads. The shape stays as it is, so larger tensors have longer fibres.", "",
             "| nonzeros | format | ns, 1 thread | ns, all threads | efficiency |", "|---|---|---|---|---|"]
    for millions in (1, 5, 20, 50):
        nnz = int(millions * 1e6 * scale)
        tensor = folder / "scaling.ptn"
        polyad("generate", tensor, "--like", "nell2", "--nnz", nnz, "--precision", "f32")
        ns = {}
        taken = polyad("plan", tensor, "--precision", "f32", "--rank", 16)["choice"]["format"]
        for threads in (1, THREADS):
            found = polyad("bench", tensor, "--formats", taken, "--precision", "f32", "--rank", 16, "--repeat", 5, threads=threads)
            result = next(r for r in found["results"] if r["mode"] == "all")
            ns[threads] = result["seconds"]["median"] / nnz * 1e9
        one, all_threads = ns[1], ns[THREADS]
        lines.append(f"| {nnz:,} | {taken} | {one:.2f} | {all_threads:.2f} | {100 * one / all_threads / THREADS:.0f} % |")
        print(lines[-1], flush=True)
    return lines + [""]


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
        rest = limits(pathlib.Path(folder)) + scaling(pathlib.Path(folder), options.scale)
    (ROOT / "docs" / "performance.md").write_text("\n".join(page + summary + [""] + rest + details), encoding="utf-8")
    print("docs/performance.md")


if __name__ == "__main__":
    main()
