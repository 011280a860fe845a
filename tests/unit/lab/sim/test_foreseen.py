# SPDX-License-Identifier: Apache-2.0
"""EASY by predictions on counts and the cycle must give the very same starts."""

import numpy as np
import pytest
from hypothesis import given, settings

from bridge.lab.sim.runs.foreseen import foreseeable, replay_foreseen
from bridge.lab.sim.workloads.system import pool_of
from bridge.registry import PRESETS, parse_policy, predicting
from schedbridge_contracts.workloads import random_workload
from tests.unit.lab.sim.test_replay import EXCERPT, assert_equal, in_the_cycle
from tests.workloads import ANY_WORKLOAD

SECOND = {"name": "last-two", "extension": "second"}
PATIENT = {"name": "last-two", "patience_s": 600}
PREDICTORS = ["last-two", "name-history", "oracle", SECOND, PATIENT]


def both(workload, predictor):
    spec = parse_policy({"preset": "easy", "predict": predictor})
    system = pool_of(workload.processors_total)
    assert foreseeable(spec, system)
    fast = replay_foreseen(workload, system, spec, placed=True)
    return fast, in_the_cycle(workload, spec)


def assert_same(workload, predictor):
    fast, cycle = both(workload, predictor)
    assert_equal(workload, fast, cycle)
    assert np.array_equal(fast.predicted_s, cycle.predicted_s)


@pytest.mark.parametrize("predictor", PREDICTORS, ids=str)
@settings(max_examples=25, deadline=None)
@given(ANY_WORKLOAD)
def test_any_workload(predictor, workload):
    assert_same(workload, predictor)


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
