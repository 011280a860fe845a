# SPDX-License-Identifier: Apache-2.0
"""Waiting jobs that may start on another width than they ask for, from the report to the start."""

import pytest

from bridge.rpc.controller.announcements import Announcements
from bridge.rpc.pb import scheduler_pb2 as pb
from tests.unit.rpc.test_announcements import a_plan
from tests.unit.rpc.worlds import a_full, a_job, a_request, a_session, partitions, some_nodes


def requested(minimum=1, maximum=8, *, moldable=True, rule="", **request):
    request = {"min_nodes": 4, "max_nodes": 4, "exclusive": True, **request}
    return a_request(
        **request,
        malleable=pb.Malleable(
            min_nodes=minimum, max_nodes=maximum, moldable=moldable, node_constraint=rule
        ),
    )


def told(*requests, features=("start", "resize"), bounds=None, **partition):
    jobs = [a_job(str(at), request=request) for at, request in enumerate(requests, 1)]
    return a_session(
        a_full(jobs, some_nodes(8), partitions=bounds or partitions("n[0-7]", **partition)),
        features=list(features),
    )


def start_widths(*requests, **settings):
    jobs = told(*requests, **settings).snapshot()[0].jobs
    return list(zip(jobs.min_start.tolist(), jobs.max_start.tolist(), strict=True))


def test_what_the_controller_calls_moldable_may_start_on_any_of_its_widths():
    per_node = requested(tasks=8, tasks_per_node=2, min_cpus=8)
    session = told(requested(), per_node, requested(2, 6, rule="even"))
    jobs = session.snapshot()[0].jobs
    assert jobs.min_start.tolist() == [1, 1, 2]
    assert jobs.max_start.tolist() == [8, 8, 6]
    assert jobs.min_nodes.tolist() == jobs.max_nodes.tolist() == [4, 4, 4]
    assert jobs.tasks.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    "request_",
    [
        a_request(min_nodes=4, max_nodes=4, exclusive=True),
        requested(moldable=False),
        requested(exclusive=False),
        requested(tasks=16, min_cpus=16),  # their number is the same on any width
    ],
)
def test_other_jobs_start_on_what_they_ask_for(request_):
    assert start_widths(request_) == [(0, 0)]


def test_a_controller_that_cannot_resize_molds_nothing():
    assert start_widths(requested(), features=("start",)) == [(0, 0)]


def test_the_time_limit_that_accounting_allows_bounds_the_width():
    request = requested()
    request.malleable.min_start = 3
    assert start_widths(request) == [(3, 8)]
    request.malleable.min_start = 5
    assert start_widths(request) == [(0, 0)]


def test_the_bounds_of_all_partitions_hold():
    assert start_widths(requested(), min_nodes=2, max_nodes=6) == [(2, 6)]
    assert start_widths(requested(), min_nodes=5) == [(0, 0)]
    both = pb.Partitions(
        items=[
            pb.Partition(name="batch", nodes="n[0-7]", up=True, min_nodes=3),
            pb.Partition(name="short", nodes="n[0-7]", up=True, max_nodes=5),
        ]
    )
    assert start_widths(requested(partitions=["batch", "short"]), bounds=both) == [(3, 5)]


def test_a_running_job_says_how_many_nodes_it_asked_for():
    job = pb.Job(
        id="7", version=1, state=pb.JOB_STATE_RUNNING,
        request=requested(moldable=False, tasks=8, tasks_per_node=2, min_cpus=8),
        allocation=pb.Allocation(
            start_s=1, end_s=2_000_000, partition="batch", exclusive=True,
            uses=[pb.NodeUse(nodes="n[0-1]", cpus=4)],
        ),
    )  # fmt: skip
    rigid = pb.Job()
    rigid.CopyFrom(job)
    rigid.id, rigid.allocation.uses[0].nodes = "8", "n2"
    rigid.ClearField("request")
    session = a_session(
        a_full([job, rigid], some_nodes(8), partitions=partitions("n[0-7]")),
        features=["start", "resize"],
    )
    running = session.snapshot()[0].running
    assert running.requested_nodes.tolist() == [4, 0]
    assert running.min_nodes.tolist() == [1, 0]  # whatever tasks it was submitted with


@pytest.mark.parametrize(
    ("nodes", "settings", "limit_s"),
    [
        ([0], {}, 2400),
        ([0, 1, 2], {}, 840),  # 800 s, in whole minutes
        ([0, 1, 2, 3], {}, 0),
        ([0, 1, 2, 3, 4], {}, 0),
        ([0], {"max_time_s": 1230}, 1200),
        ([0], {"max_time_s": 600}, 600),
    ],
)
def test_a_start_on_fewer_nodes_has_as_many_node_seconds(nodes, settings, limit_s):
    session = told(requested(), a_request(min_nodes=4, max_nodes=4), **settings)
    snapshot, serials = session.snapshot()
    plan = a_plan(snapshot, (0, snapshot.now_s, nodes))
    said = Announcements().decide(snapshot, serials, plan, session.nodes).messages
    (start,) = [message.start for message in said if message.HasField("start")]
    assert start.time_limit_s == limit_s
