# SPDX-License-Identifier: Apache-2.0
"""Checks the nodes that a plan powers down and up.

Rules
    1. Each node is named once, in ascending order, and is not powered both down and up.
    2. A node that is powered down supports it, is on, is in permitted partitions, and is used
       neither by a running job nor by a row that starts now. The site permits it
       (`PowerRules.power_down`).
    3. A node that is powered up is off, and not already powering up.
    4. The idle power of nodes that are powered up fits within the upper bound until they are on:
       `check_bound.py`.
"""

from collections.abc import Iterator

import numpy as np

from bridge.check.amounts import CheckedAmounts
from bridge.check.sums import Found
from bridge.extensions.port import Check
from bridge.extensions.power.changes import changes_of
from bridge.extensions.power.check_bound import broken_power
from bridge.extensions.power.columns import PowerSaving, saving_of
from bridge.extensions.power.rules import PowerDown, PowerRules, power_of
from bridge.model.plan import Plan
from bridge.model.rules.site import Site
from bridge.model.snapshot import Snapshot


class PowerCheck(Check):
    """The check of the extension's parts; see `bridge.extensions.port.Check`."""

    def rows(self, world: CheckedAmounts, site: Site) -> Found:
        """The rows that exceed the upper bound of power."""
        rules = power_of(site)
        return iter(()) if rules is None else broken_power(world, rules)

    def broken(self, snapshot: Snapshot, site: Site, plan: Plan) -> Iterator[tuple[str, str]]:
        """The violations, all of the plan as a whole."""
        for text in broken_power_changes(snapshot, power_of(site), plan):
            yield "", text

    def faults(self, snapshot: Snapshot, plan: Plan) -> Iterator[tuple[str, str]]:
        """Node indexes outside of the snapshot."""
        part = changes_of(plan)
        for name, nodes in (("down", part.down), ("up", part.up)):
            if len(nodes) and not 0 <= nodes.min() <= nodes.max() < len(snapshot.nodes):
                yield name, f"points outside of {len(snapshot.nodes)} rows"


def broken_power_changes(snapshot: Snapshot, rules: PowerRules | None, plan: Plan) -> Iterator[str]:
    """The violations, one sentence each."""
    changes, saving, names = changes_of(plan), saving_of(snapshot.nodes), snapshot.nodes.names
    if not len(changes):
        return
    down, up = changes.down.tolist(), changes.up.tolist()
    named = [*down, *up]
    ascending = all(nodes == sorted(set(nodes)) for nodes in (down, up))
    if not ascending or len(set(named)) < len(named):
        yield "names a node twice or out of order in its changes of power"
        return
    if named and not 0 <= min(named) <= max(named) < len(names):
        yield "powers a node that does not exist"
        return
    if saving is None:
        yield "powers nodes, which this controller does not support"
        return
    for node in up:
        if not saving.off[node] or saving.resuming[node]:
            yield f"powers up {names[node]}, which is on or powering up"
    yield from _broken_downs(snapshot, None if rules is None else rules.power_down, plan, saving)


def _broken_downs(
    snapshot: Snapshot, settings: PowerDown | None, plan: Plan, saving: PowerSaving
) -> Iterator[str]:
    """Nodes that must not be powered down, or not by this site (rule 2)."""
    down, names = changes_of(plan).down, snapshot.nodes.names
    if not len(down):
        return
    if settings is None:
        yield "powers nodes down, which the site does not permit"
        return
    for part in snapshot.partitions:
        if settings.partitions and part.name not in settings.partitions:
            barred = np.intersect1d(down, part.nodes).tolist()
            yield from (f"powers down {names[node]} of partition {part.name}" for node in barred)
    used = set(snapshot.running.nodes.tolist())
    for row in plan.starts_now.tolist():
        used.update(plan.nodes_of(row).tolist())
    for node in down.tolist():
        if not saving.can[node] or saving.off[node]:
            yield f"powers down {names[node]}, which is off or cannot be"
        if node in used:
            yield f"powers down {names[node]}, which a job uses"
