# SPDX-License-Identifier: Apache-2.0
"""Finds irregularities in reports: contradictions that occur on real clusters.

Rules
    1. An irregularity is never an error: the job or node is used as the table says.
    2. A delta may contain one because a former delta was lost. So the first time a full report is
       requested, which is trusted (`bridge.rpc.reported.session`).
    3. What is left out of a full report may be damaged only in that message. While anything is left
       out, a full report is requested again after 60 s, and each time after twice as long, up to an
       hour.

| what | where it comes from | planned with |
|---|---|---|
| more held on a node than there is | a smaller configuration, OverSubscribe, suspension | full |
| two exclusive jobs on a node | suspended jobs, gang scheduling | full, until both have ended |
| a job that starts in the future | the controller's clock was set back | started now |
| a job that ends before it starts | the same, and its end was changed | ends at any moment |
| a running job in no known partition | the partition was deleted | holds its nodes |
| a node without CPUs | one that is not configured yet | not usable |
| a partition that names unknown nodes | nodes that are defined for later (FUTURE) | without them |

What cannot be read at all is irregular as well: the readers of jobs (`cluster`), nodes (`nodes`)
and other objects (`tables`) say how it is planned; all others are planned as usual.
"""

import logging
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from bridge.model.job import RunningTable
from bridge.model.node import CPUS, NodeTable
from bridge.rpc.reported.clock import SKEW_S

_log = logging.getLogger(__name__)

DOUBT_S = 60
"""Shortest time between two requests for a full report, s."""

MAX_REPEAT_S = 3600
"""Longest time until a full report is requested again while something is left out, s."""

MAX_ODD = 1000
"""Irregularities remembered, so that each causes only one request for a full report."""


class Doubts:
    """The irregularities known so far, of which a new one causes a request for a full report."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}
        self._requested_s = -DOUBT_S
        self._repeat_s, self._due_s = DOUBT_S, 0

    def review(self, found: dict[str, str], now_s: int, full: bool) -> str:
        """Records what a report contains.

        Returns:
            New irregularities because of which a full report is to be requested; empty: none, or
            the report was a full one, or one was requested a moment ago.
        """
        fresh = [f"{field} {text}" for field, text in found.items() if field not in self._known]
        shown = "; ".join(fresh[:3]) + (f" and {len(fresh) - 3} more" if len(fresh) > 3 else "")
        if fresh and not full and now_s - self._requested_s >= DOUBT_S:
            self._requested_s = now_s
            return shown
        self._known = found
        if fresh:
            _log.warning("planning with irregular data: %s", shown)
        return ""

    def still_left_out(self, names: list[str], now_s: int, full: bool) -> str:
        """Why a full report is to be requested again (rule 3); empty: it is not.

        Args:
            names: the first objects that are left out after the report.
        """
        if not names:
            self._repeat_s, self._due_s = DOUBT_S, 0
        elif full:
            self._due_s = now_s + self._repeat_s
            self._repeat_s = min(2 * self._repeat_s, MAX_REPEAT_S)
        if not names or full or now_s < max(self._due_s, self._requested_s + DOUBT_S):
            return ""
        self._requested_s = now_s
        more = " and others" if len(names) > 3 else ""
        return f"{', '.join(names[:3])}{more} cannot be read; perhaps the last report was damaged"

    def clock_set_back(self, now_s: int) -> None:
        """The controller's clock was set to this time."""
        self._requested_s = now_s - DOUBT_S
        self._due_s = min(self._due_s, now_s)


def irregularities(
    now_s: int, resources: tuple[str, ...], nodes: NodeTable, running: RunningTable
) -> Iterator[tuple[str, str]]:
    """Yields each irregular field with a description. O(nodes held), in columns."""
    for at in _rows(nodes.usable & (nodes.capacity[:, CPUS] == 0)):
        yield f"nodes[{nodes.names[at]}].cpus", "is usable and has none"
    for at in _rows(running.start_s > now_s + SKEW_S):
        yield f"jobs[{running.id[at]}].allocation.start_s", "is in the future of a running job"
    ends = (running.end_s > 0) & (running.end_s < running.start_s)
    for at in _rows(ends):
        yield f"jobs[{running.id[at]}].allocation.end_s", "is before its start"
    for at in _rows(running.partition < 0):
        yield f"jobs[{running.id[at]}].allocation.partition", "is unknown"
    yield from _overfull(resources, nodes, running)


def _overfull(
    resources: tuple[str, ...], nodes: NodeTable, running: RunningTable
) -> Iterator[tuple[str, str]]:
    held = np.zeros(nodes.capacity.shape, dtype=np.int64)
    np.add.at(held, running.nodes, running.use)
    over = (held > nodes.capacity).nonzero()
    for node, column in zip(*(each.tolist() for each in over), strict=True):
        yield (
            f"nodes[{nodes.names[node]}]",
            f"jobs hold {held[node, column]} of {nodes.capacity[node, column]} "
            f"{resources[column]} there",
        )
    # A completing job has end_s 0: several may do so on one node.
    alone: NDArray[np.bool_] = running.exclusive & (running.end_s > 0)
    holds = alone.repeat(running.indptr[1:] - running.indptr[:-1])
    exclusive = np.bincount(running.nodes[holds], minlength=len(nodes))
    for node in _rows(exclusive > 1):
        yield f"nodes[{nodes.names[node]}]", f"{exclusive[node]} exclusive jobs hold it"


def _rows(mask: NDArray[np.bool_]) -> list[int]:
    found: list[int] = mask.nonzero()[0].tolist()
    return found
