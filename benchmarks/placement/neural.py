# SPDX-License-Identifier: Apache-2.0
"""Neural against plain annealing: at equal moves, twice the moves, and equal time; six networks.

    python benchmarks/placement/neural.py [--instances FILE.jsonl] [--weights DIR] [--curves DIR]
        [--out benchmarks/results/neural.json] [--seeds 3]

Windows: those of a file (metric `code`), and new ones of the paper's stream (metric `paper`) that
are not used in training. Every placer places every window once for each seed; times are processor
time of the whole call, so that other load of the machine hardly matters. "Equal time": plain
annealing with more moves, by the ratio of the mean times. `--weights` names a directory with
NETWORK/weights.npz, trained equally, for the comparison of the six networks, instead of those of
the package; `--curves` one with NETWORK/curve.json, whose learning curves are drawn together
(figure 4).
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).resolve().parents[1]))

from about import about
from policy_bench.placement import SAMPLE, read_instances
from results_file import write

from bridge.model.hop_tree import HopTree, Metric, NodeSets
from bridge.papers.placement.neural import Neural
from bridge.papers.placement.neural_weights import NETWORKS
from bridge.papers.placement.training.curve import draw
from bridge.papers.placement.training.windows import paper_hop_tree, stream

Windows = list[tuple[Any, Any]]
PlaceFunction = Callable[[Any, Any, int], NodeSets]

FRESH_SEEDS = (2_000_001, 2_000_002)  # of streams that neither training nor its held-out part uses
MOVES = (500, 600, 700, 800, 900, 1000)


class Bench:
    """Costs and times of placers on some windows."""

    def __init__(self, hop_tree: HopTree, windows: Windows, seeds: int) -> None:
        self.hop_tree, self.windows, self.seeds = hop_tree, windows, seeds
        self.first = self.total(lambda idle, sizes, _: hop_tree.tree.sequential(idle, sizes))[0]

    def total(self, place: PlaceFunction) -> tuple[float, float]:
        """Mean cost of all windows together, and mean processor milliseconds of one."""
        cost = spent = 0.0
        for seed in range(self.seeds):
            for number, (idle, sizes) in enumerate(self.windows):
                began = time.process_time()
                sets = place(idle, sizes, seed * 100_000 + number)
                spent += time.process_time() - began
                cost += float(self.hop_tree.costs(sets).sum())
        return cost / self.seeds, 1e3 * spent / self.seeds / len(self.windows)

    def row(self, place: PlaceFunction) -> dict[str, float]:
        """Cost relative to one job after the other, and milliseconds."""
        cost, spent = self.total(place)
        return {"to_sequential": round(cost / self.first, 5), "ms": round(spent, 3)}

    def annealing(self, moves: int, *, restore: bool = True) -> dict[str, float]:
        """Plain annealing."""
        tree, metric = self.hop_tree.tree, self.hop_tree.metric
        return {"moves": moves} | self.row(
            lambda idle, sizes, seed: tree.anneal(metric, idle, sizes, moves, seed, restore)
        )

    def neural(self, placer: Neural) -> dict[str, float]:
        """Annealing that a network guides."""
        return {"moves": placer.effort} | self.row(
            lambda idle, sizes, seed: placer.place_jobs(
                self.hop_tree, idle, sizes, np.random.default_rng(seed)
            )
        )

    def compare(self, placer: Neural, plain: dict[str, float]) -> dict[str, Any]:
        """A network compared with plain annealing in its time; `plain` gives the time of a move."""
        mine = self.neural(placer)
        moves = max(1, round(plain["moves"] * mine["ms"] / plain["ms"]))
        same = self.annealing(moves)
        better = 1 - mine["to_sequential"] / same["to_sequential"]
        return {**mine, "equal_time": same, "better_than_equal_time": round(better, 5)}


def cases(path: Path) -> dict[str, tuple[HopTree, Windows]]:
    """Both sets of windows, by name."""
    given = [(one.idle, one.sizes) for one in read_instances(path) if len(one.sizes)]
    paper = paper_hop_tree(Metric.PAPER)
    fresh = [
        (window.idle, window.sizes) for seed in FRESH_SEEDS for window in stream(paper, seed, 100)
    ]
    return {
        f"{len(given)} windows, metric code": (paper_hop_tree(Metric.CODE), given),
        f"{len(fresh)} fresh windows, metric paper": (paper, fresh),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--instances", type=Path, default=SAMPLE)
    parser.add_argument("--weights", type=Path)
    parser.add_argument("--curves", type=Path)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/neural.json"))
    parser.add_argument("--seeds", type=int, default=3)
    asked = parser.parse_args()

    def file(network: str) -> str:
        path = asked.weights / network / "weights.npz" if asked.weights else None
        return str(path) if path and path.exists() else ""

    result: dict[str, Any] = {}
    for name, (hop_tree, windows) in cases(asked.instances).items():
        bench = Bench(hop_tree, windows, asked.seeds)
        plain = {str(moves): bench.annealing(moves) for moves in (500, 1000, 2000, 4000)}
        networks = {
            network: bench.compare(Neural(network=network, weights=file(network)), plain["1000"])
            for network in NETWORKS
        }
        as_published = Neural(network="cnn-3", warmth=1.0, wander=0.0, since=0.0, first=True)
        result[name] = {
            "plain": plain,
            "plain, moves not undone": bench.annealing(1000, restore=False),
            "networks": networks,
            "shipped": {
                network: bench.compare(Neural(network=network), plain["1000"])
                for network in ("fcn-1", "cnn-3")
            },
            "cnn-3 as in the paper": bench.compare(as_published, plain["1000"]),
            "fcn-1 and plain, by moves": [
                {
                    "neural": bench.neural(Neural(effort=moves)),
                    "plain": bench.annealing(2 * moves),
                }
                for moves in MOVES
            ],
            **about(),
        }
        print(name, json.dumps(result[name], indent=1), flush=True)
    write(asked.out, result)
    if asked.curves:
        curves = {
            path.parent.name: json.loads(path.read_text(encoding="utf-8"))["curve"]
            for path in sorted(asked.curves.glob("*/curve.json"))
            if path.parent.name in NETWORKS
        }
        draw(curves, asked.out.with_name("neural-curves.svg"))


if __name__ == "__main__":
    main()
