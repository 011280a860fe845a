# SPDX-License-Identifier: Apache-2.0
import math

import pytest

from bridge.extensions.sharing.observation import (
    FEATURES,
    MAX_HAPPY,
    Observation,
    happiness,
    overrun_loss,
)

HALF_WAY = {"elapsed_s": 50.0, "time_limit_s": 100.0, "used_cpu_s": 200.0}


@pytest.mark.parametrize(
    ("cpus_now", "expected_cpu_s", "expected"),
    [
        (4.0, 400.0, 1.0),  # as fast as needed
        (4.0, 600.0, 0.5),  # twice as much to do as time is left for
        (8.0, 400.0, 2.0),
        (0.0, 400.0, 0.0),  # nothing is done at present
        (4.0, 200.0, MAX_HAPPY),  # nothing is left
        (4.0, 150.0, MAX_HAPPY),  # more was done than expected
        (4.0, None, 1.0),  # as busy as on average
        (2.0, None, 0.5),
    ],
)
def test_happiness_half_way(cpus_now, expected_cpu_s, expected):
    found = happiness(**HALF_WAY, cpus_now=cpus_now, expected_cpu_s=expected_cpu_s)
    assert found == pytest.approx(expected)


def test_a_job_past_its_limit_is_unhappy():
    assert happiness(
        elapsed_s=120, time_limit_s=100, used_cpu_s=100, cpus_now=4, expected_cpu_s=500
    ) == 0.0  # fmt: skip


def test_a_job_that_has_just_started_has_no_mean_yet():
    assert happiness(elapsed_s=0, time_limit_s=100, used_cpu_s=0, cpus_now=4) == pytest.approx(1)


@pytest.mark.parametrize(
    ("run_s", "loss"), [(70, 0), (100, 0), (110, 0.2), (125, 0.5), (150, 1), (500, 1)]
)
def test_the_loss_grows_with_the_overrun(run_s, loss):
    assert overrun_loss(run_s, 100) == pytest.approx(loss)


@pytest.mark.parametrize(("run_s", "limit_s"), [(1, 0), (1, -5), (math.nan, 5), (1, math.inf)])
def test_a_loss_needs_real_times(run_s, limit_s):
    with pytest.raises(ValueError, match="time limit"):
        overrun_loss(run_s, limit_s)


def test_the_table_of_features_is_the_observation():
    assert list(FEATURES) == list(Observation.__dataclass_fields__)
