# SPDX-License-Identifier: Apache-2.0
"""Guests: jobs that run on the CPUs of another job, their host.

Terms
    host    a running job that holds all CPUs of its nodes.
    guest   a job that runs on some or all of these nodes, on the host's CPUs but with its own
            memory (`RunningTable.host_id`). A host may have several guests, each on different
            nodes; a guest has one host.

Rules
    1. The CPUs of host and guest are counted once, node by node. While both run, the guest's CPUs
       are part of the host's. A guest that ends first frees no CPU. If the host ends first, the
       guest keeps its CPUs, and the host's other CPUs become free.
    2. A guest whose host is not among the running jobs is an ordinary job.
    3. Hosts and guests keep their nodes: none of them is resized.
    4. A completing job is neither host nor guest, although it still holds its CPUs
       (`bridge.rpc.reported.jobs`).
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bridge.model.job import RunningTable, has_value
from bridge.model.node import CPUS


def has_guests(running: RunningTable) -> bool:
    """Whether any job is a guest."""
    return has_value(running, ("host_id",))


def pairs(running: RunningTable) -> dict[int, int]:
    """Row of each guest to the row of its host; of those whose host runs and is no guest itself."""
    if not has_guests(running):
        return {}
    guests = running.host_id.nonzero()[0].tolist()
    releasing = running.releasing.tolist()
    row_of = {job_id: row for row, job_id in enumerate(running.id.tolist()) if not releasing[row]}
    beside = ((row, row_of.get(running.host_id[row])) for row in guests)
    found = {row: host for row, host in beside if host is not None and host != row}
    return {row: host for row, host in found.items() if host not in found}


def counted_once(running: RunningTable) -> RunningTable:
    """The table by rules 1 to 3; itself if there are no guests.

    A guest whose `own_cpus` is 0 is taken as reported: its own CPUs and all CPUs of the host are in
    `use`. It may be called again after ends have changed. O(nodes of pairs).
    """
    if not has_guests(running):
        return running
    found = pairs(running)
    host_id, own_cpus = running.host_id.copy(), running.own_cpus.copy()
    use, maximum = running.use.copy(), running.max_nodes.copy()
    lonely = [row for row in host_id.nonzero()[0].tolist() if row not in found]
    host_id[lonely] = ""
    for guest, host in found.items():
        _count_pair(running, guest, host, use, own_cpus)
        maximum[[guest, host]] = 0
    return replace(running, host_id=host_id, own_cpus=own_cpus, use=use, max_nodes=maximum)


def _count_pair(
    running: RunningTable,
    guest: int,
    host: int,
    use: NDArray[np.int64],
    own_cpus: NDArray[np.int64],
) -> None:
    """Rule 1 for one guest; changes its `own_cpus`, and `use` of both."""
    at = {int(running.nodes[entry]): entry for entry in _entries(running, host)}
    mine = _entries(running, guest)
    reported = own_cpus[guest] == 0
    if reported:
        own_cpus[guest] = max((int(use[entry, CPUS]) for entry in mine), default=0)
    outlives = bool(_ends_s(running, guest) > _ends_s(running, host))
    for entry in mine:
        other = at.get(int(running.nodes[entry]))
        if other is None:  # the host has left this node already
            continue
        held, beside = int(use[entry, CPUS]), int(use[other, CPUS])
        together = max(held, beside) if reported else held + beside
        kept = min(int(own_cpus[guest]), together) if outlives else 0
        use[entry, CPUS], use[other, CPUS] = kept, together - kept


def as_reported(running: RunningTable) -> NDArray[np.int64]:
    """What each job would hold alone, as `RunningTable.use`: the inverse of `counted_once`."""
    found = {row: host for row, host in pairs(running).items() if running.own_cpus[row]}
    if not found:
        return running.use
    use = running.use.copy()
    for guest, host in found.items():
        at = {int(running.nodes[entry]): entry for entry in _entries(running, host)}
        for entry in _entries(running, guest):
            other = at.get(int(running.nodes[entry]))
            if other is not None:
                use[other, CPUS] += use[entry, CPUS]
                use[entry, CPUS] = running.own_cpus[guest]
    return use


def _entries(running: RunningTable, row: int) -> range:
    return range(int(running.indptr[row]), int(running.indptr[row + 1]))


def _ends_s(running: RunningTable, row: int) -> int:
    return int(running.end_s[row])


class GuestCounting:
    """See `bridge.extensions.port.Counting`."""

    def counted(self, running: RunningTable) -> RunningTable:
        """Each pair once."""
        return counted_once(running)

    def reported(self, running: RunningTable) -> NDArray[np.int64]:
        """Each job by itself."""
        return as_reported(running)
