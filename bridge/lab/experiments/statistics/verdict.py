# SPDX-License-Identifier: Apache-2.0
"""Verdicts in words, and the correction for many comparisons.

| words | when |
|---|---|
| better by 12 to 17 % | the interval excludes zero, and Holm's correction keeps the difference |
| worse by 12 to 17 % | likewise |
| better by 12 to 17 %, in these runs alone | likewise, by weeks or users of too few runs |
| no difference shown (-3 to +4 %) | otherwise: there may be one, these runs do not show it |
| no difference: all values are equal | baseline and policy have the same values |
| too few runs to say | there is no interval |

Source: S. Holm, A Simple Sequentially Rejective Multiple Test Procedure, Scandinavian Journal of
Statistics 6(2), 1979.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import isnan
from typing import Final

from bridge.lab.experiments.statistics.bootstrap import Estimate
from bridge.lab.experiments.statistics.quantities import Quantity
from bridge.units import format_duration

SIGNIFICANCE: Final = 0.05
HERE_ALONE: Final = "in these runs alone"
"""Other runs of the same trace, with ties in another order, might differ."""


class Finding(StrEnum):
    """What a comparison showed."""

    BETTER = "better"
    WORSE = "worse"
    NOT_SHOWN = "no difference shown"
    EQUAL = "no difference"
    TOO_FEW = "too few runs to say"


@dataclass(frozen=True)
class Verdict:
    """A verdict.

    Attributes:
        family: how many comparisons Holm's correction is for, this one included.
        p_holm: the corrected p-value; nan without interval.
    """

    outcome: Finding
    words: str
    family: int
    p_holm: float


def holm(p: Sequence[float]) -> list[float]:
    """Corrects p-values for all comparisons of a table; nan stays and does not count."""
    known = sorted((value, index) for index, value in enumerate(p) if not isnan(value))
    corrected = list(p)
    highest = 0.0
    for rank, (value, index) in enumerate(known):
        highest = max(highest, min(1.0, (len(known) - rank) * value))
        corrected[index] = highest
    return corrected


def verdicts(table: Sequence[tuple[Quantity, Estimate]]) -> list[Verdict]:
    """The verdicts of one table, with Holm's correction over its comparisons."""
    corrected = holm([estimate.p for _, estimate in table])
    family = sum(not isnan(estimate.p) for _, estimate in table)
    return [
        _verdict(quantity, estimate, p_holm, family)
        for (quantity, estimate), p_holm in zip(table, corrected, strict=True)
    ]


def _verdict(quantity: Quantity, estimate: Estimate, p_holm: float, family: int) -> Verdict:
    if not estimate.has_interval:
        words = f"{Finding.TOO_FEW} ({signed(quantity, estimate)} here)"
        return Verdict(Finding.TOO_FEW, words, family, p_holm)
    if estimate.low == estimate.high == 0:
        return Verdict(Finding.EQUAL, "no difference: all values are equal", family, p_holm)
    excludes = estimate.low > 0 or estimate.high < 0
    if excludes and p_holm < SIGNIFICANCE:
        gain = estimate.difference * quantity.better > 0
        outcome = Finding.BETTER if gain else Finding.WORSE
        words = f"{outcome} by {_span(quantity, estimate)}"
        alone = f", {HERE_ALONE}" if estimate.over in ("weeks", "users") else ""
        return Verdict(outcome, words + alone, family, p_holm)
    doubt = f"not after Holm's correction for {family} comparisons"
    if family == 1:
        doubt = "the test of the difference does not confirm it"
    why = f"; {doubt}" if excludes else ""
    words = f"{Finding.NOT_SHOWN} ({interval(quantity, estimate)}{why})"
    return Verdict(Finding.NOT_SHOWN, words, family, p_holm)


def signed(quantity: Quantity, estimate: Estimate) -> str:
    """The difference with its sign: `-12 %`, `+3 min`."""
    if isnan(estimate.difference):
        return "unknown"
    if estimate.relative:
        return f"{_number(100 * estimate.difference, 100 * estimate.difference, plus=True)} %"
    return f"{'+' if estimate.difference > 0 else ''}{amount(quantity, estimate.difference)}"


def interval(quantity: Quantity, estimate: Estimate) -> str:
    """The interval with signs: `-3 to +4 %`."""
    low, high = estimate.low, estimate.high
    if estimate.relative:
        wide = 100 * (high - low)
        low_text, high_text = (_number(100 * end, wide, plus=True) for end in (low, high))
        return f"{low_text} to {high_text} %"
    return " to ".join(f"{'+' if end > 0 else ''}{amount(quantity, end)}" for end in (low, high))


def amount(quantity: Quantity, value: float) -> str:
    """A value in the unit of its measure: `3 h 20 min`, `41.3`, `87.0 %`."""
    if isnan(value):
        return "unknown"
    if quantity.unit == "s":
        return f"{'-' if value < 0 else ''}{format_duration(abs(value))}"
    return percent(value) if quantity.unit == "share" else f"{value:,.1f}"


def percent(share: float, decimals: int = 1) -> str:
    """A share: `41.3 %`."""
    return f"{100 * share:.{decimals}f} %"


def _span(quantity: Quantity, estimate: Estimate) -> str:
    """An interval that excludes zero, without sign, smaller end first: `12 to 17 %`."""
    near, far = sorted((abs(estimate.low), abs(estimate.high)))
    if not estimate.relative:
        near_text, far_text = amount(quantity, near), amount(quantity, far)
        return near_text if near_text == far_text else f"{near_text} to {far_text}"
    wide = 100 * (far - near)
    near_text, far_text = _number(100 * near, wide), _number(100 * far, wide)
    return f"{near_text} %" if near_text == far_text else f"{near_text} to {far_text} %"


def _number(value: float, wide: float, *, plus: bool = False) -> str:
    """As many decimals as an interval of this width deserves, at most two."""
    wide = abs(wide)
    decimals = 0 if wide >= 3 and abs(value) >= 1 else 1 if wide >= 0.3 else 2
    text = f"{value:,.{decimals}f}"
    if not float(text.replace(",", "")):
        return "0"
    return f"+{text}" if plus and value > 0 else text
