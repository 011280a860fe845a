# SPDX-License-Identifier: Apache-2.0
"""Time limits of running jobs on fewer nodes.

Terms
    budget      the node-seconds that a job had when it was first seen: its time limit times its
                nodes.

Rules
    1. A job that gives nodes back may use its remaining node-seconds at its new width: whatever its
       speed-up, it is not killed because of a policy's decision.
    2. In total it has no more than its budget, at its smallest width: giving nodes back repeatedly
       adds nothing.
    3. A job that is given nodes keeps its limit, because it is unknown how much of it the job
       needs.
"""

from bridge.model.snapshot import Snapshot
from bridge.units import UNLIMITED_S


class Budgets:
    """The budgets of malleable running jobs, by job id."""

    def __init__(self) -> None:
        self._of: dict[str, tuple[int, int]] = {}

    def see(self, snapshot: Snapshot) -> None:
        """Records new jobs, and forgets ended ones."""
        running = snapshot.running
        rows = ((running.max_nodes > 0) & ~running.releasing).nonzero()[0]
        widths = (running.indptr[1:] - running.indptr[:-1])[rows].tolist()
        start_s, end_s = running.start_s[rows].tolist(), running.end_s[rows].tolist()
        before, self._of = self._of, {}
        for job, start, end, width in zip(running.id[rows], start_s, end_s, widths, strict=True):
            known = before.get(job, (-1, 0))
            self._of[job] = known if known[0] == start else (start, (end - start) * width)

    def end_s(self, snapshot: Snapshot, row: int, width: int) -> int:
        """The end of a job if it gives nodes back now; 0: its limit stays.

        Args:
            snapshot: the cluster, with the nodes that the job still has.
            row: the row of `Snapshot.running`.
            width: nodes that it keeps.
        """
        running = snapshot.running
        before = int(running.indptr[row + 1] - running.indptr[row])
        start_s, budget = self._of.get(str(running.id[row]), (0, 0))
        end_s, left_s = int(running.end_s[row]), int(running.end_s[row]) - snapshot.now_s
        if not 0 < width < before or left_s <= 0 or end_s - start_s >= UNLIMITED_S:
            return 0
        until_s = min(snapshot.now_s + -(-left_s * before // width), start_s + -(-budget // width))
        return until_s if until_s > end_s else 0
