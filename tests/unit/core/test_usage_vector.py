# SPDX-License-Identifier: Apache-2.0
"""The figures and formulas of the paper's sections 4 and 5, and what is refused."""

import numpy as np
import pytest

from bridge.core import NEVER, Stores, UsageVector

HOUR = 3600
WEEK = 7 * 24 * HOUR


def used(maximum: int, *slots: tuple[int, int, int], **settings: int) -> UsageVector:
    vector = UsageVector(maximum, **settings)
    for start, end, items in slots:
        vector.increment(start, end, items)
    return vector


def free(maximum: int, *slots: tuple[int, int, int]) -> UsageVector:
    """A vector of free items with exactly these slots."""
    vector = UsageVector(maximum, stores=Stores.FREE)
    for start, end, items in slots:
        vector.decrement(start, end, maximum - items)
    return vector


def slots(vector: UsageVector) -> list[tuple[int, int, int]]:
    return list(zip(*(column.tolist() for column in vector.slots()), strict=True))


def test_figure_2_a_simple_vector_stores_used_items_and_nothing_where_none_is_used():
    vector = used(10, (2, 5, 4), (5, 8, 7), (12, NEVER, 3))
    assert slots(vector) == [(2, 5, 4), (5, 8, 7), (12, NEVER, 3)]
    assert [vector.used_at(at) for at in (0, 2, 4, 5, 7, 8, 12, 10**12)] == [
        0, 4, 4, 7, 7, 0, 3, 3,
    ]  # fmt: skip


# Figure 3: how a new slot can lie over an old one, here [10, 20) with 3 items. In case 1 it ends
# where slot b ends and begins there; the paper's example follows below.
OVERLAPS = {
    "inside": ((12, 18), [(10, 12, 3), (12, 18, 5), (18, 20, 3)]),
    "the same": ((10, 20), [(10, 20, 5)]),
    "around it": ((5, 25), [(5, 10, 2), (10, 20, 5), (20, 25, 2)]),
    "over its begin": ((5, 15), [(5, 10, 2), (10, 15, 5), (15, 20, 3)]),
    "over its end": ((15, 25), [(10, 15, 3), (15, 20, 5), (20, 25, 2)]),
    "from its begin": ((10, 15), [(10, 15, 5), (15, 20, 3)]),
    "to its end": ((15, 20), [(10, 15, 3), (15, 20, 5)]),
    "before, touching": ((5, 10), [(5, 10, 2), (10, 20, 3)]),
    "after, touching": ((20, 25), [(10, 20, 3), (20, 25, 2)]),
    "before": ((2, 5), [(2, 5, 2), (10, 20, 3)]),
    "after": ((25, 30), [(10, 20, 3), (25, 30, 2)]),
    "without end": ((15, NEVER), [(10, 15, 3), (15, 20, 5), (20, NEVER, 2)]),
}


@pytest.mark.parametrize("case", OVERLAPS)
def test_figure_3_increment(case):
    (start, end), expected = OVERLAPS[case]
    vector = used(10, (10, 20, 3), (start, end, 2))
    assert slots(vector) == expected


@pytest.mark.parametrize("case", OVERLAPS)
def test_figure_3_decrement_undoes_increment(case):
    (start, end), _ = OVERLAPS[case]
    vector = used(10, (10, 20, 3), (start, end, 2))
    vector.decrement(start, end, 2)
    assert slots(vector) == [(10, 20, 3)]


def test_figure_3_case_1_the_new_slot_lies_around_slot_b():
    """Increment adds slots a and c and raises b; decrement lowers b and drops it at 0."""
    around = used(10, (10, 20, 3), (5, 25, 2))
    assert slots(around) == [(5, 10, 2), (10, 20, 5), (20, 25, 2)]
    lowered = used(10, (10, 20, 3))
    lowered.decrement(5, 25, 2)
    assert slots(lowered) == [(10, 20, 1)]
    lowered.decrement(5, 25, 2)
    assert slots(lowered) == []


def test_slots_of_equal_items_are_joined_when_they_touch():
    assert slots(used(10, (0, 5, 2), (5, 9, 2))) == [(0, 9, 2)]
    assert slots(used(10, (0, 5, 2), (6, 9, 2))) == [(0, 5, 2), (6, 9, 2)]


def test_a_larger_minimal_distance_joins_over_gaps():
    assert slots(used(10, (0, 5, 2), (7, 9, 2), min_distance_s=3)) == [(0, 9, 2)]
    assert slots(used(10, (0, 5, 2), (8, 9, 2), min_distance_s=3)) == [(0, 5, 2), (8, 9, 2)]


def test_addition_keeps_a_free_pool_out_of_the_system():
    """UR = sRS + FreePool: what a FreePool keeps free counts as used."""
    system = used(16, (0, 100, 10))
    assert slots(system + used(16, (50, 150, 4))) == [(0, 50, 10), (50, 100, 14), (100, 150, 4)]


def test_subtraction_is_what_a_limit_leaves():
    """Limit - usdRS: free items less what the consumer has got already."""
    limit = free(8)
    assert slots(limit - used(16, (10, 20, 5))) == [(10, 20, 3)]


def test_min_free_puts_a_limit_into_the_view_of_the_system():
    """URS = mf(sRS, limit - usdRS), with what is used: max(used, avl - free under the limit)."""
    system, limit = used(16, (0, 10, 12)), free(8) - used(16, (5, 20, 5))
    view = system.min_free(limit)
    assert view.stores == Stores.USED
    assert [view.free_at(at) for at in (0, 5, 9, 10, 19, 20, 99)] == [4, 3, 3, 3, 3, 8, 8]
    assert slots(view) == [(0, 5, 12), (5, 20, 13), (20, NEVER, 8)]


def test_intersection_is_free_in_both_at_the_same_time():
    left = free(8, (0, 10, 2), (20, NEVER, 5))
    right = free(8, (5, 30, 3))
    assert slots(left & right) == [(0, 10, 2), (10, 30, 3), (30, NEVER, 5)]


def test_free_slots_keeps_what_is_long_enough_and_closes_the_rest():
    vector = used(8, (10, 20, 6), (25, 40, 8))
    found = vector.free_slots(2, 15, 0, 200)
    assert slots(found) == [(10, 20, 2), (25, 40, 0), (200, NEVER, 0)]
    found = vector.free_slots(3, 10, 0, 200)
    assert slots(found) == [(10, 40, 0), (200, NEVER, 0)]
    assert vector.earliest(3, 11) == 40
    assert vector.earliest(3, 10) == 0
    assert vector.earliest(9, 1) == NEVER


def test_planning_phase_1_all_resources_at_the_same_time():
    """R_free = the intersection over resources of getFreeSlots(uRS, F, D, T1, T2)."""
    cores, gpus = used(16, (0, 50, 12)), used(2, (60, 100, 2))
    both = cores.free_slots(8, 10, 0, 1000) & gpus.free_slots(1, 10, 0, 1000)
    assert both.earliest(1, 10) == 50
    assert both.earliest(1, 11) == 100


def test_mapping_phase_1_sums_free_chunks_over_nodes():
    """FCN per node and chunk, then FCJ = their sum, without what is too little or too short."""
    nodes = [
        {"cores": used(16, (0, 50, 10)), "gpus": used(2)},
        {"cores": used(16, (0, 20, 16)), "gpus": used(1, (30, 40, 1))},
    ]
    chunk = {"cores": 4, "gpus": 1}
    sum_of_chunks = UsageVector(0, stores=Stores.FREE)
    for node in nodes:
        chunks = [
            vector.free_slots(chunk[name], 10).in_units_of(chunk[name])
            for name, vector in node.items()
        ]
        sum_of_chunks = sum_of_chunks + (chunks[0] & chunks[1])
    # 2 GPUs and 1 or 4 chunks of cores on the first, 0 or 1 on the second: GPUs bind.
    assert [sum_of_chunks.free_at(at) for at in (0, 20, 30, 40, 50)] == [1, 2, 1, 2, 3]
    assert sum_of_chunks.earliest(2, 10) == 20
    assert sum_of_chunks.earliest(2, 11) == 40
    assert sum_of_chunks.earliest(4, 1) == NEVER


def test_cron_to_rusv_every_monday_and_friday_from_7_to_11():
    """The paper's example; 1 January 1970 was a Thursday, so Friday is day 1, Monday day 4."""
    template = used(1, *((day * 24 * HOUR + 7 * HOUR, day * 24 * HOUR + 11 * HOUR, 1)
                         for day in (1, 4)))  # fmt: skip
    begin = int(np.datetime64("2018-01-01T00:00:00", "s").astype(int))
    end = int(np.datetime64("2025-12-31T00:00:00", "s").astype(int))
    repeated = template.repeat(40, begin, end, WEEK)
    starts, ends, items = repeated.slots()
    assert (ends - starts == 4 * HOUR).all()
    assert (items == 40).all()
    days = starts.astype("datetime64[s]").astype("datetime64[D]")
    assert set((days.astype(int) + 3) % 7) == {0, 4}  # Mondays and Fridays
    assert days[0] == np.datetime64("2018-01-01")
    assert len(starts) == 418 + 417  # the last day is a Wednesday


def test_available_is_maximum_less_defect():
    vector = used(10, (0, 10, 8))
    vector.set_defect(4)
    assert (vector.available, vector.free_at(5), vector.free_at(20)) == (6, -2, 6)
    stored_free = free(10, (0, 10, 2))
    stored_free.set_defect(4)
    assert slots(stored_free) == [(0, 10, -2)]
    stored_free.set_defect(0)
    assert slots(stored_free) == [(0, 10, 2)]


def test_slots_that_are_not_needed_go_away():
    vector = used(10)
    for at in range(1000):
        vector.book(at, at + 10, 3)
    for at in range(1000):
        vector.revoke(at, at + 10, 3)
    assert len(vector) == 0


REFUSED = {
    "negative items": (lambda v: v.increment(0, 1, -1), "items: -1 is less than 0"),
    "empty interval": (lambda v: v.book(5, 5, 1), "end: 5 is not after start 5"),
    "before time": (lambda v: v.decrement(-1, 5, 1), "start: -1 is less than 0"),
    "no items": (lambda v: v.free_slots(0, 1), "items: 0 is less than 1"),
    "no length": (lambda v: v.earliest(1, 0), "length: 0 is less than 1"),
    "more defect than items": (lambda v: v.set_defect(11), "defect: 11 is more than 10"),
    "free to used": (lambda v: v + free(1), "other: free items cannot be added"),
    "free from used": (lambda v: v - free(1), "other: free items cannot be taken"),
    "no part": (lambda v: free(1) - free(2), "other: is not a part"),
    "intersection of used": (lambda v: v & v, "other: both vectors"),
    "template too long": (lambda v: v.repeat(1, 0, 9, 3), "period: the template's slots"),
    "repeated too often": (lambda v: used(1, (0, 1, 1)).repeat(1, 0, 2**60, 9), "period: more"),
    "repeated for ever": (lambda v: v.repeat(1, 0, NEVER, 10), "end: "),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refuses(case):
    call, message = REFUSED[case]
    vector = used(10, (0, 5, 2))
    before = vector.copy()
    with pytest.raises(ValueError, match=message):
        call(vector)
    assert vector == before


def test_sums_never_overflow():
    vector = UsageVector(1)
    for _ in range(12):
        vector = vector + vector if len(vector) else used(1, (0, 5, 2**48))
    for _ in range(2**11):
        vector.increment(0, 5, 2**48)
    assert vector.used_at(0) == 2**60
    with pytest.raises(ValueError, match=r"2\*\*60"):
        vector.increment(0, 5, 1)
    assert vector.used_at(0) == 2**60
    with pytest.raises(ValueError, match=r"2\*\*60"):
        vector + vector


def test_shows_itself():
    assert repr(used(4, (0, 5, 2), (9, NEVER, 1))) == (
        "UsageVector(4 of 4 available, used: [0, 5) 2 [9, never) 1)"
    )
    with pytest.raises(TypeError):
        hash(used(1))
    assert used(1) != 3
