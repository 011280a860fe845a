# SPDX-License-Identifier: Apache-2.0
"""Starts jobs at the ends of periods only: as many as possible together, without reservations.

Terms
    window      the jobs that start at one multiple of `period_s` on the clock.
    selected    the jobs of the next window, as far as is known now.

Rules
    1. At the end of a period, jobs are taken in the given order. A job that does not fit in
       addition to running and already selected jobs is passed over; nothing is reserved for it.
    2. At most `most_jobs` start in one window. Without `pass_over`, the first job that does not fit
       ends the window, unless nothing is to be reserved for it (`JobTable.no_place`).
    3. Nothing starts between two windows. The selected jobs are announced for the next window, so
       that the controller calls then. The window opens in the first cycle after its instant, as a
       call rarely arrives in exactly that second.
    4. For the first `depth` jobs that wait longer, the earliest start after the window is
       announced, not before the next window. It is not reserved.
    5. Jobs with a fixed start keep it, inside or outside windows. Deadlines, begin times, limits,
       FreePools etc. hold as under every policy (`bridge.planning.scheduler.list_scheduler`).
    6. With a period of 0 s, every cycle opens a window.

Source: Lan et al. (see `bridge.model.hop_tree`), section III-C: a window every period,
    in the order `waiting-periods`.
Deviates: the public code ends a window at the first job that does not fit, and after five jobs
(`pass_over: false`, `most_jobs: 5`); the paper says "as many as possible". A job submitted in the
second in which a window opens may be in it. In the order of submission, with a period of 0 s and
without `pass_over`, this is first come, first served without backfilling.
"""

import dataclasses
from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bridge.errors import ConfigError
from bridge.model.job import Hold, JobTable
from bridge.model.plan import Plan
from bridge.model.reasons import Reason, ReasonCode
from bridge.model.rules.site import Site
from bridge.model.snapshot import Snapshot
from bridge.planning.eligibility.leaf_switches import since_s, waits_until_s
from bridge.planning.queue.rows import plannable
from bridge.planning.scheduler.queue_planner import QueuePlanner
from bridge.ports import Conditions, Context, Planned, Preference, Promises
from bridge.units import NEVER, UNPLANNED, format_instant

_FEW = 30
"""With at most this many waiting jobs, making both plans takes no longer than choosing one."""


@dataclass(frozen=True)
class _Selection:
    """The state of a window.

    Attributes:
        tasks: row of `Snapshot.jobs` to its rows of the plan (tasks of an array) that start then.
        waits: row of `Snapshot.jobs` to the reason why a candidate does not start then.
    """

    at_s: int
    tasks: dict[int, int]
    waits: dict[int, Reason]


@dataclass(frozen=True)
class WindowPlanner(QueuePlanner):
    """Plans a window of jobs every `period_s`.

    Attributes:
        period_s: from one window to the next; 0: every cycle opens one.
        most_jobs: in one window; None: no bound.
        pass_over: whether jobs behind one that does not fit may start.
        depth: number of jobs beyond the next window that get a planned start; None: all.
        array_depth: tasks of one array planned at a time.
    """

    period_s: int = 60
    most_jobs: int | None = None
    pass_over: bool = True
    depth: int | None = 1

    name: ClassVar[str] = "window"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.period_s < 0:
            raise ConfigError("period_s", f"must be 0 or more, not {self.period_s}")
        if self.most_jobs is not None and self.most_jobs < 1:
            raise ConfigError("most_jobs", f"must be 1 or more, or null, not {self.most_jobs}")
        if self.depth is not None and self.depth < 0:
            raise ConfigError("depth", f"must be 0 or more, or null for all, not {self.depth}")

    def conditions(self, site: Site) -> Conditions:
        """A start is certain in the next window only, and only if no job is rejected there."""
        sure = self.most_jobs is None and self.pass_over
        return dataclasses.replace(super().conditions(site), period_s=self.period_s, sure=sure)

    @property
    def whole_queue(self) -> bool:
        """True only without a depth."""
        return self.depth is None

    def planned(
        self,
        snapshot: Snapshot,
        order: NDArray[np.int64],
        preference: Preference,
        context: Context,
    ) -> Planned:
        if self._first_come_only(snapshot):
            return Planned(
                self._in_order(snapshot, order, preference, context), Promises(self.name)
            )
        if not len(snapshot.jobs):
            scheduler = self.list_scheduler(snapshot, order, preference, context)
            scheduler.schedule(depth=0)
            return Planned(scheduler.plan(self.name), Promises(self.name))
        known = context.state.promised_by(self.name).start_s
        ids = snapshot.jobs.id.tolist()
        due_s = min((known[job] for job in ids if job in known), default=NEVER) if known else NEVER
        at_s = self._opens_s(snapshot.now_s, due_s)
        selection = self._select(snapshot, order, preference, context, at_s)
        plan = self._book(snapshot, order, preference, context, selection)
        ahead = selection.tasks if at_s > snapshot.now_s else ()
        return Planned(plan, Promises(self.name, {ids[job]: at_s for job in ahead}))

    def _first_come_only(self, snapshot: Snapshot) -> bool:
        """Whether many jobs start strictly in order and none is special: see `_in_order`."""
        jobs = snapshot.jobs
        return (
            not (self.period_s or self.pass_over or self.most_jobs is not None)
            and self.depth is not None
            and len(jobs) > _FEW
            and not np.count_nonzero(jobs.array_tasks)
            and not np.count_nonzero(jobs.fixed)
            and not np.count_nonzero(jobs.no_place)
            and bool(_candidates(jobs, snapshot.now_s).all())
        )

    def _in_order(
        self,
        snapshot: Snapshot,
        order: NDArray[np.int64],
        preference: Preference,
        context: Context,
    ) -> Plan:
        """The same plan as of `_select` and `_book`, where only the first rows matter.

        The queue is planned once for starts now. Those before the first row that waits stay, the
        rest wait. Only the first waiting rows are planned again, until `depth` of them have starts.
        """
        scheduler = self.list_scheduler(snapshot, order, preference, context)
        scheduler.schedule(depth=0)
        plan = scheduler.plan(self.name)
        starts = plan.start_s == snapshot.now_s
        waiting = np.flatnonzero(~starts)
        first = len(plan)
        for row in waiting.tolist():
            reason = plan.reasons[row]
            assert reason is not None
            if reason.can_ever_run:
                first = row
                break
        chosen = np.flatnonzero(starts[:first])
        rest = np.concatenate((waiting[waiting < first], np.arange(first, len(plan))))
        behind = Reason(ReasonCode.PRIORITY, "waits for those before it to start")
        texts = [plan.reasons[row] or behind for row in rest.tolist()]
        count = min(self.depth or 0, len(rest))
        while True:
            some = np.concatenate((chosen, rest[:count]))
            again = self._later(snapshot, plan.job[some], len(chosen), preference, context)
            if count >= len(rest) or len(again.planned) >= (self.depth or 0):
                break
            count = min(4 * count + len(waiting[waiting < first]), len(rest))
        n_more = len(rest) - count
        nowhere = plan.start_s[rest[count:]] == NEVER
        reasons = [
            *again.reasons[: len(chosen)],
            *(
                own if start_s == NEVER else other
                for own, start_s, other in zip(
                    again.reasons[len(chosen) :], again.start_s[len(chosen) :].tolist(), texts,
                    strict=False,
                )
            ),
            *texts[count:],
        ]  # fmt: skip
        return dataclasses.replace(
            again,
            job=np.concatenate((plan.job[some], plan.job[rest[count:]])),
            start_s=np.concatenate((again.start_s, np.where(nowhere, NEVER, UNPLANNED))),
            end_s=np.concatenate((again.end_s, np.zeros(n_more, dtype=np.int64))),
            partition=np.concatenate((again.partition, np.full(n_more, -1, dtype=np.int32))),
            indptr=np.concatenate((again.indptr, np.full(n_more, again.indptr[-1]))),
            reasons=tuple(reasons),
        )

    def _later(
        self,
        snapshot: Snapshot,
        jobs: NDArray[np.int32],
        n_chosen: int,
        preference: Preference,
        context: Context,
    ) -> Plan:
        """Plans a few jobs: the first `n_chosen` now, the others not before the next second."""
        few = snapshot.jobs.rows(jobs.astype(np.intp))
        later = np.arange(len(jobs)) >= n_chosen
        few = _not_before(few, later, self._next_s(snapshot.now_s), snapshot.now_s)
        scheduler = self.list_scheduler(
            snapshot.with_jobs(few), np.arange(len(jobs)), preference, context
        )
        scheduler.schedule(depth=self.depth)
        return scheduler.plan(self.name)

    def _opens_s(self, now_s: int, due_s: int) -> int:
        """Returns when the next window opens; `due_s`: the instant announced for it before."""
        if not self.period_s or now_s % self.period_s == 0 or now_s >= due_s:
            return now_s
        return self._next_s(now_s)

    def _next_s(self, after_s: int) -> int:
        return (after_s // self.period_s + 1) * self.period_s if self.period_s else after_s + 1

    def _select(
        self,
        snapshot: Snapshot,
        order: NDArray[np.int64],
        preference: Preference,
        context: Context,
        at_s: int,
    ) -> _Selection:
        """Selects the jobs of the window that opens at an instant."""
        jobs, now_s = snapshot.jobs, snapshot.now_s
        candidate = _candidates(jobs, at_s)
        if at_s > now_s:  # then or not at all, so that no job reserves a later start
            jobs = _starting_at(jobs, candidate, at_s, now_s)
        scheduler = self.list_scheduler(snapshot.with_jobs(jobs), order, preference, context)
        scheduler.schedule(depth=0)
        plan = scheduler.plan(self.name)
        tasks: Counter[int] = Counter()
        waits: dict[int, Reason] = {}
        room = len(plan) if self.most_jobs is None else self.most_jobs
        named = at_s > now_s or self.most_jobs is not None  # reasons may name the window
        when = format_instant(at_s) if named else ""
        full = Reason(ReasonCode.PRIORITY, f"the window at {when} has its {room} jobs")
        behind = Reason(ReasonCode.PRIORITY, "waits for those before it to start")
        over, may, no_place = False, candidate.tolist(), snapshot.jobs.no_place.tolist()
        rows = zip(plan.job.tolist(), plan.start_s.tolist(), plan.reasons, strict=True)
        for job, start_s, reason in rows:
            if not may[job]:
                continue
            if start_s != at_s:
                assert reason is not None
                can_ever_run = reason.can_ever_run
                later = at_s > now_s and can_ever_run
                none = f"no room in the window at {when}"
                waits.setdefault(job, Reason(reason.code, none) if later else reason)
                over |= can_ever_run and not self.pass_over and not no_place[job]
            elif over or not room:
                waits.setdefault(job, behind if over else full)
            else:
                tasks[job] += 1
                room -= 1
        return _Selection(at_s, tasks, waits)

    def _book(
        self,
        snapshot: Snapshot,
        order: NDArray[np.int64],
        preference: Preference,
        context: Context,
        selection: _Selection,
    ) -> Plan:
        """Plans the selected jobs, and after them the first waiting ones."""
        jobs, now_s, at_s = snapshot.jobs, snapshot.now_s, selection.at_s
        candidate = _candidates(jobs, at_s)
        chosen = np.zeros(len(jobs), dtype=bool)
        chosen[list(selection.tasks)] = True
        startable = jobs.array_startable.copy()
        for job, count in selection.tasks.items():
            startable[job] = min(int(startable[job]), count)
        changed = jobs.with_columns(array_startable=startable)
        if at_s > now_s:
            changed = _starting_at(changed, chosen, at_s, now_s)
        changed = _not_before(changed, candidate & ~chosen, self._next_s(at_s), now_s)
        order = np.concatenate((order[chosen[order]], order[~chosen[order]]))
        scheduler = self.list_scheduler(snapshot.with_jobs(changed), order, preference, context)
        scheduler.schedule(depth=self.depth)
        plan = scheduler.plan(self.name)
        reasons = list(plan.reasons)
        texts = candidate[plan.job] & (plan.start_s != now_s) & (plan.start_s != NEVER)
        if texts.any():
            announced = Reason(ReasonCode.PRIORITY, f"in the window at {format_instant(at_s)}")
            for row in np.flatnonzero(texts).tolist():
                job = int(plan.job[row])
                reasons[row] = announced if chosen[job] else selection.waits[job]
        return dataclasses.replace(plan, reasons=tuple(reasons))


def _candidates(jobs: JobTable, at_s: int) -> NDArray[np.bool_]:
    """(n_jobs,) jobs that may start in a window, except those with a fixed start."""
    begins = (jobs.hold == Hold.BEGIN_TIME) & (jobs.begin_s > at_s)
    about: NDArray[np.bool_] = plannable(jobs) & ~jobs.fixed & ~begins
    return about


def _starting_at(jobs: JobTable, which: NDArray[np.bool_], at_s: int, now_s: int) -> JobTable:
    """The jobs, some of them with a fixed start."""
    changed = _beginning(jobs, np.where(which, at_s, jobs.begin_s), now_s)
    return changed.with_columns(fixed=jobs.fixed | which)


def _not_before(jobs: JobTable, which: NDArray[np.bool_], at_s: int, now_s: int) -> JobTable:
    """The jobs, some of them not to begin before an instant."""
    begin_s = np.where(which, np.maximum(jobs.begin_s, at_s), jobs.begin_s)
    hold = np.where(which, Hold.BEGIN_TIME, jobs.hold).astype(np.int8)
    return _beginning(jobs, begin_s, now_s).with_columns(hold=hold)


def _beginning(jobs: JobTable, begin_s: NDArray[np.int64], now_s: int) -> JobTable:
    """The jobs with other begin times, which do not prolong their wait for leaf switches."""
    changed, until_s = jobs.with_columns(begin_s=begin_s), waits_until_s(jobs)
    return changed.with_columns(
        switches=np.where(until_s > now_s, jobs.switches, 0).astype(np.int32),
        switches_wait_s=np.maximum(until_s - since_s(changed), 0),
    )
