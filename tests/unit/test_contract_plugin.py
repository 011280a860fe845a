# SPDX-License-Identifier: Apache-2.0
"""`pytest --schedbridge-policy`, as a stranger runs it who has installed a package of his own."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from bridge.policy_packages import GROUP

EXAMPLE = Path(__file__).parents[2] / "examples" / "policy"
PACKAGE = """
import os
from dataclasses import dataclass, replace
import numpy as np
from bridge.model.policy import Algorithm, PolicyPackage, preset
from bridge.policies.plan.backfill import Backfill

@dataclass(frozen=True)
class Mine:
    def order(self, snapshot):
        jobs, fault = snapshot.jobs, os.environ["FAULT"]
        {order}
        return np.argsort(jobs.submit_s, kind="stable")
    def plan(self, snapshot, order, preference, context):
        fault = os.environ["FAULT"]
        planned = Backfill(depth=1).plan(snapshot, order, preference, context)
        {plan}
        return planned

ALGORITHMS = {{{stage!r}: {{"mine": Algorithm("mine:Mine")}}}}
STAGES = {{"order": "fcfs", "plan": "easy", {stage!r}: "mine"}}
PACKAGE = PolicyPackage(ALGORITHMS, (preset("mine", STAGES["order"], STAGES["plan"], "best-fit"),))
"""
PLANTING = """
import pytest

def pytest_generate_tests(metafunc):
    name = metafunc.definition.originalname
    faults = ["none", *(fault for fault, test in {tests!r}.items() if test == name)]
    ids = ["fault=" + fault for fault in faults]
    metafunc.parametrize("fault", faults, ids=ids, indirect=True)

@pytest.fixture(autouse=True)
def fault(request, monkeypatch):
    monkeypatch.setenv("FAULT", request.param)
"""
"""A plugin: each test runs without a fault, and once more with each that it is to find."""
FAULTS = {
    "order": {
        "a job is forgotten": (
            "return np.argsort(jobs.submit_s, kind='stable')[1:]", "test_each_row_has_one_place",
        ),
        "it depends on the process": (
            "return np.argsort([hash(job) for job in jobs.id], kind='stable')",
            "test_the_same_seed_gives_the_same_plan_in_another_process",
        ),
        "it writes into the snapshot": (
            "jobs.priority[:] = 7; return np.arange(len(jobs))",
            "test_it_changes_nothing_and_decides_the_same_again",
        ),
    },
    "plan": {
        "a job starts before it may": (
            "return replace(planned, plan=replace(planned.plan, start_s=planned.plan.start_s - 1))",
            "test_plans_are_legal",
        ),
        "later starts have no reason": (
            "plan = replace(planned.plan, reasons=(None,) * len(planned.plan));"
            " return replace(planned, plan=plan)",
            "test_every_row_that_waits_says_why",
        ),
    },
}  # fmt: skip
"""By stage: what is wrong, the statement, and the test that finds it."""


def installed(folder, module, entry_point):
    """Writes what pip leaves of a package: a module, and what names it."""
    metadata = folder / "mine-1.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text(f"[{GROUP}]\nmine = {entry_point}\n")
    (folder / f"{entry_point.split(':')[0]}.py").write_text(module)
    return folder


def a_run(folder, *arguments):
    """Starts pytest where the package is installed, and there are no other tests."""
    (folder / "tests").mkdir(exist_ok=True)
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", *arguments],
        cwd=folder / "tests", env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_the_example_passes(tmp_path):
    """Slow: each of its tests simulates or plans in a process of its own."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    [entry_point] = project["entry-points"][GROUP].values()
    module = (EXAMPLE / "smallest_first.py").read_text()
    folder = installed(tmp_path, module, entry_point)
    run = a_run(folder, "--schedbridge-policy", "smallest-first", "-k", "order or whole or full")
    assert run.returncode == 0, run.stdout
    assert "passed" in run.stdout
    assert "failed" not in run.stdout
    assert "skipped" not in run.stdout


@pytest.mark.parametrize("stage", FAULTS)
def test_each_fault_fails_its_test_and_no_other_does(stage, tmp_path):
    """The stranger names a test of his own beside the suite.

    Slow: the suite runs in a process of its own.
    """
    planted = [f"if fault == {name!r}: {fault}" for name, (fault, _) in FAULTS[stage].items()]
    lines = {"order": "", "plan": "", stage: "\n        ".join(planted)}
    folder = installed(tmp_path, PACKAGE.format(stage=stage, **lines), "mine:PACKAGE")
    tests = {name: test for name, (_, test) in FAULTS[stage].items()}
    (folder / "planting.py").write_text(PLANTING.format(tests=tests))
    (folder / "check_mine.py").write_text("def test_mine_too():\n    pass\n")
    run = a_run(
        folder, "../check_mine.py", "--schedbridge-policy", "mine", "-p", "planting", "-rA",
        "-k", " or ".join(["test_mine_too", *tests.values()]),
    )  # fmt: skip
    line = re.compile(r"^(PASSED|FAILED) \S+::(\w+)\[.*fault=([\w ]+)", re.MULTILINE)
    assert sorted(line.findall(run.stdout)) == sorted(
        [
            *(("FAILED", test, name) for name, test in tests.items()),
            *(("PASSED", test, "none") for test in ["test_mine_too", *tests.values()]),
        ]
    ), run.stdout
    assert run.returncode == pytest.ExitCode.TESTS_FAILED


def test_an_unknown_policy_is_one_line(tmp_path):
    run = a_run(tmp_path, "--schedbridge-policy", "nobodys")
    assert run.returncode == pytest.ExitCode.USAGE_ERROR
    assert "no preset 'nobodys'; there are slurm-like, " in run.stderr
    assert "Traceback" not in run.stderr


def test_without_the_option_the_suite_is_not_collected(tmp_path):
    run = a_run(tmp_path)
    assert run.returncode == pytest.ExitCode.NO_TESTS_COLLECTED
