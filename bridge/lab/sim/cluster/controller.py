# SPDX-License-Identifier: Apache-2.0
"""The simulated controller, the authority on queue and nodes. It checks every plan.

Like slurmctld it reports its state (a `Snapshot`), receives a `Plan`, checks every start against
its own records, applies the valid ones and refuses the others, each with a reason.

Rules
    1. A plan made for another second is stale and refused as a whole; so is one with inconsistent
       columns.
    2. A start is refused unless the job is pending, and its nodes exist, are usable, belong to the
       partition, match the request (number, features, names, tasks on each), and have room for it.
       A moldable job may get any number of nodes that it allows.
    3. A job holds its nodes from its start until it ends, is cancelled, or loses a node. A job that
       loses a node is requeued at its old position and starts from the beginning.
    4. A resize is refused unless the job runs, is malleable and not adapting, and all added nodes
       are free. Added nodes belong to the job at once. Removed nodes stay with it until the time
       that the plan states; until then it is adapting.
    5. Nodes change as the parts of extensions say (`bridge.extensions.port.SimulatedNodes`).
    6. A start as the guest of a running job also keeps the rules of
       `bridge.lab.sim.cluster.guests`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridge.extension_packages import overlaid
from bridge.lab.sim.cluster.allocation import Allocation
from bridge.lab.sim.cluster.cluster_state import ClusterState
from bridge.lab.sim.cluster.ended_jobs import EndedJobs
from bridge.lab.sim.cluster.plan_application import PlanApplication
from bridge.lab.sim.workloads.system import System
from bridge.lab.sim.workloads.workload import Workload
from bridge.model.job import Ending
from bridge.model.plan import Plan
from bridge.model.snapshot import Snapshot
from bridge.planning.queue.implied_switches import imply

Readings = Callable[[Sequence[int], int], Mapping[str, NDArray[Any]]]
"""Jobs in the order of their rows, and the present, to columns of their table."""

_NO_LICENCES = np.zeros(0, dtype=np.int64)


class Controller:
    """Queue and nodes at one instant; jobs are named by their row in the workload.

    Attributes:
        running: the allocation of each running job, in order of start.
        nodes: what they hold of each, and what extensions keep of it.
        adaptations: changes of width in progress.
        reservations: made and removed by operators.
        guests: which jobs run on which hosts' CPUs.
        plans: checks plans and applies them.
        readings: gives what is measured of running jobs as columns of their table; None: nothing.
    """

    def __init__(self, workload: Workload, system: System) -> None:
        self._state = state = ClusterState(workload, system)
        self.running, self.nodes = state.running.allocations, state.nodes
        self.adaptations, self.guests = state.adaptations, state.guests
        self.reservations = state.reservations
        self.plans = PlanApplication(state)
        self.readings: Readings | None = None
        self._ended = EndedJobs(state.jobs)
        self._generation = self._shown_s = 0
        self._empty = Snapshot(
            now_s=0,
            generation=0,
            resources=system.resources,
            nodes=state.nodes.table,
            jobs=state.jobs,
            running=state.running.table(),
            partitions=system.partitions,
            reservations=(),
            licences=(),
            licence_total=_NO_LICENCES,
            topology=system.topology,
        )

    @property
    def waiting(self) -> Sequence[int]:
        """Pending jobs in order of submission."""
        return self._state.waiting.rows

    def snapshot(self, now_s: int) -> Snapshot:
        """The present state. The rows of its job table are `waiting`, in that order."""
        self._generation += 1
        self._shown_s, running = now_s, self._state.running.table()
        if self.readings is not None:
            running = replace(running, **self.readings(self._state.running.shown, now_s))
        snapshot = self._empty.with_tables(
            now_s=now_s,
            generation=self._generation,
            nodes=self.nodes.table,
            jobs=self._state.waiting.table(),
            running=running,
            reservations=self.reservations.open(now_s),
            ended=self._ended.take(),
        )
        return imply(overlaid(snapshot), self._state.system.wait_s)

    def announced(self, plan: Plan) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
        """As `PlanApplication.announced`, of a plan for the last snapshot."""
        return self.plans.announced(plan, self._shown_s)

    # ------------------------------------------------------------ events

    def submit(self, job: int, eligible_s: int | None = None) -> None:
        """Puts a job into the queue, at its place by submission.

        Args:
            eligible_s: when it became eligible; None: as its request says.
        """
        self._state.waiting.submit(job, eligible_s)

    def cancel(self, job: int) -> None:
        """Removes a job from the queue."""
        self._state.waiting.remove([job])

    def requeue(self, job: int) -> None:
        """Requeues a job that lost its nodes, with its next version."""
        self._state.waiting.requeue(job)

    def release(self, job: int) -> Allocation:
        """Frees a running job's nodes: it ended, was cancelled, or lost a node."""
        held, occupancy = self._state.running.remove(job), self.nodes.occupancy
        occupancy.give_back(held.nodes, self.guests.taken(held), held.exclusive)
        self.guests.end(job, held)
        if held.adaptation is not None:
            occupancy.give_back(held.adaptation.nodes, held.adaptation.use, held.exclusive)
        return held

    def end(self, job: int, now_s: int, ending: Ending) -> None:
        """Records a running job's end; the next snapshot reports it."""
        held = self.release(job)
        if now_s > held.start_s:
            self._ended.add(job, held.start_s, now_s, ending)

    def jobs_on(self, node: int) -> list[int]:
        """Running jobs that hold a node."""
        return [
            job
            for job, held in self.running.items()
            if node in held.nodes or (held.adaptation is not None and node in held.adaptation.nodes)
        ]

    def continue_nodes(self, now_s: int) -> int:
        """Continues changes of nodes under way; returns how much changed."""
        return self.nodes.go_on(now_s, self.running.values())

    def set_limit(self, job: int, limit_s: int) -> None:
        """Changes the time limit of a running job."""
        self._state.running.hold(job, replace(self.running[job], limit_s=limit_s))

    def measure(self, job: int, mtct: float) -> None:
        """Sets the measured time in MPI of a running job; see `bridge.lab.sim.runs.mpi_reports`."""
        self._state.running.measure(job, mtct)

    def measure_power(self, job: int, low_w: int, high_w: int) -> None:
        """Sets the measured draw of a running job on each node, W: a low and a high value."""
        self._state.running.measure_power(job, low_w, high_w)
