# SPDX-License-Identifier: Apache-2.0
"""Builders for tests: `a_snapshot(nodes=4, jobs=[a_job(nodes=2)])` says what matters, only."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from bridge.model.job import COLUMNS, RUNNING_COLUMNS, Hold, JobTable, RunningTable, WidthRule
from bridge.model.job_columns import objects
from bridge.model.node import NodeTable
from bridge.model.plan import Plan
from bridge.model.snapshot import Partition, Reservation, Snapshot
from bridge.planning.requests.chunk_groups import ClusterWords, chunk_columns, lower_chunks
from bridge.planning.requests.chunks import parse_request
from bridge.slurm.request import slurm_request

RESOURCES = ("cpus", "mem_mib", "gpu")


@dataclass
class a_node:  # noqa: N801  reads as a sentence
    cpus: int = 4
    mem_mib: int = 4096
    gpus: int = 0
    features: tuple[str, ...] = ()
    usable: bool = True
    weight: int = 1


@dataclass
class a_job:  # noqa: N801
    """A pending job; whole nodes unless `shared`."""

    nodes: int = 1
    limit_s: int = 100
    max_nodes: int | None = None
    id: str | None = None
    submit_s: int = 0
    priority: int = 1
    begin_s: int = 0
    hold: Hold = Hold.NONE
    partitions: tuple[int, ...] = (0,)
    shared: bool = False
    cpus: int = 0
    mem_mib: int = 0
    gpus: int = 0
    tasks: int = 0
    cpus_per_task: int = 1
    max_tasks_per_node: int = 0
    width_rule: WidthRule = WidthRule.ANY
    features: str = ""
    required: tuple[int, ...] = ()
    excluded: tuple[int, ...] = ()
    licences: tuple[int, ...] = ()
    reservation: int = -1
    array_tasks: int = 0
    array_startable: int = 0
    user: str = "user"
    account: str = "account"
    deadline_s: int = 0
    min_s: int = 0
    fixed: bool = False
    eligible_s: int | None = None
    switches: int = 0
    switches_wait_s: int = 0
    controller_chooses: bool = False
    no_place: bool = False
    min_start: int = 0
    max_start: int = 0
    min_power_w: int = 0
    max_power_w: int = 0
    learnt_min_power_w: int = 0
    learnt_max_power_w: int = 0
    coschedule: int = 0
    max_slowdown_permille: int = 0
    rigid: bool = False
    requeue: bool = False
    share_of: str = ""
    share_ppm: int = 0
    share_usage: int = 0
    share_cost: int = 0
    chunks: str = ""
    """A request in chunks, in place of nodes, tasks and amounts; shared unless it says excl."""


@dataclass
class a_running_job:  # noqa: N801
    nodes: tuple[int, ...] = (0,)
    end_s: int = 100
    shared: bool = False
    cpus: int = 1
    mem_mib: int = 0
    gpus: int = 0
    licences: tuple[int, ...] = ()
    user: str = "user"
    account: str = "account"
    id: str | None = None
    cpus_elsewhere: int = 0
    nodes_elsewhere: int = 0
    """On nodes that the snapshot does not have."""
    min_nodes: int = 0
    max_nodes: int = 0
    """0: not malleable."""
    width_rule: WidthRule = WidthRule.ANY
    adapting: bool = False
    version: int = 1
    head: int = -1
    requested_nodes: int = 0
    resized_s: int = 0
    start_s: int = 0
    min_power_w: int = 0
    max_power_w: int = 0
    learnt_min_power_w: int = 0
    learnt_max_power_w: int = 0
    measured_min_power_w: int = 0
    measured_max_power_w: int = 0
    name: str = "running"
    coschedule: int = 0
    max_slowdown_permille: int = 0
    rigid: bool = False
    requeue: bool = False
    host_id: str = ""
    own_cpus: int = 0
    cpu_s: float = -1.0
    busy_cpus: float = -1.0
    peak_mib: int = 0
    progress: float = -1.0
    memory_stall: float = -1.0
    measured_s: int = 0
    unused_nodes: tuple[int, ...] = ()
    hosted_s: int = 0
    hosted_since_s: int = 0
    extended_s: int = 0
    extendable: bool = False


def a_partition(name: str = "batch", nodes: Sequence[int] = (), **settings: object) -> Partition:
    return Partition(name, np.array(nodes, dtype=np.int32), **settings)  # type: ignore[arg-type]


def a_reservation(
    nodes: Sequence[int], start_s: int, end_s: int, name: str = "maint"
) -> Reservation:
    return Reservation(
        name, start_s, end_s, np.array(nodes, dtype=np.int32), np.zeros(0, dtype=np.int64)
    )


_OTHERWISE = frozenset({"id", "eligible_s", "max_nodes", "licences", "chunks"})
"""Columns of which `a_job` says something else under the same name."""


_SHARING = (
    "coschedule", "max_slowdown_permille", "rigid", "requeue", "host_id", "own_cpus", "cpu_s",
    "busy_cpus", "peak_mib", "progress", "memory_stall", "measured_s", "unused_nodes", "hosted_s",
    "hosted_since_s", "extended_s", "extendable",
)  # fmt: skip
_POWERS = [name for name in a_running_job.__dataclass_fields__ if name.endswith("_power_w")]


def _column(values: Sequence[object], dtype: np.dtype) -> np.ndarray:
    return objects(values) if dtype.kind == "O" else np.array(values, dtype)


def _ints(values: Sequence[int], dtype: type = np.int64) -> np.ndarray:
    return np.array(list(values), dtype=dtype)


@dataclass
class a_snapshot:  # noqa: N801
    """Collects the world; call it for the Snapshot."""

    nodes: int | Sequence[a_node] = 4
    jobs: Sequence[a_job] = ()
    running: Sequence[a_running_job] = ()
    partitions: Sequence[Partition] = ()
    reservations: Sequence[Reservation] = ()
    licences: Sequence[tuple[str, int]] = ()
    now_s: int = 0
    generation: int = 1
    made: list[Snapshot] = field(default_factory=list)

    def __call__(self) -> Snapshot:
        nodes = [a_node() for _ in range(self.nodes)] if isinstance(self.nodes, int) else self.nodes
        table = NodeTable(
            names=tuple(f"n{index + 1}" for index in range(len(nodes))),
            capacity=np.array([(n.cpus, n.mem_mib, n.gpus) for n in nodes], dtype=np.int64).reshape(
                len(nodes), 3
            ),
            usable=np.array([n.usable for n in nodes], dtype=bool),
            weight=_ints([n.weight for n in nodes], np.int32),
            features=tuple(frozenset(n.features) for n in nodes),
            state=tuple("IDLE" if n.usable else "DOWN" for n in nodes),
        )
        partitions = tuple(self.partitions) or (a_partition(nodes=range(len(nodes))),)
        return Snapshot(
            now_s=self.now_s,
            generation=self.generation,
            resources=RESOURCES,
            nodes=table,
            jobs=self._asking_in_chunks(self._jobs(), table),
            running=self._running(table),
            partitions=partitions,
            reservations=tuple(self.reservations),
            licences=tuple(name for name, _ in self.licences),
            licence_total=_ints([total for _, total in self.licences]),
        )

    def _licences(self, requested: Sequence[tuple[int, ...]]) -> np.ndarray:
        width = len(self.licences)
        return np.array([a or (0,) * width for a in requested], dtype=np.int64).reshape(
            len(requested), width
        )

    def _jobs(self) -> JobTable:
        jobs = list(self.jobs)
        n = len(jobs)
        table = JobTable(
            **{
                each.name: _column([getattr(job, each.name) for job in jobs], each.dtype)
                for each in COLUMNS
                if each.name in a_job.__dataclass_fields__ and each.name not in _OTHERWISE
            },
            id=objects(job.id or str(index + 1) for index, job in enumerate(jobs)),
            name=objects(["job"] * n),
            eligible_s=_ints(
                [job.submit_s if job.eligible_s is None else job.eligible_s for job in jobs]
            ),
            time_limit_s=_ints([job.limit_s for job in jobs]),
            min_nodes=_ints([job.nodes for job in jobs]),
            max_nodes=_ints([job.max_nodes or job.nodes for job in jobs]),
            per_node=np.array([(j.cpus, j.mem_mib, j.gpus) for j in jobs], dtype=np.int64).reshape(
                -1, 3
            ),
            per_task=np.array(
                [(j.cpus_per_task if j.tasks else 0, 0, 0) for j in jobs], dtype=np.int64
            ).reshape(-1, 3),
            exclusive=_ints([not job.shared for job in jobs], bool),
            licences=self._licences([job.licences for job in jobs]),
            min_time_s=_ints([job.min_s for job in jobs]),
        )
        return table.rows(np.arange(n))  # columns that tests may change

    def _asking_in_chunks(self, table: JobTable, nodes: NodeTable) -> JobTable:
        """Writes the columns of the jobs that ask in chunks."""
        cluster = ClusterWords(
            column={"gpu": 2}, n_resources=3, features=frozenset().union(*nodes.features)
        )
        for row, job in enumerate(self.jobs):
            if not job.chunks:
                continue
            request = parse_request(job.chunks)
            held = slurm_request(request, cluster.generic)
            lowered = lower_chunks(request, cluster, constraint=held.constraint)
            table.chunks[row] = lowered
            table.exclusive[row] = request.place.exclusive
            for name, value in vars(chunk_columns(lowered)).items():
                getattr(table, name)[row] = value
        return table

    def _running(self, nodes: NodeTable) -> RunningTable:
        held = list(self.running)
        indptr = np.cumsum([0, *(len(job.nodes) for job in held)])
        use = [
            (job.cpus, job.mem_mib, job.gpus) if job.shared else tuple(nodes.capacity[node])
            for job in held
            for node in job.nodes
        ]
        return RunningTable(
            id=objects([job.id or f"r{index + 1}" for index, job in enumerate(held)]),
            name=objects([job.name for job in held]),
            user=objects([job.user for job in held]),
            account=objects([job.account for job in held]),
            start_s=_ints([job.start_s for job in held]),
            end_s=_ints([job.end_s for job in held]),
            partition=np.zeros(len(held), dtype=np.int64),
            exclusive=_ints([not job.shared for job in held], bool),
            licences=self._licences([job.licences for job in held]),
            indptr=indptr.astype(np.int64),
            nodes=_ints([node for job in held for node in job.nodes], np.int32),
            use=np.array(use, dtype=np.int64).reshape(-1, 3),
            use_elsewhere=_ints([(job.cpus_elsewhere, 0, 0) for job in held]).reshape(-1, 3),
            nodes_elsewhere=_ints([job.nodes_elsewhere for job in held]),
            version=_ints([job.version for job in held], np.uint64),
            head=_ints([job.head for job in held]),
            requested_nodes=_ints([job.requested_nodes for job in held]),
            resized_s=_ints([job.resized_s for job in held]),
            min_nodes=_ints([job.min_nodes for job in held]),
            max_nodes=_ints([job.max_nodes for job in held]),
            width_rule=_ints([job.width_rule for job in held], np.int8),
            adapting=_ints([job.adapting for job in held], bool),
            **{name: _ints([getattr(job, name) for job in held]) for name in _POWERS},
            **{
                each.name: _column([getattr(job, each.name) for job in held], each.dtype)
                for each in RUNNING_COLUMNS
                if each.name in _SHARING
            },
        )


def gantt(snapshot: Snapshot, plan: Plan, *, seconds_per_column: int = 10) -> str:
    """An ASCII Gantt chart for failure messages: a line per node, a letter per job."""
    width = 60
    lines = {node: ["."] * width for node in range(len(snapshot.nodes))}

    def draw(node: int, start_s: int, end_s: int, mark: str) -> None:
        first = max((start_s - snapshot.now_s) // seconds_per_column, 0)
        last = max((end_s - snapshot.now_s - 1) // seconds_per_column, first)
        for column in range(first, min(last + 1, width)):
            lines[node][column] = mark if lines[node][column] == "." else "*"

    running = snapshot.running
    for index in range(len(running)):
        for node in running.nodes[running.indptr[index] : running.indptr[index + 1]].tolist():
            draw(node, snapshot.now_s, int(running.end_s[index]), "#")
    for row in range(len(plan)):
        for node in plan.nodes_of(row).tolist():
            mark = chr(ord("A") + int(plan.job[row]) % 26)
            draw(node, int(plan.start_s[row]), int(plan.end_s[row]), mark)
    return "\n".join(
        f"{snapshot.nodes.names[node]:>6} |{''.join(line)}|" for node, line in lines.items()
    )
