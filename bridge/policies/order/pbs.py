# SPDX-License-Identifier: Apache-2.0
"""PBS's order: queue, job_sort_formula, then fair share.

Terms
    entity      whom a job counts for in fair share (`JobTable.share_of`): usually its user.

Rules
    1. Jobs that run in a reservation first, then higher partition tier, then higher priority.
    2. Among these equals, the entity with the least usage for its share goes first. Each job that
       is put in the order adds what it would use to the usage of its entity, so that entities take
       turns. Jobs of entities without shares go last.
    3. Then earlier submission, ties by job id; so also for jobs of one entity, and where the
       controller states no shares.

Source: OpenPBS 23.06, Administrator's Guide, Using Fairshare and Sorting Jobs.
Deviates: pbs_sched adds a job's use when it starts the job, and here every job in the order does,
as all of them are planned.
"""

import heapq
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridge.model.snapshot import Snapshot
from bridge.policies.order.slurm import partition_tiers


@dataclass(frozen=True)
class PbsOrder:
    """Orders by the controller's priorities, and equals by fair share."""

    def order(self, snapshot: Snapshot) -> NDArray[np.int64]:
        """Returns the rows by reservation, tier, priority, fair share, submission and id."""
        jobs = snapshot.jobs
        keys = (-jobs.priority, -partition_tiers(snapshot), jobs.reservation < 0)
        rows = np.lexsort((jobs.submit_s, *keys)).astype(np.int64, copy=False)
        if not np.any(jobs.share_of):
            return rows
        equal = np.ones(len(rows), dtype=bool)
        for key in keys:
            equal[1:] &= key[rows][1:] == key[rows][:-1]
        equal[:1] = False
        used: dict[str, float] = {}
        parts = np.split(rows, np.flatnonzero(~equal)[1:])
        return np.concatenate([_in_turns(part, snapshot, used) for part in parts])


def _in_turns(
    rows: NDArray[np.int64], snapshot: Snapshot, used: dict[str, float]
) -> NDArray[np.int64]:
    """Equal rows by fair share; `used` is the usage of entities, with the jobs ordered so far."""
    jobs = snapshot.jobs
    queues: dict[str, list[int]] = {}
    for row in rows.tolist():
        queues.setdefault(jobs.share_of[row], []).append(row)
    shares = {entity: int(jobs.share_ppm[queue[0]]) for entity, queue in queues.items()}

    def key(entity: str) -> tuple[float, int]:
        row = queues[entity][at[entity]]
        usage = used.setdefault(entity, float(jobs.share_usage[row]))
        share = shares[entity]
        return (usage / share if share else np.inf, place[row])

    at = dict.fromkeys(queues, 0)
    place = {row: number for number, row in enumerate(rows.tolist())}
    heap = [(*key(entity), entity) for entity in queues]
    heapq.heapify(heap)
    found = []
    while heap:
        *_, entity = heapq.heappop(heap)
        row = queues[entity][at[entity]]
        found.append(row)
        used[entity] += max(float(jobs.share_cost[row]), 0.0)
        at[entity] += 1
        if at[entity] < len(queues[entity]):
            heapq.heappush(heap, (*key(entity), entity))
    return np.array(found, dtype=np.int64)
