# SPDX-License-Identifier: Apache-2.0
"""Comparisons of a host beside its guest at the floor and at the ceiling: verdicts by chance."""

import math

import numpy as np
import pytest

from bridge.extensions.sharing.comparison import (
    MAX_TURNS,
    MIN_TURNS,
    PHASE_S,
    Comparison,
    ComparisonResult,
    begun,
)
from bridge.extensions.sharing.slowdown import CPU_MS, LARGEST

BOUND = 0.1
STEP_S = 5
STEPS = 2 * MAX_TURNS * (PHASE_S // STEP_S) + 2


def steady(rng):
    return np.ones(STEPS)


def jumps(rng):
    """Another rate in every step."""
    return rng.choice([1.0, 4.0], STEPS)


def slow_jumps(rng):
    return np.repeat(rng.choice([1.0, 4.0], STEPS // 6 + 1), 6)[:STEPS]


def rises(rng):
    return np.linspace(1, 4, STEPS)


def one_step(rng):
    return np.where(np.arange(STEPS) < rng.integers(STEPS), 1.0, 4.0)


def compare(own, harm, *, noise=0.05, use=(0.2, 4.0), seed=0) -> tuple[ComparisonResult, int]:
    """The verdict on a host of these own rates, and its turns.

    Args:
        own: the rate of each step without the guest, as a function of a generator.
        harm: slowdown at the ceiling; at the floor in proportion to the CPU time.
        noise: relative, of each step.
        use: CPUs of the guest at the floor and at the ceiling.
        seed: of the chance.
    """
    rng = np.random.default_rng(seed)
    rates = own(rng) * np.exp(noise * rng.standard_normal(STEPS))
    comparison, now_s, work, guest_ms = begun(CPU_MS, 1000), 1000, 0.0, 0.0
    comparison = comparison.after(now_s, 0, 0, now_s)
    for rate in rates:
        used = use[0] if comparison.low else use[1]
        now_s += STEP_S
        work += 1000 * STEP_S * rate / (1 + harm * used / use[1])
        guest_ms += 1000 * STEP_S * used
        comparison = comparison.after(now_s, round(work), round(guest_ms), now_s)
        assert Comparison.of_numbers(comparison.numbers()) == comparison
        verdict = comparison.result(BOUND)
        if verdict.over:
            break
    return verdict, len(comparison.rates) // 2


def shares(own, harm, **settings) -> tuple[float, float]:
    """Of 200 comparisons those that find harm, and those that find none."""
    verdicts = [compare(own, harm, seed=seed, **settings)[0] for seed in range(200)]
    assert all(each.over for each in verdicts)
    found = [each for each in verdicts if each.found is not None]
    harmful = sum(each.harmful for each in found)
    return harmful / 200, (len(found) - harmful) / 200


@pytest.mark.parametrize(
    ("own", "noise", "maximum"),
    [(steady, 0.05, 0.01), (steady, 0.1, 0.02), (jumps, 0.05, 0.07), (slow_jumps, 0.05, 0.04),
     (rises, 0.05, 0.01), (one_step, 0.05, 0.01)],
)  # fmt: skip
def test_a_harmless_guest_is_seldom_found_harmful(own, noise, maximum):
    harmful, harmless = shares(own, 0.0, noise=noise)
    assert harmful <= maximum
    assert harmless >= (0.6 if own is steady else 0.05)


@pytest.mark.parametrize(
    ("own", "harm", "minimum"),
    [(steady, 0.2, 0.5), (steady, 0.5, 0.99), (jumps, 1.0, 0.35), (slow_jumps, 1.0, 0.6),
     (rises, 0.5, 0.8), (one_step, 0.5, 0.6)],
)  # fmt: skip
def test_harm_is_found_and_never_called_none(own, harm, minimum):
    harmful, harmless = shares(own, harm)
    assert harmful >= minimum
    assert harmless <= 0.03


@pytest.mark.parametrize("harm", [0.0, 0.03, 0.35, 1.0])
def test_the_harm_and_the_rate_alone_are_estimated(harm):
    """The interval covers the harm; at the floor the guest does a twentieth of it."""
    verdict, turns = compare(steady, harm, noise=0.0)
    assert verdict.found is not None
    assert verdict.found.mean == pytest.approx(harm, abs=0.03 + 0.02 * harm)
    assert verdict.harmful == (harm > BOUND)
    assert verdict.alone is not None
    assert verdict.alone.mean == pytest.approx(1000, rel=0.05)
    assert verdict.alone.known
    assert MIN_TURNS <= turns <= MAX_TURNS


@pytest.mark.parametrize("use", [(1.0, 1.0), (0.1, 0.15), (0.0, 1e-9)])
def test_a_guest_that_quotas_do_not_change_leaves_the_verdict_unknown(use):
    """After one turn, so that it is not given its ceiling again for nothing."""
    verdict, turns = compare(steady, 0.5, use=use)
    assert (verdict.over, verdict.found, turns) == (True, None, 1)


def test_a_guest_of_unknown_use_leaves_it_unknown():
    comparison, now_s = begun(CPU_MS, 0).after(0, 0, -1, 0), 0
    for step in range(1, 7):
        now_s = PHASE_S * step
        comparison = comparison.after(now_s, 1000 * now_s, -1, now_s)
    assert comparison.result(BOUND) == ComparisonResult(over=True)


def test_a_measurement_before_the_phase_counts_in_none():
    """The quota has changed since; the next one begins the phase."""
    comparison = begun(CPU_MS, 100)
    assert comparison.after(98, 5000, 0, 100) == comparison
    comparison = comparison.after(103, 6000, 0, 105).after(108, 7000, 0, 110)
    assert comparison.low
    assert not comparison.rates
    comparison = comparison.after(113, 8000, 500, 115)
    assert (comparison.rates, comparison.low, comparison.since_s) == ((200_000,), False, 115)


@pytest.mark.parametrize("work", [[0, 0, 0, 0, 0, 0, 0], [0, 1, 1, 1, 9, 9, 9]])
def test_a_host_that_stands_still_has_no_absurd_harm(work):
    comparison = begun(CPU_MS, 0)
    for step, each in enumerate(work):
        at_s = PHASE_S * step
        comparison = comparison.after(at_s, each, 10_000 * step * step, at_s)
        found = comparison.result(BOUND).found
        assert found is None or (math.isfinite(found.mean) and found.mean <= LARGEST)
