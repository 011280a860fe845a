# SPDX-License-Identifier: Apache-2.0
"""benchmarks/traces.py on a small log: its figures, its file, and the descriptions beside it."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bridge.lab.sim.runs.engine import simulate
from bridge.lab.sim.workloads.system import pool_of, read_system
from bridge.registry import PRESETS, build
from bridge.safe_cycle.decider import Decider
from schedbridge_contracts.workloads import a_workload

BENCHMARKS = Path(__file__).parents[4] / "benchmarks"
EXCERPT = Path(__file__).parents[4] / "bridge/lab/sim/data/KTH-SP2-1996-excerpt.swf.gz"


@pytest.fixture
def figures(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    from trace_bench.figures import figures

    return figures


def replayed(jobs, processors, policy="slurm-like"):
    decide = Decider(build(PRESETS[policy])).decide
    return simulate(a_workload(jobs, processors), pool_of(processors), decide)


def test_figures_of_a_queue_that_fits_in_the_head(figures):
    # Job 1 holds all 4 processors and ends at 61, 40 s before its limit; job 2 waits for it and had
    # been told 101; job 3 comes to idle processors beside job 2 and was told nothing.
    outcome = replayed([(1, 60, 100, 4), (11, 50, 50, 2), (71, 40, 40, 2)], 4)
    found = figures(outcome, outcome.decision_ms)
    assert outcome.schedule.start_s.tolist() == [1, 61, 71]
    assert found["jobs"] == 3
    assert found["wait_s"]["max"] == 50
    assert found["starts"]["announced"] == 1
    assert found["starts"]["error_s"]["mean"] == -40
    assert (found["starts"]["kept"], found["starts"]["moved"]) == (1.0, 0.0)
    assert found["utilisation"] == pytest.approx((240 + 100 + 80) / (4 * 110), abs=1e-5)
    assert found["utilisation_coming"] == pytest.approx((240 + 20) / (4 * 70), abs=1e-5)
    assert found["idle_beside_queue"] == 0
    classes = {row["class"]: row for row in found["classes"]}
    assert classes["over 1/2"]["jobs"] == 1
    assert classes["1/8 to 1/2"]["wait_s"]["mean"] == 25
    assert "1 processor" not in classes


def test_processors_idle_beside_a_queue_are_counted(figures):
    # Job 2 wants all 4 while job 1 holds 3: for 60 s one processor of 4 is idle, one job waits.
    outcome = replayed([(1, 60, 60, 3), (1, 10, 10, 4)], 4)
    assert figures(outcome, [])["idle_beside_queue"] == pytest.approx(0.25)


def test_a_start_that_moves_is_told_both_ways(figures):
    outcome = replayed([(1, 60, 100, 4), (11, 50, 50, 2)], 4)
    outcome.promise["changes"][1], outcome.promise["later_s"][1] = 2, 30
    outcome.promise["first_start_s"][1] = 50
    starts = figures(outcome, [])["starts"]
    assert (starts["kept"], starts["moved_later"], starts["changes"]) == (0.0, 1.0, 2.0)
    assert starts["error_s"]["max"] == 11


@pytest.mark.parametrize("path", sorted((BENCHMARKS / "systems").glob("*.yaml")), ids=str)
def test_the_descriptions_beside_it_are_read(path):
    system = read_system(path)
    assert system.dialect.memory_per_node
    assert np.unique(system.nodes.capacity[:, 0]).tolist() == [12, 80]


def run(*words):
    command = [sys.executable, str(BENCHMARKS / "traces.py"), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_entries_are_replaced_and_shown(tmp_path):
    """Slow: runs the benchmark twice, and draws."""
    kept = tmp_path / "traces.json"
    options = "--limit-jobs", 60, "--json", kept, "--policy", "easy"
    for more in (("--fast",), ("--policy", "openccs", "--plots", tmp_path / "plots")):
        done = run(EXCERPT, *options, *more)
        assert done.returncode == 0, done.stderr
    runs = json.loads(kept.read_text())["runs"]
    assert [entry["policy"]["name"] for entry in runs] == ["easy", "openccs"]
    assert {"commit", "date", "machine", "command", "decision_cpu_ms"} <= runs[0].keys()
    assert (tmp_path / "plots" / "KTH-SP2-1996-excerpt.png").stat().st_size > 10_000
    shown = subprocess.run(
        [sys.executable, str(BENCHMARKS / "traces_table.py"), str(kept)],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert "### KTH-SP2-1996-excerpt: the first 60 jobs, 100 processors" in shown
    assert "|  | easy | openccs |" in shown


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["nowhere.swf"], "nowhere.swf: cannot be read"),
        ([EXCERPT, "--policy", "nonsense"], "'nonsense' is neither a preset"),
        ([f"{EXCERPT}@nowhere.yaml"], "nowhere.yaml: cannot be read"),
    ],
)
def test_a_mistake_is_one_line(tmp_path, words, says):
    done = run(*words, "--json", tmp_path / "traces.json")
    assert done.returncode == 1
    assert says in done.stderr
    assert len(done.stderr.splitlines()) == 1
