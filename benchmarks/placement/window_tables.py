# SPDX-License-Identifier: Apache-2.0
"""Tables III and IV of the paper: placers, and solvers, on the same windows."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from contiguous_program import BySolver, by_cp_sat, by_scip
from paper_stream import Window, draw, windows
from policy_bench.placement import PLACERS, PlaceFunction, hop_tree_for

from bridge.model.hop_tree import HopTree, Metric, NodeSets

WANTED = {
    "sequential": ("sequential", None),
    "sa-500-published": ("annealing-published", 500),
    "sa-500": ("annealing", 500),
    "sa-1000-published": ("annealing-published", 1000),
    "sa-1000": ("annealing", 1000),
    "sa-5000": ("annealing", 5000),
    "sa-20000": ("annealing", 20_000),
    "nsa-500": ("neural", 500),
    "contiguous-exact": ("contiguous-exact", None),
    "compact-5ms": ("compact", 5),
}
"""Column to placer of `bench placement` and the number after its @."""

SOLVED = ("contiguous-exact", "nsa-500", "compact-5ms")
"""Columns that are compared with the solver."""


def columns() -> dict[str, PlaceFunction]:
    """All placers; those that are not built are left out."""
    return {
        column: PLACERS[name](number)
        for column, (name, number) in WANTED.items()
        if name in PLACERS
    }


@dataclass
class Tally:
    """Sums over windows."""

    cost: float = 0.0
    seconds: float = 0.0
    jobs: int = 0
    left_out: int = 0
    windows: int = 0

    def add(self, hop_tree: HopTree, window: Window, sets: NodeSets, seconds: float) -> float:
        """Checks one placement; returns its cost."""
        indptr, nodes = sets
        taken = set(nodes.tolist())
        assert len(taken) == len(nodes)
        assert taken <= set(window.idle.tolist())
        widths = np.diff(indptr)
        assert ((widths == window.sizes) | (widths == 0)).all()
        cost = float(hop_tree.costs(sets).sum())
        self.cost += cost
        self.seconds += seconds
        self.windows += 1
        self.jobs += len(window.sizes)
        self.left_out += int((widths == 0).sum())
        return cost

    def mean(self) -> dict[str, float]:
        """Cost and seconds of a window; the share of jobs that were not placed."""
        return {
            "cost": round(self.cost / self.windows, 1),
            "seconds": round(self.seconds / self.windows, 5),
            "left_out": round(self.left_out / self.jobs, 4),
        }


@dataclass
class Epoch:
    """The results of one epoch: by column, in all windows, and in the solved ones."""

    table3: dict[str, Tally] = field(default_factory=dict)
    table4: dict[str, Tally] = field(default_factory=dict)


def run(
    metric: Metric,
    *,
    epochs: int,
    count: int,
    solve: int,
    limit_s: float,
    cap_s: float,
    seed: int,
    driver: str,
    tell: Callable[[str], None],
) -> dict[str, Any]:
    """Runs all epochs.

    Args:
        metric: of hops, with its tree.
        epochs: each with its own stream.
        count: windows of an epoch.
        solve: how many of them are also solved by SCIP, evenly spread.
        limit_s: its time limit.
        cap_s: the limit of its second run, if the first proves nothing; 0: none.
        seed: of streams and placers.
        driver: the column whose placements determine the next window.
        tell: is called after each epoch.
    """
    hop_tree = hop_tree_for(metric, None, [])
    placers = columns()
    done: list[Epoch] = []
    for number in range(epochs):
        epoch = Epoch()
        rng = np.random.default_rng((seed, number))
        picked = {int((k + 0.5) * count / solve) for k in range(solve)}
        for at, (window, found) in enumerate(
            _windows(hop_tree, placers, driver, rng, count=count, tallies=epoch.table3)
        ):
            if at in picked:
                for name in (name for name in SOLVED if name in found):
                    tally = epoch.table4.setdefault(name, Tally())
                    tally.add(hop_tree, window, *found[name])
                _solve(hop_tree, window, epoch.table4, limit_s, cap_s)
        done.append(epoch)
        tell(f"{metric.value}: epoch {number + 1} of {epochs}")
    return {
        "driver": driver,
        "windows": epochs * count,
        "table3": _table([epoch.table3 for epoch in done]),
        "table4": _table([epoch.table4 for epoch in done]) if solve else None,
        "solved": epochs * solve,
    }


def _windows(
    hop_tree: HopTree,
    placers: dict[str, PlaceFunction],
    driver: str,
    rng: np.random.Generator,
    *,
    count: int,
    tallies: dict[str, Tally],
) -> Iterator[tuple[Window, dict[str, tuple[NodeSets, float]]]]:
    """Each window with the results of all placers."""
    found: dict[str, tuple[NodeSets, float]] = {}
    stream = draw(rng, 20 * count + 100)
    for window in windows(stream, lambda _: found[driver][0], count):
        found.clear()
        for name, place in placers.items():
            began = time.process_time()  # one thread each: other load of the machine does not count
            sets = place(hop_tree, window.idle, window.sizes, rng)
            found[name] = sets, time.process_time() - began
            tallies.setdefault(name, Tally()).add(hop_tree, window, *found[name])
        yield window, dict(found)


def _solve(
    hop_tree: HopTree, window: Window, tallies: dict[str, Tally], limit_s: float, cap_s: float
) -> None:
    """The paper's program by CP-SAT, and by SCIP: again without a limit if that proved nothing."""

    def solve(name: str, solver: BySolver) -> tuple[NodeSets, float]:
        began = time.perf_counter()
        sets = solver.place_jobs(hop_tree, window.idle, window.sizes, np.random.default_rng(0))
        spent = time.perf_counter() - began
        tallies.setdefault(name, Tally()).add(hop_tree, window, sets, spent)
        return sets, spent

    solve("cp-sat", BySolver(by_cp_sat, cap_s))
    sets, spent = solve("scip-limited", BySolver(by_scip, limit_s))
    if spent >= limit_s:
        solve("scip", BySolver(by_scip, cap_s))
    else:
        tallies.setdefault("scip", Tally()).add(hop_tree, window, sets, spent)


def _table(epochs: list[dict[str, Tally]]) -> dict[str, Any]:
    rows = [{name: tally.mean() for name, tally in one.items()} for one in epochs]
    mean = {
        name: {
            key: round(float(np.mean([row[name][key] for row in rows])), 5)
            for key in ("cost", "seconds", "left_out")
        }
        for name in rows[0]
    }
    return {"epochs": rows, "mean": mean}
