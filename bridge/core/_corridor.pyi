# SPDX-License-Identifier: Apache-2.0
"""Chooses widths of jobs within a corridor of power; the rules of ``_core.pyi`` hold."""

import numpy as np
from numpy.typing import NDArray

class WidthsFound:
    """What ``choose_widths`` found."""

    @property
    def width(self) -> NDArray[np.int64]:
        """(n_jobs,); empty: there are too few nodes for the least widths."""
    @property
    def over_w(self) -> int:
        """By how much the most that the jobs draw lies above the upper bound, W."""
    @property
    def under_w(self) -> int:
        """By how much the least that they draw lies below the lower bound, W."""
    @property
    def steps(self) -> int:
        """Widths looked at."""
    @property
    def proven(self) -> bool:
        """Whether nothing is better in power and idle nodes; False: ``effort`` ended first."""
    @property
    def settled(self) -> bool:
        """Whether nothing is better in changes either."""

def choose_widths(
    indptr: NDArray[np.int64],
    widths: NDArray[np.int64],
    now: NDArray[np.int64],
    least_w: NDArray[np.int64],
    most_w: NDArray[np.int64],
    *,
    nodes: int,
    lower_w: int,
    upper_w: int,
    effort: int,
) -> WidthsFound:
    """Choose one width for each job; branch and bound.

    Of all choices that the nodes suffice for, that with the least power above the upper bound; of
    these the least below the lower bound, then the most nodes, the fewest changed jobs, and the
    fewest changed nodes. Of equal jobs the later one has no fewer nodes. The result depends on the
    order of the jobs only where several choices are equal in all of this.

    Args:
        indptr: (n_jobs + 1,) job i may have ``widths[indptr[i]:indptr[i + 1]]``.
        widths: (n,) ascending for each job, at least 1.
        now: (n_jobs,) present width, one of them; 0: it has none, and does not count as changed.
        least_w: (n_jobs,) of each of its nodes, beyond what an idle one draws, W; for `lower_w`.
        most_w: (n_jobs,) likewise, for `upper_w`.
        nodes: for all of them together.
        lower_w: what they should draw at least, W; 0 or less: no bound.
        upper_w: what they may draw at most, W.
        effort: most widths looked at.

    Raises:
        ValueError: a value is out of range; the text names it.
    """
