# SPDX-License-Identifier: Apache-2.0
"""Measured power of running jobs, as columns of the snapshot."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from bridge.extensions.power.lost_power import Claim
from bridge.extensions.power.planning.estimates import node_powers, running_shares
from bridge.extensions.power.power_use import PowerUse, Watts
from bridge.extensions.power.rules import PowerRules
from bridge.model.snapshot import Snapshot
from bridge.planning.requests.cpu_shares import part_of
from bridge.rpc.agents.job_names import names_on_nodes


def measured(snapshot: Snapshot, power: PowerUse) -> Snapshot:
    """The snapshot with the measured power of its running jobs, and its source.

    These are `measured_min_power_w` and the columns after it to `power_lost_s`.
    """
    power.look()
    running = snapshot.running
    if not any(power.counts()):
        return snapshot
    power.state_claims(_claims(snapshot, power.types))
    if not len(running):
        return snapshot
    names, ends = snapshot.nodes.names, running.indptr.tolist()
    held = running.nodes.tolist()
    min_w, max_w, at_s, lost_s = (np.zeros(len(running), dtype=np.int64) for _ in range(4))
    sources = running.power_source.copy()
    for row, job in enumerate(names_on_nodes(running)):
        nodes = [names[node] for node in held[ends[row] : ends[row + 1]]]
        if not nodes:
            continue
        min_w[row], max_w[row] = power.job_bounds(job, nodes)
        if not max_w[row]:
            continue
        source = power.source(nodes)
        sources[row], at_s[row] = source.text, max(snapshot.now_s - round(source.age_s), 1)
        if source.lost_s is not None:
            lost_s[row] = max(snapshot.now_s - round(source.lost_s), 1)
    running = replace(
        running, measured_min_power_w=min_w, measured_max_power_w=max_w, power_source=sources,
        power_at_s=at_s, power_lost_s=lost_s,
    )  # fmt: skip
    return replace(snapshot, running=running)


def _claims(snapshot: Snapshot, types: Mapping[str, Watts]) -> dict[str, dict[str, Claim]]:
    """What running jobs may draw on each of their nodes, by node and job.

    Stated is what its user says, else its application's earlier runs, else the node's type, of
    which a job on a part of a node draws the same part beyond idle
    (`bridge.extensions.power.planning.estimates`).
    """
    running, names = snapshot.running, snapshot.nodes.names
    powers = np.array([types.get(name, (0, 0)) for name in names], dtype=np.int64).reshape(-1, 2)
    idle_w, max_w = powers[running.nodes].T
    part_w = idle_w + part_of(max_w - idle_w, *running_shares(snapshot))
    owner = np.repeat(np.arange(len(running)), np.diff(running.indptr))
    own_w = np.maximum(running.max_power_w, running.learnt_max_power_w)[owner]
    stated_w = np.where(own_w > 0, own_w, part_w)
    jobs = names_on_nodes(running)
    found: dict[str, dict[str, Claim]] = {}
    for row, node, *watts in zip(
        owner.tolist(), running.nodes.tolist(), stated_w.tolist(), part_w.tolist(), strict=True
    ):
        found.setdefault(names[node], {})[jobs[row]] = Claim(*watts)
    return found


def node_types(snapshot: Snapshot, rules: PowerRules | None) -> dict[str, Watts]:
    """Idle and maximum power of the nodes for which the site states them, W."""
    if rules is None:
        return {}
    powers = node_powers(rules, snapshot)
    pairs = zip(powers.idle_w.tolist(), powers.max_w.tolist(), strict=True)
    return {
        name: pair for name, pair in zip(snapshot.nodes.names, pairs, strict=True) if pair[1] > 0
    }
