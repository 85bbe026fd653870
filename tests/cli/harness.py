# SPDX-License-Identifier: MIT
"""What the tests of the tool share: run it in a folder of its own, look at everything it did, count.

POLYAD is the tool to test (default: build/polyad of this repository). A script ends with finish(), which prints
"N passed, N failed[, N skipped]" and exits.
"""

import atexit
import json
import os
import pathlib
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
POLYAD = os.path.abspath(os.environ.get("POLYAD", ROOT / "build" / "polyad"))
# A sanitizer reserves terabytes of addresses and keeps freed memory: limits and memory mean nothing then.
SANITIZED = bool(os.environ.get("POLYAD_SANITIZED"))
WORK = pathlib.Path(tempfile.mkdtemp(prefix="polyad-cli-"))
atexit.register(shutil.rmtree, WORK, ignore_errors=True)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the folder is removed then too

# Threads that wait asleep: beside other work, small calls with two threads take a third of the time.
QUICK = {"OMP_WAIT_POLICY": "passive"}

MB = 1 << 20
SLOW = 5.0  # seconds; a refusal takes milliseconds, but the machine may be busy

counts = {"passed": 0, "failed": 0, "skipped": 0}


def check(ok, name, why=""):
    """Counts one test; a failed one is printed. Returns ok."""
    counts["passed" if ok else "failed"] += 1
    if not ok:
        print(f"FAIL {name}: {why}", flush=True)
    return bool(ok)


def equal(found, expected, name):
    if found == expected:
        return check(True, name)
    a, b = str(found), str(expected)
    same = os.path.commonprefix([a, b]).rfind("\n") + 1 if len(a) + len(b) > 400 else 0  # long texts: where they part
    place = f" (from character {same} on)" if same else ""
    return check(False, name, f"found {a[same:same + 200]!r}, expected {b[same:same + 200]!r}{place}")


def skip(name, why):
    counts["skipped"] += 1
    print(f"skipped {name}: {why}", flush=True)


def finish():
    skipped = f", {counts['skipped']} skipped" if counts["skipped"] else ""
    print(f"{counts['passed']} passed, {counts['failed']} failed{skipped}", flush=True)
    sys.exit(counts["failed"] != 0 or counts["passed"] + counts["skipped"] == 0)


class Run:
    """One finished call of the tool: code (negative: killed by that signal), out, err, seconds, rss (bytes)."""

    def __init__(self, code, out, err, seconds, rss):
        self.code, self.raw, self.seconds, self.rss = code, out, seconds, 0 if SANITIZED else rss
        self.out = out.decode(errors="replace")
        self.err = err.decode(errors="replace")
        self.lines = self.err.splitlines()

    @property
    def json(self):
        return json.loads(self.out)

    def __str__(self):
        return f"exit {self.code} after {self.seconds:.1f} s, stderr {self.err[:300]!r}, stdout {self.out[:100]!r}"


class Call:
    """A call of the tool that may still run. Its output goes to files without names, so that it never waits for us."""

    def __init__(self, *args, input=None, stdin=None, stdout=None, env=None, cwd=None, address_space=2 << 30,
                 setup=None, wrapper=(), restore_signals=True, timeout=30):
        self.out, self.err = tempfile.TemporaryFile(), tempfile.TemporaryFile()
        if input is not None:
            stdin = tempfile.TemporaryFile()
            stdin.write(input if isinstance(input, bytes) else input.encode())
            stdin.seek(0)

        def limits():
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            if address_space and not SANITIZED:
                resource.setrlimit(resource.RLIMIT_AS, (address_space, address_space))
            if setup:
                setup()

        self.begin = time.monotonic()
        self.process = subprocess.Popen(
            [*map(str, wrapper), POLYAD, *map(str, args)], cwd=cwd or WORK, preexec_fn=limits,
            stdin=subprocess.DEVNULL if stdin is None else stdin, stdout=self.out if stdout is None else stdout,
            stderr=self.err, env={**os.environ, **QUICK, **(env or {})}, restore_signals=restore_signals)
        if input is not None:
            stdin.close()
        self.pid = self.process.pid
        self.timer = threading.Timer(timeout, self.process.kill)
        self.timer.daemon = True
        self.timer.start()

    def signal(self, number):
        os.kill(self.pid, number)

    def finish(self):
        _, status, usage = os.wait4(self.pid, 0)
        seconds = time.monotonic() - self.begin
        self.timer.cancel()
        self.process.returncode = os.waitstatus_to_exitcode(status)  # Popen need not ask any more
        texts = []
        for file in (self.out, self.err):
            file.seek(0)
            texts.append(file.read())
            file.close()
        return Run(self.process.returncode, *texts, seconds, usage.ru_maxrss * 1024)


def run(*args, **how):
    """Runs the tool to its end; see Call for what can be said about how."""
    return Call(*args, **how).finish()


def info(*args, **how):
    """The JSON of `info`, or what happened instead, as text."""
    r = run("info", *args, "--json", "-", **how)
    try:
        return r.json if r.code == 0 and not [l for l in r.lines if not l.startswith("polyad: note: ")] else str(r)
    except ValueError:
        return str(r)


def write(name, data):
    """Writes a file of the working folder; returns its name."""
    path = WORK / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return name


def text(name):
    return (WORK / name).read_bytes().decode(errors="replace")


def folder(name):
    """An empty folder in the working folder."""
    shutil.rmtree(WORK / name, ignore_errors=True)
    (WORK / name).mkdir(parents=True)
    return WORK / name


def listing(path=WORK):
    """Every file below a folder, hidden ones too."""
    return sorted(str(p.relative_to(path)) for p in pathlib.Path(path).rglob("*"))


def is_sentence(r, file=None, line=None, code=1):
    """Did the tool refuse in one line that names file and line? Returns what is wrong, or ''."""
    if r.code != code:
        return f"expected exit {code}: {r}"
    if len(r.lines) != 1 or not r.lines[0].startswith("polyad: ") or not r.err.endswith("\n"):
        return f"expected one line on stderr that begins with 'polyad: ': {r}"
    if any(ord(c) < 32 for c in r.lines[0]):
        return f"control characters in {r.lines[0]!r}"
    place = (file or "") + (f":{line}:" if line else "")
    if place not in r.lines[0]:
        return f"expected {place!r} in {r.lines[0]!r}"
    return ""


def refused(r, name, file=None, line=None, says="", rss=150 * MB, stdout=False):
    """Checks a call that had to fail: exit 1, one sentence, quickly, in little memory, nothing on standard output."""
    why = is_sentence(r, file, line)
    if not why and says not in r.err:
        why = f"expected {says!r} in {r.err!r}"
    if not why and r.out and not stdout:
        why = f"found {r.out[:100]!r} on standard output"
    if not why and r.seconds > SLOW:
        why = f"took {r.seconds:.1f} s"
    if not why and r.rss > rss:
        why = f"took {r.rss // MB} MB"
    return check(not why, name, why)


# ---- files of other programs, made by their definitions (0-based rows of indices and a value)

GOOD = "1 1 1 1.5\n2 3 4 2\n3 2 1 -0.001\n"
DIMS, ROWS = (3, 3, 4), ((0, 0, 0, 1.5), (1, 2, 3, 2.0), (2, 1, 0, -0.001))


def splatt(dims=DIMS, rows=ROWS, order=None, nnz=None, magic=0, index=8, value=8):
    i, v = {4: "I", 8: "Q"}.get(index, "Q"), {4: "f", 8: "d"}.get(value, "d")
    head = [len(dims) if order is None else order, *dims, len(rows) if nnz is None else nnz]
    columns = b"".join(struct.pack(f"<{len(rows)}{i}", *(row[m] for row in rows)) for m in range(len(dims)))
    return (struct.pack("<iQQ", magic, index, value) + struct.pack(f"<{len(head)}{i}", *head) + columns
            + struct.pack(f"<{len(rows)}{v}", *(row[-1] for row in rows)))


def genten(dims=DIMS, rows=ROWS, order=None, nnz=None, magic=b"sptn", bits=64, widths=None):
    widths = widths or [32] * len(dims)
    record = "<" + "".join({16: "H", 32: "I", 64: "Q"}.get(w, "I") for w in widths) + {32: "f"}.get(bits, "d")
    return (magic + struct.pack("<II", len(dims) if order is None else order, bits) + struct.pack(f"<{len(dims)}Q",
                                                                                                  *dims)
            + struct.pack(f"<{len(dims)}Q", *widths) + struct.pack("<Q", len(rows) if nnz is None else nnz)
            + b"".join(struct.pack(record, *row) for row in rows))


def alto(dims=DIMS, rows=ROWS, order=None, nnz=None):
    head = [len(dims) if order is None else order, *dims, len(rows) if nnz is None else nnz]
    columns = b"".join(struct.pack(f"<{len(rows)}Q", *(row[m] for row in rows)) for m in range(len(dims)))
    return struct.pack(f"<{len(head)}Q", *head) + columns + struct.pack(f"<{len(rows)}d", *(row[-1] for row in rows))


def npy(descr, shape, data, fortran=False):
    shape_text = "(" + "".join(f"{n}, " for n in shape) + ")"
    head = f"{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape_text}, }}"
    head += " " * (63 - (len(head) + 10) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + data


def zip_of(entries, deflate=False, crc_xor=0):
    """A zip archive of (name, bytes); written out here so that every field can be a lie."""
    out, directory = b"", b""
    for name, data in entries:
        crc = zlib.crc32(data) ^ crc_xor
        packed = data
        if deflate:
            z = zlib.compressobj(9, zlib.DEFLATED, -15)
            packed = z.compress(data) + z.flush()
        fields = struct.pack("<HHHHHIIIHH", 20, 0, 8 if deflate else 0, 0, 33, crc, len(packed), len(data), len(name),
                             0)
        directory += (b"PK\1\2" + struct.pack("<H", 20) + fields + struct.pack("<HHHII", 0, 0, 0, 0, len(out))
                      + name.encode())
        out += b"PK\3\4" + fields + name.encode() + packed
    end = b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, len(entries), len(entries), len(directory), len(out), 0)
    return out + directory + end


def npz(dims=DIMS, rows=ROWS, nnz=None, shape=None, deflate=False, crc_xor=0, without=()):
    n = len(rows) if nnz is None else nnz
    coords = struct.pack(f"<{len(dims) * len(rows)}q", *(row[m] for m in range(len(dims)) for row in rows))
    entries = [("coords.npy", npy("<i8", (len(dims), n), coords)),
               ("data.npy", npy("<f8", (n,), struct.pack(f"<{len(rows)}d", *(row[-1] for row in rows)))),
               ("shape.npy", npy("<i8", (len(shape or dims),),
                                 struct.pack(f"<{len(shape or dims)}q", *(shape or dims)))),
               ("fill_value.npy", npy("<f8", (), struct.pack("<d", 0)))]
    return zip_of([e for e in entries if e[0] not in without], deflate, crc_xor)
