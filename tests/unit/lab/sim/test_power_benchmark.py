# SPDX-License-Identifier: Apache-2.0
"""Which jobs and bounds benchmarks/power.py makes of a log."""

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bridge.lab.sim.workloads.job_power import JobPower
from schedbridge_contracts.workloads import a_workload

BENCHMARKS = Path(__file__).parents[4] / "benchmarks"
HOUR_S, DAY_S = 3600, 86_400


@pytest.fixture(scope="module")
def power():
    sys.path.insert(0, str(BENCHMARKS))
    try:
        spec = importlib.util.spec_from_file_location("power_benchmark", BENCHMARKS / "power.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(BENCHMARKS))
    return module


def draws(*draw_w):
    column = np.array(draw_w, dtype=np.int64)
    return JobPower(column, column, column)


def test_the_bound_is_lower_each_night_and_longer_once_a_week(power):
    whole = power.corridor(1000, 10).whole(1)
    reduced_h = [
        sum(whole.at(1 + day * DAY_S + hour * HOUR_S)[1] == 600 for hour in range(24))
        for day in range(10)
    ]
    assert reduced_h == [4, 4, 16, 4, 4, 4, 4, 4, 4, 16]
    assert whole.at(12 * HOUR_S)[1] == 800
    assert all(step.announced for step in power.corridor(1000, 10).steps)


def test_the_jobs_of_some_days_keep_what_they_draw(power):
    jobs = [(1 + day * DAY_S, 60, 60, day + 1) for day in range(6)]
    workload = replace(a_workload(jobs, 8), power=draws(*range(100, 106)))
    found = power.days(workload, 2, 3)
    assert found.processors.tolist() == [3, 4, 5]
    assert found.power.draw_w.tolist() == [102, 103, 104]
    assert found.id.tolist() == ["3", "4", "5"]


def test_jobs_that_no_window_leaves_room_for_are_found(power):
    """10 nodes draw 1000 W idle; each node of these jobs draws 100 W more."""
    day_h = 20  # longest time between two windows
    jobs = [
        (1, 60, 60, 4), (1, 60, day_h * HOUR_S, 9), (1, 60, day_h * HOUR_S + 1, 9),
        (1, 60, 9 * DAY_S, 2), (1, 60, 60, 10),
    ]  # fmt: skip
    workload = replace(a_workload(jobs, 10), power=draws(*[200] * 5))
    steps = power.corridor(2000, 10)  # 1600 W, reduced 1200 W
    found = power.startable(workload, steps)
    by_width = dict(zip(zip(workload.processors, workload.time_limit_s), found))  # noqa: B905
    assert by_width[4, 60]
    assert not by_width[9, day_h * HOUR_S]  # 1900 W is too much at any time
    assert by_width[2, 9 * DAY_S]
    six = replace(workload, processors=np.array([6, 6, 6, 3, 6]))
    assert power.startable(six, steps).tolist() == [True, True, False, False, True]
