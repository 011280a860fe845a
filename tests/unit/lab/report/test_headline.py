# SPDX-License-Identifier: Apache-2.0
"""The first screen of a comparison."""

import dataclasses
import re

import numpy as np
import pytest

from bridge.lab.report.headline import change, headline, started_within
from bridge.measures import measure
from bridge.units import NEVER
from tests.unit.lab.report.test_report import a_run


def waiting(run, waits_s):
    """The same run, but its jobs waited so long; None: never started."""
    schedule = run.schedule
    start = [NEVER if w is None else s + w for s, w in zip(schedule.submit_s, waits_s, strict=True)]
    length = np.maximum(schedule.end_s - schedule.start_s, 1)
    end = [NEVER if s == NEVER else s + d for s, d in zip(start, length, strict=True)]
    schedule = dataclasses.replace(
        schedule, start_s=np.array(start, dtype=np.int64), end_s=np.array(end, dtype=np.int64)
    )
    return dataclasses.replace(run, schedule=schedule, measures=measure(schedule, run.decision_ms))


@pytest.mark.parametrize(
    ("ours", "theirs", "said"),
    [
        (5.0, 5.0, "the same"), (99.9, 100.0, "about the same"),
        (78.0, 100.0, "22 % less"), (126.0, 100.0, "26 % more"),
        (792.0, 98.0, "8.1 times as many"), (3.0, 0.0, "more"),
    ],
)  # fmt: skip
def test_a_change_in_words(ours, theirs, said):
    assert change(ours, theirs, "as many") == said


def test_shares_count_jobs_that_never_started():
    run = a_run("ours")
    count = len(run.schedule)
    run = waiting(run, [0] * (count - 1) + [None])
    assert started_within(run, (0, 60)) == [pytest.approx((count - 1) / count)] * 2


def test_gains_and_costs_are_marked_as_such():
    quick, slow = a_run("<quick>"), a_run("slow")
    quick = waiting(quick, [10] * len(quick.schedule))
    slow = waiting(slow, [100] * len(slow.schedule))
    gain, cost = headline(quick, slow), headline(slow, quick)
    assert 'class="tile gain"><span>mean wait' in gain
    assert 'class="tile cost"><span>mean wait' in cost
    assert "&lt;quick&gt;" in gain
    assert "<quick>" not in gain
    widths = [float(w) for w in re.findall(r"width:([\d.]+)%", gain)]
    assert widths[:2] == [100.0, 0.0]  # within a minute: all, none
