# SPDX-License-Identifier: Apache-2.0
"""The handlers of extensions for requests of operators; one that cannot be made stops no other."""

import logging
from collections.abc import Callable

from bridge.extension_packages import installed
from bridge.rpc.controller.cycles import Cycles
from bridge.rpc.controller.policy_switch import PolicySwitch
from bridge.safe_cycle.decider import Decider

_log = logging.getLogger(__name__)


def handlers(
    cycles: Cycles, decider: Decider, switch: PolicySwitch
) -> dict[str, Callable[[bytes, str], bytes]]:
    """Returns the handler of each extension that has one, by the extension's name."""
    found = {}
    for name, extension in installed().by_name.items():
        if extension.operators is None:
            continue
        try:
            found[name] = extension.operators.made().handler(cycles, decider, switch)
        except Exception:  # a stranger's code
            _log.exception("operators are not answered by the extension %s", name)
    return found
