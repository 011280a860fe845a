# SPDX-License-Identifier: Apache-2.0
"""Summaries of measured values."""

import math
from collections.abc import Sequence


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest value that at least `percent` % of the values do not exceed (nearest rank)."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(percent / 100 * len(ordered)) - 1)]


def spread(values: Sequence[float], digits: int = 1) -> dict[str, float | int]:
    """Count, median, p95, largest and mean; only the count if there are no values."""
    if not values:
        return {"n": 0}
    return {
        "n": len(values),
        "median": round(percentile(values, 50), digits),
        "p95": round(percentile(values, 95), digits),
        "max": round(max(values), digits),
        "mean": round(sum(values) / len(values), digits),
    }
