# SPDX-License-Identifier: Apache-2.0
"""The controller's state at one instant; the only input of a cycle about the cluster."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridge.model.job import NONE_ENDED, EndedTable, JobTable, RunningTable
from bridge.model.node import NodeTable
from bridge.model.topology import Topology


@dataclass(frozen=True)
class Partition:
    """A Slurm partition (PBS: queue).

    Attributes:
        nodes: sorted node indexes.
        max_nodes: 0: no bound.
        max_time_s, default_time_s: 0: no bound, not stated.
        exclusive: jobs always hold whole nodes.
        priority_tier: jobs of a higher tier are considered first.
        shared: the controller can start a second job on the CPUs of one that runs here.
    """

    name: str
    nodes: NDArray[np.int32]
    up: bool = True
    min_nodes: int = 0
    max_nodes: int = 0
    max_time_s: int = 0
    default_time_s: int = 0
    exclusive: bool = False
    priority_tier: int = 1
    shared: bool = False


@dataclass(frozen=True)
class Reservation:
    """An administrator's reservation, or announced downtime, over [start_s, end_s).

    Attributes:
        nodes: sorted node indexes.
        licences: (L,) int64 kept for the reservation's own jobs.
        anywhere: it keeps licences alone: its jobs may use the nodes that all may.
        own: made by an extension, not at the controller; the name says in words what its nodes
            are until it ends.
    """

    name: str
    start_s: int
    end_s: int
    nodes: NDArray[np.int32]
    licences: NDArray[np.int64]
    maintenance: bool = False
    anywhere: bool = False
    own: bool = False


@dataclass(frozen=True)
class Snapshot:
    """One consistent view of queue and nodes at `now_s`.

    Attributes:
        now_s: the controller's clock, Unix seconds.
        generation: counts the controller's reports; names this view.
        resources: (R,) names of the resource columns: "cpus", "mem_mib", then generic ones.
        licences: (L,) licence names.
        licence_total: (L,) int64 that this cluster's jobs may use in all.
        ended: jobs that ended since the last snapshot.
        topology: the switches above the nodes; None: nothing is known of them.
        dialect: name of the controller's dialect (`bridge.dialect`); empty: the default one.
    """

    now_s: int
    generation: int
    resources: tuple[str, ...]
    nodes: NodeTable
    jobs: JobTable
    running: RunningTable
    partitions: tuple[Partition, ...]
    reservations: tuple[Reservation, ...]
    licences: tuple[str, ...]
    licence_total: NDArray[np.int64]
    ended: EndedTable = NONE_ENDED
    topology: Topology | None = None
    dialect: str = ""

    @property
    def closed(self) -> NDArray[np.bool_]:
        """(n_nodes,) nodes that an extension closes to all jobs at present."""
        closed = np.zeros(len(self.nodes), dtype=bool)
        for each in self.reservations:
            if each.own and each.start_s <= self.now_s < each.end_s:
                closed[each.nodes] = True
        return closed

    def with_jobs(self, jobs: JobTable) -> "Snapshot":
        """The same with other waiting jobs; like `dataclasses.replace`, but faster."""
        return self.with_tables(jobs=jobs)

    def with_running(self, running: RunningTable) -> "Snapshot":
        """The same with other running jobs; itself if they are its own."""
        return self if running is self.running else self.with_tables(running=running)

    def with_tables(self, **changed: object) -> "Snapshot":
        """The same with other values of these attributes."""
        view = Snapshot.__new__(Snapshot)
        view.__dict__.update(self.__dict__, **changed)
        return view
