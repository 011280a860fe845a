# SPDX-License-Identifier: Apache-2.0
"""The record kept step by step is the one that the whole history gives."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.state.accuracy import Announced, Began, Happened, Promise, Waiting

JOBS = ("a", "b", "c", "d", "7")


@st.composite
def histories(draw):
    """Events in order of time; a job is promised only while it waits."""
    now_s, events, waits = 0, [], set(JOBS)
    for _ in range(draw(st.integers(1, 25))):
        now_s += draw(st.integers(1, 9))
        leave = draw(st.sets(st.sampled_from(JOBS), max_size=2)) & waits
        start = {job for job in sorted(leave) if draw(st.booleans())}
        back = draw(st.sets(st.sampled_from(JOBS), max_size=1))  # requeued, or a new job
        started = [Began(job, now_s - draw(st.integers(0, 2)), "p") for job in sorted(start)]
        waits = (waits - leave) | (back - leave)
        tell = draw(st.sets(st.sampled_from(JOBS))) & waits
        promised = {job: Announced(now_s + draw(st.integers(1, 30)), "p") for job in sorted(tell)}
        whole = draw(st.booleans())
        gone = [] if whole else sorted(leave - start)
        events.append(
            Happened(now_s, started, gone, sorted(waits) if whole else None, (), promised)
        )
    return events


def naive(events):
    """Everything from the full list of what was said to each job since it began to wait."""
    heard, started, gone = {job: [] for job in JOBS}, [], []
    for event in events:
        for job, at_s, partition in event.started:
            started.append((job, at_s, partition, summary(heard[job], at_s)))
            heard[job] = []
        for job in JOBS:
            left = job in event.gone or (event.waiting is not None and job not in event.waiting)
            if left and heard[job]:
                gone.append((job, event.now_s, "p", summary(heard[job], event.now_s)))
                heard[job] = []
        for job, (start_s, _) in event.promised.items():
            heard[job].append((event.now_s, start_s))
    return started, sorted(gone)


def summary(heard, at_s):
    if not heard or heard[0][0] > at_s:
        return None
    starts = np.array([start_s for _, start_s in heard])
    shifts = np.diff(starts)
    said_s = next(now_s for at, (now_s, _) in enumerate(heard) if (starts[at:] == starts[-1]).all())
    return Promise(
        int(starts[0]), heard[0][0], int(starts[-1]), said_s,
        int((shifts != 0).sum()), int(shifts[shifts > 0].sum()), int(-shifts[shifts < 0].sum()),
    )  # fmt: skip


@settings(max_examples=120, deadline=None)
@given(histories())
def test_step_by_step_as_from_the_whole_history(events):
    """Slow: the account is kept step by step, and again from 120 whole histories."""
    waiting, started, gone = Waiting(), [], []
    for event in events:
        changes = waiting.happen(event)
        started += changes.started
        gone += changes.gone
    assert (started, sorted(gone)) == naive(events)


@settings(max_examples=100, deadline=None)
@given(histories(), st.data())
def test_a_restart_in_between_changes_nothing(events, data):
    """Slow: 100 histories, each of which is lived through twice."""
    whole, halves = Waiting(), Waiting()
    cut = data.draw(st.integers(0, len(events)))
    for at, event in enumerate(events):
        if at == cut:
            again = Waiting()
            again.restore((job, *halves[job]) for job in JOBS if job in halves)
            halves = again
        one, other = whole.happen(event), halves.happen(event)
        assert one.started == other.started
        assert sorted(one.gone) == sorted(other.gone)
        assert one.touched == other.touched
