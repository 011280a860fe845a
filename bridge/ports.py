# SPDX-License-Identifier: Apache-2.0
"""The stages of a cycle, as protocols. A policy is one implementation per stage.

| stage | question | implementations |
|---|---|---|
| predict | how long will each job run? | bridge/policies/predict |
| order | which job is considered first? | bridge/policies/order |
| place | which nodes are preferred? | bridge/policies/place |
| plan | when and where does each job start? | bridge/policies/plan |
| reshape | which running jobs grow or shrink? | bridge/policies/reshape |
| share | which jobs share nodes, and under which CPU quotas? | bridge/extensions/sharing |

The stage `share` is an extension's (`bridge.extensions.port.Extension.stage`), which says what it
must implement. Four ports are optional: a place policy may also be a `JointPlacer`, which improves
placements, and may state that it ranks nodes by size alone (`RanksBySize`); a plan policy may state
the conditions of its plans (`HasConditions`); and a reshape policy may state that it needs no
initial plan (`PlansItself`).

An implementation is a small frozen object. Its parameters are constructor arguments; it has no
state. Everything else it needs is passed as a `Context`. What the next cycle needs is returned
(`Planned.promises`, and `learnt` of `Predicted` and `Planned`) and becomes the next
`State` if the plan is legal.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from bridge.core import Alarm
from bridge.model.decisions.answer import Answer, Dispatched
from bridge.model.decisions.prediction import Prediction
from bridge.model.decisions.resizes import NO_RESIZES, Resizes
from bridge.model.decisions.start_widths import NO_START_WIDTHS, StartWidths
from bridge.model.hop_tree import HopTree, NodeSets
from bridge.model.learnt import Learnt
from bridge.model.plan import Plan
from bridge.model.rules.site import NO_RULES, Site
from bridge.model.snapshot import Snapshot
from bridge.model.topology import PlacementSavings

if TYPE_CHECKING:
    from ortools.sat.python.cp_model import CpModel


class Selection(IntEnum):
    """The rule for choosing a job's nodes among those on which it fits."""

    SEQUENTIAL = 0
    BEST_FIT = 1


@dataclass(frozen=True)
class Preference:
    """How the planner is to choose nodes; the output of a place policy.

    Attributes:
        selection: the rule for choosing among nodes of equal rank.
        rank: (n_nodes,) int32; nodes are sorted by rank, then by the rule, then by index.
    """

    selection: Selection
    rank: NDArray[np.int32]


@dataclass(frozen=True)
class SolverRequest:
    """A model to be solved, and the bounds on the effort.

    Attributes:
        model: a constraint programming model with an objective to minimise.
        budget_s: wall-clock limit, s; 0: none.
        effort: limit in the solver's deterministic time units; 0: none.
        seed: the seed of the solver's random numbers.
        search: further solver parameters, in their text format.
    """

    model: "CpModel"
    budget_s: float
    effort: float
    seed: int
    search: str = ""


class Solver(Protocol):
    """Solves models, and measures the wall-clock time of the current decision."""

    def warm_up(self) -> None:
        """Starts to prepare for models, and returns at once."""

    def begin(self) -> None:
        """Marks the start of a decision."""

    def elapsed_s(self) -> float:
        """Returns the wall-clock time since the decision started, s."""

    def alarm(self, left_s: float) -> Alarm | None:
        """Returns an alarm that expires in `left_s` seconds; None: there is no clock."""

    def solve(self, request: SolverRequest) -> Answer:
        """Returns the best solution found in time. Never raises because there is none."""


@dataclass(frozen=True)
class Promises:
    """The starts that a plan stage has announced; passed back to it in the next cycle.

    Attributes:
        by: name of the plan stage; the promises of another stage are not binding.
        start_s: from job id to announced start, Unix seconds.
        kept_plan: the plan in a form private to the stage; saved if it is a
            `bridge.planning.scheduler.kept_plan.KeptPlan`.
    """

    by: str = ""
    start_s: Mapping[str, int] = field(default_factory=dict)
    kept_plan: object = None


NO_PROMISES = Promises()


@dataclass(frozen=True)
class State:
    """What a policy carries from one cycle to the next; immutable.

    Attributes:
        promises: promises of the plan stage, from the last plan that was used.
        learnt: from the name of a predictor or reshape stage to what it has learnt.
    """

    promises: Promises = NO_PROMISES
    learnt: Mapping[str, Learnt] = field(default_factory=dict)

    def learnt_by(self, predictor: str) -> Learnt:
        """Returns what a predictor has learnt so far."""
        found = self.learnt.get(predictor)
        return Learnt() if found is None else found

    def promised_by(self, stage: str) -> Promises:
        """Returns the promises of a plan stage; none if they are another stage's."""
        return self.promises if self.promises.by in ("", stage) else NO_PROMISES


@dataclass(frozen=True)
class Environment:
    """External facilities that stages may use; not part of any state.

    Attributes:
        solver: solves models; None: they are solved in this process, bounded by effort only.
        run_s: from job id to actual run time, s; simulations only, otherwise None.
    """

    solver: Solver | None = None
    run_s: Mapping[str, int] | None = None


RandomSource = np.random.Generator | Callable[[], np.random.Generator]
"""A random number generator, or a function that makes one when it is first needed."""


@dataclass(frozen=True)
class Context:
    """The input of the stages in addition to the snapshot.

    Attributes:
        site: limits, FreePools and protections, which every plan must keep.
        state: from the last cycle whose plan was used.
        random: the only source of randomness; made on first use, as most policies need none.
        environment: solver and oracle.
    """

    site: Site = NO_RULES
    state: State = field(default_factory=State)
    random: RandomSource = field(default_factory=lambda: np.random.default_rng(0))
    environment: Environment = field(default_factory=Environment)

    @cached_property
    def rng(self) -> np.random.Generator:
        """The random number generator."""
        return self.random if isinstance(self.random, np.random.Generator) else self.random()


@dataclass(frozen=True)
class Predicted:
    """The output of a predict stage.

    Attributes:
        prediction: None: jobs are planned with their time limits.
        learnt: predictor name to its new knowledge; predictors left out are unchanged.
    """

    prediction: Prediction | None = None
    learnt: Mapping[str, Learnt] = field(default_factory=dict)


@dataclass(frozen=True)
class Planned:
    """The output of a plan stage.

    Attributes:
        promises: replace those of the cycle before.
        dispatched: statistics of its dispatcher; None: it has none.
        learnt: as in `Predicted`, by a plan or reshape stage.
    """

    plan: Plan
    promises: Promises = NO_PROMISES
    dispatched: Dispatched | None = None
    learnt: Mapping[str, Learnt] = field(default_factory=dict)


@dataclass(frozen=True)
class Telemetry:
    """Statistics of one cycle, for metrics; no cycle reads them.

    Attributes:
        dispatched: the result of the dispatcher; None: there is none.
        placement: the result of placement improvement; None: it was not done.
        set_aside: waiting jobs that were left out because planning failed with them.
    """

    dispatched: Dispatched | None = None
    placement: PlacementSavings | None = None
    set_aside: int = 0


class PredictPolicy(Protocol):
    """Predicts how long jobs run."""

    def predict(self, snapshot: Snapshot, context: Context) -> Predicted:
        """Learns from `snapshot.ended`, and predicts.

        Args:
            snapshot: the state of the cluster.
            context: `context.state.learnt` is what was known before.

        Raises:
            PolicyError: the policy failed; the cycle falls back to the conservative plan.
        """


class OrderPolicy(Protocol):
    """Decides which job is considered first."""

    def order(self, snapshot: Snapshot) -> NDArray[np.int64]:
        """Returns all rows of `snapshot.jobs` in order of consideration, (n_jobs,) int64."""


class PlacePolicy(Protocol):
    """Decides which nodes are preferred."""

    def preference(self, snapshot: Snapshot) -> Preference:
        """Returns how the planner is to choose nodes."""


@runtime_checkable
class JointPlacer(Protocol):
    """A place policy that also places jobs that start together, on a tree of switches.

    The cycle improves the placement of a finished plan with it.
    """

    def place_jobs(
        self,
        hop_tree: HopTree,
        idle: NDArray[np.int32],
        sizes: NDArray[np.int32],
        rng: np.random.Generator,
    ) -> NodeSets:
        """Finds node sets for a window of jobs.

        Args:
            hop_tree: the switches, and what hops across them cost.
            idle: nodes on switches, ascending.
            sizes: (n_jobs,) number of nodes of each job.
            rng: the only source of randomness.

        Returns:
            Disjoint sets of idle nodes, each within one fabric; empty for a job that cannot be
            placed.
        """


@runtime_checkable
class RanksBySize(Protocol):
    """A place policy that ranks nodes of equal weight by their size alone, where it says so.

    Its ranks mean nothing but to keep large nodes free, so the controller may choose other nodes
    for jobs of whole nodes (`bridge.planning.eligibility.controller_choice`, rule 7).
    """

    @property
    def ranks_by_size(self) -> bool: ...


def ranks_by_size(stage: object) -> bool:
    """Whether a place policy ranks nodes of equal weight by size alone, and says so."""
    return isinstance(stage, RanksBySize) and stage.ranks_by_size


class PlanPolicy(Protocol):
    """Decides when and where every job starts."""

    def plan(
        self,
        snapshot: Snapshot,
        order: NDArray[np.int64],
        preference: Preference,
        context: Context,
    ) -> Planned:
        """Plans all pending jobs in the given order.

        Args:
            snapshot: the state of the cluster, with predicted times.
            order: (n_jobs,) int64 rows of `snapshot.jobs`.
            context: site rules, earlier promises, random numbers and a solver.

        Raises:
            PolicyError: the policy failed; the cycle falls back to the conservative plan.
        """


@dataclass(frozen=True)
class Conditions:
    """The conditions of a plan, beyond nodes and licences.

    Attributes:
        site: limits, FreePools and protections.
        horizon_s: the policy plans no start later than this many seconds from now; None: no bound.
        whole_queue: the policy plans every row that can be planned, however low its priority.
        period_s: the policy starts jobs at multiples of it only, and reserves no later start;
            0: in every cycle. None: at any second, and later starts are reserved.
        sure: a job that fits in addition to everything planned gets that start.
    """

    site: Site = field(default_factory=Site)
    horizon_s: int | None = None
    whole_queue: bool = False
    period_s: int | None = None
    sure: bool = True


@runtime_checkable
class HasConditions(Protocol):
    """A plan stage that states the conditions of its plans."""

    def conditions(self, site: Site) -> Conditions:
        """The conditions of plans at a site; the same as long as the stage lives."""


def conditions_of(stage: object, site: Site) -> Conditions:
    """The conditions of a plan stage's plans; the site's rules alone if it states none."""
    return stage.conditions(site) if isinstance(stage, HasConditions) else Conditions(site)


class Replan(Protocol):
    """Plans the queue again around other widths."""

    def __call__(
        self,
        resizes: Resizes,
        returns: Resizes = NO_RESIZES,
        widths: StartWidths = NO_START_WIDTHS,
        order: NDArray[np.int64] | None = None,
    ) -> Planned:
        """The plan with these changes, without those that break a rule.

        Args:
            resizes: changes of running jobs that begin now.
            returns: what running jobs give back later.
            widths: widths of waiting jobs.
            order: (n_jobs,) rows of `snapshot.jobs`; None: as the stage order gives them.
        """

    def around(self, planned: Planned, resizes: Resizes, returns: Resizes) -> Planned:
        """The same rows with other changes, with which they are legal, too.

        They are planned again if one of the resizes breaks a rule and is dropped.

        Args:
            planned: as this or the stage plan made it.
            resizes: changes of running jobs that begin now.
            returns: what running jobs give back later.
        """


class ReshapePolicy(Protocol):
    """Decides which running jobs grow or shrink."""

    def reshape(
        self,
        snapshot: Snapshot,
        order: NDArray[np.int64],
        planned: Planned,
        replan: Replan,
        context: Context,
    ) -> Planned:
        """Decides on widths, and returns the plan that goes with them.

        Args:
            snapshot: the cluster; its times are the predicted ones. `RunningTable` says which jobs
                are malleable.
            order: (n_jobs,) int64 rows of `snapshot.jobs`.
            planned: the plan with all widths as they are; see also `PlansItself`.
            replan: the plan with other widths; may be called several times.

        Returns:
            `planned`, or what `replan` returned.

        Raises:
            PolicyError: the policy failed; the cycle falls back to the conservative plan.
        """


@runtime_checkable
class PlansItself(Protocol):
    """A reshape stage that can tell that it will plan the queue itself, whatever the plan was."""

    def plans_itself(self, snapshot: Snapshot) -> bool:
        """Whether it will; `reshape` then gets a plan without rows."""


def plans_itself(stage: object, snapshot: Snapshot) -> bool:
    """Whether a reshape stage will plan the queue itself; False if it does not tell."""
    kind = type(stage)
    if kind not in _SAYING:  # it takes long to find out
        _SAYING[kind] = isinstance(stage, PlansItself)
    return _SAYING[kind] and cast(PlansItself, stage).plans_itself(snapshot)


_SAYING: dict[type, bool] = {}


@dataclass(frozen=True)
class NoStage:
    """In place of an algorithm: the policy leaves the stage of an extension out."""


@dataclass(frozen=True)
class Policy:
    """One implementation per stage, ready to run; that of an extension's may be a `NoStage`."""

    name: str
    order: OrderPolicy
    plan: PlanPolicy
    place: PlacePolicy
    predict: PredictPolicy
    reshape: ReshapePolicy
    share: object


Decide = Callable[[Snapshot], Plan]
"""A source of plans: a cycle in this process, or the service behind its socket."""
