# SPDX-License-Identifier: Apache-2.0
"""Corridors of power, and what they refuse."""

import pytest

from bridge.extensions.power.rules import NO_UPPER_W, Corridor, NodePower
from bridge.model.rules.node_set import NodeSet


def test_each_step_holds_until_the_next_and_the_last_for_ever():
    corridor = Corridor((0, 100, 200), (5, 0, 7), (50, NO_UPPER_W, 70))
    assert corridor.at(0) == (5, 50)
    assert corridor.at(99) == (5, 50)
    assert corridor.at(100) == (0, NO_UPPER_W)
    assert corridor.at(1 << 40) == (7, 70)


def test_without_steps_of_its_own_it_bounds_nothing():
    assert Corridor().at(12345) == (0, NO_UPPER_W)


@pytest.mark.parametrize(
    ("starts_s", "lower_w", "upper_w", "message"),
    [
        ((), (), (), "first step must start at 0"),
        ((10,), (0,), (1,), "first step must start at 0"),
        ((0, 5, 5), (0, 0, 0), (1, 1, 1), "must ascend"),
        ((0,), (2,), (1,), "lower bound 2 W and upper bound 1 W"),
        ((0,), (-1,), (1,), "lower bound -1 W"),
        ((0, 5), (0,), (1,), "each step needs"),
    ],
)
def test_bounds_that_make_no_sense_are_refused(
    starts_s: tuple[int, ...], lower_w: tuple[int, ...], upper_w: tuple[int, ...], message: str
):
    with pytest.raises(ValueError, match=message):
        Corridor(starts_s, lower_w, upper_w)


@pytest.mark.parametrize(("idle_w", "max_w"), [(-1, 10), (20, 10)])
def test_a_node_draws_at_most_its_maximum_and_at_least_nothing(idle_w: int, max_w: int):
    with pytest.raises(ValueError, match="node type thin"):
        NodePower("thin", NodeSet(), idle_w, max_w)
