# SPDX-License-Identifier: Apache-2.0
"""What the jobs of a node count with while its measurement is lost.

Rules
    1. A job counts with the greatest of what is stated, its highest value before the loss, and what
       the model says; while the agent is silent, with its part of the node's maximum as well.
    2. All jobs of a node together count with no more than the node can draw: the greatest of its
       maximum, its highest value in the last measured minute, and what the model says. If they
       exceed that, all are reduced in proportion to what they draw beyond idle. A node whose
       maximum is not stated has no such limit.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from bridge.extensions.power.node_sensor import NodeSensor


@dataclass(frozen=True, slots=True)
class Claim:
    """What a job may draw on a node that it holds, idle power included.

    Attributes:
        stated_w: by its user, its application's earlier runs, or the node's type; 0: nothing is.
        part_w: its part of the node's maximum, by its CPUs; 0: the maximum is not stated.
    """

    stated_w: int
    part_w: int


def lost_power(
    node: NodeSensor, claims: Mapping[str, Claim], types: tuple[int, int], *,
    now_s: float, stale: bool,
) -> dict[str, int]:  # fmt: skip
    """What each job counts with, W, idle power included; 0: unknown.

    Args:
        types: idle and maximum power of the node, W; 0: not stated.
        stale: the agent is silent.
    """
    idle_w, max_w = types
    found = {
        job: math.ceil(max(
            node.upper_w(job, now_s=now_s, stale=stale), claim.stated_w, claim.part_w * stale
        ))
        for job, claim in claims.items()
    }  # fmt: skip
    if not max_w:
        return found
    return _limited(found, idle_w, math.ceil(max(max_w, node.max_w(now_s=now_s, stale=stale))))


def _limited(watts: Mapping[str, int], idle_w: int, limit_w: int) -> dict[str, int]:
    """The same, reduced so that their sum beyond idle is at most that of the limit."""
    total_w = sum(max(each - idle_w, 0) for each in watts.values())
    room_w = max(limit_w - idle_w, 0)
    if total_w <= room_w:
        return dict(watts)
    found, requested_w, given_w = {}, 0, 0
    for job, each in watts.items():  # not rounded one by one: the sum is exactly the limit's
        requested_w += max(each - idle_w, 0)
        upto_w = requested_w * room_w // total_w
        found[job] = idle_w + upto_w - given_w
        given_w = upto_w
    return found
