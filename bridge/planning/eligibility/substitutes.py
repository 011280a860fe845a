# SPDX-License-Identifier: Apache-2.0
"""Whether a job could run on other nodes than some, at whatever time.

Rules
    1. Nodes count that are usable, in a partition and in the reservation that the job named, not
       excluded, match its constraint, and hold one of its tasks when they are empty.
    2. Of one partition and one alternative of the constraint there must be as many as it needs,
       and with its maximum number of nodes they must hold all tasks.
"""

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from bridge.errors import RequestError
from bridge.model.snapshot import Snapshot
from bridge.planning.eligibility.node_classes import NodeClasses, mask_of


class Substitutes:
    """Nodes that could hold jobs of a snapshot instead of others."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot, self._classes = snapshot, NodeClasses(snapshot)

    def exist(self, job: int, nodes: Collection[int]) -> bool:
        """Whether a job could run without these nodes.

        Args:
            job: row in `Snapshot.jobs`.
            nodes: indexes of nodes.
        """
        snapshot = self._snapshot
        jobs, size = snapshot.jobs, len(snapshot.nodes)
        try:
            alternatives = self._classes.matching(jobs.features[job])
        except RequestError:
            return False
        tasks = _tasks_on_empty_nodes(snapshot, job)
        usable = snapshot.nodes.usable & (tasks > 0)
        usable[[*nodes, *jobs.excluded[job]]] = False
        reservation = int(jobs.reservation[job])
        if reservation >= 0 and not snapshot.reservations[reservation].anywhere:
            usable &= mask_of(size, snapshot.reservations[reservation].nodes)
        found = (
            tasks[usable & mask_of(size, snapshot.partitions[partition].nodes) & matching]
            for partition in jobs.partitions[job]
            for matching in alternatives
        )
        return any(_are_enough(each, snapshot, job) for each in found)


def _tasks_on_empty_nodes(snapshot: Snapshot, job: int) -> NDArray[np.int64]:
    """(n_nodes,) how many tasks each holds; without tasks, 1 where its node's part fits."""
    jobs, wanted = snapshot.jobs, int(snapshot.jobs.tasks[job])
    room = snapshot.nodes.capacity - jobs.per_node[job]
    per_task = jobs.per_task[job] if wanted else np.zeros_like(jobs.per_task[job])
    found = np.where((room >= 0).all(axis=1), max(wanted, 1), 0)
    for column in np.flatnonzero(per_task).tolist():
        found = np.minimum(found, room[:, column] // per_task[column])
    return np.maximum(found, 0)


def _are_enough(tasks: NDArray[np.int64], snapshot: Snapshot, job: int) -> bool:
    """Rule 2, of the numbers of tasks that nodes hold."""
    jobs = snapshot.jobs
    max_nodes = int(jobs.max_nodes[job]) or len(tasks)
    held = int(np.sort(tasks)[::-1][:max_nodes].sum())
    return len(tasks) >= max(int(jobs.min_nodes[job]), 1) and held >= int(jobs.tasks[job])
