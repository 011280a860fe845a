# SPDX-License-Identifier: Apache-2.0
"""The amounts that jobs use of everything that rules count, as columns.

Columns: the node resources of the snapshot, its licences, "jobs", "arrayjobs".

Rules
    1. A pending job uses its nodes times `per_node`, plus its tasks times `per_task`, plus its
       licences; with chunks of several kinds, all its chunks, and its nodes times their per-node
       amounts.
    2. A job with whole nodes uses their CPUs and memory, and no less than it requests. If its nodes
       are not known, it is assumed to get the largest ones that its layout allows, or those of its
       partition. Generic resources count only as requested.
    3. A running job uses what the controller reports, also on nodes that are not known.
    4. Each job, and each task of an array, counts as one of "jobs"; a task also as one of
       "arrayjobs".
    5. Available are the resources of usable nodes, and the licences this cluster may use.

Source: Keller, JSSPP 2017, section 5.4 (exclusive node access).
Deviates: in the paper a job with whole nodes counts as average nodes, wherever it runs; so a limit
of 16 cores would allow it a node of 240. Here its own nodes count.
"""

import numpy as np
from numpy.typing import NDArray

from bridge.dialect import dialect_of
from bridge.model.node import MEMORY_MIB
from bridge.model.rules.limits import COUNTED
from bridge.model.snapshot import Snapshot
from bridge.units import NEVER

_ALSO = {"mem": "mem_mib", "vmem": "mem_mib", "ncpus": "cpus", "cores": "cpus"}


def largest(capacity: NDArray[np.int64]) -> NDArray[np.int64]:
    """(n + 1, 2) the maximum CPUs and memory of any 0, 1 ... n of n nodes."""
    both = capacity[:, : MEMORY_MIB + 1]
    found = np.zeros((len(both) + 1, MEMORY_MIB + 1), dtype=np.int64)
    np.cumsum(np.sort(both, axis=0)[::-1], axis=0, out=found[1:])
    return found


def plain_name(name: str) -> str:
    """The column for a resource name of users."""
    return _ALSO.get(name, name)


class Amounts:
    """Amounts of one snapshot.

    Attributes:
        n_requested: columns that a job may ask for; "jobs" and "arrayjobs" follow.
        available: (n_columns,) int64; NEVER for "jobs" and "arrayjobs".
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        nodes = snapshot.nodes
        self.names = (*snapshot.resources, *snapshot.licences, *COUNTED)
        self.n_requested = len(self.names) - len(COUNTED)
        everywhere = nodes.capacity[nodes.usable].sum(axis=0)
        self.available = self._columns(everywhere)
        self._in_partition: list[NDArray[np.int64]] = []
        self._largest: list[NDArray[np.int64]] = []
        for part in snapshot.partitions:
            up = nodes.capacity[part.nodes[nodes.usable[part.nodes]]]
            self._in_partition.append(self._columns(up.sum(axis=0)))
            self._largest.append(largest(up))
        self._whole = np.array([part.exclusive for part in snapshot.partitions] + [False])

    def _columns(self, resources: NDArray[np.int64]) -> NDArray[np.int64]:
        counted = np.full(2, NEVER, dtype=np.int64)
        return np.concatenate((resources, self._snapshot.licence_total, counted)).astype(np.int64)

    def column(self, name: str) -> int | None:
        """The column of a resource by the name that users know; None: unknown."""
        name = plain_name(name)
        return self.names.index(name) if name in self.names else None

    def available_in(self, partition: int) -> NDArray[np.int64]:
        """(n_columns,) what is available in one partition."""
        return self._in_partition[partition]

    def requested(self, rows: NDArray[np.int64], nodes: NDArray[np.int64]) -> NDArray[np.int64]:
        """The requests of pending jobs, without the extra amounts of rule 2.

        Args:
            rows: (n,) rows of `snapshot.jobs`.
            nodes: (n,) number of nodes.

        Returns:
            (n, n_columns) int64.
        """
        jobs = self._snapshot.jobs
        requested = nodes[:, None] * jobs.per_node[rows]
        requested += jobs.tasks[rows][:, None] * jobs.per_task[rows]
        self._add_chunks(rows, nodes, requested)
        array = jobs.array_tasks[rows] > 0
        return np.column_stack((requested, jobs.licences[rows], np.ones_like(rows), array))

    def takes_whole(
        self, rows: NDArray[np.int64], partition: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """(n,) which jobs take whole nodes."""
        whole: NDArray[np.bool_] = self._snapshot.jobs.exclusive[rows] | self._whole[partition]
        return whole

    def of_jobs(
        self,
        rows: NDArray[np.int64],
        partition: NDArray[np.int64],
        nodes: NDArray[np.int64],
        have: NDArray[np.int64] | None = None,
    ) -> NDArray[np.int64]:
        """The use of pending jobs; each task of an array counts separately.

        Args:
            rows: (n,) rows of `snapshot.jobs`.
            partition: (n,) where each would run.
            nodes: (n,) number of nodes.
            have: (n, 2) most CPUs and memory of these nodes; None: of the largest ones of the
                partition.

        Returns:
            (n, n_columns) int64.
        """
        used = self.requested(rows, nodes)
        whole = np.flatnonzero(self.takes_whole(rows, partition))
        if len(whole):
            if have is None:
                taken = np.array(
                    [
                        table[min(count, len(table) - 1)]
                        for table, count in (
                            (self._largest[part], count)
                            for part, count in zip(
                                partition[whole].tolist(), nodes[whole].tolist(), strict=True
                            )
                        )
                    ],
                    dtype=np.int64,
                )
            else:
                taken = have[whole]
            both = slice(0, MEMORY_MIB + 1)
            used[whole, both] = np.maximum(used[whole, both], taken)
        return used

    def _add_chunks(
        self, rows: NDArray[np.int64], nodes: NDArray[np.int64], used: NDArray[np.int64]
    ) -> None:
        chunks = self._snapshot.jobs.chunks[rows]
        for at, lowered in enumerate(chunks):
            if lowered is None:
                continue
            counts = np.array([kind.count for kind in lowered.request.kinds], dtype=np.int64)
            wants = np.array(lowered.wants, dtype=np.int64).reshape(len(counts), -1)
            used[at] = counts @ wants + nodes[at] * np.array(lowered.per_node, dtype=np.int64)

    def of_running(self) -> NDArray[np.int64]:
        """(n_running, n_columns) the use of running jobs."""
        running = self._snapshot.running
        n_running = len(running)
        used = np.zeros((n_running, len(self._snapshot.resources)), dtype=np.int64)
        np.add.at(used, np.repeat(np.arange(n_running), np.diff(running.indptr)), running.use)
        used += running.use_elsewhere
        array = dialect_of(self._snapshot).are_array_tasks(running.id.tolist())
        jobs = ~running.releasing
        return np.column_stack((used, running.licences, jobs, array & jobs)).astype(np.int64)
