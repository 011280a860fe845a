# SPDX-License-Identifier: Apache-2.0
"""Few switches for every job, all jobs of the window together, contiguous or not.

Rules
    1. Only how many nodes a job has under each switch matters for its hops. For one job the best
       counts are found exactly, by max-plus programmes from the leaf switches up.
    2. Equally good sets are told apart by what they leave: large holes stay for large jobs.
    3. The jobs of a window are placed in every order for up to five of them; then a few at a time
       are taken out and put back, half of the time under random prices of pods, while that makes
       nothing worse.
    4. A contiguous placement is known before the search begins: the best of up to eight jobs where
       that is quick to have, of more jobs four at a time, or else one job after the other. What is
       returned is no worse.

Source: ours. The exact programmes rest on the cost being a constant less the weighted squares of
the counts; the neighbourhoods are those of large-neighbourhood search (Shaw, CP 1998).
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridge.errors import ConfigError
from bridge.planning.placement.hop_tree import HopTree, NodeSets
from bridge.policies.place.sequential import Sequential

STEPS_PER_MS = 600_000
"""Of this kernel; its steps are longer than those that `bridge.units` speaks of."""


@dataclass(frozen=True)
class Compact(Sequential):
    """Places a window by counts per switch.

    Attributes:
        budget_ms: work for one window, in `STEPS_PER_MS`: counted, so that the same seed gives the
            same sets anywhere; 0: bounded by `effort` alone.
        effort: changes that the search tries; 0: bounded by `budget_ms` alone.
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
