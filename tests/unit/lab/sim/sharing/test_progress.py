# SPDX-License-Identifier: Apache-2.0
"""The work of two jobs on the same nodes, against small steps of time, and its invariants."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.lab.sim.sharing.interference import Application, UseStage
from bridge.lab.sim.sharing.progress import CpuLimits, SharedWork
from bridge.lab.sim.sharing.rates import Side, alone, together
from tests.unit.lab.sim.sharing.naive_pair import STEP_S, NaiveJob, step

ORIGIN_S = 1_400_000_000
NODE_CPUS = 4
part = st.floats(0, 1).map(lambda value: round(value, 3))
stages = st.lists(
    st.builds(
        UseStage, st.just("s"), st.integers(1, 5).map(float), st.booleans(), part, part, part
    ),
    min_size=1, max_size=3,
)  # fmt: skip


@st.composite
def applications(draw: Any) -> Application:
    drawn = draw(stages)
    total = sum(stage.share for stage in drawn)
    scaled = [UseStage(s.name, s.share / total, s.parallel, s.cpu, s.io, s.memory) for s in drawn]
    return Application("a", tuple(scaled), draw(part), draw(part))


limits = st.builds(
    CpuLimits, st.sampled_from((0.1, 0.25, 0.5, 0.75, 1.0)), st.sampled_from((1.0, 100.0, 10_000.0))
)
sides = st.builds(
    lambda application, at, cpus, given: Side(
        application, application.stages[at % len(application.stages)], cpus, NODE_CPUS,
        given.ceiling, given.weight,
    ),
    applications(), st.integers(0, 2), st.integers(1, NODE_CPUS), limits,
)  # fmt: skip


def naive(
    application: Application, cpus: int, of: int, runtime_s: float, limit: CpuLimits
) -> NaiveJob:
    drawn = [
        (runtime_s * s.share, s.cpu * cpus if s.parallel else s.cpu, s.io)
        for s in application.stages
    ]
    return NaiveJob(
        drawn, of, application.pressure, application.sensitivity, limit.ceiling, limit.weight
    )


@given(sides, sides)
def test_no_capacity_is_forged(one: Side, other: Side) -> None:
    """The disk's time and the CPUs' are shared out once, and nobody is faster than alone."""
    first, second = together(one, other)
    assert first.busy + second.busy <= NODE_CPUS + 1e-9
    for side, rate in ((one, first), (other, second)):
        assert 0 < rate.speed <= 1
        assert rate.busy <= min(alone(side).busy, side.ceiling * NODE_CPUS) + 1e-9
    disk = [rate.speed * side.stage.io for side, rate in ((one, first), (other, second))]
    assert sum(disk) <= 1 + 1e-9


@given(sides, sides)
def test_cpu_time_is_not_left_idle_while_somebody_wants_it(one: Side, other: Side) -> None:
    """Without disks and pressure it is what both may use together, or all there is."""
    calm = Application("calm", (UseStage("q", 1, True, 1),))
    quiet = [
        replace(s, application=calm, stage=UseStage("q", 1, s.stage.parallel, s.stage.cpu))
        for s in (one, other)
    ]
    first, second = together(*quiet)
    wanted = sum(min(alone(side).busy, side.ceiling * NODE_CPUS) for side in quiet)
    assert first.busy + second.busy == pytest.approx(min(wanted, NODE_CPUS))


@given(sides, sides, st.sampled_from((0.1, 0.25, 0.5)))
def test_a_lower_quota_never_gives_the_guest_cpu_time(one: Side, other: Side, low: float) -> None:
    tight = replace(other, ceiling=low * other.ceiling)
    assert together(one, tight)[1].speed <= together(one, other)[1].speed + 1e-9
    assert together(one, tight)[0].speed >= together(one, other)[0].speed - 1e-9


@settings(max_examples=40, deadline=None)
@given(
    applications(), applications(), st.integers(1, 6), st.integers(1, 6), st.integers(0, 5),
    st.integers(1, 4), st.integers(1, 4), limits, limits, st.integers(1, 6),
)  # fmt: skip
def test_two_jobs_take_as_long_as_in_small_steps(
    host_app: Application, guest_app: Application, host_s: int, guest_s: int, begin_s: int,
    cpus: int, requested: int, given_host: CpuLimits, given_guest: CpuLimits, change_s: int,
) -> None:  # fmt: skip
    """The guest begins some time after the host, and its quota changes some time later."""
    work = SharedWork()
    work.start(0, host_app, cpus=cpus, runtime_s=host_s, now_s=ORIGIN_S)
    guest_cpus = min(cpus, requested)
    slow = [
        naive(host_app, cpus, cpus, host_s, given_host),
        naive(guest_app, guest_cpus, cpus, guest_s, CpuLimits()),
    ]
    started = begin_s < host_s
    changes = {begin_s + change_s: given_guest}
    if started:
        work.start(1, guest_app, cpus=guest_cpus, runtime_s=guest_s, now_s=ORIGIN_S + begin_s)
        work.pair(0, 1, ORIGIN_S + begin_s)
        work.limit(0, given_host, ORIGIN_S + begin_s)
    live = [0, 1] if started else [0]
    for second in range(400):
        now_s = ORIGIN_S + second
        for job in list(live):
            if (second >= begin_s or job == 0) and work.end_s(job) <= now_s:
                used = work.read(job, now_s).used
                assert used.cpu_s == pytest.approx(slow[job].cpu_s, abs=0.2 * cpus)
                ended_s = slow[job].ended_s
                if ended_s is None or abs(ended_s - second) > 1.1:
                    assert slow[job].done_s == pytest.approx(slow[job].total_s, abs=0.1)
                work.end(job, now_s)
                live.remove(job)
        if second in changes and 1 in live and 0 in live:
            work.limit(1, changes[second], now_s)
            slow[1].ceiling, slow[1].weight = given_guest.ceiling, given_guest.weight
        if not live:
            break
        shown = [slow[0], slow[1]] if second >= begin_s and started else [slow[0]]
        for at in range(round(1 / STEP_S)):
            if any(job.ended_s is None for job in shown):
                step(shown, second + at * STEP_S)
    assert not live


@given(applications(), st.integers(1, 100_000), st.lists(st.integers(1, 99_999), max_size=20))
def test_a_job_alone_takes_its_run_time_to_the_second(
    application: Application, runtime_s: int, looks: list[int]
) -> None:
    work = SharedWork()
    work.start(7, application, cpus=3, runtime_s=runtime_s, now_s=ORIGIN_S)
    for at_s in sorted(look for look in looks if look < runtime_s):
        work.read(7, ORIGIN_S + at_s)
        assert work.end_s(7) == ORIGIN_S + runtime_s


def busy(pressure: float = 0.0, sensitivity: float = 0.0) -> Application:
    return Application("busy", (UseStage("all", 1, True, 1.0),), pressure, sensitivity)


@pytest.mark.parametrize(
    ("quota", "weight", "slowdown"),
    [(0.1, 100, 1.11), (0.25, 100, 1.33), (0.5, 100, 2.0), (0.75, 100, 2.0), (1.0, 1, 1.01)],
)
def test_a_quota_costs_a_busy_host_what_it_gives_up_to_equal_shares(
    quota: float, weight: float, slowdown: float
) -> None:
    """Measured on real nodes: 1.04-1.10, 1.19-1.33, 1.75-2.0, 1.65-2.0, 0.94-1.09."""
    work = SharedWork()
    work.start(0, busy(), cpus=2, runtime_s=1000, now_s=0)
    work.start(1, busy(), cpus=2, runtime_s=100_000, now_s=0)
    work.pair(0, 1, 0)
    work.limit(1, CpuLimits(quota, weight), 0)
    assert work.end_s(0) / 1000 == pytest.approx(slowdown, abs=0.01)


@pytest.mark.parametrize(("quota", "above_s"), [(0.05, 0.0), (0.1, 40.0), (0.2, 40.0)])
def test_the_time_of_a_slowdown_above_the_bound_is_counted(quota: float, above_s: float) -> None:
    """A busy host is slowed down by 5, 11 or 25 %, until its guest is held back."""
    work = SharedWork()
    for job in (0, 1):
        work.start(job, busy(), cpus=4, runtime_s=1000, now_s=0)
    work.pair(0, 1, 20)
    work.limit(1, CpuLimits(quota), 20)
    work.limit(1, CpuLimits(0.05), 60)
    assert work.read(0, 200).used.above_s == pytest.approx(above_s)


def test_when_the_host_ends_its_guest_gets_all_that_there_is() -> None:
    work = SharedWork()
    work.start(0, busy(), cpus=4, runtime_s=90, now_s=0)
    work.start(1, busy(), cpus=4, runtime_s=100, now_s=0)
    work.pair(0, 1, 0)
    work.limit(1, CpuLimits(0.1), 0)
    assert (work.end_s(0), work.end_s(1)) == (100, 190)
    assert work.end(0, 100).lost_s == pytest.approx(10)
    assert work.beside(1) == ()
    reading = work.read(1, 150)
    assert reading.busy == 4
    assert reading.used.cpu_s == pytest.approx(0.4 * 100 + 4 * 50)
    assert reading.used.shared_s == 100
    assert reading.used.lost_s == pytest.approx(90)
    assert work.end_s(1) == 190


def test_at_most_two_jobs_share() -> None:
    work = SharedWork()
    for job in range(3):
        work.start(job, busy(), cpus=4, runtime_s=90, now_s=0)
    work.pair(0, 1, 0)
    for host, guest in ((0, 2), (2, 1), (1, 2), (2, 2)):
        with pytest.raises(ValueError, match=r"shares|own guest"):
            work.pair(host, guest, 0)
