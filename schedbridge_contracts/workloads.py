# SPDX-License-Identifier: Apache-2.0
"""Workloads for tests."""

from collections.abc import Sequence

import numpy as np

from bridge.lab.sim.workloads.workload import Workload


def a_workload(jobs: Sequence[tuple[int, int, int, int]], processors: int) -> Workload:
    """Jobs as (submit_s, runtime_s, time_limit_s, processors); ids are their positions from 1."""
    table = np.array(jobs, dtype=np.int64).reshape(-1, 4)
    table = table[np.argsort(table[:, 0], kind="stable")]
    unknown = np.full(len(table), -1, dtype=np.int64)
    return Workload(
        name="test",
        processors_total=processors,
        id=np.array([str(index + 1) for index in range(len(table))], dtype=object),
        submit_s=table[:, 0].copy(),
        runtime_s=np.minimum(table[:, 1], table[:, 2]),
        time_limit_s=table[:, 2].copy(),
        processors=table[:, 3].copy(),
        memory_kib=np.zeros(len(table), dtype=np.int64),
        user=unknown,
        group=unknown,
        executable=unknown,
        queue=unknown,
        row=np.arange(len(table)),
        left_out={},
    )


def random_workload(seed: int, n_jobs: int, processors: int) -> Workload:
    """Jobs whose sizes, times and gaps differ by orders of magnitude; the same for a seed."""
    rng = np.random.default_rng(seed)
    limit_s = np.exp(rng.uniform(0, 8, n_jobs)).astype(np.int64) + 1
    return a_workload(
        np.column_stack(
            (
                1 + np.cumsum(rng.integers(0, 200, n_jobs) * (rng.random(n_jobs) < 0.7)),
                np.maximum(1, (limit_s * rng.random(n_jobs)).astype(np.int64)),
                limit_s,
                np.minimum(processors, np.exp(rng.uniform(0, 3, n_jobs)).astype(np.int64)),
            )
        ).tolist(),
        processors,
    )
