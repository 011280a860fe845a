# SPDX-License-Identifier: Apache-2.0
"""What every order policy must do."""

import numpy as np
import pytest

from bridge.registry import build, parse_policy
from schedbridge_contracts import subject
from schedbridge_contracts.alike import assert_alike
from schedbridge_contracts.builders import a_snapshot
from schedbridge_contracts.crosses import each
from schedbridge_contracts.worlds import random_world

ORDERS = subject.tried("order")


def order_of(snapshot, order):
    return build(parse_policy({"order": order})).order.order(snapshot)


@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
class TestEveryOrder:
    @each(seed=range(20))
    def test_each_row_has_one_place(self, order, seed):
        world = random_world(seed, chunks=bool(seed % 2))
        rows = order_of(world, order)
        assert rows.dtype == np.int64
        assert sorted(rows.tolist()) == list(range(len(world.jobs)))

    def test_no_job_is_no_row(self, order):
        rows = order_of(a_snapshot()(), order)
        assert rows.dtype == np.int64
        assert rows.shape == (0,)

    @each(seed=range(5))
    def test_it_changes_nothing_and_decides_the_same_again(self, order, seed):
        world = random_world(seed)
        first = order_of(world, order)
        assert_alike(world, random_world(seed))
        assert order_of(world, order).tolist() == first.tolist()
