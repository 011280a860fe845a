# SPDX-License-Identifier: Apache-2.0
"""search_orders refuses what does not fit together, and names it."""

import dataclasses
from typing import Any

import numpy as np
import pytest

from bridge.core import UNLIMITED, NodeProblem, search_orders
from tests.unit.core.test_arguments import NODES

PROBLEM = NodeProblem(**{**NODES, "depth": UNLIMITED})
REQUESTED: dict[str, Any] = {
    "unit_indptr": np.array([0, 1, 2]),
    "weight": np.array([1, 2]),
    "due": np.array([0, 0]),
    "orders": np.array([[0, 1], [1, 0]], dtype=np.int32),
    "lead": 0,
    "effort": 100,
    "steps": 0,
    "patience": 1,
    "seed": 0,
}


def test_what_fits_is_answered():
    found = search_orders(PROBLEM, **REQUESTED)
    assert sorted(found.order.tolist()) == [0, 1]


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"unit_indptr": np.array([0, 1])}, "unit_indptr"),
        ({"unit_indptr": np.array([0, 0, 2])}, "unit_indptr: unit 0 has no job"),
        ({"weight": np.array([1])}, "weight"),
        ({"weight": np.array([1, -1])}, "weight"),
        ({"weight": np.array([1, 2**41])}, "weight"),
        ({"due": np.array([0, -1])}, "due"),
        ({"orders": np.zeros((0, 2), dtype=np.int32)}, "orders: there is none"),
        ({"orders": np.array([[0, 0]], dtype=np.int32)}, "orders: row 0"),
        ({"orders": np.array([[0, 2]], dtype=np.int32)}, "orders: row 0"),
        ({"orders": np.array([[0, 1]])}, "orders"),
        ({"lead": 1}, "orders: row 1"),
        ({"lead": 3}, "lead"),
        ({"effort": -1}, "effort"),
        ({"steps": -1}, "steps"),
        ({"patience": -1}, "patience"),
    ],
)
def test_what_does_not_fit_is_refused(wrong, text):
    with pytest.raises(ValueError, match=text):
        search_orders(PROBLEM, **{**REQUESTED, **wrong})


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"depth": 1}, "depth"),
        ({"now": "noon"}, "now"),
        ({"tasks": np.array([0, -1], dtype=np.int32)}, "tasks"),
    ],
)
def test_a_problem_that_plan_nodes_would_refuse_is_refused(wrong, text):
    with pytest.raises(ValueError, match=text):
        search_orders(dataclasses.replace(PROBLEM, **wrong), **REQUESTED)
