#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Outputs appear whole or not at all: full disks, kills, interrupts, closed pipes, bad paths."""

import errno
import fcntl
import os
import resource
import shutil
import signal
import stat
import subprocess
import time

from harness import (GOOD, MB, WORK, Call, check, equal, finish, folder, is_sentence, listing, refused, run, skip, text,
                     write)

BIG_NNZ = 600_000
OUTPUTS = ("y.tns", "y.tns.gz", "y.tns.zst", "y.ptn", "y.ptn.gz", "y.npz", "y.bin", "y.sptn", "y.alto", "y.csv")


def make_big():
    """A tensor that takes a moment to write; read from .ptn at once."""
    r = run("generate", "big.ptn", "--dims", "1000x2000x3000", "--nnz", str(BIG_NNZ), "--quiet")
    check(r.code == 0, "a large tensor", r)


def limit_file_size(size):
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def full_disks():
    for name in OUTPUTS:
        here = folder("full")
        write(f"full/{name}", "old")
        # with the signal ignored, as under Python's and many shells' children, and with its default: to die of it
        for restore in (False, True) if name in ("y.tns", "y.ptn.gz") else (False,):
            r = run("convert", "big.ptn", f"full/{name}", setup=limit_file_size(MB), restore_signals=restore)
            refused(r, f"{name} larger than allowed, SIGXFSZ {'default' if restore else 'ignored'}", f"full/{name}",
                    says=os.strerror(errno.EFBIG))
        equal((listing(here), text(f"full/{name}")), ([name], "old"), f"{name}: the old file survives alone")
    folder("full")
    r = run("generate", "full/x.tns", "--dims", "1000x1000", "--nnz", "200000", setup=limit_file_size(MB),
            restore_signals=False)
    refused(r, "generate into a full disk", "full/x.tns")
    write("zeros.tns", "".join(f"{i} 1 1\n" for i in range(1, 200_000)) + "1 1 0\n")
    r = run("check", "zeros.tns", "--fix", "full/x.tns", setup=limit_file_size(MB), restore_signals=False)
    refused(r, "--fix into a full disk", "full/x.tns", stdout=True)
    r = run("info", "zeros.tns", "--json", "full/i.json", "--quiet", setup=limit_file_size(100), restore_signals=False)
    refused(r, "JSON into a full disk", "full/i.json")
    equal(listing(WORK / "full"), [], "nothing is left on the full disk")
    for args in (["convert", "big.ptn", "-", "--quiet"], ["info", "zeros.tns"], ["info", "zeros.tns", "--json", "-"],
                 ["list", "formats"]):
        with open("/dev/full", "wb") as full:
            refused(run(*args, stdout=full), f"{' '.join(args)} > /dev/full", "standard output")
    refused(run("convert", "big.ptn", "/dev/full", "--to", "frostt"), "/dev/full as a file", "/dev/full",
            says=os.strerror(errno.ENOSPC))

    # A real full disk, where one may mount one.
    disk = folder("disk")
    script = 'mount -t tmpfs -o size=1m polyad-test "$1" && shift && "$@"; code=$?; ls -A "$DISK" >&2; exit $code'
    probe = subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", disk, "true"], capture_output=True,
                           env={**os.environ, "DISK": str(disk)}) if shutil.which("unshare") else None
    if probe is None or probe.returncode != 0:
        return skip("a full tmpfs", "mounting one needs root and unshare")
    for name in ("y.tns", "y.tns.gz", "y.ptn", "y.npz"):
        r = run("convert", "big.ptn", disk / name, wrapper=["unshare", "-m", "sh", "-c", script, "sh", disk],
                env={"DISK": str(disk)}, address_space=None)
        refused(r, f"{name} on a full disk", name,
                says=os.strerror(errno.ENOSPC))  # ls would add a line for each file left
    return None


def written_so_far(call, path):
    """Bytes in the file without a name (or the hidden one) that the tool writes into the folder."""
    for fd in os.listdir(f"/proc/{call.pid}/fd"):
        target = os.readlink(f"/proc/{call.pid}/fd/{fd}")
        if target.startswith(str(path) + "/") and "big.ptn" not in target:
            return os.stat(f"/proc/{call.pid}/fd/{fd}").st_size
    return 0


def stopped_while_writing(name, number, setup=None):
    """Sends a signal while the output is being written; (what happened, the files there were meanwhile), or None if we
    came too late five times."""
    here = WORK / "stop"
    for _ in range(5):
        folder("stop")
        write(f"stop/{name}", "old")
        call = Call("convert", "big.ptn", f"stop/{name}", "--threads", "1", "--quiet", setup=setup)
        end = time.monotonic() + 20
        while time.monotonic() < end and not os.waitid(os.P_PID, call.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            try:
                if written_so_far(call, here) == 0:
                    continue
            except OSError:
                continue
            call.signal(signal.SIGSTOP)
            meanwhile = listing(here)
            call.signal(number)
            call.signal(signal.SIGCONT)
            break
        r = call.finish()
        if r.code != 0:
            return r, meanwhile
    return None, None


def kills():
    for name in ("y.tns.gz", "y.tns.zst", "y.ptn.gz", "y.csv"):
        for number, code in ((signal.SIGKILL, -9), (signal.SIGINT, 130), (signal.SIGTERM, 143)):
            what = f"{name}, {number.name}"
            r, meanwhile = stopped_while_writing(name, number)
            if r is None:
                check(False, what, "the tool was always done before the signal came")
                continue
            equal(r.code, code, f"{what}: exit code")
            if number != signal.SIGKILL:
                check(len(r.lines) <= 1 and not r.out, f"{what}: at most one line", r)
            equal(meanwhile, [name], f"{what}: nothing has a name while it is written")
            equal((listing(WORK / "stop"), text(f"stop/{name}")), ([name], "old"),
                  f"{what}: nothing is left, the old file survives")

    # while reading from a pipe that gives nothing more
    for what, data in (("in the middle", b"1 2 3 4\n" * 100_000 + b"1 2"), ("before the first byte", b"")):
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            folder("stop")
            out, into = os.pipe()
            fcntl.fcntl(into, fcntl.F_SETPIPE_SZ, MB)
            os.write(into, data)
            call = Call("convert", "-", "stop/y.tns", stdin=out, timeout=3)
            os.close(out)
            time.sleep(0.3)
            call.signal(number)
            r = call.finish()
            os.close(into)
            check(r.code == code and len(r.lines) <= 1, f"{number.name} while waiting for standard input {what}", r)
            equal(listing(WORK / "stop"), [], f"{number.name} while waiting for standard input {what}: nothing is left")
    folder("stop")
    os.mkfifo(WORK / "stop/fifo")
    call = Call("info", "stop/fifo", timeout=3)
    time.sleep(0.3)
    call.signal(signal.SIGTERM)
    r = call.finish()
    check(r.code == 143 and len(r.lines) <= 1, "SIGTERM while a FIFO has no writer", r)
    # generating
    call = Call("generate", "stop/x.ptn", "--dims", "100000x100000x100000", "--nnz", "30M", timeout=20,
                address_space=None)
    time.sleep(0.5)
    call.signal(signal.SIGTERM)
    r = call.finish()
    check(r.code == 143 and r.seconds < 4, "SIGTERM while generating", r)
    equal(listing(WORK / "stop"), ["fifo"], "SIGTERM while generating: nothing is left")


def failures_keep_the_old_file():
    here = folder("old")
    write("bad.tns", GOOD + "1 x 1 1\n")
    for name in OUTPUTS:
        write(f"old/{name}", "old")
        refused(run("convert", "bad.tns", f"old/{name}"), f"bad input for {name}", "bad.tns", 4)
        equal(text(f"old/{name}"), "old", f"{name} survives bad input")
    equal(listing(here), sorted(OUTPUTS), "nothing else appears")


def paths():
    here = folder("paths")
    write("paths/x.tns", GOOD)
    os.mkdir(here / "dir.tns")
    for name in ("dir.tns", "missing/y.tns", "x.tns/y.tns"):
        refused(run("convert", "paths/x.tns", f"paths/{name}"), f"writing to {name}", f"paths/{name}")
        refused(run("generate", f"paths/{name}", "--dims", "3x3", "--nnz", "3"), f"generating to {name}",
                f"paths/{name}")
        refused(run("info", "paths/x.tns", "--json", f"paths/{name}"), f"JSON to {name}", f"paths/{name}", stdout=True)
    equal(listing(here), ["dir.tns", "x.tns"], "nothing appears")

    os.symlink("target.tns", here / "link.tns")
    write("paths/target.tns", "old")
    equal(run("convert", "paths/x.tns", "paths/link.tns", "--quiet").code, 0, "through a link")
    check((here / "link.tns").is_symlink() and text("paths/target.tns") == GOOD,
          "the link stays, its target is written")
    os.symlink("dangling.tns", here / "new.tns")
    equal(run("convert", "paths/x.tns", "paths/new.tns", "--quiet").code, 0, "through a link to nothing")
    check((here / "new.tns").is_symlink() and os.path.exists(here / "dangling.tns"),
          "the link stays, its target appears", listing(here))

    for umask, mode in ((0o022, 0o644), (0o077, 0o600)):
        run("convert", "paths/x.tns", "paths/mode.tns", "--quiet", setup=lambda: os.umask(umask))
        equal(stat.S_IMODE(os.stat(here / "mode.tns").st_mode), mode, f"permissions follow the umask {umask:o}")
        os.remove(here / "mode.tns")
    for name in ("with blank.tns", "ünï.tns", "-dash.tns", "a" * 240 + ".tns", ".hidden.tns", "x.y.z.tns"):
        r = run("convert", "x.tns", "--quiet", "--", name, cwd=here)
        check(r.code == 0 and (here / name).read_text() == GOOD, f"a file called {name[:40]}", r)
    refused(run("convert", "x.tns", "b" * 256 + ".tns", cwd=here), "a name too long for the file system", "bbb")
    r = run("convert", "x.tns", "c" * 251 + ".tns", cwd=here)
    check(r.code == 0 or not is_sentence(r, "ccc"), "the longest name", r)
    if r.code == 0:
        equal((here / ("c" * 251 + ".tns")).read_text(), GOOD, "the longest name: content")
    folder("closed")
    if os.getuid() != 0:
        os.chmod(WORK / "closed", 0o555)
        refused(run("convert", "paths/x.tns", "closed/y.tns"), "a folder without permission to write", "closed/y.tns")
        os.chmod(WORK / "closed", 0o755)
    os.mkfifo(here / "fifo.tns")
    call = Call("convert", "paths/x.tns", "paths/fifo.tns", "--quiet")
    equal((open(here / "fifo.tns").read(), call.finish().code), (GOOD, 0), "a FIFO is written directly")


def closed_pipes():
    write("short.tns", GOOD)
    for args in (["convert", "big.ptn", "-", "--quiet"], ["convert", "big.ptn", "-", "--quiet", "--to", "ptn"],
                 ["convert", "big.ptn", "-", "--quiet", "--to", "npz"],
                 ["convert", "big.ptn", "-", "--quiet", "--to", "csv"],
                 ["generate", "-", "--dims", "1000x1000", "--nnz", "300000", "--quiet"]):
        out, into = os.pipe()
        call = Call(*args, stdout=into)
        os.close(into)
        os.read(out, 10)  # as head -1 does, then goes away
        os.close(out)
        r = call.finish()
        equal((r.code, r.err), (128 + signal.SIGPIPE, ""), f"{' '.join(args)} | head -1 ends quietly")
    for args in (["info", "short.tns"], ["info", "short.tns", "--json", "-"], ["check", "short.tns"],
                 ["list", "dialects"], ["convert", "short.tns", "-"]):
        out, into = os.pipe()
        os.close(out)
        call = Call(*args, stdout=into)
        os.close(into)
        r = call.finish()
        lines = [l for l in r.lines if "->" not in l]
        equal((r.code, lines), (128 + signal.SIGPIPE, []), f"{' '.join(args)} into a closed pipe ends quietly")
    out, into = os.pipe()
    os.close(out)
    call = Call("cpd", "short.tns", "--rank", "1", "--out", "unheard", "--json", "unheard.json", stdout=into)
    os.close(into)
    check(call.finish().code == 128 + signal.SIGPIPE and (WORK / "unheard/model.ktensor").exists()
          and (WORK / "unheard.json").exists(), "what was asked to be kept is kept", listing())
    r = run("info", "short.tns", setup=lambda: os.close(1))
    check(r.code == 1 and len(r.lines) == 1 and r.lines[0].startswith("polyad: "), "info with closed standard output",
          r)
    folder("closed")
    for closed in ((1,), (2,), (1, 2), (0, 1, 2)):
        r = run("convert", "short.tns", "closed/y.tns", setup=lambda: [os.close(fd) for fd in closed])
        check(r.code in (0, 1), f"convert with {closed} closed", r)
        equal(text("closed/y.tns"), GOOD, f"convert with {closed} closed: the file is whole, and nothing else is in it")
        os.remove(WORK / "closed/y.tns")
    equal(run("info", "missing.tns", setup=lambda: os.close(2)).code, 1,
          "an error that nobody can read is still exit 1")
    equal(run("info", "missing.tns", setup=lambda: os.dup2(os.open("/dev/full", os.O_WRONLY), 2)).code, 1,
          "nor when standard error is full")


make_big()
full_disks()
kills()
failures_keep_the_old_file()
paths()
closed_pipes()
finish()
