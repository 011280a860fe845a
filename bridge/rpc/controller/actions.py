# SPDX-License-Identifier: Apache-2.0
"""The actions that decisions can request of a controller: the service's table.

A controller names its features in its hello. Actions that need a missing feature are not planned:
jobs count as malleable only for a controller that can resize them. So nothing has to be removed
from a plan afterwards. The plugin has the same table, with handlers, in
`bridge/shim/decisions/actions.c`; a test compares them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Final

from bridge.rpc.reported.features import Feature


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
        made_by: the module of `bridge` that decides it.
    """

    feature: Feature
    of: Subject
    made_by: str


_ANNOUNCED: Final = "rpc.controller.announcements"
_ADJUSTED: Final = "rpc.controller.adjustments"
_SHARED: Final = "extensions.sharing.requests"

ACTIONS: Final[Mapping[str, Action]] = MappingProxyType(
    {
        "start": Action(Feature.START, Subject.PENDING_JOB, _ANNOUNCED),
        "planned_start": Action(
            Feature.PLANNED_START, Subject.PENDING_JOB, "rpc.controller.announcements"
        ),
        "pending": Action(
            Feature.PENDING_REASON, Subject.PENDING_JOB, "rpc.controller.announcements"
        ),
        "resize": Action(Feature.RESIZE, Subject.RUNNING_JOB, _ADJUSTED),
        "quota": Action(Feature.QUOTA, Subject.RUNNING_JOB, _SHARED),
        "requeue": Action(Feature.SHARE, Subject.RUNNING_JOB, _SHARED),
        "extend": Action(Feature.EXTEND, Subject.RUNNING_JOB, _SHARED),
        "progress": Action(Feature.PROGRESS, Subject.RUNNING_JOB, _ADJUSTED),
        "power": Action(Feature.POWER, Subject.NO_JOB, "extensions.power.requests"),
        "reserve": Action(Feature.RESERVE, Subject.NO_JOB, "rpc.controller.orders"),
        "unreserve": Action(Feature.RESERVE, Subject.NO_JOB, "rpc.controller.orders"),
    }
)
"""By the fields of `Decision.action` in the contract."""

DECIDED: Final = tuple(feature.value for feature in Feature)
"""The actions that this service may decide, for its hello."""
