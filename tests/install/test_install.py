#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Installs the release build into a temporary folder and uses it from there: the tool, find_package with the shared and
the static library, pkg-config with both, every public header by itself."""

import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONSUMER = ROOT / "tests" / "install" / "consumer"
TENSOR = "1 1 1 1.5\n2 3 4 -2\n2 1 1 0.25\n"
EXPECTED = re.compile(r"polyad \d+\.\d+\.\d+: order 3, nnz 3, sum -0\.25\n")


def run(*command, **environment):
    """The output of a command; an AssertionError with all of its output when it fails."""
    # The surroundings of the build folder must not help.
    env = {k: v for k, v in os.environ.items() if k not in ("CPATH", "LIBRARY_PATH", "LD_LIBRARY_PATH", "CMAKE_PREFIX_PATH",
                                                            "PKG_CONFIG_PATH", "CXXFLAGS", "LDFLAGS")}
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False, timeout=300,
                          env={**env, **environment})
    shown = " ".join(str(c) for c in command)
    assert done.returncode == 0, f"{shown}\nexit code {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


class Installation:
    def __init__(self, folder):
        self.folder = folder
        self.prefix = folder / "prefix"
        self.tensor = folder / "tiny.tns"
        self.tensor.write_text(TENSOR)
        run("cmake", "--install", ROOT / "build", "--prefix", self.prefix)
        (self.lib,) = {p.parent for p in self.prefix.rglob("libpolyad.so")}

    def use(self, program, **environment):
        out = run(program, self.tensor, self.folder / f"{program.parent.name}.ptn", **environment)
        assert EXPECTED.fullmatch(out), f"printed {out!r}"

    def consumer(self, name, target, prefix):
        build = self.folder / name
        run("cmake", "-S", CONSUMER, "-B", build, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}",
            f"-DPOLYAD_TARGET={target}", "-DCMAKE_BUILD_TYPE=Release")
        run("cmake", "--build", build)
        return build / "consumer"

    def test_tool(self):
        assert re.search(r"\d+\.\d+\.\d+", run(self.prefix / "bin" / "polyad", "--version"))
        run(self.prefix / "bin" / "polyad", "info", self.tensor, "--quiet")

    def test_tool_needs_no_library_of_ours(self):
        assert "libpolyad" not in run("ldd", self.prefix / "bin" / "polyad")

    def test_cmake_shared(self):
        program = self.consumer("shared", "polyad::polyad", self.prefix)
        assert "libpolyad.so" in run("ldd", program), "the consumer does not use the shared library"
        self.use(program)

    def test_cmake_static(self):
        program = self.consumer("static", "polyad::polyad-static", self.prefix)
        assert "libpolyad" not in run("ldd", program), "the consumer uses the shared library"
        self.use(program)

    def test_cmake_after_moving_the_prefix(self):
        moved = self.folder / "moved"
        run("cp", "-a", self.prefix, moved)
        config = "".join(p.read_text() for p in moved.rglob("*.cmake"))
        assert str(self.prefix) not in config, "the CMake files name the folder of the installation"
        assert str(ROOT) not in config, "the CMake files name the folder of the sources"
        self.use(self.consumer("after-move", "polyad::polyad", moved))

    def test_pkg_config(self):
        flags = self.pkg_config("--cflags", "--libs")
        program = self.compile("pkg-config-shared", flags)
        self.use(program, LD_LIBRARY_PATH=str(self.lib))

    def test_pkg_config_static(self):
        flags = [f if f != "-lpolyad" else "-l:libpolyad.a" for f in self.pkg_config("--static", "--cflags", "--libs")]
        program = self.compile("pkg-config-static", flags)
        assert "libpolyad" not in run("ldd", program), "the program uses the shared library"
        self.use(program)

    def test_pkg_config_version(self):
        version = run(self.prefix / "bin" / "polyad", "--version")
        assert self.pkg_config("--modversion")[0] in version, f"{version!r}"

    def test_every_header_by_itself(self):
        include = self.prefix / "include"
        headers = sorted(p.relative_to(include) for p in (include / "polyad").rglob("*.hpp"))
        assert len(headers) >= 10, f"only {headers} are installed"
        check = lambda h: subprocess.run(["g++", "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-x", "c++",
                                          f"-I{include}", "-"], input=f"#include <{h}>\n", capture_output=True, text=True,
                                         check=False)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for header, done in zip(headers, pool.map(check, headers)):
                assert done.returncode == 0, f"{header}:\n{done.stderr}"

    def pkg_config(self, *options):
        return run("pkg-config", *options, "polyad", PKG_CONFIG_PATH=str(self.lib / "pkgconfig")).split()

    def compile(self, name, flags):
        program = self.folder / name / "consumer"
        program.parent.mkdir()
        run("g++", CONSUMER / "main.cpp", "-o", program, *flags)
        return program


def main():
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="polyad-install-") as folder:
        installation = Installation(pathlib.Path(folder))
        for name in [n for n in dir(Installation) if n.startswith("test_")]:
            try:
                getattr(installation, name)()
                passed += 1
            except (AssertionError, subprocess.TimeoutExpired) as error:
                failed += 1
                print(f"{name}: {error}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
