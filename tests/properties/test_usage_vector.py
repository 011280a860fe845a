# SPDX-License-Identifier: Apache-2.0
"""UsageVector equals an oracle that keeps what is stored second by second in a list.

The last entry of the list stands for all seconds from END on.
"""

from dataclasses import dataclass, replace
from typing import Self

from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.core import NEVER, Stores, UsageVector

END = 24
INSTANTS = [*range(END), END]


@dataclass
class Oracle:
    maximum: int
    stores: Stores
    distance_s: int
    values: list[int]
    defect: int = 0

    @classmethod
    def empty(cls, maximum: int, stores: Stores, distance_s: int) -> Self:
        outside = 0 if stores == Stores.USED else maximum
        return cls(maximum, stores, distance_s, [outside] * (END + 1))

    @property
    def available(self) -> int:
        return self.maximum - self.defect

    def is_free(self, value: int) -> bool:
        return value <= 0 if self.stores == Stores.USED else value >= self.available

    def tidied(self) -> Self:
        """Cuts off, and closes gaps shorter than the least distance between equal slots."""
        outside = 0 if self.stores == Stores.USED else self.available
        values = [outside if self.is_free(value) else value for value in self.values]
        last = None
        for at, value in enumerate(values):
            if self.is_free(value):
                continue
            if last is not None and values[last] == value and at - last - 1 < self.distance_s:
                values[last:at] = [value] * (at - last)
            last = at
        return replace(self, values=values)

    def free(self) -> list[int]:
        if self.stores == Stores.FREE:
            return list(self.values)
        return [self.available - value for value in self.values]

    def with_free(self, free: list[int]) -> list[int]:
        return free if self.stores == Stores.FREE else [self.available - f for f in free]

    def changed(self, start: int, end: int, items: int) -> Self:
        values = list(self.values)
        for at in range(start, END + 1 if end == NEVER else end):
            values[at] += items
        return replace(self, values=values).tidied()

    def less(self, defect: int) -> Self:
        values = self.values
        if self.stores == Stores.FREE:
            values = [value - (defect - self.defect) for value in values]
            free = [old >= self.available for old in self.values]
            values = [self.maximum - defect if f else v for f, v in zip(free, values, strict=True)]
        return replace(self, values=values, defect=defect).tidied()


def spans(oracle: Oracle) -> list[tuple[int, int, int]]:
    found: list[tuple[int, int, int]] = []
    for at, value in enumerate(oracle.values):
        if oracle.is_free(value):
            continue
        end = NEVER if at == END else at + 1
        if found and found[-1][1] == at and found[-1][2] == value:
            found[-1] = (found[-1][0], end, value)
        else:
            found.append((at, end, value))
    return found


def slots(vector: UsageVector) -> list[tuple[int, int, int]]:
    return list(zip(*(column.tolist() for column in vector.slots()), strict=True))


def same(vector: UsageVector, oracle: Oracle) -> None:
    assert slots(vector) == spans(oracle)
    assert (vector.maximum, vector.defect, vector.stores) == (
        oracle.maximum, oracle.defect, oracle.stores,
    )  # fmt: skip
    assert vector.available == oracle.available
    assert [vector.free_at(at) for at in INSTANTS] == oracle.free()
    assert [vector.used_at(at) for at in INSTANTS] == [
        oracle.available - free for free in oracle.free()
    ]


@st.composite
def intervals(draw: st.DrawFn) -> tuple[int, int]:
    start = draw(st.integers(0, END))
    end = draw(st.sampled_from([*range(start + 1, END + 1), NEVER]))
    return start, end


changes = st.tuples(intervals(), st.integers(0, 4), st.booleans())


def made(
    maximum: int, stores: Stores, distance_s: int, drawn: list, defect: int = 0
) -> tuple[UsageVector, Oracle]:
    vector = UsageVector(maximum, stores=stores, min_distance_s=distance_s)
    oracle = Oracle.empty(maximum, stores, distance_s)
    for (start, end), items, up in drawn:
        (vector.increment if up else vector.decrement)(start, end, items)
        oracle = oracle.changed(start, end, items if up else -items)
    vector.set_defect(defect)
    return vector, oracle.less(defect)


@st.composite
def pairs(draw: st.DrawFn, stores: Stores | None = None, distance_s: int | None = None):
    maximum = draw(st.integers(0, 6))
    kind = draw(st.sampled_from(Stores)) if stores is None else stores
    distance = draw(st.sampled_from([1, 1, 2, 4])) if distance_s is None else distance_s
    drawn = draw(st.lists(changes, max_size=7))
    return made(maximum, kind, distance, drawn, draw(st.integers(0, maximum)))


@settings(max_examples=300, deadline=None)
@given(
    st.integers(0, 6),
    st.sampled_from(Stores),
    st.sampled_from([1, 1, 2, 4]),
    st.lists(changes, max_size=12),
)
def test_increment_and_decrement_after_every_step(maximum, stores, distance_s, drawn):
    vector = UsageVector(maximum, stores=stores, min_distance_s=distance_s)
    oracle = Oracle.empty(maximum, stores, distance_s)
    for (start, end), items, up in drawn:
        (vector.increment if up else vector.decrement)(start, end, items)
        oracle = oracle.changed(start, end, items if up else -items)
        same(vector, oracle)


@given(pairs(), st.integers(0, 6))
def test_what_is_used_stays_used_when_items_are_lost(pair, defect):
    vector, oracle = pair
    defect = min(defect, oracle.maximum)
    vector.set_defect(defect)
    same(vector, oracle.less(defect))


@given(pairs(distance_s=1), intervals(), st.integers(0, 4))
def test_revoking_undoes_booking(pair, interval, items):
    vector, _ = pair
    before = vector.copy()
    vector.book(*interval, items)
    vector.revoke(*interval, items)
    assert vector == before


@given(pairs(), intervals(), st.integers(0, 4))
def test_a_copy_changes_alone(pair, interval, items):
    vector, oracle = pair
    copy = vector.copy()
    copy.increment(*interval, items)
    copy.decrement(*interval, 2 * items)
    same(vector, oracle)


@given(pairs(), pairs(stores=Stores.USED))
def test_adding_and_subtracting_used_items(left, right):
    (vector, oracle), (other, used) = left, right
    plus = [a + b for a, b in zip(oracle.values, used.values, strict=True)]
    minus = [a - b for a, b in zip(oracle.values, used.values, strict=True)]
    same(vector + other, replace(oracle, values=plus).tidied())
    same(vector - other, replace(oracle, values=minus).tidied())


@given(pairs(distance_s=1), st.lists(changes, max_size=6))
def test_addition_is_increment_by_every_slot(left, drawn):
    vector, _ = left
    other, _ = made(5, Stores.USED, 1, drawn)
    plus, minus = vector.copy(), vector.copy()
    for start, end, items in slots(other):
        plus.increment(start, end, items)
        minus.decrement(start, end, items)
    assert vector + other == plus
    assert vector - other == minus


@given(pairs(stores=Stores.FREE, distance_s=1), pairs(stores=Stores.FREE, distance_s=1))
def test_two_systems_are_one_and_come_apart_again(left, right):
    (vector, oracle), (other, beside) = left, right
    both = replace(
        oracle,
        maximum=oracle.maximum + beside.maximum,
        defect=oracle.defect + beside.defect,
        values=[a + b for a, b in zip(oracle.values, beside.values, strict=True)],
    )
    same(vector + other, both.tidied())
    assert (vector + other) - other == vector


@given(pairs(), pairs())
def test_min_free_is_the_lesser_of_both(left, right):
    (vector, oracle), (limit, left_over) = left, right
    free = [min(a, b) for a, b in zip(oracle.free(), left_over.free(), strict=True)]
    same(vector.min_free(limit), replace(oracle, values=oracle.with_free(free)).tidied())


@given(pairs(stores=Stores.FREE), pairs(stores=Stores.FREE))
def test_intersection(left, right):
    (vector, oracle), (other, beside) = left, right
    lesser = oracle if oracle.available <= beside.available else beside
    values = [min(a, b) for a, b in zip(oracle.values, beside.values, strict=True)]
    expected = Oracle(
        lesser.maximum, Stores.FREE, oracle.distance_s, values, defect=lesser.defect
    ).tidied()
    same(vector & other, expected)


def fits(free: list[int], items: int, length: int, start: int, end: int) -> list[bool]:
    """For each second: does it lie in a stretch of [start, end) that is long enough?"""
    inside = [start <= at < end and free[at] >= items for at in INSTANTS]
    verdict = [False] * (END + 1)
    at = 0
    while at <= END:
        stop = at
        while stop <= END and inside[stop]:
            stop += 1
        if stop > at:
            endless = stop > END and end == NEVER
            if endless or stop - at >= length:
                verdict[at:stop] = [True] * (stop - at)
        at = stop + 1
    return verdict


searches = st.tuples(st.integers(1, 6), st.integers(1, 10), intervals())


@settings(max_examples=300)
@given(pairs(distance_s=1), searches)
def test_free_slots(pair, search):
    (vector, oracle), (items, length, (start, end)) = pair, search
    if start == END and end == NEVER:
        start = END - 1  # the list knows one value from END on
    stop = END + 1 if end == NEVER else end
    verdict = fits(oracle.free(), items, length, start, end if end == NEVER else stop)
    expected = Oracle(
        oracle.maximum, Stores.FREE, 1,
        [free if good else 0 for free, good in zip(oracle.free(), verdict, strict=True)],
        defect=oracle.defect,
    )  # fmt: skip
    found = vector.free_slots(items, length, start, end)
    same(found, expected.tidied())
    first = vector.earliest(items, length, start, end)
    assert first == next((at for at in INSTANTS if verdict[at]), NEVER)


@given(pairs(), intervals())
def test_least_free_and_steps(pair, interval):
    (vector, oracle), (start, end) = pair, interval
    stop = END + 1 if end == NEVER else end
    free = oracle.free()
    assert vector.least_free(start, end) == min(free[start:stop])
    instants, values = vector.free_steps(start, end)
    assert instants[0] == start
    for at in range(start, stop):
        assert values[instants <= at][-1] == free[at]
    assert (values[1:] != values[:-1]).all()


@given(pairs(), st.integers(1, 4))
def test_counting_in_units(pair, items):
    vector, oracle = pair
    units = oracle.available // items
    most = oracle.maximum // items
    expected = Oracle(
        most, Stores.FREE, oracle.distance_s,
        [free // items for free in oracle.free()], defect=most - units,
    )  # fmt: skip
    same(vector.in_units_of(items), expected.tidied())


@given(pairs(distance_s=1))
def test_used_and_free_are_two_ways_to_store_the_same(pair):
    vector, oracle = pair
    free, used = vector.as_free(), vector.as_used()
    assert [free.free_at(at) for at in INSTANTS] == oracle.free()
    assert [used.free_at(at) for at in INSTANTS] == oracle.free()
    assert used.as_free() == free
    assert free.as_used() == used


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(1, 6)), max_size=3),
    st.integers(0, 3),
    intervals(),
)
def test_repeating_a_template(drawn, items, interval):
    period = 6
    start, end = interval
    end = min(end, END)
    if end <= start:
        return
    template = UsageVector(4)
    for begin, length in drawn:
        template.increment(begin, min(begin + length, period), 1)
    repeated = template.repeat(items, start, end, period)
    for at in INSTANTS:
        inside = start <= at < end and template.used_at(at % period) > 0
        assert repeated.used_at(at) == (items if inside else 0)
