# SPDX-License-Identifier: Apache-2.0
"""Readable reasons why rows planned by the book do not start now.

Rules
    1. A limit that refuses a job, and a FreePool that keeps it out, take precedence.
    2. The reason of a job that cannot start in time (deadline, fixed start, end of its reservation)
       says when it could start.
    3. Rows that wait for the same share one reason.
    4. Reasons that depend on nothing but the request and the verdict are kept from cycle to cycle
       (`bridge.planning.queue.kept_lowering`).
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from bridge.core import Blocked
from bridge.dialect import dialect_of
from bridge.model.reasons import Reason, ReasonCode
from bridge.planning.queue.columns import by_appearance, packed
from bridge.planning.queue.readable_reasons import Explainer
from bridge.planning.scheduler.bound_reasons import BoundReasons
from bridge.planning.scheduler.planned_rows import PlannedRows
from bridge.planning.site_rules.freepools import Closure
from bridge.units import NEVER, format_duration, format_instant

JUDGED_ALONE = (Blocked.NEVER_NODES, Blocked.NEVER_SIZE, Blocked.NEVER_COUNTER)
"""Verdicts whose text depends on the whole job."""
_LASTING = (Blocked.NODES_BUSY, Blocked.PLANNED_START, Blocked.NOT_BEFORE, Blocked.NEVER_FREED)
"""Verdicts whose text depends on the request alone, unless it names nodes."""


def explain(planned: PlannedRows, horizon_s: int | None = None) -> None:
    """Sets the reason of every row that does not start now.

    Args:
        planned: after all passes.
        horizon_s: starts were searched up to this many seconds from now; None: no bound.
    """
    reasons = planned.rows.reasons
    for rows, reasons_of in _Waiting(planned, horizon_s).reasons():
        for row, reason in zip(rows, reasons_of, strict=True):
            reasons[row] = reason


class _Waiting:
    def __init__(self, planned: PlannedRows, horizon_s: int | None) -> None:
        self._planned, self._horizon_s = planned, horizon_s
        self._rows, self._snapshot = planned.rows, planned.rows.snapshot
        self._explainer = Explainer(self._snapshot, self._rows.matching)
        self._waiting = planned.waiting()
        self._row = self._rows.plannable[self._waiting.index]
        self._job = self._rows.job[self._row]
        self._alone = np.isin(self._waiting.blocked, JUDGED_ALONE)
        self._bounds = {one.constraint: one for one in planned.cluster.lowered.bounds}
        self._needs = self._needs_of_bounds()
        self._reasons_of: dict[int, BoundReasons] = {}

    def reasons(self) -> Iterator[tuple[list[int], list[Reason]]]:
        """Rows that wait, and why."""
        jobs, waiting = self._snapshot.jobs, self._waiting
        bounded = jobs.fixed | (jobs.deadline_s > 0) | (jobs.reservation >= 0) | jobs.no_place
        single = waiting.refused | bounded[self._job]
        if self._planned.cluster.closures:
            single |= waiting.start_s == NEVER
        for at in np.flatnonzero(single).tolist():
            reason = self._single(at, bounded=bool(bounded[self._job[at]]))
            single[at] = reason is not None
            if reason is not None:
                yield [int(self._row[at])], [reason]
        common = np.flatnonzero(~single)
        alike_at, which = by_appearance(self._likeness(common))
        first = common[alike_at]
        kept, now = self._kept(), dict[tuple[object, ...], Reason]()
        lasting = self._lasting(first).tolist()
        reasons_of = np.empty(len(first), dtype=object)
        for group, key in enumerate(self._keys(first)):
            known = kept if lasting[group] else now
            reason = known.get(key)
            if reason is None:
                reason = known[key] = self._reason(int(first[group]))
            reasons_of[group] = reason
        yield self._row[common].tolist(), reasons_of[which].tolist()

    def _bound_reasons(self, constraint: int) -> BoundReasons:
        """The reasons of rows that wait because of one of the bounds with weights of nodes."""
        if constraint not in self._reasons_of:
            lowered, bound = self._planned.cluster.lowered, self._bounds[constraint]
            self._reasons_of[constraint] = BoundReasons(self._planned, lowered, bound)
        return self._reasons_of[constraint]

    def _needs_of_bounds(self) -> NDArray[np.int64] | None:
        """(n, 2) what each row adds to the bound for which it waits, and for how long, s.

        0: it waits for none of them. None: there is none.
        """
        if not self._bounds:
            return None
        waiting = self._waiting
        found = np.zeros((len(waiting), 2), dtype=np.int64)
        for constraint in self._bounds:
            waits = (waiting.constraint == constraint) & (waiting.blocked == Blocked.COUNTER)
            at = np.flatnonzero(waits & ~waiting.refused)
            found[at] = self._planned.counts_on(waiting.candidate[at], constraint)
        return found

    def _kept(self) -> dict[tuple[object, ...], Reason]:
        """Reasons of earlier cycles (rule 4)."""
        return {} if self._rows.kept is None else self._rows.kept.wait_reasons

    def _lasting(self, rows: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Which reasons depend on nothing but their key (rule 4)."""
        waiting = self._waiting
        snapshot = self._snapshot
        if snapshot.reservations or snapshot.licences:
            return np.zeros(len(rows), dtype=bool)
        lasting: NDArray[np.bool_] = np.isin(waiting.blocked[rows], _LASTING)
        lasting &= waiting.start_s[rows] != NEVER
        lasting &= ~snapshot.jobs.required[self._job[rows]].astype(bool)
        return lasting

    def _single(self, at: int, *, bounded: bool) -> Reason | None:
        """The reason of a row that needs one of its own; None: it may share that of others."""
        requested, waiting = int(self._waiting.index[at]), self._waiting
        if waiting.refused[at]:
            return self._planned.refusal(int(waiting.candidate[at]))
        if waiting.start_s[at] == NEVER and (pools := self._planned.kept_out(requested)):
            return _kept_out(pools, dialect_of(self._snapshot).words.node)
        return self._bounded(at, requested) if bounded else None

    def _likeness(self, rows: NDArray[np.intp]) -> NDArray[np.int64]:
        """(n,) numbers; rows with equal numbers have the same reason."""
        waiting, lowered = self._waiting, self._rows.lowered
        job = self._job[rows]
        if lowered is not None:
            number = lowered.number[self._row[rows]]
            job = np.where(self._alone[rows], int(number.max(initial=0)) + 1 + job, number)
        return packed(
            job,
            self._planned.layouts.which[waiting.candidate[rows]],
            waiting.partition[rows],
            waiting.blocked[rows],
            waiting.constraint[rows] + 1,
            waiting.start_s[rows] == NEVER,
            waiting.passed_over[rows],
            *(() if self._needs is None else (by_appearance(packed(*self._needs[rows].T))[1],)),
        )

    def _keys(self, rows: NDArray[np.intp]) -> Iterator[tuple[object, ...]]:
        """Everything the reason of each row depends on."""
        waiting, job = self._waiting, self._job[rows]
        columns = (
            waiting.blocked[rows], waiting.constraint[rows], waiting.partition[rows],
            waiting.nodes[rows], waiting.start_s[rows] == NEVER, waiting.passed_over[rows],
            self._snapshot.jobs.tasks[job], np.where(self._alone[rows], job, -1),
            *(() if self._needs is None else self._needs[rows].T),
        )  # fmt: skip
        own = (column.tolist() for column in columns)
        return zip(*own, self._explainer.alike(job), strict=True)

    def _bounded(self, at: int, requested: int) -> Reason:
        """The reason of a job with a bound on its start, or one that may not have a later start."""
        planned, jobs, job = self._planned, self._snapshot.jobs, int(self._job[at])
        deadline_s, nowhere = int(jobs.deadline_s[job]), self._waiting.start_s[at] == NEVER
        if nowhere:
            impossible = Blocked(self._waiting.blocked[at]) in JUDGED_ALONE
            if not impossible and not self._waiting.passed_over[at]:
                earliest_s, limit_s = planned.earliest(requested)
                missed = self._rows.missed(requested, earliest_s, limit_s, self._code(at))
                if missed is not None and not (jobs.no_place[job] and earliest_s == NEVER):
                    return missed
        elif planned.late[requested]:
            return Reason(
                ReasonCode.RESOURCES,
                f"planned as late as its deadline {format_instant(deadline_s)} allows",
            )
        reason = self._reason(at)
        if nowhere or not deadline_s:
            return reason
        return Reason(
            reason.code,
            f"{reason.text}; planned as early as possible, to end before its deadline "
            f"{format_instant(deadline_s)}",
        )

    def _code(self, at: int) -> ReasonCode:
        """The machine-readable code of what keeps a job from starting earlier."""
        constraint = int(self._waiting.constraint[at])
        if self._waiting.blocked[at] != Blocked.COUNTER or constraint < 0:
            return ReasonCode.RESOURCES
        licence, _ = self._planned.cluster.constraint_label(constraint)
        if self._needs is not None and self._needs[at].any():
            return self._bounds[constraint].given.code
        return ReasonCode.LICENCES if licence else ReasonCode.LIMIT

    def _reason(self, at: int) -> Reason:
        snapshot, cluster, waiting = self._snapshot, self._planned.cluster, self._waiting
        blocked, constraint = Blocked(waiting.blocked[at]), int(waiting.constraint[at])
        passed_over = bool(waiting.passed_over[at])
        nowhere = waiting.start_s[at] == NEVER and not passed_over
        if blocked is Blocked.COUNTER and constraint >= 0:
            licence, label = cluster.constraint_label(constraint)
            if licence:
                return self._explainer.licence_in_use(snapshot.licences.index(label))
            if self._needs is not None and self._needs[at].any():
                needs, length_s = self._needs[at].tolist()
                reasons = self._bound_reasons(constraint)
                return reasons.reason(int(waiting.index[at]), needs, length_s)
            until = "" if passed_over else " until then"
            return Reason(ReasonCode.LIMIT, f"the {label} is reached{until}")
        if nowhere and self._horizon_s is not None and blocked not in JUDGED_ALONE:
            return Reason(
                ReasonCode.RESOURCES,
                f"in the waiting room: no place within {format_duration(self._horizon_s)}",
            )
        if blocked is Blocked.NODES_BUSY and nowhere:
            blocked = Blocked.NEVER_NODES  # not even on an empty cluster
        return self._explainer.blocked(
            int(self._job[at]),
            partition=int(waiting.partition[at]),
            min_nodes=int(waiting.nodes[at]),
            blocked=blocked,
            fit_now=None,
            counter=max(cluster.licences.licence(constraint), 0),
        )


def _kept_out(pools: tuple[Closure, ...], node: str) -> Reason:
    """A reason with the FreePools that keep a job out."""
    texts = [f"FreePool {pool.name} keeps {node}s for {pool.access or 'nobody'}" for pool in pools]
    return Reason(ReasonCode.NEVER, f"has no access to {node}s that it needs: {'; '.join(texts)}")
