# SPDX-License-Identifier: Apache-2.0
"""Places the jobs of a window together on few switches, contiguously or not.

Rules
    1. The hops of a job depend only on its number of nodes under each switch. For one job the best
       numbers are found exactly, by dynamic programming (max-plus) from the leaf switches up.
    2. Among equally good sets, the one that leaves larger gaps for large jobs is used.
    3. Up to five jobs are placed in every order. Then a few jobs at a time are removed and placed
       again, half of the time with random prices of pods; a change that is no worse is kept.
    4. The search starts from a contiguous placement: the optimum of up to eight jobs if that is
       fast, of more jobs four at a time, or one job after the other. The result is no worse.

Source: ours. The exact programmes rest on the cost being a constant less the weighted squares of
the counts; the neighbourhoods are those of large-neighbourhood search (Shaw, CP 1998).
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridge.errors import ConfigError
from bridge.model.hop_tree import HopTree, NodeSets
from bridge.policies.place.sequential import Sequential

STEPS_PER_MS = 600_000
"""Work of this kernel; its steps are longer than those of `bridge.units`."""


@dataclass(frozen=True)
class Compact(Sequential):
    """Places a window by counts per switch.

    Attributes:
        budget_ms: work for one window, in `STEPS_PER_MS`: counted, so that the same seed gives the
            same sets anywhere; 0: bounded by `effort` alone.
        effort: number of changes that the search tries; 0: bounded by `budget_ms` alone.
    """

    budget_ms: float = 5.0
    effort: int = 0

    def __post_init__(self) -> None:
        if self.budget_ms < 0:
            raise ConfigError("budget_ms", f"must be 0 or more, not {self.budget_ms}")
        if self.effort < 0:
            raise ConfigError("effort", f"must be 0 or more, not {self.effort}")

    def place_jobs(
        self,
        hop_tree: HopTree,
        idle: NDArray[np.int32],
        sizes: NDArray[np.int32],
        rng: np.random.Generator,
    ) -> NodeSets:
        """Returns node sets for jobs that start together, as a `JointPlacer` does."""
        seed = int(rng.integers(1 << 62))
        steps = math.ceil(self.budget_ms * STEPS_PER_MS)
        return hop_tree.tree.compact(hop_tree.metric, idle, sizes, steps, self.effort, seed)
