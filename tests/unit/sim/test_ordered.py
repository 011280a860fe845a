# SPDX-License-Identifier: Apache-2.0
"""Any order, and search, on counts and in the cycle must give the very same starts and promises."""

from importlib.resources import files

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.ports import Environment
from bridge.registry import PRESETS, build, parse_policy
from bridge.safe_cycle.decider import Decider
from bridge.sim.runs.engine import simulate
from bridge.sim.runs.ordered import replay_ordered, unordered_because
from bridge.sim.workloads.swf import read_swf
from bridge.sim.workloads.system import pool_of
from bridge.sim.workloads.workload import workload_from
from tests.unit.sim.test_replay import assert_equal
from tests.workloads import a_workload, random_workload

EXCERPT = workload_from(read_swf(files("bridge.sim").joinpath("data/KTH-SP2-1996-excerpt.swf.gz")))
FEW = {"name": "search", "effort": 900, "budget_ms": 0, "most_wait_s": 900, "window": 12}
POLICIES = [
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
    truth = dict(zip(workload.id, workload.runtime_s.tolist(), strict=True))
    decider = Decider(build(spec), seed=SEED, environment=Environment(run_s=truth))
    cycle = simulate(workload, system, decider.decide)
    assert_equal(workload, fast, cycle)
    assert np.array_equal(fast.predicted_s, cycle.predicted_s)


@pytest.mark.parametrize("text", POLICIES, ids=str)
@settings(max_examples=15, deadline=None)
@given(
    jobs=st.lists(
        st.tuples(
            st.integers(1, 3000), st.integers(1, 2500), st.integers(1, 2500), st.integers(1, 6)
        ),
        min_size=1,
        max_size=25,
    ),
    spare=st.integers(0, 3),
)
def test_any_workload(text, jobs, spare):
    assert_same(a_workload(jobs, max(size for *_, size in jobs) + spare), text)


@pytest.mark.parametrize("text", POLICIES, ids=str)
def test_orders_of_magnitude(text):
    assert_same(random_workload(1, 90, 32), text)


@pytest.mark.parametrize("text", POLICIES, ids=str)
def test_a_real_trace(text):
    assert_same(EXCERPT.first(150), text)


@pytest.mark.parametrize(
    ("text", "why"),
    [("openccs", "plan openccs"), ("pairs", "share pairs"), ("malleable", "reshape malleable")],
)
def test_what_it_cannot_replay(text, why):
    assert why in unordered_because(PRESETS[text], pool_of(4))
