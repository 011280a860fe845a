# SPDX-License-Identifier: Apache-2.0
"""The stages of a cycle, as protocols. A policy is one choice per stage.

| stage | question | implementations |
|---|---|---|
| order | who is considered first? | bridge/policies/order |
| plan | when does each job start? | bridge/policies/plan |
| place | which nodes first? | bridge/policies/place |

An implementation is a small frozen object: its parameters are constructor arguments, its state
is none. What must be carried from cycle to cycle lives in `Memory`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bridge.model.plan import Plan
from bridge.model.snapshot import Snapshot


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


@dataclass
class Memory:
    """What policies carry between cycles; kept by the service, empty in a fresh simulation.

    Attributes:
        planned_start_s: job id to the start announced last; lets a policy keep its word.
        kept_plan: the last plan in the policy's own terms; not saved, so that after a restart the
            announced starts are kept, but not the nodes.
    """

    planned_start_s: dict[str, int] = field(default_factory=dict)
    kept_plan: object = None


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
            snapshot: the world.
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


Decide = Callable[[Snapshot], Plan]
"""What drives a controller: the cycle in this process, or the service behind its socket."""
