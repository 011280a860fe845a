# SPDX-License-Identifier: Apache-2.0
"""Slurm's own order: what priority/multifactor (fair share, age, QOS, size ...) computed.

Rules
    1. Jobs that run in a reservation first.
    2. Higher partition tier first; of several partitions the highest tier counts.
    3. Higher priority first.
    4. Earlier submission first, ties by job id.

Source: sort_job_queue2 in slurmctld's job_scheduler.c, reimplemented; sbatch(1), slurm.conf(5).
Deviates: a job of several partitions is one entry, not one per partition.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridge.model.snapshot import Snapshot


@dataclass(frozen=True)
class SlurmPriority:
    """Orders by the controller's priorities."""

    def order(self, snapshot: Snapshot) -> NDArray[np.int64]:
        """Returns the rows by reservation, tier, priority, submission and id."""
        jobs = snapshot.jobs
        keys = (jobs.submit_s, -jobs.priority, -partition_tiers(snapshot), jobs.reservation < 0)
        sorting = [key for key in keys if len(key) and (key != key[0]).any()]
        if not sorting:
            return np.arange(len(jobs), dtype=np.int64)
        return np.lexsort(sorting).astype(np.int64, copy=False)


def partition_tiers(snapshot: Snapshot) -> NDArray[np.int64]:
    """(n_jobs,) the highest tier of each job's partitions; zeros if all have the same."""
    jobs = snapshot.jobs
    tiers = np.array([part.priority_tier for part in snapshot.partitions], dtype=np.int64)
    if len(tiers) == 0 or (tiers == tiers[0]).all():
        return np.zeros(len(jobs), dtype=np.int64)
    return np.fromiter(
        (max((tiers[p] for p in parts), default=0) for parts in jobs.partitions),
        dtype=np.int64,
        count=len(jobs),
    )
