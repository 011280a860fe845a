# SPDX-License-Identifier: Apache-2.0
"""Student's t distribution for whole degrees of freedom, in closed form.

Source: M. Abramowitz, I. A. Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4.
"""

from math import atan, cos, isinf, pi, sin, sqrt
from statistics import NormalDist
from typing import Final

NORMAL: Final = NormalDist()
_NEARLY_NORMAL: Final = 2000
"""From so many degrees of freedom on, the normal distribution is as good to four digits."""


def below(t: float, freedom: int) -> float:
    """The probability of a value below `t`.

    Args:
        freedom: degrees of freedom, >= 1.
    """
    if isinf(t):
        return 1.0 if t > 0 else 0.0
    if freedom > _NEARLY_NORMAL:
        return NORMAL.cdf(t)
    angle = atan(t / sqrt(freedom))
    turn = cos(angle) ** 2
    term = cos(angle) if freedom % 2 else 1.0
    total = term if freedom > 1 else 0.0
    for factor in range(3 if freedom % 2 else 2, freedom - 1, 2):
        term *= turn * (factor - 1) / factor
        total += term
    total *= sin(angle)
    within = 2 / pi * (angle + total) if freedom % 2 else total
    return 0.5 + within / 2


def quantile(probability: float, freedom: int) -> float:
    """The value below which a share `probability` (0 < probability < 1) of the values lies."""
    if probability < 0.5:
        return -quantile(1 - probability, freedom)
    low, high = 0.0, 1.0
    while below(high, freedom) < probability:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        if below(middle, freedom) < probability:
            low = middle
        else:
            high = middle
    return (low + high) / 2
