# SPDX-License-Identifier: Apache-2.0
"""What an extension may add to the scheduler, on one page.

Further pages: `service_port.py` for the service, `operators_port.py` for operators.

An extension is an entry point of the group `schedbridge.extensions`, with the extension's name:

    [project.entry-points."schedbridge.extensions"]
    power = "bridge.extensions.power.extension:EXTENSION"

    EXTENSION = Extension("power", stages=Face("bridge.extensions.power.stages:PowerStages"), ...)

Terms
    part    what an extension adds to a table of the snapshot, to a plan or to the site's rules,
            under its own name (`bridge.model.parts`): a frozen dataclass.
    face    a class without arguments that serves one side of the program. Its module is imported
            when it is first needed, so the cycle never imports what an extension does on the wire.
    active  of an extension in a cycle: a table of the snapshot has its part, a running job has a
            value in one of its columns (`marks`), or the policy has an algorithm for its stage; for
            `bounds`: the rules of the site have its part.

Rules
    1. Of an extension that is not active, no face is made and no code runs.
    2. Extensions act one after the other: after those that they name in `after`, then by name.
    3. A part of a plan or of the site's rules is judged by the check of its extension; a part that
       nothing can judge makes the plan illegal. So none is forgotten.
    4. A plan stage knows no extension: what closes nodes is a reservation, what prefers nodes is
       the rank of a `Preference`, what bounds a sum is a `WeightedBound`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, Generic, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from bridge.extensions.operators_port import OperatorMethods, ServiceParts
from bridge.extensions.service_port import AgentReaders, Gauges, Memories, Meters, SiteRules
from bridge.model.job import RunningTable
from bridge.model.node import NodeTable
from bridge.model.plan import Plan
from bridge.model.rules.site import Site
from bridge.model.snapshot import Snapshot
from bridge.model.weighted_bound import WeightedBound
from bridge.ports import Context, Planned, Policy, Preference

T = TypeVar("T")


@dataclass(frozen=True)
class Face(Generic[T]):
    """A class of an extension, by its path "package.module:Class"."""

    path: str

    def made(self) -> T:
        """The one object of the class.

        Raises:
            ImportError: there is no such module.
            AttributeError: the module has no such class.
        """
        return cast(T, _made(self.path))


@cache
def _made(path: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)()


class CycleView(Protocol):
    """The cycle under way.

    Attributes:
        predicted: the snapshot, with predicted times.
        policy: in force; an extension that acts in a stage of policies finds the algorithm there.
        context: site rules, state, random numbers and a solver.
    """

    predicted: Snapshot
    policy: Policy
    context: Context

    def world(self) -> Snapshot:
        """The snapshot that the rows of the plan are planned around."""

    def planned_again(self, world: Snapshot) -> Planned:
        """The plan of the same queue in another world with the same waiting jobs."""

    def is_legal(self, plan: Plan) -> bool:
        """Whether a plan keeps all rules."""


class Stages:
    """What an extension does when it is active: with each report, and in each cycle.

    The stages of an extension are derived from these, which do nothing.
    """

    def overlay(self, snapshot: Snapshot) -> Snapshot:
        """The report as it is to be planned and explained, e.g. with more reservations."""
        return snapshot

    def bounds(self, snapshot: Snapshot, site: Site) -> Sequence[WeightedBound]:  # noqa: ARG002
        """Bounds on sums that no start may exceed, by the extension's part of the site's rules."""
        return ()

    def before_plan(self, snapshot: Snapshot, preference: Preference) -> Preference:  # noqa: ARG002
        """The preference of the place policy, or one that ranks nodes otherwise."""
        return preference

    def after_plan(self, planned: Planned, cycle: CycleView) -> Planned:  # noqa: ARG002
        """The plan with the extension's part, if it has decided anything."""
        return planned


class Counting(Protocol):
    """How the use of running jobs is counted where several of them use the same resources."""

    def counted(self, running: RunningTable) -> RunningTable:
        """The table by the present ends; may be asked again after these have changed."""

    def reported(self, running: RunningTable) -> NDArray[np.int64]:
        """What each job holds by itself, as `RunningTable.use`: the inverse of `counted`."""


class Fallback(Protocol):
    """What an extension still decides in a cycle without a plan of any policy."""

    def completed(self, snapshot: Snapshot, plan: Plan) -> Plan:
        """A plan in which every job waits, with the extension's decisions."""


Worlds = Sequence[tuple[Snapshot, Plan]]
"""Snapshots, each with a plan that must be legal in it."""


class Check:
    """Judges plans by an extension's parts, without code of its stages.

    The checks of an extension are derived from these, which refuse nothing.
    """

    def rows(self, world: Any, site: Site) -> Iterator[tuple[int, str]]:  # noqa: ARG002
        """Each row of a plan that breaks the extension's part of the site's rules; and a sentence.

        Args:
            world: a `bridge.check.amounts.CheckedAmounts`: the rows, and the running jobs.
            site: the rules, with the part.
        """
        return iter(())

    def broken(
        self,
        snapshot: Snapshot,  # noqa: ARG002
        site: Site,  # noqa: ARG002
        plan: Plan,  # noqa: ARG002
    ) -> Iterator[tuple[str, str]]:
        """Each violation of the plan's part: the id of a job, or an empty text; and a sentence."""
        return iter(())

    def worlds(self, snapshot: Snapshot, site: Site, plan: Plan) -> Worlds:  # noqa: ARG002
        """What must be legal in place of a plan with the part, e.g. without it; none: the plan."""
        return ()

    def faults(self, snapshot: Snapshot, plan: Plan) -> Iterator[tuple[str, str]]:  # noqa: ARG002
        """Fields of the part of a recorded plan that do not fit, each with the problem."""
        return iter(())


@dataclass(frozen=True)
class Extension:
    """What an extension offers; everything but its name may be left out.

    Attributes:
        name: under which its parts are kept; that of the entry point.
        after: names of the extensions that act before it.
        nodes: type of its part of `NodeTable`: columns with a row for each node.
        plan: type of its part of a `Plan`.
        site: type of its part of a `Site`, a `SitePart`; its check judges each row by it.
        stage: the stage of policies that it acts in, one of `bridge.model.policy.STAGES`. If it
            fails, then the policy has failed.
        marks: columns of running jobs; where one has a value, the extension is active.
        counting: how the use of running jobs is counted that have a value in one of `marks`.
        fallback: what it decides if no policy has a plan.
        keeps: names in `State.learnt` that are kept when what was learnt is discarded.
        check: judges its part of a plan.
        wire: a `bridge.rpc.extension_wire.Wire`: its fields and actions in messages.
        rules: its section of `planning:`, which makes its part of a `Site`.
        agents: what it reads in the reports of agents on the nodes.
        memory: what it learns over reports of the controller.
        gauges: what it shows on the page of metrics.
        meter: what it counts over cycles, for the page of metrics.
        service: what it runs in the service's process.
        methods: how methods of the operators' service are answered, in the operators' process.
        simulated: a function that makes a `SimulatedNodes`, with arguments of its own.
    """

    name: str
    after: tuple[str, ...] = ()
    nodes: type | None = None
    plan: type | None = None
    site: type | None = None
    stage: str = ""
    marks: tuple[str, ...] = ()
    stages: Face[Stages] | None = None
    counting: Face[Counting] | None = None
    fallback: Face[Fallback] | None = None
    keeps: tuple[str, ...] = ()
    check: Face[Check] | None = None
    wire: Face[Any] | None = None
    rules: Face[SiteRules] | None = None
    agents: Face[AgentReaders] | None = None
    memory: Face[Memories] | None = None
    gauges: Face[Gauges] | None = None
    meter: Face[Meters] | None = None
    service: Face[ServiceParts] | None = None
    methods: Face[OperatorMethods] | None = None
    simulated: Callable[..., "SimulatedNodes"] | None = None


class SimulatedNodes(Protocol):
    """The state of nodes that a simulated controller keeps for an extension."""

    def next_s(self) -> int:
        """When the state changes by itself; NEVER: it does not."""

    def happen(self, now_s: int, busy: Any) -> int:
        """Applies due changes; `busy`: (n_nodes,) which nodes jobs hold. Returns how many."""

    def obey(self, plan: Plan, now_s: int) -> None:
        """Carries out the extension's part of a plan."""

    def objection(self, nodes: Any) -> str | None:
        """Why no job can start on some nodes; None: one can."""

    def shown(self, nodes: NodeTable, now_s: int) -> NodeTable:
        """The nodes with the extension's part; the same object if nothing has changed."""
