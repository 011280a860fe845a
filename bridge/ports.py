# SPDX-License-Identifier: Apache-2.0
"""The stages of a cycle, as protocols. A policy is one choice per stage.

| stage | question | implementations |
|---|---|---|
| predict | how long will it run? | bridge/policies/predict |
| order | who is considered first? | bridge/policies/order |
| plan | when does each job start? | bridge/policies/plan |
| place | which nodes first? | bridge/policies/place |

An implementation is a small frozen object: its parameters are constructor arguments, its state
is none. What must be carried from cycle to cycle lives in `Memory`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bridge.model.answer import Answer, Dispatched
from bridge.model.plan import Plan
from bridge.model.prediction import Prediction
from bridge.model.snapshot import Snapshot
from bridge.model.topology import Arranged

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
        rank: (n_nodes,) int32; nodes of lower rank first, ties by index.
    """

    selection: Selection
    rank: NDArray[np.int32]


MOST_KNOWN = 200_000
"""Keys that a predictor knows at most; what has not changed for longest is forgotten first."""


@dataclass
class Learnt:
    """What one predictor has learnt, and what it has at hand.

    Attributes:
        known: key to whole numbers, what changed last at the end; part of `Memory.learnt`.
        running: job id to start and believed run time of the jobs that run; part of
            `Memory.followed`.
        unsaved: keys of `known` that changed since they were saved.
        traits: job id to what the predictor knows it by, of the jobs that run.
        waiting: likewise of those that waited in the last snapshot.
        table: the job table that `waiting` is of.
        guesses: what was made of `known`, for each user.
        judged, under: ended jobs that were predicted, and those of them that ran for longer.
        off_s, accuracy: sums of abs(believed - actual), s, and of smaller / larger of the two.
    """

    known: dict[str, list[int]]
    running: dict[str, list[int]]
    unsaved: set[str] = field(default_factory=set)
    traits: dict[str, Any] = field(default_factory=dict)
    waiting: dict[str, Any] = field(default_factory=dict)
    table: object = None
    guesses: dict[str, dict[Any, int]] = field(default_factory=dict)
    judged: int = 0
    under: int = 0
    off_s: int = 0
    accuracy: float = 0.0

    def learn(self, key: str, value: list[int]) -> None:
        """Puts a value in place of what was known."""
        self.known.pop(key, None)
        self.known[key] = value
        self.unsaved.add(key)
        if len(self.known) > MOST_KNOWN:
            oldest = next(iter(self.known))
            del self.known[oldest]
            self.unsaved.add(oldest)


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

    def solve(self, ask: Ask) -> Answer:
        """Returns the best solution that came in time; never raises for want of one."""


@dataclass
class Memory:
    """What policies carry between cycles; kept by the service, empty in a fresh simulation.

    Attributes:
        planned_start_s: job id to the start announced last; lets a policy keep its word.
        kept_plan: the last plan in the policy's own terms; saved if it is a
            `bridge.planning.kept_plan.KeptPlan`.
        learnt: predictor to what it has learnt of run times.
        followed: predictor to job id to start and believed run time, s, of the jobs that run; not
            saved.
        at_hand: predictor to what it makes of these two; not saved.
        run_s: job id to what it will really take, s; known in simulations only, else None.
        solver: where models are solved; None: in this process, with effort alone. Not saved.
        dispatched: what the dispatcher of the last cycle did; None: there was none. Not saved.
        arranged: what the place stage made of the jobs that started last. Not saved.
    """

    planned_start_s: dict[str, int] = field(default_factory=dict)
    kept_plan: object = None
    learnt: dict[str, dict[str, list[int]]] = field(default_factory=dict)
    followed: dict[str, dict[str, list[int]]] = field(default_factory=dict)
    at_hand: dict[str, Learnt] = field(default_factory=dict)
    run_s: Mapping[str, int] | None = None
    solver: Solver | None = None
    dispatched: Dispatched | None = None
    arranged: Arranged | None = None

    def learnt_by(self, predictor: str) -> Learnt:
        """What a predictor has learnt, to be read and changed."""
        found = self.at_hand.get(predictor)
        if found is None:
            known = self.learnt.setdefault(predictor, {})
            found = Learnt(known, self.followed.setdefault(predictor, {}))
            self.at_hand[predictor] = found
        return found


class PredictPolicy(Protocol):
    """How long jobs will run."""

    def predict(self, snapshot: Snapshot, memory: Memory) -> Prediction | None:
        """Learns from `snapshot.ended`, and predicts.

        Args:
            snapshot: the world.
            memory: `learnt` is updated.

        Returns:
            None: jobs take their time limits.

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
        memory: Memory,
        rng: np.random.Generator,
    ) -> Plan:
        """Plans all pending jobs in the given order.

        Args:
            snapshot: the world; its times are what is believed of them.
            order: (n_jobs,) int64 rows of `snapshot.jobs`.
            preference: how to pick nodes.
            memory: what was carried over; may be updated.
            rng: the only source of chance.

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
