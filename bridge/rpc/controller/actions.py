# SPDX-License-Identifier: Apache-2.0
"""What decisions can ask of a controller: one table for the service's side of the wire.

A controller names in its hello the features that it has. Whatever needs one that it lacks is not
planned: jobs count as malleable only for a controller that can resize them. So nothing has to be
taken out of a plan afterwards. The plugin has the same table, with handlers, in
`bridge/shim/decisions/actions.c`; a test compares them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Final

from bridge.rpc.reported.features import Feature


class Subject(Enum):
    """What an action is about. Of a job it must have the version that the decision names."""

    NO_JOB = "no job"
    PENDING_JOB = "a pending job"
    RUNNING_JOB = "a running job"


@dataclass(frozen=True)
class Action:
    """One thing that a decision can ask for.

    Attributes:
        feature: what the controller must have named.
        of: what it is about.
        made_by: the module beside this one that decides it.
    """

    feature: Feature
    of: Subject
    made_by: str


ACTIONS: Final[Mapping[str, Action]] = MappingProxyType(
    {
        "start": Action(Feature.START, Subject.PENDING_JOB, "announcements"),
        "planned_start": Action(Feature.PLANNED_START, Subject.PENDING_JOB, "announcements"),
        "pending": Action(Feature.PENDING_REASON, Subject.PENDING_JOB, "announcements"),
        "resize": Action(Feature.RESIZE, Subject.RUNNING_JOB, "adjustments"),
        "quota": Action(Feature.QUOTA, Subject.RUNNING_JOB, "adjustments"),
        "requeue": Action(Feature.SHARE, Subject.RUNNING_JOB, "adjustments"),
        "progress": Action(Feature.PROGRESS, Subject.RUNNING_JOB, "adjustments"),
        "power": Action(Feature.POWER, Subject.NO_JOB, "power_changes"),
        "reserve": Action(Feature.RESERVE, Subject.NO_JOB, "orders"),
        "unreserve": Action(Feature.RESERVE, Subject.NO_JOB, "orders"),
    }
)
"""By the fields of `Decision.action` in the contract."""

DECIDED: Final = tuple(feature.value for feature in Feature)
"""What this service may decide, for its hello."""
