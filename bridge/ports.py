# SPDX-License-Identifier: Apache-2.0
"""The stages of a cycle, as protocols. A policy is one choice per stage.

| stage | question | implementations |
|---|---|---|
| predict | how long will it run? | bridge/policies/predict |
| order | who is considered first? | bridge/policies/order |
| plan | when does each job start? | bridge/policies/plan |
| place | which nodes first? | bridge/policies/place |

An implementation is a small frozen object: its parameters are constructor arguments, its state
is none. What it must know besides comes as a `Context`; what is to be carried to the next cycle is
returned (`Planned.promises`, `Foreseen.learnt`) and becomes the next `State` if the plan is legal.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from bridge.core import Alarm
from bridge.model.answer import Answer, Dispatched
from bridge.model.learnt import Learnt
from bridge.model.plan import Plan
from bridge.model.prediction import Prediction
from bridge.model.site import NO_RULES, Site
from bridge.model.snapshot import Snapshot
from bridge.model.topology import PlacementSavings

if TYPE_CHECKING:
    from ortools.sat.python.cp_model import CpModel


class Selection(IntEnum):
    """How a job's nodes are picked among those that could hold it."""

    SEQUENTIAL = 0
    BEST_FIT = 1


@dataclass(frozen=True)
class Preference:
    """What a place policy tells the planner.

    Attributes:
        selection: the rule by which nodes are picked.
        rank: (n_nodes,) int32; nodes of lower rank first, then by the rule, then by index.
    """

    selection: Selection
    rank: NDArray[np.int32]


@dataclass(frozen=True)
class Ask:
    """What a solver is asked.

    Attributes:
        model: of constraint programming, with an objective to be minimised.
        budget_s: wall-clock time to answer in; 0: no bound.
        effort: deterministic time; 0: no bound.
        seed: of the solver's chance.
        search: further parameters of the solver, in their text form.
    """

    model: "CpModel"
    budget_s: float
    effort: float
    seed: int
    search: str = ""


class Solver(Protocol):
    """Solves models, and keeps the time of the decision that needs them."""

    def warm_up(self) -> None:
        """Gets ready, without waiting for it: models will come, now or later."""

    def begin(self) -> None:
        """A decision begins."""

    def elapsed_s(self) -> float:
        """Wall-clock time since it began."""

    def alarm(self, left_s: float) -> Alarm | None:
        """Rings so many seconds from now on; None: there is no clock here."""

    def solve(self, ask: Ask) -> Answer:
        """Returns the best solution that came in time; never raises for want of one."""


@dataclass(frozen=True)
class Promises:
    """What a plan stage has announced, and is reminded of in the next cycle.

    Attributes:
        by: name of the plan stage; what another one announced binds nobody.
        start_s: job id to the start announced.
        kept_plan: the plan in the stage's own terms; saved if it is a
            `bridge.planning.scheduler.kept_plan.KeptPlan`.
    """

    by: str = ""
    start_s: Mapping[str, int] = field(default_factory=dict)
    kept_plan: object = None


NO_PROMISES = Promises()


@dataclass(frozen=True)
class State:
    """What a policy carries from one cycle to the next; replaced, never changed.

    Attributes:
        promises: of the plan stage, as of the last plan that served.
        learnt: predictor to what it has learnt of run times.
    """

    promises: Promises = NO_PROMISES
    learnt: Mapping[str, Learnt] = field(default_factory=dict)

    def learnt_by(self, predictor: str) -> Learnt:
        """What a predictor has learnt so far."""
        found = self.learnt.get(predictor)
        return Learnt() if found is None else found

    def promised_by(self, stage: str) -> Promises:
        """What a plan stage has announced; nothing if another one has."""
        return self.promises if self.promises.by in ("", stage) else NO_PROMISES


@dataclass(frozen=True)
class Environment:
    """What stages may use of the world around them; no part of any state.

    Attributes:
        solver: where models are solved; None: in this process, with effort alone.
        run_s: job id to what it will really take, s; known in simulations only, else None.
    """

    solver: Solver | None = None
    run_s: Mapping[str, int] | None = None


Chance = np.random.Generator | Callable[[], np.random.Generator]
"""A source of chance, or what makes it once it is asked for."""


@dataclass(frozen=True)
class Context:
    """What a cycle tells its stages beside the snapshot.

    Attributes:
        site: what holds for every plan.
        state: as the last plan that served left it.
        chance: the only source of chance; most policies leave nothing to it, and it is not made.
        environment: solver and oracle.
    """

    site: Site = NO_RULES
    state: State = field(default_factory=State)
    chance: Chance = field(default_factory=lambda: np.random.default_rng(0))
    environment: Environment = field(default_factory=Environment)

    @cached_property
    def rng(self) -> np.random.Generator:
        """The source of chance, made now if it was not."""
        return self.chance if isinstance(self.chance, np.random.Generator) else self.chance()


@dataclass(frozen=True)
class Foreseen:
    """What a predict stage returns.

    Attributes:
        prediction: None: jobs take their time limits.
        learnt: what is known now, by predictor; those left out know what they knew.
    """

    prediction: Prediction | None = None
    learnt: Mapping[str, Learnt] = field(default_factory=dict)


@dataclass(frozen=True)
class Planned:
    """What a plan stage returns.

    Attributes:
        promises: to be reminded of in the next cycle; nothing of what was before is kept.
        dispatched: what its dispatcher did; None: it has none.
    """

    plan: Plan
    promises: Promises = NO_PROMISES
    dispatched: Dispatched | None = None


@dataclass(frozen=True)
class Telemetry:
    """What one cycle did, for those who count; no cycle reads it.

    Attributes:
        dispatched: what the dispatcher did; None: there is none.
        placement: what the place stage made of the jobs that start now; None: nothing.
        set_aside: waiting jobs that were left out, because planning fails with them.
    """

    dispatched: Dispatched | None = None
    placement: PlacementSavings | None = None
    set_aside: int = 0


class PredictPolicy(Protocol):
    """How long jobs will run."""

    def predict(self, snapshot: Snapshot, context: Context) -> Foreseen:
        """Learns from `snapshot.ended`, and predicts.

        Args:
            snapshot: the world.
            context: what was known before, and more.

        Raises:
            PolicyError: nothing can be predicted; the cycle falls back to the conservative plan.
        """


class OrderPolicy(Protocol):
    """Who is considered first."""

    def order(self, snapshot: Snapshot) -> NDArray[np.int64]:
        """Returns all rows of `snapshot.jobs`, first considered first, as (n_jobs,) int64."""


class PlacePolicy(Protocol):
    """Which nodes are taken first."""

    def preference(self, snapshot: Snapshot) -> Preference:
        """Returns the rule and rank by which the planner picks nodes."""


class PlanPolicy(Protocol):
    """When and where every job starts."""

    def plan(
        self,
        snapshot: Snapshot,
        order: NDArray[np.int64],
        preference: Preference,
        context: Context,
    ) -> Planned:
        """Plans all pending jobs in the given order.

        Args:
            snapshot: the world; its times are the predicted ones.
            order: (n_jobs,) int64 rows of `snapshot.jobs`.
            preference: how to pick nodes.
            context: what the site demands, what was announced before, chance, and a solver.

        Raises:
            PolicyError: the policy failed; the cycle falls back to the conservative plan.
        """


@dataclass(frozen=True)
class Policy:
    """One choice per stage, ready to run."""

    name: str
    order: OrderPolicy
    plan: PlanPolicy
    place: PlacePolicy
    predict: PredictPolicy


Decide = Callable[[Snapshot], Plan]
"""What drives a controller: the cycle in this process, or the service behind its socket."""
