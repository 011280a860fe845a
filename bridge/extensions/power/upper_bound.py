# SPDX-License-Identifier: Apache-2.0
"""The upper bound of power as a bound on a sum with weights of nodes.

Rules
    1. Without jobs the base and the idle power of all nodes that are on are drawn.
    2. A job counts with its draw beyond the idle power of its nodes, by the upper estimates of
       `bridge.extensions.power.planning.estimates`.
    3. Powering down idle nodes leaves more: what these draw.
"""

from typing import Final

import numpy as np

from bridge.extensions.power.planning.estimates import (
    may_be_powered_down,
    node_powers,
    pending_estimates,
    running_upper_w,
)
from bridge.extensions.power.rules import NAME, PowerRules
from bridge.model.reasons import ReasonCode
from bridge.model.snapshot import Snapshot
from bridge.model.weighted_bound import Rise, WeightedBound

LABEL: Final = "upper bound of power"


def upper_bound(rules: PowerRules, snapshot: Snapshot) -> WeightedBound:
    """The upper bound for one snapshot. O(n_nodes + what running jobs hold)."""
    powers = node_powers(rules, snapshot)
    idle_w = powers.idle_w[may_be_powered_down(rules, snapshot)]
    return WeightedBound(
        key=NAME,
        label=LABEL,
        subject="power",
        unit="W",
        code=ReasonCode.POWER,
        starts_s=np.array(rules.corridor.starts_s, dtype=np.int64),
        upper=np.array(rules.corridor.upper_w, dtype=np.int64),
        rest=rules.base_w + powers.idle_total_w,
        floor=powers.floor_w,
        weight=powers.span_w,
        stated=pending_estimates(snapshot.jobs).upper_w,
        running=running_upper_w(rules, snapshot, powers),
        rise=Rise(int(idle_w.sum()), "while idle nodes are on"),
    )
