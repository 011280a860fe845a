# SPDX-License-Identifier: Apache-2.0
"""Running jobs that may have a guest, and the waiting jobs that may be theirs.

Rules
    1. A host and a guest are as `bridge.check.coscheduling` demands, which has code of its own for
       that. What it finds wrong all the same is left out of the plan by the cycle.
    2. Only jobs that wait for nodes or for others are looked at, and no job that asks for
       licences or a reservation, or whose width or limit somebody else decides.
    3. A guest ends, by its time limit, before the plan uses its nodes for another job: so no
       planned start moves. A policy may do without that rule (`delays`); it holds for tasks of
       arrays all the same.
    4. A host gets a guest only while it is measured: then an agent is there that holds the guest
       back. And not while its processes wait for memory (`STALLED`).
    5. A job that may not use the host's nodes (features, excluded and required nodes) is passed
       over: else the check would refuse it in each cycle, and the host would never have a guest.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bridge.model.coscheduling import GuestStart, pairs
from bridge.model.job import Hold, WidthRule
from bridge.model.node import CPUS, MEMORY_MIB
from bridge.model.plan import Plan
from bridge.model.reasons import Reason, ReasonCode
from bridge.model.rules.coscheduling import CoschedulingRules, rules_of
from bridge.model.rules.site import Site
from bridge.model.snapshot import Snapshot
from bridge.planning.eligibility.alternatives import Eligibility
from bridge.planning.sharing.seen import is_measured
from bridge.units import NEVER, UNLIMITED_S, UNPLANNED

STALLED: Final = 0.10
"""Share of time in which processes wait for memory; from here on there is too little of it."""
_WAITING: Final = frozenset({ReasonCode.RESOURCES, ReasonCode.PRIORITY})


@dataclass(frozen=True)
class Host:
    """A running job without a guest, which may have one.

    Attributes:
        row: in `Snapshot.running`.
        nodes: (n,) int32 ascending.
        cpus: of each node, the least.
        spare_mib: memory that a guest may ask for on each node.
        rules: of its partition.
        until_s: when the plan first uses one of its nodes for another job; NEVER: not.
    """

    row: int
    nodes: NDArray[np.int32]
    cpus: int
    spare_mib: int
    rules: CoschedulingRules
    until_s: int


@dataclass(frozen=True)
class Guest:
    """A waiting job as the guest of one host.

    Attributes:
        row: of the plan.
        job: row in `Snapshot.jobs`.
        host: where.
        partition: in which it starts.
        tasks: (n,) int32 on each node; 0 for jobs without tasks.
        limit_s: its time limit.
    """

    row: int
    job: int
    host: Host
    partition: int
    tasks: NDArray[np.int32]
    limit_s: int


class Slots:
    """Hosts and guests of one snapshot and the plan for it."""

    def __init__(self, snapshot: Snapshot, site: Site, plan: Plan, *, delays: bool = False) -> None:
        self.snapshot, self.plan, self.delays = snapshot, plan, delays
        self._rules = [
            rules_of(site.coscheduling, part.name) if part.shared and part.up else None
            for part in snapshot.partitions
        ]

    @property
    def open(self) -> bool:
        """Whether jobs share nodes in any partition."""
        return any(rules is not None for rules in self._rules)

    def rules(self, partition: int) -> CoschedulingRules | None:
        """Of a partition by index; None: nobody shares there."""
        return self._rules[partition] if partition >= 0 else None

    @cached_property
    def hosts(self) -> tuple[Host, ...]:
        """All hosts, in the order of the running jobs."""
        if not self.open:
            return ()
        running = self.snapshot.running
        busy = {row for pair in pairs(running).items() for row in pair}
        found = (self._host(row) for row in range(len(running)) if row not in busy)
        return tuple(host for host in found if host is not None)

    def _host(self, row: int) -> Host | None:
        running = self.snapshot.running
        rules = self.rules(int(running.partition[row]))
        if rules is None or not rules.allows_host(int(running.coschedule[row])):
            return None
        if running.exclusive[row] or running.adapting[row] or running.releasing[row]:
            return None
        if running.memory_stall[row] > STALLED or not is_measured(self.snapshot, row):
            return None
        held = slice(int(running.indptr[row]), int(running.indptr[row + 1]))
        nodes, use = running.nodes[held], running.use[held]
        capacity = self.snapshot.nodes.capacity[nodes]
        own = np.maximum(use[:, MEMORY_MIB], int(running.peak_mib[row]))
        whole = len(nodes) > 0 and (use[:, CPUS] == capacity[:, CPUS]).all()
        if not whole or use[:, MEMORY_MIB + 1 :].any() or not own.all():
            return None
        if not self.snapshot.nodes.usable[nodes].all():
            return None
        spare = capacity[:, MEMORY_MIB] * (1 - rules.memory_margin) - own
        return Host(
            row, nodes, int(capacity[:, CPUS].min()), int(np.floor(spare.min())), rules,
            int(self._used_from_s[nodes].min()),
        )  # fmt: skip

    @cached_property
    def _used_from_s(self) -> NDArray[np.int64]:
        """(n_nodes,) the first start that the plan has on each node; NEVER: none."""
        plan = self.plan
        found = np.full(len(self.snapshot.nodes), NEVER, dtype=np.int64)
        starts = np.repeat(plan.start_s, np.diff(plan.indptr))
        np.minimum.at(found, plan.nodes, starts)
        return found

    @cached_property
    def _rows(self) -> tuple[int, ...]:
        """Rows of the plan that may become guests, in the order of the plan."""
        plan, jobs = self.plan, self.snapshot.jobs
        moldable = set(plan.start_widths.job.tolist())
        left = self._startable()
        found = []
        for row, (job, reason) in enumerate(zip(plan.job.tolist(), plan.reasons, strict=True)):
            if reason is None or reason.code not in _WAITING or job in moldable:
                continue
            if not jobs.requeue[job] or jobs.exclusive[job] or jobs.hold[job] != Hold.NONE:
                continue
            if jobs.chunks[job] is not None or jobs.licences[job].any() or jobs.fixed[job]:
                continue
            if jobs.controller_chooses[job] or jobs.reservation[job] >= 0 or jobs.deadline_s[job]:
                continue
            if jobs.begin_s[job] > plan.now_s or left.get(job, 1) <= 0:
                continue
            found.append(row)
        return tuple(found)

    @property
    def anybody_waits(self) -> bool:
        """Whether there is a waiting job that may be somebody's guest."""
        return bool(self._rows)

    def _startable(self) -> dict[int, int]:
        """Row of each array to the number of tasks that may start besides those of the plan."""
        plan, jobs = self.plan, self.snapshot.jobs
        left = {
            job: int(jobs.array_startable[job]) for job in jobs.array_tasks.nonzero()[0].tolist()
        }
        if left:
            for job in plan.job[plan.starts_now].tolist():
                if job in left:
                    left[job] -= 1
        return left

    def start(self, guest: Guest) -> GuestStart:
        """The start of a guest, for the plan."""
        snapshot = self.snapshot
        return GuestStart(
            row=guest.row,
            job_id=str(snapshot.jobs.id[guest.job]),
            host_id=str(snapshot.running.id[guest.host.row]),
            nodes=guest.host.nodes,
            tasks=guest.tasks,
            partition=guest.partition,
            end_s=self.plan.now_s + guest.limit_s,
        )

    def guests(self, host: Host) -> Iterator[Guest]:
        """The waiting jobs that may be a host's guest, in the order of the plan."""
        for row in self._rows:
            found = self._guest(host, row)
            if found is not None:
                yield found

    def _guest(self, host: Host, row: int) -> Guest | None:
        plan, jobs, running = self.plan, self.snapshot.jobs, self.snapshot.running
        job, width = int(plan.job[row]), len(host.nodes)
        if not jobs.min_nodes[job] <= width <= jobs.max_nodes[job]:
            return None
        if not WidthRule(int(jobs.width_rule[job])).allows(width):
            return None
        if not host.rules.together(
            (str(running.user[host.row]), str(running.account[host.row])),
            (str(jobs.user[job]), str(jobs.account[job])),
        ):
            return None
        partition = int(running.partition[host.row])
        if not self._admits(host, job, partition):
            return None
        part = self.snapshot.partitions[partition]
        limit_s = int(jobs.time_limit_s[job]) or part.default_time_s or part.max_time_s
        limit_s = limit_s or UNLIMITED_S
        free = self.delays and not jobs.array_tasks[job]
        until_s = NEVER if free else self._until_s(host, row)
        if part.max_time_s and limit_s > part.max_time_s:
            return None
        if plan.now_s + limit_s > until_s or jobs.least_time_s[job] not in (0, limit_s):
            return None
        tasks = self._tasks(host, job)
        if tasks is None or not self._allows(host, job):
            return None
        want = jobs.per_node[job] + jobs.per_task[job] * tasks[:, None]
        fits = want[:, MEMORY_MIB].min() > 0 and want[:, MEMORY_MIB].max() <= host.spare_mib
        if not fits or want[:, CPUS].max() > host.cpus or want[:, MEMORY_MIB + 1 :].any():
            return None
        return Guest(row, job, host, partition, tasks, limit_s)

    @cached_property
    def _eligibility(self) -> Eligibility:
        return Eligibility(self.snapshot)

    def _allows(self, host: Host, job: int) -> bool:
        """Rule 5."""
        if not set(self.snapshot.jobs.required[job]) <= set(host.nodes.tolist()):
            return False
        (found,) = self._eligibility.alternatives(np.array([job], dtype=np.int64))
        masks = self._eligibility.classes
        return not isinstance(found, Reason) and any(
            masks.mask(each.class_)[host.nodes].all() for each in found
        )

    def _until_s(self, host: Host, row: int) -> int:
        """As `Host.until_s`, without what the row itself is planned for."""
        plan = self.plan
        if plan.start_s[row] in (NEVER, UNPLANNED) or plan.start_s[row] > host.until_s:
            return host.until_s
        if not np.isin(plan.nodes_of(row), host.nodes).any():
            return host.until_s
        others = np.repeat(np.arange(len(plan)), np.diff(plan.indptr))
        there = np.isin(plan.nodes, host.nodes) & (others != row)
        return int(plan.start_s[others[there]].min(initial=NEVER))

    def _admits(self, host: Host, job: int, partition: int) -> bool:
        """Whether a job may be a guest in its host's partition."""
        jobs, part = self.snapshot.jobs, self.snapshot.partitions[partition]
        if partition not in jobs.partitions[job]:
            return False
        if not host.rules.allows_guest(int(jobs.coschedule[job])):
            return False
        least, most = part.min_nodes, part.max_nodes or len(self.snapshot.nodes)
        return least <= len(host.nodes) <= most and bool(np.isin(host.nodes, part.nodes).all())

    def _tasks(self, host: Host, job: int) -> NDArray[np.int32] | None:
        """The job's tasks, spread over the nodes evenly; None: they do not fit."""
        jobs, width = self.snapshot.jobs, len(host.nodes)
        tasks, most = int(jobs.tasks[job]), int(jobs.max_tasks_per_node[job])
        found = np.full(width, tasks // width, dtype=np.int32)
        found[: tasks % width] += 1
        if tasks and (tasks < width or (most and found[0] > most)):
            return None
        return found
