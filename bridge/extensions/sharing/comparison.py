# SPDX-License-Identifier: Apache-2.0
"""Compares a host beside its guest at the floor with the same host beside it at its ceiling.

A change of the host's rate of work since the guest's start may come from the guest or from another
stage of the host. A comparison of rates a few seconds apart shows which.

Terms
    phase   `PHASE_S` or more, in which the guest is held to the floor (low) or has its ceiling
            (high).
    turn    a low and a high phase, in alternating order: low, high, high, low, low, high, ...

Rules
    1. The rate of a phase is that between two measurements within it, so that a change of the
       guest's quota has taken effect. The first one is made when it began, or later.
    2. The harm of a turn is the logarithm of the low phase's rate over the high one's. The interval
       is Student's over turns; their standard deviation is at least that of `NOISE` in both rates.
       Its upper end is one-sided 95 %, its lower one 97.5 %, because harm is tested several times.
       A host that enters another stage harms one turn only, and widens the interval. With the
       alternating order a steady rise or fall cancels out over two turns.
    3. At the floor the guest still uses CPU time. The harm is taken to be proportional to the CPU
       time that the guest uses, so that it is divided by 1 less the ratio of the guest's CPU time
       in low phases to that in high ones. If this ratio is above `MAX_RATIO` or unknown, quotas do
       not change what the guest does, and the comparison says nothing.
    4. The verdict is known after `MIN_TURNS` at the earliest: harm, if the lower end of the
       interval is above the bound; none, if the upper end is not. After `MAX_TURNS` the mean
       decides, if the interval is at most `NARROW` wide above it; otherwise the verdict is unknown.

For hosts that do not react to the guest's quota but jump between two rates, of which one is four
times the other, at random every 5 s, a verdict of harm without harm has a probability of 4 %; for
steady hosts with a noise of 5 to 10 % less than 1 %. Harm of 35 % in steady hosts is found in 3 to
4 turns (`tests/unit/extensions/sharing/test_comparison.py`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import pstdev
from typing import Final

from bridge.extensions.sharing.slowdown import CPU_MS, LARGEST, NOISE, SURE, HostSlowdown, Rate

PHASE_S: Final = 10
MIN_TURNS, MAX_TURNS = 3, 6
MAX_RATIO: Final = 0.5
NARROW: Final = 0.15
_STUDENT: Final = {3: (4.303, 2.920), 4: (3.182, 2.353), 5: (2.776, 2.132), 6: (2.571, 2.015)}
"""Quantiles of 97.5 and 95 %, by the number of turns."""
_MILLI: Final = 1000
_NONE: Final = -1
_MAX_RATE: Final = 10**12
"""Larger rates are invalid: a million CPUs."""


@dataclass(frozen=True)
class ComparisonResult:
    """What a comparison has shown.

    Attributes:
        over: nothing further is measured.
        found: the harm of the guest at its ceiling; None: unknown.
        harmful: it is above the bound.
        alone: the rate of the host's present stage without the guest; None: unknown.
    """

    over: bool
    found: HostSlowdown | None = None
    harmful: bool = False
    alone: Rate | None = None


GOES_ON: Final = ComparisonResult(over=False)
UNKNOWN: Final = ComparisonResult(over=True)


@dataclass(frozen=True)
class Comparison:
    """A comparison that is under way; replaced, never changed.

    Attributes:
        unit: the unit of the host's work.
        since_s: start of the present phase.
        suspect: number of comparisons, with this one, since the host's bound was passed even while
            the guest was held to the floor; 0: it was not.
        at_s, work, guest_ms: the first measurement of the present phase: when, work of the host,
            CPU time of the guest; `at_s` < `since_s`: there was none yet.
        rates, used: rates and use of the phases so far: work of the host per 1,000 s, and CPU time
            of the guest in ms per 1,000 s; -1: not known.
    """

    unit: int
    since_s: int
    suspect: int = 0
    at_s: int = _NONE
    work: int = 0
    guest_ms: int = _NONE
    rates: tuple[int, ...] = ()
    used: tuple[int, ...] = ()

    @property
    def low(self) -> bool:
        """Whether the guest is held to the floor in the present phase."""
        return _is_low(len(self.rates))

    def after(self, at_s: int, work: int, guest_ms: int, now_s: int) -> "Comparison":
        """Takes in a measurement.

        Args:
            work: the work of the host so far.
            guest_ms: CPU time of the guest so far; -1: not known.
            now_s: the present; the next phase begins now if this one is complete.
        """
        if at_s < self.since_s:
            return self
        if self.at_s < self.since_s or work < self.work:
            return replace(self, at_s=at_s, work=work, guest_ms=guest_ms)
        lasted_s = at_s - self.at_s
        if lasted_s < PHASE_S:
            return self
        known = 0 <= self.guest_ms <= guest_ms
        used = round(_MILLI * (guest_ms - self.guest_ms) / lasted_s) if known else _NONE
        rate = min(round(_MILLI * (work - self.work) / lasted_s), _MAX_RATE)
        following = replace(
            self, since_s=now_s, rates=(*self.rates, rate), used=(*self.used, used), at_s=_NONE
        )
        return following.after(at_s, work, guest_ms, now_s)

    def result(self, bound: float) -> ComparisonResult:
        """What is known so far (rules 2 to 4).

        Args:
            bound: the bound of the host's slowdown.
        """
        turns = len(self.rates) // 2
        if not turns:
            return GOES_ON
        low_used, high_used = _split(self.used[: 2 * turns])
        minimum, maximum = sum(low_used), sum(high_used)
        if min(*low_used, *high_used) < 0 or not maximum or minimum > MAX_RATIO * maximum:
            return UNKNOWN
        if not max(self.rates[: 2 * turns]):
            return UNKNOWN
        if turns < MIN_TURNS:
            return GOES_ON
        low, high = _split(self.rates[: 2 * turns])
        mean, below, above = _interval(low, high)
        scale = 1 / (1 - minimum / maximum)
        harm, at_least, at_most = (
            math.expm1(min(each * scale, math.log(LARGEST)))
            for each in (mean, mean - below, mean + above)
        )
        if not (at_least > bound or at_most <= bound):
            if turns < MAX_TURNS:
                return GOES_ON
            if at_most - harm > NARROW:
                return UNKNOWN
        found = HostSlowdown(harm, (harm - at_least) / SURE)
        return ComparisonResult(True, found, harm > bound, self._alone(high, found))

    def _alone(self, high: Sequence[int], found: HostSlowdown) -> Rate:
        """With the deviation between phases, which is larger if the host changes by itself."""
        mean = sum(high) / len(high) / _MILLI * (1 + found.mean)
        deviation = mean * max(pstdev(high) * len(high) / max(sum(high), 1), NOISE)
        return Rate(
            self.unit, self.at_s, self.work, len(high), mean, deviation * deviation, moved=1.0
        )

    @property
    def guest_cpus(self) -> float:
        """CPUs that the guest used in its high phases; -1: not known."""
        _, high = _split(self.used[: len(self.used) // 2 * 2])
        if not high or min(high) < 0:
            return -1.0
        return sum(high) / len(high) / _MILLI / 1000

    def numbers(self) -> list[int]:
        """Whole numbers for the state of the policy."""
        return [
            self.unit, self.since_s, self.suspect, self.at_s, self.work, self.guest_ms,
            *self.rates, *self.used,
        ]  # fmt: skip

    @staticmethod
    def of_numbers(numbers: Sequence[int]) -> "Comparison":
        unit, since_s, suspect, at_s, work, guest_ms, *phases = numbers
        half = len(phases) // 2
        return Comparison(
            unit, since_s, suspect, at_s, work, guest_ms,
            tuple(phases[:half]), tuple(phases[half:]),
        )  # fmt: skip


def begun(unit: int, now_s: int, *, suspect: int = 0) -> Comparison:
    assert unit >= CPU_MS
    return Comparison(unit, now_s, suspect)


def _is_low(phase: int) -> bool:
    return phase % 4 in (0, 3)


def _split(phases: Sequence[int]) -> tuple[list[int], list[int]]:
    """Those of low phases and of high ones, each by turn."""
    low = [each for at, each in enumerate(phases) if _is_low(at)]
    return low, [each for at, each in enumerate(phases) if not _is_low(at)]


def _interval(low: Sequence[int], high: Sequence[int]) -> tuple[float, float, float]:
    """Mean of the turns' logarithms, and its interval's width below and above (rule 2)."""
    minimum = max(*low, *high) / LARGEST / 10
    harms = [math.log(max(a, minimum) / max(b, minimum)) for a, b in zip(low, high, strict=True)]
    turns = len(harms)
    mean = math.fsum(harms) / turns
    variance = math.fsum((each - mean) ** 2 for each in harms) / (turns - 1)
    deviation = max(math.sqrt(variance), NOISE * math.sqrt(2))
    below, above = _STUDENT[min(turns, MAX_TURNS)]
    return mean, below * deviation / math.sqrt(turns), above * deviation / math.sqrt(turns)
