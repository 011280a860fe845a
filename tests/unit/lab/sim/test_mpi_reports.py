# SPDX-License-Identifier: Apache-2.0
"""What policies are told of the time in MPI of jobs with phases."""

from dataclasses import replace

import numpy as np
import pytest

from bridge.lab.sim.runs.engine import simulate
from bridge.lab.sim.runs.mpi_reports import (
    LOOK_S,
    WINDOW_S,
    MpiReports,
    is_significant,
    measured,
)
from bridge.lab.sim.runs.work import Work
from bridge.lab.sim.workloads.speedup import Amdahl, Downey, parse_speedup
from bridge.lab.sim.workloads.system import pool_of
from bridge.lab.sim.workloads.workload import Malleable
from bridge.registry import build, parse_policy
from bridge.safe_cycle.decider import Decider
from bridge.units import NEVER
from schedbridge_contracts.workloads import a_workload


def workload_of(jobs, speedups, minimum, maximum, nodes):
    n = len(jobs)
    widths = Malleable(
        np.array(minimum), np.array(maximum), np.zeros(n, dtype=np.int8),
        np.array([job[3] for job in jobs]), np.array(speedups, dtype=object),
    )  # fmt: skip
    return replace(a_workload(jobs, nodes), malleable=widths)


def seen_by(policy, workload, nodes):
    """The running tables that a policy was shown, with the time."""
    decider, seen = Decider(build(parse_policy(policy))), []

    def decide(snapshot):
        seen.append((snapshot.now_s, snapshot.running))
        return decider.decide(snapshot)

    return simulate(workload, pool_of(nodes), decide), seen


def test_a_new_phase_shows_gradually_and_then_alone():
    begins = [(0.0, 0.0), (1000.0, 1.0)]
    assert measured(begins, 1000) == 0
    assert measured(begins, 1000 + WINDOW_S / 2) == pytest.approx(0.25 / 0.75)
    assert measured(begins, 1000 + WINDOW_S) == pytest.approx(1.0)
    assert measured(begins, 100_000) == pytest.approx(1.0)


def test_what_is_not_measured_counts_for_nothing():
    assert measured([(0.0, -1.0)], 50) == -1
    assert measured([(0.0, -1.0), (100.0, 0.5)], 110) == pytest.approx(0.5)


def test_small_differences_are_not_told():
    assert not is_significant(1.0, 1.05)
    assert not is_significant(0.0, 0.004)
    assert is_significant(1.0, 1.2)
    assert is_significant(1.2, 1.0)
    assert is_significant(-1.0, 0.0)
    assert is_significant(0.0, -1.0)


def test_a_job_of_one_phase_is_never_looked_at():
    workload = workload_of([(1, 100, 100, 2)] * 2, [Amdahl(0.1), None], [1, 1], [4, 4], 4)
    work = Work(workload)
    reports = MpiReports(workload.malleable, work)
    for job in (0, 1):
        work.start(job, 2, 1)
        assert reports.follow(job, 2, 1) is None
    assert reports.next_s() == NEVER


def test_looks_end_once_only_the_last_phase_is_seen():
    workload = workload_of(
        [(1, 4000, 4000, 2)], [parse_speedup("phases:0.5*amdahl:0,0.5*amdahl:1")], [1], [4], 4
    )
    work = Work(workload)
    work.start(0, 1, 1)
    reports = MpiReports(workload.malleable, work)
    assert reports.follow(0, 1, 1) == 0
    begin_s = work.phases(0)[1][0]
    looks = []
    while (at_s := reports.next_s()) != NEVER:
        looks.append(at_s)
        reports.renewed(at_s)
        assert len(looks) < 50
    assert begin_s < looks[0] <= begin_s + LOOK_S
    assert begin_s + WINDOW_S <= looks[-1] <= begin_s + WINDOW_S + LOOK_S


def test_looks_at_a_job_that_is_gone_or_has_changed_are_void():
    workload = workload_of(
        [(1, 4000, 4000, 2)], [parse_speedup("phases:0.5*amdahl:0,0.5*amdahl:1")], [1], [4], 4
    )
    work = Work(workload)
    work.start(0, 2, 1)
    reports = MpiReports(workload.malleable, work)
    reports.follow(0, 2, 1)
    first_s = reports.next_s()
    work.resize(0, 1, 100, 0.0, 50.0)
    reports.follow(0, 1, 100)
    assert reports.next_s() > first_s
    reports.forget(0)
    assert reports.next_s() == NEVER


def test_performance_moves_nodes_when_a_phase_begins_that_only_communicates():
    """Two jobs share the machine; the first turns serial, and a third one needs nodes."""
    jobs = [(1, 2000, 4000, 4), (1, 2000, 4000, 4), (1500, 100, 100, 3)]
    turning = parse_speedup("phases:0.5*amdahl:0,0.5*amdahl:0.9")
    workload = workload_of(jobs, [turning, Amdahl(0.05), Amdahl(0.0)], [1, 1, 0], [4, 4, 0], 8)
    outcome, seen = seen_by("malleable-performance", workload, 8)
    shown = {}
    for now_s, running in seen:
        for job, mtct in zip(running.id.tolist(), running.mtct.tolist(), strict=True):
            shown.setdefault(job, []).append((now_s, mtct))
    first, second = shown["1"], shown["2"]
    told = [mtct for now_s, mtct in first if now_s < 1500]
    assert told == sorted(told)
    assert all(mtct == pytest.approx(0.15) for now_s, mtct in second if now_s < 1500)
    begins_s = 1 + 2000 * 0.5 / (0.5 + 0.5 * 4 * (0.9 + 0.1 / 4))
    renewed = [now_s for now_s, mtct in first if begins_s < now_s < 1500 and mtct > 0.15]
    assert renewed
    assert renewed[0] <= begins_s + WINDOW_S + LOOK_S
    shrunk = next(table for now_s, table in seen if now_s > 1500 and (table.resized_s > 0).any())
    assert shrunk.id[shrunk.resized_s > 0].tolist()[0] == "1"
    assert not outcome.refusals


def test_one_phase_gives_the_schedule_of_the_plain_model():
    rng = np.random.default_rng(3)
    jobs = [
        (1 + int(rng.integers(500)), run_s, 2 * run_s, int(rng.integers(1, 9)))
        for run_s in rng.integers(50, 900, 40).tolist()
    ]
    for policy in ("malleable", "malleable-performance"):
        ends = []
        for text in ("amdahl:0.1", "phases:1*amdahl:0.1"):
            speedups = [parse_speedup(text)] * len(jobs)
            workload = workload_of(jobs, speedups, [1] * 40, [12] * 40, 12)
            ends.append(seen_by(policy, workload, 12)[0].schedule.end_s.tolist())
        assert ends[0] == ends[1]


def test_downey_in_a_phase_is_read_back():
    model = parse_speedup("phases:0.25*downey:8:0.5@0.75,0.75*table:1=1,4=3@unknown")
    assert [part.share for part in model.parts()] == [0.25, 0.75]
    assert model.parts()[0].speedup == Downey(8, 0.5)
    assert (model.reported(16, 0), model.reported(16, 1)) == (0.75, -1.0)
