# SPDX-License-Identifier: Apache-2.0
"""Networks that choose where annealing puts jobs back, in ``bridge.core._core``."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bridge.core._tree import HopMetric, NodeSets, Tree

class RepairNetwork:
    """A network for up to 100 consecutive idle nodes and a job to put back on some of them.

    Its input has four rows of 100: switch and pod of each node, as numbered by ``view``, and at
        each
    node the size of the job and of the jobs still to be put back. Its output are logits: a number
    for each node at which the job could begin.

    Arithmetic is float32, in the same order on every machine.
    """

    def __init__(self, arrays: Sequence[NDArray[np.float32]], strides: Sequence[int]) -> None:
        """Makes a network: convolutions over rows, then linear layers, tanh between either kind.

        Args:
            arrays: weights and bias of each layer in turn. Convolutions (out, in, width), linear
                layers (out, in); the first of these takes channels by turns, each whole.
            strides: of the convolutions, one each.

        Raises:
            ValueError: the layers do not fit each other, or the state, or do not give 100 numbers.
        """

    def numbers(
        self, leaf: NDArray[np.float32], pod: NDArray[np.float32], job: float, others: float
    ) -> NDArray[np.float32]:
        """Runs the network on one state.

        Args:
            leaf: (n,) the first row, n at most 100; the rest is 0.
            pod: (n,) the second.
            job: value of the third row at the n nodes.
            others: of the fourth.

        Returns:
            (n,) logits.
        """

    @staticmethod
    def view(
        tree: Tree, idle: NDArray[np.int32], first: int, numbers: float = 5.0
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """The network's view of idle nodes.

        Args:
            tree: the switches.
            idle: ascending.
            first: where the view begins; the sequence is cyclic.
            numbers: divisor of switch numbers.

        Returns:
            Rows divided by ``numbers``: switches counted from 0, one more wherever the sequence
            continues under another one; and the switches above them, likewise.
        """

    def anneal(
        self,
        tree: Tree,
        metric: HopMetric,
        idle: NDArray[np.int32],
        sizes: NDArray[np.int32],
        iterations: int,
        seed: int,
        restore: bool = True,
        hottest: float = 2500.0,
        coldest: float = 2.5,
        most_removed: int = 2,
        warmth: float = 1.0,
        wander: float = 0.0,
        since: float = 0.0,
        rotate: bool = True,
        largest: float = 40.0,
        numbers: float = 5.0,
    ) -> tuple[NodeSets, int, int]:
        """``Tree.anneal``, but jobs are put back by the network's probabilities (NSA).

        Args:
            tree: the switches.
            metric: the cost.
            idle: ascending.
            sizes: (n_jobs,) nodes requested.
            iterations: moves tried.
            seed: random seed.
            restore: as in ``Tree.anneal``.
            hottest: initial temperature.
            coldest: final temperature, > 0.
            most_removed: most jobs removed at once.
            warmth: divisor of the logits: below 1 sharpens the distribution.
            wander: share of the jobs that are put back at random.
            since: share of the moves before the network is first used.
            rotate: if more than 100 nodes are idle, begin the view at a random multiple of 50;
                False: only the first 100 are ever chosen, as in the paper.
            largest: nodes of the largest job in training; sizes are divided by it, or by the
                window's largest if that is larger.
            numbers: as in ``view``.

        Returns:
            Sets; the number of choices by the network; how many of these came from its cache.
        """
