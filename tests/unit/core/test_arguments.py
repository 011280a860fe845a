# SPDX-License-Identifier: Apache-2.0
"""Every refusal of the kernels is a ValueError that begins with the argument's name."""

from typing import Any

import numpy as np
import pytest

from bridge.core import (
    NEVER,
    UNLIMITED,
    Blocked,
    NodeProblem,
    plan_counts,
    plan_nodes,
    replay_counts,
)
from schedbridge_contracts.crosses import each


def i64(*values: int) -> np.ndarray[Any, Any]:
    return np.array(values, dtype=np.int64)


def i32(*values: int) -> np.ndarray[Any, Any]:
    return np.array(values, dtype=np.int32)


COUNTS: dict[str, Any] = {
    "now": 0,
    "capacity": 4,
    "running_end": i64(5),
    "running_count": i64(2),
    "count": i64(1, 4),
    "time_limit": i64(3, 3),
    "not_before": i64(0, 0),
    "depth": 1,
}

REPLAY: dict[str, Any] = {
    "submit": i64(0, 1),
    "runtime": i64(2, 2),
    "time_limit": i64(3, 3),
    "count": i64(1, 1),
    "capacity": 4,
    "depth": 1,
    "order": i64(0, 0),
}

NODES: dict[str, Any] = {
    "now": 0,
    "depth": UNLIMITED,
    "select": 0,
    "capacity": i64(8, 100, 8, 100).reshape(2, 2),
    "node_rank": i32(0, 0),
    "run_indptr": i64(0, 1),
    "run_nodes": i32(1),
    "run_use": i64(2, 10).reshape(1, 2),
    "run_end": i64(50),
    "run_exclusive": np.array([False]),
    "run_counter": i64(1).reshape(1, 1),
    "class_nodes": np.array([[3]], dtype=np.uint64),
    "blackout_class": i32(0),
    "blackout_start": i64(100),
    "blackout_end": i64(200),
    "blackout_nodes": np.array([[1]], dtype=np.uint64),
    "counter_capacity": i64(3),
    "job_counter": i64(0, 2).reshape(2, 1),
    "alt_indptr": i64(0, 1, 3),
    "alt_class": i32(0, 0, 0),
    "alt_time_limit_s": i64(10, 10, 20),
    "alt_min_nodes": i32(1, 1, 2),
    "alt_max_nodes": i32(1, 1, 2),
    "per_node": i64(1, 0, 0, 0).reshape(2, 2),
    "tasks": i32(0, 8),
    "per_task": i64(0, 0, 1, 10).reshape(2, 2),
    "max_tasks_per_node": i32(0, 4),
    "exclusive": np.array([True, False]),
    "not_before": i64(0, 0),
    "width_rule": np.array([0, 1], dtype=np.int8),
    "required": i32(-1, 0),
    "required_nodes": np.array([[2]], dtype=np.uint64),
    "alt_latest": i64(NEVER, NEVER, NEVER),
    "beside_depth": np.array([False, False]),
}


def test_the_examples_below_start_from_arguments_that_work() -> None:
    assert plan_counts(**COUNTS).tolist() == [0, 5]
    assert replay_counts(**REPLAY).start.tolist() == [0, 1]
    plan = plan_nodes(NodeProblem(**NODES))
    assert plan.start.tolist() == [0, 10]
    assert plan.alternative.tolist() == [0, 1]
    assert plan.indptr.tolist() == [0, 1, 3]
    assert plan.nodes.tolist() == [0, 0, 1]
    assert plan.tasks.tolist() == [0, 4, 4]
    assert plan.blocked_by.tolist() == [Blocked.STARTS_NOW, Blocked.NODES_BUSY]


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("now", -1, "now: -1 is less than 0"),
        ("capacity", 2**31, "capacity: 2147483648 is more than 1073741824"),
        ("depth", -1, "depth: -1 is less than 0"),
        ("count", i64(0, 1), "count: 0 at position 0 is less than 1"),
        ("count", i32(1, 1), "count: expected a C-contiguous NumPy array of int64, got ndarray of"),
        ("count", [1, 2], "count: expected a C-contiguous NumPy array of int64, got list"),
        ("count", i64(1, 9, 4, 9)[::2], "count: .* not contiguous"),
        ("count", i64(1, 4).reshape(1, 2), "count: expected 1 dimension"),
        ("time_limit", i64(3, 0), "time_limit: 0 at position 1 is less than 1"),
        ("time_limit", i64(3), r"time_limit: expected 2 rows \(like count\), got 1"),
        ("not_before", i64(), "not_before: expected 2 rows"),
        ("running_count", i64(-2), "running_count: -2 at position 0 is less than 0"),
        ("running_count", i64(1, 1), "running_count: expected 1 rows"),
    ],
)
def test_plan_counts_refuses(name: str, value: object, message: str) -> None:
    with pytest.raises(ValueError, match="^" + message):
        plan_counts(**{**COUNTS, name: value})


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("submit", i64(0, -1), "submit: -1 at position 1 is less than 0"),
        ("runtime", i64(0, 1), "runtime: 0 at position 0 is less than 1"),
        ("count", i64(1), "count: expected 2 rows"),
        ("order", i64(1), "order: expected 2 rows"),
    ],
)
def test_replay_counts_refuses(name: str, value: object, message: str) -> None:
    with pytest.raises(ValueError, match="^" + message):
        replay_counts(**{**REPLAY, name: value})


@each(name=[name for name in NODES if isinstance(NODES[name], np.ndarray)])
def test_plan_nodes_names_any_column_of_the_wrong_dtype_or_shape(name: str) -> None:
    column = NODES[name]
    for value in (column.astype(np.float64), column[None], np.concatenate([column, column])):
        if name in ("class_nodes", "required_nodes") and value.ndim == 2 and value.dtype != float:
            continue  # more sets than are used are allowed
        if name in ("run_end", "run_nodes", "tasks", "alt_class", "counter_capacity", "capacity"):
            # Others are measured against these, so one of the others is named.
            with pytest.raises(ValueError, match=r"^[a-z_]+: "):
                plan_nodes(NodeProblem(**{**NODES, name: value}))
            continue
        if name == "blackout_class" and value.dtype != float and value.ndim == 1:
            continue
        with pytest.raises(ValueError, match=f"^{name}: "):
            plan_nodes(NodeProblem(**{**NODES, name: value}))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("now", "noon", "now: expected a whole number"),
        ("select", 2, "select: 2 is more than 1"),
        ("capacity", i64(8, -1, 8, 9).reshape(2, 2), "capacity: -1 at position 1"),
        ("run_nodes", i32(2), "run_nodes: 2 at position 0 is more than 1"),
        ("run_indptr", i64(0, 2), "run_indptr: the last offset is 2, but run_nodes has 1 rows"),
        ("run_indptr", i64(1, 1), "run_indptr: offsets must begin with 0"),
        ("run_counter", i64(-1).reshape(1, 1), "run_counter: -1 at position 0"),
        ("class_nodes", np.array([[7]], np.uint64), "class_nodes: row 0 has a bit beyond the last"),
        ("blackout_end", i64(100), "blackout_end: blackout 0 does not end after it starts"),
        ("blackout_class", i32(1), "blackout_class: 1 at position 0 is more than 0"),
        ("alt_class", i32(0, 0, 1), "alt_class: 1 at position 2 is more than 0"),
        ("alt_indptr", i64(0, 0, 3), "alt_indptr: job 0 has no alternative"),
        ("alt_indptr", i64(0, 3, 1), "alt_indptr: offsets fall at position 2"),
        ("alt_time_limit_s", i64(0, 1, 1), "alt_time_limit_s: 0 at position 0 is less than 1"),
        ("alt_min_nodes", i32(1, 0, 2), "alt_min_nodes: 0 at position 1"),
        ("alt_max_nodes", i32(1, 1, 1), "alt_max_nodes: 1 at position 2 is less than alt_min"),
        ("width_rule", np.array([0, 5], np.int8), "width_rule: 5 at position 1 is more than 4"),
        ("required", i32(-2, 0), "required: -2 at position 0 is less than -1"),
        ("required", i32(1, 0), "required: 1 at position 0 is more than 0"),
        ("tasks", i32(0, -1), "tasks: -1 at position 1"),
        ("job_counter", i64(0, -1).reshape(2, 1), "job_counter: -1 at position 1"),
    ],
)
def test_plan_nodes_refuses(name: str, value: object, message: str) -> None:
    with pytest.raises(ValueError, match="^" + message):
        plan_nodes(NodeProblem(**{**NODES, name: value}))


def test_nothing_at_all_is_a_plan_too() -> None:
    assert plan_counts(0, 0, i64(), i64(), i64(), i64(), i64(), 0).tolist() == []
    replay = replay_counts(i64(), i64(), i64(), i64(), 0, UNLIMITED)
    assert (replay.start.tolist(), replay.decisions) == ([], 0)
    empty = {
        name: value[:0] if isinstance(value, np.ndarray) else value for name, value in NODES.items()
    }
    empty.update(run_indptr=i64(0), alt_indptr=i64(0))
    for name in ("class_nodes", "blackout_nodes", "required_nodes"):
        empty[name] = np.zeros((0, 0), dtype=np.uint64)
    empty["run_counter"] = np.zeros((0, 0), dtype=np.int64)
    empty["job_counter"] = np.zeros((0, 0), dtype=np.int64)
    plan = plan_nodes(NodeProblem(**empty))
    assert plan.start.tolist() == []
    assert plan.indptr.tolist() == [0]


def test_a_job_larger_than_the_machine_never_starts() -> None:
    assert plan_counts(**{**COUNTS, "count": i64(5, 1)}).tolist() == [NEVER, 0]
