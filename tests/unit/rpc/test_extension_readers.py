# SPDX-License-Identifier: Apache-2.0
"""Extensions that read agents' reports: all get each, and one that fails stops no other."""

import pytest

from bridge.extension_packages import Installed
from bridge.extensions.port import Extension, Face
from bridge.extensions.service_port import AgentReader
from bridge.rpc.agents import extension_readers
from bridge.rpc.agents.hub import Hub
from bridge.rpc.pb import agent_pb2 as pb


class Reader(AgentReader):
    def __init__(self, clock):
        assert clock() == 100
        self.calls = []

    def arrived(self, agent):
        self.calls.append(agent.nodes)

    def took(self, agent, mine, uses):
        self.calls.append((agent, sorted(mine), len(uses.uses)))

    def left(self, agent, lost):
        self.calls.append((agent.nodes, sorted(lost)))

    def kept(self, mine, shares):
        self.calls.append((sorted(mine), shares.sequence))

    def renew(self):
        self.calls.append("renewed")


class Failing:
    def __getattr__(self, name):
        raise RuntimeError(name)


class Readers:
    def reader(self, clock):
        return Reader(clock)


class Faults:
    def reader(self, clock):
        return Failing()


@pytest.fixture
def hub(monkeypatch):
    faces = {"a": "Readers", "b": "Faults", "c": "Readers", "d": "Missing"}
    there = Installed(
        {name: Extension(name, agents=Face(f"{__name__}:{what}")) for name, what in faces.items()}
        | {"e": Extension("e")}
    )
    monkeypatch.setattr(extension_readers, "installed", lambda: there)
    return Hub(lambda: 100)


def test_each_is_told_of_agents_and_gets_their_reports(hub, caplog):
    first, second = (hub.arrived(nodes, lambda order: None) for nodes in (("n1", "n2"), ("n2",)))
    uses = pb.Uses(uses=[pb.Use(nodes=[pb.NodePower(node="n1", watts=5)])])
    for agent in (first, second):
        hub.report(agent, pb.AgentReport(uses=uses))
    for name in ("a", "c"):
        assert hub.extensions.get(name).calls == [
            ("n1", "n2"), ("n2",), ("n1", ["n1"], 1), ("n2", ["n2"], 1),
        ]  # fmt: skip
    assert "the extension b does not follow the agents" in caplog.text
    assert hub.extensions.get("d") is hub.extensions.get("e") is None


def test_each_agent_is_listed_once(hub):
    one = hub.arrived(("n1", "n2"), lambda order: None)
    two = hub.arrived(("n2", "n3"), lambda order: None)
    assert {id(agent) for agent in hub.agents()} == {id(one), id(two)}


def test_each_is_told_what_becomes_of_agents_and_their_orders(hub, caplog):
    """The second agent has taken n2 over, so that the first one loses n1 alone."""
    first, second = (hub.arrived(nodes, lambda order: None) for nodes in (("n1", "n2"), ("n2",)))
    for agent in (first, second):
        hub.report(agent, pb.AgentReport(shares=pb.SharesInForce(sequence=7)))
    hub.extensions.renew()
    hub.left(first)
    hub.left(second)
    for name in ("a", "c"):
        assert hub.extensions.get(name).calls[2:] == [
            (["n1"], 7), (["n2"], 7), "renewed", (("n1", "n2"), ["n1"]), (("n2",), ["n2"]),
        ]  # fmt: skip
    assert "the extension b does not follow the agents" in caplog.text
