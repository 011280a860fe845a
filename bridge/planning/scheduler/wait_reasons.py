# SPDX-License-Identifier: Apache-2.0
"""Why rows that were booked do not start now, as reasons a user can read.

Rules
    1. A limit that refuses a job, and a FreePool that keeps it out, are told first.
    2. A job that cannot start in time (deadline, fixed start, its reservation's end) is told when
       it could.
    3. Rows that wait alike share one reason.
"""

from collections.abc import Iterator

from bridge.core import Blocked
from bridge.model.reasons import Reason, ReasonCode
from bridge.planning.queue.readable_reasons import Explainer
from bridge.planning.scheduler.booked import WaitingRow
from bridge.planning.scheduler.booking import Booking
from bridge.planning.site_rules.freepools import Closure
from bridge.units import NEVER, format_duration, format_instant

JUDGED_ALONE = (Blocked.NEVER_NODES, Blocked.NEVER_SIZE, Blocked.NEVER_COUNTER)
"""Verdicts whose words depend on the whole job."""


def explain(booking: Booking, horizon_s: int | None = None) -> None:
    """Gives every row that does not start now its reason.

    Args:
        booking: when all is planned.
        horizon_s: no start later than so many seconds from now was looked for; None: no bound.
    """
    for row, reason in _Waiting(booking, horizon_s).reasons():
        booking.rows.reasons[row] = reason


class _Waiting:
    def __init__(self, booking: Booking, horizon_s: int | None) -> None:
        self._booking, self._horizon_s = booking, horizon_s
        self._rows, self._snapshot = booking.rows, booking.rows.snapshot
        self._explainer = Explainer(self._snapshot, self._rows.matching)

    def reasons(self) -> Iterator[tuple[int, Reason]]:
        known: dict[tuple[object, ...], Reason] = {}
        rows, jobs = self._rows, self._snapshot.jobs
        bounded = jobs.fixed | (jobs.deadline_s > 0) | (jobs.reservation >= 0) | jobs.no_place
        alike = list(self._explainer.alike(rows.job[rows.asked]))
        for at, waiting in self._booking.waiting():
            row = int(rows.asked[at])
            job = int(rows.job[row])
            if waiting.reason is not None:
                yield row, waiting.reason
                continue
            if waiting.start_s == NEVER and (pools := self._booking.kept_out(at)):
                yield row, _kept_out(pools)
                continue
            if bounded[job]:
                yield row, self._bounded(at, job, waiting)
                continue
            alone = waiting.blocked in JUDGED_ALONE
            key = (
                waiting.blocked, waiting.constraint, waiting.partition, waiting.nodes,
                int(waiting.start_s == NEVER), waiting.passed_over, int(jobs.tasks[job]),
                job if alone else -1, alike[at],
            )  # fmt: skip
            if key not in known:
                known[key] = self._reason(job, waiting)
            yield row, known[key]

    def _bounded(self, at: int, job: int, waiting: WaitingRow) -> Reason:
        """For jobs with a deadline, a fixed start or a reservation, or without a waiting."""
        booking, jobs = self._booking, self._snapshot.jobs
        deadline_s = int(jobs.deadline_s[job])
        if waiting.start_s == NEVER:
            if Blocked(waiting.blocked) not in JUDGED_ALONE and not waiting.passed_over:
                earliest_s, limit_s = booking.earliest(at)
                missed = self._rows.missed(at, earliest_s, limit_s, self._code(waiting))
                if missed is not None and not (jobs.no_place[job] and earliest_s == NEVER):
                    return missed
        elif booking.late[at]:
            return Reason(
                ReasonCode.RESOURCES,
                f"planned as late as its deadline {format_instant(deadline_s)} allows",
            )
        reason = self._reason(job, waiting)
        if waiting.start_s == NEVER or not deadline_s:
            return reason
        return Reason(
            reason.code,
            f"{reason.text}; planned as early as possible, to end before its deadline "
            f"{format_instant(deadline_s)}",
        )

    def _code(self, waiting: WaitingRow) -> ReasonCode:
        """What keeps a job from starting earlier, for machines."""
        if waiting.blocked != Blocked.COUNTER or waiting.constraint < 0:
            return ReasonCode.RESOURCES
        licence, _ = self._booking.cluster.constraint_label(waiting.constraint)
        return ReasonCode.LICENCES if licence else ReasonCode.LIMIT

    def _reason(self, job: int, waiting: WaitingRow) -> Reason:
        snapshot, cluster = self._snapshot, self._booking.cluster
        blocked = Blocked(waiting.blocked)
        nowhere = waiting.start_s == NEVER and not waiting.passed_over
        if blocked is Blocked.COUNTER and waiting.constraint >= 0:
            licence, label = cluster.constraint_label(waiting.constraint)
            if licence:
                return self._explainer.licence_in_use(snapshot.licences.index(label))
            until = "" if waiting.passed_over else " until then"
            return Reason(ReasonCode.LIMIT, f"the {label} is reached{until}")
        if nowhere and self._horizon_s is not None and blocked not in JUDGED_ALONE:
            return Reason(
                ReasonCode.RESOURCES,
                f"in the waiting room: no place within {format_duration(self._horizon_s)}",
            )
        if blocked is Blocked.NODES_BUSY and nowhere:
            blocked = Blocked.NEVER_NODES  # not even on the emptied system
        return self._explainer.blocked(
            job,
            partition=waiting.partition,
            min_nodes=waiting.nodes,
            blocked=blocked,
            fit_now=None,
            counter=max(cluster.licences.licence(waiting.constraint), 0),
        )


def _kept_out(pools: tuple[Closure, ...]) -> Reason:
    """Says which FreePools keep a job out that could run without them."""
    texts = [f"FreePool {pool.name} keeps nodes for {pool.access or 'nobody'}" for pool in pools]
    return Reason(ReasonCode.NEVER, f"has no access to nodes that it needs: {'; '.join(texts)}")
