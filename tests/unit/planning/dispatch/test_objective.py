# SPDX-License-Identifier: Apache-2.0
"""What waiting costs each job."""

import numpy as np
import pytest

from bridge.errors import ConfigError
from bridge.planning.dispatch.objective import NAMES, Objective
from schedbridge_contracts.builders import a_job, a_snapshot

JOBS = [
    a_job(submit_s=900, priority=2),
    a_job(submit_s=1000, priority=4),
    a_job(submit_s=500, priority=-1),
]
WORLD = a_snapshot(jobs=JOBS, now_s=1000)()
EVERYBODY = np.arange(3)
LENGTH_S = np.array([100, 5, 50])
START_S = np.array([1100, 1004, 1000])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("slowdown", [(200 + 100) / 100, (4 + 5) / 5, (500 + 50) / 50]),
        ("bounded-slowdown", [3.0, 1.0, 11.0]),
        ("wait", [200, 4, 500]),
        ("priority", [200 * 0.5, 4 * 1.0, 0]),
    ],
)
def test_costs(name, expected):
    found = Objective(name).costs(WORLD, EVERYBODY, START_S, LENGTH_S)
    assert found.tolist() == pytest.approx(expected)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("ageing_s", [None, 100])
def test_a_second_later_costs_the_weight(name, ageing_s):
    goal = Objective(name, ageing_s)
    later_s = START_S + 1000
    gained = goal.costs(WORLD, EVERYBODY, later_s + 1, LENGTH_S) - goal.costs(
        WORLD, EVERYBODY, later_s, LENGTH_S
    )
    assert gained.tolist() == pytest.approx(goal.weights(WORLD, EVERYBODY, LENGTH_S).tolist())


def test_who_has_waited_counts_more():
    plain = Objective("wait").weights(WORLD, EVERYBODY, LENGTH_S)
    aged = Objective("wait", ageing_s=100).weights(WORLD, EVERYBODY, LENGTH_S)
    assert (aged / plain).tolist() == [2.0, 1.0, 6.0]


def test_who_has_waited_for_ageing_s_counts_as_a_job_of_that_length():
    world = a_snapshot(jobs=[a_job(submit_s=0)], now_s=3600)()
    one, length_s = np.arange(1), np.array([86_400])
    aged = Objective("slowdown", ageing_s=3600).weights(world, one, length_s)
    assert aged.tolist() == pytest.approx([1 / 86_400 + 1 / 3600])


def test_wrong_settings_are_refused():
    with pytest.raises(ConfigError, match="slowdown, bounded-slowdown, wait, priority"):
        Objective("speed")
    with pytest.raises(ConfigError, match="ageing_s"):
        Objective("wait", ageing_s=0)
