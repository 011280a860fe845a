# SPDX-License-Identifier: Apache-2.0
"""How long a start that the controller refuses holds its job, and how often it is tried again."""

from itertools import pairwise

import pytest

from bridge.model.job import Hold
from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.rpc.reported.refusals import BUSY_FOR_S, Refusals
from tests.unit.rpc.worlds import (
    NOW_S,
    a_delta,
    a_full,
    a_job,
    a_node,
    a_running_job,
    a_session,
    hold_of,
)

RETRY_S = 30


def tries(changed=(), seconds=300):
    """When two jobs are tried whose nodes are always busy, each at the earliest."""
    refusals, found = Refusals(RETRY_S), {"1": [], "2": []}
    changes = 0
    for now_s in range(1000, 1000 + seconds):
        changes += now_s - 1000 in changed
        for job_id, tried in found.items():
            refusal = refusals._refused.get(job_id)
            if refusal is None or not refusal.holds(changes, now_s):
                refusals.add(job_id, 1, "busy", changes=changes, now_s=now_s, busy=True)
                tried.append(now_s - 1000)
    return found


def test_nodes_that_stay_busy_are_tried_each_second_for_a_while_only():
    """A job that needs nodes which lie together may see idle ones for hours."""
    for tried in tries().values():
        assert tried[: BUSY_FOR_S + 1] == list(range(BUSY_FOR_S + 1))
        later = tried[BUSY_FOR_S:]
        assert {after - before for before, after in pairwise(later)} == {RETRY_S}


def test_a_node_that_stays_busy_is_avoided():
    refusals = Refusals(RETRY_S)
    for now_s in range(1000, 1001 + BUSY_FOR_S):
        assert "1" not in refusals or not refusals._refused["1"].avoid
        for job_id, nodes in (("1", ("n1", "n2")), ("2", ("n3",))):
            refusals.add(job_id, 1, "busy", changes=0, now_s=now_s, busy=True, nodes=nodes)
    assert [refusals._refused[job_id].avoid for job_id in ("1", "2")] == [{"n1"}, {"n3"}]


def test_a_change_of_nodes_is_tried_at_once_and_each_second_for_a_while():
    """They may be free in a moment, when what ran there has been cleaned up."""
    for tried in tries(changed=(100, 217)).values():
        for at in (100, 217):
            assert {*range(at, at + BUSY_FOR_S)} <= {*tried}
        assert not {*tried} & {*range(91, 100), *range(161, 190), *range(191, 217)}


def test_busy_nodes_after_a_pause_are_tried_each_second_again():
    refusals = Refusals(RETRY_S)
    for now_s in (*range(40), 500, 501):
        refusals.add("1", 1, "busy", changes=0, now_s=1000 + now_s, busy=True)
    assert refusals.next_retry_s(0, 1501) == 1502
    refusals.add("2", 1, "no", changes=0, now_s=1501)
    assert refusals._refused["2"].retry_at_s == 1501 + RETRY_S


def test_a_refused_start_holds_the_job_until_something_changes():
    session = a_session(a_full([a_job("1"), a_running_job("2", "n1")]))
    session.refuse("1", 1, "node is on fire", NOW_S)
    assert session.apply(a_delta(1))
    assert hold_of(session) == (Hold.REFUSED, "node is on fire")
    assert session.apply(a_delta(2, removed_jobs=["2"]))
    assert hold_of(session) == (Hold.NONE, "")


@pytest.mark.parametrize(
    "change",
    [
        {"jobs": [a_job("1", version=2)]},
        {"nodes": [a_node("n0", state="IDLE")]},
        {"now_s": NOW_S + 30},
        {"jobs": [a_running_job("2", "n1", end_s=0, state=pb.JOB_STATE_COMPLETING)]},
    ],
    ids=["version", "node", "time", "completing"],
)
def test_what_lets_a_refused_start_be_tried_again(change):
    session = a_session(a_full([a_job("1"), a_running_job("2", "n1")]))
    session.refuse("1", 1, "no", NOW_S)
    assert session.apply(a_delta(1, **change))
    assert hold_of(session)[0] is Hold.NONE


def test_a_start_refused_again_and_again_waits_longer():
    session = a_session(a_full([a_job("1")]))
    waits = []
    for generation in range(1, 12):
        session.refuse("1", 1, "no", session.now_s)
        began, now_s = session.now_s, session.now_s
        step = 0
        while True:
            delta = a_delta(session.generation, now_s=now_s, nodes=[a_node("n0", state=f"{step}")])
            assert session.apply(delta)
            if hold_of(session)[0] is Hold.NONE:
                break
            now_s, step = now_s + 1, step + 1
        waits.append(session.now_s - began)
        del generation
    assert waits == [0, 1, 2, 4, 8, 16, 30, 30, 30, 30, 30]


def test_the_next_retry_is_known():
    session = a_session(a_full([a_job("1")]))
    assert session.next_retry_s() is None
    session.refuse("1", 1, "no", NOW_S)
    assert session.next_retry_s() == NOW_S + 30


def test_a_refusal_told_by_a_clock_that_ran_wild_holds_nobody():
    session = a_session(a_full([a_job("1")]))
    session.refuse("1", 1, "no", NOW_S + 10**9, nodes=["n0"])
    assert session.next_retry_s() is None
    assert session.apply(a_delta(1))
    assert hold_of(session) == (Hold.NONE, "")
    assert session.snapshot()[0].jobs.excluded[0] == ()


def test_who_can_run_nowhere_else_is_tried_there_again_after_a_second():
    """One of two jobs that avoid a node each; the other one goes on to avoid its own."""
    jobs = [a_job("1"), a_job("2")]
    session = a_session(a_full(jobs))
    session.refuse("1", 1, "no", NOW_S, nodes=["n0"])
    session.refuse("2", 1, "no", NOW_S, nodes=["n1"])
    assert session.apply(a_delta(1, now_s=NOW_S + RETRY_S))
    assert session.snapshot()[0].jobs.excluded.tolist() == [(0,), (1,)]
    assert session.avoiding == {"1", "2"}
    assert session.retry_there("1").avoid == {"n0"}
    assert session.next_retry_s() == NOW_S + RETRY_S + 1
    assert session.apply(a_delta(2, now_s=NOW_S + RETRY_S + 1))
    assert session.snapshot()[0].jobs.excluded.tolist() == [(), (1,)]
    assert session.avoiding == {"2"}
    assert session.apply(a_delta(3, now_s=NOW_S + 40, removed_jobs=["1", "2"]))
    assert session.apply(a_delta(4, now_s=NOW_S + 41, jobs=jobs))  # others of the same ids
    assert session.snapshot()[0].jobs.excluded.tolist() == [(), ()]
    assert not session.avoiding


def test_nodes_are_avoided_for_a_short_time_where_the_model_lacks_a_part_of_the_request():
    """They may do together with others: of two such jobs one is tried there again, soon."""
    session = a_session(a_full([a_job("1"), a_job("2")]))
    session.refuse("1", 1, "no", NOW_S, nodes=["n0"], beyond_model=True)
    session.refuse("2", 1, "no", NOW_S, nodes=["n1"])
    for after_s, avoided in ((59, [(0,), (1,)]), (60, [(), (1,)]), (599, [(), (1,)])):
        assert session.apply(a_delta(session.generation, now_s=NOW_S + after_s))
        assert session.snapshot()[0].jobs.excluded.tolist() == avoided


def test_a_job_held_by_its_owner_shows_that_hold():
    session = a_session(a_full([a_job("1", hold=pb.HOLD_HELD, hold_text="held")]))
    session.refuse("1", 1, "no", NOW_S)
    assert session.apply(a_delta(1))
    assert hold_of(session) == (Hold.HELD, "held")


def test_nodes_that_were_busy_a_moment_ago_are_awaited_for_a_while():
    refusals = Refusals(30)

    def busy(now_s):
        refusals.add("1", 1, "", changes=0, now_s=now_s, busy=True)

    assert not refusals.nodes_awaited(100)
    busy(100)
    assert refusals.nodes_awaited(103)
    assert not refusals.nodes_awaited(104)
    for now_s in range(100, 140, 2):
        busy(now_s)
    assert not refusals.nodes_awaited(138)  # it does not get them: it is no reason any more
    busy(150)
    assert refusals.nodes_awaited(151)
    refusals.add("1", 1, "", changes=0, now_s=152)
    assert not refusals.nodes_awaited(152)
