# SPDX-License-Identifier: Apache-2.0
"""Starts and allocations of simulated jobs, and changes while the jobs run."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class JobStart:
    """A start that a plan requests.

    Attributes:
        job: row in the workload.
        nodes: (n,) indexes.
        tasks: (n,) tasks on each.
        partition: index.
        predicted_s: its predicted run time, s.
        host_id: the job whose guest it is; empty: it starts on CPUs of its own.
    """

    job: int
    nodes: NDArray[np.int32]
    tasks: NDArray[np.int64]
    partition: int
    predicted_s: int
    host_id: str


@dataclass(frozen=True)
class Adaptation:
    """A change of width in progress.

    Attributes:
        nodes: (n,) int32, ascending: what the job is giving back; none where it grows.
        use: (n, R) int64: amounts held on each of them.
        by_s: when the change is complete, and these nodes are free.
        goes_on_s: how long the job computes on its former nodes.
        still_s: how long it then stands still.
    """

    nodes: NDArray[np.int32]
    use: NDArray[np.int64]
    by_s: int
    goes_on_s: float = 0.0
    still_s: float = 0.0


@dataclass(frozen=True)
class Allocation:
    """The allocation of a running job.

    Attributes:
        nodes: (n,) int32, ascending.
        use: (n, R) int64: what is taken from each node; all of it for exclusive jobs.
        start_s, limit_s: when it started, and when it would be killed.
        predicted_s: run time predicted by the plan.
        adaptation: a change of width in progress; None: none.
        head: the node that it never gives back.
        resized_s: when the last change of width began; 0: there was none.
        host: the running job on whose CPUs it is; -1: it has its own. `use` is what it holds by
            itself in either case.
    """

    nodes: NDArray[np.int32]
    use: NDArray[np.int64]
    start_s: int
    limit_s: int
    partition: int
    exclusive: bool
    predicted_s: int
    adaptation: Adaptation | None = None
    head: int = -1
    resized_s: int = 0
    host: int = -1

    def grown(self, new: NDArray[np.int32], capacity: NDArray[np.int64], by_s: int) -> "Allocation":
        """The allocation with additional nodes; on each it holds as much as on its first, or all.

        Args:
            new: (k,) none of its own.
            capacity: (n_nodes, R) of all nodes.
            by_s: when it starts to compute on them.
        """
        use = capacity[new] if self.exclusive else np.repeat(self.use[:1], len(new), axis=0)
        nodes = np.concatenate((self.nodes, new))
        order = np.argsort(nodes)
        adaptation = Adaptation(new[:0], use[:0], by_s)
        use = np.concatenate((self.use, use))[order]
        return replace(self, nodes=nodes[order], use=use, adaptation=adaptation)

    def shrunk(self, after: NDArray[np.int32], by_s: int) -> "Allocation":
        """The allocation without the other nodes, which are released by then."""
        stays = np.isin(self.nodes, after)
        adaptation = Adaptation(self.nodes[~stays], self.use[~stays], by_s)
        return replace(self, nodes=self.nodes[stays], use=self.use[stays], adaptation=adaptation)
