# SPDX-License-Identifier: Apache-2.0
"""The rows of a cycle as the columns in which kernels take them (`bridge.core.plan_nodes`)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridge.core import UNLIMITED, pack_nodes
from bridge.model.job import JobTable
from bridge.planning.kinds import latest_start_s
from bridge.planning.rows import Rows
from bridge.ports import Preference


def node_columns(rows: Rows, preference: Preference) -> dict[str, Any]:
    """All arguments of `plan_nodes`, with no bound to the depth.

    Args:
        rows: those asked about are planned.
        preference: how to pick nodes.
    """
    snapshot, running, alternatives = rows.snapshot, rows.snapshot.running, rows.alternatives
    jobs, take = snapshot.jobs, rows.job[rows.asked]
    required, required_nodes = _required(jobs, take, len(snapshot.nodes))
    b_class, b_start, b_end, b_nodes = rows.eligibility.blackouts()
    by_alternative = np.repeat(take, np.diff(alternatives.indptr))
    return {
        "now": snapshot.now_s,
        "depth": UNLIMITED,
        "select": int(preference.selection),
        "capacity": np.ascontiguousarray(snapshot.nodes.capacity),
        "node_rank": preference.rank,
        "run_indptr": running.indptr,
        "run_nodes": running.nodes,
        "run_use": np.ascontiguousarray(running.use),
        "run_end": running.end_s,
        "run_exclusive": running.exclusive,
        "run_counter": np.ascontiguousarray(running.licences),
        "class_nodes": rows.eligibility.class_nodes(),
        "blackout_class": b_class,
        "blackout_start": b_start,
        "blackout_end": b_end,
        "blackout_nodes": b_nodes,
        "counter_capacity": snapshot.licence_total,
        "job_counter": np.ascontiguousarray(jobs.licences[take]),
        "alt_indptr": alternatives.indptr,
        "alt_class": alternatives.class_.astype(np.int32),
        "alt_time_limit_s": alternatives.time_limit_s,
        "alt_min_nodes": alternatives.min_nodes.astype(np.int32),
        "alt_max_nodes": alternatives.max_nodes.astype(np.int32),
        "alt_latest": latest_start_s(
            jobs, by_alternative, alternatives.time_limit_s, snapshot.now_s
        ),
        "per_node": np.ascontiguousarray(jobs.per_node[take]),
        "tasks": jobs.tasks[take].astype(np.int32),
        "per_task": np.ascontiguousarray(jobs.per_task[take]),
        "max_tasks_per_node": jobs.max_tasks_per_node[take].astype(np.int32),
        "exclusive": jobs.exclusive[take],
        "not_before": rows.not_before_s(),
        "width_rule": jobs.width_rule[take],
        "required": required,
        "required_nodes": required_nodes,
    }


def _required(
    jobs: JobTable, take: NDArray[np.int64], n_nodes: int
) -> tuple[NDArray[np.int32], NDArray[np.uint64]]:
    """Rows of the required-node bitsets per job (-1: none), and the bitsets."""
    index: dict[tuple[int, ...], int] = {}
    rows = np.fromiter(
        (index.setdefault(nodes, len(index)) if nodes else -1 for nodes in jobs.required[take]),
        dtype=np.int32,
        count=len(take),
    )
    masks = np.zeros((len(index), n_nodes), dtype=bool)
    for nodes, position in index.items():
        masks[position, list(nodes)] = True
    return rows, pack_nodes(masks)
