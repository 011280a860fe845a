# SPDX-License-Identifier: Apache-2.0
"""Search over orders: the jobs that cost least to let wait, wait.

Words
    given plan  the conservative plan in the given order, overdue jobs first.
    window      the jobs whose order is searched: the first `window` of the order that have a start.
    unit        a job, or the planned tasks of an array: they stay together in every order.
    overdue     a job that has waited for `most_wait_s` and more.
    decode      to book the jobs of an order one after the other, each at its earliest start.

Rules
    1. Overdue jobs are planned first, oldest first; the search may not reorder them. So no job
       starves: once it is overdue, only older ones are planned before it.
    2. A family of orders (the given one, shortest, smallest area, largest slowdown, size**a *
       length**b by weight) is decoded, then the best is changed at random: half insertions, half
       swaps, near by half of the time. What costs no more is kept. Of few units all orders are
       decoded (`bridge.core.search_orders`).
    3. The search ends when the bound is met (no plan that books the overdue jobs first costs less),
       when nothing better was found for long, or when `effort` or `budget_ms` is spent.
    4. Jobs that ask for chunks of several kinds, and those behind the window, are planned behind it
       in the given order.
    5. The best order is planned by the planner of the conservative plan: all its rules hold for all
       jobs. It serves if no more jobs are without a start than in the given plan, and its objective
       is less; else the given plan does.
    6. A job for which the given plan keeps its deadline or fixed start is not made to miss it for
       the objective's sake alone: a miss costs more than all else.

Source: none; local search over priority lists is textbook (serial schedule generation: R. Kolisch,
S. Hartmann, Heuristic Algorithms for the Resource-Constrained Project Scheduling Problem, 1999).
Bound: Lagrangian relaxation of the capacity, priced as fluid jobs first.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bridge.core import OrderFound, Stopped, search_orders
from bridge.errors import ConfigError, PolicyError
from bridge.model.answer import NO_GAIN, SETTLED, SMALL, Dispatched
from bridge.model.plan import Plan
from bridge.model.snapshot import Snapshot
from bridge.planning.node_columns import node_columns
from bridge.planning.objective import Objective
from bridge.planning.rows import Rows, expand_arrays
from bridge.policies.plan.backfill import Backfill
from bridge.ports import Memory, Preference
from bridge.units import DAY_S, NEVER, UNPLANNED

PATIENCE = 40
"""Changes in a row, per unit, that may bring nothing."""
WEIGHT = 1 << 32
"""The largest weight of a search: weights are whole numbers there, so that sums are exact."""

_SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
_LENGTHS = (0.0, 0.5, 1.0)
_PLAIN = ((0.0, 1.0), (1.0, 1.0), (1.0, 0.0), (0.0, -1.0), (-1.0, 0.0))


@dataclass(frozen=True)
class Search:
    """Plans the queue in the best order it finds.

    Attributes:
        objective: `slowdown`, `bounded-slowdown`, `wait` or `priority`.
        ageing_s: a job counts once more for so much waiting; None: no ageing.
        most_wait_s: jobs that have waited for so long go first; None: none do.
        budget_ms: of the search, wall-clock; 0: no bound.
        effort: of the search, in jobs booked; 0: no bound. With `budget_ms` 0 the same seed gives
            the same plan everywhere.
        window: jobs whose order is searched.
        array_depth: tasks of one array planned at a time.
    """

    objective: str = "slowdown"
    ageing_s: int | None = None
    most_wait_s: int | None = DAY_S
    budget_ms: int = 50
    effort: int = 500_000
    window: int = 500
    array_depth: int = 1000

    def __post_init__(self) -> None:
        Objective(self.objective, self.ageing_s)
        if self.most_wait_s is not None and self.most_wait_s < 0:
            raise ConfigError("most_wait_s", f"must be 0 or more, or null, not {self.most_wait_s}")
        for key in ("budget_ms", "effort"):
            if getattr(self, key) < 0:
                raise ConfigError(key, f"must be 0 or more, not {getattr(self, key)}")
        if not (self.budget_ms or self.effort):
            raise ConfigError("budget_ms", "budget_ms and effort must not both be 0")
        for key in ("window", "array_depth"):
            if getattr(self, key) < 1:
                raise ConfigError(key, f"must be 1 or more, not {getattr(self, key)}")

    def plan(
        self,
        snapshot: Snapshot,
        order: NDArray[np.int64],
        preference: Preference,
        memory: Memory,
        rng: np.random.Generator,
    ) -> Plan:
        """Plans all pending jobs; see `bridge.ports.PlanPolicy`."""
        seed = int(rng.integers(1 << 63))
        goal = Objective(self.objective, self.ageing_s)
        core = Backfill(array_depth=self.array_depth)
        order, overdue = self._overdue_first(snapshot, order)
        given = core.plan(snapshot, order, preference, memory, rng)
        found, cost = None, goal.of_plan(snapshot, given)
        window = self._window(snapshot, order, given)
        why = SETTLED
        if (given.start_s > snapshot.now_s).any():
            why = SMALL if len(window) < 2 else NO_GAIN
        if why == NO_GAIN:
            lead = int(np.isin(window, order[:overdue]).sum())
            asked = _Asked(snapshot, window, preference, goal, self.array_depth)
            found = asked.search(self, lead, seed)
            if found.cost < found.given_cost:
                rest = order[~np.isin(order, window)]
                best = np.concatenate((asked.job[found.order], rest))
                plan = core.plan(snapshot, best, preference, memory, rng)
                best_cost = goal.of_plan(snapshot, plan)
                if (_unstarted(plan), best_cost) < (_unstarted(given), cost):
                    done = Dispatched(len(window), cost, best_cost, asked.gap(found))
                    memory.dispatched = done
                    return _told(plan, self.objective, done, found)
        left = asked.gap(found) if found is not None else 0.0 if why == SETTLED else None
        memory.dispatched = Dispatched(len(window), cost, cost, left, why)
        return replace(given, policy="search")

    def _overdue_first(
        self, snapshot: Snapshot, order: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], int]:
        """Rule 1; and how many they are."""
        if self.most_wait_s is None:
            return order, 0
        submit_s = snapshot.jobs.submit_s[order]
        late = snapshot.now_s - submit_s >= self.most_wait_s
        first = order[late][np.argsort(submit_s[late], kind="stable")]
        return np.concatenate((first, order[~late])), len(first)

    def _window(
        self, snapshot: Snapshot, order: NDArray[np.int64], given: Plan
    ) -> NDArray[np.int64]:
        """Rows of the jobs whose order is searched, in the given order."""
        jobs = snapshot.jobs
        able = np.zeros(len(jobs), dtype=bool)
        able[given.job[(given.start_s != NEVER) & (given.start_s != UNPLANNED)]] = True
        for job in np.flatnonzero(able & jobs.chunks.astype(bool)).tolist():
            able[job] = len(jobs.chunks[job].request.kinds) == 1
        found: NDArray[np.int64] = order[able[order]][: self.window]
        return found


class _Asked:
    """A window as the kernel takes it.

    Attributes:
        job: (n_units,) row of `Snapshot.jobs` of each unit.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        window: NDArray[np.int64],
        preference: Preference,
        goal: Objective,
        array_depth: int,
    ) -> None:
        rows = Rows(snapshot, expand_arrays(snapshot.jobs, window, array_depth))
        job = rows.job[rows.asked]
        first = np.flatnonzero(np.diff(job, prepend=-1))
        self.job = job[first]
        self._snapshot, self._goal = snapshot, goal
        self._rows = job
        self._indptr = np.append(first, len(job)).astype(np.int64)
        self._length_s = rows.alternatives.time_limit_s[rows.alternatives.indptr[:-1]]
        self._columns = node_columns(rows, preference)
        weight = goal.weights(snapshot, job, self._length_s)
        self._scale = WEIGHT / max(float(weight.max(initial=0.0)), 1e-300)
        self._weight = np.rint(weight * self._scale).astype(np.int64)
        due_s = goal.due_s(snapshot, job, self._length_s)
        self._due_s = np.maximum(due_s, snapshot.now_s)
        self._share = self._shares(rows)

    def search(self, settings: Search, lead: int, seed: int) -> OrderFound:
        """Looks for the best order."""
        try:
            return search_orders(
                self._columns,
                unit_indptr=self._indptr,
                weight=self._weight,
                due=self._due_s,
                orders=self._family(lead),
                lead=lead,
                effort=settings.effort,
                budget_us=settings.budget_ms * 1000,
                patience=PATIENCE,
                seed=seed,
            )
        except ValueError as error:
            raise PolicyError("search", str(error)) from error

    def gap(self, found: OrderFound) -> float:
        """How much of the window's objective might be saved at the most."""
        has = found.start != NEVER
        cost = self._goal.costs(
            self._snapshot, self._rows[has], found.start[has], self._length_s[has]
        ).sum()
        return float((found.cost - found.bound) / self._scale / cost) if cost > 0 else 0.0

    def _family(self, lead: int) -> NDArray[np.int32]:
        """Rule 2: (n_orders, n_units), the given order first."""
        at = self._indptr[:-1]
        size, length = np.log(self._share[at]), np.log(self._length_s[at])
        weight = np.log(np.maximum(self._weight[at], 1))
        waited_s = np.maximum(self._snapshot.now_s - self._snapshot.jobs.submit_s[self.job], 0)
        keys = [a * size + b * length - weight for a in _SHARES for b in _LENGTHS]
        keys += [a * size + b * length for a, b in _PLAIN]
        keys += [-waited_s / self._length_s[at], np.zeros(len(at))]
        table = np.array(keys[::-1])
        table[:, :lead] = -np.inf
        return np.argsort(table, axis=1, kind="stable").astype(np.int32)

    def _shares(self, rows: Rows) -> NDArray[np.float64]:
        """(n,) of the cluster each row takes, of the resource of which it takes most."""
        jobs, nodes = self._snapshot.jobs, self._snapshot.nodes
        width = rows.alternatives.min_nodes[rows.alternatives.indptr[:-1]][:, np.newaxis]
        job = self._rows
        wants = width * jobs.per_node[job] + jobs.tasks[job][:, np.newaxis] * jobs.per_task[job]
        share = (wants / np.maximum(nodes.capacity.sum(axis=0), 1)).max(axis=1, initial=0.0)
        whole = np.where(jobs.exclusive[job], width[:, 0] / max(len(nodes), 1), 0.0)
        found: NDArray[np.float64] = np.maximum(np.maximum(share, whole), 1e-9)
        return found


def _unstarted(plan: Plan) -> int:
    return int(((plan.start_s == NEVER) | (plan.start_s == UNPLANNED)).sum())


def _told(plan: Plan, objective: str, done: Dispatched, found: OrderFound) -> Plan:
    ends = {
        Stopped.BOUND: "none is better",
        Stopped.EXHAUSTED: "all orders tried",
        Stopped.PATIENCE: "nothing better for long",
        Stopped.BUDGET: "budget spent",
    }
    note = (
        f"search: {objective} {done.found:,.1f} instead of {done.greedy:,.1f}, at most"
        f" {done.gap:.1%} above the least; {found.decodes:,} orders, {ends[found.stopped]}"
    )
    return replace(plan, policy="search", notes=(*plan.notes, note))
