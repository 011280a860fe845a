# SPDX-License-Identifier: Apache-2.0
"""What running jobs draw, as columns of the snapshot."""

from dataclasses import replace

import numpy as np

from bridge.model.power import PowerRules
from bridge.model.snapshot import Snapshot
from bridge.planning.power.estimates import node_powers
from bridge.rpc.agents.power_use import PowerUse, Watts


def measured(snapshot: Snapshot, power: PowerUse) -> Snapshot:
    """The snapshot with `measured_min_power_w` and `measured_max_power_w` of its running jobs."""
    running = snapshot.running
    if not len(running) or not any(power.counts()):
        return snapshot
    names, ends = snapshot.nodes.names, running.indptr.tolist()
    held = running.nodes.tolist()
    least_w, most_w = (np.zeros(len(running), dtype=np.int64) for _ in range(2))
    for row, (job_id, number) in enumerate(
        zip(running.id.tolist(), running.number.tolist(), strict=True)
    ):
        nodes = [names[node] for node in held[ends[row] : ends[row + 1]]]
        job = str(number) if number > 0 else job_id
        if nodes:
            least_w[row], most_w[row] = power.job_bounds(job, nodes)
    running = replace(running, measured_min_power_w=least_w, measured_max_power_w=most_w)
    return replace(snapshot, running=running)


def node_types(snapshot: Snapshot, rules: PowerRules | None) -> dict[str, Watts]:
    """Idle and maximum power of the nodes for which the site states them, W."""
    if rules is None:
        return {}
    powers = node_powers(rules, snapshot)
    pairs = zip(powers.idle_w.tolist(), powers.max_w.tolist(), strict=True)
    return {
        name: pair for name, pair in zip(snapshot.nodes.names, pairs, strict=True) if pair[1] > 0
    }
