# SPDX-License-Identifier: Apache-2.0
"""The nodes that running jobs release or get to reach the widths of a configuration.

Rules
    1. A job keeps its head. Nodes that the waiting jobs could use are released first, starting with
       the last one.
    2. A job grows onto nodes that are idle now and not intended for waiting jobs: to its width of
       the configuration, or to the widest allowed one up to it.
    3. Jobs that shrink still draw their former power: a job grows only as far as power permits in
       addition to that.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridge.extensions.power.planning.configuration import Scalable
from bridge.model.decisions.resizes import Resize
from bridge.model.snapshot import Snapshot
from bridge.planning.malleable.usable import Usable


@dataclass(frozen=True)
class Redistribution:
    """Widths for running jobs.

    Attributes:
        jobs: those that may be resized, by their rows of `Snapshot.running`.
        widths: the target of each, by its id; jobs left out keep theirs.
        by_s: when a change that begins now is complete.
        reason: for all of the changes.
    """

    snapshot: Snapshot
    jobs: Mapping[int, Scalable]
    widths: Mapping[str, int]
    by_s: int
    reason: str

    def shrinks(self, first: NDArray[np.bool_]) -> list[Resize]:
        """The jobs that shrink (rule 1).

        Args:
            first: (n_nodes,) which nodes are released first.
        """
        running, found = self.snapshot.running, []
        for row, job in self.jobs.items():
            more = job.width - self.widths.get(job.id, job.width)
            if more <= 0:
                continue
            nodes = running.nodes[running.indptr[row] : running.indptr[row + 1]]
            others = np.flatnonzero(nodes != running.head_of(row))
            wanted = first[nodes[others]]
            order = np.concatenate((others[~wanted], others[wanted]))
            kept = np.ones(len(nodes), dtype=bool)
            kept[order[len(order) - more :]] = False
            found.append((row, self.by_s, np.sort(nodes[kept]), self.reason))
        return found

    def growths(self, idle: NDArray[np.bool_], room_w: int) -> list[Resize]:
        """The jobs that can grow at once (rules 2 and 3), in order of their ids.

        Args:
            idle: (n_nodes,) the nodes that they may get.
            room_w: the power that they may draw in addition.
        """
        running, found = self.snapshot.running, []
        free = np.flatnonzero(idle).astype(np.int32)
        left, usable = np.ones(len(free), dtype=bool), Usable(self.snapshot, free)
        wider = [
            (len(job.id), job.id, row)
            for row, job in self.jobs.items()
            if self.widths.get(job.id, 0) > job.width
        ]
        for *_, row in sorted(wider):
            job, (group,) = self.jobs[row], usable.groups(np.array([row]))
            wanted = self.widths[job.id]
            at = np.flatnonzero(left & usable.masks[group])
            maximum = min(wanted, job.width + len(at))
            if job.upper_w:
                maximum = min(maximum, job.width + max(room_w, 0) // job.upper_w)
            width = max(each for each in job.widths if each <= max(maximum, job.width))
            if width == job.width:
                continue
            left[at[: width - job.width]] = False
            room_w -= (width - job.width) * job.upper_w
            nodes = running.nodes[running.indptr[row] : running.indptr[row + 1]]
            after = np.union1d(nodes, free[at[: width - job.width]]).astype(np.int32)
            found.append((row, self.by_s, after, self.reason))
        return found
