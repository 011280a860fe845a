# SPDX-License-Identifier: Apache-2.0
"""The rules of the house that a machine can keep."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

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


def named(paths):
    return pytest.mark.parametrize("path", paths, ids=lambda path: str(path.relative_to(ROOT)))


@named([path for path in SOURCES if path.stat().st_size])
def test_every_source_file_names_its_licence(path):
    head = path.read_text().splitlines()[:3]
    licence = "GPL-2.0-or-later" if "/shim/" in str(path) else "Apache-2.0"
    assert any(f"SPDX-License-Identifier: {licence}" in line for line in head)


@named(OURS)
def test_a_file_fits_in_the_head(path):
    assert len(path.read_text().splitlines()) <= 700


@named(OURS)
def test_nothing_is_left_unfinished(path):
    unfinished = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b|raise NotImplemented" r"Error")
    assert not unfinished.search(path.read_text())


@named([path for path in OURS if path.suffix == ".py" and path.is_relative_to(ROOT / "bridge")])
def test_instants_are_formatted_in_one_place(path):
    """`datetime` raises beyond the year 9999, and users may name any time."""
    if path == ROOT / "bridge" / "units.py":
        return
    risky = re.compile(
        r"\.strftime\(|\.fromtimestamp\(|\.utcfromtimestamp\(|\bctime\(|\.isoformat\("
        r"|\.(local|gm)time\("
    )
    assert not risky.search(path.read_text()), "use bridge.units.format_instant or local_time"


KERNELS = ROOT / "bridge" / "core"
CLOCKS = {
    "python/alarm.cpp",  # the alarm that services hand in
    "counts/replay.cpp",  # measures how long decisions take; decides nothing by it
}


@named([path for path in OURS if path.is_relative_to(KERNELS) and path.suffix != ".pyi"])
def test_kernels_count_steps_and_look_at_no_clock(path):
    """What they return is the same on any machine at any load."""
    looks = re.search(r"<chrono>|<ctime>|_clock\b|clock_gettime|gettimeofday", path.read_text())
    assert bool(looks) == (str(path.relative_to(KERNELS)) in CLOCKS)


def test_public_classes_have_different_names():
    files: dict[str, list[str]] = {}
    for path in OURS:
        if path.suffix == ".py" and path.is_relative_to(ROOT / "bridge"):
            for name in re.findall(r"^class ([A-Z]\w*)", path.read_text(), re.MULTILINE):
                files.setdefault(name, []).append(str(path.relative_to(ROOT)))
    assert {name: where for name, where in files.items() if len(where) > 1} == {}


PACKAGES = sorted({path.parent for path in OURS if path.is_relative_to(ROOT / "bridge")})


@named([path for path in PACKAGES if list(path.glob("*.py")) or list(path.glob("*.pyi"))])
def test_a_package_says_what_it_holds_what_it_imports_and_where_to_start(path):
    text = ast.get_docstring(ast.parse((path / "__init__.py").read_text()))
    assert text is not None
    assert len(text.splitlines()) >= 3
    assert re.search(r"\bimports?\b", text, re.IGNORECASE)
    first = re.search(r"\bStart\s+with\s+`([^`]+)`", text)
    assert first, "no 'Start with `x.py`'"
    assert "." in first[1]
    for name in re.findall(r"`([\w./-]+(?:/|\.\w+))`", text):
        if not name.startswith("bridge."):  # a module by its import name
            places = (path, ROOT / "bridge", ROOT)
            assert any((place / name).exists() for place in places), f"there is no {name}"
