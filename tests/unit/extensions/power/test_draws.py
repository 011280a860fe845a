# SPDX-License-Identifier: Apache-2.0
"""What is learnt of the power of applications."""

import random

import numpy as np
import pytest

from bridge.extensions.power.draws import (
    HIGH,
    LOW,
    MAX_NAMES,
    MAX_RUNS,
    MAX_W,
    VERSION,
    bounds_of,
    from_numbers,
    learnt_bounds,
    observed,
    to_numbers,
)
from bridge.model.learnt import Learnt
from schedbridge_contracts.builders import a_running_job, a_snapshot
from schedbridge_contracts.crosses import each


def seen(learnt, *jobs, now_s=0):
    """One cycle; jobs as (id, low, high), all of one user and name."""
    running = [
        a_running_job(
            id=job, nodes=(at,), measured_min_power_w=low, measured_max_power_w=high, start_s=start
        )
        for at, (job, low, high, start) in enumerate((*job, 0)[:4] for job in jobs)
    ]
    return observed(a_snapshot(nodes=4, running=running, now_s=now_s)(), learnt)


def bounds(learnt, user="user"):
    low, high = learnt_bounds(learnt, np.array([user], object), np.array(["running"], object))
    return int(low[0]), int(high[0])


def test_a_run_is_learnt_when_it_is_over():
    learnt = seen(Learnt(), ("1", 100, 200))
    learnt = seen(learnt, ("1", 90, 150))
    learnt = seen(learnt, ("1", 0, 0))  # its agent is silent
    learnt = seen(learnt, ("1", 110, 220))
    assert bounds(learnt) == (0, 0)
    learnt = seen(learnt)
    assert bounds(learnt) == (90, 220)
    assert bounds(learnt, "another") == (0, 0)
    assert not learnt.running


def test_nothing_new_is_the_same_object():
    learnt = seen(Learnt(), ("1", 100, 200))
    assert seen(learnt, ("1", 100, 200)) is learnt
    assert seen(learnt, ("1", 120, 180), ("2", 0, 0)) is learnt


def test_a_job_that_was_never_measured_teaches_nothing():
    assert not seen(seen(Learnt(), ("1", 0, 0))).known


def test_a_requeued_job_is_another_run():
    learnt = seen(Learnt(), ("1", 100, 200, 5))
    learnt = seen(learnt, ("1", 50, 60, 9))
    assert bounds(learnt) == (100, 200)
    assert bounds(seen(learnt)) == (50, 200)


@each(seed=range(20))
def test_the_quantiles_of_the_last_runs(seed):
    """Against numpy and a list of all runs."""
    generator = random.Random(seed)
    learnt, runs = Learnt(), []
    for number in range(generator.randint(1, 3 * MAX_RUNS)):
        low = generator.randint(1, 300)
        runs.append((low, low + generator.randint(0, 300)))
        learnt = seen(seen(learnt, (str(number), *runs[-1])))
    minimum, maximum = zip(*runs[-MAX_RUNS:], strict=True)
    assert bounds(learnt) == (
        np.quantile(minimum, LOW, method="lower"), np.quantile(maximum, HIGH, method="higher"),
    )  # fmt: skip


def test_an_entry_survives_the_store():
    entry = {code: ((code + 1, 2 * code + 5),) * (code + 1) for code in range(MAX_RUNS)}
    assert from_numbers(to_numbers(entry)) == entry


@pytest.mark.parametrize(
    "numbers",
    [[], [VERSION + 1, 5, 1, 1, 2], [VERSION, 5], [VERSION, 5, 2, 1, 2], [VERSION, 5, -1, 1, 2],
     [VERSION, 5, MAX_RUNS + 1, *[1, 2] * (MAX_RUNS + 1)], [VERSION, 5, 1, 0, 2],
     [VERSION, 5, 1, 3, 2], [VERSION, 5, 1, 3, MAX_W + 1]],
)  # fmt: skip
def test_what_cannot_be_is_left_out(numbers):
    assert from_numbers(numbers) == {}


def test_a_user_has_a_bounded_entry():
    names = [f"job {number}" for number in range(3 * MAX_NAMES)]
    learnt = Learnt()
    for name in names:
        job = a_running_job(id="1", measured_min_power_w=5, measured_max_power_w=9)
        snapshot = a_snapshot(nodes=1, running=[job])()
        snapshot.running.name[0] = name
        learnt = observed(a_snapshot(nodes=1)(), observed(snapshot, learnt))
    low, high = learnt_bounds(
        learnt, np.array(["user"] * len(names), object), np.array(names, object)
    )
    assert (low > 0).tolist() == (high > 0).tolist()
    assert (high > 0).tolist() == [False] * 2 * MAX_NAMES + [True] * MAX_NAMES


def test_nothing_is_known_of_no_runs():
    assert bounds_of(()) == (0, 0)
