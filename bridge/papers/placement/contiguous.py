# SPDX-License-Identifier: Apache-2.0
"""The static contiguous strategy (SCAS), exactly: disjoint runs of idle nodes of least total hops.

Rules
    1. Idle nodes form a row by number; a job takes consecutive ones, continuing at the head where
       the row ends.
    2. All jobs of a window are placed on the row together, at the least cost: a dynamic programme
       over the row and the multiset of jobs placed so far. At most one job continues at the head,
       so the row is cut at each place where one could with gain.
    3. Windows are placed in groups of `most_jobs`, largest jobs first: the number of multisets
       grows with every different size.

Source: Lan et al. (see `bridge.model.hop_tree`), equations 2 to 5.
Deviates: the paper solves the 0-1 programme by SCIP, up to 30 s; its optimum is found here by the
dynamic programme, which is the constrained shortest path of section IV-B including the
continuation at the head of the row.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridge.errors import ConfigError
from bridge.model.hop_tree import HopTree, NodeSets, in_groups
from bridge.policies.place.sequential import Sequential

MAX_JOBS = 8


@dataclass(frozen=True)
class ContiguousExact(Sequential):
    """Places a window as runs of least cost.

    Attributes:
        most_jobs: placed together, 1 to 8.
    """

    most_jobs: int = MAX_JOBS

    def __post_init__(self) -> None:
        if not 1 <= self.most_jobs <= MAX_JOBS:
            raise ConfigError("most_jobs", f"must be 1 to {MAX_JOBS}, not {self.most_jobs}")

    def place_jobs(
        self,
        hop_tree: HopTree,
        idle: NDArray[np.int32],
        sizes: NDArray[np.int32],
        rng: np.random.Generator,
    ) -> NodeSets:
        """Returns node sets for jobs that start together, as a `JointPlacer` does."""
        del rng  # exact
        return in_groups(
            lambda left, group: hop_tree.tree.contiguous(hop_tree.metric, left, group),
            idle,
            sizes,
            self.most_jobs,
        )
