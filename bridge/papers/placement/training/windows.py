# SPDX-License-Identifier: Apache-2.0
"""Training windows: the jobs and idle nodes of the TJAP paper's stream, period by period.

Rules
    1. Jobs need U[1, 40] nodes for U[10, 1800] s and arrive U[5, 30] s apart, all integers.
    2. Every 60 s jobs are sorted by waiting periods (most first), then nodes (fewest first), and
       taken in that order while they fit on the idle nodes, at most five of more than one node.
       Jobs of one node take the first idle node, as in the public code, and are not in the window.
    3. The window is placed by one of three placers chosen at random, so that later idle nodes look
       as they do after a good, a fair and a poor placer.
    4. A system starts empty: its first windows have long idle stretches, later ones holes.

Source: Lan et al., section VI-A, and the generator of its public code (intervals between arrivals
are not in the paper).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridge.model.hop_tree import HopTree, Metric
from bridge.model.topology import regular

NODES = 1000
PERIOD_S = 60
MAX_JOBS = 5
SWITCH = 10
PODS = {Metric.PAPER: 100, Metric.CODE: 40}
"""Nodes below a pod, in the paper's text and in its program."""


@dataclass(frozen=True)
class TrainingWindow:
    """The jobs to place and the idle nodes.

    Attributes:
        leaf: (n_idle,) int32: the switch of each idle node, by ascending node.
        pod: (n_idle,) int32: the switch above that.
        sizes: (n_jobs,) int32: nodes requested.
        idle: (n_idle,) int32: the nodes.
    """

    leaf: NDArray[np.int32]
    pod: NDArray[np.int32]
    sizes: NDArray[np.int32]
    idle: NDArray[np.int32]


def paper_hop_tree(metric: Metric) -> HopTree:
    """The thousand nodes of the paper: switches of ten, pods as in the metric's source."""
    return HopTree.of(regular(NODES, SWITCH, PODS[metric]), metric)


def stream(hop_tree: HopTree, seed: int, periods: int) -> Iterator[TrainingWindow]:
    """The windows of one stream, starting with an empty system.

    Args:
        periods: number of periods; some have no window.
    """
    rng = np.random.default_rng(seed)
    until_s = np.zeros(NODES, dtype=np.int64)  # when each node becomes idle
    queue: list[list[int]] = []  # [minus periods waited, nodes, run time in s]
    arrival_s = int(rng.integers(5, 31))
    for period in range(1, periods + 1):
        now_s = period * PERIOD_S
        while arrival_s < now_s:
            queue.append([0, int(rng.integers(1, 41)), int(rng.integers(10, 1801))])
            arrival_s += int(rng.integers(5, 31))
        queue.sort(key=lambda job: (job[0], job[1]))
        idle = np.flatnonzero(until_s <= now_s).astype(np.int32)
        taken, room = 0, len(idle)
        for _, nodes, _ in queue:
            several = sum(job[1] > 1 for job in queue[: taken + 1])
            if nodes > room or several > MAX_JOBS:
                break
            taken, room = taken + 1, room - nodes
        chosen, queue = queue[:taken], queue[taken:]
        for job in queue:
            job[0] -= 1
        for job in (job for job in chosen if job[1] == 1):
            until_s[idle[0]] = now_s + job[2]
            idle = idle[1:]
        chosen = [job for job in chosen if job[1] > 1]
        if not chosen:
            continue
        sizes = np.array([job[1] for job in chosen], dtype=np.int32)
        leaf = hop_tree.topology.leaf_of_node[idle]
        yield TrainingWindow(leaf, hop_tree.topology.parent[leaf], sizes, idle)
        indptr, nodes_of = _placed(hop_tree, idle, sizes, rng)
        for row, job in enumerate(chosen):
            until_s[nodes_of[indptr[row] : indptr[row + 1]]] = now_s + job[2]


def _placed(
    hop_tree: HopTree, idle: NDArray[np.int32], sizes: NDArray[np.int32], rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Places the jobs with a random placer."""
    draw = rng.random()
    if draw < 0.2:
        return hop_tree.tree.sequential(idle, sizes)
    if draw < 0.6:
        return hop_tree.tree.contiguous(hop_tree.metric, idle, sizes)
    return hop_tree.tree.anneal(hop_tree.metric, idle, sizes, 500, int(rng.integers(1 << 31)))
