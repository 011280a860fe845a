# SPDX-License-Identifier: Apache-2.0
"""What the extension adds to each report and each cycle.

1. Nodes that are off are closed until they are available (`closing.py`).
2. No start exceeds the upper bound of power (`upper_bound.py`).
3. Before the plan: nodes that have power are preferred (`awake.py`).
4. After the plan: nodes are powered up for planned jobs, and idle ones down (`saving.py`).
"""

from dataclasses import replace

from bridge.extensions.port import CycleView, Stages
from bridge.extensions.power.awake import awake_first
from bridge.extensions.power.changes import with_changes
from bridge.extensions.power.closing import with_powered_off
from bridge.extensions.power.rules import power_of
from bridge.extensions.power.saving import power_changes
from bridge.extensions.power.upper_bound import upper_bound
from bridge.model.rules.site import Site
from bridge.model.snapshot import Snapshot
from bridge.model.weighted_bound import WeightedBound
from bridge.ports import Planned, Preference


class PowerStages(Stages):
    """The extension's stages; see `bridge.extensions.port.Stages`."""

    def overlay(self, snapshot: Snapshot) -> Snapshot:
        """Closes nodes that are off."""
        return with_powered_off(snapshot)

    def bounds(self, snapshot: Snapshot, site: Site) -> tuple[WeightedBound, ...]:
        """The upper bound of power, in force or not."""
        rules = power_of(site)
        return () if rules is None else (upper_bound(rules, snapshot),)

    def before_plan(self, snapshot: Snapshot, preference: Preference) -> Preference:
        """Prefers nodes that have power."""
        return awake_first(snapshot, preference)

    def after_plan(self, planned: Planned, cycle: CycleView) -> Planned:
        """Decides which nodes are powered down and up."""
        changes = power_changes(cycle.world(), power_of(cycle.context.site), planned.plan)
        plan = with_changes(planned.plan, changes)
        again_s = min(plan.again_s, changes.again_s)
        return replace(planned, plan=replace(plan, again_s=again_s))
