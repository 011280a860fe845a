# SPDX-License-Identifier: Apache-2.0
"""What a run says about the durations of its tests, and about those that were run twice."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MAX_ITEMS = 8000
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

@pytest.fixture
def made():
    busy(0.6)

def test_fixture(made): ...

def test_waits():
    time.sleep(0.6)

runs = []

@pytest.mark.flaky(reruns=1)
def test_by_chance():
    runs.append(1)
    assert len(runs) == 2
'''

OF_BOUND = """
from tests.unit import test_durations
from tests.unit.test_durations import test_the_suite_is_small
test_durations.MAX_ITEMS = {bound}
"""


def run(folder: Path, *options: str, code: int = 0) -> str:
    (folder / "test_some.py").write_text(TESTS)
    for name in ("one", "two"):  # folders with hooks of their own
        (folder / name).mkdir(exist_ok=True)
        (folder / name / "conftest.py").write_text("")
        (folder / name / f"test_{name}.py").write_text("def test(): ...")
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "limit.py").write_text("from tests import durations\ndurations.SLOW_S = 0.5\n")
    # No other plugin is loaded: each takes its time to start, in each of the workers.
    used = ["tests.durations", "limit", "no:cacheprovider", "xdist", "pytest_rerunfailures"]
    plugins = [word for name in used for word in ("-p", name)]
    alone = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *plugins, *options, "."],
        cwd=folder, env=os.environ | alone | {"PYTHONPATH": f"{ROOT}:{folder}"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["alone", "workers"])
def test_the_file_and_the_lists(tmp_path, workers):
    """Slow: starts pytest with workers."""
    out = run(tmp_path, "--suite", "some", *workers)
    head, *rows = (tmp_path / "build" / "durations" / "some.tsv").read_text().splitlines()
    assert head == "cpu_s\ttime_s\truns\ttest"
    named = {row[3].split("::")[1]: row for row in (line.split("\t") for line in rows)}
    named.pop("test")
    assert rows[0].endswith("::test_busier")
    assert float(named["test_busier"][0]) >= 1.2
    assert float(named["test_busy"][0]) >= 0.6
    assert float(named["test_waits"][0]) < 0.5
    assert {name: row[2] for name, row in named.items()} == {
        "test_busy": "1", "test_busier": "1", "test_fixture": "1", "test_waits": "1",
        "test_by_chance": "2",
    }  # fmt: skip
    assert "slowest 50 of 7 tests" in out
    assert "\nover 0.5 s of CPU without a reason: test_some.py::test_busy\n" in out
    _, waited = out.split("else over 0.5 s without a reason: ")
    assert "test_some.py::test_waits" in waited.partition("\n")[0]
    assert "test_busier" not in waited.partition("\n")[0]
    assert "run twice: test_some.py::test_by_chance\n" in out
    _, first, after = out.partition("test_some.py::test_by_chance failed at first")
    assert first
    assert "assert" in after.partition("run twice:")[0]


def test_a_part_prints_no_more_than_what_was_run_twice(tmp_path):
    out = run(tmp_path, "-k", "not chance")
    assert "run twice: none\n" in out
    assert "slowest" not in out
    assert (tmp_path / "build" / "durations" / "part.tsv").read_text().count("\n") == 7


def test_who_does_not_say_why_fails_the_run(tmp_path):
    """Slow: starts pytest with workers, and without any."""
    for workers in ([], ["-n", "2"]):
        out = run(tmp_path, "--max-silent-cpu", "0.5", *workers, code=1)
        assert "test_some.py::test_busy: 1 s of CPU time: make it faster, or say why" in out
        assert "test_busier: " not in out
        assert "test_fixture: " not in out
        assert "failed" not in out.splitlines()[-1]
    run(tmp_path, "--max-silent-cpu", "30")


def test_the_suite_is_small(request):
    """Seeds, presets and tables are loops inside a test (`@each`): an item of pytest costs more."""
    assert len(request.session.items) < MAX_ITEMS


def test_a_run_of_as_many_items_as_the_bound_fails(tmp_path):
    """Two tests and the one that counts them; what is not selected does not count."""
    for bound, code in ((4, 0), (3, 1)):
        (tmp_path / "test_bound.py").write_text(OF_BOUND.format(bound=bound))
        out = run(tmp_path, "-k", "small or test_one or test_two", code=code)
        assert ("FAILED test_bound.py::test_the_suite_is_small" in out) is bool(code)
    assert "1 failed, 2 passed" in out
