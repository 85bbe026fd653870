#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The pages tell the truth.

- Every ```sh block of README.md and docs/ runs as printed, page by page, in a folder that has nothing but data/ and examples/. A
  ```text block right after it is what it prints; a line "..." stands for any lines, "..." inside a line for anything.
- Every ```cpp block of README.md that has a main() compiles against an installed polyad and runs; so does every example.
- docs/cli.md names every verb and option that --help names, and no others.
- Links between pages lead somewhere.
- The bundled tensor is what its README says.

test_docs.py --update writes what the commands print now into the ```text blocks that no longer match; look at the difference.
"""

import gzip
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOL = ROOT / "build" / "polyad"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$(?:\n+```(text)\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")


def markdown_files():
    hidden = lambda p: any(part.startswith((".", "build")) for part in p.relative_to(ROOT).parts)
    return sorted(p for p in ROOT.rglob("*.md") if not hidden(p) and "corpus" not in p.parts)


def run(command, folder, **environment):
    path = f"{TOOL.parent}:{os.environ['PATH']}"
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=300,
                          stdin=subprocess.DEVNULL, env={**os.environ, "PATH": path, **environment})


def workplace(folder):
    """A folder as a new user has it."""
    folder.mkdir()
    shutil.copytree(ROOT / "data", folder / "data")
    shutil.copytree(ROOT / "examples", folder / "examples")
    return folder


def matches(expected, got):
    """Like doctest's ELLIPSIS; blanks at the end of a line do not count."""
    pattern = ""
    for line in expected.rstrip().splitlines():
        if line.strip() == "...":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += ".*?".join(re.escape(part) for part in line.rstrip().split("...")) + r"[ \t]*\n"
    return re.fullmatch(pattern, got.rstrip() + "\n" if got.strip() else got)


def update(temporary):
    """Puts what the commands print into the ```text blocks that do not match it."""
    for page in PAGES:
        folder = workplace(temporary / str(PAGES.index(page)))
        text = page.read_text(encoding="utf-8")

        def refreshed(block):
            if block[1] != "sh":
                return block[0]
            printed = run(["bash", "-euo", "pipefail", "-c", block[2]], folder).stdout
            if not block[3] or matches(block[4], printed):
                return block[0]
            lines = "".join(line.rstrip() + "\n" for line in printed.rstrip().splitlines())
            return f"```sh\n{block[2]}```\n\n```text\n{lines}```"

        page.write_text(BLOCK.sub(refreshed, text), encoding="utf-8")


def test_commands(temporary):
    """The ```sh blocks."""
    blocks = 0
    for page in PAGES:
        folder = workplace(temporary / str(PAGES.index(page)))
        for language, text, output, expected in BLOCK.findall(page.read_text(encoding="utf-8")):
            if language != "sh":
                continue
            blocks += 1
            done = run(["bash", "-euo", "pipefail", "-c", text], folder)
            where = f"{page.relative_to(ROOT)}:\n{text}"
            assert done.returncode == 0, f"{where}exit code {done.returncode}\n{done.stdout}{done.stderr}"
            if output:
                assert matches(expected, done.stdout), f"{where}printed\n{done.stdout}\nbut the page says\n{expected}"
    assert blocks > 0, "no page has a ```sh block"


def test_examples(temporary):
    """The programs of examples/ and of the README, against an installation."""
    prefix, folder = temporary / "prefix", workplace(temporary / "examples")
    done = run(["cmake", "--install", ROOT / "build", "--prefix", prefix], ROOT)
    assert done.returncode == 0, done.stderr
    (lib,) = {p.parent for p in prefix.rglob("libpolyad.so")}
    programs = {p.name: p.read_text(encoding="utf-8") for p in sorted((ROOT / "examples").glob("*.cpp"))}
    readme = BLOCK.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    in_readme = [(text, expected) for language, text, _, expected in readme if language == "cpp" and "int main" in text]
    assert in_readme, "README.md has no program"
    spdx = "// SPDX-License-Identifier: MIT\n"
    expected_of = {}
    (folder / "ratings.tns").write_text("".join(f"{i * 7 % 40 + 1} {i * 3 % 30 + 1} {i % 12 + 1} {i % 5 + 1}\n"
                                                for i in range(2000)))
    for text, expected in in_readme:
        name = next((n for n, program in programs.items() if program.removeprefix(spdx) == text), None)
        assert name, f"this program of README.md is not in examples/:\n{text}"
        expected_of[name] = expected
    for name, text in programs.items():
        flags = run(["pkg-config", "--cflags", "--libs", "polyad"], folder, PKG_CONFIG_PATH=str(lib / "pkgconfig")).stdout
        (folder / name).write_text(text, encoding="utf-8")
        if "fmt::" in text:
            flags += " -lfmt"
        built = run(["g++", "-Wall", "-Wextra", "-o", "program", name, *flags.split()], folder)
        assert built.returncode == 0, f"{name}:\n{built.stderr}"
        done = run(["./program"], folder, LD_LIBRARY_PATH=str(lib))
        assert done.returncode == 0, f"{name}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
        expected = expected_of.get(name)
        assert not expected or matches(expected, done.stdout), f"{name} printed\n{done.stdout}\nREADME.md says\n{expected}"


def test_options(temporary):
    """docs/cli.md and --help name the same verbs and options."""
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^## `(\w+)`?[^\n]*\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL))
    everywhere = set(OPTION.findall(re.search(r"^## Everywhere\n(.*?)(?=^## )", page, re.MULTILINE | re.DOTALL)[1]))
    help_text = run([TOOL, "--help"], temporary).stdout
    verbs = verbs_of(help_text)
    assert verbs, f"--help names no verbs:\n{help_text}"
    assert sorted(verbs) == sorted(sections), f"--help has the verbs {sorted(verbs)}, docs/cli.md has {sorted(sections)}"
    for verb in verbs:
        options = set(OPTION.findall(run([TOOL, verb, "--help"], temporary).stdout)) - {"--help"}
        assert options, f"polyad {verb} --help names no option"
        missing = options - everywhere - set(OPTION.findall(sections[verb]))
        assert not missing, f"docs/cli.md does not name {sorted(missing)} of {verb}"
        invented = set(OPTION.findall(sections[verb])) - options - {"--help"}
        assert not invented, f"docs/cli.md names {sorted(invented)}, which {verb} does not have"


def verbs_of(help_text):
    known = re.findall(r"^ {2,}(\w+) {2,}\S", help_text, re.MULTILINE)
    return [v for v in dict.fromkeys(known) if run([TOOL, v, "--help"], ROOT).returncode == 0]


def test_dialects(temporary):
    """docs/formats-of-files.md names every dialect."""
    page = (ROOT / "docs" / "formats-of-files.md").read_text(encoding="utf-8")
    names = re.findall(r"^POLYAD_DIALECT\((\w+)\)", (ROOT / "src/lists/dialects.list").read_text(), re.MULTILINE)
    listed = run([TOOL, "list", "dialects"], temporary).stdout
    for name in names:
        spoken = name if name in listed else name.replace("_", "-")
        assert spoken in listed, f"polyad list dialects does not name {name}"
        assert f"`{spoken}`" in page, f"docs/formats-of-files.md does not name {spoken}"


def test_links(temporary):
    """Links between pages."""
    for page in markdown_files():
        for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
            if re.match(r"[a-z]+:", target):
                continue
            path, _, anchor = target.partition("#")
            file = (page.parent / path).resolve() if path else page
            assert file.exists(), f"{page.relative_to(ROOT)} links to {target}, which is not there"
            if anchor and file.suffix == ".md":
                titles = re.findall(r"^#+ (.*)$", file.read_text(encoding="utf-8"), re.MULTILINE)
                anchors = {re.sub(r"[^\w\- ]", "", t.lower()).replace(" ", "-") for t in titles}
                assert anchor in anchors, f"{page.relative_to(ROOT)} links to {target}, {sorted(anchors)} are there"


def test_bundled_tensor(temporary):
    """data/kjv-words holds what its README and the script that makes it say."""
    folder = ROOT / "data" / "kjv-words"
    digest = hashlib.sha256(gzip.decompress((folder / "kjv-words.tns.gz").read_bytes())).hexdigest()
    assert digest in (folder / "README.md").read_text() and digest in (ROOT / "scripts/build-kjv-words").read_text()
    for name, length in (("mode-1-book", 66), ("mode-2-chapter", 150), ("mode-3-word", 12762)):
        labels = gzip.decompress((folder / f"{name}.map.gz").read_bytes()).decode().splitlines()
        assert len(labels) == length == len(set(labels)), f"{name} has {len(labels)} labels"


def test_bundled_tensor_can_be_rebuilt(temporary):
    """... from the Debian package, where it is installed."""
    if not pathlib.Path("/usr/lib/bible.data").exists():
        return
    done = run([ROOT / "scripts/build-kjv-words", "--check"], temporary)
    assert done.returncode == 0, done.stdout + done.stderr


def main():
    tests = [f for name, f in globals().items() if name.startswith("test_")]
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="polyad-docs-") as temporary:
        if sys.argv[1:] == ["--update"]:
            return update(pathlib.Path(temporary))
        for i, test in enumerate(tests):
            folder = pathlib.Path(temporary) / str(i)
            folder.mkdir()
            try:
                test(folder)
                passed += 1
            except (AssertionError, subprocess.TimeoutExpired, OSError) as error:
                failed += 1
                print(f"{test.__name__}: {error}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
