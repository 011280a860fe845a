# SPDX-License-Identifier: Apache-2.0
"""Cycles without a transport: what goes in, what comes out, what is told to observers."""

import math
import threading
from collections import Counter

import pytest

from bridge.errors import PolicyError, SnapshotError, StaleSnapshot
from bridge.model.job import Hold
from bridge.registry import PRESETS, build
from bridge.rpc.controller.announcements import OPEN_S
from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.safe_cycle.decider import Decider
from tests.unit.rpc.worlds import (
    NOW_S,
    a_delta,
    a_full,
    a_hello,
    a_job,
    a_node,
    a_request,
    a_running_job,
    some_cycles,
)


class Seen:
    def __init__(self):
        self.reports = []

    def cycle(self, report):
        self.reports.append(report)


def conservative_cycles(decide=None, **settings):
    decide = decide or Decider(build(PRESETS["conservative"])).decide
    return some_cycles(decide, "conservative", **settings)


def wide(job_id, nodes=4, **settings):
    request = a_request(min_nodes=nodes, max_nodes=nodes, exclusive=True)
    return a_job(job_id, request=request, **settings)


def kinds(reply):
    return [(d.job_id, d.WhichOneof("action")) for d in reply.decisions]


def test_a_cycle_starts_plans_and_explains():
    reply = conservative_cycles().run(a_full([wide("1"), wide("2"), wide("3", nodes=9)]))
    assert kinds(reply) == [("1", "start"), ("2", "planned_start"), ("3", "pending")]
    start, planned, pending = reply.decisions
    assert (start.start.nodes, start.start.partition) == ("n[0-3]", "batch")
    assert planned.planned_start.start_s == NOW_S + 600
    assert planned.planned_start.reason.code == pb.REASON_RESOURCES
    assert pending.pending.code == pb.REASON_NEVER
    assert reply.generation == 1
    assert reply.wake_after_s == 600


def test_what_was_applied_is_not_said_again():
    cycles = conservative_cycles()
    first = cycles.run(a_full([wide("1"), wide("2")]))
    reply = cycles.run(
        a_delta(
            1,
            jobs=[a_running_job("1", "n[0-3]", end_s=NOW_S + 600, exclusive=True)],
            fates=[
                pb.Fate(decision_id=d.id, job_id=d.job_id, outcome=pb.OUTCOME_APPLIED)
                for d in first.decisions
            ],
        )
    )
    assert kinds(reply) == []
    assert not cycles.counts.refusals


def test_a_start_is_not_said_again_before_it_is_known_what_became_of_it():
    cycles = conservative_cycles()
    assert kinds(cycles.run(a_full([wide("1", nodes=1)]))) == [("1", "start")]
    for at, seconds in enumerate((1, OPEN_S - 1), 1):
        assert kinds(cycles.run(a_delta(at, now_s=NOW_S + seconds))) == []
    assert kinds(cycles.run(a_delta(3, now_s=NOW_S + OPEN_S))) == [("1", "start")]


def test_a_refused_start_is_held_until_something_changes():
    cycles = conservative_cycles()
    start = cycles.run(a_full([wide("1", nodes=1)])).decisions[0]
    result = pb.Fate(
        decision_id=start.id, job_id="1", outcome=pb.OUTCOME_REFUSED, code=2015, text="node is odd"
    )
    reply = cycles.run(a_delta(1, fates=[result]))
    assert kinds(reply) == [("1", "pending")]
    assert reply.decisions[0].pending.code == pb.REASON_REFUSED
    assert reply.decisions[0].pending.text == "node is odd"
    assert reply.wake_after_s == 30
    assert kinds(cycles.run(a_delta(2))) == []
    assert kinds(cycles.run(a_delta(3, nodes=[a_node("n1", state="BETTER")]))) == [("1", "start")]
    assert cycles.counts.refusals == {"refused 2015": 1}


def test_a_refused_start_is_tried_again_after_a_while():
    cycles = conservative_cycles()
    first = cycles.run(a_full([wide("1", nodes=1)])).decisions[0]
    result = pb.Fate(decision_id=first.id, job_id="1", outcome=pb.OUTCOME_REFUSED, code=2015)
    wait_s = cycles.run(a_delta(1, fates=[result])).wake_after_s
    assert wait_s > 0
    assert kinds(cycles.run(a_delta(2, now_s=NOW_S + wait_s - 1))) == []
    assert kinds(cycles.run(a_delta(3, now_s=NOW_S + wait_s))) == [("1", "start")]


def test_starts_on_nodes_that_were_busy_are_tried_again_in_a_second():
    """Both of them; for other reasons they would be held for long."""
    for outcome, waits in ((pb.OUTCOME_BUSY, False), (pb.OUTCOME_REFUSED, True)):
        cycles = conservative_cycles()
        first = cycles.run(a_full([wide("1", nodes=1), wide("2", nodes=1)]))
        assert kinds(first) == [("1", "start"), ("2", "start")]
        results = [
            pb.Fate(decision_id=each.id, job_id=each.job_id, outcome=outcome)
            for each in first.decisions
        ]
        assert ("1", "start") not in kinds(cycles.run(a_delta(1, fates=results)))
        again = kinds(cycles.run(a_delta(2, now_s=NOW_S + 1)))
        assert again == ([] if waits else kinds(first))


def test_a_refusal_and_a_change_in_one_report_are_tried_at_once():
    cycles = conservative_cycles()
    start = cycles.run(a_full([wide("1", nodes=1), a_running_job("2", "n3")])).decisions[0]
    result = pb.Fate(decision_id=start.id, job_id="1", outcome=pb.OUTCOME_STALE)
    assert kinds(cycles.run(a_delta(1, fates=[result], removed_jobs=["2"]))) == [("1", "start")]


def test_fates_of_unknown_decisions_and_outcomes_are_counted_only():
    cycles = conservative_cycles()
    results = [
        pb.Fate(decision_id=77, job_id="x", outcome=pb.OUTCOME_INVALID),
        pb.Fate(decision_id=78, job_id="x", outcome=99),
    ]
    assert cycles.run(a_full(fates=results)).generation == 1
    assert cycles.counts.refusals == {"invalid": 1, "unknown": 1}


def test_refusals_do_not_fill_the_memory():
    cycles = conservative_cycles()
    results = [
        pb.Fate(decision_id=code, outcome=pb.OUTCOME_REFUSED, code=code) for code in range(5000)
    ]
    cycles.run(a_full(fates=results))
    assert len(cycles.counts.refusals) <= 101
    assert cycles.counts.refusals.total() == 5000


def test_outcomes_that_come_again_count_once():
    seen = Seen()
    cycles = conservative_cycles(observers=(seen,))
    made = cycles.run(a_full([wide("1", 1), wide("2", 1), a_running_job("3", "n3")])).decisions
    outcomes = {"1": pb.OUTCOME_APPLIED, "2": pb.OUTCOME_REFUSED}
    results = [
        pb.Fate(decision_id=d.id, job_id=d.job_id, outcome=outcomes[d.job_id], code=7) for d in made
    ]
    assert cycles.run(a_delta(9, fates=results)).need_full
    jobs = [wide("2", 1), a_running_job("3", "n3")]
    cycles.run(a_full(jobs, generation=10, fates=results, now_s=NOW_S + 1))
    cycles.run(a_delta(10, fates=results, now_s=NOW_S + 2))
    assert cycles.counts.refusals == {"refused 7": 1}
    outcomes = sum((report.results for report in seen.reports), Counter())
    assert outcomes == {("applied", 0): 1, ("refused", 7): 1}
    # Job 1 ran and ended between two reports; what was heard before need_full is not lost.
    assert [report.happened.started for report in seen.reports if report.happened] == [
        [("3", NOW_S - 100, "batch")],
        [("3", NOW_S - 100, "batch"), ("1", NOW_S, "batch")],
        [],
    ]


def test_outcomes_of_a_cycle_that_failed_are_told_with_the_next():
    seen = Seen()

    def decide(snapshot):
        if snapshot.generation == 1:
            raise PolicyError("p", "no")
        return Decider(build(PRESETS["conservative"])).decide(snapshot)

    cycles = conservative_cycles(decide, observers=(seen,))
    results = [pb.Fate(decision_id=9, outcome=pb.OUTCOME_STALE)]
    with pytest.raises(PolicyError):
        cycles.run(a_full(fates=results))
    cycles.run(a_full(generation=2, fates=results))
    assert seen.reports[0].results == {("stale", 0): 1}


def test_numbers_of_a_status_are_made_sound():
    seen = Seen()
    cycles = conservative_cycles(observers=(seen,))
    status = pb.ControllerStatus(
        fallbacks=1, fallback_s=math.nan, lock_ms_max=math.inf, round_trip_ms=-1,
        fallback_reason="a\nb" * 1000,
    )  # fmt: skip
    cycles.run(a_full(status=status))
    kept = seen.reports[0].status
    assert (kept.fallback_s, kept.lock_ms_max, kept.round_trip_ms) == (0, 1e12, 0)
    assert kept.fallback_reason.isprintable()
    assert len(kept.fallback_reason) <= 200


def test_a_mismatch_asks_for_everything_and_then_says_everything_again():
    cycles = conservative_cycles()
    jobs = [wide("1"), wide("2")]
    first = cycles.run(a_full(jobs))
    lost = cycles.run(a_delta(9))
    assert (lost.need_full, list(lost.decisions)) == (True, [])
    again = cycles.run(a_full(jobs, generation=11))
    assert kinds(again) == kinds(first)
    assert {d.id for d in again.decisions}.isdisjoint(d.id for d in first.decisions)


def test_replies_carry_the_services_epoch():
    cycles = conservative_cycles()
    assert cycles.run(a_full()).service_epoch == cycles.service_epoch > 0
    assert cycles.run(a_delta(9)).service_epoch == cycles.service_epoch


def test_an_old_epoch_is_refused_and_changes_nothing():
    cycles = conservative_cycles()
    cycles.greet(a_hello(epoch=5))
    cycles.run(a_full(epoch=5))
    with pytest.raises(StaleSnapshot):
        cycles.run(a_full([wide("1")], epoch=4))
    assert cycles.run(a_delta(1, epoch=5)).generation == 2


@pytest.mark.parametrize("epoch", [4, 6])
def test_results_of_another_controller_do_not_count(epoch):
    """Of the two starts one is refused by it; both stay open for the present one."""
    cycles = conservative_cycles()
    cycles.greet(a_hello(epoch=5))
    made = cycles.run(a_full([wide("1", 1), wide("2", 1)], epoch=5)).decisions
    false = pb.Fate(decision_id=made[0].id, job_id="1", outcome=pb.OUTCOME_REFUSED, code=7)
    with pytest.raises(StaleSnapshot):
        cycles.run(a_full([wide("1", 1)], epoch=epoch, fates=[false]))
    assert kinds(cycles.run(a_delta(1, epoch=5))) == []
    assert not cycles.counts.refusals


def test_who_gave_up_waiting_changes_nothing():
    cycles = conservative_cycles()
    cycles.run(a_full([wide("1")]))
    assert not cycles.run(a_delta(1, jobs=[wide("2")]), lambda: False).decisions
    assert cycles.session.generation == 1


def test_a_policy_that_fails_altogether_fails_the_call_and_the_next_one_works():
    broken = [True]
    decider = Decider(build(PRESETS["conservative"]))

    def decide(snapshot):
        if broken.pop() if broken else False:
            raise PolicyError("test", "broken")
        return decider.decide(snapshot)

    cycles = conservative_cycles(decide)
    with pytest.raises(PolicyError):
        cycles.run(a_full([wide("1")]))
    assert kinds(cycles.run(a_delta(1))) == [("1", "start")]


def test_a_contradiction_twice_is_an_error():
    cycles = conservative_cycles()
    bad = a_full([a_job("1")], now_s=-1)
    assert cycles.run(bad).need_full
    with pytest.raises(SnapshotError):
        cycles.run(bad)


def test_readers_do_not_wait_for_a_running_cycle():
    inside, finish = threading.Event(), threading.Event()
    decider = Decider(build(PRESETS["conservative"]))

    def decide(snapshot):
        if snapshot.generation == 2:
            inside.set()
            assert finish.wait(300)
        return decider.decide(snapshot)

    cycles = conservative_cycles(decide)
    cycles.run(a_full([wide("1")]))
    worker = threading.Thread(target=cycles.run, args=(a_delta(1),))
    worker.start()
    assert inside.wait(300)
    assert cycles.published.snapshot.generation == 1  # read while the cycle runs
    finish.set()
    worker.join(300)
    assert cycles.published.snapshot.generation == 2


def test_a_job_that_ended_before_it_was_seen_running_has_started():
    seen = Seen()
    cycles = conservative_cycles(observers=(seen,))
    start = cycles.run(a_full([wide("1"), wide("2")])).decisions[0]
    result = pb.Fate(decision_id=start.id, job_id="1", outcome=pb.OUTCOME_APPLIED)
    cycles.run(a_delta(1, now_s=NOW_S + 3, fates=[result], removed_jobs=["1", "2"]))
    happened = seen.reports[-1].happened
    assert happened.started == [("1", NOW_S, "batch")]
    assert happened.gone == ["2"]


def test_a_whole_report_tells_who_waits():
    seen = Seen()
    cycles = conservative_cycles(observers=(seen,))
    cycles.run(a_full([wide("1"), wide("2")]))
    cycles.run(a_delta(1))
    assert list(seen.reports[0].happened.waiting) == ["1", "2"]
    assert seen.reports[1].happened.waiting is None


def test_who_cannot_be_read_still_waits():
    seen = Seen()
    cycles = conservative_cycles(observers=(seen,))
    cycles.run(a_full([wide("1"), wide("2"), wide("3")]))
    unreadable = [a_job("2", hold=77), a_job("3", hold=78)]
    cycles.run(a_full([wide("1"), *unreadable], generation=2))
    cycles.run(a_full([wide("1"), *unreadable], generation=3))
    told = [report.happened.waiting for report in seen.reports]
    assert told == [["1", "2", "3"], None, ["1", "2", "3"]]


def test_observers_hear_of_everything():
    seen = Seen()
    cycles = conservative_cycles(observers=(seen,))
    status = pb.ControllerStatus(fallbacks=2, lock_ms_max=1.5)
    cycles.run(a_full([wide("1"), wide("2")], status=status))
    cycles.run(a_delta(7))
    cycles.run(a_full([a_running_job("1", "n0"), wide("2")], generation=9))
    planned, requested, again = seen.reports
    assert planned.decisions.by_kind == {"start": 1, "planned_start": 1, "pending": 0}
    assert planned.status.fallbacks == 2
    assert planned.wall_s >= planned.plan_s > 0
    assert (requested.published, requested.decisions) == (None, None)
    assert requested.happened is None
    assert planned.happened.starting == {"1"}
    assert planned.happened.promised == {"2": (NOW_S + 600, "batch")}
    assert again.happened.started == [("1", NOW_S - 100, "batch")]
    assert cycles.counts.cycles == 2
    assert cycles.counts.wall_ms_p99() > 0


def test_an_array_starts_task_by_task():
    cycles = conservative_cycles()
    request = a_request(min_nodes=1, max_nodes=1, exclusive=True)
    array = a_job("7", request=request, array_tasks=10, array_startable=10)
    reply = cycles.run(a_full([array]))
    assert kinds(reply) == [("7", "start")] * 4 + [("7", "planned_start")]
    assert sorted(d.start.nodes for d in reply.decisions[:4]) == ["n0", "n1", "n2", "n3"]


def test_one_bad_job_does_not_stop_the_others():
    reply = conservative_cycles().run(
        a_full([a_job("1", request=a_request(features="((")), wide("2"),
                a_job("3", request=a_request(partitions=["gone"]))])
    )  # fmt: skip
    said = {d.job_id: d for d in reply.decisions}
    assert said["2"].WhichOneof("action") == "start"
    assert said["1"].pending.code == pb.REASON_BAD_REQUEST
    assert said["3"].pending.code == pb.REASON_BAD_REQUEST
    assert said["3"].pending.text == "no partition 'gone'"


def test_hold_numbers_are_those_of_the_wire():
    for name, number in pb.Hold.items():
        assert Hold[name.removeprefix("HOLD_")] == number
