# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

from bridge.measures import (
    ExecutedSchedule,
    bounded_slowdown,
    makespan_s,
    measure,
    slowdown,
    start_accuracy,
    steps,
    turnaround_s,
    utilization,
    wait_s,
)
from bridge.units import NEVER


def a_schedule(*jobs, capacity=4):
    """Jobs as (submit_s, start_s, end_s, processors)."""
    columns = np.array(jobs, dtype=np.int64).reshape(-1, 4)
    return ExecutedSchedule(capacity, *columns.T)


# A 100 s job that waited 50 s, and a 2 s job that waited 18 s.
TWO = a_schedule((0, 50, 150, 2), (10, 28, 30, 4))


def test_each_measure_by_its_formula():
    assert wait_s(TWO).tolist() == [50, 18]
    assert turnaround_s(TWO).tolist() == [150, 20]
    assert slowdown(TWO).tolist() == [1.5, 10.0]
    assert bounded_slowdown(TWO).tolist() == [1.5, 2.0]
    assert makespan_s(TWO) == 150
    assert utilization(TWO) == (2 * 100 + 4 * 2) / (4 * 150)


def test_a_short_job_that_did_not_wait_is_not_sped_up():
    assert bounded_slowdown(a_schedule((0, 0, 2, 1))).tolist() == [1.0]


def test_jobs_that_did_not_end_are_counted_and_nothing_else():
    found = measure(
        a_schedule((0, 50, 150, 2), (10, 28, 30, 4), (0, NEVER, NEVER, 4), (0, 3, NEVER, 4)),
        np.array([1.0, 3.0]),
    )
    alone = measure(TWO, np.array([1.0, 3.0]))
    assert (found.jobs, found.unfinished) == (2, 2)
    assert found.wait_s == alone.wait_s
    assert found.utilization == alone.utilization


def test_summary():
    found = measure(TWO, np.array([1.0, 3.0]))
    assert (found.wait_s.mean, found.wait_s.p50, found.wait_s.max) == (34.0, 34.0, 50.0)
    assert (found.decisions, found.decision_ms.mean) == (2, 2.0)
    assert [(size.name, size.jobs, size.wait_s_mean) for size in found.by_size] == [
        ("up to 1/2", 1, 50.0),
        ("over 1/2", 1, 18.0),
    ]


@pytest.mark.parametrize("capacity", [1, 3, 8, 100])
def test_every_job_is_in_one_size_class(capacity):
    jobs = a_schedule(*[(0, 0, 10, size) for size in range(1, capacity + 1)], capacity=capacity)
    by_size = measure(jobs, np.zeros(0)).by_size
    assert sum(size.jobs for size in by_size) == capacity
    assert by_size[0].name == "1 processor"


def test_nothing_ran():
    found = measure(a_schedule((0, NEVER, NEVER, 1)), np.zeros(0))
    assert (found.jobs, found.unfinished, found.utilization, found.makespan_s) == (0, 1, 0.0, 0)
    assert found.wait_s.mean == 0.0


def test_steps_of_touching_intervals_do_not_overlap():
    at_s, total = steps(np.array([0, 5, 5]), np.array([5, 9, 7]), np.array([2, 1, 1]))
    assert at_s.tolist() == [0, 5, 7, 9]
    assert total.tolist() == [2, 2, 1, 0]


def test_start_errors_by_their_formulas():
    first = np.array([-100, 0, 20, 400])
    last = np.array([-10, 0, 0, 40])
    found = start_accuracy(
        first, last, unpromised=3, gone=2, changed=1, changes=6, later_s=80, earlier_s=20
    )
    assert (found.promised, found.unpromised, found.gone) == (4, 3, 2)
    assert found.first.median_s == 10
    assert (found.first.absolute_s.p50, found.first.absolute_s.mean) == (60, 130)
    assert (found.first.kept, found.last.kept) == (0.5, 0.75)
    assert found.last.absolute_s.p90 == pytest.approx(31)
    assert (found.changed, found.changes) == (0.25, 1.5)
    assert (found.later_s, found.earlier_s) == (20, 5)


def test_without_promises_everything_is_nothing():
    nobody = np.zeros(0, dtype=np.int64)
    found = start_accuracy(
        nobody, nobody, unpromised=5, gone=0, changed=0, changes=0, later_s=0, earlier_s=0
    )
    assert (found.unpromised, found.changes, found.last.kept) == (5, 0, 0)
