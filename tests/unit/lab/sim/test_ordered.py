# SPDX-License-Identifier: Apache-2.0
"""Any order, and search, on counts and in the cycle must give the very same starts and promises."""

import numpy as np
import pytest
from hypothesis import given, settings

from bridge.lab.sim.runs import ordered
from bridge.lab.sim.runs.ordered import replay_ordered, unordered_because
from bridge.lab.sim.workloads.system import pool_of
from bridge.registry import PRESETS, parse_policy
from schedbridge_contracts.workloads import random_workload
from tests.unit.lab.sim.test_replay import EXCERPT, assert_equal, in_the_cycle
from tests.workloads import ANY_WORKLOAD

FEW = {"name": "search", "effort": 900, "budget_ms": 0, "most_wait_s": 900, "window": 12}
SECOND = {"name": "last-two", "extension": "second"}
PATIENT = {"name": "last-two", "patience_s": 600}
POLICIES = [
    {"preset": "easy", "predict": "name-history"},
    {"preset": "easy", "predict": "oracle"},
    {"preset": "easy", "predict": SECOND},
    {"preset": "easy", "predict": PATIENT},
    {"preset": "conservative", "predict": "last-two"},
    {"preset": "slurm-like", "plan": {"name": "easy", "depth": 3}, "order": "shortest"},
    {"preset": "easy", "order": "slowdown", "predict": "last-two"},
    {"preset": "easy", "order": {"name": "waiting-periods", "period_s": 7}},
    {"preset": "pbs"},
    {"preset": "search"},
    {"preset": "search", "plan": FEW, "predict": "oracle"},
    {"preset": "search", "plan": FEW, "order": "shortest", "predict": "name-history"},
    {"preset": "search", "plan": {"name": "search", "objective": "priority", "ageing_s": None}},
    {"preset": "search", "plan": FEW | {"class_factor": 0.7, "longest_factor": 0.5}},
    {"preset": "search", "plan": FEW | {"power": 2.5, "harm_factor": 1, "harm_s": 60}},
]
SEED = 3


def assert_same(workload, text):
    spec = parse_policy(text)
    system = pool_of(workload.processors_total)
    assert unordered_because(spec, system) is None
    fast = replay_ordered(workload, system, spec, seed=SEED, placed=True)
    cycle = in_the_cycle(workload, spec, seed=SEED)
    assert_equal(workload, fast, cycle)
    assert np.array_equal(fast.predicted_s, cycle.predicted_s)


@pytest.mark.parametrize("text", POLICIES, ids=str)
@settings(max_examples=15, deadline=None)
@given(ANY_WORKLOAD)
def test_any_workload(text, workload):
    assert_same(workload, text)


@pytest.mark.parametrize("text", POLICIES, ids=str)
def test_orders_of_magnitude(text):
    assert_same(random_workload(1, 90, 32), text)


@pytest.mark.parametrize("text", POLICIES, ids=str)
def test_a_real_trace(text):
    assert_same(EXCERPT.first(150), text)


@pytest.mark.parametrize("text", [text for text in POLICIES if FEW["name"] in str(text)], ids=str)
def test_a_large_pool_as_one_node(text, monkeypatch):
    monkeypatch.setattr(ordered, "LARGE", 1)
    assert_same(random_workload(2, 90, 32), text)


@pytest.mark.parametrize(
    ("text", "why"),
    [("openccs", "plan openccs"), ("pairs", "share pairs"), ("malleable", "reshape malleable")],
)
def test_what_it_cannot_replay(text, why):
    assert why in unordered_because(PRESETS[text], pool_of(4))
