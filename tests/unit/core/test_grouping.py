# SPDX-License-Identifier: Apache-2.0
"""`group_numbers` and `group_objects`: groups in order of appearance."""

import random

import numpy as np
import pytest

from bridge.core import group_numbers, group_objects
from schedbridge_contracts.crosses import each


@each(seed=range(50))
def test_groups_are_numbered_as_they_appear(seed: int) -> None:
    chance = random.Random(seed)
    maximum = chance.choice([3, 50, 1 << 62])
    key = [chance.randrange(-maximum, maximum) for _ in range(chance.randrange(200))]
    number: dict[int, int] = {}
    which = [number.setdefault(one, len(number)) for one in key]
    first, found = group_numbers(np.array(key, dtype=np.int64))
    assert found.tolist() == which
    assert first.tolist() == [key.index(one) for one in number]


def test_objects_are_the_same_only_if_they_are_one() -> None:
    one, other = "".join(["a", "b"]), "".join(["a", "b"])
    first, which = group_objects([one, None, other, one, None])
    assert which.tolist() == [0, 1, 2, 0, 1]
    assert first.tolist() == [0, 1, 2]
    assert group_objects([])[1].tolist() == []


def test_another_kind_of_numbers_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^key: "):
        group_numbers(np.zeros(3, dtype=np.int32))  # type: ignore[arg-type]
