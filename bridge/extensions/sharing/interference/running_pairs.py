# SPDX-License-Identifier: Apache-2.0
"""The hosts and guests of one snapshot: their applications, nodes, and use of CPUs as measured."""

from collections.abc import Collection

from bridge.extensions.sharing.counting import pairs
from bridge.extensions.sharing.orders import cpus_of
from bridge.extensions.sharing.slowdown import works_of
from bridge.model.snapshot import Snapshot


class RunningPairs:
    """Reads one snapshot, by rows of running jobs.

    Attributes:
        apps: application of each running job.
        host_of: row of each guest to the row of its host.
    """

    def __init__(self, snapshot: Snapshot, apps: list[str]) -> None:
        """Finds the pairs.

        Args:
            apps: application of each running job.
        """
        self.snapshot, self.now_s, self.apps = snapshot, snapshot.now_s, apps
        self.host_of = pairs(snapshot.running)

    def guests_of(self, host: int) -> list[int]:
        return [guest for guest, its in self.host_of.items() if its == host]

    def pair_apps(self, guest: int) -> tuple[str, str]:
        """Applications of a guest's host, and of itself."""
        return self.apps[self.host_of[guest]], self.apps[guest]

    def nodes(self, row: int) -> list[int]:
        running = self.snapshot.running
        found: list[int] = running.nodes[running.indptr[row] : running.indptr[row + 1]].tolist()
        return found

    def works(self, row: int) -> dict[int, int]:
        """Unit to work of a running job, those that are measured."""
        running = self.snapshot.running
        return works_of(float(running.cpu_s[row]), float(running.progress[row]))

    def cpu_ms(self, row: int) -> int:
        """CPU time of a running job so far, ms; -1: not measured."""
        cpu_s = float(self.snapshot.running.cpu_s[row])
        return -1 if cpu_s < 0 else round(cpu_s * 1000)

    def busy(self, row: int, nodes: Collection[int] = ()) -> float:
        """Share of the CPUs of some of its nodes, or of all, that a running job uses, 0 to 1.

        It is assumed to be equally busy on all nodes on which it has processes.
        """
        running = self.snapshot.running
        held = self.nodes(row)
        used = set(held) - set(running.unused_nodes[row])
        requested = set(nodes) or set(held)
        total = cpus_of(self.snapshot, row) * max(len(used), 1)
        busy = min(max(float(running.busy_cpus[row]), 0.0) / max(total, 1), 1.0)
        return busy * len(requested & used) / max(len(requested), 1)

    def busy_beside(self, guest: int) -> float:
        """Share of the CPUs of a running guest's nodes that its host uses."""
        return self.busy(self.host_of[guest], self.nodes(guest))
