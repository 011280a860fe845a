# SPDX-License-Identifier: Apache-2.0
"""A request that cannot be met holds its own job only."""

from bridge.model.job import Hold
from bridge.rpc.pb import scheduler_pb2 as pb
from tests.unit.rpc.worlds import (
    a_delta,
    a_full,
    a_job,
    a_request,
    a_session,
    jobs_of,
)


def test_a_bad_request_holds_that_job_only():
    session = a_session(
        a_full([a_job("1", request=a_request(min_nodes=5, max_nodes=2)), a_job("2")])
    )
    jobs = jobs_of(session)
    assert jobs["1"]["hold"] == Hold.BAD_REQUEST
    assert jobs["1"]["hold_text"] == "asks for at least 5 and at most 2 nodes"
    assert jobs["2"]["hold"] == Hold.NONE


def test_the_controllers_own_hold_stays():
    bad = a_request(partitions=["x"])
    session = a_session(a_full([a_job("1", request=bad, hold=pb.HOLD_HELD, hold_text="by root")]))
    job = jobs_of(session)["1"]
    assert (job["hold"], job["hold_text"]) == (Hold.HELD, "by root")


def test_a_bad_request_becomes_good_when_the_cluster_changes():
    session = a_session(a_full([a_job("1", request=a_request(partitions=["new"]))]))
    assert jobs_of(session)["1"]["hold"] == Hold.BAD_REQUEST
    new = pb.Partitions(items=[pb.Partition(name="new", nodes="n[0-3]", up=True)])
    assert session.apply(a_delta(1, partitions=new))
    job = jobs_of(session)["1"]
    assert (job["hold"], job["hold_text"], job["partitions"]) == (Hold.NONE, "", (0,))


def test_words_of_users_are_made_harmless():
    session = a_session(a_full([a_job("1", name="x\x1b[2J" + "y" * 5000, user="é")]))
    job = jobs_of(session)["1"]
    assert job["name"].isprintable()
    assert len(job["name"]) <= 200
    assert job["user"] == "é"
