# SPDX-License-Identifier: Apache-2.0
"""EASY by predictions on counts and the cycle must give the very same starts."""

from importlib.resources import files

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.ports import Environment
from bridge.registry import PRESETS, build, parse_policy, predicting
from bridge.safe_cycle.decider import Decider
from bridge.sim.runs.engine import simulate
from bridge.sim.runs.foreseen import foreseeable, replay_foreseen
from bridge.sim.workloads.swf import read_swf
from bridge.sim.workloads.system import pool_of
from bridge.sim.workloads.workload import workload_from
from tests.unit.sim.test_replay import assert_equal
from tests.workloads import a_workload, random_workload

EXCERPT = workload_from(read_swf(files("bridge.sim").joinpath("data/KTH-SP2-1996-excerpt.swf.gz")))
SECOND = {"name": "last-two", "extension": "second"}
PATIENT = {"name": "last-two", "patience_s": 600}
PREDICTORS = ["last-two", "name-history", "oracle", SECOND, PATIENT]


def both(workload, predictor):
    spec = parse_policy({"preset": "easy", "predict": predictor})
    system = pool_of(workload.processors_total)
    assert foreseeable(spec, system)
    fast = replay_foreseen(workload, system, spec, placed=True)
    truth = dict(zip(workload.id, workload.runtime_s.tolist(), strict=True))
    cycle = simulate(
        workload, system, Decider(build(spec), environment=Environment(run_s=truth)).decide
    )
    return fast, cycle


def assert_same(workload, predictor):
    fast, cycle = both(workload, predictor)
    assert_equal(workload, fast, cycle)
    assert np.array_equal(fast.predicted_s, cycle.predicted_s)


@pytest.mark.parametrize("predictor", PREDICTORS, ids=str)
@settings(max_examples=25, deadline=None)
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
def test_any_workload(predictor, jobs, spare):
    assert_same(a_workload(jobs, max(size for *_, size in jobs) + spare), predictor)


@pytest.mark.parametrize("predictor", PREDICTORS, ids=str)
@pytest.mark.parametrize("seed", range(2))
def test_random_workloads(predictor, seed):
    assert_same(random_workload(seed, 150, 32), predictor)


@pytest.mark.parametrize("predictor", PREDICTORS, ids=str)
def test_a_real_trace(predictor):
    assert_same(EXCERPT.first(300), predictor)


def test_what_it_cannot_replay():
    pool = pool_of(4)
    assert not foreseeable(PRESETS["easy"], pool)
    assert not foreseeable(predicting(PRESETS["conservative"], "last-two"), pool)
    assert foreseeable(predicting(PRESETS["easy"], "last-two"), pool)
