# SPDX-License-Identifier: Apache-2.0
"""The rules of the house that a machine can keep."""

import ast
import os
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
TRACKED = [
    ROOT / line
    for line in subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
]
SOURCES = [
    path
    for path in TRACKED
    if path.exists()
    and (
        path.suffix in {".py", ".pyi", ".c", ".h", ".cpp", ".hpp", ".proto", ".sh"}
        or path.parent in (ROOT / "scripts", ROOT / ".ci")
    )
]
OURS = [path for path in SOURCES if "rpc/pb" not in str(path)]


def among(paths, is_wrong):
    """The names of those files of which that is true."""
    return [str(path.relative_to(ROOT)) for path in paths if is_wrong(path)]


def test_every_source_file_names_its_licence():
    def has_none(path):
        licence = "GPL-2.0-or-later" if "/shim/" in str(path) else "Apache-2.0"
        head = path.read_text().splitlines()[:3]
        return bool(head) and not any(f"SPDX-License-Identifier: {licence}" in at for at in head)

    assert among(SOURCES, has_none) == []


def test_programs_can_be_started():
    """A file with an interpreter in its first line is executable, and others are not."""

    def is_wrong(path):
        with path.open("rb") as file:
            return (file.read(2) == b"#!") != os.access(path, os.X_OK)

    assert among([path for path in TRACKED if path.is_file()], is_wrong) == []


def test_a_file_fits_in_the_head():
    assert among(OURS, lambda path: len(path.read_text().splitlines()) > 700) == []


def test_nothing_is_left_unfinished():
    unfinished = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b|raise NotImplemented" r"Error")
    assert among(OURS, lambda path: unfinished.search(path.read_text())) == []


def test_instants_are_formatted_in_one_place():
    """`datetime` raises beyond the year 9999, and users may name any time."""
    risky = re.compile(
        r"\.strftime\(|\.fromtimestamp\(|\.utcfromtimestamp\(|\bctime\(|\.isoformat\("
        r"|\.(local|gm)time\("
    )
    modules = [p for p in OURS if p.suffix == ".py" and p.is_relative_to(ROOT / "bridge")]
    found = among(modules, lambda path: risky.search(path.read_text()))
    assert found == ["bridge/units.py"], "use bridge.units.format_instant or local_time"


KERNELS = ROOT / "bridge" / "core"
CLOCKS = {
    "python/alarm.cpp",  # the alarm that services hand in
    "counts/replay.cpp",  # measures how long decisions take; decides nothing by it
}


def test_kernels_count_steps_and_look_at_no_clock():
    """What they return is the same on any machine at any load."""
    looks = re.compile(r"<chrono>|<ctime>|_clock\b|clock_gettime|gettimeofday")
    kernels = [p for p in OURS if p.is_relative_to(KERNELS)]
    found = [path for path in kernels if looks.search(path.read_text())]
    assert {str(path.relative_to(KERNELS)) for path in found} == CLOCKS


def test_public_classes_have_different_names():
    files: dict[str, list[str]] = {}
    for path in OURS:
        if path.suffix == ".py" and path.is_relative_to(ROOT / "bridge"):
            for name in re.findall(r"^class ([A-Z]\w*)", path.read_text(), re.MULTILINE):
                files.setdefault(name, []).append(str(path.relative_to(ROOT)))
    assert {name: where for name, where in files.items() if len(where) > 1} == {}


PACKAGES = sorted({path.parent for path in OURS if path.is_relative_to(ROOT / "bridge")})


def flaws(package):
    """What is wrong with the docstring of a package."""
    text = ast.get_docstring(ast.parse((package / "__init__.py").read_text())) or ""
    if len(text.splitlines()) < 3:
        yield "fewer than 3 lines"
    if not re.search(r"\bimports?\b", text, re.IGNORECASE):
        yield "nothing on imports"
    if not re.search(r"\bStart\s+with\s+`[^`]*\.[^`]*`", text):
        yield "no 'Start with `x.py`'"
    for name in re.findall(r"`([\w./-]+(?:/|\.\w+))`", text):
        if not name.startswith("bridge."):  # a module by its import name
            places = (package, ROOT / "bridge", ROOT)
            if not any((place / name).exists() for place in places):
                yield f"there is no {name}"


def test_a_package_says_what_it_holds_what_it_imports_and_where_to_start():
    packages = [path for path in PACKAGES if list(path.glob("*.py"))]
    found = {str(path.relative_to(ROOT)): list(flaws(path)) for path in packages}
    assert {path: wrong for path, wrong in found.items() if wrong} == {}
