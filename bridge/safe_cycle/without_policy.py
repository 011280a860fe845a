# SPDX-License-Identifier: Apache-2.0
"""What extensions state for cycles in which a policy fails: it holds whatever is discarded."""

import logging

from bridge.extension_packages import installed
from bridge.model.learnt import Learnt
from bridge.model.plan import Plan
from bridge.model.snapshot import Snapshot
from bridge.ports import State

_log = logging.getLogger(__name__)


def kept(state: State) -> dict[str, Learnt]:
    """Returns what stays of a state when the rest of what was learnt is discarded."""
    names = {name for extension in installed().by_name.values() for name in extension.keeps}
    return {name: learnt for name, learnt in state.learnt.items() if name in names}


def completed(snapshot: Snapshot, plan: Plan) -> Plan:
    """Returns a plan in which every job waits, with what extensions still decide."""
    for name, extension in installed().by_name.items():
        if extension.fallback is None:
            continue
        try:
            plan = extension.fallback.made().completed(snapshot, plan)
        except Exception:  # a stranger's code
            _log.exception("the plan has nothing of the extension %s, which failed", name)
    return plan
