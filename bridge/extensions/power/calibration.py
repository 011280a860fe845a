# SPDX-License-Identifier: Apache-2.0
"""Fits the power of nodes, idle W + load * W, to the reports of metered nodes.

Terms
    load        busy CPUs / CPUs of a node, 0 to 1.
    curve       readings of one node: loads, and the power at each.
    type        nodes that are fitted together: those of an entry of `planning.power.nodes`, or
                without that section those of equal capacity.

Rules
    1. The line is fitted by least squares through the medians of each twentieth of the load, each
       with the same weight. A twentieth with fewer than `MIN_READINGS` readings does not count. So
       neither long idle times nor a few absurd readings dominate.
    2. `idle` is the line at load 0. `max` is the line at load 1 plus a margin that all but `BEYOND`
       of the readings stay within: upper estimates are based on it.
    3. Nothing is fitted if the loads span less than `SPREAD`, or if busier nodes draw less: this is
       reported as the problem.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bridge.extensions.power.rules import PowerRules
from bridge.model.node import CPUS
from bridge.model.rules.node_set import NodeSet
from bridge.model.snapshot import Snapshot
from bridge.planning.requests.node_sets import members

MODEL: Final = "model"
"""Source of powers that an agent without a meter computes from the load."""
BINS: Final = 20
MIN_READINGS: Final = 6
SPREAD: Final = 0.3
BEYOND: Final = 0.02


@dataclass(frozen=True)
class NodeReports:
    """The reports of one node.

    Attributes:
        source: the source of its last reading, for display; empty: it had none.
    """

    source: str
    metered: bool
    load: Sequence[float]
    watts: Sequence[float]


@dataclass(frozen=True)
class FittedPower:
    """The fitted values, or why there are none.

    Attributes:
        idle_w, max_w: W; 0 if nothing was fitted.
        error_w: the largest distance from the line of all but `BEYOND` of the readings, W.
        least_load, most_load: range of the loads.
        problem: empty: none.
    """

    idle_w: int = 0
    max_w: int = 0
    error_w: int = 0
    least_load: float = 0.0
    most_load: float = 0.0
    problem: str = ""


@dataclass(frozen=True)
class Calibration:
    """The line of one type.

    Attributes:
        nodes: its selection as stated; None: as the last entry, all other nodes.
        members: names of its nodes, in the controller's order.
        metered: how many of them have a meter.
        readings: number of fitted readings.
        before_w: stated idle and maximum power; None: nothing is stated.
    """

    name: str
    nodes: NodeSet | None
    members: tuple[str, ...]
    metered: int
    readings: int
    before_w: tuple[int, int] | None
    line: FittedPower


def calibrations(
    rules: PowerRules | None, snapshot: Snapshot, curves: Mapping[str, NodeReports]
) -> list[Calibration]:
    """One for each type of node, in the order of their entries.

    Args:
        rules: rules of the site; None: the power of nodes is not stated.
    """
    found = []
    for name, nodes, before_w, rows in _types(rules, snapshot):
        names = tuple(snapshot.nodes.names[row] for row in rows.tolist())
        own = [curves[each] for each in names if each in curves]
        load = np.concatenate([np.empty(0), *(np.array(each.load) for each in own)])
        watts = np.concatenate([np.empty(0), *(np.array(each.watts) for each in own)])
        metered = sum(each.metered and bool(each.source) for each in own)
        line = fitted(load, watts) if metered else FittedPower(problem=_no_meter(names, own))
        readings = 0 if line.problem else len(load)
        found.append(Calibration(name, nodes, names, metered, readings, before_w, line))
    return found


def _no_meter(names: Sequence[str], own: Sequence[NodeReports]) -> str:
    if not names:
        return "the cluster has no such node"
    if any(each.source for each in own):
        return "its nodes report what the model says: none of them has a meter"
    return "no agent reports the power of any of its nodes"


_Type = tuple[str, NodeSet | None, tuple[int, int] | None, NDArray[np.intp]]


def _types(rules: PowerRules | None, snapshot: Snapshot) -> Iterator[_Type]:
    left = np.ones(len(snapshot.nodes), dtype=bool)
    if rules is not None:
        for kind in rules.node_types:
            inside = members(kind.nodes, snapshot) & left
            left &= ~inside
            chosen = None if kind.nodes == NodeSet() else kind.nodes
            yield kind.name, chosen, (kind.idle_w, kind.max_w), np.flatnonzero(inside)
        return
    capacity, of = np.unique(snapshot.nodes.capacity, axis=0, return_inverse=True)
    of = of.reshape(-1)
    sizes = np.bincount(of, minlength=len(capacity))
    order = np.argsort(sizes, kind="stable").tolist()  # the largest is the rest
    cpus = capacity[:, CPUS].tolist()
    for each in order:
        rows = np.flatnonzero(of == each)
        alike = [one for one in order if cpus[one] == cpus[each]]
        number = f" {alike.index(each) + 1}" if len(alike) > 1 else ""
        names = tuple(snapshot.nodes.names[row] for row in rows.tolist())
        chosen = None if each == order[-1] else NodeSet(names)
        yield f"{cpus[each]} CPUs{number}", chosen, None, rows


def fitted(load: NDArray[np.float64], watts: NDArray[np.float64]) -> FittedPower:
    """The line through readings (rules 1 to 3).

    Args:
        load: (n,) 0 to 1.
        watts: (n,) positive.
    """
    bins = np.minimum((load * BINS).astype(np.int64), BINS - 1)
    enough = np.flatnonzero(np.bincount(bins, minlength=BINS) >= MIN_READINGS)
    if not len(enough):
        return FittedPower(problem=f"only {len(load)} readings at a steady load: wait some minutes")
    points = np.array(
        [(np.median(load[bins == each]), np.median(watts[bins == each])) for each in enough]
    )
    minimum, maximum = float(points[:, 0].min()), float(points[:, 0].max())
    span = f"{minimum:.0%}" if maximum - minimum < 0.01 else f"{minimum:.0%} to {maximum:.0%}"
    if maximum - minimum < SPREAD:
        return FittedPower(
            least_load=minimum,
            most_load=maximum,
            problem=f"its nodes were seen at loads of {span} only: let one be idle for a minute, "
            "and run a job that uses all of its CPUs for a minute",
        )
    slope, idle_w = np.polyfit(points[:, 0], points[:, 1], 1)
    if slope < 0 or idle_w < 0:
        what = "less power under a higher load" if slope < 0 else "less than nothing when idle"
        return FittedPower(
            least_load=minimum,
            most_load=maximum,
            problem=f"by the readings its nodes draw {what}: the meter does not see what jobs draw",
        )
    kept = np.isin(bins, enough)
    off = watts[kept] - (idle_w + slope * load[kept])
    above_w = max(float(np.quantile(off, 1 - BEYOND)), 0.0)
    return FittedPower(
        idle_w=round(float(idle_w)),
        max_w=_up(idle_w + slope + above_w),
        error_w=_up(np.quantile(np.abs(off), 1 - BEYOND)),
        least_load=minimum,
        most_load=maximum,
    )


def _up(watts: np.floating) -> int:
    """Whole watts, without rounding errors."""
    return int(np.ceil(watts - 1e-6))
