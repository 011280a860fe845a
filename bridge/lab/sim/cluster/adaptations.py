# SPDX-License-Identifier: Apache-2.0
"""Changes of width of simulated running jobs, from their beginning to their end.

Added nodes belong to the job at once. Removed nodes stay with it until the change is complete.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bridge.lab.sim.cluster.occupancy import Occupancy
from bridge.lab.sim.cluster.running_jobs import RunningJobs
from bridge.lab.sim.workloads.workload import Malleable
from bridge.units import NEVER


class Adaptations:
    """The changes in progress."""

    def __init__(
        self, running: RunningJobs, widths: Malleable | None, occupancy: Occupancy
    ) -> None:
        """Starts without changes.

        Args:
            running: the running jobs; their allocations are changed.
            widths: which jobs can be resized, and how; None: none.
            occupancy: the occupancy of the nodes; it is changed.
        """
        self._running, self._widths, self._occupancy = running, widths, occupancy
        self._begun: list[int] = []

    def begin(self, job: int, after: NDArray[np.int32], by_s: int, now_s: int) -> None:
        """Gives a running job other nodes.

        Args:
            job: one that may change to these nodes.
            after: (n,) indexes; more than it has, or some of them.
            by_s: when the change is to be complete, unless the workload says how long it takes.
        """
        held, widths = self._running.allocations[job], self._widths
        assert widths is not None
        by_s = max(by_s, now_s + 1)
        goes_on_s, still_s = 0.0, float(by_s - now_s)
        if widths.changes is not None:
            change = widths.changes.of(len(held.nodes), len(after))
            by_s, goes_on_s, still_s = now_s + change.whole_s, change.goes_on_s, change.still_s
        new = np.setdiff1d(after, held.nodes)
        if len(new):
            resized = held.grown(new, self._occupancy.capacity, by_s)
            self._occupancy.take(new, resized.use[np.isin(resized.nodes, new)], held.exclusive)
        else:
            resized = held.shrunk(after, by_s)
        assert resized.adaptation is not None
        times = replace(resized.adaptation, goes_on_s=goes_on_s, still_s=still_s)
        self._running.hold(job, replace(resized, resized_s=now_s, adaptation=times))
        self._begun.append(job)

    def take_begun(self) -> list[int]:
        """Jobs that have begun to change their width since the last call."""
        begun, self._begun = self._begun, []
        return begun

    def next_s(self) -> int:
        """When the next change is complete; NEVER: none is in progress."""
        due = (
            held.adaptation.by_s
            for held in self._running.allocations.values()
            if held.adaptation is not None
        )
        return min(due, default=NEVER)

    def finish(self, now_s: int) -> list[int]:
        """Ends the changes that are complete by now; returns the jobs."""
        done = [
            job
            for job, held in self._running.allocations.items()
            if held.adaptation is not None and held.adaptation.by_s <= now_s
        ]
        for job in done:
            held = self._running.allocations[job]
            assert held.adaptation is not None
            self._occupancy.give_back(held.adaptation.nodes, held.adaptation.use, held.exclusive)
            self._running.hold(job, replace(held, adaptation=None))
        return done
