# SPDX-License-Identifier: Apache-2.0
"""Reports of agents count only for jobs that the controller has placed on their nodes."""

import json

import pytest

from bridge.extensions.elastic.resizing.launchers import ShrinkOrder
from bridge.rpc.agents.hub import Hub
from bridge.rpc.agents.job_placement import JobPlacement
from bridge.rpc.agents.placed_reports import ELSEWHERE, MAX_NAMED, OTHERS, UNKNOWN, PlacedReports
from bridge.rpc.pb import agent_pb2 as pb
from bridge.rpc.pb import scheduler_pb2 as pb_wire
from tests.unit.rpc.placements import a_placement
from tests.unit.rpc.test_agents_hub import Clock, Node
from tests.unit.rpc.test_malleable_jobs import malleable, reported
from tests.unit.rpc.worlds import NOW_S

PLACED = {"7": "n1 n2", "70": "n10", "8": "n9 n10"}
"""Two jobs whose ids begin alike, two nodes whose names do, and one that is on two with another."""


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def hub(clock):
    found = Hub(clock)
    found.placed(a_placement(PLACED))
    return found


def times(job, node, mpi_s, wall_s=20.0, *, estimated=False):
    spent = pb.MpiTime(job=job, node=node, mpi_s=mpi_s, wall_s=wall_s, estimated=estimated)
    return pb.AgentReport(mpi=spent)


def reading(*jobs, node="n1", **use):
    """Of one second: jobs with their nodes."""
    found = [pb.JobUse(job=job, node=at, cpus=1, cpu_s=10, **use) for job, at in jobs]
    one = pb.Use(nodes=[pb.NodePower(node=node, watts=100, cpus=4)], jobs=found)
    return pb.AgentReport(uses=pb.Uses(uses=[one]))


def attach(job, own=None, user="ann", connection=1):
    line = {"op": "attach", "version": 1, "job": job, "nodes": ["n1", "n2"], "engine": "join"}
    text = json.dumps(line)
    return pb.AgentReport(
        launcher=pb.FromLauncher(connection=connection, user=user, job=own or job, line=text)
    )


# ------------------------------------------------------------------ each kind of report


@pytest.mark.parametrize("estimated", [False, True])
def test_the_ratio_of_a_job_is_that_of_its_nodes(hub, estimated):
    nodes = {name: Node(hub, name) for name in ("n1", "n2", "n9", "n10")}
    for name, node in nodes.items():
        for job in ("7", "70"):
            # Each node says the same of both jobs; they differ in what they say.
            mpi_s = 10.0 if name in PLACED[job].split() else 19.0
            hub.report(node.agent, times(job, name, mpi_s, estimated=estimated))
    assert hub.mtct("7", "ann", estimate=estimated) == 1
    assert hub.mtct("70", "ann", estimate=estimated) == 1
    assert hub.reports.refused == {
        ("n1", ELSEWHERE): 1, ("n2", ELSEWHERE): 1, ("n9", ELSEWHERE): 2, ("n10", ELSEWHERE): 1,
    }  # fmt: skip


def test_an_agent_says_nothing_in_the_name_of_another_node(hub):
    Node(hub, "n1")
    liar = Node(hub, "n9")
    hub.report(liar.agent, times("7", "n1", 19.0))
    assert hub.mtct("7", "ann") == -1
    assert hub.reports.refused == {("n9", ELSEWHERE): 1}


def test_a_launcher_is_taken_over_from_no_other_node(hub):
    node, liar = Node(hub, "n1"), Node(hub, "n9")
    hub.report(node.agent, attach("7"))
    before = hub.attached("7", "ann")
    hub.report(liar.agent, attach("7"))
    assert hub.attached("7", "ann") == before
    (answer,) = liar.told()
    assert answer == {"op": "error", "reason": "job 7 is not placed on node n9"}
    hub.order("7", "ann", ShrinkOrder("7-1", ("n1",), ("n2",), 60))
    assert [line["op"] for line in node.told()] == ["attached", "shrink"]
    done = {"op": "result", "id": "7-1", "outcome": "done", "reason": "", "nodes": ["n1"]}
    liar.said(done)
    assert hub.results() == ()
    node.said(done)
    assert [result.id for result in hub.results()] == ["7-1"]


def test_a_launcher_of_another_user_resets_nothing(hub):
    node = Node(hub, "n1")
    hub.report(node.agent, attach("7"))
    hub.report(node.agent, times("7", "n1", 10.0))
    for user in ("an", "anna"):
        hub.report(node.agent, attach("7", user=user, connection=2))
        assert node.told()[-1]["reason"] == "job 7 is another user's"
        assert hub.attached("7", user) is None
    assert hub.mtct("7", "ann") == 1


def test_processes_are_counted_on_a_jobs_own_nodes(hub):
    node, other = Node(hub, "n2"), Node(hub, "n9")
    assert not hub.vacant("7", "ann", ("n2", "n9"))
    other.counts("7", "n9", 0)
    node.counts("7", "n2", 0)
    assert not hub.vacant("7", "ann", ("n2", "n9"))
    assert hub.reports.refused == {("n9", ELSEWHERE): 1}


def test_readings_of_other_nodes_are_left_out_and_the_others_count(hub):
    node = Node(hub, "n9")
    hub.report(node.agent, reading(("7", "n9"), ("8", "n9"), ("70", "n9"), node="n9", progress=0.5))
    assert hub.extensions.get("sharing").readings.of("8", ["n9"]).progress == 0.5
    for job in ("7", "70"):
        assert hub.extensions.get("sharing").readings.of(job, ["n9"]) is None
    assert hub.extensions.get("power").nodes()["n9"].watts == 100
    assert hub.reports.refused == {("n9", ELSEWHERE): 1}  # one report, however much it says


def test_shares_in_force_are_those_of_jobs_on_the_node(hub):
    node = Node(hub, "n9")
    held = [
        pb.ShareInForce(share=pb.Share(job=job, node="n9"), method="cgroup-v2")
        for job in ("7", "8")
    ]
    for job in ("7", "8"):
        hub.report(node.agent, reading((job, "n9"), node="n9"))
    hub.report(node.agent, pb.AgentReport(shares=pb.SharesInForce(shares=held)))
    assert hub.extensions.get("sharing").readings._methods == {"n9": {"8": "cgroup-v2"}}


# ------------------------------------------------------------------ placements that change


def test_a_node_that_a_job_has_left_says_nothing_more_of_it(hub):
    leaving, staying = Node(hub, "n2"), Node(hub, "n1")
    hub.report(leaving.agent, attach("7", connection=1))
    hub.report(staying.agent, attach("7", connection=2))
    hub.report(leaving.agent, attach("7", connection=3))
    assert hub.attached("7", "ann").serial == 3
    hub.placed(a_placement({**PLACED, "7": "n1"}))
    assert hub.attached("7", "ann").serial == 2
    hub.report(leaving.agent, times("7", "n2", 19.0))
    hub.report(staying.agent, times("7", "n1", 10.0))
    assert hub.mtct("7", "ann") == 1


def test_while_a_job_gives_nodes_back_those_that_it_keeps_speak_for_it(hub):
    """They are rows of their own in a snapshot, behind those of all jobs."""
    jobs = [malleable("7", "n[1-2]"), malleable("40_1", "n5")]
    jobs[1].allocation.number = 41
    for job, leaving in zip(jobs, ("n3", "n[6-7]"), strict=True):
        job.allocation.uses.append(pb_wire.NodeUse(nodes=leaving, cpus=4, until_s=NOW_S + 9))
    snapshot, _ = reported(*jobs)[0].snapshot()
    placed = JobPlacement(snapshot.running, snapshot.nodes.names)
    assert placed.nodes("7") == {"n1", "n2"}
    assert placed.nodes("40_1") == placed.nodes("41") == {"n5"}
    hub.placed(placed)
    for job, own, names in (("7", "7", "n1 n2 n3"), ("40_1", "41", "n5 n6 n7")):
        for name in names.split():
            left = name in ("n3", "n6", "n7")
            hub.report(Node(hub, name).agent, times(own, name, 19.0 if left else 10.0))
        assert hub.mtct(job, placed.user(job)) == 1
    assert hub.reports.refused == {(name, ELSEWHERE): 1 for name in ("n3", "n6", "n7")}


def test_a_job_that_was_requeued_elsewhere_is_heard_from_there(hub):
    former, present = Node(hub, "n1"), Node(hub, "n9")
    hub.report(former.agent, attach("7"))
    hub.placed(a_placement({"70": "n10"}))  # it waits
    hub.report(former.agent, times("7", "n1", 19.0))
    hub.placed(a_placement({"70": "n10", "7": "n9"}))
    assert hub.attached("7", "ann") is None
    for node, name in ((former, "n1"), (present, "n9")):
        hub.report(node.agent, times("7", name, 19.0 if name == "n1" else 10.0))
        hub.report(node.agent, attach("7", connection=2))
    assert hub.mtct("7", "ann") == 1
    assert hub.attached("7", "ann") is not None
    hub.left(present.agent)
    assert hub.attached("7", "ann") is None


def test_a_launcher_may_attach_before_the_controller_reports_the_job(hub):
    node, liar = Node(hub, "n3"), Node(hub, "n4")
    hub.report(liar.agent, attach("9"))
    hub.report(node.agent, attach("9"))
    hub.report(liar.agent, attach("9", connection=2))
    assert node.told() == [{"op": "attached"}]
    hub.placed(a_placement({**PLACED, "9": "n3"}))
    hub.order("9", "ann", ShrinkOrder("9-1", ("n3",), ("n1",), 60))
    assert [line["op"] for line in node.told()] == ["shrink"]
    assert "shrink" not in [line["op"] for line in liar.told()]


@pytest.mark.parametrize("number", [None, "41"])
def test_a_task_of_an_array_is_spoken_for_from_its_nodes(hub, number):
    """Whether its number on them is known or not: then a node could name any."""
    numbers = {"40_1": number} if number else {}
    hub.placed(a_placement({"40_1": "n1", "40_2": "n2"}, numbers=numbers))
    node, liar = Node(hub, "n1"), Node(hub, "n2")
    hub.report(node.agent, attach("40_1", "41"))
    before = hub.attached("40_1", "ann")
    for own in ("41", "900"):
        hub.report(liar.agent, attach("40_1", own))
    assert hub.attached("40_1", "ann") == before
    if number:
        hub.report(node.agent, times("41", "n1", 10.0))
        hub.report(liar.agent, times("41", "n2", 19.0))
        assert hub.mtct("40_1", "ann") == 1


def test_of_unknown_jobs_nothing_is_added_up(hub, caplog):
    node = Node(hub, "n1")
    hub.report(node.agent, times("9", "n1", 19.0))
    hub.report(node.agent, reading(("9", "n1")))
    hub.placed(a_placement({**PLACED, "9": "n1"}))
    assert hub.mtct("9", "ann") == -1
    hub.report(node.agent, times("9", "n1", 10.0))
    assert hub.mtct("9", "ann") == 1
    assert hub.reports.refused == {("n1", UNKNOWN): 1}
    assert caplog.messages == []


# ------------------------------------------------------------------ the rule itself


def statements(kind, seen=frozenset()):
    """The messages within one that name a job."""
    found = {kind.name} if "job" in kind.fields_by_name else set()
    for field in kind.fields:
        if field.message_type is not None and field.message_type not in seen:
            found |= statements(field.message_type, seen | {kind})
    return found


def test_every_message_that_names_a_job_is_held_against_the_placement():
    """Whoever adds one decides here whether it may come before the controller's report."""
    assert statements(pb.AgentReport.DESCRIPTOR) == {
        "FromLauncher", "Processes", "MpiTime", "JobUse", "Share",
    }  # fmt: skip
    for message in (
        pb.AgentReport(launcher=pb.FromLauncher(job="7")),
        pb.AgentReport(processes=pb.Processes(job="7", node="n9")),
        times("7", "n9", 1.0),
        reading(("7", "n9"), node="n9"),
        pb.AgentReport(shares=pb.SharesInForce(shares=[{"share": {"job": "7", "node": "n9"}}])),
    ):
        reports = PlacedReports()
        reports.placement = a_placement(PLACED)
        left = reports.admit(("n9",), lambda node: node == "n9", message)
        assert reports.refused == {("n9", ELSEWHERE): 1}
        assert not left or "7" not in [job.job for use in message.uses.uses for job in use.jobs]
        assert not left or not message.shares.shares


def test_who_represents_several_nodes_is_heard_for_each(hub):
    agent = Node(hub, "n9", "n1").agent
    hub.report(agent, attach("7"))
    assert hub.attached("7", "ann") is not None
    hub.report(agent, times("7", "n9", 19.0))
    hub.report(agent, times("7", "n1", 10.0))
    assert hub.mtct("7", "ann") == 1
    Node(hub, "n1")  # another has taken its place
    hub.report(agent, times("7", "n1", 19.0))
    assert hub.mtct("7", "ann") == 1


def test_refusals_are_logged_once_a_minute_and_counted_for_a_bounded_number_of_nodes(clock, caplog):
    reports, told = PlacedReports(clock), []
    reports.placement = a_placement(PLACED)
    reports.tell = lambda *what: told.append(what)
    for _ in range(3):
        reports.admit(("n9",), lambda _node: True, times("7\nINFO", "n9", 1.0))
        reports.admit(("n9",), lambda _node: True, times("7", "n9", 1.0))
    line = "agents: refused node n9 (its report on job 7, which is not placed there)"
    assert caplog.messages == [line]
    clock.s += 61
    reports.admit(("n9",), lambda _node: True, times("8", "n9", 1.0))
    assert caplog.messages[1] == "agents: refused node n9 2 more times within a minute (elsewhere)"
    for number in range(MAX_NAMED + 3):
        reports.admit((f"x{number}",), lambda _node: True, times("7", f"x{number}", 1.0))
    assert reports.refused[OTHERS, ELSEWHERE] == 4
    assert len(told) == 6 + MAX_NAMED + 3
    assert len(caplog.messages) < 25


def test_a_placement_is_found_by_id_and_by_number():
    placed = a_placement(
        {"7": "n1 n10", "40_1": "n2", "40_2": "", "40_3": "n3"}, numbers={"40_1": "41", "40_3": "4"}
    )
    assert placed.nodes("7") == {"n1", "n10"}
    assert placed.nodes("40_1") == placed.nodes("41") == {"n2"}
    assert placed.nodes("40_2") == frozenset()
    assert placed.nodes("40") is placed.nodes("0") is placed.nodes("") is None
    assert (placed.number("40_1"), placed.number("41"), placed.number("7")) == ("41", None, None)
    assert (placed.number("40_3"), placed.number("4"), placed.nodes("4")) == ("4", None, {"n3"})
    assert (placed.user("41"), placed.user("40")) == ("ann", None)
    nothing = JobPlacement()
    assert nothing.nodes("7") is nothing.number("7") is nothing.user("7") is None
