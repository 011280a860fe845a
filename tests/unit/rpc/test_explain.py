# SPDX-License-Identifier: Apache-2.0
import dataclasses
from datetime import datetime

import numpy as np
import pytest

from bridge.dialect import dialect_named
from bridge.model.job import Hold
from bridge.model.reasons import Reason, ReasonCode
from bridge.planning.queue.time_windows import too_late
from bridge.ports import Conditions
from bridge.rpc.controller.cycles import Published
from bridge.rpc.operators import what_if_service
from bridge.rpc.operators.explain import (
    MAX_BLOCKERS,
    UNKNOWN_CHANGES,
    explain,
    nothing_helps,
    planned_jobs,
    rigid,
)
from bridge.rpc.operators.what_if_service import what_if_under
from bridge.rpc.pb import operator_pb2 as pb
from bridge.rpc.reported.hostlist import NodeIndex
from bridge.units import NEVER, UNPLANNED
from schedbridge_contracts.builders import (
    a_job,
    a_partition,
    a_reservation,
    a_running_job,
    a_snapshot,
)
from tests.unit.rpc.test_announcements import a_plan

WORDS = dialect_named("").words

NOW_S = 1_000_000


def published(*rows, jobs=(), running=(), **settings):
    snapshot = a_snapshot(jobs=jobs, running=running, now_s=NOW_S, **settings)()
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


def test_a_malleable_job_that_shares_nodes_is_told_that_it_is_rigid():
    """Waiting and running; not where its partition gives it whole nodes."""
    jobs = [a_job(shared=True, rigid=True, id="1"), a_job(rigid=True, id="2"), a_job(id="3")]
    running = [
        a_running_job(nodes=(0,), shared=True, rigid=True, id="4"),
        a_running_job(nodes=(1,), rigid=True, id="5"),
        a_running_job(nodes=(2,), shared=True, id="6"),
    ]
    world = published(*[(row, NOW_S + 60, [0]) for row in range(3)], jobs=jobs, running=running)
    sentence = rigid(WORDS)
    told = {str(job): sentence in explain(world, str(job)).lines for job in range(1, 7)}
    assert told == {"1": True, "2": False, "3": False, "4": True, "5": False, "6": False}
    assert "--exclusive" in sentence


def test_where_a_measured_power_comes_from_is_told_with_its_age():
    """Of four running jobs: measured, modelled, lost, and not measured."""
    world = published(running=[a_running_job(nodes=(n,), id=str(n)) for n in range(4)])
    sources = np.array(["rapl", "model", "model in place of rapl", ""], dtype=object)
    running = dataclasses.replace(
        world.snapshot.running, power_source=sources,
        power_at_s=np.array([NOW_S - 1, NOW_S - 2, NOW_S - 3, 0]),
        power_lost_s=np.array([0, 0, NOW_S - 40, 0]),
        measured_min_power_w=np.array([70, 80, 90, 0]),
        measured_max_power_w=np.array([170, 180, 890, 0]),
    )  # fmt: skip
    snapshot = dataclasses.replace(world.snapshot, running=running)
    lost = "measurement lost 40 s ago (model in place of rapl, 3 s old)"
    told = [
        [line for line in explain(dataclasses.replace(world, snapshot=snapshot), str(n)).lines
         if line.startswith("draws ")]
        for n in range(4)
    ]  # fmt: skip
    assert told == [
        ["draws 70 to 170 W on each node: measured (rapl, 1 s old)"],
        ["draws 80 to 180 W on each node: modelled (model, 2 s old)"],
        [f"draws 90 to 890 W on each node: {lost}"],
        [],
    ]


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
    assert any("2 running jobs in its way; the last ends" in line for line in reply.lines)


@pytest.mark.parametrize(
    ("hold", "word", "told"),
    [
        (Hold.HELD, "JobHeldUser", "JobHeldUser: held by user or administrator"),
        (Hold.DEPENDENCY, "Dependency", "Dependency: waits for a job it depends on"),
        (
            Hold.LIMIT,
            "QOSMaxNodePerJobLimit",
            "QOSMaxNodePerJobLimit: a limit of its user, account or QOS is reached",
        ),
        (Hold.OTHER, "its own words", "its own words"),
        (Hold.NONE, "", "waits"),
    ],
)
def test_a_word_of_the_controller_is_told_with_its_meaning(hold, word, told):
    found = published((0, UNPLANNED, []), jobs=[a_job(hold=hold)])
    found.snapshot.jobs.hold_text[0] = word
    reason = Reason(ReasonCode.OTHER, word or "waits")
    found = dataclasses.replace(found, plan=dataclasses.replace(found.plan, reasons=(reason,)))
    assert f"does not start now: {told}" in explain(found, "1").lines


def test_an_unplanned_job_waits_for_those_in_its_partition():
    found = published(
        (0, UNPLANNED, []),
        jobs=[a_job()],
        running=[a_running_job(nodes=(at % 4,), end_s=NOW_S + 99 - at) for at in range(50)],
    )
    reply = explain(found, "1")
    assert len(reply.blockers) == MAX_BLOCKERS
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


def clock(at_s):
    return datetime.fromtimestamp(at_s).strftime("%H:%M:%S")


def test_what_it_waits_for_is_told_link_by_link():
    found = published(
        (0, NOW_S + 300, [0, 1]), (1, NOW_S + 200, [0, 1, 2]),
        jobs=[a_job(nodes=2), a_job(nodes=3, user="alice")],
        running=[a_running_job(nodes=(0, 2), end_s=NOW_S + 200, user="bob")],
    )  # fmt: skip
    reply = explain(found, "1")
    assert (
        f"waits for job 2 of alice, planned until {clock(NOW_S + 300)} on 2 of its nodes; "
        f"that one waits for job r1 of bob, running until {clock(NOW_S + 200)} at the latest "
        "on 2 of its nodes"
    ) in reply.lines
    first, second = reply.chain
    assert (first.kind, first.until_s, first.shared_nodes) == (
        pb.CHAIN_KIND_WAITING_JOB, NOW_S + 300, 2,
    )  # fmt: skip
    assert (second.kind, second.job.job_id, second.job.running) == (
        pb.CHAIN_KIND_RUNNING_JOB, "r1", True,
    )  # fmt: skip


def test_a_long_chain_is_told_in_part():
    jobs = [a_job(nodes=1, limit_s=100) for _ in range(6)]
    rows = [(at, NOW_S + 100 * (at + 1), [0]) for at in range(6)]
    running = [a_running_job(nodes=(0,), end_s=NOW_S + 100)]
    reply = explain(published(*rows, jobs=jobs, running=running), "6")
    assert len(reply.chain) == 6
    (sentence,) = [line for line in reply.lines if line.startswith("waits for job")]
    assert sentence.endswith("; and so on through 3 more")


def test_reservations_licences_and_begin_times_are_links():
    found = published(
        (0, NOW_S + 50, [0]),
        jobs=[a_job()],
        reservations=[a_reservation([0], NOW_S - 9, NOW_S + 50, "maint")],
    )
    (link,) = explain(found, "1").chain
    assert (link.kind, link.reservation) == (pb.CHAIN_KIND_RESERVATION, "maint")
    assert (
        f"waits for reservation maint, which ends {clock(NOW_S + 50)}" in explain(found, "1").lines
    )
    found = published((0, NOW_S + 70, [0]), jobs=[a_job(hold=Hold.BEGIN_TIME, begin_s=NOW_S + 70)])
    (link,) = explain(found, "1").chain
    assert (link.kind, link.job.job_id) == (pb.CHAIN_KIND_BEGIN_TIME, "")
    found = published(
        (0, NOW_S + 80, [1]),
        jobs=[a_job(licences=(1,))],
        running=[a_running_job(nodes=(0,), end_s=NOW_S + 80, licences=(1,))],
        licences=[("sim", 1)],
    )
    (link,) = explain(found, "1").chain
    assert (link.licence, link.job.job_id) == ("sim", "r1")
    assert any("with licence sim" in line for line in explain(found, "1").lines)


def test_what_would_let_it_start_earlier():
    found = published(
        (0, NOW_S + 9000, [0, 1]),
        jobs=[a_job(nodes=2, limit_s=7200)],
        running=[a_running_job(nodes=(0,), end_s=NOW_S + 9000)],
        partitions=[a_partition("batch", [0, 1]), a_partition("short", [2, 3], max_time_s=3600)],
    )
    reply = explain(found, "1", what_if_under(Conditions()))
    assert reply.changes_known
    (change,) = reply.changes
    assert (change.options, change.start_s, change.nodes) == ("-N 1", NOW_S, 1)
    assert (change.tasks, change.chunks, change.partition, change.time_limit_s) == (0, 0, "", 0)
    assert nothing_helps(WORDS) not in reply.lines


def test_nothing_helps_and_that_is_said():
    running = [a_running_job(nodes=(at,), end_s=NOW_S + 60) for at in range(4)]
    found = published((0, NOW_S + 60, [0]), jobs=[a_job()], running=running)
    reply = explain(found, "1", what_if_under(Conditions()))
    assert reply.changes_known
    assert not reply.changes
    assert nothing_helps(WORDS) in reply.lines


def test_a_search_that_fails_denies_nothing_else(monkeypatch):
    running = [a_running_job(nodes=(at,), end_s=NOW_S + 60) for at in range(4)]
    found = published((0, NOW_S + 60, [0]), jobs=[a_job()], running=running)
    monkeypatch.setattr(what_if_service, "what_if", lambda *_: 1 // 0)
    reply = explain(found, "1", what_if_under(Conditions()))
    assert reply.lines
    assert UNKNOWN_CHANGES in reply.lines
    assert not reply.changes_known


@pytest.mark.parametrize("hold", [Hold.HELD, Hold.DEPENDENCY])
def test_a_held_job_is_not_told_that_nothing_helps(hold):
    found = published((0, UNPLANNED, []), jobs=[a_job(hold=hold)])
    reply = explain(found, "1", what_if_under(Conditions()))
    assert not reply.changes_known
    assert not {nothing_helps(WORDS), UNKNOWN_CHANGES} & set(reply.lines)


@pytest.mark.parametrize(
    ("settings", "advice"),
    [
        ({"deadline_s": NOW_S + 100}, "a later deadline helps"),
        ({"fixed": True, "begin_s": NOW_S + 100}, "StartTime="),
    ],
)
def test_a_job_that_misses_its_time_is_told_what_helps_and_who_is_in_its_way(settings, advice):
    jobs = [a_job(2, **settings)]
    running = [a_running_job(nodes=(0, 1, 2, 3), end_s=NOW_S + 500)]
    found = published((0, NEVER, []), jobs=jobs, running=running)
    why = too_late(found.snapshot.jobs, 0, NOW_S + 500, 100, now_s=NOW_S)
    found = dataclasses.replace(found, plan=dataclasses.replace(found.plan, reasons=(why,)))
    reply = explain(found, "1")
    assert advice in reply.lines[1]
    assert [blocker.job_id for blocker in reply.blockers] == ["r1"]
