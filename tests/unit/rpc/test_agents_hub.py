# SPDX-License-Identifier: Apache-2.0
"""What the hub keeps of agents and launchers."""

import json

import pytest

from bridge.resizing.launchers import Grow, Result, Shrink, Withdraw
from bridge.rpc.agents.hub import MOST_LAUNCHERS, Hub
from bridge.rpc.pb import agent_pb2 as pb


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

    def counts(self, job, node, count):
        found = pb.Processes(job=job, node=node, count=count)
        self.hub.report(self.agent, pb.AgentReport(processes=found))

    def told(self):
        """The lines sent to launchers since the last call."""
        lines = [json.loads(order.launcher.line) for order in self.sent if order.launcher.line]
        self.sent.clear()
        return lines


@pytest.fixture
def hub():
    return Hub()


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


def test_another_user_who_claims_the_job_is_another_launcher(hub, node):
    node.attach()
    node.attach(connection=2, user="eve")
    assert hub.attached("7", "ann").serial != hub.attached("7", "eve").serial
    hub.order("7", "ann", Shrink("7-1", ("n1",), ("n2",), 60))
    assert [order.launcher.connection for order in node.sent][-1] == 1


def test_the_newest_attachment_counts_and_the_end_of_the_older_one_does_not_matter(hub, node):
    node.attach()
    first = hub.attached("7", "ann").serial
    node.attach(connection=2)
    node.hub.report(node.agent, pb.AgentReport(gone=pb.LauncherGone(connection=1)))
    assert hub.attached("7", "ann").serial > first


def test_an_order_is_pending_until_its_result(hub, node):
    node.attach()
    node.told()
    hub.order("7", "ann", Grow("7-1", ("n1", "n2", "n3"), ("n3",), 120))
    (line,) = node.told()
    assert (line["op"], line["id"], line["add"]) == ("grow", "7-1", ["n3"])
    assert hub.attached("7", "ann").pending == "7-1"
    node.said({"op": "result", "id": "7-1", "outcome": "done", "reason": "",
               "nodes": ["n1", "n2", "n3"]})  # fmt: skip
    assert hub.results() == (Result("7", "ann", "7-1", True, "", ("n1", "n2", "n3")),)
    assert hub.results() == ()
    assert hub.attached("7", "ann").pending == ""
    assert hub.attached("7", "ann").nodes == ("n1", "n2", "n3")


def test_a_withdrawal_leaves_the_order_pending(hub, node):
    node.attach()
    hub.order("7", "ann", Shrink("7-1", ("n1",), ("n2",), 60))
    hub.order("7", "ann", Withdraw("7-1"))
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
    for number in range(MOST_LAUNCHERS + 1):
        node.attach(job=str(number), connection=number)
    assert node.told()[-1]["op"] == "error"
    assert hub.attached("0", "ann") is not None


def test_nodes_are_vacant_once_their_agents_have_said_so(hub, node):
    other = Node(hub, "n2")
    node.attach()
    node.sent.clear()
    assert not hub.vacant("7", "ann", ("n1", "n2", "n9"))  # n9 has no agent
    assert [order.count.node for order in node.sent + other.sent] == ["n1", "n2"]
    other.counts("7", "n2", 0)
    node.counts("7", "n1", 3)
    assert not hub.vacant("7", "ann", ("n1", "n2", "n9"))
    node.counts("7", "n1", 0)
    assert hub.vacant("7", "ann", ("n1", "n2", "n9"))
    assert not hub.vacant("7", "ann", ("n1",))  # older counts prove nothing


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
