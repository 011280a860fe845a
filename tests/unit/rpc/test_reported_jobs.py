# SPDX-License-Identifier: Apache-2.0
"""Jobs from their submission to their end, as reports tell of them."""

from bridge.model.job import Ending
from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.units import UNLIMITED_S
from tests.unit.rpc.worlds import (
    NOW_S,
    a_delta,
    a_full,
    a_job,
    a_running_job,
    a_session,
    jobs_of,
    running_of,
)


def test_pending_running_completing_gone():
    session = a_session(a_full([a_job("1")]))
    assert session.apply(a_delta(1, jobs=[a_running_job("1", "n[0-1]")]))
    assert jobs_of(session) == {}
    assert running_of(session)["1"]["nodes"] == [0, 1]
    assert session.started == [("1", NOW_S - 100, "batch")]
    assert session.gone == []
    completing = a_running_job("1", "n1", end_s=0, state=pb.JOB_STATE_COMPLETING)
    assert session.apply(a_delta(2, jobs=[completing]))
    assert session.started == []
    assert running_of(session)["1"]["nodes"] == [1]
    assert running_of(session)["1"]["end_s"] == 0
    assert session.apply(a_delta(3, removed_jobs=["1"]))
    assert running_of(session) == {}


def test_running_jobs_keep_their_account():
    held = a_running_job("1", "n0")
    held.account = "physics"
    session = a_session(a_full([held, a_running_job("2", "n1")]))
    assert session.snapshot()[0].running.account.tolist() == ["physics", ""]
    assert session.apply(a_delta(1, removed_jobs=["1"]))
    assert session.snapshot()[0].running.account.tolist() == [""]


def test_a_job_that_ran_between_two_reports_has_started():
    session = a_session(a_full([a_job("1")]))
    brief = a_running_job("1", "n1", state=pb.JOB_STATE_COMPLETING)
    assert session.apply(a_delta(1, jobs=[brief]))
    assert session.started == [("1", NOW_S - 100, "batch")]
    assert session.gone == []


def test_waiting_jobs_that_are_removed_are_gone():
    session = a_session(a_full([a_job("1"), a_job("2"), a_running_job("3", "n0")]))
    assert session.whole
    assert session.apply(a_delta(1, removed_jobs=["2", "3", "never-heard-of"]))
    assert (session.gone, session.whole) == (["2"], False)
    assert session.apply(a_delta(2))
    assert session.gone == []


def test_a_requeued_job_waits_again():
    session = a_session(a_full([a_running_job("1", "n0")]))
    assert session.apply(a_delta(1, jobs=[a_job("1", version=2)]))
    assert running_of(session) == {}
    assert jobs_of(session)["1"]["version"] == 2


def test_a_running_job_without_a_limit_ends_some_day():
    session = a_session(a_full([a_running_job("1", "n0", end_s=0)]))
    assert NOW_S < running_of(session)["1"]["end_s"] < NOW_S + 2 * 366 * 86_400


def test_an_unknown_job_may_be_removed():
    assert a_session(a_full()).apply(a_delta(1, removed_jobs=["77"]))


def test_versions_keep_all_their_bits():
    session = a_session(a_full([a_job("1", version=2**64 - 1)]))
    assert jobs_of(session)["1"]["version"] == 2**64 - 1


def test_a_use_of_no_node_holds_nothing():
    job = a_running_job("1", "n0")
    job.allocation.uses[0].nodes = ""
    assert running_of(a_session(a_full([job])))["1"]["nodes"] == []


def test_uses_of_one_job_may_differ_by_node():
    job = pb.Job(
        id="1", version=1, state=pb.JOB_STATE_RUNNING,
        allocation=pb.Allocation(
            start_s=1, end_s=9, partition="batch",
            uses=[pb.NodeUse(nodes="n2", cpus=1), pb.NodeUse(nodes="n[0,3]", cpus=3)],
        ),
    )  # fmt: skip
    found = running_of(a_session(a_full([job])))["1"]
    assert found["nodes"] == [0, 2, 3]
    assert [use[0] for use in found["use"]] == [3, 1, 3]


def test_what_ended_is_told_once():
    session = a_session(a_full([a_running_job("1", "n0"), a_job("2")]))
    assert len(session.snapshot()[0].ended) == 0
    told = [
        pb.EndedJob(
            id="1", name="sim", user="bob", start_s=NOW_S - 100, end_s=NOW_S, time_limit_s=600,
            ending=pb.ENDING_TIMEOUT,
        ),
        pb.EndedJob(id="9", start_s=NOW_S, end_s=NOW_S, ending=pb.ENDING_CANCELLED),
        pb.EndedJob(id="8", start_s=5, end_s=9, time_limit_s=1 << 60, ending=77),
    ]  # fmt: skip
    assert session.apply(a_delta(1, removed_jobs=["1"], ended=told))
    ended = session.snapshot()[0].ended
    assert ended.id.tolist() == ["1", "8"]  # the second took no time at all
    assert (ended.end_s - ended.start_s).tolist() == [100, 4]
    assert ended.ending.tolist() == [Ending.TIMEOUT, Ending.UNKNOWN]
    assert ended.time_limit_s.tolist() == [600, UNLIMITED_S]
    assert (ended.user[0], ended.name[0]) == ("bob", "sim")
    assert session.apply(a_delta(2))
    assert len(session.snapshot()[0].ended) == 0
