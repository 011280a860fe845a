# SPDX-License-Identifier: Apache-2.0
"""Applies a plan to the records of the simulated controller, as far as it is valid.

The rules are those of `bridge.lab.sim.cluster.controller`.
"""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridge.extensions.sharing.part import shared_of
from bridge.lab.sim.cluster.allocation import Allocation, JobStart
from bridge.lab.sim.cluster.cluster_state import ClusterState
from bridge.lab.sim.cluster.plan_checks import PlanChecks, plan_problem
from bridge.model.decisions.resizes import Resizes
from bridge.model.plan import Plan

_NO_JOBS, _NO_STARTS = np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class PlanRefusal:
    """A start, or a whole plan (`job` None), that the controller did not apply."""

    now_s: int
    job: str | None
    why: str

    def __str__(self) -> str:
        return f"at {self.now_s}: {f'job {self.job}' if self.job else 'plan'}: {self.why}"


class PlanApplication:
    """Checks plans and applies them.

    Attributes:
        refusals: oldest first.
    """

    def __init__(self, state: ClusterState) -> None:
        """Starts without refusals; `state` is changed by plans."""
        self._state, self._jobs = state, state.jobs
        self.refusals: list[PlanRefusal] = []
        self._checks = PlanChecks(
            state.jobs, state.workload.malleable, state.system, state.nodes.occupancy
        )
        self._checked: tuple[Plan, int, str | None] | None = None

    def accepts(self, plan: Plan, made_s: int) -> bool:
        """Whether a plan for the snapshot of `made_s` is not refused as a whole."""
        return self._problem(plan, made_s) is None

    def apply(self, plan: Plan, now_s: int, made_s: int | None = None) -> list[int]:
        """Starts the jobs that the plan starts now, resizes jobs, and changes nodes.

        Args:
            plan: for the last snapshot.
            made_s: time of that snapshot; None: now.

        Returns:
            The jobs started.
        """
        if (why := self._problem(plan, now_s if made_s is None else made_s)) is not None:
            self._refuse(now_s, None, why)
            return []
        state = self._state
        waiting = None if made_s in (None, now_s) else set(state.waiting.rows)
        starts = (self._start_row(plan, row, now_s, waiting) for row in plan.starts_now.tolist())
        started = [job for job in starts if job is not None]
        if started:
            state.waiting.remove(started)
        for row in range(len(plan.resizes)):
            self._resize(plan.resizes, row, now_s)
        state.nodes.go_on(now_s, state.running.allocations.values(), plan)
        return started

    def start(self, start: JobStart, now_s: int) -> None:
        """Starts a job now, without checks."""
        state, job, nodes = self._state, start.job, start.nodes
        exclusive = bool(self._jobs.exclusive[job])
        host = state.guests.row(start.host_id) if start.host_id else None
        use = (
            state.nodes.table.capacity[nodes] if exclusive else self._checks.want(job, start.tasks)
        )
        limit_s = now_s + int(self._jobs.time_limit_s[job])
        held = Allocation(
            nodes, use, now_s, limit_s, start.partition, exclusive, start.predicted_s,
            head=min(nodes.tolist()), host=-1 if host is None else host,
        )  # fmt: skip
        state.nodes.occupancy.take(nodes, state.guests.taken(held), exclusive)
        state.running.hold(job, held)
        if host is not None:
            state.guests.begin(job, host)

    def leaving(self, plan: Plan, now_s: int) -> list[int]:
        """The guests that a valid plan sends back to the queue, as far as they are there."""
        found, running = [], self._state.running.allocations
        for job_id in shared_of(plan).requeues.id.tolist():
            job = self._state.guests.row(job_id)
            if job is not None and job in running and running[job].host >= 0:
                found.append(job)
            else:
                self._refuse(now_s, job_id, "is requeued but no guest")
        return found

    def announced(self, plan: Plan, made_s: int) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
        """The planned starts that a plan for the last snapshot, of `made_s`, announces to users.

        Returns:
            Jobs, ascending, and the earliest later start that the plan has for each. Empty if the
            plan is refused as a whole.
        """
        nobody, shown = (_NO_JOBS, _NO_STARTS), self._state.waiting.shown
        if self._problem(plan, made_s) is not None:
            return nobody
        rows, n_shown = plan.planned, len(shown)
        if not len(rows):
            return nobody
        at = plan.job[rows].tolist()
        if not 0 <= min(at) <= max(at) < n_shown:
            rows = rows[[0 <= one < n_shown for one in at]]
            at = plan.job[rows].tolist()
        if not at:
            return nobody
        jobs = np.array([shown[one] for one in at], dtype=np.intp)
        start_s = plan.start_s[rows]
        if len(at) == 1:  # EASY announces only one
            return jobs, start_s
        order = np.lexsort((start_s, jobs))
        jobs, start_s = jobs[order], start_s[order]
        first = np.diff(jobs, prepend=-1) > 0
        return jobs[first], start_s[first]

    def _problem(self, plan: Plan, made_s: int) -> str | None:
        """Why a plan is refused as a whole; None if it is valid. Checked once."""
        if self._checked is None or self._checked[0] is not plan or self._checked[1] != made_s:
            self._checked = plan, made_s, plan_problem(plan, made_s)
        return self._checked[2]

    def _refuse(self, now_s: int, job_id: str | None, why: str) -> None:
        self.refusals.append(PlanRefusal(now_s, job_id, why))

    def _start_row(
        self, plan: Plan, row: int, now_s: int, waiting: Collection[int] | None
    ) -> int | None:
        """Starts the job of a row of a plan; None: it is refused.

        Args:
            plan: valid as a whole.
            waiting: the jobs that still wait; None: those of the last snapshot.
        """
        at, shown = int(plan.job[row]), self._state.waiting.shown
        if not 0 <= at < len(shown):
            self._refuse(now_s, None, f"starts a job in row {at}: none")
            return None
        job = shown[at]
        if waiting is not None and job not in waiting:
            self._refuse(now_s, self._jobs.id[job], "no longer waits")
            return None
        own = slice(int(plan.indptr[row]), int(plan.indptr[row + 1]))
        start = JobStart(
            job,
            np.asarray(plan.nodes[own], dtype=np.int32),
            np.asarray(plan.tasks[own], dtype=np.int64),
            int(plan.partition[row]),
            predicted_s=int(plan.end_s[row] - plan.start_s[row]),
            host_id=shared_of(plan).host_of(row),
        )
        if (why := self._objection(start, now_s)) is not None:
            self._refuse(now_s, self._jobs.id[job], why)
            return None
        self.start(start, now_s)
        return job

    def _objection(self, start: JobStart, now_s: int) -> str | None:
        """Why a start is refused; None if it is valid."""
        job, nodes, host_id = start.job, start.nodes, start.host_id
        state, host = self._state, None
        if job in state.running.allocations:
            return "is started twice by one plan"
        if host_id:
            part = state.system.partitions[start.partition]
            if (why := state.guests.objection(job, host_id, nodes, part)) is not None:
                return why
            host = state.guests.held_by(host_id)
        if (why := self._checks.start(start, state.nodes.table, host)) is not None:
            return why
        if (why := state.nodes.objection(nodes)) is not None:
            return why
        end_s = now_s + int(self._jobs.time_limit_s[job])
        reservation = state.reservations.conflict(nodes, now_s, end_s)
        return None if reservation is None else f"uses nodes of reservation {reservation}"

    def _resize(self, resizes: Resizes, row: int, now_s: int) -> None:
        """Gives a running job other nodes, or refuses to (rule 4)."""
        state, at = self._state, int(resizes.job[row])
        if not 0 <= at < len(state.running.shown):
            self._refuse(now_s, None, f"resizes a job in row {at}: none")
            return
        job, after = state.running.shown[at], np.asarray(resizes.nodes_of(row), dtype=np.int32)
        held = state.running.allocations.get(job)
        if (why := self._checks.resize(job, held, after, state.nodes.table)) is not None:
            self._refuse(now_s, self._jobs.id[job], why)
            return
        state.adaptations.begin(job, after, int(resizes.by_s[row]), now_s)
