# SPDX-License-Identifier: Apache-2.0
"""The features of controllers, as named in the hello."""

from enum import StrEnum


class Feature(StrEnum):
    """A capability of a controller."""

    START = "start"
    PLANNED_START = "planned_start"
    PENDING_REASON = "pending_reason"
    CHOICE = "choice"
    """Chooses a job's nodes itself, among those it is given."""
    RESIZE = "resize"
    PROGRESS = "progress"
    """Shows users the progress of a change of width."""
    POWER = "power"
    """Powers nodes down and up."""
    QUOTA = "quota"
    RESERVE = "reserve"
    RESERVE_LICENCES = "reserve_licences"
    SHARE = "share"
    """Starts a job on the CPUs of another one, and requeues it."""
    EXTEND = "extend"
    """Lengthens the time limit of a running job."""
