# SPDX-License-Identifier: Apache-2.0
"""Where the measured power of a running job comes from, in words."""

from bridge.extensions.power.calibration import MODEL
from bridge.model.job import RunningTable
from bridge.units import format_duration


def measured_words(running: RunningTable, row: int, now_s: int) -> str:
    """The source of a measured estimate, with the sensors, and its age."""
    sources, at_s = running.power_source[row], int(running.power_at_s[row])
    if not sources:
        return "measured"
    kind = "modelled" if sources == MODEL else "measured"
    if lost_s := int(running.power_lost_s[row]):
        kind = f"measurement lost {format_duration(max(now_s - lost_s, 0))} ago"
    return f"{kind} ({sources}, {format_duration(max(now_s - at_s, 0))} old)"
