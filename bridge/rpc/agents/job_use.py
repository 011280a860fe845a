# SPDX-License-Identifier: Apache-2.0
"""Resource use of running jobs, as columns of the snapshot."""

from collections.abc import Container
from dataclasses import replace

from bridge.model.job import RunningTable
from bridge.model.snapshot import Snapshot
from bridge.rpc.agents.job_readings import JobReadings

_USE = (
    "cpu_s", "busy_cpus", "peak_mib", "memory_stall", "progress", "unused_nodes", "measured_s",
)  # fmt: skip


def used(snapshot: Snapshot, readings: JobReadings, bound: Container[str]) -> Snapshot:
    """The snapshot with `cpu_s` and the columns after it of its running jobs.

    Args:
        bound: nodes whose agents keep CPU shares. A job on other nodes has no readings, so that it
            gets no guest, because no agent could limit the guest.
    """
    running = snapshot.running
    jobs = names_on_nodes(running)
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


def names_on_nodes(running: RunningTable) -> list[str]:
    """The jobs' ids on the nodes."""
    pairs = zip(running.id.tolist(), running.number.tolist(), strict=True)
    return [str(number) if number > 0 else job_id for job_id, number in pairs]
