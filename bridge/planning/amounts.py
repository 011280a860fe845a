# SPDX-License-Identifier: Apache-2.0
"""What jobs use of everything that rules count, as columns.

Columns: the node resources of the snapshot, its licences, "jobs", "arrayjobs".

Rules
    1. A pending job uses its nodes times `per_node`, plus its tasks times `per_task`, plus its
       licences; with chunks of several kinds, all its chunks, and its nodes times what each needs.
    2. A job that takes whole nodes uses their CPUs and memory: those of the average usable node of
       its partition, rounded up, and no less than it asks for. Generic resources count only where
       it asks for them.
    3. A running job uses what the controller says it holds.
    4. Each job, and each task of an array, is one of "jobs"; tasks are one of "arrayjobs", too.
    5. Available is what usable nodes have, and the licences this cluster may use.

Source: Keller, JSSPP 2017, section 5.4 (exclusive node access: an average node counts).
Deviates: the paper averages over all nodes, this over those of the job's partition.
"""

import numpy as np
from numpy.typing import NDArray

from bridge.model.limits import COUNTED
from bridge.model.node import MEMORY_MIB
from bridge.model.snapshot import Snapshot
from bridge.units import NEVER

_ALSO = {"mem": "mem_mib", "ncpus": "cpus", "cores": "cpus"}


def plain_name(name: str) -> str:
    """The name of a column by one that users know."""
    return _ALSO.get(name, name)


class Amounts:
    """Amounts of one snapshot.

    Attributes:
        names: of the columns.
        n_asked: columns that a job may ask for; "jobs" and "arrayjobs" follow.
        available: (n_columns,) int64; NEVER for "jobs" and "arrayjobs".
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        nodes = snapshot.nodes
        self.names = (*snapshot.resources, *snapshot.licences, *COUNTED)
        self.n_asked = len(self.names) - len(COUNTED)
        everywhere = nodes.capacity[nodes.usable].sum(axis=0)
        self.available = self._columns(everywhere)
        self._in_partition: list[NDArray[np.int64]] = []
        average = []
        for part in snapshot.partitions:
            up = nodes.capacity[part.nodes[nodes.usable[part.nodes]]]
            total = up.sum(axis=0)
            self._in_partition.append(self._columns(total))
            average.append(-(-total // max(len(up), 1)))
        shape = (len(average), len(snapshot.resources))
        self._average = np.array(average, dtype=np.int64).reshape(shape)
        self._whole = np.array([part.exclusive for part in snapshot.partitions], dtype=bool)

    def _columns(self, resources: NDArray[np.int64]) -> NDArray[np.int64]:
        counted = np.full(2, NEVER, dtype=np.int64)
        return np.concatenate((resources, self._snapshot.licence_total, counted)).astype(np.int64)

    def column(self, name: str) -> int | None:
        """The column of a resource by the name that users know; None: there is none."""
        name = plain_name(name)
        return self.names.index(name) if name in self.names else None

    def available_in(self, partition: int) -> NDArray[np.int64]:
        """(n_columns,) what is available in one partition."""
        return self._in_partition[partition]

    def asked(self, rows: NDArray[np.int64], nodes: NDArray[np.int64]) -> NDArray[np.int64]:
        """What pending jobs ask for, without what they take beside (rule 2).

        Args:
            rows: (n,) rows of `snapshot.jobs`.
            nodes: (n,) on how many nodes.

        Returns:
            (n, n_columns) int64.
        """
        jobs = self._snapshot.jobs
        asked = nodes[:, None] * jobs.per_node[rows]
        asked += jobs.tasks[rows][:, None] * jobs.per_task[rows]
        self._add_chunks(rows, nodes, asked)
        array = jobs.array_tasks[rows] > 0
        return np.column_stack((asked, jobs.licences[rows], np.ones_like(rows), array))

    def of_jobs(
        self, rows: NDArray[np.int64], partition: NDArray[np.int64], nodes: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """What pending jobs use; one task of an array counts for itself.

        Args:
            rows: (n,) rows of `snapshot.jobs`.
            partition: (n,) where each would run.
            nodes: (n,) on how many nodes.

        Returns:
            (n, n_columns) int64.
        """
        used = self.asked(rows, nodes)
        whole = np.flatnonzero(self._snapshot.jobs.exclusive[rows] | self._whole[partition])
        if len(whole):
            taken = nodes[whole][:, None] * self._average[partition[whole]]
            both = slice(0, MEMORY_MIB + 1)
            used[whole, both] = np.maximum(used[whole, both], taken[:, both])
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
        """(n_running, n_columns) what running jobs hold."""
        running = self._snapshot.running
        n_running = len(running)
        used = np.zeros((n_running, len(self._snapshot.resources)), dtype=np.int64)
        np.add.at(used, np.repeat(np.arange(n_running), np.diff(running.indptr)), running.use)
        array = np.fromiter(("_" in name for name in running.id), dtype=np.int64, count=n_running)
        return np.column_stack((used, running.licences, np.ones(n_running, dtype=np.int64), array))
