# SPDX-License-Identifier: Apache-2.0
"""Jobs that are submitted only when other jobs have ended (`Workload.after`).

A job that is cancelled has ended, too. Jobs that wait for each other are never submitted.
"""

from bridge.lab.sim.workloads.workload import Workload


class Dependencies:
    """Which jobs are held back, and by how many others.

    Attributes:
        held: jobs whose time of submission has come, and that still wait for others.
    """

    def __init__(self, workload: Workload) -> None:
        self.held: set[int] = set()
        self._left: dict[int, int] = {}
        self._followers: dict[int, list[int]] = {}
        if workload.after is None:
            return
        rows = {name: row for row, name in enumerate(workload.id.tolist())}
        for job, names in enumerate(workload.after.tolist()):
            before = {rows[name] for name in names if name in rows}
            if before:
                self._left[job] = len(before)
            for other in before:
                self._followers.setdefault(other, []).append(job)

    def holds(self, job: int) -> bool:
        """Whether a job that is to be submitted must wait; it is held then."""
        if not self._left.get(job):
            return False
        self.held.add(job)
        return True

    def ended(self, job: int) -> list[int]:
        """The held jobs that waited for this one last; they are no longer held."""
        freed = []
        for follower in self._followers.pop(job, ()):
            self._left[follower] -= 1
            if not self._left[follower] and follower in self.held:
                self.held.remove(follower)
                freed.append(follower)
        return freed
