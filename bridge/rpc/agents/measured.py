# SPDX-License-Identifier: Apache-2.0
"""Power and resource use of running jobs, as columns of the snapshot."""

from collections.abc import Container
from dataclasses import replace

import numpy as np

from bridge.model.rules.power import PowerRules
from bridge.model.snapshot import Snapshot
from bridge.planning.power.estimates import node_powers
from bridge.rpc.agents.job_readings import JobReadings
from bridge.rpc.agents.power_use import PowerUse, Watts

_USE = (
    "cpu_s", "busy_cpus", "peak_mib", "memory_stall", "progress", "unused_nodes", "measured_s",
)  # fmt: skip


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


def used(snapshot: Snapshot, readings: JobReadings, bound: Container[str]) -> Snapshot:
    """The snapshot with `cpu_s` and the columns after it of its running jobs.

    Args:
        snapshot: as reported.
        readings: of the agents.
        bound: nodes whose agents keep CPU shares. A job on other nodes has no readings, so that it
            gets no guest, because no agent could limit the guest.
    """
    running = snapshot.running
    jobs = [
        str(number) if number > 0 else job_id
        for job_id, number in zip(running.id.tolist(), running.number.tolist(), strict=True)
    ]
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
