# SPDX-License-Identifier: Apache-2.0
"""Running jobs that can change their width, as a controller reports them."""

import pytest

from bridge.model.job import Hold, WidthRule
from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.rpc.reported.session import Session
from tests.unit.rpc.worlds import (
    NOW_S,
    a_hello,
    a_job,
    a_running_job,
    partitions,
    some_nodes,
)


def reported(*jobs, features=("start", "resize"), nodes=8):
    session = Session()
    session.greet(a_hello(features=list(features)))
    request = pb.CycleRequest(
        epoch=1, generation=1, now_s=NOW_S, jobs=jobs, nodes=some_nodes(nodes),
        partitions=partitions(f"n[0-{nodes - 1}]"),
    )  # fmt: skip
    assert session.apply(request)
    return session, request


def malleable(job_id="7", nodes="n[1-3]", minimum=2, maximum=6, constraint="", **settings):
    job = a_running_job(job_id, nodes, **settings)
    job.version = 5
    job.request.CopyFrom(
        pb.Request(
            partitions=["batch"],
            min_nodes=minimum,
            max_nodes=maximum,
            features="",
            malleable=pb.Malleable(
                min_nodes=minimum, max_nodes=maximum, node_constraint=constraint
            ),
        )
    )
    return job


def test_widths_and_rule_are_columns_of_the_running_table():
    session, _ = reported(malleable(constraint="even"), a_running_job("8", "n5"))
    running = session.snapshot()[0].running
    assert running.min_nodes.tolist() == [2, 0]
    assert running.max_nodes.tolist() == [6, 0]
    assert running.width_rule.tolist() == [WidthRule.EVEN, WidthRule.ANY]
    assert running.version.tolist() == [5, 1]
    assert running.reservation.tolist() == [-1, -1]


def test_the_node_of_the_batch_script_is_known_if_the_job_holds_it():
    jobs = [malleable(), malleable("8", "n[5-6]"), malleable("9", "n7"), malleable("10", "n4")]
    for job, head in zip(jobs, ("n2", "n1", "elsewhere", ""), strict=True):
        job.allocation.head = head
    running = reported(*jobs)[0].snapshot()[0].running
    assert running.head.tolist() == [2, -1, -1, -1]
    assert [running.head_of(job) for job in range(4)] == [2, 5, 7, 4]


def test_for_a_controller_that_cannot_resize_no_job_is_malleable():
    session, _ = reported(malleable(), features=("start",))
    assert session.snapshot()[0].running.max_nodes.tolist() == [0]


@pytest.mark.parametrize("constraint", ["nonsense", "cubic"])
def test_a_job_whose_widths_make_no_sense_keeps_its_nodes(constraint):
    session, _ = reported(malleable(minimum=2, maximum=7, constraint=constraint))
    assert session.snapshot()[0].running.max_nodes.tolist() == [0]


@pytest.mark.parametrize("features", [("start", "resize"), ("start",)])
@pytest.mark.parametrize(
    ("requested", "told"),
    [
        ((3, 3, "pof2"), "requests 3 nodes, but may run on other numbers only (1 to 8, pof2)"),
        ((9, 9, ""), "requests 9 nodes, but may run on other numbers only (1 to 8)"),
        ((9, 0, "even"), "requests 9- nodes, but may run on other numbers only (1 to 8, even)"),
        ((5, 7, "pof2"), "requests 5-7 nodes, but may run on other numbers only (1 to 8, pof2)"),
        ((4, 4, "pof2"), ""),
        ((3, 5, "pof2"), ""),
        ((1, 0, "cubic"), ""),
    ],
)
def test_a_number_of_nodes_that_is_not_allowed_is_refused(features, requested, told):
    """Two jobs: the one that may start is not held back by the other."""
    minimum, maximum, constraint = requested
    request = pb.Request(
        partitions=["batch"], min_nodes=minimum, max_nodes=maximum, exclusive=True,
        malleable=pb.Malleable(min_nodes=1, max_nodes=8, node_constraint=constraint),
    )  # fmt: skip
    right = pb.Request()
    right.CopyFrom(request)
    right.min_nodes = right.max_nodes = 8
    session, _ = reported(a_job("1", request=request), a_job("2", request=right), features=features)
    jobs = session.snapshot()[0].jobs
    assert jobs.hold.tolist() == [Hold.BAD_REQUEST if told else Hold.NONE, Hold.NONE]
    assert jobs.hold_text.tolist() == [told, ""]


def test_a_running_job_keeps_its_widths_whatever_its_request_has_become():
    """Slurm may change the requested numbers of a job when it is resized."""
    job = malleable(minimum=2, maximum=6)
    job.request.min_nodes, job.request.max_nodes = 7, 7
    running = reported(job)[0].snapshot()[0].running
    assert (running.min_nodes.tolist(), running.max_nodes.tolist()) == ([2], [6])


def test_nodes_that_are_being_given_back_are_a_row_of_their_own():
    job = malleable(nodes="n[1-2]")
    job.allocation.adapting = True
    job.allocation.uses.append(pb.NodeUse(nodes="n3", cpus=4, until_s=NOW_S + 9))
    session, _request = reported(job, a_running_job("8", "n5"))
    running = session.snapshot()[0].running
    assert running.id.tolist() == ["7", "8", "7"]
    assert running.nodes.tolist() == [1, 2, 5, 3]
    assert running.adapting.tolist() == [True, False, True]
    assert running.releasing.tolist() == [False, False, True]
    assert running.end_s.tolist()[2] == NOW_S + 9
    # A delta that says that it is done.
    done = malleable(nodes="n[1-2]")
    session.apply(
        pb.CycleRequest(epoch=1, generation=2, base_generation=1, now_s=NOW_S + 9, jobs=[done])
    )
    assert session.snapshot()[0].running.id.tolist() == ["8", "7"]


def test_a_release_that_is_late_is_expected_within_the_next_second():
    job = malleable(nodes="n[1-2]")
    job.allocation.uses.append(pb.NodeUse(nodes="n3", cpus=4, until_s=NOW_S - 50))
    session, _ = reported(job)
    assert session.snapshot()[0].running.end_s.tolist()[1] == NOW_S + 1


def test_a_job_that_gives_back_all_its_nodes_is_one_that_holds_them():
    job = malleable(nodes="")
    job.allocation.uses.append(pb.NodeUse(nodes="n[1-3]", cpus=4, until_s=NOW_S + 9))
    session, _ = reported(job)
    running = session.snapshot()[0].running
    assert running.nodes.tolist() == [1, 2, 3]
    assert not running.releasing.any()


def test_a_job_that_goes_back_to_the_queue_releases_nothing_any_more():
    job = malleable(nodes="n[1-2]")
    job.allocation.uses.append(pb.NodeUse(nodes="n3", cpus=4, until_s=NOW_S + 9))
    session, _ = reported(job)
    again = pb.CycleRequest(
        epoch=1, generation=2, base_generation=1, now_s=NOW_S + 1, jobs=[a_job("7", version=6)]
    )
    assert session.apply(again)
    snapshot, _ = session.snapshot()
    assert snapshot.jobs.id.tolist() == ["7"]
    assert len(snapshot.running) == 0


def test_a_malleable_job_without_nodes_keeps_none():
    session, _ = reported(malleable(nodes=""), malleable("8", "n5"))
    running = session.snapshot()[0].running
    assert running.max_nodes.tolist() == [0, 6]


def test_whether_a_job_keeps_its_nodes_and_how_many_it_asked_for_is_known():
    jobs = [malleable(), malleable("8", "n[5-6]"), a_running_job("9", "n7")]
    jobs[0].request.malleable.no_resize = True
    jobs[1].request.min_nodes = 4
    running = reported(*jobs)[0].snapshot()[0].running
    assert running.keeps_nodes.tolist() == [True, False, False]
    assert running.requested_nodes.tolist() == [2, 4, 0]


def test_what_running_jobs_stated_that_they_draw_is_known_of_rigid_ones_too():
    jobs = [malleable(), a_running_job("9", "n7"), a_running_job("99", "n6")]
    jobs[0].allocation.max_power_w = 250
    jobs[1].allocation.min_power_w, jobs[1].allocation.max_power_w = 90, 1 << 31
    running = reported(*jobs)[0].snapshot()[0].running
    assert running.min_power_w.tolist() == [0, 90, 0]
    assert running.max_power_w.tolist() == [250, 1 << 30, 0]
    assert not running.measured_max_power_w.any()


def test_nodes_that_a_job_gives_back_draw_as_the_job_does():
    job = malleable(nodes="n[1-2]")
    job.allocation.max_power_w = 250
    job.allocation.uses.append(pb.NodeUse(nodes="n3", cpus=4, until_s=NOW_S + 9))
    running = reported(job)[0].snapshot()[0].running
    assert running.releasing.tolist() == [False, True]
    assert running.max_power_w.tolist() == [250, 250]
