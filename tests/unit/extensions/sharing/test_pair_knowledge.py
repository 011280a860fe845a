# SPDX-License-Identifier: Apache-2.0
"""Slowdowns with intervals, and what is believed of pairs, against naive calculations."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.extensions.sharing import site_harm
from bridge.extensions.sharing.histories import History
from bridge.extensions.sharing.pair_knowledge import (
    CEILINGS,
    DEVIATION,
    MEMORY,
    STRENGTH,
    Entry,
    Seen,
    belief,
    highest_admissible,
    note,
    note_short_of_memory,
    pairs_in,
)
from bridge.extensions.sharing.site_harm import SiteHarm
from bridge.extensions.sharing.slowdown import (
    CPU_MS,
    NOISE,
    PARTS,
    PROGRESS,
    SURE,
    Rate,
    alone_rate,
    slowdown,
    works_of,
)
from bridge.model.learnt import Learning, Learnt

RATES = st.lists(st.integers(100, 2000), min_size=2, max_size=30)


def measured(rates, maximum, unit=CPU_MS):
    """A mean of these rates, measured every 5 s."""
    found = Rate(unit, 0, 0)
    for rate in rates:
        found = found.after(found.at_s + 5, found.work + 5 * rate, maximum)
    return found


@given(RATES)
def test_a_mean_of_few_rates_is_theirs(rates):
    found = measured(rates, 100)
    assert found.samples == len(rates)
    assert found.mean == pytest.approx(np.mean(rates))
    assert found.variance == pytest.approx(np.var(rates), rel=1e-6, abs=1e-3)


@given(RATES, RATES)
def test_a_slowdown_and_its_interval_are_as_by_hand(alone, beside):
    rest, pair = measured(alone, 100), measured(beside, 100)
    found = slowdown(rest, pair)
    ratio = np.mean(alone) / np.mean(beside)
    if ratio >= 10:
        return
    apart = [max(np.std(rates) / np.mean(rates), NOISE) for rates in (alone, beside)]
    errors = [apart[0] / math.sqrt(len(alone)), max(apart) / math.sqrt(len(beside))]
    assert found.mean == pytest.approx(ratio - 1)
    assert found.at_least == pytest.approx(ratio - 1 - SURE * ratio * math.hypot(*errors))


def test_old_rates_are_forgotten():
    found = measured([1000] * 20 + [500] * 30, 6)
    assert found.mean == pytest.approx(500, rel=0.01)


def test_close_measurements_are_one_and_a_step_back_begins_again():
    rate = Rate(CPU_MS, 0, 0)
    assert rate.after(2, 100, 6) is rate
    assert rate.after(5, 100, 6).samples == 1
    assert measured([10, 10], 6).after(20, 0, 6) == Rate(CPU_MS, 20, 0)


def test_a_host_that_stands_still_is_slowed_down_by_the_most():
    found = slowdown(measured([1000] * 5, 60), measured([0] * 5, 6))
    assert found.mean == 9.0
    assert found.at_least > 5


def test_without_rates_nothing_is_known():
    assert slowdown(None, measured([1, 1], 6)) is None
    assert slowdown(measured([1, 1], 6), measured([1], 6)) is None
    assert works_of(-1.0, -1.0) == {}


def test_a_rate_alone_is_measured_before_it_is_that_of_earlier_runs():
    assert works_of(5.0, 0.5) == {PROGRESS: PARTS // 2, CPU_MS: 5000}
    assert works_of(5.0, -1.0) == {CPU_MS: 5000}
    history = History(4, 200.0, 100.0, 1)
    assert alone_rate(None, CPU_MS, history) == Rate(CPU_MS, 0, 0, 4, 2000.0)
    assert alone_rate(None, PROGRESS, history) is None
    here = measured([7, 7], 60)
    assert alone_rate(here, CPU_MS, history) is here


@pytest.mark.parametrize(("busy", "minimum"), [(0.0, 0.043), (1.0, 0.05)])
def test_the_least_bound_with_new_pairs_is_that_of_the_documentation(busy, minimum):
    assert highest_admissible({}, ("h", "g"), busy, minimum) == CEILINGS[0]
    assert highest_admissible({}, ("h", "g"), busy, minimum - 0.001) is None


@pytest.mark.parametrize(
    ("rates", "unit", "known"),
    [
        ([7], CPU_MS, False),
        ([0, 0, 0], CPU_MS, False),
        ([0, 7], CPU_MS, True),
        ([0, 0, 0], PROGRESS, False),
        ([7, 0], PROGRESS, False),
        ([7, 0, 7], PROGRESS, True),
        ([7, 0, 0, 0, 7, 0, 0, 0] * 5, PROGRESS, False),
        ([7, 0, 7, 0, 0] * 5, PROGRESS, True),
    ],
)
def test_a_rate_alone_is_above_0_and_progress_moves_often(rates, unit, known):
    rate = measured(rates, 60, unit)
    assert rate.known == known
    assert Rate.of_numbers(rate.numbers()).known == known
    assert (alone_rate(rate, unit, None) is not None) == known


@given(RATES)
def test_a_rate_survives_its_numbers(rates):
    found = measured(rates, 60)
    again = Rate.of_numbers(found.numbers())
    assert (again.unit, again.at_s, again.work, again.samples) == (
        found.unit, found.at_s, found.work, found.samples,
    )  # fmt: skip
    assert again.mean == pytest.approx(found.mean, abs=1e-3)


# ---------------------------------------------------------------- pairs


@given(
    st.lists(
        st.tuples(st.sampled_from(CEILINGS), st.floats(-0.5, 2), st.booleans()), max_size=25
    )
)  # fmt: skip
def test_a_belief_is_the_mean_of_its_levels(observations):
    """Counts below `MEMORY`: nothing is forgotten yet."""
    learning, harms = Learning(Learnt()), {ceiling: [] for ceiling in CEILINGS}
    for ceiling, harm, bad in observations:
        note(learning, ("a", "b"), ceiling, harm, -1.0, bad=bad)
        for other in CEILINGS:
            if other >= ceiling if bad else other <= ceiling:
                harms[other].append(harm)
    for ceiling in CEILINGS:
        prior = (0.01 + 0.04 * ceiling / 100) * 0.75
        n, total = len(harms[ceiling]), sum(harms[ceiling])
        host = (STRENGTH * prior + total) / (STRENGTH + n)
        pair = (STRENGTH * host + total) / (STRENGTH + n)
        found = belief(learning.known, ("a", "b"), ceiling, 0.5)
        assert found.mean == pytest.approx(pair, abs=1e-3)
        assert found.half_width == pytest.approx(DEVIATION / math.sqrt(STRENGTH + 2 * n), abs=1e-3)
        other = belief(learning.known, ("a", "other"), ceiling, 0.5)
        assert other.mean == pytest.approx(host, abs=1e-3)


def test_the_default_bound_admits_an_unknown_pair_and_a_strict_one_less():
    assert highest_admissible({}, ("a", "b"), 1.0, 0.10) == 100
    assert highest_admissible({}, ("a", "b"), 1.0, 0.05) == 10
    assert highest_admissible({}, ("a", "b"), 1.0, 0.02) is None
    assert highest_admissible({}, ("a", "b"), 1.0, 0.10, below=75) == 50


def test_harm_is_forgotten_slowly():
    learning = Learning(Learnt())
    for _ in range(200):
        note(learning, ("a", "b"), 100, 0.5, 2.0, bad=True)
    steps = 0
    while highest_admissible(learning.known, ("a", "b"), 0.5, 0.10) != 100:
        note(learning, ("a", "b"), 100, 0.0, 2.0, bad=False)
        steps += 1
    assert MEMORY < steps < 4 * MEMORY
    (((host, guest), entry),) = pairs_in(dict(learning.done().known)).items()
    assert (host, guest) == ("a", "b")
    assert entry.guest_cpus == pytest.approx(2.0)


def test_a_pair_that_was_short_of_memory_is_not_admissible_and_others_are():
    learning = Learning(Learnt())
    note_short_of_memory(learning, ("a", "b"))
    assert highest_admissible(learning.known, ("a", "b"), 0.0, 0.5) is None
    assert highest_admissible(learning.known, ("a", "c"), 0.0, 0.1) == 100
    assert highest_admissible(learning.known, ("c", "b"), 0.0, 0.1) == 100


def test_what_does_not_fit_is_nothing():
    assert Entry.of_numbers(None) == Entry()
    assert Entry.of_numbers([1, 2]) == Entry()
    odd = Entry.of_numbers([-5, 10**12] * len(CEILINGS) + [-7000])
    assert odd == Entry((Seen(0.0, 5.0),) * len(CEILINGS), -1.0)


# ---------------------------------------------------------------- the site


def test_the_site_reverts_only_when_it_is_sure():
    learning = Learning(Learnt())
    for user in ("ann", "bob", "eve"):
        for _ in range(site_harm.MIN_OF_USER):
            assert not SiteHarm(learning).passes(0.05)
            SiteHarm(learning).add(user, 0.5, 60.0)
    assert SiteHarm(learning).passes(0.05)
    assert SiteHarm(learning).count == 0

    rng = np.random.default_rng(1)
    for at, harm in enumerate(rng.normal(0.04, 0.05, 500)):
        SiteHarm(learning).add(f"user{at % 5}", float(harm), 60.0)
        assert not SiteHarm(learning).passes(0.05)
        assert not SiteHarm(learning).users_above(0.05)


@pytest.mark.parametrize("harm", [0.06, 0.3, 9.0])
@pytest.mark.parametrize("others", range(4))
def test_no_user_ends_sharing_for_others(harm, others):
    """However bad all pairs of one user are, and however many."""
    learning = Learning(Learnt())
    for other in range(others):
        for _ in range(site_harm.MIN_OF_USER):
            SiteHarm(learning).add(f"other{other}", 0.0, 60.0)
    for _ in range(2 * site_harm.MEMORY):
        SiteHarm(learning).add("eve", harm, 60.0)
        assert not SiteHarm(learning).passes(0.05)
    assert SiteHarm(learning).users_above(0.05) == ["eve"]
    assert SiteHarm(learning).users_above(0.05) == []


def test_nobody_hides_the_harm_to_others():
    learning = Learning(Learnt())
    for _ in range(site_harm.MEMORY):
        SiteHarm(learning).add("eve", -5.0, 60.0)
    for user in range(9):
        for _ in range(site_harm.MIN_OF_USER):
            SiteHarm(learning).add(f"user{user}", 0.1, 60.0)
    assert SiteHarm(learning).passes(0.05)
