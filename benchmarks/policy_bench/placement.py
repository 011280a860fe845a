# SPDX-License-Identifier: Apache-2.0
"""`bench.py placement`: compares placers on the same windows of jobs.

An instance is one line of JSON: `id`, `idle_nodes` (numbers from 0), `job_sizes`. If its jobs need
more nodes than are idle, they are taken in their order, and jobs that no longer fit are left out
and counted. Without a topology.conf the fabric is the paper's thousand-node tree with ten nodes per
switch: pods of 100 under the metric `paper`, pods of 40 under `code`, as in the paper's text and in
its program. A larger node number makes a larger tree.
"""

import json
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bridge import files, json_text
from bridge.errors import ConfigError, TraceError
from bridge.model.hop_tree import HopTree, Metric, NodeSets
from bridge.model.topology import Topology, regular
from bridge.papers.placement.annealing import Annealing
from bridge.papers.placement.contiguous import ContiguousExact
from bridge.papers.placement.neural import Neural
from bridge.papers.placement.neural_weights import NETWORKS
from bridge.policies.place.compact import Compact

PlaceFunction = Callable[
    [HopTree, NDArray[np.int32], NDArray[np.int32], np.random.Generator], NodeSets
]

_PODS: Final = {Metric.PAPER: 100, Metric.CODE: 40}
_SWITCH: Final = 10
_NODES: Final = 1000
MAX_NODES: Final = 1 << 20
MOST_EFFORT: Final = 1_000_000
SAMPLE: Final = (
    Path(__file__).parents[2].joinpath("bridge", "lab", "sim", "data", "placement-windows.jsonl")
)


def _sequential(
    hop_tree: HopTree, idle: NDArray[np.int32], sizes: NDArray[np.int32], _: np.random.Generator
) -> NodeSets:
    return hop_tree.tree.sequential(idle, sizes)


PLACERS: Final[dict[str, Callable[[int | None], PlaceFunction]]] = {
    "sequential": lambda _: _sequential,
    "contiguous-exact": lambda _: ContiguousExact().place_jobs,
    "annealing": lambda effort: Annealing(effort=effort or 500).place_jobs,
    "annealing-published": lambda effort: (
        Annealing(effort=effort or 500, published=True).place_jobs
    ),
    "neural": lambda effort: Neural(effort=effort or 500).place_jobs,
    "compact": lambda budget: Compact(budget_ms=5.0 if budget is None else budget).place_jobs,
}
PLACERS.update(
    {
        f"neural-{network}": lambda effort, network=network: (  # type: ignore[misc]
            Neural(effort=effort or 500, network=network).place_jobs
        )
        for network in NETWORKS
    }
)
"""Placers by name; the number after an @ is `effort`, for `compact` its budget in ms."""


_NUMBERLESS: Final = {"sequential", "contiguous-exact"}


@dataclass(frozen=True)
class PlacementWindow:
    """A window: which nodes are idle, which jobs are to be placed."""

    name: str | int
    idle: NDArray[np.int32]
    sizes: NDArray[np.int32]
    left_out: int


MAX_BYTES = 64 << 20


def read_instances(path: Path) -> Iterator[PlacementWindow]:
    """Reads windows, one JSON object a line; there is one at least.

    Raises:
        TraceError: a line is malformed; the message says which and why.
    """
    try:
        text = files.read_text(path, MAX_BYTES)
    except (OSError, UnicodeDecodeError) as error:
        raise TraceError(str(path), None, f"cannot be read: {error}") from None
    if not text.strip():
        raise TraceError(
            str(path),
            None,
            "has no window; write one per line: "
            '{"id": "a", "idle_nodes": [0, 1, 2], "job_sizes": [2]}',
        )
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json_text.load(line)
        except json.JSONDecodeError as error:
            raise TraceError(str(path), number, f"no JSON: {error.msg}") from None
        except ValueError:
            raise TraceError(str(path), number, "JSON nested too deeply, or too long") from None
        except OSError as error:
            raise TraceError(str(path), number, str(error.strerror).lower()) from None
        if not isinstance(row, dict):
            raise TraceError(str(path), number, "must be an object")
        idle = _numbers(path, number, row, "idle_nodes", 0)
        sizes = _numbers(path, number, row, "job_sizes", 1)
        if len(set(idle)) < len(idle):
            raise TraceError(str(path), number, "idle_nodes: a node is listed twice")
        name = row.get("id")
        if name is None:
            name = number
        elif not isinstance(name, str | int):
            raise TraceError(str(path), number, f"id: {name!r} is neither text nor a whole number")
        taken = _that_fit(sizes, len(idle))
        yield PlacementWindow(
            name,
            np.array(sorted(idle), np.int32),
            np.array(taken, np.int32),
            len(sizes) - len(taken),
        )


def _that_fit(sizes: list[int], idle: int) -> list[int]:
    """The jobs that fit on this many nodes together, in order."""
    taken = []
    for size in sizes:
        if size <= idle:
            taken.append(size)
            idle -= size
    return taken


def _numbers(path: Path, number: int, row: dict[str, Any], key: str, least: int) -> list[int]:
    values = row.get(key)
    if not isinstance(values, list):
        raise TraceError(str(path), number, f"{key}: a list of whole numbers is missing")
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int):
            raise TraceError(str(path), number, f"{key}: {value!r} is not a whole number")
        if not least <= value < MAX_NODES:
            raise TraceError(
                str(path), number, f"{key}: {value} is not from {least} to {MAX_NODES - 1}"
            )
    return values


def parse_placers(text: str) -> dict[str, PlaceFunction]:
    """Reads `a,b@number`.

    Raises:
        ConfigError: there is no such placer, or its number is invalid.
    """
    placers: dict[str, PlaceFunction] = {}
    for word in filter(None, (part.strip() for part in text.split(","))):
        name, at, number = word.partition("@")
        if name not in PLACERS:
            raise ConfigError("--placers", f"no placer '{name}'; there are {', '.join(PLACERS)}")
        good = number.isascii() and number.isdigit() and len(number) < len(str(MOST_EFFORT)) + 1
        if at and name in _NUMBERLESS:
            raise ConfigError("--placers", f"'{word}': {name} takes no number")
        if at and not (good and 0 < int(number) <= MOST_EFFORT):
            raise ConfigError(
                "--placers", f"'{word}': after the @, give a number from 1 to {MOST_EFFORT:,}"
            )
        placers[word] = PLACERS[name](int(number) if at else None)
    if not placers:
        raise ConfigError("--placers", f"name some of {', '.join(PLACERS)}")
    return placers


def hop_tree_for(
    metric: Metric, topology: Topology | None, instances: list[PlacementWindow]
) -> HopTree:
    """The tree to place on.

    Raises:
        ConfigError: an instance names a node that is on no switch of the given topology.
    """
    most = max((int(one.idle.max()) for one in instances if len(one.idle)), default=0)
    if topology is None:
        return HopTree.of(regular(max(_NODES, most + 1), _SWITCH, _PODS[metric]), metric)
    for one in instances:
        for node in one.idle.tolist():
            if node >= len(topology.leaf_of_node) or topology.leaf_of_node[node] < 0:
                raise ConfigError("--topology", f"node {node} of {one.name} is on no switch")
    return HopTree.of(topology, metric)


def measure(
    hop_tree: HopTree,
    instances: Iterable[PlacementWindow],
    placers: dict[str, PlaceFunction],
    *,
    seed: int,
    bound: bool,
) -> dict[str, Any]:
    """Costs and milliseconds of every placer on every instance, by the same measure."""
    rows = []
    for number, one in enumerate(instances):
        row: dict[str, Any] = {
            "id": one.name,
            "idle": len(one.idle),
            "jobs": len(one.sizes) + one.left_out,
            "left_out": one.left_out,
        }
        least = np.inf
        for name, place in placers.items():
            rng = np.random.default_rng((seed, number))
            began = time.perf_counter_ns()
            sets = place(hop_tree, one.idle, one.sizes, rng)
            spent_ms = (time.perf_counter_ns() - began) / 1e6
            placed = bool(np.array_equal(np.diff(sets[0]), one.sizes))
            legal = len(set(sets[1].tolist())) == len(sets[1]) and bool(
                np.isin(sets[1], one.idle).all()
            )
            if not legal:
                raise AssertionError(f"{name} gave nodes twice, or nodes that are not idle")
            cost = float(hop_tree.costs(sets).sum()) if placed else None
            least = min(least, np.inf if cost is None else cost)
            row[name] = {"cost": cost, "ms": round(spent_ms, 3)}
        if bound and len(one.sizes):
            known = float(least) if np.isfinite(least) else 0.0
            row["bound"] = hop_tree.tree.bound(hop_tree.metric, one.idle, one.sizes, 200, known)
        rows.append(row)
    names = list(placers)
    whole = [row for row in rows if all(row[name]["cost"] is not None for name in names)]
    totals = _totals(rows, whole, names, bound=bound)
    return {
        "instances": len(rows),
        "counted": len(whole),
        "placers": names,
        "figures": totals,
        "results": rows,
    }


def _totals(
    rows: list[dict[str, Any]], whole: list[dict[str, Any]], names: list[str], *, bound: bool
) -> dict[str, Any]:
    """Sums of costs over the instances that every placer placed whole, of times over all."""
    first = sum(row[names[0]]["cost"] for row in whole)
    totals: dict[str, Any] = {}
    for name in names:
        cost = sum(row[name]["cost"] for row in whole)
        spent = [row[name]["ms"] for row in rows]
        totals[name] = {
            "placed": sum(row[name]["cost"] is not None for row in rows),
            "cost": cost,
            "to_first": round(cost / first, 5) if first else 1.0,
            "ms_mean": round(float(np.mean(spent)), 3) if spent else 0.0,
            "ms_max": round(max(spent, default=0.0), 3),
        }
    if bound:
        below = sum(row.get("bound", 0.0) for row in whole)
        totals["bound"] = {"cost": below, "to_first": round(below / first, 5) if first else 1.0}
    return totals
