# SPDX-License-Identifier: Apache-2.0
"""Slurm's names, limits and options (the port `bridge.dialect.Dialect`).

Source: sbatch(1) and scontrol(1) of Slurm 24.11.
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bridge.dialect import (
    Accounting,
    ControllerRequest,
    NodeDemand,
    RequestChange,
    ReservationText,
    StatedRequest,
)
from bridge.errors import BadRequest, RequestError
from bridge.model.resources import Arrangement, Chunk, ChunkRequest, Place
from bridge.model.topology import Topology
from bridge.planning.requests.chunks import format_place, format_request
from bridge.slurm import demand, topology_conf
from bridge.slurm.request import GPU, features, memory_mib, slurm_request
from bridge.slurm.words import WORDS
from bridge.units import DAY_S, format_instant
from bridge.words import Words

_TASK_MARK = "_"
"""Between the number of an array and that of its task: `12_3`."""


@dataclass(frozen=True)
class SlurmDialect:
    """The dialect of slurmctld; see `bridge.dialect.Dialect`."""

    words: Words = WORDS

    def array_of(self, job_id: str) -> str:
        """Returns what is before the mark: `12` for `12_3`."""
        return job_id.partition(_TASK_MARK)[0]

    def are_array_tasks(self, job_ids: Sequence[str]) -> NDArray[np.bool_]:
        """Returns (len(job_ids),) bool."""
        return np.array([_TASK_MARK in job_id for job_id in job_ids], dtype=bool)

    def min_nodes(self, stated: StatedRequest) -> int:
        """Returns the nodes for --ntasks and --ntasks-per-node."""
        return demand.min_nodes(stated)

    def node_demand(
        self, stated: StatedRequest, min_nodes: int, max_nodes: int, accounting: Accounting
    ) -> NodeDemand:
        """Returns the allocation by select/cons_tres; see `bridge.slurm.demand`."""
        return demand.node_demand(stated, min_nodes, max_nodes, accounting)

    def state_demand(self, requested: NodeDemand, min_nodes: int) -> ControllerRequest | None:
        """Returns options of sbatch; see `bridge.slurm.demand`."""
        return demand.state_demand(requested, min_nodes)

    def takes_all_memory(self, accounting: Accounting, *, memory_stated: bool) -> bool:
        """Returns whether it is --mem=0, or DefMemPerNode is unset; see `bridge.slurm.demand`."""
        return demand.takes_all_memory(accounting, memory_stated=memory_stated)

    def check_chunks(self, request: ChunkRequest, stated: StatedRequest) -> None:
        """Compares CPUs: `scontrol update` may have changed the tasks that represent the chunks."""
        held = stated.tasks * max(stated.cpus_per_task, 1)
        if held != request.n_cpus:
            raise BadRequest(
                f"{WORDS.chunks_option} mean {request.n_cpus} CPUs, Slurm holds {held} for the "
                "job: submit it again without changing its tasks or CPUs"
            )

    def controller_request(
        self, request: ChunkRequest, generic: frozenset[str]
    ) -> ControllerRequest:
        """States a request as tasks; see `bridge.slurm.request`."""
        return slurm_request(request, generic)

    def chunk_features(
        self, request: ChunkRequest, chunk: Chunk, generic: frozenset[str]
    ) -> frozenset[str]:
        """Returns features; GPUs are always counted, so they are refused if no node has any."""
        if GPU not in generic and any(name == GPU for name, _ in chunk.amounts):
            raise RequestError(format_request(request), 0, "asks for GPUs, which no node has")
        return frozenset(features(chunk, generic))

    def chunk_memory_mib(self, request: ChunkRequest, chunk: Chunk, cpus: int) -> int:
        """Returns the share of the single amount in Slurm (`bridge.slurm.request`, rule 3)."""
        _, per_cpu = memory_mib(request)
        if per_cpu:
            return cpus * per_cpu
        if request.place.arrangement is Arrangement.SCATTER:
            return max(kind.mem_mib for kind in request.kinds)
        return chunk.mem_mib

    def read_topology(self, path: Path, nodes: Sequence[str] | None = None) -> Topology:
        """Reads a topology.conf; see `bridge.slurm.topology_conf`."""
        return topology_conf.read_topology(path, nodes)

    def topology_nodes(self, path: Path) -> list[str]:
        """Returns the nodes that a topology.conf names."""
        return topology_conf.named_nodes(path)

    def submit_options(self, change: RequestChange) -> str:
        """Returns options of sbatch."""
        options = []
        if change.partition:
            options.append(f"-p {change.partition}")
        if change.time_limit_s:
            options.append(f"{WORDS.time_option}={slurm_time(change.time_limit_s)}")
        if change.chunks is not None:
            place = format_place(change.chunks.place)
            bare = dataclasses.replace(change.chunks, place=Place())
            options.append(f"--chunks={format_request(bare).removeprefix('select=')}")
            options += [f"--place={place}"] * bool(place)
        if change.cpus:
            options.append(f"-n for {change.cpus} CPUs")
        elif change.tasks:
            options.append(f"-n {change.tasks}")
        if change.nodes is not None:
            minimum, maximum = change.nodes
            span = f"{minimum}-{maximum}" if maximum > minimum else f"{minimum}"
            options.append(f"--malleable={minimum}-{maximum}" if change.malleable else f"-N {span}")
        return " ".join(options)

    def reserve_command(self, reservation: ReservationText) -> str:
        """Returns a command of scontrol."""
        values = {
            "ReservationName": reservation.name,
            "StartTime": format_instant(reservation.start_s),
            "EndTime": format_instant(reservation.end_s),
            "Nodes": reservation.nodes,
            "PartitionName": reservation.partition,
            "Users": reservation.users,
            "Accounts": reservation.accounts,
            "Licenses": reservation.licences,
        }
        stated = (f"{key}={value}" for key, value in values.items() if value)
        return " ".join(["scontrol create reservation", *stated])


def slurm_time(duration_s: int) -> str:
    """Writes a duration in the form of Slurm's --time: `2:00:00`, `1-12:30:00`."""
    days, rest = divmod(duration_s, DAY_S)
    hours, minutes, seconds = rest // 3600, rest % 3600 // 60, rest % 60
    if days:
        return f"{days}-{hours:02}:{minutes:02}:{seconds:02}"
    return f"{hours}:{minutes:02}:{seconds:02}"


SLURM = SlurmDialect()
