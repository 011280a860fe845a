# SPDX-License-Identifier: Apache-2.0
import pytest

from bridge.model.job import Hold
from bridge.model.reasons import Reason, ReasonCode
from bridge.rpc.cycles import Published
from bridge.rpc.explain import MOST_BLOCKERS, explain, planned_jobs
from bridge.rpc.hostlist import NodeIndex
from bridge.units import NEVER, UNPLANNED
from tests.builders import a_job, a_running_job, a_snapshot
from tests.unit.rpc.test_announcements import a_plan

NOW_S = 1_000_000


def published(*rows, jobs=(), running=()):
    snapshot = a_snapshot(jobs=jobs, running=running, now_s=NOW_S)()
    return Published(snapshot, a_plan(snapshot, *rows), NodeIndex(snapshot.nodes.names))


def test_an_unknown_job_has_no_explanation():
    assert explain(published(), "77") is None


def test_a_running_job():
    reply = explain(published(running=[a_running_job(nodes=(0, 1), end_s=NOW_S + 90)]), "r1")
    assert reply.job.running
    assert reply.job.nodes == "n[1-2]"
    assert "ends at the latest" in reply.lines[1]
    assert "in 1 min" in reply.lines[1]


def test_a_running_job_whose_time_is_up():
    reply = explain(published(running=[a_running_job(end_s=NOW_S - 1)]), "r1")
    assert "its time is up" in reply.lines[1]


def test_a_job_that_starts_now():
    reply = explain(published((0, NOW_S, [0, 1]), jobs=[a_job()]), "1")
    assert list(reply.lines) == ["starts now on n[1-2] in partition batch"]


def test_a_planned_job_names_who_holds_its_nodes():
    found = published(
        (0, NOW_S + 200, [0, 1]),
        (1, NOW_S + 100, [1]),
        (2, NOW_S + 50, [3]),
        jobs=[a_job(), a_job(), a_job()],
        running=[
            a_running_job(nodes=(0,), end_s=NOW_S + 150),
            a_running_job(nodes=(1,), end_s=NOW_S + 60),
            a_running_job(nodes=(3,), end_s=NOW_S + 60),
        ],
    )
    reply = explain(found, "1")
    assert [job.job_id for job in reply.blockers] == ["r2", "r1", "2"]
    assert [job.running for job in reply.blockers] == [True, True, False]
    assert reply.lines[0].startswith("expected to start at ")
    assert "on n[1-2] in partition batch" in reply.lines[0]
    assert reply.lines[1] == "does not start now: waits"
    assert "2 running jobs in its way; the last ends" in reply.lines[2]


def test_an_unplanned_job_waits_for_those_in_its_partition():
    found = published(
        (0, UNPLANNED, []),
        jobs=[a_job()],
        running=[a_running_job(nodes=(at % 4,), end_s=NOW_S + 99 - at) for at in range(50)],
    )
    reply = explain(found, "1")
    assert len(reply.blockers) == MOST_BLOCKERS
    assert reply.blockers[0].job_id == "r50"  # ends first


@pytest.mark.parametrize(
    ("code", "advice"),
    [
        (ReasonCode.NEVER, "it can never run as it is"),
        (ReasonCode.BAD_REQUEST, "cancel it and submit it again"),
        (ReasonCode.HELD, "scontrol release"),
        (ReasonCode.REFUSED, "tried again"),
    ],
)
def test_what_helps(code, advice):
    start_s = NEVER if code is ReasonCode.NEVER else UNPLANNED
    found = published((0, start_s, [], Reason(code, "why")), jobs=[a_job()])
    reply = explain(found, "1")
    assert reply.lines[0] == "does not start now: why"
    assert advice in reply.lines[1]
    assert not reply.blockers


def test_a_task_of_an_array_is_found_by_the_arrays_id():
    found = published(
        (0, NOW_S + 50, [0]), (0, NOW_S + 20, [1]),
        jobs=[a_job(id="7", array_tasks=5, array_startable=2)],
    )  # fmt: skip
    reply = explain(found, "7_3")
    assert reply.job.start_s == NOW_S + 20
    assert "5 tasks of this array have not started" in reply.lines


def test_a_begin_time_is_said():
    found = published(
        (0, NOW_S + 90, [0], Reason(ReasonCode.BEGIN_TIME, "its begin time has not come")),
        jobs=[a_job(hold=Hold.BEGIN_TIME, begin_s=NOW_S + 90)],
    )
    assert any("not to begin before" in line for line in explain(found, "1").lines)


def test_the_plan_stands_in_the_order_of_starts():
    found = published(
        (0, UNPLANNED, []), (1, NOW_S + 9, [0]), (2, NOW_S, [1]), (3, NEVER, []),
        jobs=[a_job() for _ in range(4)],
    )  # fmt: skip
    assert [job.job_id for job in planned_jobs(found, 0)] == ["3", "2", "1", "4"]
    assert [job.job_id for job in planned_jobs(found, 2)] == ["3", "2"]
    first = planned_jobs(found, 1)[0]
    assert (first.start_s, first.nodes, first.node_count, first.user) == (NOW_S, "n2", 1, "user")
    assert planned_jobs(found, 0)[2].reason.text == "waits"
