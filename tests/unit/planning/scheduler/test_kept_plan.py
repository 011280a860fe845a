# SPDX-License-Identifier: Apache-2.0
"""The kept plan as bytes: read again as it was, and refused if anything is wrong with it."""

import json
import random
import sys
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.model.resources import Arrangement
from bridge.planning.queue.layout_options import Group, Layout
from bridge.planning.scheduler.kept_plan import KeptPlan, from_bytes, to_bytes
from bridge.planning.scheduler.placements import Placement


def a_plan(n_jobs=3, width=2, n_nodes=10):
    layout = Layout(
        (Group(0, 2, (1, 512, 0), 1, 1, 0), Group(0, 1, (2, 0, 1))), Arrangement.SCATTER, True, 3
    )
    other = Layout((Group(0, 1, (1, 1, 1)),), Arrangement.FREE, False, 1)
    places = {
        f"{job}_é": Placement(
            1_700_000_000 + job, job % 2, 0, layout if job % 2 else other,
            (np.arange(width, dtype=np.int32) + job) % n_nodes,
            np.full(width, 0, dtype=np.int32),
            np.full(width, 1 + job % 3, dtype=np.int32),
            late=job % 2 == 0, blocked=1 + job % 3, constraint_key=f"user/u{job % 2}/cpus",
        )
        for job in range(n_jobs)
    }  # fmt: skip
    return KeptPlan(tuple(f"n{at}" for at in range(n_nodes)), places)


def same(mine, theirs):
    assert mine.names == theirs.names
    assert list(mine.placements) == list(theirs.placements)
    for one, other in zip(mine.placements.values(), theirs.placements.values(), strict=True):
        for name in Placement.__dataclass_fields__:
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
    places = list(from_bytes(to_bytes(a_plan(4))).placements.values())
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
    for place in read.placements.values():
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
    place = plan.placements["1_é"]
    getattr(place, column)[0] = number
    with pytest.raises(ValueError, match=problem):
        from_bytes(to_bytes(plan))


@pytest.mark.parametrize("words", ["[]", "3", '{"version":1}', "[" * 10_000, '{"version":1,"crc":'])
def test_what_is_no_plan_is_refused(words):
    with pytest.raises(ValueError, match=r"not a plan|header is invalid"):
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


def calls_of(work, *arguments):
    """What some work returns, and how many functions it calls, of Python and of C."""
    calls = {"call": 0, "c_call": 0}

    def count(_frame, event, _arg):
        if event in calls:
            calls[event] += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        done = work(*arguments)
    finally:
        sys.setprofile(before)
    return done, sum(calls.values())


def test_10_000_places_are_small_and_little_work():
    """It fails when something is written node by node, or read again for each job."""
    plan = a_plan(10_000, width=8, n_nodes=1000)
    value, writing = calls_of(to_bytes, plan)
    read, reading = calls_of(from_bytes, value)
    assert len(read.placements) == 10_000
    assert writing <= 10 * 10_000  # measured: 5 for each place
    assert reading <= 7 * 10_000  # measured: 3 for each place, 2,200 besides
    assert len(value) < 2_000_000


def test_whatever_is_bent_is_refused_or_bearable():
    """A plan is read once and planned with in every cycle: nothing in it may break those."""
    raw, dice = to_bytes(a_plan(5)), random.Random(1)
    end, told = raw.index(b"\n"), 0
    for _ in range(3000):
        bent = bytearray(raw)
        at = dice.randrange(end)
        match dice.randrange(3):
            case 0:
                bent[at] = dice.randrange(256)
            case 1:
                bent[at:at] = dice.choice((b"99999999999999", b"-", b"1e999", b"null", b"[", b"0."))
            case _:
                del bent[at : at + dice.randrange(1, 6)]
        if bytes(bent) == raw:
            continue
        try:
            plan = from_bytes(bytes(bent))
        except ValueError:
            told += 1
            continue
        for place in plan.placements.values():
            for group in place.layout.groups:
                assert 0 <= group.count < 1 << 31
                assert all(0 <= amount < 1 << 40 for amount in group.want)
    assert told > 2900


def test_what_an_earlier_version_wrote_is_read():
    raw = to_bytes(a_plan(5))
    line, _, body = raw.partition(b"\n")
    earlier = line.rpartition(b',"head_crc":')[0] + b"}"
    same(from_bytes(earlier + b"\n" + body), a_plan(5))
