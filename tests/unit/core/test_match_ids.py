# SPDX-License-Identifier: Apache-2.0
"""`match_ids`: what a dictionary would say, whoever shares the texts."""

import random

import pytest

from bridge.core import match_ids
from schedbridge_contracts.crosses import each


def copied(text: str) -> str:
    """The same text as another object."""
    return text.encode().decode()


@each(seed=range(200))
def test_it_finds_what_a_dictionary_finds(seed: int) -> None:
    chance = random.Random(seed)
    former = [f"job{at}" for at in chance.sample(range(60), chance.randrange(40))]
    ids = [one for one in former if chance.random() < 0.8]
    ids[len(ids) // 2 : 0] = [f"new{at}" for at in range(chance.randrange(4))]
    ids = [copied(one) if chance.random() < 0.3 else one for one in ids]
    if chance.random() < 0.5:
        chance.shuffle(ids)
    ids += ids[:2]  # tasks of an array share an id
    row = {job_id: at for at, job_id in enumerate(former)}
    expected = [row.get(job_id, -1) for job_id in ids]
    assert match_ids(former, ids).tolist() == expected
    assert match_ids(tuple(former), tuple(ids)).tolist() == expected


def test_only_lists_and_tuples_are_taken() -> None:
    with pytest.raises(ValueError, match=r"^ids: expected a list or a tuple"):
        match_ids([], "12")  # type: ignore[arg-type, unused-ignore]
    with pytest.raises(TypeError):
        match_ids([], [[]])  # type: ignore[list-item]
