# SPDX-License-Identifier: Apache-2.0
"""Progress over phases and changes of width, against integration in small steps."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.lab.sim.runs.work import Work
from bridge.lab.sim.workloads.speedup import Amdahl, Downey, Phase, Phases, Table
from bridge.lab.sim.workloads.workload import Malleable
from schedbridge_contracts.workloads import a_workload

STEP_S = 1 / 16

models = st.one_of(
    st.floats(0, 1).map(Amdahl),
    st.tuples(st.floats(1, 16), st.floats(0, 3)).map(lambda pair: Downey(*pair)),
    st.just(Table((1, 4, 16), (1.0, 3.0, 2.0))),
)
shares = st.lists(st.integers(1, 9), min_size=1, max_size=4)


@st.composite
def phased(draw):
    weights = draw(shares)
    parts = [Phase(one / sum(weights), draw(models)) for one in weights]
    return Phases(tuple(parts))


changes = st.lists(
    st.tuples(
        st.integers(1, 60), st.integers(1, 16), st.floats(0, 5), st.floats(0, 5)
    ),  # after the change before is over, to this width, goes on, stands still
    max_size=5,
)


def a_job(speedup, runtime_s, nominal, limit_s=None):
    workload = a_workload([(1, runtime_s, limit_s or runtime_s, nominal)], 16)
    one = np.ones(1, dtype=np.int64)
    widths = Malleable(
        one, 16 * one, np.zeros(1, dtype=np.int8), nominal * one, np.array([speedup])
    )
    return replace(workload, malleable=widths)


def history(begin_s, width, planned):
    """When which width holds; 0: it stands still. And the changes as `Work.resize` gets them."""
    legs, calls, now_s = [(begin_s, width)], [], begin_s
    for after_s, wide, goes_on_s, still_s in planned:
        now_s += after_s
        calls.append((wide, now_s, goes_on_s, still_s))
        legs += [(now_s + goes_on_s, 0), (now_s + goes_on_s + still_s, wide)]
        now_s += int(goes_on_s + still_s) + 1
    return legs, calls


def naive(speedup, runtime_s, nominal, legs, begin_s, until_s):
    """Work done on one node's scale, step by step, as a share of the whole; 1: all of it."""
    whole = runtime_s * speedup.at(nominal)
    done, now_s = 0.0, float(begin_s)
    ends = np.cumsum([phase.share for phase in speedup.parts()])
    while now_s < until_s:
        step_s = min(STEP_S, until_s - now_s)
        width = [wide for since_s, wide in legs if since_s <= now_s + step_s / 2][-1]
        phase = speedup.parts()[min(int(np.searchsorted(ends, done, "right")), len(ends) - 1)]
        done += step_s * (phase.speedup.at(width) if width else 0.0) / whole
        now_s += step_s
    return done


@given(phased(), st.integers(20, 120), st.integers(1, 16), st.integers(1, 16), changes)
def test_all_work_is_done_at_the_end_and_not_a_second_before(
    speedup, runtime_s, nominal, width, planned
):
    work = Work(a_job(speedup, runtime_s, nominal))
    work.start(0, width, 5)
    legs, calls = history(5, width, planned)
    for wide, now_s, goes_on_s, still_s in calls:
        if now_s >= work.end_s(0):
            legs = [leg for leg in legs if leg[0] < now_s]
            break
        work.resize(0, wide, now_s, goes_on_s, still_s)
    end_s = work.end_s(0)
    fastest = max(part.speedup.at(n) for part in speedup.parts() for n in range(1, 17))
    whole = runtime_s * speedup.at(nominal)
    errors = (len(legs) + len(speedup.parts()) + 1) * STEP_S * fastest / whole
    assert naive(speedup, runtime_s, nominal, legs, 5, end_s) >= 1 - errors
    assert naive(speedup, runtime_s, nominal, legs, 5, end_s - 1) <= 1 + errors


@given(models, st.integers(1, 4), st.integers(20, 500), st.integers(1, 16), st.integers(1, 16),
       changes)  # fmt: skip
def test_equal_phases_are_the_plain_model(model, parts, runtime_s, nominal, width, planned):
    """One phase or several of the same model: the same ends and limits."""
    plain = Work(a_job(model, runtime_s, nominal, 2 * runtime_s))
    phases = Phases(tuple(Phase(1 / parts, model) for _ in range(parts)))
    same = Work(a_job(phases, runtime_s, nominal, 2 * runtime_s))
    for work in (plain, same):
        work.start(0, width, 5)
    for wide, now_s, goes_on_s, still_s in history(5, width, planned)[1]:
        for work in (plain, same):
            work.resize(0, wide, now_s, goes_on_s, still_s)
    apart = 0 if parts == 1 else 1  # sums of floats may round to the next second
    assert abs(plain.end_s(0) - same.end_s(0)) <= apart
    assert abs(plain.limit_s(0) - same.limit_s(0)) <= apart


@given(phased(), st.integers(1, 500), st.integers(1, 16), st.integers(0, 100))
def test_at_its_nominal_width_a_job_lasts_as_stated(speedup, runtime_s, nominal, more_s):
    work = Work(a_job(speedup, runtime_s, nominal, runtime_s + more_s))
    work.start(0, nominal, 7)
    assert work.end_s(0) == 7 + runtime_s
    assert work.limit_s(0) == 7 + runtime_s + more_s


def test_phases_begin_where_their_work_does():
    # 100 s on one node: 40 s of a serial phase, 60 s that scale perfectly.
    speedup = Phases((Phase(0.4, Amdahl(1.0)), Phase(0.6, Amdahl(0.0))))
    work = Work(a_job(speedup, 100, 1))
    work.start(0, 4, 0)
    assert work.phases(0) == [(0.0, 0), (40.0, 1)]
    assert work.end_s(0) == 40 + 15
    work.resize(0, 1, 45, 2.0, 3.0)  # 5 s at 4 nodes, 2 s more, then 3 s of nothing
    assert work.phases(0) == [(50.0, 1)]
    assert work.end_s(0) == 50 + 60 - 4 * 7


def test_a_job_may_end_before_it_stands_still():
    work = Work(a_job(Amdahl(0.0), 10, 1))
    work.start(0, 1, 0)
    work.resize(0, 2, 8, 4.0, 1.0)
    assert work.end_s(0) == 10


@pytest.mark.parametrize("still_s", [0.0, 0.25, 3.0])
def test_time_without_progress_moves_the_end_by_as_much(still_s):
    work = Work(a_job(Amdahl(0.3), 100, 2))
    work.start(0, 2, 0)
    work.resize(0, 2, 50, 1.5, still_s)
    assert work.end_s(0) == 100 + int(np.ceil(still_s))
