# SPDX-License-Identifier: Apache-2.0
"""Why the simulated controller refuses a plan, a start or a resize.

The rules are those of `bridge.lab.sim.cluster.controller`.
"""

import numpy as np
from numpy.typing import NDArray

from bridge.lab.sim.cluster.allocation import Allocation, JobStart
from bridge.lab.sim.cluster.occupancy import Occupancy
from bridge.lab.sim.workloads.system import System
from bridge.lab.sim.workloads.workload import Malleable
from bridge.model.job import JobTable
from bridge.model.node import CPUS, NodeTable
from bridge.model.plan import Plan
from bridge.planning.requests.features import parse_features


def plan_problem(plan: Plan, now_s: int) -> str | None:
    """Why a plan is refused as a whole; None if it is valid."""
    rows, nodes, indptr = len(plan.job), len(plan.nodes), plan.indptr
    if (
        not rows == len(plan.start_s) == len(plan.end_s) == len(plan.partition)
        or rows != len(plan.reasons)
        or rows + 1 != len(indptr)
    ):
        return "has columns of different length"
    if len(plan.tasks) != nodes or indptr[0] != 0 or indptr[-1] != nodes:
        return "has offsets that do not fit its nodes"
    if nodes and np.count_nonzero(indptr[1:] < indptr[:-1]):
        return "has offsets that fall"
    if plan.now_s != now_s:
        return f"was made for {plan.now_s}: stale"
    return None


class PlanChecks:
    """Checks starts and resizes against the requests of jobs and the use of nodes."""

    def __init__(
        self, jobs: JobTable, widths: Malleable | None, system: System, occupancy: Occupancy
    ) -> None:
        """Prepares the checks.

        Args:
            widths: which of them can be resized, and how; None: none.
            occupancy: what is checked against, as it is at each check.
        """
        self._jobs, self._widths, self._system = jobs, widths, system
        self._occupancy = occupancy
        columns = (
            jobs.min_nodes, jobs.max_nodes, jobs.time_limit_s, jobs.tasks, jobs.max_tasks_per_node,
        )  # fmt: skip
        self._requests = list(zip(*(column.tolist() for column in columns), strict=True))
        self._in_partition = np.zeros((len(system.partitions), len(system.nodes)), dtype=bool)
        for position, partition in enumerate(system.partitions):
            self._in_partition[position, partition.nodes] = True
        self._open_of: tuple[NodeTable | None, NDArray[np.bool_]] = None, self._in_partition

    def want(self, job: int, tasks: NDArray[np.int64]) -> NDArray[np.int64]:
        """(n, R) int64: what a job takes of each node for so many tasks there."""
        want: NDArray[np.int64] = (
            self._jobs.per_node[job] + tasks[:, np.newaxis] * self._jobs.per_task[job]
        )
        return want

    def _open(self, table: NodeTable) -> NDArray[np.bool_]:
        """(n_partitions, n_nodes) which nodes of each partition are usable."""
        if self._open_of[0] is not table:
            self._open_of = table, self._in_partition & table.usable
        return self._open_of[1]

    def start(
        self, start: JobStart, table: NodeTable, host: Allocation | None = None
    ) -> str | None:
        """Why a pending job cannot start as requested; None if it can.

        Args:
            host: the allocation of its host; None: it starts on CPUs of its own.
        """
        job, nodes, tasks, partition = start.job, start.nodes, start.tasks, start.partition
        jobs = self._jobs
        if partition not in jobs.partitions[job]:
            return f"is started in partition {partition}, which it did not name"
        _, _, limit_s, wanted, max_tasks = self._requests[job]
        if (why := self._wrong_width(job, len(nodes))) is not None:
            return why
        listed = nodes.tolist()
        if len(set(listed)) < len(listed) or not 0 <= min(listed) <= max(listed) < len(table):
            return "gets a node that does not exist, or one twice"
        if np.count_nonzero(self._open(table)[partition].take(nodes)) < len(listed):
            return "gets a node that is not usable or not in its partition"
        max_time_s = self._system.partitions[partition].max_time_s
        if 0 < max_time_s < limit_s:
            return f"asks for more than the partition's {max_time_s} s"
        if wanted and (tasks.min() < 1 or tasks.sum() != wanted):
            return f"gets {int(tasks.sum())} tasks where {wanted} belong"
        if 0 < max_tasks < tasks.max(initial=0):
            return f"gets {int(tasks.max())} tasks on a node, more than it asked for"
        if (why := self._mismatch(job, nodes, table)) is not None:
            return why
        exclusive = bool(jobs.exclusive[job])
        simple = not wanted and host is None  # as mostly
        if simple and self._occupancy.holds(nodes, jobs.per_node[job], exclusive):
            return None
        return self._crowded(start, table, host)

    def _crowded(self, start: JobStart, table: NodeTable, host: Allocation | None) -> str | None:
        """Why a job has no room on its nodes; None if it has."""
        job, nodes, tasks = start.job, start.nodes, start.tasks
        want = self.want(job, tasks if self._jobs.tasks[job] else np.zeros_like(tasks))
        if host is not None:
            if (want[:, CPUS] > host.use[np.isin(host.nodes, nodes), CPUS]).any():
                return "asks for more CPUs than its host holds"
            want[:, CPUS] = 0
        occupied = self._occupancy.occupied(nodes, want, bool(self._jobs.exclusive[job]))
        if occupied.any():
            return (
                f"does not fit on {table.names[nodes[int(np.argmax(occupied))]]}, which others hold"
            )
        return None

    def resize(
        self, job: int, held: Allocation | None, after: NDArray[np.int32], table: NodeTable
    ) -> str | None:
        """Why a job cannot get these nodes instead of its own; None if it can.

        Args:
            job: row in the workload.
            held: its allocation; None: it does not run.
            after: (n,) indexes.
        """
        widths = self._widths
        if held is None:
            return "is resized but does not run"
        if widths is None or (why := widths.objection(job, len(after))) is not None:
            return "is resized but not malleable" if widths is None else why
        if held.adaptation is not None:
            return "is resized while it is adapting"
        distinct = set(after.tolist())
        if len(distinct) < len(after) or not distinct <= set(range(len(table))):
            return "gets a node that does not exist, or one twice"
        new, leaves = np.setdiff1d(after, held.nodes), np.setdiff1d(held.nodes, after)
        if (len(new) > 0) == (len(leaves) > 0):
            return "gets nodes and loses others at once" if len(new) else "keeps the nodes it has"
        if not (table.usable[new] & self._in_partition[held.partition, new]).all():
            return "gets a node that is not usable or not in its partition"
        want = self._occupancy.capacity[new] if held.exclusive else held.use[:1]
        busy = self._occupancy.occupied(new, want, held.exclusive)
        if busy.any():
            return f"gets {table.names[int(new[busy][0])]}, which others hold"
        return None

    def _wrong_width(self, job: int, nodes: int) -> str | None:
        """Why a job cannot start on that many nodes; None if it can."""
        minimum, maximum, *_ = self._requests[job]
        if minimum <= nodes <= maximum:
            return None
        if self._jobs.max_start[job] and self._widths is not None:
            return self._widths.objection(job, nodes)
        return f"gets {nodes} nodes where {minimum} to {maximum} belong"

    def _mismatch(self, job: int, nodes: NDArray[np.int32], table: NodeTable) -> str | None:
        """Why nodes do not match the names or features that the job requested; None if they do."""
        jobs, names = self._jobs, table.names
        required, excluded = jobs.required[job], jobs.excluded[job]
        if required and (missing := set(required).difference(nodes.tolist())):
            return f"does not get {names[min(missing)]}, which it asked for"
        if excluded and (unwanted := set(excluded).intersection(nodes.tolist())):
            return f"gets {names[min(unwanted)]}, which it excluded"
        if jobs.features[job]:
            alternatives = parse_features(jobs.features[job])
            held = [table.features[node] for node in nodes.tolist()]
            if not any(all(map(matches, held)) for matches in alternatives):
                return f"gets nodes that do not match {jobs.features[job]}"
        return None
