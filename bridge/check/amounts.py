# SPDX-License-Identifier: Apache-2.0
"""The amounts that the check of site rules counts, for rows of a plan and running jobs.

Rules
    1. A row uses the total of its nodes, tasks and chunks; with whole nodes, all CPUs and all
       memory of these nodes, if that is more. A running job uses what it holds, also on nodes that
       are not known.
    2. No code of the planners is used, not even to expand validities (`bridge.check.validity`).
"""

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bridge.check.validity import windows
from bridge.dialect import dialect_of
from bridge.model.node import CPUS, MEMORY_MIB
from bridge.model.plan import Plan
from bridge.model.rules.limits import ARRAY_JOBS, JOBS, TIME, Access, ConsumerKind, Validity
from bridge.model.snapshot import Snapshot
from bridge.units import NEVER, UNLIMITED_S

Ints = NDArray[np.int64]
_OTHER_NAMES = {"mem": "mem_mib", "vmem": "mem_mib", "ncpus": "cpus", "cores": "cpus"}


class CheckedAmounts:
    """The n checked rows and the running jobs, with their amounts.

    Attributes:
        rows: (n,) rows of the plan.
        job, start_s, end_s: (n,) of each.
        limit_s: (n,) its time limit.
        running_end_s: (n_running,) after now.
        columns: counted resources: those of nodes, licences, jobs, tasks of arrays.
        blamed: (n,) rows that exceeded a bound; they no longer count against others.
    """

    def __init__(
        self, snapshot: Snapshot, plan: Plan, rows: NDArray[np.intp], timezone: str, cron_s: int
    ) -> None:
        self.snapshot, self.plan, self.rows = snapshot, plan, rows
        self._timezone, self._until_s = timezone, snapshot.now_s + cron_s
        self.now_s = snapshot.now_s
        self.job = plan.job[rows].astype(np.int64)
        self.start_s, self.end_s = plan.start_s[rows], plan.end_s[rows]
        self.partition = plan.partition[rows]
        jobs = snapshot.jobs
        default_s = [p.default_time_s or p.max_time_s or UNLIMITED_S for p in snapshot.partitions]
        limit_s = jobs.time_limit_s[self.job]
        limit_s = np.where(limit_s > 0, limit_s, np.array(default_s)[self.partition])
        kill_s = jobs.kill_limit_s[self.job]
        # The length of a row is its limit if cut; `bridge.check.legality` checks it.
        cut = (jobs.deadline_s[self.job] > 0) | (jobs.min_time_s[self.job] > 0)
        limit_s = np.where(cut, np.minimum(limit_s, self.end_s - self.start_s), limit_s)
        self.limit_s = np.where(kill_s > 0, kill_s, limit_s)
        self.running_end_s = np.maximum(snapshot.running.end_s, self.now_s + 1)
        self.columns = (*snapshot.resources, *snapshot.licences, JOBS, ARRAY_JOBS)
        self.n_requested = len(self.columns) - 2  # of these, "*" is any
        self.blamed = np.zeros(len(rows), dtype=bool)
        self._windows: dict[Validity, Ints] = {}
        self._available: dict[int, Ints] = {}
        self._consumers: dict[ConsumerKind, tuple[list[str], Ints, Ints]] = {}

    def column(self, resource: str) -> int:
        """The column of a resource; -1: the cluster does not have it."""
        name = _OTHER_NAMES.get(resource, resource)
        return self.columns.index(name) if name in self.columns else -1

    def windows(self, validity: Validity) -> Ints:
        """(k, 2) when a rule is in force, from now on."""
        if validity not in self._windows:
            found = windows(validity, self._timezone, self.now_s, self._until_s)
            self._windows[validity] = np.maximum(found, self.now_s)
        return self._windows[validity]

    # ---------------------------------------------------------------- nodes

    @cached_property
    def width(self) -> Ints:
        """(n,) nodes of each row."""
        found: Ints = np.diff(self.plan.indptr)[self.rows]
        return found

    @cached_property
    def entry_row(self) -> NDArray[np.intp]:
        """(e,) for each node of each row: which of the n rows has it."""
        return np.repeat(np.arange(len(self.rows)), self.width)

    @cached_property
    def entry(self) -> NDArray[np.intp]:
        """(e,) its position among the nodes of the plan."""
        has_start = np.zeros(len(self.plan), dtype=bool)
        has_start[self.rows] = True
        return np.flatnonzero(np.repeat(has_start, np.diff(self.plan.indptr)))

    @cached_property
    def node(self) -> NDArray[np.int32]:
        """(e,) the node."""
        return self.plan.nodes[self.entry]

    @cached_property
    def want(self) -> Ints:
        """(e, R) the request of the row there."""
        jobs, job = self.snapshot.jobs, self.job[self.entry_row]
        tasks = self.plan.tasks[self.entry][:, None]
        found: Ints = jobs.per_node[job] + jobs.per_task[job] * tasks
        if self.plan.groups is not None:
            chunks = self.plan.groups[self.entry]
            for at in np.flatnonzero(chunks.any(axis=1)).tolist():
                requested = jobs.chunks[job[at]]
                found[at] = requested.per_node
                for kind, count in enumerate(chunks[at, : len(requested.wants)].tolist()):
                    found[at] += count * np.array(requested.wants[kind], dtype=np.int64)
        return found

    @cached_property
    def whole(self) -> NDArray[np.bool_]:
        """(n,) which rows take whole nodes."""
        alone = np.array([p.exclusive for p in self.snapshot.partitions])
        found: NDArray[np.bool_] = self.snapshot.jobs.exclusive[self.job] | alone[self.partition]
        return found

    # ---------------------------------------------------------------- amounts

    @cached_property
    def requested(self) -> Ints:
        """(n, columns) the request of each row."""
        jobs = self.snapshot.jobs
        found = np.zeros((len(self.rows), len(self.columns)), dtype=np.int64)
        n_resources = len(self.snapshot.resources)
        np.add.at(found[:, :n_resources], self.entry_row, self.want)
        found[:, n_resources:-2] = jobs.licences[self.job]
        found[:, -2] = 1
        found[:, -1] = jobs.array_tasks[self.job] > 0
        return found

    @cached_property
    def taken(self) -> Ints:
        """(n, columns) what each row uses, including its nodes if it takes them whole (rule 1)."""
        both = [CPUS, MEMORY_MIB]
        has = np.zeros((len(self.rows), 2), dtype=np.int64)
        np.add.at(has, self.entry_row, self.snapshot.nodes.capacity[self.node][:, both])
        found = self.requested.copy()
        found[:, both] = np.where(
            self.whole[:, None], np.maximum(found[:, both], has), found[:, both]
        )
        return found

    @cached_property
    def running(self) -> Ints:
        """(n_running, columns) what each running job holds."""
        running = self.snapshot.running
        found = np.zeros((len(running), len(self.columns)), dtype=np.int64)
        n_resources = len(self.snapshot.resources)
        holder = np.repeat(np.arange(len(running)), np.diff(running.indptr))
        np.add.at(found[:, :n_resources], holder, running.use)
        found[:, :n_resources] += running.use_elsewhere
        found[:, n_resources:-2] = running.licences
        found[:, -2] = 1
        found[:, -1] = dialect_of(self.snapshot).are_array_tasks(running.id.tolist())
        found[running.releasing, -2:] = 0
        return found

    def available(self, partition: int = -1) -> Ints:
        """(columns,) the present capacity of usable nodes: of all, or of one partition."""
        if partition in self._available:
            return self._available[partition]
        nodes = self.snapshot.nodes
        there = nodes.usable.copy()
        if partition >= 0:
            inside = np.zeros(len(nodes), dtype=bool)
            inside[self.snapshot.partitions[partition].nodes] = True
            there &= inside
        have = nodes.capacity[there].sum(axis=0)
        total = np.concatenate((have, self.snapshot.licence_total, [NEVER, NEVER]))
        found = self._available[partition] = total.astype(np.int64)
        return found

    # ---------------------------------------------------------------- consumers

    def consumers(self, kind: ConsumerKind) -> tuple[list[str], Ints, Ints]:
        """The names of a kind, and the one of each row and of each running job; -1: none."""
        if kind not in self._consumers:
            self._consumers[kind] = self._named(kind)
        return self._consumers[kind]

    def _named(self, kind: ConsumerKind) -> tuple[list[str], Ints, Ints]:
        jobs, running = self.snapshot.jobs, self.snapshot.running
        if kind is ConsumerKind.PARTITION:
            names = [partition.name for partition in self.snapshot.partitions]
            return names, self.partition.astype(np.int64), running.partition
        by_user = kind is ConsumerKind.USER
        mine = jobs.user if by_user else jobs.account
        theirs = running.user if by_user else running.account
        known: dict[str, int] = {}
        of_row = [known.setdefault(name, len(known)) for name in mine[self.job].tolist()]
        of_running = [known.get(name, -1) for name in theirs.tolist()]
        return list(known), np.array(of_row, dtype=np.int64), np.array(of_running, dtype=np.int64)

    def lets_in(self, access: Access) -> NDArray[np.bool_]:
        """(n,) which rows meet the parts of a condition on the whole job."""
        meets = np.ones(len(self.rows), dtype=bool)
        for kind, names in (
            (ConsumerKind.USER, access.users),
            (ConsumerKind.ACCOUNT, access.accounts),
            (ConsumerKind.PARTITION, access.partitions),
        ):
            if names is not None:
                known, of_row, _ = self.consumers(kind)
                meets &= np.array([*(name in names for name in known), False])[of_row]
        for bound in access.bounds:
            column = self.column(bound.what)
            if bound.what == TIME:
                minimum = maximum = self.limit_s
            elif column < 0:
                minimum = maximum = np.zeros(len(self.rows), dtype=np.int64)
            else:
                # No job gets access by taking more than it requests, or by requesting less than it
                # takes.
                minimum, maximum = self.requested[:, column], self.taken[:, column]
            meets &= (minimum >= bound.minimum) & (maximum <= bound.maximum)
        return meets
