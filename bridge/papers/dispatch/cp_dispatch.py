# SPDX-License-Identifier: Apache-2.0
"""The common part of the dispatchers by constraint programming: greedy, window, model, decode.

Terms
    greedy      the conservative plan of the whole queue in the given order.
    decode      to book the window's jobs at the solver's starts, and all others around them.

Rules
    1. The greedy plan is made first. It is used if all jobs that can start now do so, if the solver
       finds nothing, or if the solver's plan is no better; the reason is counted
       (`bridge.model.decisions.answer`).
    2. Plans are compared over the whole queue: by the jobs without a start, then the objective.
    3. The solver's solution is booked by the core, so that all rules hold for all jobs. A job whose
       nodes are missing in the solution or are not free gets others at the earliest start. Then
       each job of the window, in order of start, moves to an earlier slot if there is one.
    4. Rows within the window that the model cannot represent keep their greedy slots.
    5. `budget_ms` is for the whole decision; as much time as the greedy plan took is reserved for
       decoding. Without a solver, or with a budget of 0, the model is solved in this process,
       bounded by `effort` alone.
    6. Starts later than now are announced and recomputed in the next cycle.
    7. The window is as large as can be solved in the remaining time (`reach`), at most `most_jobs`.
       With `startable` it holds only the jobs that could start now, as in the papers.
    8. A gap is reported only if it is exact: if there is nothing to gain, or for a bound that the
       solver proved over all schedules of the window's jobs. It is that of the plan used.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from bridge.errors import ConfigError
from bridge.model.decisions.answer import LATE, NO_GAIN, SETTLED, SMALL, Answer, Dispatched
from bridge.model.plan import Plan
from bridge.model.reasons import Reason, ReasonCode
from bridge.model.rules.site import Site
from bridge.model.snapshot import Snapshot
from bridge.papers.dispatch.instance import Instance
from bridge.papers.dispatch.window import DispatchWindow, choose
from bridge.papers.dispatch.window_model import whole_weights
from bridge.planning.dispatch.cp_sat import InProcess
from bridge.planning.dispatch.objective import Objective
from bridge.planning.scheduler.book_planner import BookPlanner
from bridge.planning.scheduler.list_scheduler import ListScheduler
from bridge.planning.scheduler.placements import PlacementColumns
from bridge.planning.scheduler.queue_planner import QueuePlanner
from bridge.planning.scheduler.wait_reasons import explain
from bridge.planning.site_rules.lowered_rules import lower
from bridge.ports import Context, Planned, Preference, Solver, SolverRequest
from bridge.units import NEVER, UNPLANNED

if TYPE_CHECKING:
    from ortools.sat.python.cp_model import CpModel

DEFAULT_EFFORT = 1.0
MIN_BUDGET_S = 0.005
"""The solver is not called with less time left than this, s."""
SPARE = 0.08
"""Share of the budget that is kept as a margin."""
AHEAD = 1.0
"""Time needed before the solver is called, as a multiple of that of the greedy plan."""
SLACK = 1.5
"""Safety factor on the time that the same work took last."""
_LONGEST_S = 3600.0

_OTHERS_FIRST = Reason(
    ReasonCode.PRIORITY, "planned for later, so that jobs that gain more start earlier"
)

AskFor = Callable[["CpModel", float, str], Answer]
"""Calls the solver: model, share of the remaining budget and effort, further parameters."""


@dataclass(frozen=True)
class Reach:
    """The largest window for a second, and its growth with time.

    Attributes:
        power: twice the time allows 2**power times as many.
    """

    jobs: float
    units: float
    nodes: float
    power: float

    def within(self, solving_s: float) -> tuple[int, int, int]:
        """Maximum numbers of jobs, units and nodes, each at least one."""
        growth = min(max(solving_s, 0.0), _LONGEST_S) ** self.power
        return (
            max(1, round(self.jobs * growth)),
            max(1, round(self.units * growth)),
            max(1, round(self.nodes * growth)),
        )


class Unsayable(Exception):
    """The model cannot represent the greedy slot of a job, which is left out of the window."""

    def __init__(self, job: int) -> None:
        super().__init__(job)
        self.job = job


@dataclass(frozen=True)
class WindowSchedule:
    """A dispatcher's solution of a window.

    Attributes:
        start_s: (J,) from now.
        nodes: for each job the node of each unit; None: any.
    """

    start_s: Sequence[int]
    nodes: Sequence[Sequence[int] | None]


@dataclass(frozen=True)
class CpDispatcher(QueuePlanner):
    """Plans the first jobs of the order by a model, the others around them.

    Attributes:
        budget_ms: wall-clock time of a decision; 0: no bound.
        effort: CP-SAT's deterministic time; 0: no bound.
        objective: what is minimised: `slowdown`, `bounded-slowdown`, `wait` or `priority`.
        ageing_s: a job's weight grows by one for each such time that it has waited; None: no
            ageing.
        most_jobs: maximum number of jobs in a window (rule 7).
        startable: rule 7; False: the first jobs of the order, whether or not they could start now.
        array_depth: tasks of one array planned at a time.
    """

    budget_ms: int = 500
    effort: float = DEFAULT_EFFORT
    objective: str = "slowdown"
    ageing_s: int | None = None
    most_jobs: int = 100
    startable: bool = True

    reach: ClassVar[Reach]
    bounds: ClassVar[bool]
    """Whether what the model proves holds for all schedules of the window's jobs."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.budget_ms < 0 or self.effort < 0 or not (self.budget_ms or self.effort):
            raise ConfigError("budget_ms", "budget_ms and effort must be 0 or more, not both 0")
        if self.most_jobs < 1:
            raise ConfigError("most_jobs", f"must be 1 or more, not {self.most_jobs}")
        Objective(self.objective, self.ageing_s)

    @abstractmethod
    def solve(
        self, instance: Instance, weights: list[int], ask: AskFor, solving_s: float = 1.0
    ) -> tuple[WindowSchedule | None, Answer]:
        """Solves one instance within about the given time.

        Raises:
            Unsayable: the model cannot represent one of the jobs.
        """

    def planned(
        self,
        snapshot: Snapshot,
        order: NDArray[np.int64],
        preference: Preference,
        context: Context,
    ) -> Planned:
        """The greedy plan, or the plan made from the solver's solution if that is better."""
        seed = int(context.rng.integers(1 << 31))
        known = context.environment.solver
        alone = known is None or not self.budget_ms
        solver: Solver = InProcess() if known is None or alone else known
        solver.begin()
        solver.warm_up()
        goal = Objective(self.objective, self.ageing_s)
        scheduler = self.list_scheduler(snapshot, order, preference, context)
        scheduler.schedule()
        greedy = scheduler.plan(self.name)
        if not len(greedy.planned):
            # A job without a start only because of other jobs might have one in another order.
            reasons = [greedy.reasons[row] for row in np.flatnonzero(greedy.start_s == NEVER)]
            left_out = any(reason is not None and reason.can_ever_run for reason in reasons)
            gap = None if left_out else 0.0
            settled = Dispatched(0, *_same(goal, snapshot, greedy), gap, SETTLED)
            return Planned(greedy, dispatched=settled)
        asking = _Asking(self, solver, seed, alone=alone)
        if asking.left_s(AHEAD) < MIN_BUDGET_S:
            late = Dispatched(0, *_same(goal, snapshot, greedy), None, LATE)
            return Planned(greedy, dispatched=late)
        decision = _Decision(self, scheduler, preference, greedy, goal, site=context.site)
        plan, done = decision.made(asking)
        return Planned(plan, dispatched=done)


class _Asking:
    """Calls the solver while the budget lasts."""

    def __init__(self, dispatcher: CpDispatcher, solver: Solver, seed: int, *, alone: bool) -> None:
        self._solver, self._seed, self._alone = solver, seed, alone
        self._effort = dispatcher.effort or (DEFAULT_EFFORT if alone else 0.0)
        self._budget_s = dispatcher.budget_ms / 1000 * (1 - SPARE)
        self._reserve_s = solver.elapsed_s()
        self._answered_s = -1.0

    def booked(self) -> None:
        """Notes that everything planned so far will have to be planned once more."""
        self._reserve_s = self._solver.elapsed_s()

    def left_s(self, times: float = 0.0) -> float:
        """Time left for the solver if the work so far is repeated this many times before it."""
        if self._alone:
            return self._effort
        now_s = self._solver.elapsed_s()
        work_s = now_s - self._answered_s if self._answered_s >= 0 else 0.0
        ahead_s = times * self._reserve_s
        left_s = self._budget_s - SLACK * (self._reserve_s + ahead_s + work_s) - now_s - ahead_s
        return min(left_s, self._effort) if self._effort else left_s

    def ask(self, model: "CpModel", share: float, search: str) -> Answer:
        """See `AskFor`; handling this answer is expected to take as long as the last one."""
        left_s = 0.0
        if not self._alone:
            now_s = self._solver.elapsed_s()
            work_s = now_s - self._answered_s if self._answered_s >= 0 else 0.0
            spare_s = SLACK * (self._reserve_s + work_s)
            left_s = (self._budget_s - spare_s - now_s) * share
            if left_s < MIN_BUDGET_S:
                return Answer(None, problem=LATE)
        answer = self._solver.solve(
            SolverRequest(model, left_s, self._effort * share, self._seed, search)
        )
        self._answered_s = self._solver.elapsed_s()
        return answer


@dataclass(frozen=True)
class _Solved:
    """The result of a window.

    Attributes:
        weights: (J,) as the model counts them.
        schedule: None: there is none.
        exact: a bound of the model holds for every schedule of the window's jobs.
    """

    window: DispatchWindow
    weights: list[int]
    schedule: WindowSchedule | None
    answer: Answer
    exact: bool


class _Decision:
    """One decision, from the greedy plan on."""

    def __init__(
        self,
        dispatcher: CpDispatcher,
        scheduler: ListScheduler,
        preference: Preference,
        greedy: Plan,
        goal: Objective,
        *,
        site: Site,
    ) -> None:
        self.dispatcher, self.greedy, self.goal, self.rows = (
            dispatcher,
            greedy,
            goal,
            scheduler.rows,
        )
        self.snapshot, self.rank = scheduler.rows.snapshot, preference.rank
        self.cost = goal.of_plan(self.snapshot, greedy)
        self.planner = BookPlanner(
            self.rows,
            preference,
            lowered=lower(site, self.snapshot),
            protect=site.protect,
        )
        everyone = np.arange(len(self.rows.plannable))
        fixed = self.snapshot.jobs.fixed[self.rows.job[self.rows.plannable]]
        for some in (everyone[fixed], everyone[~fixed]):
            self._book(some)

    def _book(self, requested: NDArray[np.intp]) -> None:
        self.planner.plan(requested, not_before=None, latest=np.full(len(requested), NEVER - 1))

    def made(self, asking: _Asking) -> tuple[Plan, Dispatched]:
        """Solves and decodes."""
        asking.booked()
        solved = self._solved(asking)
        if solved is None:
            return self.greedy, Dispatched(0, self.cost, self.cost, None, SMALL)
        window, answer = solved.window, solved.answer
        n_jobs = len(window.rows)
        place_s = np.array([job.place_s for job in window.instance.jobs], dtype=np.int64)

        def greedily(why: str) -> tuple[Plan, Dispatched]:
            gap = self._gap(solved, place_s)
            done = Dispatched(n_jobs, self.cost, self.cost, gap, why, answer.killed)
            return self.greedy, done

        if solved.schedule is None:
            return greedily(answer.problem or NO_GAIN)
        self._decode(window, solved.schedule)
        plan = self._plan()
        cost = self.goal.of_plan(self.snapshot, plan)
        if (_unstarted(plan), cost) >= (_unstarted(self.greedy), self.cost):
            return greedily(NO_GAIN)
        start_s = self.planner.planned.start_s(np.array(window.rows)) - self.snapshot.now_s
        gap = self._gap(solved, start_s)
        return plan, Dispatched(n_jobs, self.cost, cost, gap=gap, killed=answer.killed)

    def _solved(self, asking: _Asking) -> "_Solved | None":
        dispatcher, without = self.dispatcher, set[int]()
        while True:
            solving_s = asking.left_s()
            jobs, units, _ = dispatcher.reach.within(solving_s)
            window = choose(
                self.planner.planned, self.rank, without=without,
                most_jobs=min(jobs, dispatcher.most_jobs), max_units=units,
                startable=dispatcher.startable,
            )  # fmt: skip
            if window is None:
                return None
            instance = window.instance
            rows = np.array(window.rows)
            job = self.rows.job[self.rows.plannable[rows]]
            length_s = np.array([j.length_s for j in instance.jobs], dtype=np.int64)
            weights = whole_weights(self.goal.weights(self.snapshot, job, length_s))
            due_s = self.goal.due_s(self.snapshot, job, length_s)
            linear = bool((due_s <= self.snapshot.now_s).all())
            exact = dispatcher.bounds and window.exact and linear
            if window.settled:
                return _Solved(window, weights, None, Answer(None, problem=SETTLED), exact=exact)
            try:
                schedule, answer = dispatcher.solve(instance, weights, asking.ask, solving_s)
            except Unsayable as left_out:
                without.add(window.rows[left_out.job])
            else:
                return _Solved(window, weights, schedule, answer, exact=exact)

    def _gap(self, solved: "_Solved", start_s: NDArray[np.int64]) -> float | None:
        """Rule 8, of starts from now; None: unknown."""
        if solved.window.settled:
            return 0.0
        if not solved.exact or not np.isfinite(solved.answer.bound):
            return None
        cost = float((np.array(solved.weights, dtype=np.float64) * start_s).sum())
        return max(0.0, (cost - solved.answer.bound) / cost) if cost > 0 else 0.0

    def _decode(self, window: DispatchWindow, schedule: WindowSchedule) -> None:
        """Books the solver's solution; jobs that do not fit get the earliest start (rule 3)."""
        planner, now_s = self.planner, self.snapshot.now_s
        everyone = np.arange(len(self.rows.plannable))
        had = planner.planned.has_start(everyone)
        keeps = np.zeros(len(everyone), dtype=bool)
        keeps[list(window.fixed)] = True
        planner.revoke(everyone[had & ~keeps])
        order = sorted(range(len(window.rows)), key=lambda i: (schedule.start_s[i], i))
        rows, kept, start = [], [], []
        for i in order:
            nodes = schedule.nodes[i]
            if nodes is not None:
                rows.append(window.rows[i])
                kept.append(window.placement_of(i, nodes))
                start.append(schedule.start_s[i] + now_s)
        at_s = np.array(start, dtype=np.int64)
        former = PlacementColumns.of(kept)
        planner.keep(np.array(rows, dtype=np.intp), former, np.arange(len(kept)), at_s)
        by_start = np.array([window.rows[i] for i in order], dtype=np.intp)
        left = by_start[~planner.planned.has_start(by_start)]
        self._book(left)
        planner.replan(by_start[planner.planned.has_start(by_start)])
        rest = everyone[had & ~planner.planned.has_start(everyone)]
        self._book(rest)

    def _plan(self) -> Plan:
        """The booked plan; jobs that would have started now get the reason why they do not."""
        explain(self.planner.planned)
        reasons, greedy = self.rows.reasons, self.greedy
        for at in self.planner.planned.waiting().index.tolist():
            row = int(self.rows.plannable[at])
            if greedy.start_s[row] == greedy.now_s:
                reasons[row] = _OTHERS_FIRST
        return self.planner.planned.result(self.dispatcher.name)


def _unstarted(plan: Plan) -> int:
    return int(((plan.start_s == NEVER) | (plan.start_s == UNPLANNED)).sum())


def _same(goal: Objective, snapshot: Snapshot, plan: Plan) -> tuple[float, float]:
    cost = goal.of_plan(snapshot, plan)
    return cost, cost
