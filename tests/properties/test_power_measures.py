# SPDX-License-Identifier: Apache-2.0
"""Measures of power against a count second by second, and configurations against all of them."""

from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bridge.extensions.power.measures import Amount, PowerBounds, SystemPower, power_measures
from bridge.extensions.power.rules import NO_UPPER_W, Corridor
from bridge.lab.sim.runs.power_oracle import reachable

END_S = 40


@st.composite
def _powers(draw):
    at_s = [5, *sorted(draw(st.sets(st.integers(6, END_S - 1), max_size=8)))]
    power_w = draw(st.lists(st.integers(0, 9), min_size=len(at_s), max_size=len(at_s)))
    return SystemPower(np.array(at_s), np.array(power_w), END_S)


@st.composite
def _bounds(draw):
    starts_s = [0, *sorted(draw(st.sets(st.integers(1, END_S + 5), max_size=5)))]
    pairs = [sorted(draw(st.tuples(st.integers(0, 9), st.integers(0, 9)))) for _ in starts_s]
    if draw(st.booleans()):
        pairs[0] = [0, NO_UPPER_W]
    corridor = Corridor(
        tuple(starts_s), tuple(low for low, _ in pairs), tuple(high for _, high in pairs)
    )
    announced = frozenset(at_s for at_s in starts_s if draw(st.booleans()))
    return PowerBounds(corridor, announced, draw(st.integers(0, 5)))


def _each_second(power):
    steps = dict(zip(power.at_s.tolist(), power.power_w.tolist(), strict=True))
    now_w, found = 0, {}
    for at_s in range(int(power.at_s[0]), power.end_s):
        now_w = steps.get(at_s, now_w)
        found[at_s] = now_w
    return found


def _counted(power_w, bounds, side, even):
    """Violations second by second: without grace, behind it, and of that in even pieces."""
    whole, late, blamed = [0, 0, 0], [0, 0, 0], [0, 0, 0]
    begun_s, counted_late, counted_blamed = None, False, False
    for at_s, now_w in power_w.items():
        low_w, high_w = bounds.corridor.at(at_s)
        off_w = now_w - high_w if side == "upper" else low_w - now_w
        if off_w <= 0:
            begun_s = None
            continue
        if begun_s is None or at_s in bounds.corridor.starts_s:
            begun_s, counted_late, counted_blamed = at_s, False, False
            grace_s = 0 if at_s in bounds.announced_s else bounds.grace_s
            whole[0] += 1
        whole[1] += 1
        whole[2] += off_w
        if at_s < begun_s + grace_s:
            continue
        late = [late[0] + (not counted_late), late[1] + 1, late[2] + off_w]
        counted_late = True
        if even(at_s):
            blamed = [blamed[0] + (not counted_blamed), blamed[1] + 1, blamed[2] + off_w]
            counted_blamed = True
    return Amount(*whole), Amount(*late), Amount(*blamed)


@given(_powers(), _bounds(), st.lists(st.integers(0, END_S + 5), max_size=4))
def test_measures_are_what_a_count_of_seconds_gives(power, bounds, renewed_s):
    power_w = _each_second(power)
    pieces = sorted({*power.at_s.tolist(), *bounds.corridor.starts_s, *renewed_s})

    def even(at_s):
        """Whether the piece of this second begins at an even one."""
        return max(5, *(cut for cut in pieces if cut <= at_s)) % 2 == 0

    found = power_measures(power, bounds, lambda at_s, low_w, high_w: at_s % 2 == 0, renewed_s)
    assert found.energy_j == sum(power_w.values())
    assert found.peak_w == max(power_w.values())
    assert found.energy_delay_js == sum(power_w.values()) * len(power_w)
    assert found.mean_w == sum(power_w.values()) / len(power_w)
    for side in ("upper", "lower"):
        own = getattr(found, side)
        assert (own.all, own.late, own.avoidable) == _counted(power_w, bounds, side, even)


@given(_powers(), _bounds())
def test_who_is_asked_for_a_configuration_is_told_the_bounds_in_force(power, bounds):
    requested = []
    power_measures(power, bounds, lambda *given: bool(requested.append(given)))
    for at_s, low_w, high_w in requested:
        assert (low_w, high_w) == bounds.corridor.at(at_s)
        assert not low_w <= _each_second(power)[at_s] <= high_w


_OPTIONS = st.lists(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 9)), min_size=1, max_size=4), max_size=4
)


@given(_OPTIONS, st.integers(0, 9), st.integers(-5, 30), st.integers(-5, 30))
def test_a_configuration_is_found_if_and_only_if_one_of_all_fits(options, nodes, min_w, max_w):
    exists = any(
        sum(width for width, _ in chosen) <= nodes
        and min_w <= sum(watts for _, watts in chosen) <= max_w
        for chosen in product(*options)
    )
    assert reachable(options, nodes, min_w, max_w) == exists
