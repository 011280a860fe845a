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
    5. Nodes are powered down and up as the plan says (`bridge.sim.cluster.power_states`).
    6. A start as the guest of a running job keeps the rules of `bridge.sim.cluster.guests`, too.
"""

from bisect import insort
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridge.model.decisions.power_saving import NO_POWER_CHANGES, PowerChanges, with_powered_off
from bridge.model.decisions.resizes import Resizes
from bridge.model.job import Ending, JobTable
from bridge.model.plan import Plan
from bridge.model.snapshot import Snapshot
from bridge.planning.queue.implied_switches import imply
from bridge.sim.cluster.adaptations import Adaptations
from bridge.sim.cluster.allocation import Allocation
from bridge.sim.cluster.ended_jobs import EndedJobs
from bridge.sim.cluster.guests import Guests
from bridge.sim.cluster.job_rows import ColumnRows
from bridge.sim.cluster.occupancy import Occupancy
from bridge.sim.cluster.plan_checks import PlanChecks, plan_problem
from bridge.sim.cluster.power_states import PowerStates
from bridge.sim.cluster.reservations import Reservations
from bridge.sim.cluster.running_jobs import RunningJobs
from bridge.sim.workloads.requests import requests
from bridge.sim.workloads.system import System
from bridge.sim.workloads.workload import Workload

Readings = Callable[[Sequence[int], int], Mapping[str, NDArray[Any]]]
"""Jobs in the order of their rows, and the present, to columns of their table."""

_NO_LICENCES = np.zeros(0, dtype=np.int64)
_NO_JOBS, _NO_STARTS = np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class Refusal:
    """A start, or a whole plan (`job` None), that the controller did not apply."""

    now_s: int
    job: str | None
    why: str

    def __str__(self) -> str:
        return f"at {self.now_s}: {f'job {self.job}' if self.job else 'plan'}: {self.why}"


class Controller:
    """Queue and nodes at one instant; jobs are named by their row in the workload.

    Attributes:
        waiting: pending jobs in order of submission.
        running: the allocation of each running job, in order of start.
        occupancy: what they hold of each node.
        adaptations: changes of width in progress.
        power_states: of the nodes; None: none can be powered down.
        refusals: oldest first.
        reservations: made and removed by operators.
        guests: which jobs run on which hosts' CPUs.
        readings: gives what is measured of running jobs as columns of their table; None: nothing.
    """

    def __init__(self, workload: Workload, system: System) -> None:
        self.workload, self.system = workload, system
        jobs = requests(workload, system)
        # `requeue` and `submit` change these.
        self.jobs = replace(jobs, version=jobs.version.copy(), eligible_s=jobs.eligible_s.copy())
        self.nodes = system.nodes
        self.waiting: list[int] = []
        self._running = RunningJobs(self.jobs, workload.malleable, len(system.resources))
        self.running = self._running.allocations
        self.refusals: list[Refusal] = []
        self.reservations = Reservations(self.running)
        self.occupancy = Occupancy(system.nodes.capacity)
        self.power_states: PowerStates | None = None
        self.adaptations = Adaptations(self._running, workload.malleable, self.occupancy)
        self.guests = Guests(self.jobs, self._running, self.occupancy)
        self.readings: Readings | None = None
        self._checks = PlanChecks(self.jobs, workload.malleable, system, self.occupancy)
        self._ended = EndedJobs(self.jobs)
        self._generation = 0
        self._empty = Snapshot(
            now_s=0,
            generation=0,
            resources=system.resources,
            nodes=self.nodes,
            jobs=self.jobs,
            running=self._running.table(),
            partitions=system.partitions,
            reservations=(),
            licences=(),
            licence_total=_NO_LICENCES,
            topology=system.topology,
        )
        self._shown: list[int] = []
        self._shown_s = 0
        live = {"version"} if workload.after is None else {"version", "eligible_s"}
        self._rows = ColumnRows(vars(self.jobs), live=frozenset(live))
        self._queue: JobTable | None = None
        self._checked: tuple[Plan, int, str | None] | None = None

    @property
    def used_processors(self) -> int:
        """Processors that jobs hold."""
        return int((self.occupancy.capacity[:, 0] - self.occupancy.free[:, 0]).sum())

    # ------------------------------------------------------------ events

    def submit(self, job: int, eligible_s: int | None = None) -> None:
        """Puts a job into the queue, at its place by submission.

        Args:
            job: its row.
            eligible_s: when it became eligible; None: as its request says.
        """
        if eligible_s is not None:
            self.jobs.eligible_s[job] = eligible_s
        insort(self.waiting, job)

    def release(self, job: int) -> Allocation:
        """Frees a running job's nodes: it ended, was cancelled, or lost a node."""
        held = self._running.remove(job)
        self.occupancy.give_back(held.nodes, self.guests.taken(held), held.exclusive)
        self.guests.end(job, held)
        if held.adaptation is not None:
            self.occupancy.give_back(held.adaptation.nodes, held.adaptation.use, held.exclusive)
        return held

    def end(self, job: int, now_s: int, ending: Ending) -> None:
        """Records a running job's end; the next snapshot reports it."""
        held = self.release(job)
        if now_s > held.start_s:
            self._ended.add(job, held.start_s, now_s, ending)

    def accepts(self, plan: Plan, made_s: int) -> bool:
        """Whether a plan is not refused as a whole."""
        return self._problem(plan, made_s) is None

    def leaving(self, plan: Plan, now_s: int) -> list[int]:
        """The guests that a valid plan sends back to the queue, as far as they are there."""
        found = []
        for job_id in plan.requeues.id.tolist():
            job = self.guests.row(job_id)
            if job is not None and job in self.running and self.running[job].host >= 0:
                found.append(job)
            else:
                self.refusals.append(Refusal(now_s, job_id, "is requeued but no guest"))
        return found

    def set_usable(self, node: int, usable: bool) -> None:
        """Takes a node out of service or returns it; its jobs are not changed."""
        column, states = self.nodes.usable.copy(), list(self.nodes.state)
        column[node], states[node] = usable, "UP" if usable else "DOWN"
        self.nodes = replace(self.nodes, usable=column, state=tuple(states))

    def jobs_on(self, node: int) -> list[int]:
        """Running jobs that hold a node."""
        return [
            job
            for job, held in self.running.items()
            if node in held.nodes or (held.adaptation is not None and node in held.adaptation.nodes)
        ]

    def requeue(self, job: int) -> None:
        """Requeues a job that lost its nodes, with its next version."""
        self.jobs.version[job] += 1
        self._queue = None
        insort(self.waiting, job)

    def snapshot(self, now_s: int) -> Snapshot:
        """The present state. The rows of its job table are `waiting`, in that order."""
        self._generation += 1
        if self._queue is None or self._shown != self.waiting:
            self._shown = list(self.waiting)
            rows = np.array(self._shown, dtype=np.int64)
            self._queue = JobTable.of_columns(self._rows.take(rows))
        self._shown_s = now_s
        running = self._running.table()
        if self.readings is not None:
            running = replace(running, **self.readings(self._running.shown, now_s))
        snapshot = self._empty.with_tables(
            now_s=now_s,
            generation=self._generation,
            nodes=self.nodes,
            jobs=self._queue,
            running=running,
            reservations=self.reservations.open(now_s),
            ended=self._ended.take(),
        )
        return imply(with_powered_off(snapshot), self.system.wait_s)

    def _problem(self, plan: Plan, now_s: int) -> str | None:
        """Why a plan is refused as a whole; None if it is valid. Checked once."""
        if self._checked is None or self._checked[0] is not plan or self._checked[1] != now_s:
            self._checked = plan, now_s, plan_problem(plan, now_s)
        return self._checked[2]

    def announced(self, plan: Plan) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
        """The planned starts that a plan for the last snapshot announces to users.

        Returns:
            Jobs, ascending, and the earliest later start that the plan has for each. Empty if the
            plan is refused as a whole.
        """
        nobody = _NO_JOBS, _NO_STARTS
        if self._problem(plan, self._shown_s) is not None:
            return nobody
        rows, n_shown = plan.planned, len(self._shown)
        if not len(rows):
            return nobody
        at = plan.job[rows].tolist()
        if not 0 <= min(at) <= max(at) < n_shown:
            rows = rows[[0 <= one < n_shown for one in at]]
            at = plan.job[rows].tolist()
        if not at:
            return nobody
        jobs = np.array([self._shown[one] for one in at], dtype=np.intp)
        start_s = plan.start_s[rows]
        if len(at) == 1:  # EASY announces only one
            return jobs, start_s
        order = np.lexsort((start_s, jobs))
        jobs, start_s = jobs[order], start_s[order]
        first = np.diff(jobs, prepend=-1) > 0
        return jobs[first], start_s[first]

    def apply(self, plan: Plan, now_s: int, made_s: int | None = None) -> list[int]:
        """Starts the jobs that the plan starts now, as far as that is valid.

        Args:
            plan: for the last snapshot.
            now_s: when it is applied.
            made_s: time of that snapshot; None: now.

        Returns:
            The jobs started.
        """
        if (why := self._problem(plan, now_s if made_s is None else made_s)) is not None:
            self.refusals.append(Refusal(now_s, None, why))
            return []
        started: list[int] = []
        left = self.waiting if made_s in (None, now_s) else set(self.waiting)
        for row in plan.starts_now.tolist():
            shown, partition = int(plan.job[row]), int(plan.partition[row])
            if not 0 <= shown < len(self._shown):
                self.refusals.append(Refusal(now_s, None, f"starts a job in row {shown}: none"))
                continue
            job = self._shown[shown]
            if left is not self.waiting and job not in left:
                self.refusals.append(Refusal(now_s, self.jobs.id[job], "no longer waits"))
                continue
            own = slice(int(plan.indptr[row]), int(plan.indptr[row + 1]))
            nodes = np.asarray(plan.nodes[own], dtype=np.int32)
            tasks = np.asarray(plan.tasks[own], dtype=np.int64)
            host_id = plan.host_of(row)
            why = self._objection(job, nodes, tasks, partition, host_id=host_id, now_s=now_s)
            if why is not None:
                self.refusals.append(Refusal(now_s, self.jobs.id[job], why))
                continue
            predicted_s = int(plan.end_s[row] - plan.start_s[row])
            host = self.guests.row(host_id) if host_id else None
            self._start(job, nodes, tasks, partition, host, now_s=now_s, predicted_s=predicted_s)
            started.append(job)
        if started:
            gone = set(started)
            self.waiting = [job for job in self.waiting if job not in gone]
        for row in range(len(plan.resizes)):
            self._resize(plan.resizes, row, now_s)
        if self.power_states is not None:
            self.power_on_off(now_s, plan.power)
        return started

    def power_on_off(self, now_s: int, changes: PowerChanges = NO_POWER_CHANGES) -> int:
        """Powers nodes down and up, and continues changes under way; returns how much changed."""
        states = self.power_states
        if states is None:
            return 0
        changed, busy = states.happen(now_s), np.zeros(len(self.nodes), dtype=bool)
        for held in self.running.values():
            busy[held.nodes] = True
            if held.adaptation is not None:
                busy[held.adaptation.nodes] = True
        states.use(busy, now_s)
        states.order(changes, now_s)
        self.nodes = states.shown(self.nodes, now_s)
        return changed

    def set_limit(self, job: int, limit_s: int) -> None:
        """Changes the time limit of a running job."""
        self._running.hold(job, replace(self.running[job], limit_s=limit_s))

    def measure(self, job: int, mtct: float) -> None:
        """Sets the measured time in MPI of a running job; see `bridge.sim.runs.mpi_reports`."""
        self._running.measure(job, mtct)

    def measure_power(self, job: int, low_w: int, high_w: int) -> None:
        """Sets the measured draw of a running job on each node, W: a low and a high value."""
        self._running.measure_power(job, low_w, high_w)

    def _resize(self, resizes: Resizes, row: int, now_s: int) -> None:
        """Gives a running job other nodes, or refuses to (rule 4)."""
        shown = int(resizes.job[row])
        if not 0 <= shown < len(self._running.shown):
            self.refusals.append(Refusal(now_s, None, f"resizes a job in row {shown}: none"))
            return
        job, after = self._running.shown[shown], np.asarray(resizes.nodes_of(row), dtype=np.int32)
        if (why := self._checks.resize(job, self.running.get(job), after, self.nodes)) is not None:
            self.refusals.append(Refusal(now_s, self.jobs.id[job], why))
            return
        self.adaptations.begin(job, after, int(resizes.by_s[row]), now_s)

    def _start(
        self,
        job: int,
        nodes: NDArray[np.int32],
        tasks: NDArray[np.int64],
        partition: int,
        host: int | None,
        *,
        now_s: int,
        predicted_s: int,
    ) -> None:
        exclusive = bool(self.jobs.exclusive[job])
        use = self.nodes.capacity[nodes] if exclusive else self._checks.want(job, tasks)
        limit_s = now_s + int(self.jobs.time_limit_s[job])
        held = Allocation(
            nodes, use, now_s, limit_s, partition, exclusive, predicted_s,
            head=min(nodes.tolist()), host=-1 if host is None else host,
        )  # fmt: skip
        self.occupancy.take(nodes, self.guests.taken(held), exclusive)
        self._running.hold(job, held)
        if host is not None:
            self.guests.begin(job, host)

    def _objection(
        self,
        job: int,
        nodes: NDArray[np.int32],
        tasks: NDArray[np.int64],
        partition: int,
        *,
        host_id: str,
        now_s: int,
    ) -> str | None:
        """Why a start is refused; None if it is valid."""
        if job in self.running:
            return "is started twice by one plan"
        host = None
        if host_id:
            part = self.system.partitions[partition]
            if (why := self.guests.objection(job, host_id, nodes, part)) is not None:
                return why
            host = self.guests.held_by(host_id)
        why = self._checks.start(job, nodes, tasks, partition, self.nodes, host=host)
        if why is not None:
            return why
        if self.power_states is not None and not self.power_states.on[nodes].all():
            return "uses a node that is powered off"
        end_s = now_s + int(self.jobs.time_limit_s[job])
        reservation = self.reservations.conflict(nodes, now_s, end_s)
        return None if reservation is None else f"uses nodes of reservation {reservation}"
