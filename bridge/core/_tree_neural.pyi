# SPDX-License-Identifier: Apache-2.0
"""Networks that say where annealing puts jobs back, in ``bridge.core._core``."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bridge.core._tree import HopMetric, NodeSets, Tree

class RepairNetwork:
    """A network that sees up to 100 idle nodes in a row, and a job to put back on some of them.

    It reads a state of four rows of 100: switch and pod of each node, as ``view`` numbers them, and
    at each node what the job wants and what those want that are still out. It gives a number for
    each node that the job could begin at: logits.

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
            leaf: (n,) the first row, n at most 100; behind them all is 0.
            pod: (n,) the second.
            job: what stands at the n nodes in the third row.
            others: in the fourth.

        Returns:
            (n,) logits.
        """

    @staticmethod
    def view(
        tree: Tree, idle: NDArray[np.int32], first: int, numbers: float = 5.0
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """What a network sees of idle nodes.

        Args:
            tree: the switches.
            idle: ascending.
            first: where the view begins; behind the last node it goes on with the first.
            numbers: what the numbers of switches are divided by.

        Returns:
            Rows for ``numbers``: switches counted from 0, one more wherever the row goes on under
            another one; and the switches above them, likewise.
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
        """``Tree.anneal``, but jobs are put back where the network says, by its chances (NSA).

        Args:
            tree: the switches.
            metric: what is paid.
            idle: ascending.
            sizes: (n_jobs,) nodes wanted.
            iterations: moves tried.
            seed: of chance.
            restore: as in ``Tree.anneal``.
            hottest: temperature at first.
            coldest: temperature at the end, > 0.
            most_removed: jobs taken out at once, at most.
            warmth: logits are divided by it: below 1 the likely gets likelier.
            wander: part of the jobs that are put anywhere, without asking.
            since: part of the moves that pass before the network is asked at all.
            rotate: where more than 100 nodes are idle, begin the view at a random multiple of 50;
                False: only the first 100 are ever chosen, as in the paper.
            largest: nodes of the largest job the network knows; sizes are divided by it, or by the
                window's largest if that is larger.
            numbers: as in ``view``.

        Returns:
            Sets; how often a choice was made by the network; how many of these it had made before
            on the same idle nodes, and remembered.
        """
