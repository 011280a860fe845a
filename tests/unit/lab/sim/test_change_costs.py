# SPDX-License-Identifier: Apache-2.0
"""What changes of width take: models, options, and the fit to measurements."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from bridge.errors import ConfigError
from bridge.lab.sim.runs.engine import simulate
from bridge.lab.sim.workloads.change_costs import (
    ENGINES,
    ChangeCosts,
    CostLine,
    Times,
    flat,
    parse_change_cost,
)
from bridge.lab.sim.workloads.speedup import Amdahl
from bridge.lab.sim.workloads.system import pool_of
from schedbridge_contracts.workloads import a_workload
from tests.unit.lab.sim.test_resizing import Resizing, malleable

BENCHMARKS = Path(__file__).parents[4] / "benchmarks"
sys.path.append(str(BENCHMARKS))

import change_costs  # noqa: E402


def test_each_direction_has_its_own_times_by_the_larger_width():
    costs = ChangeCosts(
        Times(CostLine(1, 0.5), CostLine(2), CostLine(0)),
        Times(CostLine(0), CostLine(3), CostLine(-9, 1)),
    )
    grown, shrunk = costs.of(2, 8), costs.of(10, 4)
    assert (grown.goes_on_s, grown.still_s, grown.after_s, grown.whole_s) == (5, 2, 0, 7)
    assert (shrunk.goes_on_s, shrunk.still_s, shrunk.after_s, shrunk.whole_s) == (0, 3, 1, 4)
    assert costs.of(4, 3).after_s == 0


@pytest.mark.parametrize(
    ("text", "grown", "shrunk"),
    [("2", (0, 2, 0), (0, 2, 0)), ("1.2", (0, 2, 0), (0, 2, 0)),
     ("3:0.5", (2.5, 0.5, 0), (0, 0.5, 2.5)), ("0", (0, 0, 0), (0, 0, 0))],
)  # fmt: skip
def test_costs_are_written_as_seconds(text, grown, shrunk):
    costs = parse_change_cost(text)
    for pair, expected in (((1, 9), grown), ((9, 1), shrunk)):
        found = costs.of(*pair)
        assert (found.goes_on_s, found.still_s, found.after_s) == expected
        assert found.whole_s == max(int(np.ceil(sum(expected))), 1)


@pytest.mark.parametrize(
    "text", ["", "joined", "-1", "nan", "inf", "2:3", "2:", "2:nan", "2:-1", "1:2:3", "1e9"]
)
def test_impossible_costs_are_refused(text):
    with pytest.raises(ConfigError, match="change-cost"):
        parse_change_cost(text)


def test_a_growing_job_goes_on_stands_still_and_then_is_faster():
    workload = malleable(a_workload([(1, 100, 100, 1), (11, 1, 1, 1)], 4))
    workload.malleable.speedup[:] = [Amdahl(0.0)] * 2
    object.__setattr__(workload.malleable, "changes", flat(6, 1.5))
    outcome = simulate(workload, pool_of(4), Resizing({11: [(0, (0, 3), 12)]}))
    # 10 s on one node, 4.5 s more of them, 1.5 s of nothing, then 85.5 s of work on two nodes.
    assert outcome.schedule.end_s.tolist() == [11 + 6 + 43, 12]


def test_a_shrinking_job_is_slower_before_its_nodes_are_free():
    workload = malleable(a_workload([(1, 100, 100, 2), (11, 5, 5, 3)], 4))
    workload.malleable.speedup[:] = [Amdahl(0.0)] * 2
    object.__setattr__(workload.malleable, "changes", flat(6, 1))
    outcome = simulate(workload, pool_of(4), Resizing({11: [(0, (0,), 12)]}))
    # 10 s on two nodes, 1 s of nothing, 90 s of work on two nodes take 180 on one.
    assert outcome.schedule.end_s.tolist() == [11 + 1 + 180, 11 + 6 + 5]
    assert outcome.schedule.start_s.tolist() == [1, 17]


def test_a_job_that_ends_while_it_changes_frees_all_its_nodes():
    workload = malleable(a_workload([(1, 12, 12, 2), (11, 5, 5, 4)], 4))
    workload.malleable.speedup[:] = [Amdahl(0.0)] * 2
    object.__setattr__(workload.malleable, "changes", flat(60, 0))
    outcome = simulate(workload, pool_of(4), Resizing({11: [(0, (0, 1, 2), 12)]}))
    assert outcome.schedule.start_s.tolist() == [1, 13]
    assert not outcome.refusals


# ---------------------------------------------------------------- the fit


def a_step(before, after, a, b):
    """A change whose parts are lines in the larger width."""
    n = max(before, after)
    still, goes_on, rest = a + b * n, 0.3 + 0.01 * n, 0.5
    grows = after > before
    return {
        "from": before, "to": after, "done": True, "asked_s": 0.4,
        "total_s": 0.4 + still + goes_on + rest,
        **({"granting_s": 0.1} if grows else {}),
        "launcher": {
            **({"starting": goes_on - 0.2} if grows else {}),
            "asked": 0.1 if grows else goes_on, "going": still / 2, "restarting": still / 2,
        },
    }  # fmt: skip


def measured(steps):
    return {"runs": [{"engine": "join", "redistribution": "yes", "steps": steps}, {"error": "x"}]}


def test_a_line_is_found_again():
    widths = range(1, 20)
    steps = [a_step(n, n + 1, 0.2, 0.03) for n in widths]
    steps += [a_step(n + 1, n, 0.1, 0.0) for n in widths]
    failed = {**steps[0], "done": False, "total_s": 1e6}
    silent = {**steps[0], "launcher": {}}
    found = change_costs.samples(measured([*steps, failed, silent]))
    assert {key: len(rows) for key, rows in found.items()} == {
        ("join", "yes", "growing"): 19, ("join", "yes", "shrinking"): 19,
    }  # fmt: skip
    growing, shrinking = (change_costs.fitted(rows) for rows in found.values())
    assert np.allclose(growing, [[0.3, 0.01], [0.2, 0.03], [0.5, 0]])
    assert np.allclose(shrinking, [[0.3, 0.01], [0.1, 0.0], [0.5, 0]])
    low, high = change_costs.intervals(found["join", "yes", "growing"])
    assert np.allclose(low, growing)
    assert np.allclose(high, growing)


def test_an_interval_holds_the_line_and_is_wider_for_noisier_measurements():
    rng, widths = np.random.default_rng(1), np.repeat(np.arange(2.0, 33.0), 5)
    spans = []
    for noise in (0.05, 0.5):
        still = 0.2 + 0.03 * widths + rng.normal(0, noise, len(widths))
        rows = np.stack([widths, still, still, still], axis=1)
        low, high = change_costs.intervals(rows)[:, 0, 1]
        assert low < 0.03 < high
        spans.append(high - low)
    assert spans[1] > 5 * spans[0]


def test_the_simulator_has_what_is_fitted_to_the_results():
    found = change_costs.samples(json.loads(change_costs.RESULTS.read_text()))
    fitted = change_costs.coefficients(found)
    assert {engine for engine, _ in fitted} >= {*ENGINES}
    for (engine, direction), lines in fitted.items():
        if engine not in ENGINES:
            continue
        times = getattr(ENGINES[engine], direction)
        held = [(line.base_s, line.node_s) for line in (times.goes_on, times.still, times.after)]
        assert held == lines, (
            f"{engine}, {direction}: benchmarks/change_costs.py --python prints other coefficients"
        )
