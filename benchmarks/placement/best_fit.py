# SPDX-License-Identifier: Apache-2.0
"""`compact` against a best fit like that of Slurm's topology/tree, with the same starts for both.

On real clusters (`cluster.py`) schedulers start jobs at different instants, so the effect of
placement is mixed with that of which nodes are idle. Here all nodes are identical and allocated
whole: starts do not depend on placement, so all placers use one EASY schedule and only node sets
differ.

The best fit follows Slurm's Topology Guide: below the lowest switch that has enough idle nodes (of
several the fullest), the leaf switch with the fewest idle nodes that are enough for the rest, or
else the one with the most idle nodes, and so on.

    python benchmarks/placement/best_fit.py --seeds 20 --json
"""

import argparse
import heapq
import json
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).resolve().parents[1]))

from about import about

from bridge.model.hop_tree import HopTree
from bridge.model.topology import Topology, fat_tree, regular

Nodes = NDArray[np.int32]
PlaceFunction = Callable[[HopTree, Nodes, int], Nodes]

SHORTEST_S, LONGEST_S, LIMIT_S = 2, 40, 60
TREES: dict[str, tuple[Topology, int]] = {
    "64 nodes, leaf switches of 4, pods of 16; jobs of 1 to 16": (fat_tree(8, 64), 16),
    "1,000 nodes, leaf switches of 10, pods of 100; jobs of 1 to 40": (regular(1000, 10, 100), 40),
}


def first(hop_tree: HopTree, idle: Nodes, size: int) -> Nodes:
    """The first idle nodes by name."""
    return hop_tree.tree.sequential(idle, np.array([size], np.int32))[1]


def compact(hop_tree: HopTree, idle: Nodes, size: int) -> Nodes:
    """The minimum of hops for one job; of equal ones, that which leaves the largest holes."""
    return hop_tree.tree.compact(hop_tree.metric, idle, np.array([size], np.int32))[1]


def best_fit(hop_tree: HopTree, idle: Nodes, size: int) -> Nodes:
    """The tightest switch, and in it the tightest leaf switches."""
    parent, level = hop_tree.topology.parent, hop_tree.tree.level
    below: dict[int, list[int]] = {}
    leaf_of = hop_tree.topology.leaf_of_node
    for node in idle.tolist():
        switch = int(leaf_of[node])
        while switch >= 0:
            below.setdefault(switch, []).append(node)
            switch = int(parent[switch])
    _, _, lowest = min(
        (int(level[switch]), len(nodes), switch)
        for switch, nodes in below.items()
        if len(nodes) >= size
    )
    leaves: dict[int, list[int]] = {}
    for node in below[lowest]:
        leaves.setdefault(int(leaf_of[node]), []).append(node)
    taken: list[int] = []
    while (wanted := size - len(taken)) > 0:
        tight = [(len(nodes), leaf) for leaf, nodes in leaves.items() if len(nodes) >= wanted]
        leaf = min(tight)[1] if tight else max(leaves, key=lambda at: (len(leaves[at]), -at))
        taken += leaves.pop(leaf)[:wanted]
    return np.array(sorted(taken), dtype=np.int32)


PLACERS: dict[str, PlaceFunction] = {"best-fit": best_fit, "compact": compact, "first": first}


def easy(jobs: list[tuple[float, int, int]], nodes: int) -> Iterator[tuple[float, int, int]]:
    """Yields (time, job, +1 or -1) for every start and end under EASY, in order.

    Args:
        jobs: submission, nodes and run time, s, of each; all have the time limit `LIMIT_S`.
        nodes: of the machine.
    """
    idle, coming, waiting = nodes, 0, []
    ends: list[tuple[float, int, float]] = []  # when, which job, and by its limit at the latest
    while coming < len(jobs) or waiting or ends:
        now = min(jobs[coming][0] if coming < len(jobs) else np.inf, ends[0][0] if ends else np.inf)
        while ends and ends[0][0] <= now:
            _, job, _ = heapq.heappop(ends)
            idle += jobs[job][1]
            yield now, job, -1
        while coming < len(jobs) and jobs[coming][0] <= now:
            waiting.append(coming)
            coming += 1
        shadow, spare, blocked = np.inf, 0, False
        for job in list(waiting):
            _, size, length_s = jobs[job]
            if blocked and (size > idle or (now + LIMIT_S > shadow and size > spare)):
                continue
            if size > idle:
                blocked, free = True, idle
                for latest, running in sorted((end[2], end[1]) for end in ends):
                    free += jobs[running][1]
                    if free >= size:
                        shadow, spare = latest, free - size
                        break
                continue
            if blocked and now + LIMIT_S > shadow:
                spare -= size
            waiting.remove(job)
            idle -= size
            heapq.heappush(ends, (now + length_s, job, now + LIMIT_S))
            yield now, job, 1


def measure(
    topology: Topology, largest: int, load: float, jobs: int, seed: int
) -> dict[str, tuple[float, float]]:
    """Hops relative to the best fit, and leaf switches per job, of every placer on one schedule."""
    chance, at_s, stream = random.Random(seed), 0.0, []
    nodes = len(topology.leaf_of_node)
    mean_node_s = (1 + largest) / 2 * (SHORTEST_S + LONGEST_S) / 2
    for _ in range(jobs):
        size, length_s = chance.randint(1, largest), chance.randint(SHORTEST_S, LONGEST_S)
        stream.append((at_s, size, length_s))
        at_s += chance.expovariate(nodes * load / mean_node_s)
    events = list(easy(stream, nodes))
    hop_tree = HopTree.of(topology)
    found: dict[str, tuple[float, float]] = {}
    for name, place in PLACERS.items():
        idle, held, cost, leaves, wide = np.ones(nodes, dtype=bool), {}, 0.0, 0, 0
        for _, job, step in events:
            if step < 0:
                idle[held.pop(job)] = True
                continue
            size = stream[job][1]
            sets = place(hop_tree, np.flatnonzero(idle).astype(np.int32), size)
            if len(sets) != size or not idle[sets].all():
                raise AssertionError(f"{name} gave {len(sets)} nodes for {size}, or busy ones")
            held[job] = sets
            idle[sets] = False
            if size > 1:
                cost += float(hop_tree.costs((np.array([0, size]), sets))[0])
                leaves += len(np.unique(topology.leaf_of_node[sets]))
                wide += 1
        found[name] = (cost, leaves / wide)
    base = found["best-fit"][0]
    return {name: (cost / base, leaves) for name, (cost, leaves) in found.items()}


def over_seeds(runs: list[dict[str, tuple[float, float]]]) -> dict[str, object]:
    """Mean over seeds of both figures of each placer, and the lowest and highest ratio of hops."""
    told: dict[str, object] = {}
    for name in PLACERS:
        hops, leaves = zip(*(run[name] for run in runs), strict=True)
        told[name] = {
            "hops": round(float(np.mean(hops)), 4),
            "hops_lowest": round(min(hops), 4),
            "hops_highest": round(max(hops), 4),
            "leaf_switches": round(float(np.mean(leaves)), 3),
        }
    return told


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=2000)
    parser.add_argument("--loads", type=float, nargs="+", default=[0.6, 0.85])
    parser.add_argument("--seeds", type=int, default=2, help="how many schedules of each kind")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    rows = [
        {
            "tree": tree,
            "load": load,
            **over_seeds(
                [
                    measure(topology, largest, load, given.jobs, seed)
                    for seed in range(1, given.seeds + 1)
                ]
            ),
        }
        for tree, (topology, largest) in TREES.items()
        for load in given.loads
    ]
    if given.json:
        print(json.dumps(about() | {"rows": rows}, indent=1))
        return 0
    for row in rows:
        shown = ", ".join(f"{name} {row[name]}" for name in PLACERS)
        print(f"{row['tree']}, load {row['load']}: {shown}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
