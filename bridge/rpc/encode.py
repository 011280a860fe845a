# SPDX-License-Identifier: Apache-2.0
"""Snapshots as wire messages: the plugin's function in Python, for a simulated controller.

The inverse of `bridge.rpc.reported.decode_request` where there is one. The wire has no generic
resources per task, and the demand of a job must be a request of the dialect
(`bridge.dialect.Dialect.state_demand`).
"""

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridge.dialect import NodeDemand, dialect_of
from bridge.errors import SnapshotError
from bridge.extension_packages import as_reported
from bridge.model.job import COLUMNS, RUNNING_COLUMNS, Hold, JobTable, RunningTable, WidthRule
from bridge.model.job_columns import Column, Source
from bridge.model.node import CPUS, MEMORY_MIB, NodeTable
from bridge.model.resources import LoweredChunks
from bridge.model.snapshot import Snapshot
from bridge.planning.requests.chunks import format_request
from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.rpc.reported.extension_wire import wires
from bridge.rpc.reported.hostlist import MAX_UNKNOWN, NodeIndex

_MESSAGE = tuple(each for each in COLUMNS if each.source is Source.MESSAGE)
_REQUEST = tuple(each for each in COLUMNS if each.source is Source.REQUEST)
_RUNNING = tuple(each for each in RUNNING_COLUMNS if each.source is Source.MESSAGE)
_HOLDS = {
    hold: int(hold) if hold <= pb.HOLD_OTHER else int(pb.HOLD_OTHER) for hold in Hold
}  # the service's own holds are not on the wire


class Messages:
    """Writes the rows of one cluster's snapshots as messages."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.nodes = NodeIndex(snapshot.nodes.names)
        self._resources = snapshot.resources
        self._gres = snapshot.resources[MEMORY_MIB + 1 :]
        self._reported: tuple[RunningTable, NDArray[np.int64]] | None = None
        self._wires = wires()

    def fits(self, snapshot: Snapshot) -> bool:
        """Tells whether a snapshot has the same nodes and resources by name."""
        return snapshot.resources == self._resources and (
            snapshot.nodes.names is self.nodes.names or snapshot.nodes.names == self.nodes.names
        )

    def _amounts(self, vector: Sequence[int], *, zeros: bool = False) -> list[pb.Gres]:
        """Generic resources of a vector: typed ones are not repeated under their plain name."""
        counts = dict(zip(self._gres, vector[MEMORY_MIB + 1 :], strict=True))
        for name, count in list(counts.items()):
            plain = name.partition(":")[0]
            if plain != name and plain in counts:
                counts[plain] -= count
        return [pb.Gres(name=name, count=n) for name, n in counts.items() if n or zeros]

    def node(self, table: NodeTable, row: int) -> pb.Node:
        capacity = table.capacity[row].tolist()
        message = pb.Node(
            name=table.names[row],
            cpus=capacity[CPUS],
            threads_per_core=1,
            memory_mib=capacity[MEMORY_MIB],
            gres=self._amounts(capacity, zeros=True),
            features=sorted(table.features[row]),
            usable=bool(table.usable[row]),
            state=table.state[row],
            weight=int(table.weight[row]),
        )
        for name, part in table.parts.items():
            wire = self._wires[name]
            for field, value in zip(wire.node_fields, wire.node_values(part, row), strict=True):
                setattr(message, field, value)
        return message

    def pending(self, snapshot: Snapshot, row: int) -> pb.Job:
        fields = _plain_fields(snapshot.jobs, row, _MESSAGE)
        hold, priority = _HOLDS[Hold(fields["hold"])], max(fields["priority"], 0)
        return pb.Job(
            **(fields | {"hold": hold, "priority": priority}),
            state=pb.JOB_STATE_PENDING,
            request=self._request(snapshot, row),
        )

    def _chunks(self, snapshot: Snapshot, row: int, lowered: LoweredChunks) -> pb.Request:
        jobs, reservation = snapshot.jobs, int(snapshot.jobs.reservation[row])
        generic = frozenset(snapshot.resources[MEMORY_MIB + 1 :])
        held = dialect_of(snapshot).controller_request(lowered.request, generic)
        request = pb.Request(
            partitions=[snapshot.partitions[at].name for at in jobs.partitions[row]],
            min_nodes=held.min_nodes,
            max_nodes=held.max_nodes,
            tasks=held.tasks,
            cpus_per_task=held.cpus_per_task,
            memory_per_node_mib=held.memory_per_node_mib or lowered.per_node[MEMORY_MIB],
            memory_per_cpu_mib=held.memory_per_cpu_mib,
            exclusive=bool(jobs.exclusive[row]),
            features=held.constraint,
            required_nodes=self._hostlist(jobs.required[row]),
            excluded_nodes=self._hostlist(jobs.excluded[row]),
            licences=_licences(snapshot, jobs.licences[row]),
            reservation=snapshot.reservations[reservation].name if reservation >= 0 else "",
            chunks=pb.Chunks(chunks=format_request(lowered.request)),
            controller_chooses=bool(jobs.controller_chooses[row]),
            **_plain_fields(jobs, row, _REQUEST),
        )
        _state_power(request, jobs, row)
        return request

    def _request(self, snapshot: Snapshot, row: int) -> pb.Request:
        jobs = snapshot.jobs
        if jobs.chunks[row] is not None:
            return self._chunks(snapshot, row, jobs.chunks[row])
        per_node, per_task = jobs.per_node[row].tolist(), jobs.per_task[row].tolist()
        tasks = int(jobs.tasks[row])
        demand = NodeDemand(
            max_nodes=int(jobs.max_nodes[row]),
            cpus_per_node=per_node[CPUS],
            tasks=tasks,
            cpus_per_task=per_task[CPUS],
            max_tasks_per_node=int(jobs.max_tasks_per_node[row]),
            memory_per_node_mib=per_node[MEMORY_MIB],
            memory_per_task_mib=per_task[MEMORY_MIB],
        )
        held = dialect_of(snapshot).state_demand(demand, int(jobs.min_nodes[row]))
        if held is None or (tasks and any(per_task[MEMORY_MIB + 1 :])):
            raise SnapshotError(f"jobs[{jobs.id[row]}]", "requests more than the wire can state")
        reservation = int(jobs.reservation[row])
        rule = WidthRule(int(jobs.width_rule[row]))
        request = pb.Request(
            partitions=[snapshot.partitions[at].name for at in jobs.partitions[row]],
            min_nodes=held.min_nodes,
            max_nodes=held.max_nodes,
            tasks=held.tasks,
            cpus_per_task=held.cpus_per_task,
            tasks_per_node=held.tasks_per_node,
            memory_per_node_mib=held.memory_per_node_mib,
            memory_per_cpu_mib=held.memory_per_cpu_mib,
            gres_per_node=self._amounts(per_node),
            exclusive=bool(jobs.exclusive[row]),
            features=jobs.features[row],
            required_nodes=self._hostlist(jobs.required[row]),
            excluded_nodes=self._hostlist(jobs.excluded[row]),
            licences=_licences(snapshot, jobs.licences[row]),
            reservation=snapshot.reservations[reservation].name if reservation >= 0 else "",
            controller_chooses=bool(jobs.controller_chooses[row]),
            **_plain_fields(jobs, row, _REQUEST),
        )
        if rule is not WidthRule.ANY:
            request.malleable.node_constraint = rule.name.lower()
        if jobs.max_start[row]:
            request.malleable.moldable = True
            request.malleable.min_nodes = int(jobs.min_start[row])
            request.malleable.max_nodes = int(jobs.max_start[row])
        _state_power(request, jobs, row)
        return request

    def _hostlist(self, nodes: tuple[int, ...]) -> str:
        return self.nodes.fold(np.array(nodes, dtype=np.int32)) if nodes else ""

    def running(self, snapshot: Snapshot, row: int, releases: Sequence[int] = ()) -> pb.Job:
        """One job that holds nodes.

        Args:
            releases: the rows of nodes that it is giving back.
        """
        running = snapshot.running
        held = slice(int(running.indptr[row]), int(running.indptr[row + 1]))
        nodes, use = running.nodes[held], self._use(running)[held]
        partition, head = int(running.partition[row]), int(running.head[row])
        message = pb.Job(
            **({"version": 1} | _plain_fields(running, row, _RUNNING)),
            state=pb.JOB_STATE_RUNNING,
            allocation=pb.Allocation(
                start_s=int(running.start_s[row]),
                end_s=int(running.end_s[row]),
                partition=snapshot.partitions[partition].name if partition >= 0 else "",
                uses=self._node_uses(nodes, use),
                exclusive=bool(running.exclusive[row]),
                licences=_licences(snapshot, running.licences[row]),
                adapting=bool(running.adapting[row]),
                head=snapshot.nodes.names[head] if head >= 0 else "",
                number=int(running.number[row]),
                min_power_w=int(running.min_power_w[row]),
                max_power_w=int(running.max_power_w[row]),
            ),
        )
        for other in releases:
            own = slice(int(running.indptr[other]), int(running.indptr[other + 1]))
            for part in self._node_uses(running.nodes[own], running.use[own]):
                part.until_s = int(running.end_s[other])
                message.allocation.uses.append(part)
        message.allocation.uses.extend(self._uses_elsewhere(running, row))
        if running.max_nodes[row]:
            self._widths(snapshot, row, message.request)
        return message

    def _use(self, running: RunningTable) -> NDArray[np.int64]:
        """The rows of each job; computed once for each table."""
        if self._reported is None or self._reported[0] is not running:
            self._reported = running, as_reported(running)
        return self._reported[1]

    def _widths(self, snapshot: Snapshot, row: int, request: pb.Request) -> None:
        """The request of a malleable job, as far as it matters while it runs."""
        running, reservation = snapshot.running, int(snapshot.running.reservation[row])
        partition = int(running.partition[row])
        minimum, maximum = int(running.min_nodes[row]), int(running.max_nodes[row])
        request.malleable.min_nodes, request.malleable.max_nodes = minimum, maximum
        request.malleable.no_resize = bool(running.keeps_nodes[row])
        request.min_nodes = int(running.requested_nodes[row]) or minimum
        request.max_nodes = int(running.requested_nodes[row]) or maximum
        rule = WidthRule(int(running.width_rule[row]))
        request.malleable.node_constraint = "" if rule is WidthRule.ANY else rule.name.lower()
        request.features = running.features[row]
        if partition >= 0:
            request.partitions.append(snapshot.partitions[partition].name)
        if reservation >= 0:
            request.reservation = snapshot.reservations[reservation].name

    def _uses_elsewhere(self, running: RunningTable, row: int) -> list[pb.NodeUse]:
        """What a job holds on nodes that are not known, as equally as possible on each."""
        total, count = running.use_elsewhere[row], int(running.nodes_elsewhere[row])
        if not count and not total.any():
            return []
        each, more = np.divmod(total, max(count, 1))
        bounds = sorted({0, *more.tolist(), *range(0, count, MAX_UNKNOWN), max(count, 1)})
        return [
            pb.NodeUse(
                nodes=f"{self._unknown}[1-{end - begin}]",
                cpus=int(held[CPUS]),
                memory_mib=int(held[MEMORY_MIB]),
                gres=self._amounts(held.tolist()),
            )
            for begin, end in pairwise(bounds)
            for held in [each + (more > begin)]
        ]

    @cached_property
    def _unknown(self) -> str:
        """What no name of a known node begins with."""
        found = "unknown"
        while any(name.startswith(found) for name in self.nodes.names):
            found += "-unknown"
        return found

    def _node_uses(self, nodes: NDArray[np.int32], use: NDArray[np.int64]) -> list[pb.NodeUse]:
        if len(nodes) == 0:
            return []
        if (use == use[0]).all():
            groups = [(nodes, use[0])]
        else:
            kinds, which = np.unique(use, axis=0, return_inverse=True)
            groups = [(nodes[which.ravel() == at], kind) for at, kind in enumerate(kinds)]
        return [
            pb.NodeUse(
                nodes=self.nodes.fold(members),
                cpus=int(held[CPUS]),
                memory_mib=int(held[MEMORY_MIB]),
                gres=self._amounts(held.tolist()),
            )
            for members, held in groups
        ]

    def partitions(self, snapshot: Snapshot) -> pb.Partitions:
        return pb.Partitions(
            items=[
                pb.Partition(
                    name=part.name,
                    nodes=self.nodes.fold(part.nodes),
                    up=part.up,
                    min_nodes=part.min_nodes,
                    max_nodes=part.max_nodes,
                    max_time_s=part.max_time_s,
                    default_time_s=part.default_time_s,
                    exclusive=part.exclusive,
                    priority_tier=part.priority_tier,
                    shared=part.shared,
                )
                for part in snapshot.partitions
            ]
        )

    def reservations(self, snapshot: Snapshot) -> pb.Reservations:
        return pb.Reservations(
            items=[
                pb.Reservation(
                    name=item.name,
                    start_s=item.start_s,
                    end_s=item.end_s,
                    nodes=self.nodes.fold(item.nodes),
                    licences=_licences(snapshot, item.licences),
                    maintenance=item.maintenance,
                )
                for item in snapshot.reservations
                if not item.own
            ]
        )

    def licences(self, snapshot: Snapshot) -> pb.Licences:
        return pb.Licences(
            items=[
                pb.Licence(name=name, total=int(total))
                for name, total in zip(snapshot.licences, snapshot.licence_total, strict=True)
            ]
        )


def ended_jobs(snapshot: Snapshot) -> list[pb.EndedJob]:
    """The jobs that ended since the last snapshot."""
    ended = snapshot.ended
    return [
        pb.EndedJob(
            id=ended.id[row],
            name=ended.name[row],
            user=ended.user[row],
            start_s=int(ended.start_s[row]),
            end_s=int(ended.end_s[row]),
            time_limit_s=int(ended.time_limit_s[row]),
            ending=int(ended.ending[row]),  # type: ignore[arg-type]
        )
        for row in range(len(ended))
    ]


def _plain_fields(table: object, row: int, columns: Sequence[Column]) -> dict[str, Any]:
    """The fields of a message that are columns of a table."""
    fields = {each.field: getattr(table, each.name)[row] for each in columns}
    return {name: value if isinstance(value, str) else int(value) for name, value in fields.items()}


def _state_power(request: pb.Request, jobs: JobTable, row: int) -> None:
    """The power that a waiting job states, if it states any."""
    if jobs.min_power_w[row] or jobs.max_power_w[row]:
        request.malleable.min_power_w = int(jobs.min_power_w[row])
        request.malleable.max_power_w = int(jobs.max_power_w[row])


def _licences(snapshot: Snapshot, amounts: NDArray[np.int64]) -> list[pb.LicenceUse]:
    if not amounts.any():
        return []
    return [
        pb.LicenceUse(name=name, count=int(count))
        for name, count in zip(snapshot.licences, amounts, strict=True)
        if count
    ]
