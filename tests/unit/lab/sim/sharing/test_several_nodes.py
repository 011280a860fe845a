# SPDX-License-Identifier: Apache-2.0
"""A host and guests on some of its nodes, against small steps of time, node by node."""

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bridge.lab.sim.sharing.interference import Application, UseStage
from bridge.lab.sim.sharing.progress import CpuLimits, Meets, SharedWork
from tests.unit.lab.sim.sharing.naive_pair import fill

CPUS = 2
STEP_S = 1 / 64
part = st.floats(0.05, 1).map(lambda value: round(value, 3))


@st.composite
def applications(draw: Any) -> Application:
    drawn = draw(
        st.lists(st.builds(UseStage, st.just("s"), st.integers(1, 3).map(float), st.booleans(),
                           part, part, part), min_size=1, max_size=3)
    )  # fmt: skip
    total = sum(stage.share for stage in drawn)
    scaled = [UseStage(s.name, s.share / total, s.parallel, s.cpu, s.io, s.memory) for s in drawn]
    return Application("a", tuple(scaled), draw(part), draw(part))


@dataclass
class OnNodes:
    """A job on named nodes; the first one is its head."""

    application: Application
    nodes: tuple[int, ...]
    run_s: float
    limits: CpuLimits
    done_s: float = 0.0
    ended_s: float | None = None

    def stage(self) -> UseStage:
        at = self.done_s / self.run_s
        for stage in self.application.stages:
            if at < stage.share - 1e-9:
                return stage
            at -= stage.share
        return self.application.stages[-1]

    def demand(self, node: int) -> tuple[float, float] | None:
        """CPU and disk of a node; None: it does nothing there."""
        stage = self.stage()
        if self.ended_s is not None or node not in self.nodes:
            return None
        if stage.parallel:
            return stage.cpu, stage.io
        return (stage.cpu / CPUS, stage.io) if node == self.nodes[0] else None


def speeds_on(node: int, jobs: list[OnNodes], shared: bool) -> dict[int, float]:
    """Of each job that is busy on a node."""
    busy = {at: found for at, job in enumerate(jobs) if (found := job.demand(node)) is not None}
    caps = {at: jobs[at].limits.ceiling if shared and at else 1.0 for at in busy}
    cpu = fill([min(busy[at][0], caps[at]) for at in busy], [jobs[at].limits.weight for at in busy])
    of_cpu = [min(cpu[n] / busy[at][0], 1.0) for n, at in enumerate(busy)]
    disk = fill([busy[at][1] * of_cpu[n] for n, at in enumerate(busy)], [1.0] * len(busy))
    alone = {at: min(of_cpu[n], disk[n] / busy[at][1]) for n, at in enumerate(busy)}
    part = dict(alone)
    for at, other in [(a, b) for a in busy for b in busy if a != b]:
        one, two = jobs[at].application, jobs[other].application
        part[at] /= 1 + one.sensitivity * two.pressure * alone[other]
    return part


WHOLE = Application("a", (UseStage("s", 1.0, False, 1.0, 1.0, 1.0),), 1.0, 1.0)
"""Needs all of a disk, which a guest with a quota cannot use for as long."""


@example([WHOLE] * 3, [2, 1, 1], ((0,), (1,)), 0.1, 1.0)
@settings(max_examples=20, deadline=None)
@given(
    st.lists(applications(), min_size=3, max_size=3),
    st.lists(st.integers(1, 5), min_size=3, max_size=3),
    st.sampled_from([((0,), (1,)), ((0, 1), (2,)), ((1,), (2,)), ((1, 2), (0,)), ((2,), (0, 1))]),
    st.sampled_from([0.1, 0.5, 1.0]), st.sampled_from([1.0, 100.0]),
)  # fmt: skip
def test_a_host_and_two_guests_take_as_long_as_in_small_steps(
    apps: list[Application], runs_s: list[int], where: tuple[tuple[int, ...], ...],
    ceiling: float, weight: float,
) -> None:  # fmt: skip
    """Slow: computes in steps of a fraction of a second, too."""
    nodes = ((0, 1, 2), *where)
    work = SharedWork()
    limits = [CpuLimits(), CpuLimits(ceiling, weight), CpuLimits(ceiling, weight)]
    for at in range(3):
        work.start(at, apps[at], cpus=CPUS * len(nodes[at]), runtime_s=runs_s[at], now_s=0,
                   nodes=len(nodes[at]))  # fmt: skip
    for at in (1, 2):
        work.pair(0, at, 0, Meets(0 in nodes[at], nodes[at][0] == 0))
        work.limit(at, limits[at], 0)
    jobs = [OnNodes(apps[at], nodes[at], runs_s[at], limits[at]) for at in range(3)]
    for tick in range(round(200 / STEP_S)):
        if all(job.ended_s is not None for job in jobs):
            break
        shared = jobs[0].ended_s is None
        found = [speeds_on(node, jobs, shared) for node in nodes[0]]
        for at, job in enumerate(jobs):
            if job.ended_s is None:
                job.done_s += STEP_S * min(speeds[at] for speeds in found if at in speeds)
                if job.done_s >= job.run_s - 1e-9:
                    job.ended_s = (tick + 1) * STEP_S
    for at, job in enumerate(jobs):  # the host's end lifts ceilings only when it is reported
        assert job.ended_s is not None
        if at == 0 or job.ended_s < jobs[0].ended_s:  # type: ignore[operator]
            assert work.end_s(at) == pytest.approx(job.ended_s, abs=1.2)


def one(parallel: bool, cpu: float = 1.0) -> Application:
    return Application("one", (UseStage("all", 1, parallel, cpu),))


def test_a_host_is_as_fast_as_on_its_slowest_node() -> None:
    work = SharedWork()
    work.start(0, one(True), cpus=8, runtime_s=100, now_s=0, nodes=4)
    for guest in (1, 2):
        work.start(guest, one(True), cpus=2, runtime_s=1000, now_s=0)
        work.pair(0, guest, 0, Meets(False, False))
    assert work.end_s(0) == 200
    work.limit(1, CpuLimits(0.25), 0)
    work.limit(2, CpuLimits(0.1), 0)
    assert work.end_s(0) == 134
    assert work.beside(1) == (0, 2)
    work.end(1, 0)
    assert work.end_s(0) == 112


@pytest.mark.parametrize(("head", "ends_s"), [(True, 200), (False, 100)])
def test_a_sequential_stage_is_disturbed_on_its_first_node_only(head: bool, ends_s: int) -> None:
    work = SharedWork()
    work.start(0, one(False), cpus=2, runtime_s=100, now_s=0, nodes=2)
    work.start(1, one(True), cpus=1, runtime_s=1000, now_s=0)
    work.pair(0, 1, 0, Meets(head, head))
    assert work.end_s(0) == ends_s


def test_a_quota_holds_where_the_host_is_not_busy() -> None:
    work = SharedWork()
    work.start(0, one(False), cpus=2, runtime_s=10_000, now_s=0, nodes=2)
    work.start(1, one(True), cpus=1, runtime_s=100, now_s=0)
    work.pair(0, 1, 0, Meets(False, False))
    work.limit(1, CpuLimits(0.25), 0)
    assert work.end_s(1) == 400


def test_guests_fit_on_their_hosts_nodes() -> None:
    work = SharedWork()
    work.start(0, one(True), cpus=4, runtime_s=10, now_s=0, nodes=2)
    for guest, nodes in ((1, 1), (2, 2)):
        work.start(guest, one(True), cpus=2 * nodes, runtime_s=10, now_s=0, nodes=nodes)
    work.pair(0, 1, 0)
    with pytest.raises(ValueError, match="shares its nodes already"):
        work.pair(0, 2, 0)
