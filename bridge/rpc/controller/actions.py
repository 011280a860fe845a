# SPDX-License-Identifier: Apache-2.0
"""The actions that decisions can request of a controller: the service's table.

A controller names its features in its hello. Actions that need a missing feature are not planned:
jobs count as malleable only for a controller that can resize them. So nothing has to be removed
from a plan afterwards. The plugin has the same table, with handlers, in
`bridge/shim/decisions/actions.c`; a test compares them.
"""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Final

from bridge.rpc.reported.extension_wire import wires
from bridge.rpc.reported.features import Action, Feature, Subject

_ANNOUNCED: Final = "bridge.rpc.controller.announcements"
_ADJUSTED: Final = "bridge.extensions.elastic.resizing.adjustments"
_ORDERED: Final = "bridge.rpc.controller.orders"
_TOLD: Final = "bridge.rpc.controller.progress"

_OWN: Final = {
    "start": Action(Feature.START, Subject.PENDING_JOB, _ANNOUNCED),
    "planned_start": Action(Feature.PLANNED_START, Subject.PENDING_JOB, _ANNOUNCED),
    "pending": Action(Feature.PENDING_REASON, Subject.PENDING_JOB, _ANNOUNCED),
    "resize": Action(Feature.RESIZE, Subject.RUNNING_JOB, _ADJUSTED),
    "progress": Action(Feature.PROGRESS, Subject.RUNNING_JOB, _TOLD),
    "reserve": Action(Feature.RESERVE, Subject.NO_JOB, _ORDERED),
    "unreserve": Action(Feature.RESERVE, Subject.NO_JOB, _ORDERED),
}


@cache
def actions() -> Mapping[str, Action]:
    """Returns all actions, by the fields of `Decision.action` in the contract."""
    found = dict(_OWN)
    for wire in wires().values():
        found.update(wire.actions)
    return MappingProxyType(found)


def decided() -> tuple[str, ...]:
    """Returns the features that this service may use, for its hello."""
    of_actions = (action.feature for action in actions().values())
    return tuple(dict.fromkeys((*(feature.value for feature in Feature), *of_actions)))
