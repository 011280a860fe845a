# SPDX-License-Identifier: Apache-2.0
"""The upper bound of power read as it is written: every second, every node, every job, by hand."""

from collections.abc import Sequence
from fractions import Fraction
from math import ceil
from typing import Protocol

from bridge.extensions.power.rules import NodePower, PowerRules
from bridge.model.snapshot import Snapshot


class Drawing(Protocol):
    """A job on its nodes: one that runs (row -1), or a row of a plan."""

    row: int
    whole: bool
    watts: int  # the upper estimate on each node; 0: nothing is known
    nodes: dict[int, dict[str, int]]
    elsewhere: int  # nodes that the snapshot does not have


def type_of(rules: PowerRules, snapshot: Snapshot, node: int) -> NodePower | None:
    table = snapshot.nodes
    for kind in rules.node_types:
        named = not kind.nodes.names or table.names[node] in kind.nodes.names
        fits = not kind.nodes.features or kind.nodes.features in table.features[node]
        if named and fits and not kind.nodes.having:
            return kind
    return None


def idle_w(rules: PowerRules, snapshot: Snapshot, node: int) -> int:
    kind = type_of(rules, snapshot, node)
    words = snapshot.nodes.state[node].split("+")
    off = "POWERED_DOWN" in words
    return 0 if kind is None or off else kind.idle_w


def drawn_w(rules: PowerRules, snapshot: Snapshot, job: Drawing) -> int:
    """What a job draws on all its nodes beyond the idle power of those that are known."""
    total = 0
    for _ in range(job.elsewhere):
        total += job.watts or max([kind.max_w for kind in rules.node_types], default=0)
    for node, use in job.nodes.items():
        kind, idle = type_of(rules, snapshot, node), idle_w(rules, snapshot, node)
        if job.watts:
            total += max(job.watts - idle, 0)
        elif kind is not None:
            there = int(snapshot.nodes.capacity[node, 0])
            part = Fraction(1) if job.whole else Fraction(min(max(use["cpus"], 1), there), there)
            total += ceil((kind.max_w - idle) * part)
    return total


def upper_w(rules: PowerRules, second: int) -> int:
    corridor = rules.corridor
    return [
        watts
        for start_s, watts in zip(corridor.starts_s, corridor.upper_w, strict=True)
        if start_s <= second
    ][-1]


def broken_power(
    rules: PowerRules, snapshot: Snapshot, second: int, there: Sequence[Drawing]
) -> list[str]:
    """The rows that draw something while the system draws too much."""
    nodes = range(len(snapshot.nodes))
    total = rules.base_w + sum(idle_w(rules, snapshot, node) for node in nodes)
    total += sum(drawn_w(rules, snapshot, job) for job in there)
    upper = upper_w(rules, second)
    if total <= upper:
        return []
    return [
        f"row {job.row}: {total} W of {upper} W"
        for job in there
        if job.row >= 0 and drawn_w(rules, snapshot, job)
    ]
