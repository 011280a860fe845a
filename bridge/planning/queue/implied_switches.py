# SPDX-License-Identifier: Apache-2.0
"""Implied requests for few leaf switches: `topology: {wait_s: T}`.

Rules
    1. A job that may have two or more nodes and does not request leaf switches gets a request for
       the least number of them that could hold it if all usable nodes were idle. It waits for that
       at most T seconds (`bridge.planning.eligibility.leaf_switches`).
    2. A job that has waited for T seconds, or that no fabric can hold, gets no such request.
"""

import dataclasses

import numpy as np
from numpy.typing import NDArray

from bridge.model.reasons import Reason
from bridge.model.snapshot import Snapshot
from bridge.planning.eligibility.alternatives import Alternative, Eligibility
from bridge.planning.eligibility.leaf_switches import Leaves, SwitchLoad, SwitchRequest, since_s
from bridge.planning.queue.rows import plannable


def imply(snapshot: Snapshot, wait_s: int) -> Snapshot:
    """The snapshot with requests for few leaf switches added to jobs without one.

    Args:
        snapshot: as reported by the controller; returned unchanged without a topology.
        wait_s: how long jobs wait; 0: nothing is changed.
    """
    jobs = snapshot.jobs
    if snapshot.topology is None or not wait_s:
        return snapshot
    silent = (jobs.switches == 0) & (jobs.max_nodes > 1) & plannable(jobs)
    rows = np.flatnonzero(silent & (since_s(jobs) + wait_s > snapshot.now_s))
    if not len(rows):
        return snapshot
    switches, waits_s = jobs.switches.copy(), jobs.switches_wait_s.copy()
    switches[rows] = _Fewest(snapshot, Leaves.of(snapshot.topology)).of(rows)
    waits_s[rows] = np.where(switches[rows] > 0, wait_s, 0)
    return dataclasses.replace(
        snapshot, jobs=dataclasses.replace(jobs, switches=switches, switches_wait_s=waits_s)
    )


class _Fewest:
    """The least number of leaf switches for the jobs of a snapshot."""

    def __init__(self, snapshot: Snapshot, leaves: Leaves) -> None:
        self._snapshot, self._leaves = snapshot, leaves
        self._load, self._eligibility = SwitchLoad(snapshot), Eligibility(snapshot)
        self._known: dict[tuple[object, ...], int] = {}

    def of(self, rows: NDArray[np.int64]) -> NDArray[np.int32]:
        """(n,) for rows of the jobs; 0: there is none."""
        jobs, known = self._snapshot.jobs, self._known
        found = []
        for row, answer in zip(
            rows.tolist(), self._eligibility.alternatives(rows.astype(np.int64)), strict=True
        ):
            if isinstance(answer, Reason):
                found.append(0)
                continue
            key = (
                tuple((one.class_, one.min_nodes) for one in answer),
                int(jobs.tasks[row]), int(jobs.max_tasks_per_node[row]),
                jobs.per_node[row].tobytes(), jobs.per_task[row].tobytes(),
            )  # fmt: skip
            if key not in known:
                minimum = [self._on(row, alternative) for alternative in answer]
                known[key] = min((count for count in minimum if count), default=0)
            found.append(known[key])
        return np.array(found, dtype=np.int32)

    def _on(self, row: int, alternative: Alternative) -> int:
        """The least number for one alternative, over all fabrics; 0: there is none."""
        leaves = self._leaves
        requested = self._load.request(row, alternative.min_nodes)
        mask = self._eligibility.classes.mask(alternative.class_) & (leaves.of_node >= 0)
        holding = np.flatnonzero(mask & (requested.on_idle > 0))
        on, size = leaves.of_node[holding], len(leaves.fabric)
        units = np.bincount(on, weights=requested.on_idle[holding], minlength=size).astype(np.int64)
        nodes = np.bincount(on, minlength=size)
        counts = [
            _fewest(units[leaves.fabric == fabric], nodes[leaves.fabric == fabric], requested)
            for fabric in range(leaves.n_fabrics)
        ]
        return min((count for count in counts if count), default=0)


def _fewest(units: NDArray[np.int64], nodes: NDArray[np.int64], requested: SwitchRequest) -> int:
    """How many of a fabric's leaf switches, largest first, hold a job; 0: not even all."""
    order = np.lexsort((-nodes, -units))
    enough = (units[order].cumsum() >= requested.units) & (nodes[order].cumsum() >= requested.nodes)
    return int(enough.argmax()) + 1 if enough.any() else 0
