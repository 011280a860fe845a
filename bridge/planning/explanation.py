# SPDX-License-Identifier: Apache-2.0
"""Turns what a kernel or the controller says into a reason a user can read.

Rules
    1. One sentence, with the numbers that matter: how many are needed, how many there are.
    2. "Never" is said only if no node's return would help; a job that waits for nodes that are
       down or drained is told so.
"""

import numpy as np

from bridge.core import Blocked
from bridge.model.job import Hold
from bridge.model.reasons import Reason, ReasonCode
from bridge.model.snapshot import Snapshot

_HELD = {
    Hold.HELD: ReasonCode.HELD,
    Hold.DEPENDENCY: ReasonCode.DEPENDENCY,
    Hold.LIMIT: ReasonCode.LIMIT,
    Hold.ARRAY_LIMIT: ReasonCode.ARRAY_LIMIT,
    Hold.PARTITION: ReasonCode.PARTITION,
    Hold.OTHER: ReasonCode.OTHER,
    Hold.REFUSED: ReasonCode.REFUSED,
    Hold.BAD_REQUEST: ReasonCode.BAD_REQUEST,
}
_HELD_TEXT = {
    Hold.HELD: "held by user or administrator",
    Hold.DEPENDENCY: "waits for a job it depends on",
    Hold.LIMIT: "a limit of its user, account or QOS is reached",
    Hold.ARRAY_LIMIT: "as many tasks of the array run as it allows",
    Hold.PARTITION: "its partition is not available",
    Hold.OTHER: "the controller holds it back",
    Hold.REFUSED: "the controller refused to start it",
    Hold.BAD_REQUEST: "its request cannot be understood",
}


def held_reason(snapshot: Snapshot, row: int) -> Reason:
    """Says why a job that the controller would not start is not planned."""
    jobs = snapshot.jobs
    hold = Hold(int(jobs.hold[row]))
    if hold not in _HELD:  # plannable, but the array's own limit is reached
        hold = Hold.ARRAY_LIMIT
        return Reason(_HELD[hold], _HELD_TEXT[hold])
    return Reason(_HELD[hold], jobs.hold_text[row] or _HELD_TEXT[hold])


def blocked_reason(
    snapshot: Snapshot,
    row: int,
    *,
    partition: int,
    min_nodes: int,
    blocked: Blocked,
    fit_now: int,
    counter: int,
) -> Reason:
    """Says what stands in the way of a planned, or never possible, start.

    Args:
        snapshot: the world.
        row: in `snapshot.jobs`.
        partition: of the alternative the kernel judged.
        min_nodes: of that alternative.
        blocked: the kernel's verdict.
        fit_now: nodes that could hold the job now.
        counter: the licence for the counter verdicts.
    """
    jobs = snapshot.jobs
    where = snapshot.partitions[partition].name
    match blocked:
        case Blocked.NODES_BUSY:
            text = f"needs {_nodes(min_nodes)} of {where}, {fit_now} free now"
            if jobs.tasks[row]:
                text = f"needs room for {jobs.tasks[row]} tasks in {where}"
            return Reason(ReasonCode.RESOURCES, text)
        case Blocked.PLANNED_START:
            return Reason(ReasonCode.PRIORITY, "would delay the planned start of a job before it")
        case Blocked.COUNTER:
            return Reason(ReasonCode.LICENCES, f"licence {snapshot.licences[counter]} is in use")
        case Blocked.BLACKOUT:
            return Reason(
                ReasonCode.RESERVATION, "a reservation or downtime begins before it would end"
            )
        case Blocked.NOT_BEFORE:
            return Reason(ReasonCode.BEGIN_TIME, "its begin time has not come")
        case Blocked.NEVER_FREED:
            return Reason(ReasonCode.RESOURCES, "waits for a job without an end")
        case Blocked.NEVER_COUNTER:
            name, total = snapshot.licences[counter], snapshot.licence_total[counter]
            asked = jobs.licences[row][counter]
            there = f"there are {total}"
            if asked <= total:
                there = f"reservations keep too many of the {total}"
            return Reason(ReasonCode.NEVER, f"wants {asked} of licence {name}, {there}")
    return _too_large(snapshot, row, partition, min_nodes)


def _too_large(snapshot: Snapshot, row: int, partition: int, min_nodes: int) -> Reason:
    """No set of usable nodes can hold it: would the down and drained ones help?"""
    jobs, nodes, where = snapshot.jobs, snapshot.nodes, snapshot.partitions[partition].name
    need = jobs.per_node[row] + (jobs.per_task[row] if jobs.tasks[row] else 0)
    members = snapshot.partitions[partition].nodes
    large = members[(nodes.capacity[members] >= need).all(axis=1)]
    usable = int(np.count_nonzero(nodes.usable[large]))
    if len(large) >= min_nodes > usable or (
        jobs.required[row] and not nodes.usable[list(jobs.required[row])].all()
    ):
        return Reason(
            ReasonCode.RESOURCES,
            f"needs {_nodes(min_nodes)} of {where}, only {usable} are up",
        )
    return Reason(
        ReasonCode.NEVER,
        f"no {_nodes(min_nodes)} of {where} can hold it with its constraints",
    )


def _nodes(count: int) -> str:
    return f"{count} node" if count == 1 else f"{count} nodes"
