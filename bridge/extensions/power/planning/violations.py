# SPDX-License-Identifier: Apache-2.0
"""Reports that power is out of its corridor, and what would end that if no configuration does."""

from dataclasses import replace
from typing import Final

import numpy as np

from bridge.extensions.power.planning.configuration import Configuration
from bridge.extensions.power.planning.drawn_power import DrawnPower, Outside
from bridge.model.reasons import Reason
from bridge.model.snapshot import Snapshot
from bridge.ports import Planned
from bridge.units import NEVER, format_instant

NOT_KEPT: Final = "no configuration of jobs keeps the power corridor"
"""The beginning of every note of `why_not_ended`."""


def why_resized(power: DrawnPower, outside: Outside, found: Configuration) -> str:
    """Why jobs are resized, as one short sentence."""
    (lower_w, upper_w), (min_w, max_w) = power.bounds_w, power.system_w
    if outside.over_w:
        text = f"the system may draw {max_w} W, more than its bound of {upper_w} W"
    else:
        text = f"the system may draw only {min_w} W, less than its bound of {lower_w} W"
    return text if found.feasible else f"{text}, and no widths of jobs end that"


def why_not_ended(
    snapshot: Snapshot, power: DrawnPower, outside: Outside, found: Configuration
) -> str:
    """States by how much the best configuration misses the corridor, and what would end it."""
    lower_w, upper_w = power.bounds_w
    if not outside.over_w and not found.over_w:
        return (
            f"{NOT_KEPT}: the draw is {found.under_w} W below "
            f"the lower bound of {lower_w} W. What would end it: waiting jobs that draw so much "
            f"more than idle nodes, or a lower bound of {lower_w - found.under_w} W"
        )
    over_w = max(found.over_w, 1)
    exceeded = f"{NOT_KEPT}: the upper bound of {upper_w} W is exceeded by up to {over_w} W"
    if power.rest_w > upper_w:
        return (
            f"{exceeded}: without jobs the system draws {power.rest_w} W. What would end it: an "
            f"upper bound of {upper_w + over_w} W, or nodes that are powered down"
        )
    ends_s = _ends_s(snapshot, power, over_w)
    when = f"by {format_instant(ends_s)} running jobs that draw so much end; or " * (
        ends_s != NEVER
    )
    return (
        f"{exceeded}. What would end it: {when}an upper bound of {upper_w + over_w} W, or "
        "cancelled jobs"
    )


def _ends_s(snapshot: Snapshot, power: DrawnPower, watts: int) -> int:
    """When jobs with this total draw will have ended; NEVER: all jobs together draw less."""
    running = snapshot.running
    order = np.argsort(running.end_s, kind="stable")
    freed = np.cumsum(power.jobs_w[order])
    at = int(np.searchsorted(freed, watts))
    return int(running.end_s[order[at]]) if at < len(order) else NEVER


def with_note(planned: Planned, text: str) -> Planned:
    """The plan with this message in its notes and in the reason of the first waiting job."""
    plan = planned.plan
    reasons = list(plan.reasons)
    for row, reason in enumerate(reasons):
        if reason is not None and reason.can_ever_run:
            reasons[row] = Reason(reason.code, f"{reason.text}; {text}")
            break
    return replace(planned, plan=replace(plan, reasons=tuple(reasons), notes=(*plan.notes, text)))
