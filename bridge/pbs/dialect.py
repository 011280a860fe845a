# SPDX-License-Identifier: Apache-2.0
"""PBS's names, limits and options (the port `bridge.dialect.Dialect`).

Rules
    1. `12[].srv` is an array, `12[3].srv` one of its tasks.
    2. All jobs request chunks. A request without chunks comes only from a what-if query; its tasks
       are chunks anywhere, nothing is rounded to cores, and unstated memory is 0.
    3. A chunk takes exactly what it states.
    4. An amount of a resource that no node counts is the feature `name=number`.

Source: qsub(1B), pbs_rsub(1B), pbs_resources(7) of OpenPBS 23.06.
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bridge.dialect import (
    SLURM,
    Accounting,
    ControllerRequest,
    NodeDemand,
    RequestChange,
    ReservationText,
    StatedRequest,
    dialect_named,
)
from bridge.errors import BadRequest, RequestError
from bridge.model.job_columns import MAX_COUNT
from bridge.model.resources import Chunk, ChunkRequest, Place
from bridge.model.topology import Topology
from bridge.pbs.words import WORDS
from bridge.planning.requests.chunks import format_place, format_request
from bridge.units import format_instant
from bridge.words import Words

_ARRAY = "[]"
_GPU = "gpu"


@dataclass(frozen=True)
class PbsDialect:
    """The dialect of a PBS server; see `bridge.dialect.Dialect`."""

    words: Words = WORDS

    def array_of(self, job_id: str) -> str:
        """Returns `12[].srv` for `12[3].srv`."""
        number, bracket, rest = job_id.partition("[")
        return number + _ARRAY + rest.partition("]")[2] if bracket else job_id

    def are_array_tasks(self, job_ids: Sequence[str]) -> NDArray[np.bool_]:
        """Returns (len(job_ids),) bool."""
        return np.array(["[" in job and _ARRAY not in job for job in job_ids], dtype=bool)

    def min_nodes(self, stated: StatedRequest) -> int:
        """Returns 0: chunks may share vnodes."""
        return 0

    def node_demand(
        self, stated: StatedRequest, min_nodes: int, max_nodes: int, accounting: Accounting
    ) -> NodeDemand:
        """Returns tasks as chunks (rule 2)."""
        if stated.memory_per_cpu_mib:
            raise BadRequest("asks for memory per CPU: state mem in each chunk (-l select)")
        tasks, each = max(stated.tasks, min_nodes, 1), max(stated.cpus_per_task, 1)
        if tasks * each > MAX_COUNT:
            raise BadRequest("asks for more CPUs than any cluster can have")
        return NodeDemand(
            max_nodes=max(min_nodes, min(max_nodes or tasks, tasks)),
            tasks=tasks,
            cpus_per_task=each,
            memory_per_task_mib=stated.memory_per_node_mib,
        )

    def state_demand(self, requested: NodeDemand, min_nodes: int) -> ControllerRequest | None:
        """Returns tasks; None for amounts needed once on every node."""
        if requested.cpus_per_node or requested.memory_per_node_mib or not requested.tasks:
            return None
        return ControllerRequest(
            min_nodes=min_nodes,
            max_nodes=requested.max_nodes,
            tasks=requested.tasks,
            cpus_per_task=requested.cpus_per_task,
            memory_per_node_mib=requested.memory_per_task_mib,
        )

    def takes_all_memory(self, accounting: Accounting, *, memory_stated: bool) -> bool:
        """Returns False: unstated memory is 0."""
        return False

    def check_chunks(self, request: ChunkRequest, stated: StatedRequest) -> None:
        """Accepts them: the server holds nothing else."""

    def controller_request(
        self, request: ChunkRequest, generic: frozenset[str]
    ) -> ControllerRequest:
        """States a request by its chunks; the server holds them as they are."""
        first = request.kinds[0]
        return ControllerRequest(
            min_nodes=1,
            max_nodes=request.n_chunks,
            tasks=request.n_chunks,
            cpus_per_task=first.ncpus,
            node=first.host,
            licences=",".join(f"{name}:{number}" for name, number in request.licences),
            exclusive=request.place.exclusive,
        )

    def chunk_features(
        self, request: ChunkRequest, chunk: Chunk, generic: frozenset[str]
    ) -> frozenset[str]:
        """Returns features, and amounts that no node counts (rule 4)."""
        if _GPU not in generic and any(name == _GPU for name, _ in chunk.amounts):
            raise RequestError(format_request(request), 0, "asks for ngpus, which no vnode has")
        others = (f"{name}={number}" for name, number in chunk.amounts if name not in generic)
        return frozenset((*chunk.features, *others))

    def chunk_memory_mib(self, request: ChunkRequest, chunk: Chunk, cpus: int) -> int:
        """Returns what the chunk states (rule 3)."""
        return chunk.mem_mib

    def read_topology(self, path: Path, nodes: Sequence[str] | None = None) -> Topology:
        """Reads a file in the form of topology.conf: PBS has none of its own."""
        return dialect_named(SLURM).read_topology(path, nodes)

    def topology_nodes(self, path: Path) -> list[str]:
        """Returns the nodes that such a file names."""
        return dialect_named(SLURM).topology_nodes(path)

    def submit_options(self, change: RequestChange) -> str:
        """Returns options of qsub."""
        options = []
        if change.partition:
            options.append(f"-q {change.partition}")
        if change.time_limit_s:
            options.append(f"-l walltime={pbs_time(change.time_limit_s)}")
        if change.chunks is not None:
            place = format_place(change.chunks.place)
            bare = dataclasses.replace(change.chunks, place=Place())
            options.append(f"-l {format_request(bare)}")
            options += [f"-l place={place}"] * bool(place)
        elif change.tasks:
            each = max(change.cpus // change.tasks, 1)
            options.append(f"-l select={change.tasks}:ncpus={each}")
        if change.nodes is not None:
            options.append(f"-l select={change.nodes[0]} -l place=scatter")
        return " ".join(options)

    def reserve_command(self, reservation: ReservationText) -> str:
        """Returns a command that makes a reservation for maintenance or of hosts."""
        stated = [
            f"pbs_rsub -N {reservation.name}",
            f"-R '{format_instant(reservation.start_s)}'",
            f"-E '{format_instant(reservation.end_s)}'",
        ]
        if reservation.users:
            stated.append(f"-U {reservation.users}")
        if reservation.accounts:
            stated.append(f"-G {reservation.accounts}")
        if reservation.nodes:
            stated.append(f"--hosts {reservation.nodes}")
        return " ".join(stated)


def pbs_time(duration_s: int) -> str:
    """Writes a duration in the form of -l walltime: `26:30:00`."""
    return f"{duration_s // 3600:02}:{duration_s % 3600 // 60:02}:{duration_s % 60:02}"


PBS = PbsDialect()
