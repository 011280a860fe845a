# SPDX-License-Identifier: Apache-2.0
"""The features of controllers, as named in the hello, and the actions that need them.

Those of extensions are theirs (`bridge.rpc.reported.extension_wire.Wire.actions`).
"""

from dataclasses import dataclass
from enum import Enum, StrEnum


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
    RESERVE = "reserve"
    RESERVE_LICENCES = "reserve_licences"
    SHARE = "share"
    """Starts a job on the CPUs of another one, and requeues it."""


class Subject(Enum):
    """The object of an action. A job must have the version that the decision names."""

    NO_JOB = "no job"
    PENDING_JOB = "a pending job"
    RUNNING_JOB = "a running job"


@dataclass(frozen=True)
class Action:
    """An action that a decision can request.

    Attributes:
        feature: that the controller must have named.
        made_by: the module that decides it.
    """

    feature: str
    of: Subject
    made_by: str
