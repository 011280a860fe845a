# SPDX-License-Identifier: Apache-2.0
"""What the dispatchers by constraint programming have in common: greedy, window, model, decode.

Words
    greedy      the conservative plan of the whole queue in the given order.
    decode      the window's jobs are booked at what the solver found, all others around them.

Rules
    1. The greedy plan first. If all that can start does so now, or the solver has nothing, or what
       comes of it is no better, the greedy plan serves; why is counted (`bridge.model.answer`).
    2. Plans are compared over the whole queue: by the jobs without a start, then the objective.
    3. What the solver found is booked by the core, which keeps all rules for all jobs. A job for
       which the model has no nodes, or those it has are not free, gets others, as early as can be.
       Then each of the window's jobs, by start, moves to an earlier place if there is one.
    4. The rows before the window's last that it leaves out keep their greedy places.
    5. `budget_ms` is for the whole decision: as much as the greedy plan took is left for decoding.
       Without a solver in memory, or with a budget of 0, there is `effort` alone, in this process.
    6. Only starts now are started; the others are announced, and planned anew in the next cycle.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bridge.errors import ConfigError, PolicyError
from bridge.model.answer import LATE, NO_GAIN, SETTLED, SMALL, Answer, Dispatched
from bridge.model.limits import Rules
from bridge.model.plan import Plan
from bridge.model.reasons import Reason, ReasonCode
from bridge.model.snapshot import Snapshot
from bridge.planning.booking import Booking
from bridge.planning.conditions import Conditions, check_protection
from bridge.planning.cp_sat import InProcess
from bridge.planning.decoder import Decoder
from bridge.planning.instance import Instance
from bridge.planning.objective import Objective
from bridge.planning.rules import lower
from bridge.planning.rules_text import parse_rules
from bridge.planning.waiting import explain
from bridge.planning.window import Window, choose
from bridge.planning.window_model import whole_weights
from bridge.ports import Ask, Memory, Preference, Solver
from bridge.units import NEVER, UNPLANNED

if TYPE_CHECKING:
    from ortools.sat.python.cp_model import CpModel

DEFAULT_EFFORT = 1.0
LEAST_BUDGET_S = 0.005
"""With less left nobody is asked."""
SPARE = 0.08
"""Share of the budget that is not given away: for what nobody foresees."""
SLACK = 1.5
"""How much longer than the last time the same work may take."""

_OTHERS_FIRST = Reason(
    ReasonCode.PRIORITY, "planned for later, so that jobs that gain more by it start before"
)

AskFor = Callable[["CpModel", float, str], Answer]
"""Asks the solver: a model, a share of what is left of budget and effort, further parameters."""


class Unsayable(Exception):
    """The model cannot say the greedy place of a job: it is left out of the window."""

    def __init__(self, job: int) -> None:
        super().__init__(job)
        self.job = job


@dataclass(frozen=True)
class Schedule:
    """What a dispatcher found for a window.

    Attributes:
        start_s: (J,) from now.
        nodes: for each job the node of each unit; None: any.
    """

    start_s: Sequence[int]
    nodes: Sequence[Sequence[int] | None]


@dataclass(frozen=True)
class CpDispatcher(ABC):
    """Plans the first jobs of the order by a model, the others around them.

    Attributes:
        budget_ms: wall-clock time of a decision; 0: no bound.
        effort: CP-SAT's deterministic time; 0: no bound.
        objective: what is to be small: `slowdown`, `bounded-slowdown`, `wait` or `priority`.
        array_depth: tasks of one array planned at a time.
        ageing_s: a job counts once more for so much waiting; None: no ageing.
        most_jobs: jobs in a window at most.
        most_units: their units (nodes or tasks) at most.
        rules: limits and FreePools, as the section `planning` of the configuration has them.
        protect: resource to what each node that has it keeps for jobs that want it, by resource.
    """

    budget_ms: int = 500
    effort: float = DEFAULT_EFFORT
    objective: str = "slowdown"
    ageing_s: int | None = None
    array_depth: int = 1000
    most_jobs: int = 10
    most_units: int = 50
    rules: dict[str, Any] | None = None
    protect: dict[str, Any] | None = None
    _rules: Rules = field(init=False, repr=False, compare=False)

    name: ClassVar[str]

    def __post_init__(self) -> None:
        if self.budget_ms < 0 or self.effort < 0 or not (self.budget_ms or self.effort):
            raise ConfigError("budget_ms", "budget_ms and effort must be 0 or more, not both 0")
        for key in ("array_depth", "most_jobs", "most_units"):
            if getattr(self, key) < 1:
                raise ConfigError(key, f"must be 1 or more, not {getattr(self, key)}")
        Objective(self.objective, self.ageing_s)
        check_protection(self.protect)
        object.__setattr__(self, "_rules", parse_rules(self.rules, "rules"))

    @property
    def conditions(self) -> Conditions:
        """What the plan is held to, for questions of what would be otherwise."""
        return Conditions(rules=self._rules, protect=self.protect, whole_queue=True)

    @abstractmethod
    def solve(
        self, instance: Instance, weights: list[int], ask: AskFor
    ) -> tuple[Schedule | None, Answer]:
        """Solves one instance.

        Raises:
            Unsayable: the instance must do without one of its jobs.
        """

    def plan(
        self,
        snapshot: Snapshot,
        order: NDArray[np.int64],
        preference: Preference,
        memory: Memory,
        rng: np.random.Generator,
    ) -> Plan:
        """Plans all pending jobs; see `bridge.ports.PlanPolicy`."""
        seed = int(rng.integers(1 << 31))
        alone = memory.solver is None or not self.budget_ms
        solver: Solver = InProcess() if memory.solver is None or alone else memory.solver
        solver.begin()
        solver.warm_up()
        goal = Objective(self.objective, self.ageing_s)
        try:
            decoder = Decoder(
                snapshot, order, preference, self.conditions, array_depth=self.array_depth
            )
            decoder.decode()
            greedy = decoder.plan(self.name)
            if not len(greedy.planned):
                memory.dispatched = Dispatched(0, *_same(goal, snapshot, greedy), 0.0, SETTLED)
                return greedy
            decision = _Decision(self, decoder, preference, greedy, goal)
        except ValueError as error:
            raise PolicyError(self.name, str(error)) from error
        asking = _Asking(self, solver, seed, alone=alone)
        try:
            plan, memory.dispatched = decision.made(asking.ask)
        except ValueError as error:
            raise PolicyError(self.name, str(error)) from error
        return plan


class _Asking:
    """Asks the solver for as long as the budget lasts."""

    def __init__(self, dispatcher: CpDispatcher, solver: Solver, seed: int, *, alone: bool) -> None:
        self._solver, self._seed, self._alone = solver, seed, alone
        self._effort = dispatcher.effort or (DEFAULT_EFFORT if alone else 0.0)
        self._budget_s = dispatcher.budget_ms / 1000 * (1 - SPARE)
        self._reserve_s = solver.elapsed_s()
        self._answered_s = -1.0

    def ask(self, model: "CpModel", share: float, search: str) -> Answer:
        """See `AskFor`; what was done with the last answer will take as long with this one."""
        left_s = 0.0
        if not self._alone:
            now_s = self._solver.elapsed_s()
            work_s = now_s - self._answered_s if self._answered_s >= 0 else 0.0
            spare_s = SLACK * (self._reserve_s + work_s)
            left_s = (self._budget_s - spare_s - now_s) * share
            if left_s < LEAST_BUDGET_S:
                return Answer(None, problem=LATE)
        answer = self._solver.solve(Ask(model, left_s, self._effort * share, self._seed, search))
        self._answered_s = self._solver.elapsed_s()
        return answer


class _Decision:
    """One decision, from the greedy plan on."""

    def __init__(
        self,
        dispatcher: CpDispatcher,
        decoder: Decoder,
        preference: Preference,
        greedy: Plan,
        goal: Objective,
    ) -> None:
        self.dispatcher, self.greedy, self.goal, self.rows = dispatcher, greedy, goal, decoder.rows
        self.snapshot, self.rank = decoder.rows.snapshot, preference.rank
        self.cost = goal.of_plan(self.snapshot, greedy)
        conditions = dispatcher.conditions
        self.booking = Booking(
            self.rows,
            preference,
            lowered=lower(conditions.rules, self.snapshot, conditions.cron_s),
            protect=conditions.protect,
        )
        everyone = np.arange(len(self.rows.asked))
        fixed = self.snapshot.jobs.fixed[self.rows.job[self.rows.asked]]
        for some in (everyone[fixed], everyone[~fixed]):
            self._book(some)

    def _book(self, asked: NDArray[np.intp]) -> None:
        self.booking.plan(asked, not_before=None, latest=np.full(len(asked), NEVER - 1))

    def made(self, ask: AskFor) -> tuple[Plan, Dispatched]:
        """Solves and decodes."""
        window, schedule, answer = self._solved(ask)
        if window is None:
            return self._greedy(0, SMALL, answer)
        n_jobs = len(window.rows)
        if schedule is None:
            return self._greedy(n_jobs, answer.problem or NO_GAIN, answer)
        self._decode(window, schedule)
        plan = self._plan()
        cost = self.goal.of_plan(self.snapshot, plan)
        if (_unstarted(plan), cost) >= (_unstarted(self.greedy), self.cost):
            return self._greedy(n_jobs, NO_GAIN, answer)
        return plan, Dispatched(n_jobs, self.cost, cost, gap=answer.gap, killed=answer.killed)

    def _solved(self, ask: AskFor) -> tuple[Window | None, Schedule | None, Answer]:
        dispatcher, without = self.dispatcher, set[int]()
        while True:
            window = choose(
                self.booking, self.rank, without=without,
                most_jobs=dispatcher.most_jobs, most_units=dispatcher.most_units,
            )  # fmt: skip
            if window is None or all(j.place_s <= j.release_s for j in window.instance.jobs):
                problem = SMALL if window is None else SETTLED
                return window, None, Answer(None, problem=problem)
            instance = window.instance
            rows = np.array(window.rows)
            job = self.rows.job[self.rows.asked[rows]]
            length_s = np.array([j.length_s for j in instance.jobs], dtype=np.int64)
            weights = self.goal.weights(self.snapshot, job, length_s)
            try:
                schedule, answer = dispatcher.solve(instance, whole_weights(weights), ask)
            except Unsayable as left_out:
                without.add(window.rows[left_out.job])
            else:
                return window, schedule, answer

    def _greedy(self, jobs: int, why: str, answer: Answer) -> tuple[Plan, Dispatched]:
        gap = 0.0 if why == SETTLED else answer.gap
        return self.greedy, Dispatched(jobs, self.cost, self.cost, gap, why, answer.killed)

    def _decode(self, window: Window, schedule: Schedule) -> None:
        """Rule 3."""
        booking, now_s = self.booking, self.snapshot.now_s
        everyone = np.arange(len(self.rows.asked))
        had = booking.has_start(everyone)
        mine = np.zeros(len(everyone), dtype=bool)
        mine[list(window.rows)] = True
        booking.revoke(everyone[had & (mine | (everyone >= window.last))])
        order = sorted(range(len(window.rows)), key=lambda i: (schedule.start_s[i], i))
        rows, kept, start = [], [], []
        for i in order:
            nodes = schedule.nodes[i]
            if nodes is not None:
                rows.append(window.rows[i])
                kept.append(window.lying(i, nodes))
                start.append(schedule.start_s[i] + now_s)
        at_s = np.array(start, dtype=np.int64)
        booking.keep(np.array(rows, dtype=np.intp), kept, at_s)
        by_start = np.array([window.rows[i] for i in order], dtype=np.intp)
        left = by_start[~booking.has_start(by_start)]
        self._book(left)
        booking.replan(by_start[booking.has_start(by_start)])
        rest = everyone[had & ~booking.has_start(everyone)]
        self._book(rest)

    def _plan(self) -> Plan:
        """The booked plan; who would have started now is told why it does not."""
        explain(self.booking)
        reasons, greedy = self.rows.reasons, self.greedy
        for at, _ in self.booking.waiting():
            row = int(self.rows.asked[at])
            if greedy.start_s[row] == greedy.now_s:
                reasons[row] = _OTHERS_FIRST
        return self.booking.result(self.dispatcher.name)


def _unstarted(plan: Plan) -> int:
    return int(((plan.start_s == NEVER) | (plan.start_s == UNPLANNED)).sum())


def _same(goal: Objective, snapshot: Snapshot, plan: Plan) -> tuple[float, float]:
    cost = goal.of_plan(snapshot, plan)
    return cost, cost
