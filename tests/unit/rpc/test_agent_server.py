# SPDX-License-Identifier: Apache-2.0
"""For which nodes the agents' server hears an agent, by what the gate says of its certificate."""

import contextlib

import grpc
import pytest

from bridge.rpc.agents.hub import Hub
from bridge.rpc.agents.server import AgentServer
from bridge.rpc.agents.speakers import Speakers
from bridge.rpc.pb import agent_pb2 as pb
from bridge.rpc.pb import agent_pb2_grpc
from bridge.rpc.transport.gate import Gate
from bridge.rpc.transport.introductions import Introductions
from bridge.rpc.transport.listening import UnixListener
from tests.unit.rpc.test_introductions import ByTurns

OWN = frozenset({"n1", "n1-ib"})


@pytest.fixture
def attend(tmp_path):
    """Says hello for some nodes, with a certificate of `OWN` or of all nodes."""
    with contextlib.ExitStack() as stack:
        names = Introductions(tmp_path)
        server = AgentServer(Hub(), Speakers(names, {"every-node"}))
        server.start(str(tmp_path / "server"))
        stack.callback(server.stop)
        listener = UnixListener(tmp_path / "gate", "k")
        stack.callback(listener.close)
        policy = ByTurns(str(tmp_path / "server"), names, ())
        gate = Gate(listener.socket, "k", policy)
        gate.start()
        stack.callback(gate.close)

        def say(nodes, certificate=OWN):
            policy.uids = iter([certificate])
            own = [("grpc.use_local_subchannel_pool", 1)]
            with grpc.insecure_channel(f"unix:{tmp_path}/gate", options=own) as channel:
                hello = pb.AgentReport(hello=pb.AgentHello(version=1, nodes=nodes))
                call = agent_pb2_grpc.AgentsStub(channel).Attend(
                    iter([hello]), timeout=60, wait_for_ready=True
                )
                try:
                    return next(call).WhichOneof("order")
                except grpc.RpcError as error:
                    return error.details()

        yield say


def test_a_certificate_speaks_for_the_nodes_that_it_names(attend):
    assert attend(["n1"]) == attend(["n1", "n1-ib"]) == "welcome"
    for other in ("n10", "n", "N1", "n2"):
        for nodes in ([other], ["n1", other]):
            assert attend(nodes) == f"this certificate does not name node {other}"
    assert attend(["n10", "n2"], frozenset({"every-node"})) == "welcome"
    assert attend(["n10"], frozenset({"every-nod"})) == "this certificate does not name node n10"
