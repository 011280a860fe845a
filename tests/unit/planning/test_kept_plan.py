# SPDX-License-Identifier: Apache-2.0
"""The kept plan as bytes: read again as it was, and refused if anything is wrong with it."""

import json
import time
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.model.resources import Arrangement
from bridge.planning.booking import Kept
from bridge.planning.kept_plan import KeptPlan, from_bytes, to_bytes
from bridge.planning.layouts import Group, Layout


def a_plan(n_jobs=3, width=2, n_nodes=10):
    layout = Layout(
        (Group(0, 2, (1, 512, 0), 1, 1, 0), Group(0, 1, (2, 0, 1))), Arrangement.SCATTER, True, 3
    )
    other = Layout((Group(0, 1, (1, 1, 1)),), Arrangement.FREE, False, 1)
    places = {
        f"{job}_é": Kept(
            1_700_000_000 + job, job % 2, 0, layout if job % 2 else other,
            (np.arange(width, dtype=np.int32) + job) % n_nodes,
            np.full(width, 0, dtype=np.int32),
            np.full(width, 1 + job % 3, dtype=np.int32),
            late=job % 2 == 0, blocked=1 + job % 3, ceiling_key=f"user/u{job % 2}/cpus",
        )
        for job in range(n_jobs)
    }  # fmt: skip
    return KeptPlan(tuple(f"n{at}" for at in range(n_nodes)), places)


def same(mine, theirs):
    assert mine.names == theirs.names
    assert list(mine.places) == list(theirs.places)
    for one, other in zip(mine.places.values(), theirs.places.values(), strict=True):
        for name in Kept.__dataclass_fields__:
            left, right = getattr(one, name), getattr(other, name)
            if isinstance(left, np.ndarray):
                assert left.dtype == right.dtype
                assert left.tolist() == right.tolist()
            else:
                assert left == right
                assert type(left) is type(right)


@pytest.mark.parametrize("n_jobs", [0, 1, 7])
def test_it_is_read_as_it_was(n_jobs):
    plan = a_plan(n_jobs)
    same(from_bytes(to_bytes(plan)), plan)


def test_layouts_stay_shared():
    places = list(from_bytes(to_bytes(a_plan(4))).places.values())
    assert places[0].layout is places[2].layout
    assert places[0].layout.alike(places[2].layout)


def test_another_version_is_named():
    value = to_bytes(a_plan()).replace(b'"version":1', b'"version":7', 1)
    with pytest.raises(ValueError, match="has version 7, this service writes 1"):
        from_bytes(value)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_damaged_one_is_refused_or_harmless(data):
    """Never anything but ValueError; what is read has numbers that stand for something."""
    value = bytearray(to_bytes(a_plan(5)))
    how = data.draw(st.sampled_from(["flip", "cut", "add"]))
    at = data.draw(st.integers(0, len(value) - 1))
    if how == "flip":
        value[at] ^= data.draw(st.integers(1, 255))
    elif how == "cut":
        del value[at:]
    else:
        value[at:at] = data.draw(st.binary(min_size=1, max_size=20))
    try:
        read = from_bytes(bytes(value))
    except ValueError:
        return
    for place in read.places.values():
        assert (place.nodes < len(read.names)).all()
        assert (place.groups < len(place.layout.groups)).all()


@pytest.mark.parametrize(
    ("column", "number", "problem"),
    [
        ("nodes", 10, "column nodes"),
        ("nodes", -1, "column nodes"),
        ("groups", 2, "column groups"),
        ("chunks", 0, "column chunks"),
    ],
)
def test_numbers_that_stand_for_nothing_are_refused(column, number, problem):
    plan = a_plan(2)
    place = plan.places["1_é"]
    getattr(place, column)[0] = number
    with pytest.raises(ValueError, match=problem):
        from_bytes(to_bytes(plan))


@pytest.mark.parametrize("words", ["[]", "3", '{"version":1}', "[" * 10_000, '{"version":1,"crc":'])
def test_what_is_no_plan_is_refused(words):
    with pytest.raises(ValueError, match=r"no plan|no sense"):
        from_bytes(words.encode() + b"\n")


def test_a_head_that_lies_is_refused():
    line, _, body = to_bytes(a_plan(2)).partition(b"\n")
    for change in (
        {"entries": 10**12},
        {"entries": -1},
        {"layouts": []},
        {"jobs": ["a", "b", "c"]},
    ):
        head = json.loads(line) | change | {"crc": zlib.crc32(body)}
        with pytest.raises(ValueError):  # noqa: PT011  several reasons
            from_bytes(json.dumps(head).encode() + b"\n" + body)


def test_10_000_places_are_small_and_quick():
    """Not a measurement: it fails when something is written job by job."""
    plan = a_plan(10_000, width=8, n_nodes=1000)
    began = time.process_time()
    value = to_bytes(plan)
    same_size = len(from_bytes(value).places)
    assert same_size == 10_000
    assert time.process_time() - began < 2
    assert len(value) < 2_000_000
