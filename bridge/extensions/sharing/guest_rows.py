# SPDX-License-Identifier: Apache-2.0
"""A plan in which some waiting jobs start as guests."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bridge.extensions.sharing.part import GuestStart, having_shared
from bridge.model.job_columns import objects
from bridge.model.plan import Plan


def with_guests(plan: Plan, guests: Sequence[GuestStart]) -> Plan:
    """Returns the plan with these starts in place of those of their rows; O(nodes planned).

    Args:
        plan: without guests.
        guests: guests of different rows and hosts.
    """
    if not guests:
        return plan
    by_row = {guest.row: guest for guest in guests}
    start_s, end_s, partition = plan.start_s.copy(), plan.end_s.copy(), plan.partition.copy()
    hosts, reasons = [""] * len(plan), list(plan.reasons)
    nodes, tasks, groups = [], [], []
    for row in range(len(plan)):
        guest = by_row.get(row)
        own = slice(int(plan.indptr[row]), int(plan.indptr[row + 1]))
        if guest is None:
            nodes.append(plan.nodes[own])
            tasks.append(plan.tasks[own])
            groups.append(None if plan.groups is None else plan.groups[own])
            continue
        start_s[row], end_s[row] = plan.now_s, guest.end_s
        partition[row], reasons[row] = guest.partition, None
        hosts[row] = guest.host_id
        nodes.append(guest.nodes)
        tasks.append(guest.tasks)
        kinds = 0 if plan.groups is None else plan.groups.shape[1]
        groups.append(np.zeros((len(guest.nodes), kinds), dtype=np.int32))
    planned = replace(
        plan,
        start_s=start_s,
        end_s=end_s,
        partition=partition,
        indptr=np.cumsum([0, *map(len, nodes)]).astype(np.int64),
        nodes=np.concatenate(nodes).astype(np.int32),
        tasks=np.concatenate(tasks).astype(np.int32),
        groups=None if plan.groups is None else np.concatenate(groups).astype(np.int32),  # type: ignore[arg-type]
        reasons=tuple(reasons),
    )
    return having_shared(planned, host_id=objects(hosts))
