# SPDX-License-Identifier: Apache-2.0
"""Moldable jobs that start on another number of nodes than requested.

A job that starts on fewer nodes takes longer, so its planned time changes with its width. Planners
see a snapshot in which it requests this number of nodes and this time.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from bridge.model.snapshot import Snapshot


def _no_numbers() -> NDArray[np.int64]:
    return np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class StartWidths:
    """Waiting jobs with other widths, as columns of length n_widths.

    Attributes:
        job: int64 rows of `Snapshot.jobs`, ascending, each once.
        nodes: int64: how many nodes it starts on.
        time_limit_s: int64: its time limit there.
    """

    job: NDArray[np.int64] = field(default_factory=_no_numbers)
    nodes: NDArray[np.int64] = field(default_factory=_no_numbers)
    time_limit_s: NDArray[np.int64] = field(default_factory=_no_numbers)

    def __len__(self) -> int:
        return len(self.job)

    def only(self, rows: Sequence[int]) -> "StartWidths":
        """Some of them, by their rows here."""
        at = np.array(rows, dtype=np.intp)
        return StartWidths(self.job[at], self.nodes[at], self.time_limit_s[at])

    @staticmethod
    def of(rows: Sequence[tuple[int, int, int]]) -> "StartWidths":
        """Builds the columns.

        Args:
            rows: for each job (row of `Snapshot.jobs`, nodes, time limit); in any order.
        """
        if not rows:
            return NO_START_WIDTHS
        return StartWidths(*np.ascontiguousarray(np.array(sorted(rows), dtype=np.int64).T))


NO_START_WIDTHS = StartWidths()


def with_start_widths(snapshot: Snapshot, widths: StartWidths) -> Snapshot:
    """The snapshot in which these jobs ask for these nodes and times."""
    if not len(widths):
        return snapshot
    jobs = snapshot.jobs
    nodes, time_limit_s = jobs.min_nodes.copy(), jobs.time_limit_s.copy()
    max_nodes = jobs.max_nodes.copy()
    nodes[widths.job] = max_nodes[widths.job] = widths.nodes
    time_limit_s[widths.job] = widths.time_limit_s
    changed = {"min_nodes": nodes, "max_nodes": max_nodes, "time_limit_s": time_limit_s}
    return snapshot.with_jobs(jobs.with_columns(**changed))
