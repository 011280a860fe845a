# SPDX-License-Identifier: Apache-2.0
"""Lowers a bound with weights of nodes to a constraint, and jobs to their terms on it.

Rules
    1. The bound is one constraint: at each second what it leaves beyond what is used without any
       job; not below 0. It has a step wherever the bound changes, so a job must fit throughout its
       run.
    2. A job counts with what it adds on its nodes (`bridge.model.weighted_bound`). While these are
       unknown, it counts with the maximum of the nodes of its layout (`Extent.amounts`), or,
       without a layout, of its partition.
    3. Running jobs count, and are never refused.
    4. A job that adds nothing has no term.
    5. A job that needs more than the bound ever leaves can run if the bound can rise by enough
       (`WeightedBound.rise`).
"""

import numpy as np
from numpy.typing import NDArray

from bridge.core import NEVER
from bridge.model.plan import Plan
from bridge.model.snapshot import Snapshot
from bridge.model.weighted_bound import WeightedBound
from bridge.planning.requests.cpu_shares import part_of, planned_shares
from bridge.planning.site_rules.capacity_constraints import (
    UNBOUNDED,
    CapacityConstraintList,
    Mode,
    TermList,
)
from bridge.planning.site_rules.limits import simplified

Ints = NDArray[np.int64]


def binds(given: WeightedBound, now_s: int) -> bool:
    """Whether the bound is, or will be, in force."""
    ends_s = np.append(given.starts_s[1:], NEVER)
    return bool(((given.upper != NEVER) & (ends_s > now_s)).any())


class LoweredBound:
    def __init__(
        self, given: WeightedBound, snapshot: Snapshot, constraints: CapacityConstraintList
    ) -> None:
        self.given, self._snapshot = given, snapshot
        left = np.where(given.upper == NEVER, UNBOUNDED, np.maximum(given.upper - given.rest, 0))
        first = int(np.searchsorted(given.starts_s, snapshot.now_s, side="right")) - 1
        starts = np.maximum(given.starts_s[first:], snapshot.now_s)
        self.constraint = constraints.add(
            *simplified(starts, left[first:]), key=given.key, label=given.label, bound=given
        )

    def add_terms(self, terms: TermList, amounts: Ints) -> None:
        """Adds the terms of waiting jobs; (n,) what each adds at most."""
        self._add(terms, amounts, Mode.BOTH)

    def count_running(self, terms: TermList) -> None:
        """Adds the terms of running jobs."""
        self._add(terms, self.given.running, Mode.COUNT)

    def _add(self, terms: TermList, amounts: Ints, mode: Mode) -> None:
        jobs = np.flatnonzero(amounts > 0)
        constraint = np.full(len(jobs), self.constraint, dtype=np.int64)
        terms.add(jobs, constraint, amounts[jobs], np.full(len(jobs), mode, dtype=np.int8))

    def maximum(self, rows: Ints, partition: Ints, nodes: Ints) -> Ints:
        """(n,) an upper bound of what jobs add on any nodes of their partitions.

        Args:
            rows: (n,) of `Snapshot.jobs`.
            partition: (n,) where each would run.
            nodes: (n,) on how many nodes.
        """
        parts = [part.nodes for part in self._snapshot.partitions]
        weights = [self.given.weight[inside].max(initial=0) for inside in parts]
        floors = [self.given.floor[inside].min(initial=NEVER) for inside in parts]
        floor = np.array([*floors, 0], dtype=np.int64)[partition]
        weight = np.array([*weights, 0], dtype=np.int64)[partition]
        stated = self.given.stated[rows]
        found: Ints = nodes * np.where(stated > 0, np.maximum(stated - floor, 0), weight)
        return found

    def of_plan(self, plan: Plan, rows: NDArray[np.intp]) -> Ints:
        """(n,) what some rows of a plan, ascending, add on their nodes."""
        taken, given = planned_shares(self._snapshot, plan, rows), self.given
        stated, floor = given.stated[taken.job], given.floor[taken.node]
        weight = part_of(given.weight[taken.node], taken.cpus, taken.there)
        found = np.zeros(len(rows), dtype=np.int64)
        np.add.at(found, taken.row, np.where(stated > 0, np.maximum(stated - floor, 0), weight))
        return found
