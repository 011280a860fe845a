# SPDX-License-Identifier: Apache-2.0
"""Artificial queues and nodes that the benchmarks of the kernels plan."""

import enum
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bridge.core import NodeProblem, Select, pack_nodes

Column: TypeAlias = NDArray[np.int64]

_SIZES: Final = np.array([1, 2, 4, 8, 16, 32, 64, 128, 256])
_SIZE_WEIGHTS: Final = np.array([30, 14, 14, 14, 12, 8, 5, 2, 1])
_LIMITS_S: Final = np.array([600, 1800, 3600, 7200, 14400, 28800, 43200, 86400])
_LIMIT_WEIGHTS: Final = np.array([10, 10, 20, 12, 14, 10, 8, 16])
_NODE: Final = (64, 256_000, 4)  # cores, MiB, GPUs


class QueueShape(enum.StrEnum):
    """The shape of a queue."""

    CLUSTERED = "clustered"
    LOG = "log"


def _log_uniform(rng: np.random.Generator, low: int, high: int, n: int) -> Column:
    return np.exp(rng.uniform(np.log(low), np.log(high), n)).astype(np.int64)


def queue(shape: QueueShape, jobs: int, nodes: int, seed: int) -> tuple[Column, Column]:
    """Makes a queue.

    Args:
        shape: see the module.
        jobs: number of jobs.
        nodes: number of nodes; the maximum of a job.
        seed: of the random generator.

    Returns:
        Nodes wanted and time limits in s, both (jobs,) int64.
    """
    rng = np.random.default_rng(seed)
    if shape is QueueShape.LOG:
        return _log_uniform(rng, 1, nodes, jobs), _log_uniform(rng, 60, 86_400, jobs)
    sizes = rng.choice(_SIZES, jobs, p=_SIZE_WEIGHTS / _SIZE_WEIGHTS.sum())
    limits = rng.choice(_LIMITS_S, jobs, p=_LIMIT_WEIGHTS / _LIMIT_WEIGHTS.sum())
    return np.minimum(sizes, nodes).astype(np.int64), limits.astype(np.int64)


def shares(shape: QueueShape, jobs: int, seed: int) -> tuple[Column, Column]:
    """Makes the requests of the jobs of ``shared_nodes``.

    Returns:
        Nodes wanted, (jobs,), and cores, MiB and GPUs on each, (jobs, 3); int64.
    """
    rng = np.random.default_rng(seed + 1)
    if shape is QueueShape.LOG:
        cores, memory = _log_uniform(rng, 1, 64, jobs), _log_uniform(rng, 1000, 256_000, jobs)
    else:
        cores = rng.choice([1, 2, 4, 8, 16, 32], jobs)
        memory = cores * rng.choice([1000, 2000, 4000], jobs)
    gpus = rng.choice([0, 0, 0, 0, 1, 2], jobs)
    per_node = np.stack([cores, memory, gpus], axis=1).astype(np.int64)
    return rng.choice([1, 1, 1, 1, 2, 4], jobs).astype(np.int64), per_node


def node_problem(
    nodes: int, count: Column, limit_s: Column, per_node: Column | None, depth: int
) -> NodeProblem:
    """Makes a problem of ``plan_nodes``: one class, nothing running.

    Args:
        nodes: number of nodes, all alike.
        count: (n_jobs,) nodes wanted; at most ``nodes`` are asked for.
        limit_s: (n_jobs,) time limits, s.
        per_node: (n_jobs, 3) what a shared job wants of a node; None: whole nodes.
        depth: how many jobs may hold a reservation.
    """
    n_jobs, n_res = len(count), len(_NODE)
    wanted = np.minimum(count, nodes).astype(np.int32)

    def nothing(*shape: int, dtype: type[np.generic] = np.int64) -> NDArray[Any]:
        return np.zeros(shape, dtype=dtype)

    everywhere = pack_nodes(np.ones((1, nodes), dtype=np.bool_))
    nowhere = nothing(0, everywhere.shape[1], dtype=np.uint64)
    return NodeProblem(
        now=0,
        depth=depth,
        select=int(Select.SEQUENTIAL),
        capacity=np.tile(np.array(_NODE, dtype=np.int64), (nodes, 1)),
        node_rank=nothing(nodes, dtype=np.int32),
        run_indptr=nothing(1),
        run_nodes=nothing(0, dtype=np.int32),
        run_use=nothing(0, n_res),
        run_end=nothing(0),
        run_exclusive=nothing(0, dtype=np.bool_),
        run_counter=nothing(0, 0),
        class_nodes=everywhere,
        blackout_class=nothing(0, dtype=np.int32),
        blackout_start=nothing(0),
        blackout_end=nothing(0),
        blackout_nodes=nowhere,
        counter_capacity=nothing(0),
        job_counter=nothing(n_jobs, 0),
        alt_indptr=np.arange(n_jobs + 1, dtype=np.int64),
        alt_class=nothing(n_jobs, dtype=np.int32),
        alt_time_limit_s=limit_s,
        alt_min_nodes=wanted,
        alt_max_nodes=wanted,
        per_node=nothing(n_jobs, n_res) if per_node is None else per_node,
        tasks=nothing(n_jobs, dtype=np.int32),
        per_task=nothing(n_jobs, n_res),
        max_tasks_per_node=nothing(n_jobs, dtype=np.int32),
        exclusive=np.full(n_jobs, per_node is None),
        not_before=nothing(n_jobs),
        width_rule=nothing(n_jobs, dtype=np.int8),
        required=np.full(n_jobs, -1, dtype=np.int32),
        required_nodes=nowhere,
    )
