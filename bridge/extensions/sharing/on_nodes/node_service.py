# SPDX-License-Identifier: Apache-2.0
"""The part of an agent that keeps CPU shares, as the service orders and without it."""

from collections.abc import Sequence

from bridge.agent.node_services import NodeService, Send
from bridge.agent.processes import Processes
from bridge.agent.settings import AgentSettings
from bridge.extensions.sharing.on_nodes.keeper import ShareInForce
from bridge.extensions.sharing.on_nodes.running import ShareThread
from bridge.extensions.sharing.on_nodes.wanted import Share
from bridge.rpc.pb import agent_pb2 as pb


class ShareService(NodeService):
    """Hands orders to the thread that keeps shares, and sends what it has done."""

    def __init__(self, settings: AgentSettings, processes: Processes, send: Send) -> None:
        self._send = send
        record = settings.socket.parent / "shares.json"
        self._thread = ShareThread(
            settings.nodes, record, processes, root=settings.cgroups, cpus=settings.cpus,
            folders=settings.job_folders, changed=self._changed,
        )  # fmt: skip
        self.hello = {"takes_shares": True}

    @classmethod
    def made(cls, settings: AgentSettings, processes: Processes, send: Send) -> NodeService:
        """One that does nothing if the agent is to keep no shares."""
        return cls(settings, processes, send) if settings.shares else NodeService()

    def start(self) -> None:
        self._thread.start()

    def connected(self) -> None:
        self._thread.begin()

    def take(self, order: pb.AgentOrder) -> None:
        if order.HasField("shares"):
            found = order.shares
            shares = (
                Share(each.node, each.job, each.guest, each.milli_cpus, each.weight)
                for each in found.shares
            )
            self._thread.order(found.sequence, found.lease_ms / 1000, shares)

    def stop(self) -> None:
        self._thread.stop()

    def _changed(self, sequence: int, found: tuple[ShareInForce, ...]) -> None:
        self._send(pb.AgentReport(shares=shares_message(sequence, found)))


def shares_message(sequence: int, found: Sequence[ShareInForce]) -> pb.SharesInForce:
    """The report about shares."""
    message = pb.SharesInForce(sequence=sequence)
    for each in found:
        share = pb.Share(
            job=each.share.job, node=each.share.node, guest=each.share.guest,
            milli_cpus=each.share.milli_cpus, weight=each.share.weight,
        )  # fmt: skip
        message.shares.add(
            share=share, method=each.method, problem=each.problem[:400], complete=each.complete
        )
    return message
