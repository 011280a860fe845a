# SPDX-License-Identifier: Apache-2.0
"""The readings of agents for a running job, over all its nodes."""

from dataclasses import dataclass


@dataclass(frozen=True)
class JobReading:
    """The last readings of a job.

    Attributes:
        cpu_s: CPU time since its start, over all nodes that are known, s; -1: not known.
        cpus: CPUs in use, the mean since the reading before, over those nodes; -1: not known.
        memory_mib: in use, the largest of its nodes.
        peak_mib: the most it has used on any node; 0: not known.
        pressure: share of the last 10 s in which some task waited for memory, in [0, 1], the
            largest of its nodes: of the job where the kernel counts it, else of the machine; -1:
            not known.
        age_s: the age of the oldest of these readings.
        nodes: the number of its nodes with readings, those on which it uses nothing included.
        unused: nodes on which it has no process.
        progress: share of its work that is done, in [0, 1], as the job tells it; -1: it does not.
        method: how its CPU share is kept: cgroup-v1, cgroup-v2, priorities (which keep no quota);
            empty: it is not.
    """

    cpu_s: float
    cpus: float
    memory_mib: int
    peak_mib: int
    pressure: float
    age_s: float
    nodes: int
    progress: float = -1.0
    method: str = ""
    unused: frozenset[str] = frozenset()
