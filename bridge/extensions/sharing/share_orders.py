# SPDX-License-Identifier: Apache-2.0
"""Orders of CPU shares for agents: the quotas of the last plan, as the whole state of a node.

Rules
    1. Before the first plan no order is sent: guests of a former service keep the share they have
       fallen back to, instead of getting their full share.
    2. An order is sent when an agent connects, and when it differs from the last one. An order that
       is not empty is repeated every `RENEW_S`, which renews its lease of `LEASE_S`.
    3. Without a plan for `PLAN_S`, no lease is renewed, as the policy no longer watches the hosts.
"""

import itertools
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from bridge.extensions.sharing.part import shared_of
from bridge.model.plan import Plan
from bridge.model.snapshot import Snapshot
from bridge.rpc.agents.launcher_table import AgentStream
from bridge.rpc.pb import agent_pb2 as pb

LEASE_S: Final = 6.0
PLAN_S: Final = 30.0

Shares = Mapping[str, tuple[pb.Share, ...]]
"""By node."""


class ShareOrders:
    """The orders to all agents; methods may be called by any thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Starts without a plan.

        Args:
            clock: monotonic, s.
        """
        self._clock = clock
        self._lock = threading.Lock()
        self._sequence = itertools.count(1)
        self._agents: dict[int, AgentStream] = {}
        self._sent: dict[int, tuple[int, tuple[pb.Share, ...]]] = {}
        self._shares: Shares | None = None
        self._planned_s = float("-inf")

    def arrived(self, agent: AgentStream) -> None:
        """Adds an agent that keeps shares."""
        with self._lock:
            self._agents[id(agent)] = agent
            self._sent.pop(id(agent), None)
            self._tell([agent])

    def left(self, agent: AgentStream) -> None:
        """Its stream has ended."""
        with self._lock:
            self._agents.pop(id(agent), None)
            self._sent.pop(id(agent), None)

    @property
    def nodes(self) -> frozenset[str]:
        """Nodes whose agents keep shares."""
        with self._lock:
            return frozenset(node for agent in self._agents.values() for node in agent.nodes)

    def planned(self, shares: Shares) -> None:
        with self._lock:
            self._planned_s, changed = self._clock(), self._shares != shares
            self._shares = shares
            if changed:
                self._tell(self._agents.values())

    def renew(self) -> None:
        """Renews the leases; to be called every `RENEW_S`."""
        with self._lock:
            if self._clock() - self._planned_s > PLAN_S:
                return
            for key, (sequence, shares) in self._sent.items():
                if shares:
                    self._send(self._agents[key], sequence, shares)

    def _tell(self, agents: Iterable[AgentStream]) -> None:
        if self._shares is None:
            return
        for agent in agents:
            wanted = tuple(share for node in agent.nodes for share in self._shares.get(node, ()))
            sent = self._sent.get(id(agent))
            if sent is not None and sent[1] == wanted:
                continue
            sequence = next(self._sequence)
            self._sent[id(agent)] = sequence, wanted
            self._send(agent, sequence, wanted)

    @staticmethod
    def _send(agent: AgentStream, sequence: int, shares: tuple[pb.Share, ...]) -> None:
        message = pb.Shares(sequence=sequence, lease_ms=round(LEASE_S * 1000), shares=shares)
        agent.send(pb.AgentOrder(shares=message))


def shares_of(snapshot: Snapshot, plan: Plan, hosts: Mapping[str, str]) -> Shares:
    """The plan's quotas as shares of jobs on nodes.

    Args:
        plan: whose quotas these are.
        hosts: by guest: the job whose nodes it uses.
    """
    quotas = shared_of(plan).quotas
    if not len(quotas):
        return {}
    where = _placed(snapshot, plan, frozenset(quotas.id.tolist()))
    names, found = snapshot.nodes.names, dict[str, list[pb.Share]]()
    for job_id, milli, weight in zip(
        quotas.id.tolist(), quotas.milli_cpus_per_node.tolist(), quotas.weight.tolist(), strict=True
    ):
        number, nodes = where.get(job_id, ("", ()))
        for node in nodes if number.isdecimal() else ():
            name = names[node]
            share = pb.Share(
                job=number, node=name, milli_cpus=milli, weight=weight, guest=job_id in hosts
            )
            found.setdefault(name, []).append(share)
    return {node: tuple(shares) for node, shares in found.items()}


def _placed(
    snapshot: Snapshot, plan: Plan, wanted: frozenset[str]
) -> dict[str, tuple[str, tuple[int, ...]]]:
    """By job: how its nodes call it, and the nodes, for jobs that run or start now.

    A task of an array that starts has no number yet: it is included once it runs.
    """
    found: dict[str, tuple[str, tuple[int, ...]]] = {}
    for row in plan.starts_now.tolist():
        job_id = str(snapshot.jobs.id[plan.job[row]])
        if job_id in wanted:
            found[job_id] = job_id, tuple(plan.nodes_of(row).tolist())
    running = snapshot.running
    ends, held, numbers = running.indptr.tolist(), running.nodes.tolist(), running.number.tolist()
    for row, job_id in enumerate(running.id.tolist()):
        if job_id in wanted and not running.releasing[row]:
            number = str(numbers[row]) if numbers[row] > 0 else job_id
            found[job_id] = number, tuple(held[ends[row] : ends[row + 1]])
    return found


def hosts_of(snapshot: Snapshot, plan: Plan) -> dict[str, str]:
    """The host of each guest that runs or starts now."""
    part = shared_of(plan)
    found = {
        str(snapshot.jobs.id[plan.job[row]]): part.host_of(row)
        for row in part.guest_starts.tolist()
    }
    running = snapshot.running
    rows = running.host_id.nonzero()[0].tolist()
    return found | {str(running.id[row]): str(running.host_id[row]) for row in rows}
