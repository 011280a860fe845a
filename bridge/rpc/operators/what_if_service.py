# SPDX-License-Identifier: Apache-2.0
"""Changes that would let a job start earlier, for explanations; failures are contained."""

import logging

from bridge.planning.explain.changes import JobChange
from bridge.planning.explain.what_if import what_if
from bridge.ports import Conditions
from bridge.rpc.controller.cycles import Published
from bridge.rpc.operators.explain import WhatIf

_log = logging.getLogger(__name__)


def what_if_under(conditions: Conditions) -> WhatIf:
    """Searches under the conditions of the policy in force."""

    def answer(published: Published, row: int) -> tuple[JobChange, ...] | None:
        try:
            return what_if(published.snapshot, published.plan, row, conditions)
        except Exception:  # a bug here must not suppress the rest of the explanation
            _log.exception("no changes could be found for a job")
            return None

    return answer
