# SPDX-License-Identifier: Apache-2.0
"""What a run says about the durations of its tests, and about those that were run twice."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = '''
import subprocess, sys, time
import pytest

def busy(seconds):
    """In this process, and in one that has ended."""
    end = time.process_time() + seconds / 2
    while time.process_time() < end:
        pass
    code = f"import time\\nwhile time.process_time() < {seconds / 2}: pass"
    subprocess.run([sys.executable, "-c", code], check=True)

def test_busy():
    busy(0.6)

def test_busier():
    """Slow: it is what is measured."""
    busy(1.2)

def test_waits():
    time.sleep(0.01)

runs = []

@pytest.mark.flaky(reruns=1)
def test_by_chance():
    runs.append(1)
    assert len(runs) == 2
'''


def run(folder: Path, *options: str) -> str:
    (folder / "test_some.py").write_text(TESTS)
    for name in ("one", "two"):  # folders with hooks of their own
        (folder / name).mkdir()
        (folder / name / "conftest.py").write_text("")
        (folder / name / f"test_{name}.py").write_text("def test(): ...")
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "limit.py").write_text("from tests import durations\ndurations.SLOW_S = 0.5\n")
    plugins = ["-p", "tests.durations", "-p", "limit", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *plugins, *options, "."],
        cwd=folder, env=os.environ | {"PYTHONPATH": f"{ROOT}:{folder}"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout


@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["alone", "workers"])
def test_the_file_and_the_lists(tmp_path, workers):
    """Slow: starts pytest with workers."""
    out = run(tmp_path, "--suite", "some", *workers)
    head, *rows = (tmp_path / "build" / "durations" / "some.tsv").read_text().splitlines()
    assert head == "cpu_s\ttime_s\truns\ttest"
    named = {row[3].split("::")[1]: row for row in (line.split("\t") for line in rows)}
    named.pop("test")
    assert [row.split("::")[1] for row in rows[:2]] == ["test_busier", "test_busy"]
    assert float(named["test_busier"][0]) >= 1.2
    assert float(named["test_busy"][0]) >= 0.6
    assert float(named["test_waits"][0]) < 0.5
    assert {name: row[2] for name, row in named.items()} == {
        "test_busy": "1", "test_busier": "1", "test_waits": "1", "test_by_chance": "2",
    }  # fmt: skip
    assert "slowest 50 of 6 tests" in out
    assert "over 0.5 s without a reason: test_some.py::test_busy\n" in out
    assert "run twice: test_some.py::test_by_chance\n" in out
    _, first, after = out.partition("test_some.py::test_by_chance failed at first")
    assert first
    assert "assert" in after.partition("run twice:")[0]


def test_a_part_prints_no_more_than_what_was_run_twice(tmp_path):
    out = run(tmp_path, "-k", "not chance")
    assert "run twice: none\n" in out
    assert "slowest" not in out
    assert (tmp_path / "build" / "durations" / "part.tsv").read_text().count("\n") == 6
