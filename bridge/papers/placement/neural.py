# SPDX-License-Identifier: Apache-2.0
"""The dynamic contiguous strategy (DCAS) by annealing guided by a network (NSA).

Rules
    1. As `bridge.papers.placement.annealing`, except that a network chooses where a removed job is
       placed: it sees the row of idle nodes, the request of the job, and the requests of the jobs
       still to be placed, and gives a probability to each node at which the job could begin.
    2. It sees 100 nodes. If more are idle, the view begins at a random multiple of 50 and
       continues at the head of the row, so that every node can be chosen.
    3. States recur while a window is annealed, more and more often as it cools: the output of the
       network is cached until the window is placed.
    4. In the first half of the moves (`since`) the network is not used: at high temperature states
       hardly recur, and almost any move is accepted. Later a share of the jobs (`wander`) is
       placed at random, to try what the network considers impossible.

The networks, and what they see: `bridge.papers.placement.neural_weights`; their training:
`schedbridge lab train placement`, docs/NEURAL.md.

Source: Lan et al. (see `bridge.model.hop_tree`), algorithm 1 with the learnt repair,
    table II.
Deviates: the paper shows the network the first 100 idle nodes and never uses others (`first:
true`); uses it from the first move on (`since: 0`), places no job at random (`wander: 0`) and does
not scale logits (`warmth: 1`); the public code does not undo rejected moves (`published: true`).
The paper's choice is CNN-3. Ours, FCN-1, is as good in half the time: docs/results/neural.md.
"""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bridge.core import RepairNetwork
from bridge.errors import ConfigError
from bridge.model.hop_tree import HopTree, NodeSets
from bridge.papers.placement.annealing import Annealing
from bridge.papers.placement.neural_weights import LARGEST, NUMBERS, from_file, shipped

DEFAULT = "fcn-1"


@dataclass(frozen=True)
class Neural(Annealing):
    """Places a window by annealing guided by a network.

    Attributes:
        network: name of a network of the package.
        weights: a file of weights to use instead; empty: none.
        warmth: logits are divided by it.
        wander: share of the jobs that are placed at random.
        since: share of the moves before the network is first used.
        first: use only the first 100 idle nodes.
    """

    network: str = DEFAULT
    weights: str = ""
    warmth: float = 1.3
    wander: float = 0.2
    since: float = 0.5
    first: bool = False
    _network: RepairNetwork = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.warmth > 0:
            raise ConfigError("warmth", f"must be more than 0, not {self.warmth}")
        if not 0 <= self.wander <= 1:
            raise ConfigError("wander", f"must be from 0 to 1, not {self.wander}")
        if not 0 <= self.since <= 1:
            raise ConfigError("since", f"must be from 0 to 1, not {self.since}")
        if self.weights and self.network != DEFAULT:
            raise ConfigError("network", "the weights file names its network: give one of the two")
        chosen = from_file(Path(self.weights)) if self.weights else shipped(self.network)
        object.__setattr__(self, "_network", chosen)

    def place_jobs(
        self,
        hop_tree: HopTree,
        idle: NDArray[np.int32],
        sizes: NDArray[np.int32],
        rng: np.random.Generator,
    ) -> NodeSets:
        """Returns node sets for jobs that start together, as a `JointPlacer` does."""
        sets, _, _ = self._network.anneal(
            hop_tree.tree,
            hop_tree.metric,
            idle,
            sizes,
            self.effort,
            int(rng.integers(1 << 62)),
            restore=not self.published,
            hottest=float(self.hottest),
            coldest=float(self.coldest),
            most_removed=self.most_removed,
            warmth=float(self.warmth),
            wander=float(self.wander),
            since=float(self.since),
            rotate=not self.first,
            largest=float(LARGEST),
            numbers=NUMBERS,
        )
        return sets
