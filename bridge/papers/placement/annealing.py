# SPDX-License-Identifier: Apache-2.0
"""The dynamic contiguous strategy (DCAS) by simulated annealing.

Rules
    1. Initially the jobs are placed one after the other on the first idle nodes.
    2. A move removes one or two jobs and places them again, largest first, each as a run of
       consecutive idle nodes from a random position.
    3. A better placement is accepted; a worse one with probability exp(-increase / T), T falling
       geometrically from `hottest` to `coldest`. The best placement seen is returned.
    4. A rejected move is undone, unless `published` is set.

Source: Lan et al. (see `bridge.model.hop_tree`), algorithm 1 with the random repair,
    table I.
Deviates: the public code does not undo rejected moves, so that it is a random walk that remembers
the best placement; `published: true` does the same, for comparison.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridge.errors import ConfigError
from bridge.model.hop_tree import HopTree, NodeSets
from bridge.policies.place.sequential import Sequential


@dataclass(frozen=True)
class Annealing(Sequential):
    """Places a window by annealing.

    Attributes:
        effort: moves.
        hottest, coldest: temperatures, in units of cost.
        most_removed: maximum number of jobs that one move removes.
        published: do not undo rejected moves.
    """

    effort: int = 500
    hottest: float = 2500.0
    coldest: float = 2.5
    most_removed: int = 2
    published: bool = False

    def __post_init__(self) -> None:
        if self.effort < 0:
            raise ConfigError("effort", f"must be 0 or more, not {self.effort}")
        if not 0 < self.coldest <= self.hottest:
            raise ConfigError("coldest", f"must be more than 0 and at most {self.hottest}")
        if self.most_removed < 1:
            raise ConfigError("most_removed", f"must be 1 or more, not {self.most_removed}")

    def place_jobs(
        self,
        hop_tree: HopTree,
        idle: NDArray[np.int32],
        sizes: NDArray[np.int32],
        rng: np.random.Generator,
    ) -> NodeSets:
        """Returns node sets for jobs that start together, as a `JointPlacer` does."""
        return hop_tree.tree.anneal(
            hop_tree.metric,
            idle,
            sizes,
            self.effort,
            int(rng.integers(1 << 62)),
            restore=not self.published,
            hottest=float(self.hottest),
            coldest=float(self.coldest),
            most_removed=self.most_removed,
        )
