# SPDX-License-Identifier: Apache-2.0
"""Units and the few special instants; names elsewhere carry their unit (`_s`, `_mib`, `_w`).

Instants are Unix seconds, durations seconds, both int64. Intervals are half open.
"""

from datetime import datetime
from typing import Final

NEVER: Final = 2**63 - 1
"""A start that no future brings: the job cannot run even on the emptied system."""

UNPLANNED: Final = -1
"""No start was looked for: the job is held, or beyond the reservation depth."""

DAY_S: Final = 86_400
BOUND_S: Final = 10
"""Jobs shorter than this count as this long in the bounded slowdown."""

UNLIMITED_S: Final = 365 * DAY_S
"""What a job without a time limit is planned with. A year keeps every planned instant sane."""


def format_instant(at_s: int) -> str:
    """Writes an instant in local time, as Slurm's commands do: `2026-11-21T09:30:00`."""
    return datetime.fromtimestamp(at_s).strftime("%Y-%m-%dT%H:%M:%S")


def format_duration(duration_s: float) -> str:
    """Writes a duration as people read it: `45 s`, `12 min`, `3 h 20 min`, `2 d 4 h`."""
    seconds = round(duration_s)
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min"
    if seconds < DAY_S:
        hours, minutes = seconds // 3600, seconds % 3600 // 60
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = seconds // DAY_S, seconds % DAY_S // 3600
    return f"{days} d {hours} h" if hours else f"{days} d"
