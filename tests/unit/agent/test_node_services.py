# SPDX-License-Identifier: Apache-2.0
"""What extensions do in an agent: each gets what it needs, and one that fails stops no other."""

from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from bridge.agent import node_services
from bridge.agent.node_services import GROUP, NodeService, NodeServices
from bridge.agent.processes import Processes
from bridge.agent.settings import AgentSettings
from bridge.extensions.sharing.on_nodes.node_service import ShareService
from bridge.rpc.pb import agent_pb2 as pb


class Noting(NodeService):
    """Notes its calls."""

    def __init__(self, hello):
        self.hello, self.calls = hello, []

    @classmethod
    def made(cls, settings, processes, send):
        return cls({"takes_shares": settings.shares})

    def start(self):
        self.calls.append("start")

    def connected(self):
        self.calls.append("connected")

    def take(self, order):
        self.calls.append(order.WhichOneof("order"))

    def measure(self, use):
        self.calls.append("measure")
        use.nodes[0].watts += 1

    def differs(self, before, now):
        return before.nodes[0].watts != now.nodes[0].watts

    def stop(self):
        self.calls.append("stop")


class Failing(Noting):
    """Fails whatever it is told."""

    @classmethod
    def made(cls, settings, processes, send):
        return cls({})

    start = connected = take = measure = differs = stop = None


class Unmade(NodeService):
    """Cannot be made."""

    @classmethod
    def made(cls, settings, processes, send):
        raise OSError("no")


class Odd:
    """No part of an agent."""


@pytest.fixture
def settings(tmp_path):
    none = Path("none")
    return AgentSettings("s:1", none, none, none, ("n1",), tmp_path / "agent.sock")


def services(settings, monkeypatch, **paths):
    points = [EntryPoint(name, path, GROUP) for name, path in paths.items()]
    monkeypatch.setattr(node_services, "entry_points", lambda group: points)
    return NodeServices(settings, Processes(), lambda report: None)


def test_each_is_told_and_one_that_fails_stops_no_other(settings, monkeypatch, caplog):
    found = services(
        settings, monkeypatch, a=f"{__name__}:Noting", b=f"{__name__}:Failing",
        c=f"{__name__}:Noting", d=f"{__name__}:Unmade", e=f"{__name__}:Odd", f="missing:X",
    )  # fmt: skip
    assert found.hello == {"takes_shares": True}
    found.start()
    found.connected()
    found.take(pb.AgentOrder(shares=pb.Shares(sequence=1)))
    use = pb.Use(nodes=[pb.NodePower(node="n1")])
    before = pb.Use.FromString(use.SerializeToString())
    found.measure(use)
    assert use.nodes[0].watts == 2
    assert found.differs(before, use)
    assert not found.differs(use, use)
    found.stop()
    assert list(found._services) == ["a", "b", "c"]
    for name in ("a", "c"):
        assert found._services[name].calls == ["start", "connected", "shares", "measure", "stop"]
    for text in (
        "the extension d does nothing on this node", "the extension b has failed on this node",
        "it must be derived from bridge.agent.node_services.NodeService", "'f' = missing:X",
    ):  # fmt: skip
        assert text in caplog.text


def test_an_agent_that_is_to_keep_no_shares_does_not_offer_it(settings):
    for shares, hello in ((True, {"takes_shares": True}), (False, {})):
        chosen = AgentSettings(**{**vars(settings), "shares": shares})
        assert ShareService.made(chosen, Processes(), lambda report: None).hello == hello
