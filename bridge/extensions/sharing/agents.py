# SPDX-License-Identifier: Apache-2.0
"""What agents report of jobs and are ordered for them; and use as columns of each snapshot."""

from collections.abc import Callable, Collection, Container
from dataclasses import replace
from typing import Final

from bridge.extensions.service_port import AgentReader, Memory
from bridge.extensions.sharing.job_readings import JobReadings
from bridge.extensions.sharing.rules import NAME
from bridge.extensions.sharing.share_orders import ShareOrders, hosts_of, shares_of
from bridge.model.plan import Plan
from bridge.model.rules.site import Site
from bridge.model.snapshot import Snapshot
from bridge.rpc.agents.hub import Hub
from bridge.rpc.agents.job_names import names_on_nodes
from bridge.rpc.agents.launcher_table import AgentStream
from bridge.rpc.pb import agent_pb2 as pb

_USE: Final = (
    "cpu_s", "busy_cpus", "peak_mib", "memory_stall", "progress", "unused_nodes", "measured_s",
)  # fmt: skip


class SharingAgents(AgentReader):
    """See `bridge.extensions.service_port.AgentReader`.

    Attributes:
        readings: resource use of jobs.
        orders: CPU shares of jobs.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self.readings = JobReadings(clock)
        self.orders = ShareOrders(clock)

    def arrived(self, agent: AgentStream) -> None:
        if agent.takes_shares:
            self.orders.arrived(agent)

    def left(self, agent: AgentStream, lost: Collection[str]) -> None:
        self.orders.left(agent)
        for node in lost:
            self.readings.forget(node)

    def took(self, agent: str, mine: Collection[str], uses: pb.Uses) -> None:  # noqa: ARG002
        self.readings.took(mine, uses)

    def kept(self, mine: Collection[str], shares: pb.SharesInForce) -> None:
        self.readings.kept(mine, shares)

    def planned(self, snapshot: Snapshot, plan: Plan) -> None:
        self.orders.planned(shares_of(snapshot, plan, hosts_of(snapshot, plan)))

    def renew(self) -> None:
        self.orders.renew()


class SharingAgentReaders:
    """See `bridge.extensions.service_port.AgentReaders`."""

    def reader(self, clock: Callable[[], float]) -> SharingAgents:
        """A reader without reports."""
        return SharingAgents(clock)


class MeasuredUse(Memory):
    """Shows policies how running jobs use their nodes; learns nothing."""

    def __init__(self, agents: SharingAgents | None) -> None:
        """Without agents nothing is measured."""
        self._agents = agents

    def overlay(self, snapshot: Snapshot) -> Snapshot:
        """Adds `cpu_s` and the columns after it; without them no job becomes a guest."""
        if self._agents is None:
            return snapshot
        return used(snapshot, self._agents.readings, self._agents.orders.nodes)


class SharingMemories:
    """See `bridge.extensions.service_port.Memories`."""

    def memory(self, hub: Hub | None, site: Callable[[], Site]) -> MeasuredUse:  # noqa: ARG002
        """The use of jobs that the agents of a hub report."""
        return MeasuredUse(None if hub is None else hub.extensions.get(NAME))


def used(snapshot: Snapshot, readings: JobReadings, bound: Container[str]) -> Snapshot:
    """The snapshot with `cpu_s` and the columns after it of its running jobs.

    Args:
        bound: nodes whose agents keep CPU shares. A job on other nodes has no readings, so that it
            gets no guest, because no agent could limit the guest.
    """
    running = snapshot.running
    jobs = names_on_nodes(running)
    readings.forget_ended(frozenset(jobs))
    if not jobs or not readings.some:
        return snapshot
    names, ends, held = snapshot.nodes.names, running.indptr.tolist(), running.nodes.tolist()
    columns = {name: getattr(running, name).copy() for name in _USE}
    for row, job in enumerate(jobs):
        indexes = held[ends[row] : ends[row + 1]]
        nodes = [names[node] for node in indexes]
        if not all(node in bound for node in nodes):
            continue
        read = readings.of(job, nodes)
        if read is None or read.nodes < len(nodes):
            continue  # of one node nothing is known: sums over the others mislead
        columns["cpu_s"][row], columns["busy_cpus"][row] = read.cpu_s, read.cpus
        columns["peak_mib"][row], columns["memory_stall"][row] = read.peak_mib, read.pressure
        columns["progress"][row] = read.progress
        columns["unused_nodes"][row] = tuple(
            node for node, name in zip(indexes, nodes, strict=True) if name in read.unused
        )
        columns["measured_s"][row] = max(snapshot.now_s - round(read.age_s), 1)
    return replace(snapshot, running=replace(running, **columns))
