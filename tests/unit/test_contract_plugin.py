# SPDX-License-Identifier: Apache-2.0
"""`pytest --schedbridge-policy`, as a stranger runs it who has installed a package of his own."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from bridge.policy_packages import GROUP

EXAMPLE = Path(__file__).parents[2] / "examples" / "policy"
PACKAGE = """
from dataclasses import dataclass, replace
import numpy as np
from bridge.model.policy import Algorithm, PolicyPackage, preset
from bridge.policies.plan.backfill import Backfill

@dataclass(frozen=True)
class Mine:
    def order(self, snapshot):
        jobs = snapshot.jobs
        {order}
    def plan(self, snapshot, order, preference, context):
        planned = Backfill(depth=1).plan(snapshot, order, preference, context)
        {plan}

ALGORITHMS = {{{stage!r}: {{"mine": Algorithm("mine:Mine")}}}}
STAGES = {{"order": "fcfs", "plan": "easy", {stage!r}: "mine"}}
PACKAGE = PolicyPackage(ALGORITHMS, (preset("mine", STAGES["order"], STAGES["plan"], "best-fit"),))
"""
SOUND = {"order": "return np.argsort(jobs.submit_s, kind='stable')", "plan": "return planned"}
FAULTS = {
    "a job is forgotten": (
        "order", "return np.argsort(jobs.submit_s, kind='stable')[1:]",
        "test_each_row_has_one_place",
    ),
    "it depends on the process": (
        "order", "return np.argsort([hash(job) for job in jobs.id], kind='stable')",
        "test_the_same_seed_gives_the_same_plan_in_another_process",
    ),
    "it writes into the snapshot": (
        "order", "jobs.priority[:] = 7; return np.arange(len(jobs))",
        "test_it_changes_nothing_and_decides_the_same_again",
    ),
    "a job starts before it may": (
        "plan",
        "return replace(planned, plan=replace(planned.plan, start_s=planned.plan.start_s - 1))",
        "test_plans_are_legal",
    ),
    "later starts have no reason": (
        "plan",
        "return replace(planned, plan=replace(planned.plan, reasons=(None,) * len(planned.plan)))",
        "test_every_row_that_waits_says_why",
    ),
}  # fmt: skip


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


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_refused(fault, tmp_path):
    """Slow: the suite runs in a process of its own."""
    stage, statement, test = FAULTS[fault]
    module = PACKAGE.format(**{**SOUND, "stage": stage, stage: statement})
    run = a_run(
        installed(tmp_path, module, "mine:PACKAGE"), "--schedbridge-policy", "mine", "-k", test
    )
    assert run.returncode == pytest.ExitCode.TESTS_FAILED, run.stdout
    assert "1 failed" in run.stdout


@pytest.mark.parametrize("stage", SOUND)
def test_the_same_without_a_fault_passes(stage, tmp_path):
    """Slow: the suite runs in a process of its own."""
    tests = " or ".join(test for at, _, test in FAULTS.values() if at == stage)
    folder = installed(tmp_path, PACKAGE.format(stage=stage, **SOUND), "mine:PACKAGE")
    run = a_run(folder, "--schedbridge-policy", "mine", "-k", tests)
    assert run.returncode == 0, run.stdout


def test_an_unknown_policy_is_one_line(tmp_path):
    run = a_run(tmp_path, "--schedbridge-policy", "nobodys")
    assert run.returncode == pytest.ExitCode.USAGE_ERROR
    assert "no preset 'nobodys'; there are slurm-like, " in run.stderr
    assert "Traceback" not in run.stderr


def test_without_the_option_the_suite_is_not_collected(tmp_path):
    run = a_run(tmp_path)
    assert run.returncode == pytest.ExitCode.NO_TESTS_COLLECTED


def test_named_tests_run_beside_the_suite(tmp_path):
    """Slow: the suite runs in a process of its own."""
    module = PACKAGE.format(stage="order", **SOUND)
    folder = installed(tmp_path, module, "mine:PACKAGE")
    (folder / "check_mine.py").write_text("def test_mine_too():\n    pass\n")
    both = ("-k", "mine_too or empty_queue")
    run = a_run(folder, "../check_mine.py", "--schedbridge-policy", "mine", *both)
    assert run.returncode == 0, run.stdout
    assert "2 passed" in run.stdout
