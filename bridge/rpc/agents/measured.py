# SPDX-License-Identifier: Apache-2.0
"""Power and resource use of running jobs, as columns of the snapshot."""

from collections.abc import Container, Mapping
from dataclasses import replace

import numpy as np

from bridge.model.job import RunningTable
from bridge.model.rules.power import PowerRules
from bridge.model.snapshot import Snapshot
from bridge.planning.power.estimates import node_powers, running_shares
from bridge.planning.requests.cpu_shares import part_of
from bridge.rpc.agents.job_readings import JobReadings
from bridge.rpc.agents.lost_power import Claim
from bridge.rpc.agents.power_use import PowerUse, Watts

_USE = (
    "cpu_s", "busy_cpus", "peak_mib", "memory_stall", "progress", "unused_nodes", "measured_s",
)  # fmt: skip


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
    for row, job in enumerate(_names_on_nodes(running)):
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
    (`bridge.planning.power.estimates`).
    """
    running, names = snapshot.running, snapshot.nodes.names
    powers = np.array([types.get(name, (0, 0)) for name in names], dtype=np.int64).reshape(-1, 2)
    idle_w, max_w = powers[running.nodes].T
    part_w = idle_w + part_of(max_w - idle_w, *running_shares(snapshot))
    owner = np.repeat(np.arange(len(running)), np.diff(running.indptr))
    own_w = np.maximum(running.max_power_w, running.learnt_max_power_w)[owner]
    stated_w = np.where(own_w > 0, own_w, part_w)
    jobs = _names_on_nodes(running)
    found: dict[str, dict[str, Claim]] = {}
    for row, node, *watts in zip(
        owner.tolist(), running.nodes.tolist(), stated_w.tolist(), part_w.tolist(), strict=True
    ):
        found.setdefault(names[node], {})[jobs[row]] = Claim(*watts)
    return found


def _names_on_nodes(running: RunningTable) -> list[str]:
    """The jobs' ids on the nodes."""
    pairs = zip(running.id.tolist(), running.number.tolist(), strict=True)
    return [str(number) if number > 0 else job_id for job_id, number in pairs]


def used(snapshot: Snapshot, readings: JobReadings, bound: Container[str]) -> Snapshot:
    """The snapshot with `cpu_s` and the columns after it of its running jobs.

    Args:
        bound: nodes whose agents keep CPU shares. A job on other nodes has no readings, so that it
            gets no guest, because no agent could limit the guest.
    """
    running = snapshot.running
    jobs = _names_on_nodes(running)
    readings.forget_ended(frozenset(jobs))
    if not jobs or not readings.some:
        return snapshot
    names, ends, held = snapshot.nodes.names, running.indptr.tolist(), running.nodes.tolist()
    columns = {name: getattr(running, name).copy() for name in _USE}
    for row, job in enumerate(jobs):
        indexes = held[ends[row] : ends[row + 1]]
        nodes = [names[node] for node in indexes]
        if not all(node in bound for node in nodes):
            continue
        read = readings.of(job, nodes)
        if read is None or read.nodes < len(nodes):
            continue  # of one node nothing is known: sums over the others mislead
        columns["cpu_s"][row], columns["busy_cpus"][row] = read.cpu_s, read.cpus
        columns["peak_mib"][row], columns["memory_stall"][row] = read.peak_mib, read.pressure
        columns["progress"][row] = read.progress
        columns["unused_nodes"][row] = tuple(
            node for node, name in zip(indexes, nodes, strict=True) if name in read.unused
        )
        columns["measured_s"][row] = max(snapshot.now_s - round(read.age_s), 1)
    return replace(snapshot, running=replace(running, **columns))


def node_types(snapshot: Snapshot, rules: PowerRules | None) -> dict[str, Watts]:
    """Idle and maximum power of the nodes for which the site states them, W."""
    if rules is None:
        return {}
    powers = node_powers(rules, snapshot)
    pairs = zip(powers.idle_w.tolist(), powers.max_w.tolist(), strict=True)
    return {
        name: pair for name, pair in zip(snapshot.nodes.names, pairs, strict=True) if pair[1] > 0
    }
