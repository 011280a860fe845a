# SPDX-License-Identifier: Apache-2.0
"""The usage vector: the paper's figures 2 and 3, and a list of seconds as its oracle."""

import numpy as np
import pytest

from bridge.core import NEVER
from bridge.planning.site_rules.usage_vector import UsageVector
from schedbridge_contracts.crosses import each


def used(*slots: tuple[int, int, int]) -> UsageVector:
    vector = UsageVector()
    for slot in slots:
        vector.increment(*slot)
    return vector


def seconds(vector: UsageVector, until: int) -> list[int]:
    return [vector.max_used(at, at + 1) for at in range(until)]


def test_figure_2_used_items_of_every_second():
    vector = used((2, 5, 4), (5, 8, 7), (12, NEVER, 3))
    assert seconds(vector, 14) == [0, 0, 4, 4, 4, 7, 7, 7, 0, 0, 0, 0, 3, 3]
    assert vector.max_used(0, 10**12) == 7
    assert vector.max_used(8, NEVER) == 3


# Figure 3: how a new slot of 2 items can lie over an old one, here [10, 20) with 3 items.
OVERLAPS = {
    "inside": (12, 18),
    "the same": (10, 20),
    "around it": (5, 25),
    "over its begin": (5, 15),
    "over its end": (15, 25),
    "from its begin": (10, 15),
    "to its end": (15, 20),
    "before, touching": (5, 10),
    "after, touching": (20, 25),
    "before": (2, 5),
    "after": (25, 30),
    "without end": (15, NEVER),
}


@pytest.mark.parametrize("case", OVERLAPS)
def test_figure_3_increment(case):
    start, end = OVERLAPS[case]
    expected = [3 * (10 <= at < 20) + 2 * (start <= at < end) for at in range(35)]
    vector = used((10, 20, 3), (start, end, 2))
    assert seconds(vector, 35) == expected
    vector.increment(start, end, -2)
    assert seconds(vector, 35) == [3 * (10 <= at < 20) for at in range(35)]


@each(seed=range(20))
def test_equals_a_list_of_seconds(seed):
    rng = np.random.default_rng(seed)
    vector, oracle = UsageVector(), np.zeros(60, dtype=np.int64)
    for _ in range(60):
        start, end = sorted(rng.choice(61, 2, replace=False).tolist())
        items = int(rng.integers(-5, 9))
        vector.increment(start, end, items)
        oracle[start:end] += items
        start, end = sorted(rng.choice(61, 2, replace=False).tolist())
        assert vector.max_used(start, end) == oracle[start:end].max()
