# SPDX-License-Identifier: Apache-2.0
"""What a controller can carry out, in the words of the hello."""

from enum import StrEnum


class Feature(StrEnum):
    """One thing that a controller can carry out, or one way to do it."""

    START = "start"
    PLANNED_START = "planned_start"
    PENDING_REASON = "pending_reason"
    CHOICE = "choice"
    """Chooses a job's nodes itself, among those it is given."""
    RESIZE = "resize"
    PROGRESS = "progress"
    """Shows users where a job is that changes its width."""
    POWER = "power"
    """Powers nodes down and up."""
    QUOTA = "quota"
    RESERVE = "reserve"
    RESERVE_LICENCES = "reserve_licences"
    SHARE = "share"
    """Starts a job on the CPUs of another one, and puts it back into the queue."""
