# SPDX-License-Identifier: Apache-2.0
"""What protects running pairs under every policy: memory, and measurements of the host.

Rules
    1. A guest is requeued when processes of host or guest wait for memory (`slots.STALLED`), and
       when the measured peaks of both and the margin do not fit.
    2. A guest is held to the floor while its host is not measured.
    3. A requeued guest pauses (`bridge.extensions.sharing.left_hosts`).
"""

from collections.abc import Iterable

from bridge.extensions.sharing.counting import pairs
from bridge.extensions.sharing.leaving import NO_MEMORY, NO_ROOM
from bridge.extensions.sharing.left_hosts import LeftHosts
from bridge.extensions.sharing.orders import Orders, cpus_of
from bridge.extensions.sharing.seen import is_measured
from bridge.extensions.sharing.slots import STALLED, Slots
from bridge.model.node import MEMORY_MIB


def short_of_memory(slots: Slots, guest: int, host: int) -> str:
    """Why a guest must leave (rule 1); empty: it need not."""
    running = slots.snapshot.running
    if max(float(running.memory_stall[host]), float(running.memory_stall[guest])) > STALLED:
        return NO_MEMORY
    nodes = running.nodes[running.indptr[host] : running.indptr[host + 1]]
    rules = slots.rules(int(running.partition[host]))
    min_mib = int(slots.snapshot.nodes.capacity[nodes, MEMORY_MIB].min())
    margin = 0.0 if rules is None else rules.memory_margin
    if int(running.peak_mib[host] + running.peak_mib[guest]) > min_mib * (1 - margin):
        return NO_ROOM
    return ""


def keep_safe(slots: Slots, orders: Orders, guests: Iterable[int], left: LeftHosts) -> set[int]:
    """Applies the rules to running guests; returns the rows of those to which none applies.

    Args:
        orders: gets requeues and floors.
        guests: rows of running guests.
        left: learns of the requeues.
    """
    snapshot, stay = slots.snapshot, set()
    running, host_of = snapshot.running, pairs(snapshot.running)
    for guest in sorted(guests):
        job_id, cpus = str(running.id[guest]), cpus_of(snapshot, guest)
        reason = short_of_memory(slots, guest, host_of[guest])
        if reason:
            left.leaves(str(running.user[guest]), job_id, int(running.start_s[guest]))
        if reason and running.requeue[guest]:
            orders.requeue(job_id, cpus, reason)
        elif reason or not is_measured(snapshot, host_of[guest]):
            orders.floor(job_id, cpus)
        else:
            stay.add(guest)
    return stay
