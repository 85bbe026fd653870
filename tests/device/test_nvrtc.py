#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compiles every kernel text of src/device with NVRTC, which needs no GPU, for several generations of NVIDIA's, and
reads registers, spills and shared memory of each kernel from what comes out.

  test_nvrtc.py                 compiles, checks the bounds, compares with docs/gpu-kernels.md
  test_nvrtc.py --write         writes docs/gpu-kernels.md anew
  test_nvrtc.py --library FILE  takes this libnvrtc; else one of the system, else the wheel nvidia-cuda-nvrtc

Ends with "N passed, N failed, N skipped". Without NVRTC everything is skipped."""

import argparse
import ctypes
import glob
import itertools
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEVICE = ROOT / "src/device"
PAGE = ROOT / "docs/gpu-kernels.md"
ARCHITECTURES = ("75", "80", "90", "120")  # Turing, Ampere, Hopper, Blackwell
PRECISIONS = (("f32", 32), ("f64", 64))
# Registers of a work-item, by how a text's name begins. 256 work-items of 64 are a quarter of the 65,536 of a
# multiprocessor, four groups that hide each other's memory latency. MTTKRP keeps a row pointer per mode and sums of rows;
# with 128, for six modes and 64-bit indices, two groups are left.
BOUND = {"ttv": 64, "": 128}


def bound_of(unit):
    return next(most for begin, most in BOUND.items() if unit.startswith(begin))


ROWS = {"PD_ITEMS_0": "32", "PD_ITEMS_1": "8"}  # lanes and workers of MTTKRP, fibres and slices of HOCFS
FIBRES = {"PD_ITEMS_0": "128", "PD_ITEMS_1": "1"}


def variant(width, items, **numbers):
    """Defines besides those of all kernels: the width of indices and positions, the group, PD_ and the others."""
    return {**{f"PD_{name}": width for name in ("INDEX", "OFFSET", "SLICE_OFFSET")}, **items,
            **{f"PD_{name}": str(value) for name, value in numbers.items()}}


# Text -> the variants it is compiled in: each kind of group, seam and level, both widths, a low and a high order.
SEAMS = [variant("u32", ROWS, ORDER=3, SEAMS=0, CHUNK=256), variant("u64", ROWS, ORDER=6, SEAMS=1, CHUNK=256)]
VARIANTS = {
    "add_seams": [variant("u32", ROWS)],
    "mttkrp_coo": [variant("u32", ROWS, ORDER=3, SEAMS=0, INTERLEAVED=0, COLUMNS=4),
                   variant("u32", ROWS, ORDER=6, SEAMS=1, INTERLEAVED=1, COLUMNS=1),
                   variant("u64", ROWS, ORDER=3, SEAMS=1, INTERLEAVED=1, COLUMNS=4)],
    "mttkrp_csl": SEAMS,
    "mttkrp_f_coo": SEAMS,
    "mttkrp_hicoo": SEAMS,
    "mttkrp_tree": [variant(width, ROWS, ORDER=order, LEVEL=level, RUNS=runs, SEAMS=seams, BINS=2)
                    for width, order, level, runs, seams in (("u32", 3, 0, 1, 0), ("u64", 4, 0, 1, 1), ("u32", 6, 0, 0, 2), ("u64", 6, 0, 2, 1),
                                                             ("u32", 3, 1, 2, 0), ("u32", 3, 2, 2, 0), ("u64", 6, 3, 2, 0))],
    "solve_rows": [variant("u32", {"PD_ITEMS_0": side, "PD_ITEMS_1": side}) for side in ("8", "16")],
    "ttv_fibres": [variant("u32", FIBRES), variant("u64", FIBRES)],
    "ttv_hocfs": [variant("u32", ROWS), variant("u64", ROWS)],
    "ttv_hocoo": [variant("u32", FIBRES, ORDER=3, CHUNK=1024), variant("u64", FIBRES, ORDER=6, CHUNK=1024)],
}

HEAD = """# Kernels on NVIDIA's GPUs: registers, spills, shared memory

Written by `tests/device/test_nvrtc.py --write`. NVRTC compiles every kernel text for four generations of GPUs; no GPU is needed for that, and nothing here is a
time. "Spills" are bytes of registers that went to memory: there must be none. A kernel of SpTV may have {ttv} registers a work-item, so that
four groups of 256 fit the 65,536 registers of a multiprocessor, the others {others}: two groups. Numbers are the largest over the variants (index width, order, columns) of a kernel.

NVRTC {version}; {kernels} kernels, {compiled} compilations.

"""


class Nvrtc:
    """The few calls of libnvrtc that are needed."""

    def __init__(self, library):
        self.library = ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
        major, minor = ctypes.c_int(), ctypes.c_int()
        self.library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
        self.version = f"{major.value}.{minor.value}"

    def text_of(self, program, what):
        size = ctypes.c_size_t()
        getattr(self.library, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
        text = ctypes.create_string_buffer(size.value)
        getattr(self.library, f"nvrtcGet{what}")(program, text)
        return text.raw[: size.value]

    def compile(self, source, name, options):
        """The cubin; RuntimeError with the compiler's words."""
        program = ctypes.c_void_p()
        self.library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), name.encode(), 0, None, None)
        array = (ctypes.c_char_p * len(options))(*[o.encode() for o in options])
        status = self.library.nvrtcCompileProgram(program, len(options), array)
        log = self.text_of(program, "ProgramLog").decode(errors="replace").strip("\0\n ")
        if status != 0:
            raise RuntimeError(log or f"NVRTC's status is {status}")
        cubin = self.text_of(program, "CUBIN")
        self.library.nvrtcDestroyProgram(ctypes.byref(program))
        return cubin


def find_library(folder):
    """A libnvrtc of the system or of the wheel; None when there is none and the wheel cannot be had."""
    for pattern in ("/usr/lib/x86_64-linux-gnu/libnvrtc.so.1[2-9]*", "/usr/local/cuda*/lib*/libnvrtc.so.1[2-9]*"):
        for found in sorted(glob.glob(pattern), reverse=True):
            return found
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, "nvidia-cuda-nvrtc==13.0.88"]
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=300)
    except (OSError, subprocess.SubprocessError):
        return None
    for wheel in pathlib.Path(folder).glob("*.whl"):
        zipfile.ZipFile(wheel).extractall(folder)
    for builtins in pathlib.Path(folder).rglob("libnvrtc-builtins.so.*"):  # NVRTC opens it by name
        ctypes.CDLL(str(builtins), mode=ctypes.RTLD_GLOBAL)
    return next((p for p in pathlib.Path(folder).rglob("libnvrtc.so.*")), None)


def facts_of(cubin):
    """Kernel -> registers, spills, shared bytes. A cubin is an ELF file; .nv.info holds records {format, attribute,
    size}: attribute 0x2f is {symbol, registers}, 0x11 {symbol, bytes of the frame}, where spilled registers go and
    arrays that the compiler could not keep in registers."""
    sections_at, = struct.unpack_from("<Q", cubin, 0x28)
    entry, count, names_at = struct.unpack_from("<HHH", cubin, 0x3A)
    sections = []
    for k in range(count):
        name, kind, _, _, offset, size, link, info, _, _ = struct.unpack_from("<IIQQQQIIQQ", cubin, sections_at + k * entry)
        sections.append((name, kind, offset, size, link, info))

    def string(table, at):
        begin = sections[table][2] + at
        return cubin[begin:cubin.index(b"\0", begin)].decode()

    named = {string(names_at, s[0]): s for s in sections}
    symbols = named[".symtab"]
    symbol_names = [string(symbols[4], struct.unpack_from("<I", cubin, symbols[2] + at)[0]) for at in range(0, symbols[3], 24)]
    facts = {name[len(".text."):]: {"registers": 0, "spills": 0, "shared": 0} for name in named if name.startswith(".text.")}
    for kernel, f in facts.items():
        f["shared"] = named.get(f".nv.shared.{kernel}", (0, 0, 0, 0))[3]
    at = named[".nv.info"][2]
    end = at + named[".nv.info"][3]
    while at < end:
        form, attribute, size = struct.unpack_from("<BBH", cubin, at)
        at += 4
        if form != 4:  # the value is in `size`
            continue
        if attribute in (0x2F, 0x11) and size == 8:
            symbol, value = struct.unpack_from("<II", cubin, at)
            if symbol_names[symbol] in facts:
                facts[symbol_names[symbol]]["registers" if attribute == 0x2F else "spills"] = value
        at += size
    return facts


def spilling_text():
    """A kernel that cannot but spill: proof that spills are seen."""
    return """PD_KERNEL void spills(PD_GLOBAL real* out) {
      real keep[64];
      for (u32 k = 0; k < 64; ++k) keep[k] = out[k];
      for (u32 k = 0; k < 64; ++k) out[(u32)out[k]] = keep[(u32)out[k] % 64];
    }"""


def text_of(unit):
    """A text with those that it includes, as the library puts them together."""
    text = (DEVICE / f"{unit}.h").read_text()
    return re.sub(r'^#include "(\w+)\.h"$', lambda m: text_of(m[1]), text, flags=re.MULTILINE)


class Table:
    def __init__(self, nvrtc):
        self.nvrtc = nvrtc
        self.prelude = (DEVICE / "prelude_cuda.h").read_text()
        self.rows = {}  # (unit, kernel, precision) -> architecture -> facts, the largest over the variants
        self.passed = self.failed = self.compiled = 0

    def check(self, good, sentence):
        self.passed += good
        self.failed += not good
        if not good:
            print(f"FAILED: {sentence}")

    def compile(self, name, text, architecture, bits, defines):
        options = [f"--gpu-architecture=sm_{architecture}", "--std=c++14", "-DPD_ATOMIC_F32=1", "-DPD_ATOMIC_F64=1",
                   f"-DPD_REAL_BITS={bits}"] + [f"-D{k}={v}" for k, v in defines.items()]
        return facts_of(self.nvrtc.compile(self.prelude + text, name, options))

    def unit(self, unit):
        text = text_of(unit)
        for defines, (precision, bits), architecture in itertools.product(VARIANTS[unit], PRECISIONS, ARCHITECTURES):
            what = " ".join(f"{k}={v}" for k, v in defines.items())
            place = f"{unit} ({what}), {precision}, sm_{architecture}"
            try:
                found = self.compile(f"{unit}.h", text, architecture, bits, defines)
            except RuntimeError as e:
                self.check(False, f"{place} does not compile:\n{e}")
                continue
            self.compiled += 1
            for kernel, facts in found.items():
                self.check(facts["registers"] > 0, f"{kernel} of {place}: no register count found")
                self.check(facts["spills"] == 0, f"{kernel} of {place} spills {facts['spills']} bytes")
                self.check(facts["registers"] <= bound_of(unit),
                           f"{kernel} of {place} has {facts['registers']} registers, more than {bound_of(unit)}")
                self.check(facts["shared"] <= 32768, f"{kernel} of {place} has {facts['shared']} bytes of shared memory")
                row = self.rows.setdefault((unit, kernel, precision), {})
                largest = row.setdefault(architecture, dict(facts))
                for key, value in facts.items():
                    largest[key] = max(largest[key], value)

    def page(self):
        lines = ["| kernel | text | precision | " + " | ".join(f"sm_{a}" for a in ARCHITECTURES) + " | spills | shared bytes |",
                 "|---|---|---|" + "---|" * (len(ARCHITECTURES) + 2)]
        for (unit, kernel, precision), row in sorted(self.rows.items()):
            registers = " | ".join(str(row[a]["registers"]) if a in row else "-" for a in ARCHITECTURES)
            spills = max(f["spills"] for f in row.values())
            shared = max(f["shared"] for f in row.values())
            lines.append(f"| `{kernel}` | `{unit}.h` | {precision} | {registers} | {spills} | {shared:,} |")
        kernels = len({(unit, kernel) for unit, kernel, _ in self.rows})
        return HEAD.format(ttv=BOUND["ttv"], others=BOUND[""], version=self.nvrtc.version, kernels=kernels, compiled=self.compiled) + "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--library")
    options = parser.parse_args()
    units = sorted(p.stem for p in DEVICE.glob("*.h") if re.search(r"^PD_KERNEL void", p.read_text(), re.MULTILINE))
    with tempfile.TemporaryDirectory() as folder:
        library = options.library or find_library(folder)
        if library is None:
            print(f"NVRTC is not here and its wheel cannot be had\n0 passed, 0 failed, {len(units)} skipped")
            return 0
        table = Table(Nvrtc(library))
        table.check(bool(units), "there are no kernel texts")
        for unit in units:
            if unit in VARIANTS:
                table.unit(unit)
            else:
                table.check(False, f"{unit}.h is not among the VARIANTS of this script: with which defines is it compiled?")
        spilled = table.compile("spills.h", spilling_text(), "80", 32, {})["spills"]["spills"]
        table.check(spilled > 0, "a kernel that must spill was not seen to")
        if options.write:
            PAGE.write_text(table.page())
        names = {f"`{kernel}`" for _, kernel, _ in table.rows}
        listed = set(re.findall(r"^\| (`\w+`)", PAGE.read_text(), re.MULTILINE)) if PAGE.exists() else set()
        table.check(names == listed, f"{PAGE.name} does not list these kernels: {', '.join(sorted(names ^ listed))}; "
                    "write it anew with --write")
    print(f"{table.compiled} compilations by NVRTC {table.nvrtc.version}")
    print(f"{table.passed} passed, {table.failed} failed, 0 skipped")
    return 1 if table.failed else 0


if __name__ == "__main__":
    sys.exit(main())
