# SPDX-License-Identifier: Apache-2.0
"""The rows of one cycle: which jobs and array tasks are planned, and the result for each.

A plan policy asks its kernel about the rows that can be planned (`Rows.plannable`) and gives the
answer to `Rows.plan`, which puts it beside the other rows.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from bridge.core import LoweredRows, NodePlan
from bridge.dialect import dialect_of
from bridge.model.job import Hold, JobTable
from bridge.model.plan import Plan
from bridge.model.reasons import Reason, ReasonCode
from bridge.model.snapshot import Snapshot
from bridge.planning.eligibility.alternatives import Alternative, Eligibility
from bridge.planning.eligibility.leaf_switches import pending, waits_until_s, wish_reason
from bridge.planning.queue.kept_lowering import KeptLowering, kept_lowering
from bridge.planning.queue.readable_reasons import held_reason
from bridge.planning.queue.time_windows import end_s as ends
from bridge.planning.queue.time_windows import latest_start_s, too_late
from bridge.units import NEVER, UNPLANNED

_PLANNABLE = np.array(
    [hold in (Hold.NONE, Hold.BEGIN_TIME, Hold.RESERVATION) for hold in Hold], dtype=bool
)


def plannable(jobs: JobTable) -> NDArray[np.bool_]:
    """(n_jobs,) which jobs the controller would start if there were room."""
    startable = (jobs.array_tasks == 0) | (jobs.array_startable > 0)
    may: NDArray[np.bool_] = _PLANNABLE[jobs.hold] & startable
    return may


def expand_arrays(jobs: JobTable, order: NDArray[np.int64], array_depth: int) -> NDArray[np.int64]:
    """Repeats each array once per task to be planned; at least one row per job.

    Args:
        order: (n_jobs,) rows of `jobs`.
        array_depth: tasks of one array planned at a time; never more than its own limit allows.
    """
    if not np.count_nonzero(jobs.array_tasks):
        return order
    is_array = jobs.array_tasks[order] > 0
    startable = np.minimum(jobs.array_startable[order], jobs.array_tasks[order])
    times = np.where(is_array, np.clip(startable, 1, array_depth), 1)
    return np.repeat(order, times)


_PlanColumns: TypeAlias = tuple[
    NDArray[np.int32],
    NDArray[np.int64],
    NDArray[np.int64],
    NDArray[np.int32],
    NDArray[np.int64],
]


class Rows:
    """The rows of one cycle.

    Attributes:
        job: (n_rows,) row of `Snapshot.jobs`.
        plannable: (n_plannable,) rows that can be planned.
        kept, lowered: the kept requests, and those of the rows among them; None: none are kept.
        reasons: why a row does not start now; filled for the other rows.
    """

    def __init__(self, snapshot: Snapshot, job: NDArray[np.int64]) -> None:
        """Separates the rows that can be planned from the others.

        Args:
            job: (n_rows,) rows of `snapshot.jobs`.
        """
        self.snapshot, self.job = snapshot, job
        self.reasons: list[Reason | None] = [None] * len(job)
        self.kept = kept_lowering(snapshot)
        self.lowered = None if self.kept is None else self.kept.lower(snapshot, job)
        if self.kept is not None and self.lowered is not None:
            self._take(self.kept, self.lowered)
        else:
            self._find()

    def _take(self, kept: KeptLowering, lowered: LoweredRows) -> None:
        """Sets the rows from kept requests."""
        for row in lowered.held:
            self.reasons[row] = held_reason(self.snapshot, int(self.job[row]))
        if refused := lowered.refused:
            number = lowered.number
            for row in refused:
                self.reasons[row] = kept.refused[int(number[row])]
        self.plannable = lowered.plannable

    def _find(self) -> None:
        """Sets the rows from their requests in this cycle."""
        job = self.job
        may = plannable(self.snapshot.jobs)[job]
        for row in np.flatnonzero(~may).tolist():
            self.reasons[row] = held_reason(self.snapshot, int(job[row]))
        candidates = np.flatnonzero(may)
        requested: list[int] = []
        given: list[tuple[Alternative, ...]] = []
        answers = self.eligibility.alternatives(job[candidates])
        for row, answer in zip(candidates.tolist(), answers, strict=True):
            if isinstance(answer, Reason):
                self.reasons[row] = answer
            else:
                requested.append(row)
                given.append(answer)
        self.plannable = np.array(requested, dtype=np.int64)
        self.alternatives = alternative_columns(given)

    @cached_property
    def eligibility(self) -> Eligibility:
        """Classes and closed times of all plannable rows."""
        found = Eligibility(self.snapshot)
        if self.kept is not None and self.lowered is not None:
            found.classes.begin_with(self.kept.classes(self.lowered.classes))
        return found

    def matching(self, text: str) -> list[NDArray[np.bool_]]:
        """(n_nodes,) which nodes match, for each alternative of a constraint."""
        return self.eligibility.classes.matching(text)

    @cached_property
    def alternatives(self) -> "AlternativeColumns":
        """Those of the plannable rows."""
        assert self.lowered is not None  # else they are set already
        return AlternativeColumns(*self.lowered.alternatives())

    @cached_property
    def plain(self) -> bool:
        """Whether only begin times bound the starts, and no row requires nodes."""
        jobs = self.snapshot.jobs
        return self.lowered is not None and not (
            self.snapshot.reservations
            or np.count_nonzero(jobs.deadline_s)
            or np.count_nonzero(jobs.fixed)
            or np.count_nonzero(jobs.no_place)
            or len(self.snapshot.licences)
            or self.lowered.names_nodes
        )

    def not_before_s(self) -> NDArray[np.int64]:
        """(n_plannable,) the earliest start each asked row allows; 0: any."""
        jobs, take = self.snapshot.jobs, self.job[self.plannable]
        bound = (jobs.hold[take] == Hold.BEGIN_TIME) | jobs.fixed[take]
        return np.where(bound, jobs.begin_s[take], 0)

    def latest_s(self) -> NDArray[np.int64]:
        """(n_alternatives,) the latest start each alternative allows; NEVER: any.

        Deadlines, fixed starts and jobs without a place (`bridge.planning.queue.time_windows`)
        bound it, and the end of the reservation that a job must run in.
        """
        snapshot, alternatives = self.snapshot, self.alternatives
        jobs = snapshot.jobs
        bound = jobs.deadline_s.any() or jobs.fixed.any() or jobs.no_place.any()
        if not (snapshot.reservations or bound):
            return np.full(len(alternatives.class_), NEVER, dtype=np.int64)
        job = np.repeat(self.job[self.plannable], np.diff(alternatives.indptr))
        latest = latest_start_s(snapshot.jobs, job, alternatives.time_limit_s, snapshot.now_s)
        if snapshot.reservations:
            last = np.array([r.end_s - 1 for r in snapshot.reservations] + [NEVER], dtype=np.int64)
            latest = np.minimum(latest, last[snapshot.jobs.reservation[job]])
        return latest

    def missed(
        self,
        at: int,
        start_s: int,
        time_limit_s: int,
        code: ReasonCode = ReasonCode.RESOURCES,
    ) -> Reason | None:
        """Why an asked row whose earliest start is too late has no start.

        Args:
            at: position in `requested`.
            start_s: the earliest start; NEVER: none.
            code: the code of what keeps it from an earlier start.

        Returns:
            None: nothing bounds its start.
        """
        jobs, job = self.snapshot.jobs, int(self.job[self.plannable[at]])
        own = int(jobs.reservation[job])
        if own >= 0 and self.snapshot.reservations[own].end_s <= start_s < NEVER:
            name = self.snapshot.reservations[own].name
            # The reservation exists, so Slurm's reason for a missing reservation would be wrong.
            return Reason(code, f"reservation {name} ends before the job can start")
        return too_late(jobs, job, start_s, time_limit_s, now_s=self.snapshot.now_s, code=code)

    def plan(
        self,
        policy: str,
        *,
        start: NDArray[np.int64],
        alternative: NDArray[np.int32],
        indptr: NDArray[np.int64],
        nodes: NDArray[np.int32],
        tasks: NDArray[np.int32],
        groups: NDArray[np.int32] | None = None,
    ) -> Plan:
        """Combines a kernel's result with the other rows.

        Args:
            start: (n_plannable,) s; NEVER and UNPLANNED have no nodes.
            alternative: (n_plannable,) which of the row's own alternatives; -1: none.
            indptr: (n_plannable + 1,) offsets into `nodes` and `tasks`.
            nodes: ascending within a row.
            tasks: on each of `nodes`.
            groups: see `Plan.groups`.
        """
        if self.lowered is not None:
            columns = self.lowered.planned(start, alternative, indptr)
        else:
            columns = self._planned(start, alternative, indptr)
        return self._plan(policy, columns, alternative, nodes=nodes, tasks=tasks, groups=groups)

    def plan_in_order(self, policy: str, found: NodePlan) -> Plan:
        """The same, for the result of `plan_nodes` for the plannable rows in their order."""
        if self.lowered is None:
            columns = self._planned(found.start, found.alternative, found.indptr)
        else:
            columns = self.lowered.planned(found)
        return self._plan(
            policy, columns, found.alternative, nodes=found.nodes, tasks=found.tasks, groups=None
        )

    def _plan(
        self,
        policy: str,
        columns: _PlanColumns,
        alternative: NDArray[np.int32],
        *,
        nodes: NDArray[np.int32],
        tasks: NDArray[np.int32],
        groups: NDArray[np.int32] | None,
    ) -> Plan:
        job, start_s, end_s, partition, offsets = columns
        return Plan.of_columns(
            now_s=self.snapshot.now_s,
            policy=policy,
            job=job,
            start_s=start_s,
            end_s=end_s,
            partition=partition,
            indptr=offsets,
            nodes=nodes,
            tasks=tasks,
            reasons=self._told(start_s, alternative),
            groups=groups,
        )

    def _planned(
        self, start: NDArray[np.int64], alternative: NDArray[np.int32], indptr: NDArray[np.int64]
    ) -> _PlanColumns:
        """Job, start, end, partition and offsets of all rows."""
        n_rows, requested, alternatives = len(self.job), self.plannable, self.alternatives
        start_s = np.full(n_rows, UNPLANNED, dtype=np.int64)
        end_s = np.zeros(n_rows, dtype=np.int64)
        partition = np.full(n_rows, -1, dtype=np.int32)
        width = np.zeros(n_rows, dtype=np.int64)
        start_s[requested] = start
        width[requested] = np.diff(indptr)
        has_start = (start != NEVER) & (start != UNPLANNED)
        chosen = alternatives.chosen(alternative)
        at, rows = chosen[has_start], requested[has_start]
        partition[rows] = alternatives.partition[at]
        limit_s, job = alternatives.time_limit_s[at], self.job[rows]
        end_s[rows] = ends(self.snapshot.jobs, job, start[has_start], limit_s)
        offsets = np.concatenate(([0], np.cumsum(width))).astype(np.int64)
        return self.job.astype(np.int32), start_s, end_s, partition, offsets

    def _told(
        self, start_s: NDArray[np.int64], alternative: NDArray[np.int32]
    ) -> tuple[Reason | None, ...]:
        """The reasons, with the leaf switches that rows wait for."""
        if self.snapshot.topology is None:
            return tuple(self.reasons)
        waits = pending(self.snapshot)
        if not waits.any():
            return tuple(self.reasons)
        until, wishes = waits_until_s(self.snapshot.jobs), self.snapshot.jobs.switches
        texts, alternatives = list(self.reasons), self.alternatives
        chosen = alternatives.chosen(alternative)
        for at in np.flatnonzero(waits[self.job[self.plannable]]).tolist():
            row = int(self.plannable[at])
            reason = texts[row]
            if start_s[row] == self.snapshot.now_s or reason is None:
                continue
            own = alternatives.class_[alternatives.indptr[at] : alternatives.indptr[at + 1]]
            later = [self.eligibility.classes.opens_s(class_) > 0 for class_ in own.tolist()]
            texts[row] = wish_reason(
                reason, int(wishes[self.job[row]]), int(until[self.job[row]]),
                node=dialect_of(self.snapshot).words.node, impossible=all(later),
                for_switches=later[int(chosen[at] - alternatives.indptr[at])],
            )  # fmt: skip
        return tuple(texts)


@dataclass(frozen=True)
class AlternativeColumns:
    """The alternatives of all rows, as columns; row i has those in indptr[i]:indptr[i + 1]."""

    indptr: NDArray[np.int64]
    class_: NDArray[np.int64]
    partition: NDArray[np.int64]
    time_limit_s: NDArray[np.int64]
    min_nodes: NDArray[np.int64]
    max_nodes: NDArray[np.int64]

    def chosen(self, alternative: NDArray[np.int32]) -> NDArray[np.int64]:
        """Positions in the columns of each row's chosen alternative (its first if none)."""
        position: NDArray[np.int64] = self.indptr[:-1] + np.maximum(alternative, 0)
        return position


def alternative_columns(given: list[tuple[Alternative, ...]]) -> AlternativeColumns:
    distinct: dict[int, int] = {}  # equal requests share one tuple: compare by identity
    tuples: list[tuple[Alternative, ...]] = []
    which = np.empty(len(given), dtype=np.int64)
    for position, several in enumerate(given):
        index = distinct.setdefault(id(several), len(tuples))
        if index == len(tuples):
            tuples.append(several)
        which[position] = index
    table = np.array(
        [
            (a.class_, a.partition, a.time_limit_s, a.min_nodes, a.max_nodes)
            for several in tuples
            for a in several
        ],
        dtype=np.int64,
    ).reshape(-1, 5)
    length = np.array([len(several) for several in tuples], dtype=np.int64)
    offset = np.concatenate(([0], np.cumsum(length)))[which]
    counts = length[which]
    indptr = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    at = np.repeat(offset - indptr[:-1], counts) + np.arange(indptr[-1])
    return AlternativeColumns(indptr, *(np.ascontiguousarray(column) for column in table[at].T))
