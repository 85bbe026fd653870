#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Includes follow the data: public headers <- core <- io, formats, kernels <- solvers <- cli. Checks every #include, and
the few manners that a text search can see."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)

# Folder of src/ -> the folders of src/ that its files may include. The public headers are open to all.
LAYERS = {
    "backends": {"backends", "lists"},
    "core": {"core", "backends", "lists"},
    "io": {"io", "core", "backends", "lists"},
    "report": {"report", "core", "backends", "lists"},
    "generate": {"generate", "core", "backends", "lists"},
    "formats": {"formats", "core", "backends", "lists"},
    "kernels": {"kernels", "formats", "core", "backends", "lists"},
    "solvers": {"solvers", "kernels", "formats", "io", "core", "backends", "lists"},
    "distributed": {"distributed", "solvers", "kernels", "formats", "core", "backends", "lists"},
}
THIRD_PARTY = {"fmt", "nlohmann", "fast_float", "CLI", "xxhash.h", "zlib.h", "zstd.h", "omp.h", "hwy", "Eigen", "CL"}
LONG, TOO_LONG = 600, 700  # lines
FORBIDDEN = {  # in the library: it never prints and never exits
    "prints": re.compile(r"\bstd::(?:cout|cerr|clog|printf|puts)\b|\bfmt::print\(|(?<![\w:.])(?:printf|puts)\("),
    "exits": re.compile(r"(?<![\w.])(?:std::)?(?:exit|quick_exit|_exit|abort)\(|\bstd::terminate\("),
}


def files(*folders):
    return sorted(p for f in folders for p in (ROOT / f).rglob("*") if p.suffix in (".hpp", ".cpp", ".inl"))


def code_of(path):
    """The text without comments and string literals, lines kept."""
    text = path.read_text(encoding="utf-8")
    keep_lines = lambda m: m[0] if m[0][0] == "#" else '""' if m[0][0] == '"' else "\n" * m[0].count("\n")
    return re.sub(r'#\s*include[^\n]*|//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', keep_lines, text, flags=re.DOTALL)


def includes(path):
    return [(kind, name) for kind, name in INCLUDE.findall(path.read_text(encoding="utf-8"))]


def is_standard(name):
    return "/" not in name and "." not in name


def is_system(name):
    return re.fullmatch(r"(?:sys|linux)/\w+\.h|(?:unistd|fcntl|signal|pthread|sched|errno|time|poll|immintrin|dlfcn)\.h", name)


def check_public_headers():
    """include/polyad includes itself and the standard library, nothing else."""
    for path in files("include"):
        for kind, name in includes(path):
            if not ((kind == '"' and name.startswith("polyad/")) or (kind == "<" and is_standard(name))):
                yield f"{path.relative_to(ROOT)} includes {name}"


def check_umbrella():
    """polyad/polyad.hpp includes every public header."""
    public = {f"polyad/{p.name}" for p in (ROOT / "include/polyad").glob("*.hpp")} - {"polyad/polyad.hpp"}
    named = {name for _, name in includes(ROOT / "include/polyad/polyad.hpp")}
    for name in sorted(public - named):
        yield f"include/polyad/polyad.hpp does not include {name}"


def check_library():
    """src/: each folder includes only what lies before it."""
    for path in files("src"):
        folder = path.relative_to(ROOT / "src").parts[0]
        if folder not in LAYERS:
            yield f"{path.relative_to(ROOT)}: the folder {folder} has no place in tests/layers"
            continue
        for _, name in includes(path):
            if name.startswith("polyad/") or is_standard(name) or is_system(name):
                continue
            if name.split("/")[0] in THIRD_PARTY and "CLI" not in name:
                continue
            target = name.split("/")[0] if "/" in name else folder
            if target not in LAYERS[folder]:
                yield f"{path.relative_to(ROOT)} includes {name}"


def check_tool():
    """cli/ and examples/ include the public headers, their own and other people's libraries."""
    for path in files("cli", "examples"):
        for _, name in includes(path):
            own = (ROOT / "cli" / name).exists() or name.startswith("cli/")
            if not (own or name.startswith("polyad/") or is_standard(name) or is_system(name)
                    or name.split("/")[0] in THIRD_PARTY):
                yield f"{path.relative_to(ROOT)} includes {name}"


def check_manners_of_the_library():
    """The library never prints, never exits, and starts threads in backends/cpu only."""
    for path in files("include", "src"):
        code = code_of(path)
        for what, pattern in FORBIDDEN.items():
            for hit in pattern.finditer(code):
                yield f"{path.relative_to(ROOT)}:{code.count(chr(10), 0, hit.start()) + 1} {what}: {hit[0]}"
        if "src/backends" not in path.as_posix():
            for hit in re.finditer(r"#\s*pragma\s+omp|\bstd::j?thread\b(?!::)", code):
                yield f"{path.relative_to(ROOT)}:{code.count(chr(10), 0, hit.start()) + 1} starts threads: {hit[0]}"


def check_first_lines():
    """Every source file begins with the SPDX line; every header has #pragma once, but those that Highway includes again."""
    for path in files("include", "src", "cli", "tests", "bench", "examples"):
        text = path.read_text(encoding="utf-8")
        if not text.startswith("// SPDX-License-Identifier: MIT\n"):
            yield f"{path.relative_to(ROOT)} does not begin with the SPDX line"
        once_per_target = path.name.endswith("-inl.hpp")  # Highway's: compiled once per instruction set
        if path.suffix == ".hpp" and not once_per_target and "#pragma once" not in text:
            yield f"{path.relative_to(ROOT)} has no #pragma once"


def check_length():
    """A source file is one idea: at 600 lines it wants to be two, beyond 700 it has to be."""
    for path in files("include", "src", "cli", "tests", "bench", "examples"):
        lines = path.read_text(encoding="utf-8").count("\n")
        if lines > TOO_LONG:
            yield f"{path.relative_to(ROOT)} has {lines} lines, at most {TOO_LONG} are allowed"
        elif lines > LONG:
            print(f"note: {path.relative_to(ROOT)} has {lines} lines, more than {LONG}")


def check_lists():
    """src/lists: no name twice, and a list is empty only where it says "None yet"."""
    for path in sorted((ROOT / "src/lists").glob("*.list")):
        text = path.read_text(encoding="utf-8")
        names = re.findall(r"^POLYAD_\w+\((\w+)", text, re.MULTILINE)
        if not names and "None yet" not in text:
            yield f"{path.relative_to(ROOT)} names nothing"
        for name in sorted({n for n in names if names.count(n) > 1}):
            yield f"{path.relative_to(ROOT)} names {name} twice"


def main():
    checks = [f for name, f in globals().items() if name.startswith("check_")]
    failed = 0
    if not files("include", "src"):
        print("no source files found")
        checks, failed = [], 1
    for check in checks:
        problems = list(check())
        for problem in problems:
            print(f"{check.__name__}: {problem}")
        failed += bool(problems)
    print(f"{len(checks) - min(failed, len(checks))} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
