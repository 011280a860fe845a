# SPDX-License-Identifier: Apache-2.0
"""What `plan_nodes` plans: nodes, running jobs, and waiting jobs with their alternatives."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeProblem:
    """The columns that `plan_nodes` and `search_orders` read; C++ has them by the same names.

    Node sets are bitsets of `n_words = ceil(n_nodes / 64)` words: node i is bit `i % 64` of word
    `i // 64` (see `pack_nodes`).

    Attributes:
        now: the time of the plan, s.
        depth: how many jobs may hold a reservation, >= 0.
        select: a `Select` code.
        capacity: (n_nodes, n_res) what the nodes have: column 0 CPUs, 1 memory in MiB, others
            generic resources. 0 to 2**40, like all amounts below.
        node_rank: (n_nodes,) selection order, ascending.
        run_indptr: (n_run + 1,) CSR offsets of running jobs (or whatever else holds nodes) into
            `run_nodes` and `run_use`.
        run_nodes: (nnz,) node indices.
        run_use: (nnz, n_res) what is held there, >= 0.
        run_end: (n_run,) expected ends, s; NEVER for one that does not end.
        run_exclusive: (n_run,) whether it holds its nodes whole.
        run_counter: (n_run, n_counters) counters held, >= 0.
        class_nodes: (n_class, n_words) the nodes of each eligibility class.
        blackout_class: (n_blackouts,) the class each blackout is for.
        blackout_start: (n_blackouts,) s.
        blackout_end: (n_blackouts,) s, > start; NEVER for one without end.
        blackout_nodes: (n_blackouts, n_words) the nodes closed to that class in [start, end).
        counter_capacity: (n_counters,) e.g. licences; each at most 2**30.
        job_counter: (n_jobs, n_counters) wanted for the job's whole length, >= 0.
        alt_indptr: (n_jobs + 1,) CSR offsets of the jobs' alternatives; each job has one or more.
        alt_class: (n_alt,) eligibility class.
        alt_time_limit_s: (n_alt,) length, s, >= 1.
        alt_min_nodes: (n_alt,) minimum of nodes, >= 1.
        alt_max_nodes: (n_alt,) maximum, >= the minimum.
        per_node: (n_jobs, n_res) requested on each node, >= 0.
        tasks: (n_jobs,) tasks in all; 0: only `per_node` counts.
        per_task: (n_jobs, n_res) requested for each task, >= 0.
        max_tasks_per_node: (n_jobs,) 0: no limit.
        exclusive: (n_jobs,) whether it requests whole nodes.
        not_before: (n_jobs,) earliest allowed start, s; anything <= now means none.
        width_rule: (n_jobs,) `WidthRule` codes.
        required: (n_jobs,) row of `required_nodes` whose nodes must all be in the set; -1: none.
        required_nodes: (n_required, n_words).
        alt_latest: (n_alt,) latest allowed starts, s; NEVER: any. A job that could start only later
            takes no place. None: all may start at any time.
        beside_depth: (n_jobs,) jobs that hold a reservation whatever the depth, and do not count in
            it. None: there are none.
    """

    now: int
    depth: int
    select: int
    capacity: NDArray[np.int64]
    node_rank: NDArray[np.int32]
    run_indptr: NDArray[np.int64]
    run_nodes: NDArray[np.int32]
    run_use: NDArray[np.int64]
    run_end: NDArray[np.int64]
    run_exclusive: NDArray[np.bool_]
    run_counter: NDArray[np.int64]
    class_nodes: NDArray[np.uint64]
    blackout_class: NDArray[np.int32]
    blackout_start: NDArray[np.int64]
    blackout_end: NDArray[np.int64]
    blackout_nodes: NDArray[np.uint64]
    counter_capacity: NDArray[np.int64]
    job_counter: NDArray[np.int64]
    alt_indptr: NDArray[np.int64]
    alt_class: NDArray[np.int32]
    alt_time_limit_s: NDArray[np.int64]
    alt_min_nodes: NDArray[np.int32]
    alt_max_nodes: NDArray[np.int32]
    per_node: NDArray[np.int64]
    tasks: NDArray[np.int32]
    per_task: NDArray[np.int64]
    max_tasks_per_node: NDArray[np.int32]
    exclusive: NDArray[np.bool_]
    not_before: NDArray[np.int64]
    width_rule: NDArray[np.int8]
    required: NDArray[np.int32]
    required_nodes: NDArray[np.uint64]
    alt_latest: NDArray[np.int64] | None = None
    beside_depth: NDArray[np.bool_] | None = None
