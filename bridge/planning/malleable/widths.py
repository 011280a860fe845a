# SPDX-License-Identifier: Apache-2.0
"""The numbers of nodes that a running job allows, and the next one in a direction."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from bridge.model.job import WidthRule
from bridge.model.snapshot import Snapshot


def allowed_widths(snapshot: Snapshot, job: int) -> Sequence[int]:
    """The widths within a running job's bounds, its rule and its partition, ascending.

    Args:
        job: row of `snapshot.running`; a malleable job.
    """
    running = snapshot.running
    minimum, maximum = max(int(running.min_nodes[job]), 1), int(running.max_nodes[job])
    maximum = min(maximum, len(snapshot.nodes))
    if (partition := int(running.partition[job])) >= 0 and snapshot.partitions[partition].max_nodes:
        maximum = min(maximum, snapshot.partitions[partition].max_nodes)
    rule = WidthRule(int(running.width_rule[job]))
    if rule is WidthRule.ANY:
        return range(minimum, maximum + 1)
    found, width = [], rule.next_width(minimum)
    while width <= maximum:
        found.append(width)
        width = rule.next_width(width + 1)
    return found


def shrunk_width(allowed: Sequence[int], width: int, needed: int) -> int:
    """The width to shrink to if `needed` more nodes are needed; `width` if there is none.

    The largest allowed width that frees them all, else the smallest: 8 nodes, even, 6 needed: 2.
    """
    smaller = bisect_left(allowed, width)
    enough = min(bisect_right(allowed, width - needed), smaller)
    if enough:
        return allowed[enough - 1]
    return allowed[0] if smaller else width


def grown_width(allowed: Sequence[int], width: int, idle: int) -> int:
    """The largest allowed width with at most `idle` additional nodes; `width` if there is none."""
    reached = bisect_right(allowed, width + idle)
    return allowed[reached - 1] if reached > bisect_right(allowed, width) else width
