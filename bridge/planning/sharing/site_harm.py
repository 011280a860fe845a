# SPDX-License-Identifier: Apache-2.0
"""The mean harm of all observations on the site, which ends sharing when it is too large."""

import math
from typing import Final

from bridge.model.learnt import Learning
from bridge.planning.sharing.slowdown import SURE

KEY: Final = "site"
"""[observations in thousandths, mean and mean of squares in millionths]."""
LEAST: Final = 10
"""Fewer observations end nothing."""
MEMORY: Final = 100
MOST_HARM: Final = 0.25
"""A larger one counts as this: no single pair shall end sharing for the whole site."""
_UNIT: Final = 1_000_000


class SiteHarm:
    """Mean and variance over about the last `MEMORY` observations."""

    def __init__(self, learning: Learning) -> None:
        """Begins with what is known."""
        self._learning = learning
        numbers = learning.known.get(KEY) or [0, 0, 0]
        self.count, self.mean, self._squares = (
            min(max(numbers[0] / 1000, 0.0), MEMORY), numbers[1] / _UNIT, numbers[2] / _UNIT,
        )  # fmt: skip

    def add(self, harm: float) -> None:
        """One more observation, within `MOST_HARM` in both directions."""
        harm = min(max(harm, -MOST_HARM), MOST_HARM)
        self.count = min(self.count + 1, MEMORY)
        self.mean += (harm - self.mean) / self.count
        self._squares += (harm * harm - self._squares) / self.count
        self._learning.known[KEY] = [
            round(self.count * 1000), round(self.mean * _UNIT), round(self._squares * _UNIT),
        ]  # fmt: skip

    def passes(self, limit: float) -> bool:
        """Whether the mean is above a limit for sure; then all of it is forgotten."""
        if self.count < LEAST:
            return False
        error = math.sqrt(max(self._squares - self.mean**2, 0.0) / self.count)
        if self.mean - SURE * error <= limit:
            return False
        self._learning.known.pop(KEY)
        return True
