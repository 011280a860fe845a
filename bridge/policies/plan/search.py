# SPDX-License-Identifier: Apache-2.0
"""Searches for the order of the queue whose plan has the least objective, e.g. mean slowdown.

Terms
    given plan  the conservative plan in the given order, overdue jobs first.
    window      the jobs whose order is searched: the first `window` of the order that have a start.
    unit        a job, or the planned tasks of an array, which stay together in every order.
    overdue     a job that has waited for `most_wait_s` or longer.
    decode      to book the jobs of an order one after the other, each at its earliest start.

Rules
    1. Overdue jobs are planned first, oldest first; the search does not reorder them. So no job
       starves: once it is overdue, only older ones are planned before it. (Jobs with a fixed start
       are always booked before all others: `bridge.planning.scheduler.list_scheduler`.)
    2. A family of orders (the given one, shortest, smallest area, largest slowdown, size**a *
       length**b by weight) is decoded. Then the best one is changed at random by insertions and
       swaps, half of them between neighbours. A change that does not increase the cost is kept. Of
       few units all orders are decoded (`bridge.core.search_orders`).
    3. The search ends when the lower bound is reached, when there has been no improvement for long,
       or when `effort` or `budget_ms` is spent. The budget is one of work: the kernel counts its
       steps, so the same seed gives the same plan at any load. If there is a clock (in the
       service), the whole decision also ends within the budget by that clock: `RESERVE` times the
       time of the given plan is left for planning the best order. If that leaves no time, the given
       plan is used.
    4. Jobs that ask for chunks of several kinds, jobs that are not yet eligible, and those behind
       the window, are planned after it in the given order. The kernel ignores limits, FreePools
       and protections.
    5. The best order is planned by the scheduler of the conservative plan, so all its rules hold.
       This plan is used if it leaves no more jobs without a start than the given plan and has a
       lower objective; otherwise the given plan is used.
    6. Bound on harm (`harm_factor`): a job's promise is its planned start in the given plan of the
       first cycle that plans it; later cycles do not change it. A plan is used only if no job
       starts later than both its bound and its start in the given plan of the cycle. The bound is
       submit + harm_factor * (promise - submit) + harm_s. The kernel counts a start beyond as
       costlier than everything else; the finished plan is checked again, with all its rows.
       The given plan of a later cycle may pass the bound, and the job with it: where later jobs
       overtake in the given order, nodes fail, or jobs that the search started are in the way.
    7. Harm by class (`class_factor`, `longest_factor`): the waits of classes of jobs are compared
       with those in a simulation of EASY (`bridge.planning.dispatch.account`). The jobs of a class
       whose mean wait is more than `class_factor` times EASY's get more weight. A job is overdue
       when it has waited for `longest_factor` times the longest wait under EASY, at least 4 h.
       This steers; it is no bound.
    8. A job that meets its deadline or fixed start in the given plan meets it in the new one, too:
       a miss costs more than everything else.

Source: none; local search over priority lists is textbook (serial schedule generation: R. Kolisch,
S. Hartmann, Heuristic Algorithms for the Resource-Constrained Project Scheduling Problem, 1999).
Bound: Lagrangian relaxation of the capacity, priced as fluid jobs first.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from bridge.core import Alarm, NodeProblem, OrderFound, Stopped, search_orders
from bridge.errors import ConfigError
from bridge.model.decisions.answer import LATE, NO_GAIN, SETTLED, SMALL, Dispatched
from bridge.model.snapshot import Snapshot
from bridge.planning.dispatch.account import MIN_LONGEST_S, NAME, Account, counted
from bridge.planning.dispatch.objective import Objective
from bridge.planning.queue.time_windows import not_yet_eligible
from bridge.planning.scheduler.queue_planner import QueuePlanner
from bridge.ports import NO_PROMISES, Context, Planned, Preference, Promises, Solver
from bridge.units import DAY_S, NEVER, STEPS_PER_MS, UNPLANNED

HOUR_S = 3600
PATIENCE = 40
"""Successive changes without improvement, per unit, after which the search ends."""
RESERVE = 2.25
"""Time reserved, as a multiple of that of the given plan: to plan the best order, and to plan the
given one again if that is no better."""
MAX_HARM = 1 << 31
MAX_FACTOR = 100
WEIGHT = 1 << 32
"""The largest weight of a search; weights are integers there, so that sums are exact."""

SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
LENGTHS = (0.0, 0.5, 1.0)
PLAIN = ((0.0, 1.0), (1.0, 1.0), (1.0, 0.0), (0.0, -1.0), (-1.0, 0.0))


@dataclass(frozen=True)
class Search(QueuePlanner):
    """Plans the queue in the best order it finds.

    Attributes:
        objective: `slowdown`, `bounded-slowdown`, `wait` or `priority`.
        ageing_s: a job's weight grows by one for each such time that it has waited
            (`bridge.planning.dispatch.objective`); None: no ageing.
        most_wait_s: jobs that have waited this long go first; None: no such rule.
        budget_ms: the budget of the search, in `STEPS_PER_MS`; with a clock, also of the whole
            decision; 0: no bound.
        effort: the effort of the search, in jobs booked; 0: no bound.
        window: jobs whose order is searched.
        power: exponent of the wait in the objective, 1 to 3 in steps of 1/2; above 1, long waits
            count more (`bridge.planning.dispatch.objective`).
        harm_factor: bounds the wait of each job, as a multiple of the promised one (rule 6); 0:
            no job starts later than in the given plan of the cycle; None: no such bound.
        harm_s: added to that bound, s.
        class_factor: mean wait of a class of jobs as a multiple of EASY's above which its jobs
            get more weight (rule 7); None: classes have equal weights.
        longest_factor: rule 7, from when a job is eligible; `most_wait_s` counts from its
            submission, and what passes first makes it overdue. None: no such rule.
        array_depth: tasks of one array planned at a time.
    """

    objective: str = "slowdown"
    ageing_s: int | None = 4 * HOUR_S
    most_wait_s: int | None = 2 * DAY_S
    budget_ms: int = 50
    effort: int = 500_000
    window: int = 500
    power: float = 1
    harm_factor: float | None = None
    harm_s: int = 0
    class_factor: float | None = None
    longest_factor: float | None = None

    name: ClassVar[str] = NAME

    def __post_init__(self) -> None:
        super().__post_init__()
        Objective(self.objective, self.ageing_s, self.power)
        for key in ("harm_factor", "harm_s"):
            if (given := getattr(self, key)) is not None and not 0 <= given <= MAX_HARM:
                raise ConfigError(key, f"must be 0 to {MAX_HARM}, not {given}")
        for key in ("class_factor", "longest_factor"):
            if (factor := getattr(self, key)) is not None and not 0 < factor <= MAX_FACTOR:
                raise ConfigError(key, f"must be above 0, up to {MAX_FACTOR}, not {factor}")
        if self.most_wait_s is not None and self.most_wait_s < 0:
            raise ConfigError("most_wait_s", f"must be 0 or more, or null, not {self.most_wait_s}")
        for key in ("budget_ms", "effort"):
            if getattr(self, key) < 0:
                raise ConfigError(key, f"must be 0 or more, not {getattr(self, key)}")
        if not (self.budget_ms or self.effort):
            raise ConfigError("budget_ms", "budget_ms and effort must not both be 0")
        if self.window < 1:
            raise ConfigError("window", f"must be 1 or more, not {self.window}")

    def planned(
        self,
        snapshot: Snapshot,
        order: NDArray[np.int64],
        preference: Preference,
        context: Context,
    ) -> Planned:
        """Plans the queue in the best order found."""
        clock = context.environment.solver if self.budget_ms else None
        if clock is not None:
            clock.begin()
        scheduler = self.list_scheduler(snapshot, order, preference, context)
        seed = int(context.rng.integers(1 << 63))
        promised = context.state.promised_by(self.name).start_s
        account = self._account(snapshot, context)
        cycle = SearchedCycle(self, snapshot, scheduler, clock, promised, account=account)
        found = cycle.found(seed)
        plan = scheduler.plan(self.name)
        notes = replace(plan, notes=(*plan.notes, *found.notes))
        promises = NO_PROMISES
        if self.harm_factor is not None:
            promises = Promises(self.name, cycle.promised)
        learnt = {} if account is None else {NAME: account.done()}
        return Planned(notes, promises, dispatched=found.done, learnt=learnt)

    @property
    def keeps_account(self) -> bool:
        """Whether waits are compared with those under EASY (rule 7)."""
        return self.class_factor is not None or self.longest_factor is not None

    def _account(self, snapshot: Snapshot, context: Context) -> Account | None:
        if not self.keeps_account:
            return None
        account = Account(context.state.learnt_by(NAME))
        ended, running = snapshot.ended, snapshot.running
        account.end(ended.id.tolist(), ended.start_s.tolist(), ended.end_s.tolist())
        account.running = lambda: dict(
            zip(running.id.tolist(), running.start_s.tolist(), strict=True)
        )
        return account


class RowStarts(Protocol):
    """When the rows of a queue start, by position."""

    @property
    def start_s(self) -> NDArray[np.int64]:
        """NEVER: no start; UNPLANNED: beyond the depth."""

    @property
    def end_s(self) -> NDArray[np.int64]:
        """The latest end of each; 0 without a start."""


class SearchQueue(Protocol):
    """The rows of a cycle, which can be planned in any order: a `ListScheduler`, or on counts."""

    @property
    def job(self) -> NDArray[np.int64]:
        """(n,) row of `snapshot.jobs`, by position."""

    @property
    def length_s(self) -> NDArray[np.int64]:
        """(n,) predicted run time on the first alternative."""

    @property
    def min_nodes(self) -> NDArray[np.int64]:
        """(n,) the smallest width on the first alternative."""

    def schedule(self, order: NDArray[np.int64] | None = None) -> RowStarts:
        """Plans all rows from scratch, in an order of the positions."""

    def problem(self, order: NDArray[np.int64]) -> NodeProblem:
        """What `plan_nodes` plans for some positions in this order."""


@dataclass(frozen=True)
class SearchResult:
    starts: RowStarts
    done: Dispatched
    notes: tuple[str, ...] = ()


class SearchedCycle:
    """One cycle. Positions are those of the queue.

    Attributes:
        promised: from job id to its promise (rule 6), for the next cycle; empty without a bound.
    """

    def __init__(
        self,
        settings: Search,
        snapshot: Snapshot,
        queue: SearchQueue,
        clock: Solver | None,
        promised: Mapping[str, int] = MappingProxyType({}),
        *,
        account: Account | None = None,
    ) -> None:
        self._clock = clock
        self._known = promised
        self.promised: dict[str, int] = {}
        self._settings, self._snapshot, self._queue = settings, snapshot, queue
        self._goal = Objective(settings.objective, settings.ageing_s, settings.power)
        self._max_eligible_s = NEVER
        self._job = queue.job
        self._early = not_yet_eligible(snapshot.jobs, snapshot.now_s)[queue.job]
        self._length_s = queue.length_s
        if account is not None:
            self._compare(account)
        self._given, self._lead = self._overdue_first()

    def found(self, seed: int) -> SearchResult:
        """Plans all rows; the queue's last schedule is the one found."""
        began_s = self._elapsed_s()
        schedule = self._queue.schedule(self._given)
        reserve_s = RESERVE * (self._elapsed_s() - began_s)
        self._latest_s = self._latest(schedule)
        given = self._judged(schedule)
        if not (schedule.start_s > self._snapshot.now_s).any():
            return SearchResult(schedule, Dispatched(0, given[-1], given[-1], 0.0, SETTLED))
        window = _Window(self, self._inside(schedule))
        if len(window) < 2:
            return SearchResult(
                schedule, Dispatched(len(window), given[-1], given[-1], None, SMALL)
            )
        alarm: Alarm | None = None
        if self._clock is not None:
            left_s = self._settings.budget_ms / 1000 - reserve_s - self._elapsed_s()
            if left_s <= 0:
                return SearchResult(
                    schedule, Dispatched(len(window), given[-1], given[-1], None, LATE)
                )
            alarm = self._clock.alarm(left_s)
        found = window.search(seed, alarm)
        if found.cost < found.given_cost:
            tried = self._queue.schedule(window.whole(found))
            best = self._judged(tried)
            if best < given:
                done = Dispatched(len(window), given[-1], best[-1], window.gap(found, tried))
                return SearchResult(tried, done, (self._note(done, found),))
            self._queue.schedule(self._given)
        gap = window.gap(found, schedule)
        return SearchResult(schedule, Dispatched(len(window), given[-1], given[-1], gap, NO_GAIN))

    def _compare(self, account: Account) -> None:
        """Compares the waits of classes of jobs with those under EASY (rule 7)."""
        settings, snapshot = self._settings, self._snapshot
        jobs = snapshot.jobs
        job, nodes = self._job, len(snapshot.nodes)
        widths, total = counted(snapshot, job, self._queue.min_nodes)
        single = np.flatnonzero((jobs.array_tasks[job] == 0) & ~self._early)
        account.arrive(
            jobs.id[job[single]].tolist(), _eligible_s(snapshot, job[single]),
            self._length_s[single], widths[single], total=total, nodes=nodes,
        )  # fmt: skip
        account.settle(snapshot.now_s, total, settings.class_factor or 1.0, jobs.id.tolist())
        if settings.class_factor is not None:
            factor = np.ones(len(jobs), dtype=np.float64)
            factor[job] = account.weights(self._length_s, widths, total=total, nodes=nodes)
            self._goal = replace(self._goal, factor=factor)
        if settings.longest_factor is not None:
            longest_s = max(int(settings.longest_factor * account.longest_s), MIN_LONGEST_S)
            self._max_eligible_s = longest_s

    def _elapsed_s(self) -> float:
        return 0.0 if self._clock is None else self._clock.elapsed_s()

    def _latest(self, given: RowStarts) -> NDArray[np.int64] | None:
        """(n,) the latest start of each row (rule 6); None: there is no bound."""
        settings, jobs = self._settings, self._snapshot.jobs
        if settings.harm_factor is None:
            return None
        has = (given.start_s != NEVER) & (given.start_s != UNPLANNED)
        ids = jobs.id[self._job].tolist()
        promised, known = self.promised, self._known
        for id_, start_s, planned in zip(ids, given.start_s.tolist(), has.tolist(), strict=True):
            if id_ in known:
                promised[id_] = known[id_]
            elif planned:  # of an array, the last of the tasks that are planned
                promised[id_] = max(promised.get(id_, 0), start_s)
        promise_s = np.array([promised.get(id_, NEVER) for id_ in ids], dtype=np.int64)
        submit_s = jobs.submit_s[self._job]
        wait_s = np.where(promise_s == NEVER, 0, np.maximum(promise_s - submit_s, 0))
        bound_s = submit_s + np.floor(settings.harm_factor * wait_s).astype(np.int64)
        latest_s = np.maximum(bound_s + settings.harm_s, given.start_s)
        return np.where(has & (promise_s != NEVER), latest_s, NEVER)

    def _judged(self, schedule: RowStarts) -> tuple[int, int, float]:
        """Rows that start too late, rows without a start, and the objective (rules 5 and 6)."""
        has = (schedule.start_s != NEVER) & (schedule.start_s != UNPLANNED)
        late = 0
        if self._latest_s is not None:
            late = int((has & (schedule.start_s > self._latest_s)).sum())
        start_s = schedule.start_s[has]
        cost = self._goal.costs(
            self._snapshot, self._job[has], start_s, schedule.end_s[has] - start_s
        )
        return late, int((~has).sum()), float(cost.sum())

    def _overdue_first(self) -> tuple[NDArray[np.int64], int]:
        """Returns all positions in the given order, and how many of them are overdue."""
        jobs, job = self._snapshot.jobs, self._job
        everyone = np.arange(len(job), dtype=np.int64)
        submit_s = jobs.submit_s[job]
        fixed = jobs.fixed[job]
        late = self._snapshot.now_s - _eligible_s(self._snapshot, job) >= self._max_eligible_s
        if self._settings.most_wait_s is not None:
            late |= self._snapshot.now_s - submit_s >= self._settings.most_wait_s
        late &= ~fixed & ~self._early
        oldest = everyone[late][np.argsort(submit_s[late], kind="stable")]
        order = np.concatenate((everyone[fixed], oldest, everyone[~fixed & ~late]))
        return order, int(fixed.sum()) + len(oldest)

    def _inside(self, given: RowStarts) -> NDArray[np.bool_]:
        """By position: rows that the search may order, or that go first (rule 4)."""
        jobs = self._snapshot.jobs
        inside: NDArray[np.bool_] = (given.start_s != NEVER) & (given.start_s != UNPLANNED)
        inside &= ~self._early
        several = [
            job
            for job in np.flatnonzero(jobs.chunks.astype(bool)).tolist()
            if len(jobs.chunks[job].request.kinds) > 1
        ]
        if several:
            inside &= ~np.isin(self._job, several)
        return inside

    def _note(self, done: Dispatched, found: OrderFound) -> str:
        ends = {
            Stopped.BOUND: "none is better",
            Stopped.EXHAUSTED: "all orders tried",
            Stopped.PATIENCE: "no improvement for long",
            Stopped.BUDGET: "budget spent",
        }
        above = "" if done.gap is None else f", at most {done.gap:.1%} above the least"
        return (
            f"search: {self._settings.objective} {done.found:,.1f} instead of {done.greedy:,.1f}"
            f"{above}; {found.decodes:,} orders, {ends[found.stopped]}"
        )


def _eligible_s(snapshot: Snapshot, job: NDArray[np.int64]) -> NDArray[np.int64]:
    """(n,) the instants from which jobs wait: a begin time, a dependency or a hold is no wait.

    None is before 1970: the kernel refuses negative times, and with one of them all jobs.
    """
    jobs = snapshot.jobs
    since_s: NDArray[np.int64] = np.maximum(jobs.submit_s[job], jobs.eligible_s[job])
    return np.minimum(since_s, np.maximum(snapshot.now_s, jobs.submit_s[job])).clip(min=0)


class _Window:
    """The rows whose order is searched, as the kernel takes them."""

    def __init__(self, cycle: SearchedCycle, inside: NDArray[np.bool_]) -> None:
        given, settings, snapshot = cycle._given, cycle._settings, cycle._snapshot
        self._cycle = cycle
        taken = given[inside[given]]
        job = cycle._job[taken]
        first = np.flatnonzero(np.diff(job, prepend=-1))[: settings.window + 1]
        if len(first) > settings.window:
            taken, first = taken[: first[-1]], first[:-1]
        self._rows = taken
        self._indptr = np.append(first, len(taken)).astype(np.int64)
        leading = inside[given[: cycle._lead]].sum()
        self._lead = int(np.searchsorted(first, leading))
        rest = np.ones(len(given), dtype=bool)
        rest[taken] = False
        self._rest = given[rest[given]]
        job, length_s = cycle._job[taken], cycle._length_s[taken]
        self._job, self._length_s = job, length_s
        self._latest_s = None if cycle._latest_s is None else cycle._latest_s[taken]
        weight = cycle._goal.weights(snapshot, job, length_s)
        self._scale = WEIGHT / max(float(weight.max(initial=0.0)), 1e-300)
        self._weight = np.rint(weight * self._scale).astype(np.int64)
        due_s = cycle._goal.due_s(snapshot, job, length_s)
        self._due_s = np.maximum(due_s, snapshot.now_s)
        self._waited_s = self._due_s - due_s

    def __len__(self) -> int:
        return len(self._indptr) - 1

    def search(self, seed: int, alarm: Alarm | None) -> OrderFound:
        """Searches for the best order of the units, until the alarm expires if there is one."""
        settings = self._cycle._settings
        return search_orders(
            self._cycle._queue.problem(self._rows),
            unit_indptr=self._indptr,
            weight=self._weight,
            due=self._due_s,
            orders=self._family(),
            lead=self._lead,
            effort=settings.effort,
            steps=settings.budget_ms * STEPS_PER_MS,
            patience=PATIENCE,
            seed=seed,
            alarm=alarm,
            latest=self._latest_s,
            waited=self._waited_s,
            halves=round(2 * settings.power),
        )

    def whole(self, found: OrderFound) -> NDArray[np.int64]:
        """All positions: the window in the order found, then the others as given."""
        parts = np.split(self._rows, self._indptr[1:-1])
        return np.concatenate([*(parts[unit] for unit in found.order.tolist()), self._rest])

    def gap(self, found: OrderFound, serves: RowStarts) -> float | None:
        """Returns the relative gap between the window's objective and its bound; None: unknown.

        The bound holds for plans that book the overdue jobs first; if there are such jobs, other
        plans may have a lower objective.
        """
        start_s = serves.start_s[self._rows]
        if self._lead or ((start_s == NEVER) | (start_s == UNPLANNED)).any():
            return None
        goal = self._cycle._goal
        costs = goal.costs(self._cycle._snapshot, self._job, start_s, self._length_s)
        wait_s = self._waited_s + np.maximum(start_s - self._due_s, 0)
        more = goal.raised(wait_s) - goal.raised(self._waited_s)
        delayed, cost = float((self._weight * more).sum()), float(costs.sum())
        return max(0.0, (delayed - found.bound) / self._scale / cost) if cost > 0 else 0.0

    def _family(self) -> NDArray[np.int32]:
        """Rule 2: (n_orders, n_units), the given order first."""
        at, snapshot = self._indptr[:-1], self._cycle._snapshot
        size, length = np.log(self._shares()[at]), np.log(self._length_s[at])
        weight = np.log(np.maximum(self._weight[at], 1))
        waited_s = np.maximum(snapshot.now_s - snapshot.jobs.submit_s[self._job[at]], 0)
        keys = [np.zeros(len(at)), -waited_s / self._length_s[at]]
        keys += [a * size + b * length for a, b in PLAIN]
        keys += [a * size + b * length - weight for a in SHARES for b in LENGTHS]
        table = np.array(keys)
        table[:, : self._lead] = -np.inf
        return np.argsort(table, axis=1, kind="stable").astype(np.int32)

    def _shares(self) -> NDArray[np.float64]:
        """(n_rows,) the largest share of any of the cluster's resources that each row takes."""
        jobs, nodes, job = self._cycle._snapshot.jobs, self._cycle._snapshot.nodes, self._job
        width = self._cycle._queue.min_nodes[self._rows][:, np.newaxis]
        wants = width * jobs.per_node[job] + jobs.tasks[job][:, np.newaxis] * jobs.per_task[job]
        share = (wants / np.maximum(nodes.capacity.sum(axis=0), 1)).max(axis=1, initial=0.0)
        whole = np.where(jobs.exclusive[job], width[:, 0] / max(len(nodes), 1), 0.0)
        found: NDArray[np.float64] = np.maximum(np.maximum(share, whole), 1e-9)
        return found
