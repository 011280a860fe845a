# SPDX-License-Identifier: Apache-2.0
"""The observation of a running job, for experts and bounds."""

from typing import Final

from bridge.extensions.sharing.histories import History
from bridge.extensions.sharing.observation import Observation, happiness
from bridge.model.node import MEMORY_MIB
from bridge.model.snapshot import Snapshot

STALE_S: Final = 30
"""Older measurements are not used."""
_SEVERAL_CPUS: Final = 1.5
"""From this many busy CPUs on, a stage counts as parallel."""


def is_measured(snapshot: Snapshot, row: int) -> bool:
    """Whether the use of a running job is known, and recent."""
    running = snapshot.running
    recent = snapshot.now_s - running.measured_s[row] <= STALE_S
    return bool(running.measured_s[row] > 0 and recent and running.busy_cpus[row] >= 0)


def observed(snapshot: Snapshot, row: int, history: History | None) -> Observation | None:
    """The observation of a running job; None: it is not measured."""
    if not is_measured(snapshot, row):
        return None
    running, now_s = snapshot.running, snapshot.now_s
    nodes = running.nodes[running.indptr[row] : running.indptr[row + 1]]
    capacity = snapshot.nodes.capacity[nodes].sum(axis=0)
    min_mib = int(snapshot.nodes.capacity[nodes, MEMORY_MIB].min())
    elapsed_s = max(now_s - int(running.start_s[row]), 0)
    limit_s = max(int(running.end_s[row] - running.start_s[row]), 1)
    busy = float(running.busy_cpus[row])
    return Observation(
        cpu_percent=min(100 * busy / max(int(capacity[0]), 1), 100.0),
        memory_percent=min(100 * int(running.peak_mib[row]) / max(min_mib, 1), 100.0),
        parallel=float(busy >= _SEVERAL_CPUS),
        elapsed_percent=min(100 * elapsed_s / limit_s, 100.0),
        happiness=happiness(
            elapsed_s=elapsed_s,
            time_limit_s=limit_s,
            used_cpu_s=max(float(running.cpu_s[row]), 0.0),
            cpus_now=busy,
            expected_cpu_s=None if history is None else history.cpu_s,
        ),
    )
