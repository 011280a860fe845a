# SPDX-License-Identifier: Apache-2.0
"""What the hub keeps of agents and launchers."""

import json

import pytest

from bridge.extensions.elastic.resizing.launchers import (
    ChangeResult,
    GrowOrder,
    ShrinkOrder,
    WithdrawOrder,
)
from bridge.policies.catalogue import DEFAULT
from bridge.registry import PRESETS, build
from bridge.rpc.agents.hub import RETURN_S, Hub
from bridge.rpc.agents.launcher_table import MAX_LAUNCHERS
from bridge.rpc.agents.process_counts import ASK_AGAIN_S
from bridge.rpc.pb import agent_pb2 as pb
from bridge.safe_cycle.decider import Decider
from tests.unit.rpc import worlds
from tests.unit.rpc.placements import a_placement

TASKS = {"40_1": "n1", "40_2": "n1"}


class Node:
    """An agent, as the hub sees it."""

    def __init__(self, hub, *nodes):
        self.hub, self.sent = hub, []
        self.agent = hub.arrived(nodes, self.sent.append)

    def said(self, line, connection=1, user="ann", job="7"):
        text = line if isinstance(line, str) else json.dumps(line)
        message = pb.FromLauncher(connection=connection, user=user, job=job, line=text)
        self.hub.report(self.agent, pb.AgentReport(launcher=message))

    def attach(self, job="7", connection=1, nodes=("n1", "n2"), pending=None, **others):
        self.said(
            {"op": "attach", "version": 1, "job": job, "nodes": nodes, "engine": "join",
             "pending": pending},
            connection=connection, job=job, **others,
        )  # fmt: skip

    def counts(self, job, node, count, request=None):
        """In answer to the last request that it was sent, if no other is named."""
        requested = [order.count.request for order in self.sent if order.HasField("count")]
        request = requested[-1] if request is None and requested else request or 0
        found = pb.Processes(job=job, node=node, count=count, request=request)
        self.hub.report(self.agent, pb.AgentReport(processes=found))

    def told(self):
        """The lines sent to launchers since the last call."""
        lines = [json.loads(order.launcher.line) for order in self.sent if order.launcher.line]
        self.sent.clear()
        return lines


class Clock:
    """A monotonic clock, s."""

    def __init__(self):
        self.s = 100.0

    def __call__(self):
        return self.s


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def hub(clock):
    """One that has run for a while."""
    found = Hub(clock)
    clock.s += 2 * RETURN_S
    found.placed(a_placement({"7": "n1 n2 n3"}))
    return found


@pytest.fixture
def node(hub):
    return Node(hub, "n1")


def test_a_launcher_is_attached_until_its_connection_or_its_agent_ends(hub, node):
    node.attach()
    assert node.told() == [{"op": "attached"}]
    assert hub.attached("7", "ann").nodes == ("n1", "n2")
    node.hub.report(node.agent, pb.AgentReport(gone=pb.LauncherGone(connection=1)))
    assert hub.attached("7", "ann") is None
    node.attach()
    hub.left(node.agent)
    assert hub.attached("7", "ann") is None


def test_another_user_who_claims_the_job_is_refused(hub, node):
    node.attach()
    for at, user in enumerate(("eve", "an", "anna"), 2):
        node.attach(connection=at, user=user)
        assert hub.attached("7", user) is None
    hub.order("7", "ann", ShrinkOrder("7-1", ("n1",), ("n2",), 60))
    assert [order.launcher.connection for order in node.sent][-1] == 1


def claims(node, task, job, connection):
    node.said({"op": "attach", "version": 1, "job": task, "nodes": ["n1"], "engine": "join"},
              connection=connection, job=job)  # fmt: skip
    return node.told()


def test_a_task_of_an_array_is_spoken_for_from_within_its_own_job_only(hub, node):
    hub.placed(a_placement(TASKS, numbers={"40_1": "41", "40_2": "42"}))
    assert claims(node, "40_1", "41", 1) == [{"op": "attached"}]
    for other in ("42", "4", "410"):
        (said,) = claims(node, "40_1", other, 2)
        assert said["reason"] == f"this process belongs to job {other}, which is not 40_1"
    assert claims(node, "40_2", "42", 2) == [{"op": "attached"}]
    assert hub.attached("40_1", "ann").serial < hub.attached("40_2", "ann").serial


def test_a_false_claim_from_before_the_controllers_report_counts_no_more(hub, node):
    claims(node, "40_1", "41", 1)
    claims(node, "40_1", "77", 2)  # nobody knows better yet
    hub.placed(a_placement(TASKS, numbers={"40_1": "41"}))
    hub.order("40_1", "ann", ShrinkOrder("40_1-1", ("n1",), ("n2",), 60))
    assert [order.launcher.connection for order in node.sent] == [1]
    result = {"op": "result", "id": "40_1-1", "outcome": "done", "reason": "", "nodes": ["n1"]}
    node.said(result, connection=2, job="77")
    assert hub.results() == ()
    node.said(result, connection=1, job="41")
    assert [one.id for one in hub.results()] == ["40_1-1"]
    node.hub.report(node.agent, pb.AgentReport(gone=pb.LauncherGone(connection=1)))
    assert hub.attached("40_1", "ann") is None


def test_processes_of_a_task_are_counted_by_the_controllers_number(hub, node):
    claims(node, "40_1", "77", 1)
    hub.placed(a_placement(TASKS, numbers={"40_1": "41"}))
    assert not hub.vacant("40_1", "ann", ("n1",))
    assert [order.count.job for order in node.sent] == ["41"]


def test_the_newest_attachment_counts_and_the_end_of_the_older_one_does_not_matter(hub, node):
    node.attach()
    first = hub.attached("7", "ann").serial
    node.attach(connection=2)
    node.hub.report(node.agent, pb.AgentReport(gone=pb.LauncherGone(connection=1)))
    assert hub.attached("7", "ann").serial > first


def test_an_order_is_pending_until_its_result(hub, node):
    node.attach()
    node.told()
    hub.order("7", "ann", GrowOrder("7-1", ("n1", "n2", "n3"), ("n3",), 120))
    (line,) = node.told()
    assert (line["op"], line["id"], line["add"]) == ("grow", "7-1", ["n3"])
    assert hub.attached("7", "ann").pending == "7-1"
    node.said({"op": "result", "id": "7-1", "outcome": "done", "reason": "",
               "nodes": ["n1", "n2", "n3"]})  # fmt: skip
    assert hub.results() == (ChangeResult("7", "ann", "7-1", True, "", ("n1", "n2", "n3")),)
    assert hub.results() == ()
    assert hub.attached("7", "ann").pending == ""
    assert hub.attached("7", "ann").nodes == ("n1", "n2", "n3")


def test_a_withdrawal_leaves_the_order_pending(hub, node):
    node.attach()
    hub.order("7", "ann", ShrinkOrder("7-1", ("n1",), ("n2",), 60))
    hub.order("7", "ann", WithdrawOrder("7-1"))
    assert hub.attached("7", "ann").pending == "7-1"


@pytest.mark.parametrize(
    "line", ["", "nonsense", "[]", '{"op": "dance"}', '{"op": "attach"}', "x" * 70_000,
             '{"op": "result", "id": "1", "outcome": "done", "reason": "", "nodes": ["n1"]}'],
)  # fmt: skip
def test_a_line_that_makes_no_sense_is_answered(hub, node, line):
    node.said(line)
    (answer,) = node.told()
    assert answer["op"] == "error"
    assert answer["reason"]
    node.attach()
    assert node.told() == [{"op": "attached"}]


def test_another_version_is_refused(hub, node):
    node.said({"op": "attach", "version": 2, "job": "7", "nodes": ["n1"], "engine": "join"})
    assert "version 2" in node.told()[0]["reason"]
    assert hub.attached("7", "ann") is None


def test_an_agent_has_a_bounded_number_of_launchers(hub, node):
    for number in range(MAX_LAUNCHERS + 1):
        node.attach(job=str(number), connection=number)
    assert node.told()[-1]["op"] == "error"
    assert hub.attached("0", "ann") is not None


@pytest.mark.parametrize("trusts", [True, False])
def test_nodes_are_vacant_once_their_agents_have_said_so(clock, trusts):
    hub = Hub(clock, trusts_launchers=trusts)
    hub.placed(a_placement({"7": "n1 n2 n9"}))
    clock.s += RETURN_S + 1
    node, other = Node(hub, "n1"), Node(hub, "n2")
    node.attach()
    node.sent.clear()
    nodes = ("n1", "n2", "n9") if trusts else ("n1", "n2")  # n9 has no agent
    assert not hub.vacant("7", "ann", nodes)
    assert [order.count.node for order in node.sent + other.sent] == ["n1", "n2"]
    other.counts("7", "n2", 0)
    node.counts("7", "n1", 3)
    assert not hub.vacant("7", "ann", nodes)
    node.counts("7", "n1", 0)
    assert hub.vacant("7", "ann", nodes)
    assert not hub.vacant("7", "ann", ("n1",))  # older counts prove nothing


def test_a_node_without_an_agent_is_not_vacant_and_nobody_grows_there(hub, node, clock):
    node.attach()
    assert hub.unattended(("n1", "n9")) == ("n9",)
    for _ in range(3):
        assert not hub.vacant("7", "ann", ("n1", "n9"))
        node.counts("7", "n1", 0)
        clock.s += RETURN_S
    assert hub.vacant("7", "ann", ("n9",), unused=True)  # of a growth that failed
    assert Hub(clock, trusts_launchers=True).unattended(("n9",)) == ()


def test_agents_are_told_whose_processes_count(hub, node):
    line = {"op": "attach", "version": 1, "job": "7", "nodes": ["n1"], "engine": "join"}
    said = pb.FromLauncher(connection=1, user="ann", uid="0", job="7", line=json.dumps(line))
    hub.report(node.agent, pb.AgentReport(launcher=said))
    hub.vacant("7", "ann", ("n1",))
    assert node.sent[-1].count.HasField("uid")
    hub.report(node.agent, pb.AgentReport(gone=pb.LauncherGone(connection=1)))
    Node(hub, "n1")
    newer = Node(hub, "n1")
    hub.vacant("7", "ann", ("n1",))
    assert newer.sent[-1].count.HasField("uid")  # still known
    hub.vacant("8", "ann", ("n1",))
    assert not newer.sent[-1].count.HasField("uid")


def test_an_agent_speaks_for_its_own_nodes_only(hub, node):
    other = Node(hub, "n2")
    node.attach()
    assert not hub.vacant("7", "ann", ("n2",))
    node.counts("7", "n2", 0)
    assert not hub.vacant("7", "ann", ("n2",))
    other.counts("7", "n2", 0)
    assert hub.vacant("7", "ann", ("n2",))


def test_an_array_task_is_counted_by_the_name_that_its_nodes_know(hub, node):
    node.said(
        {"op": "attach", "version": 1, "job": "7_2", "nodes": ["n1"], "engine": "join"}, job="9"
    )
    node.sent.clear()
    hub.vacant("7_2", "ann", ("n1",))
    assert node.sent[0].count.job == "9"


def test_bounds_narrow_what_the_application_can_use(hub, node):
    node.attach()
    node.said({"op": "bounds", "min": 2, "max": 4})
    assert (hub.attached("7", "ann").min_nodes, hub.attached("7", "ann").max_nodes) == (2, 4)


ODD = {"op": "attach", "version": 1, "job": "7", "nodes": ["n1"], "engine": "join"}
HUGE = {"op": "grow", "id": "1", "nodes": ["n1", "n2"], "add": ["n2"], "within_s": 10**400}


@pytest.mark.parametrize(
    "line", ['{"op": "a\\nb"}', '{"op": "\\ud800"}', json.dumps(ODD | {"pending": HUGE})],
    ids=["control character", "half a character", "a number without end"],
)  # fmt: skip
def test_what_cannot_be_shown_or_counted_is_answered_too(hub, node, line):
    node.said(line)
    (answer,) = node.told()
    assert answer["op"] == "error"
    assert answer["reason"].isprintable()


def test_a_connection_is_one_launcher_however_often_it_attaches(hub, node):
    for number in range(10):
        node.attach(job=str(number))
    assert hub.attached("0", "ann") is None
    assert hub.attached("9", "ann") is not None
    hub.left(node.agent)
    assert not any(hub.attached(str(number), "ann") for number in range(10))


def test_a_process_of_another_job_does_not_speak_for_this_one(hub, node):
    hub.placed(a_placement({"7": "n1", "70": "n1"}))
    for job, own in (("7", "8"), ("7", "70"), ("70", "7")):
        line = {"op": "attach", "version": 1, "job": job, "nodes": ["n1"], "engine": "join"}
        node.said(line, job=own)
        assert f"belongs to job {own}, not to {job}" in node.told()[0]["reason"]
        assert hub.attached(job, "ann") is None


def test_an_older_launcher_counts_again_when_the_newer_one_has_gone(hub, node):
    node.attach(connection=1, nodes=("n1", "n2"))
    node.attach(connection=2, nodes=("n1",))
    assert hub.attached("7", "ann").nodes == ("n1",)
    node.hub.report(node.agent, pb.AgentReport(gone=pb.LauncherGone(connection=2)))
    assert hub.attached("7", "ann").nodes == ("n1", "n2")
    node.hub.report(node.agent, pb.AgentReport(gone=pb.LauncherGone(connection=1)))
    assert hub.attached("7", "ann") is None


def test_the_older_launcher_is_not_heard(hub, node):
    node.attach(connection=1)
    node.attach(connection=2)
    node.told()
    node.said({"op": "bounds", "min": 2, "max": 2}, connection=1)
    assert node.told()[0]["op"] == "error"
    assert hub.attached("7", "ann").min_nodes == 0


def test_each_agent_numbers_its_connections(hub, node):
    """The launcher on the other node has the same number, and speaks for the job."""
    other = Node(hub, "n2")
    node.attach(connection=1, nodes=("n1", "n2"))
    other.attach(connection=1, nodes=("n2",))
    done = {"op": "result", "id": "7-1", "outcome": "done", "reason": "", "nodes": ["n1"]}
    node.said(done)
    assert hub.results() == ()
    other.said(done)
    assert len(hub.results()) == 1
    hub.report(other.agent, pb.AgentReport(gone=pb.LauncherGone(connection=1)))
    assert hub.attached("7", "ann").nodes == ("n1", "n2")
    node.said(done)
    assert len(hub.results()) == 1


def test_an_order_that_no_line_can_hold_is_refused_at_once(hub, node):
    node.attach()
    names = tuple(f"a-node-with-a-long-name-{number}" for number in range(3000))
    hub.order("7", "ann", GrowOrder("7-1", ("n1", *names), names, 120))
    (result,) = hub.results()
    assert not result.done
    assert "bytes" in result.reason


def test_a_count_of_an_earlier_change_proves_nothing(hub, node, clock):
    node.attach(nodes=("n1",))
    assert not hub.vacant("7", "ann", ("n1",))
    hub.order("7", "ann", ShrinkOrder("7-2", ("n2",), ("n1",), 60))
    node.counts("7", "n1", 0)  # of the question before the order
    node.sent.clear()
    assert not hub.vacant("7", "ann", ("n1",))
    assert node.sent[-1].count.job == "7"


def test_an_answer_that_comes_after_the_next_request_proves_nothing(hub, node):
    node.attach(nodes=("n1",))
    assert not hub.vacant("7", "ann", ("n1",))
    earlier = node.sent[-1].count.request
    hub.order("7", "ann", ShrinkOrder("7-2", ("n2",), ("n1",), 60))
    assert not hub.vacant("7", "ann", ("n1",))
    assert node.sent[-1].count.request > earlier
    node.counts("7", "n1", 0, earlier)
    assert not hub.vacant("7", "ann", ("n1",))
    node.counts("7", "n1", 0)
    assert hub.vacant("7", "ann", ("n1",))


def test_an_old_zero_is_asked_again(hub, node, clock):
    node.attach()
    assert not hub.vacant("7", "ann", ("n1",))
    node.counts("7", "n1", 0)
    clock.s += ASK_AGAIN_S + 1
    assert not hub.vacant("7", "ann", ("n1",))


def test_a_node_whose_agent_was_lost_a_moment_ago_is_not_vacant(clock):
    hub = Hub(clock, trusts_launchers=True)
    clock.s += RETURN_S + 1
    node, other = Node(hub, "n1"), Node(hub, "n2")
    node.attach()
    hub.left(other.agent)
    assert not hub.vacant("7", "ann", ("n2",))
    clock.s += RETURN_S + 1
    assert hub.vacant("7", "ann", ("n2",))


def test_after_a_start_agents_have_time_to_attend(clock):
    hub = Hub(clock, trusts_launchers=True)
    assert not hub.vacant("7", "ann", ("n2",))
    clock.s += RETURN_S + 1
    assert hub.vacant("7", "ann", ("n2",))


def test_an_agent_that_was_replaced_no_longer_speaks_for_the_node(hub, node):
    node.attach()
    newer = Node(hub, "n1")
    assert not hub.vacant("7", "ann", ("n1",))
    node.counts("7", "n1", 0)
    assert not hub.vacant("7", "ann", ("n1",))
    newer.counts("7", "n1", 0)
    assert hub.vacant("7", "ann", ("n1",))


def test_a_newer_agent_is_asked_what_the_older_one_was(hub, node):
    node.attach()
    assert not hub.vacant("7", "ann", ("n1",))
    newer = Node(hub, "n1")
    assert not hub.vacant("7", "ann", ("n1",))
    assert newer.sent[-1].count.job == "7"


def test_nobody_is_asked_about_a_task_whose_name_on_the_nodes_is_not_known(hub, node):
    assert not hub.vacant("7_2", "ann", ("n1",))
    assert not node.sent


def test_every_cycle_says_where_the_jobs_are(hub):
    """Of plain jobs, too: what agents read of these counts as much."""
    decider = Decider(build(PRESETS[DEFAULT]))
    cycles = worlds.some_cycles(decider.decide, DEFAULT, reported=hub.reported)
    nodes = {name: Node(hub, name) for name in ("n1", "n2", "n3")}

    def reported(generation, **nodes_of):
        jobs = [worlds.a_running_job(job[1:], held) for job, held in nodes_of.items()]
        assert not cycles.run(worlds.a_full(jobs, generation=generation)).need_full

    def mtct():
        for name, node in nodes.items():
            for job in ("7", "70"):
                spent = pb.MpiTime(job=job, node=name, mpi_s=(5, 10, 15)[int(name[1]) - 1],
                                   wall_s=20)  # fmt: skip
                hub.report(node.agent, pb.AgentReport(mpi=spent))
        return [round(hub.mtct(job, "bob"), 2) for job in ("7", "70")]

    reported(1, j7="n[1-2]", j70="n3")
    assert mtct() == [0.6, 3]  # 15 of 40 s, and 15 of 20 s
    reported(2, j7="n1", j70="n2")
    assert mtct() == [0.5, 1.67]  # and 5 of 20 s, and 10 of 20 s


def test_a_false_number_of_a_user_on_one_node_changes_nothing_on_another(hub):
    hub.placed(a_placement({"7": "n1", "8": "n9"}, users={"7": "1001", "8": "1002"}))
    node, liar = Node(hub, "n1"), Node(hub, "n9")
    line = {"op": "attach", "version": 1, "job": "7", "nodes": ["n1"], "engine": "join"}
    said = pb.FromLauncher(connection=1, user="ann", uid="1001", job="7", line=json.dumps(line))
    hub.report(node.agent, pb.AgentReport(launcher=said))
    line["job"] = "8"
    said = pb.FromLauncher(connection=1, user="ann", uid="1002", job="8", line=json.dumps(line))
    hub.report(liar.agent, pb.AgentReport(launcher=said))
    assert hub.attached("7", "1001") is not None
    hub.report(node.agent, pb.AgentReport(gone=pb.LauncherGone(connection=1)))
    assert hub.attached("7", "1001") is None


def test_a_controller_without_accounting_calls_users_by_their_numbers(hub, node):
    line = {"op": "attach", "version": 1, "job": "7", "nodes": ["n1", "n2"], "engine": "join"}
    said = pb.FromLauncher(connection=1, user="ann", uid="1001", job="7", line=json.dumps(line))
    hub.report(node.agent, pb.AgentReport(launcher=said))
    assert hub.attached("7", "1001") == hub.attached("7", "ann")
    assert hub.attached("7", "1002") is None
    hub.order("7", "1001", ShrinkOrder("7-1", ("n1",), ("n2",), 60))
    node.said({"op": "result", "id": "7-1", "outcome": "done", "reason": "", "nodes": ["n1"]})
    assert {result.user for result in hub.results()} == {"ann", "1001"}
    node.hub.report(node.agent, pb.AgentReport(gone=pb.LauncherGone(connection=1)))
    assert hub.attached("7", "1001") is None
    assert hub.attached("7", "ann") is None
