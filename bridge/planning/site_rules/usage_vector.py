# SPDX-License-Identifier: Apache-2.0
"""Used items of one resource over time, for what a plan is checked against without a book.

Source: A. Keller, A Data Structure for Planning Based Workload Management of Heterogeneous HPC
Systems (JSSPP 2017), section 4. Its other operations are those of the book's constraints.
"""

import numpy as np


class UsageVector:
    """Used items of one resource over time: the RUSV of OpenCCS as a step function."""

    def __init__(self) -> None:
        self._start_s = np.zeros(1, dtype=np.int64)
        self._used = np.zeros(1, dtype=np.int64)

    def increment(self, start_s: int, end_s: int, items: int) -> None:
        """Adds items within [start_s, end_s)."""
        first, last = self._cut(start_s), self._cut(end_s)
        self._used[first:last] += items

    def max_used(self, start_s: int, end_s: int) -> int:
        """The largest number of used items within [start_s, end_s)."""
        first = np.searchsorted(self._start_s, start_s, side="right") - 1
        return int(self._used[first : np.searchsorted(self._start_s, end_s)].max())

    def _cut(self, at_s: int) -> int:
        """The step that begins at this second; made if there is none."""
        step = int(np.searchsorted(self._start_s, at_s))
        if step == len(self._start_s) or self._start_s[step] != at_s:
            self._start_s = np.insert(self._start_s, step, at_s)
            self._used = np.insert(self._used, step, self._used[step - 1])
        return step
