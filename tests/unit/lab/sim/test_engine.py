# SPDX-License-Identifier: Apache-2.0
from dataclasses import replace

import numpy as np
import pytest

from bridge.errors import Unreachable
from bridge.lab.sim.runs import engine
from bridge.lab.sim.runs.engine import RETRY_S, simulate
from bridge.lab.sim.runs.faults import Fault, FaultKind
from bridge.lab.sim.runs.patience import MAX_IDLE
from bridge.lab.sim.workloads.system import pool_of
from bridge.measures import turnaround_s, wait_s
from bridge.model.job import Ending
from bridge.units import NEVER
from schedbridge_contracts.workloads import a_workload
from tests.workloads import ReferenceBackfill


def run(jobs, processors=4, decide=None, **more):
    return simulate(
        a_workload(jobs, processors), pool_of(processors), decide or ReferenceBackfill(), **more
    )


def starts(outcome):
    return outcome.schedule.start_s.tolist()


def test_nodes_are_free_in_the_second_in_which_a_job_ends():
    assert starts(run([(1, 10, 10, 4), (1, 5, 5, 4)])) == [1, 11]


def test_a_job_submitted_as_another_ends_finds_its_nodes_free():
    outcome = run([(1, 10, 10, 4), (11, 5, 5, 4)])
    assert starts(outcome) == [1, 11]
    assert len(outcome.decision_ms) == 2


def test_all_events_of_a_second_make_one_decision():
    outcome = run([(5, 10, 10, 1)] * 4)
    assert len(outcome.decision_ms) == 1
    assert starts(outcome) == [5] * 4


def test_an_early_end_is_used_at_once():
    assert starts(run([(1, 3, 100, 4), (2, 5, 5, 4)])) == [1, 4]


def test_what_a_snapshot_says():
    seen = []

    def decide(snapshot):
        seen.append(snapshot)
        return ReferenceBackfill()(snapshot)

    run([(1, 10, 20, 3), (4, 10, 30, 2), (6, 1, 1, 1)], decide=decide)
    assert [s.now_s for s in seen] == [1, 4, 6, 7, 11]
    assert [s.generation for s in seen] == [1, 2, 3, 4, 5]
    third = seen[2]
    assert third.jobs.id.tolist() == ["2", "3"]
    assert third.jobs.submit_s.tolist() == [4, 6]
    assert third.jobs.time_limit_s.tolist() == [30, 1]
    assert third.running.id.tolist() == ["1"]
    assert third.running.end_s.tolist() == [21]
    assert third.running.nodes.tolist() == [0, 1, 2]
    assert third.running.indptr.tolist() == [0, 3]
    assert (third.running.use == 1).all()


def test_the_columns_of_a_snapshot_are_of_one_length():
    def decide(snapshot):
        for name in snapshot.jobs.__dataclass_fields__:
            column = getattr(snapshot.jobs, name)
            assert len(column) == len(snapshot.jobs), name
            assert column.flags.c_contiguous, name
        return ReferenceBackfill()(snapshot)

    run([(i, 5, 9, 1 + i % 3) for i in range(1, 30)], decide=decide)


def test_a_planned_start_is_asked_for_again():
    """Otherwise a decider that starts jobs only at the planned second would wait for ever."""
    naive = ReferenceBackfill(None)

    def late(snapshot):
        plan = naive(snapshot)
        soon = plan.start_s == snapshot.now_s
        if snapshot.now_s < 50:
            plan.start_s[soon] = 50
        return plan

    assert starts(run([(1, 5, 5, 1)], decide=late)) == [50]


def test_a_decider_that_always_puts_off_does_not_run_for_ever():
    def never(snapshot):
        plan = ReferenceBackfill()(snapshot)
        plan.start_s[:] = snapshot.now_s + 1
        return plan

    outcome = run([(1, 5, 5, 1)], decide=never)
    assert starts(outcome) == [NEVER]
    assert len(outcome.decision_ms) <= MAX_IDLE + 2


def test_a_decider_that_fails_is_replaced_by_the_fallback_or_ends_the_run():
    def silent(snapshot):
        raise Unreachable("gone")

    with pytest.raises(Unreachable):
        run([(1, 5, 5, 1)], decide=silent)
    outcome = run([(1, 5, 5, 1)], decide=silent, fallback=ReferenceBackfill())
    assert (starts(outcome), outcome.failures) == ([1], 1)


def test_a_refused_plan_is_asked_for_again_later():
    naive = ReferenceBackfill()
    calls = []

    def stale_once(snapshot):
        calls.append(snapshot.now_s)
        plan = naive(snapshot)
        if len(calls) == 1:
            object.__setattr__(plan, "now_s", 0)
        return plan

    outcome = run([(1, 5, 5, 1)], decide=stale_once)
    assert starts(outcome) == [1 + RETRY_S]
    assert [str(refusal) for refusal in outcome.refusals] == ["at 1: plan: was made for 0: stale"]


def test_progress_is_told_after_every_decision():
    points = []
    outcome = run([(1, 10, 10, 4), (2, 5, 5, 2)], observe=points.append)
    assert [(p.now_s, p.waiting, p.running, p.finished, p.used_processors) for p in points] == [
        (1, 0, 1, 0, 4),
        (2, 1, 1, 0, 4),
        (11, 0, 1, 1, 2),
    ]
    assert len(points) == len(outcome.decision_ms)


# ---------------------------------------------------------------- faults


def test_a_lost_node_sends_its_job_back_and_is_not_used_until_it_returns():
    outcome = run(
        [(1, 10, 10, 4)],
        faults=[Fault(5, FaultKind.NODE_LOST, 2), Fault(20, FaultKind.NODE_RETURNED, 2)],
    )
    assert starts(outcome) == [20]
    assert outcome.schedule.end_s.tolist() == [30]
    assert outcome.restarts.tolist() == [1]


def test_jobs_on_other_nodes_go_on_and_a_requeued_job_keeps_its_place():
    outcome = run(
        [(1, 10, 10, 2), (2, 30, 30, 2), (3, 5, 5, 2)],
        faults=[Fault(5, FaultKind.NODE_LOST, 0)],
        processors=5,
    )
    # Job 1 held nodes 0 and 1. Node 4 and node 1 are free: it starts again before job 3.
    assert starts(outcome) == [5, 2, 15]


def test_a_requeued_job_has_a_new_version():
    versions = []

    def decide(snapshot):
        versions.extend(snapshot.jobs.version.tolist())
        return ReferenceBackfill()(snapshot)

    run([(1, 10, 10, 1)], decide=decide, faults=[Fault(5, FaultKind.NODE_LOST, 0)])
    assert versions == [1, 2]


def test_cancelling():
    outcome = run(
        [(1, 10, 10, 4), (2, 10, 10, 4), (3, 10, 10, 4), (40, 10, 10, 4), (60, 5, 5, 4)],
        faults=[
            Fault(4, FaultKind.JOB_CANCELLED, 0),  # running
            Fault(5, FaultKind.JOB_CANCELLED, 2),  # waiting
            Fault(30, FaultKind.JOB_CANCELLED, 3),  # not submitted yet
            Fault(90, FaultKind.JOB_CANCELLED, 4),  # ended
        ],
    )
    assert starts(outcome) == [1, 4, NEVER, NEVER, 60]
    assert outcome.schedule.end_s.tolist() == [4, 14, NEVER, NEVER, 65]
    assert outcome.cancelled.tolist() == [True, False, True, True, False]


def test_a_job_that_ends_early_ends_once():
    outcome = run([(1, 10, 10, 4), (2, 20, 20, 4)], faults=[Fault(4, FaultKind.JOB_ENDED_EARLY, 0)])
    assert starts(outcome) == [1, 4]
    assert outcome.schedule.end_s.tolist() == [4, 24]


def test_everything_is_back_at_the_end():
    from bridge.lab.sim.cluster.controller import Controller

    controller = Controller(a_workload([(1, 10, 10, 3)], 4), pool_of(4))
    controller.submit(0)
    plan = ReferenceBackfill()(controller.snapshot(1))
    assert controller.plans.apply(plan, 1) == [0]
    assert (controller.nodes.occupancy.free[:, 0].sum(), controller.nodes.used_processors) == (1, 3)
    controller.release(0)
    assert np.array_equal(controller.nodes.occupancy.free, controller.nodes.table.capacity)


# ------------------------------------------------------------------ what was announced


def test_starts_beside_what_was_announced():
    """Job 1 ends 6 s early; job 2 was told 11 and again 11, then starts at 5."""
    decide = ReferenceBackfill(depth=None)
    outcome = run([(1, 4, 10, 4), (2, 5, 5, 4), (3, 1, 1, 4)], decide=decide)
    assert starts(outcome) == [1, 5, 10]
    found = outcome.starts
    assert found.start_s.tolist() == [1, 5, 10]
    assert found.promise["first_start_s"].tolist() == [0, 11, 16]
    assert found.promise["first_said_s"].tolist() == [0, 2, 3]
    assert found.promise["last_start_s"].tolist() == [0, 11, 10]
    assert found.promise["changes"].tolist() == [0, 0, 1]
    judged = found.accuracy()
    assert (judged.promised, judged.unpromised, judged.gone) == (2, 1, 0)
    assert (judged.first.median_s, judged.last.median_s) == (-6, -3)
    assert (judged.changes, judged.later_s, judged.earlier_s) == (0.5, 0, 3)


def test_a_cancelled_job_was_promised_for_nothing():
    faults = [Fault(5, FaultKind.JOB_CANCELLED, 1)]
    outcome = run([(1, 10, 10, 4), (2, 5, 5, 4)], faults=faults)
    assert outcome.starts.gone == 1
    assert len(outcome.starts.start_s) == 1


def test_a_requeued_job_has_a_record_for_each_start():
    faults = [Fault(4, FaultKind.NODE_LOST, 0), Fault(8, FaultKind.NODE_RETURNED, 0)]
    outcome = run([(1, 10, 10, 4)], faults=faults)
    assert outcome.starts.start_s.tolist() == [1, 8]


def test_a_plan_nobody_can_read_announces_nothing():
    calls = []

    def decide(snapshot):
        plan = ReferenceBackfill()(snapshot)
        calls.append(plan)
        return replace(plan, start_s=plan.start_s[:-1]) if len(calls) == 2 else plan

    outcome = run([(1, 10, 10, 4), (2, 5, 5, 4)], decide=decide, fallback=ReferenceBackfill())
    assert outcome.starts.promise["first_said_s"].tolist()[0] == 0
    assert len(outcome.refusals) == 1


class TestDecisionTime:
    """What decisions take counts as waiting."""

    JOBS = ((1, 10, 10, 4), (3, 5, 5, 4))

    def test_free_decisions_leave_no_lag(self):
        assert run(self.JOBS).schedule.lag_s is None

    def test_parts_of_a_second_are_waited_for_and_delay_no_event(self):
        free, counted = run(self.JOBS), run(self.JOBS, decision_s=0.25)
        assert starts(counted) == starts(free)
        assert counted.schedule.lag_s.tolist() == [0.25, 0.25]
        assert wait_s(counted.schedule).tolist() == [0.25, 8.25]
        assert turnaround_s(counted.schedule).tolist() == [10.25, 13.25]

    def test_whole_seconds_delay_the_start(self):
        outcome = run(self.JOBS, decision_s=2.5)
        assert starts(outcome) == [3, 15]  # decided at 1 and, when the first ends, at 13
        assert outcome.schedule.end_s.tolist() == [13, 20]
        assert outcome.schedule.lag_s.tolist() == [0.5, 0.5]

    def test_nothing_is_decided_while_a_decision_is_on_its_way(self):
        seen = []

        def decide(snapshot):
            seen.append(snapshot.now_s)
            return ReferenceBackfill()(snapshot)

        outcome = run([(1, 5, 5, 1), (2, 5, 5, 1), (3, 5, 5, 1)], decide=decide, decision_s=4.0)
        assert seen == [1, 5]  # what came at 2 and 3 was seen at 5
        assert starts(outcome) == [5, 9, 9]

    def test_what_has_changed_meanwhile_is_refused(self):
        gone = Fault(2, FaultKind.JOB_CANCELLED, 0)
        outcome = run([(1, 5, 5, 1), (1, 5, 5, 1)], decision_s=3.0, faults=[gone])
        assert [str(one) for one in outcome.refusals] == ["at 4: job 1: no longer waits"]
        assert starts(outcome) == [NEVER, 4]

    def test_a_lost_node_is_found_out_too(self):
        lost = Fault(2, FaultKind.NODE_LOST, 0)
        outcome = run([(1, 5, 5, 2)], processors=3, decision_s=3.0, faults=[lost])
        assert "not usable" in outcome.refusals[0].why
        assert starts(outcome)[0] > 4

    def test_the_time_that_it_took_can_be_counted(self, monkeypatch):
        clock = [5.0]
        monkeypatch.setattr(engine.time, "perf_counter", lambda: clock[0])

        def slow(snapshot):
            clock[0] += 0.02
            return ReferenceBackfill()(snapshot)

        outcome = run(self.JOBS, decide=slow, decision_s=None)
        assert outcome.schedule.lag_s.tolist() == pytest.approx([0.02, 0.02])
        took_s = outcome.decision_ms[[0, 2]] / 1e3  # the second started nothing
        assert outcome.schedule.lag_s.tolist() == pytest.approx(took_s % 1)


class TestEnded:
    def test_what_ended_is_told_once(self):
        seen = []

        def decide(snapshot):
            seen.append(snapshot)
            return ReferenceBackfill()(snapshot)

        run([(1, 10, 20, 3), (4, 10, 10, 2), (6, 1, 1, 1), (30, 1, 9, 1)], decide=decide)
        told = [
            (s.now_s, one, start, end, limit, Ending(how))
            for s in seen
            for one, start, end, limit, how in zip(
                s.ended.id,
                s.ended.start_s.tolist(),
                s.ended.end_s.tolist(),
                s.ended.time_limit_s.tolist(),
                s.ended.ending.tolist(),
                strict=True,
            )
        ]
        assert told == [
            (7, "3", 6, 7, 1, Ending.TIMEOUT),
            (11, "1", 1, 11, 20, Ending.COMPLETED),
            (30, "2", 11, 21, 10, Ending.TIMEOUT),
        ]

    def test_a_requeued_job_has_not_ended_a_cancelled_one_has(self):
        seen = []

        def decide(snapshot):
            seen.extend(snapshot.ended.ending.tolist())
            return ReferenceBackfill()(snapshot)

        faults = [
            Fault(3, FaultKind.NODE_LOST, 0),
            Fault(4, FaultKind.NODE_RETURNED, 0),
            Fault(20, FaultKind.JOB_CANCELLED, 0),
        ]
        run([(1, 50, 50, 4), (21, 1, 1, 1)], decide=decide, faults=faults)
        assert seen == [Ending.CANCELLED]


def test_idle_decisions_come_at_growing_distances():
    requested = []

    def soon(snapshot):
        """Promises the next second again and again."""
        requested.append(snapshot.now_s)
        plan = ReferenceBackfill()(snapshot)
        return replace(plan, start_s=np.where(plan.start_s > 0, snapshot.now_s + 1, 0))

    run([(1, 10_000, 10_000, 4)], decide=soon)
    assert requested[:8] == [1, 2, 3, 4, 5, 7, 11, 19]
    assert len(requested) < MAX_IDLE + 3
