# SPDX-License-Identifier: Apache-2.0
"""Running jobs that may have a guest, and the waiting jobs that may be their guests.

Rules
    1. Hosts and guests meet the rules of `check.py`, which is independent code. The extension drops
       guests that the check refuses.
    2. Only jobs that wait for nodes or for other jobs are considered, and none that requests
       licences or a reservation, or whose width or limit is decided elsewhere.
    3. A guest ends, by its time limit, before the plan uses its nodes for another job, so that no
       planned start moves. A policy may waive this rule (`delays`), except for tasks of arrays.
    4. A host gets a guest only while it is measured, as then an agent can limit the guest, and not
       while its processes wait for memory (`STALLED`).
    5. A guest uses as many of its host's nodes as it may. Nodes that it may not use (features,
       excluded and required nodes), that lack memory, or that have a guest already are left out. If
       too few are left, the job is passed over.
    6. A guest takes the first of the remaining nodes, or (`spares_head`) those that its host does
       not use and then the last ones, as a sequential stage runs on the host's first node alone.
    7. Nodes are shared whole: no node has two guests, however few CPUs they request. Slurm lets at
       most two jobs share a node.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bridge.extensions.sharing.counting import as_reported, pairs
from bridge.extensions.sharing.part import GuestStart
from bridge.extensions.sharing.rules import CoschedulingRules, rules_of, sharing_rules
from bridge.extensions.sharing.seen import is_measured
from bridge.model.job import Hold, WidthRule
from bridge.model.node import CPUS, MEMORY_MIB
from bridge.model.plan import Plan
from bridge.model.reasons import Reason, ReasonCode
from bridge.model.rules.site import Site
from bridge.model.snapshot import Snapshot
from bridge.planning.eligibility.alternatives import Eligibility
from bridge.units import NEVER, UNLIMITED_S, UNPLANNED

STALLED: Final = 0.10
"""Share of time in which processes wait for memory, from which on memory is short."""
LOOK_S: Final = 10
"""Time after which a started job has been measured."""
_WAITING: Final = frozenset({ReasonCode.RESOURCES, ReasonCode.PRIORITY})


@dataclass(frozen=True)
class Host:
    """A running job, and its nodes that may have a guest.

    Attributes:
        row: in `Snapshot.running`.
        nodes: (n,) int32 ascending: without a guest.
        cpus: (n,) of each of them.
        spare_mib: (n,) memory that a guest may ask for there.
        width: how many nodes it has, those with guests included.
    """

    row: int
    nodes: NDArray[np.int32]
    cpus: NDArray[np.int64]
    spare_mib: NDArray[np.int64]
    rules: CoschedulingRules
    width: int

    def without(self, nodes: NDArray[np.int32]) -> "Host":
        """The same host after a guest has got these nodes."""
        left = ~np.isin(self.nodes, nodes)
        return replace(
            self, nodes=self.nodes[left], cpus=self.cpus[left], spare_mib=self.spare_mib[left]
        )


@dataclass(frozen=True)
class Guest:
    """A waiting job as the guest of one host.

    Attributes:
        job: row in `Snapshot.jobs`.
        nodes: (n,) int32 ascending: of the host's.
        tasks: (n,) int32 on each node; 0 for jobs without tasks.
    """

    row: int
    job: int
    host: Host
    nodes: NDArray[np.int32]
    cpus: int
    partition: int
    tasks: NDArray[np.int32]
    limit_s: int


class Slots:
    """Hosts and guests of one snapshot and the plan for it."""

    def __init__(
        self,
        snapshot: Snapshot,
        site: Site,
        plan: Plan,
        *,
        delays: bool = False,
        spares_head: bool = False,
    ) -> None:
        """Reads nothing yet.

        Args:
            plan: without guests.
            delays: rule 3.
            spares_head: rule 6.
        """
        self.snapshot, self.plan, self.delays = snapshot, plan, delays
        self._spares_head = spares_head
        self._rules = [
            rules_of(sharing_rules(site), part.name) if part.shared and part.up else None
            for part in snapshot.partitions
        ]

    @property
    def open(self) -> bool:
        """Whether jobs share nodes in any partition."""
        return any(rules is not None for rules in self._rules)

    def rules(self, partition: int) -> CoschedulingRules | None:
        """The rules of a partition by index; None: no jobs share nodes there."""
        return self._rules[partition] if partition >= 0 else None

    @cached_property
    def hosts(self) -> tuple[Host, ...]:
        """All hosts, in the order of the running jobs."""
        if not self.open:
            return ()
        running, guests = self.snapshot.running, pairs(self.snapshot.running)
        shared = np.zeros(len(self.snapshot.nodes), dtype=bool)
        for row in guests:
            shared[running.nodes[running.indptr[row] : running.indptr[row + 1]]] = True
        found = (self._host(row, shared) for row in range(len(running)) if row not in guests)
        return tuple(host for host in found if host is not None)

    def _host(self, row: int, shared: NDArray[np.bool_]) -> Host | None:
        """A running job as a host; None: it cannot be one.

        Args:
            row: nobody's guest.
            shared: (n_nodes,) whether a guest is there.
        """
        running = self.snapshot.running
        rules = self.rules(int(running.partition[row]))
        if rules is None or not rules.allows_host(int(running.coschedule[row])):
            return None
        if running.exclusive[row] or running.adapting[row] or running.releasing[row]:
            return None
        if running.memory_stall[row] > STALLED or not is_measured(self.snapshot, row):
            return None
        held = slice(int(running.indptr[row]), int(running.indptr[row + 1]))
        nodes, use = running.nodes[held], self._reported[held]
        capacity = self.snapshot.nodes.capacity[nodes]
        own = np.maximum(use[:, MEMORY_MIB], int(running.peak_mib[row]))
        whole = len(nodes) > 0 and (use[:, CPUS] == capacity[:, CPUS]).all()
        if not whole or use[:, MEMORY_MIB + 1 :].any() or not own.all():
            return None
        free = self.snapshot.nodes.usable[nodes] & ~shared[nodes]
        if not free.any():
            return None
        spare = np.floor(capacity[:, MEMORY_MIB] * (1 - rules.memory_margin) - own)
        return Host(
            row, nodes[free], capacity[free, CPUS], spare[free].astype(np.int64), rules, len(nodes)
        )

    @cached_property
    def _reported(self) -> NDArray[np.int64]:
        return as_reported(self.snapshot.running)

    @cached_property
    def _used_from_s(self) -> NDArray[np.int64]:
        """(n_nodes,) the first planned start on each node; NEVER: none."""
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
        """Whether a waiting job may be a guest."""
        return bool(self._rows)

    @property
    def look_again_s(self) -> int:
        """When jobs that start now or are not yet measured may be hosts; NEVER: no guest waits."""
        if not self.open or not self._rows:
            return NEVER
        running = self.snapshot.running
        news = len(self.plan.starts_now) > 0 or any(
            not running.host_id[row] and not is_measured(self.snapshot, row)
            for row in range(len(running))
            if (rules := self.rules(int(running.partition[row]))) is not None
            and rules.allows_host(int(running.coschedule[row]))
        )
        return self.snapshot.now_s + LOOK_S if news else NEVER

    def _startable(self) -> dict[int, int]:
        """Row of each array to the number of tasks that may start besides the planned ones."""
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
            nodes=guest.nodes,
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

    def first_fit(self, host: Host, taken: set[int]) -> Iterator[Guest]:
        """The first guest for a host, then the first one for the remaining nodes, and so on.

        Args:
            host: with free nodes.
            taken: rows of jobs that start elsewhere; those yielded are added.
        """
        for row in self._rows:
            if not len(host.nodes):
                return
            guest = None if row in taken else self._guest(host, row)
            if guest is not None:
                taken.add(row)
                host = host.without(guest.nodes)
                yield guest

    def _guest(self, host: Host, row: int) -> Guest | None:
        plan, jobs, running = self.plan, self.snapshot.jobs, self.snapshot.running
        job = int(plan.job[row])
        if jobs.min_nodes[job] > len(host.nodes) or not host.rules.together(
            (str(running.user[host.row]), str(running.account[host.row])),
            (str(jobs.user[job]), str(jobs.account[job])),
        ):
            return None
        partition = int(running.partition[host.row])
        if partition not in jobs.partitions[job]:
            return None
        if not host.rules.allows_guest(int(jobs.coschedule[job])):
            return None
        part = self.snapshot.partitions[partition]
        limit_s = int(jobs.time_limit_s[job]) or part.default_time_s or part.max_time_s
        limit_s = limit_s or UNLIMITED_S
        if part.max_time_s and limit_s > part.max_time_s:
            return None
        if jobs.min_time_s[job] not in (0, limit_s):
            return None
        free = self.delays and not jobs.array_tasks[job]
        in_time = free or self._until_s(host, row) >= plan.now_s + limit_s
        for mask in self._masks(job):
            may = in_time & mask[host.nodes] & self._in_partition[partition][host.nodes]
            if (found := self._placed(host, job, may)) is not None:
                nodes, cpus, tasks = found
                return Guest(row, job, host, nodes, cpus, partition, tasks, limit_s)
        return None

    def _placed(
        self, host: Host, job: int, may: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int32], int, NDArray[np.int32]] | None:
        """Nodes, the least CPUs of one, and tasks of a guest (rules 5 and 6); None: no room.

        Args:
            may: (n,) which of the host's nodes it may use.
        """
        jobs, part = self.snapshot.jobs, self.snapshot.partitions[self._partition(host)]
        maximum = min(int(jobs.max_nodes[job]), int(may.sum()), part.max_nodes or len(may))
        required = np.isin(host.nodes, jobs.required[job])
        if required.sum() < len(set(jobs.required[job])):
            return None
        for width in range(maximum, max(int(jobs.min_nodes[job]), part.min_nodes, 1) - 1, -1):
            tasks = self._tasks(job, width)
            if tasks is None or not WidthRule(int(jobs.width_rule[job])).allows(width):
                continue
            want = jobs.per_node[job] + jobs.per_task[job] * tasks[:, None]
            if want[:, MEMORY_MIB].min() <= 0 or want[:, MEMORY_MIB + 1 :].any():
                return None
            room = may & (host.spare_mib >= want[:, MEMORY_MIB].max())
            room &= host.cpus >= want[:, CPUS].max()
            at = np.flatnonzero(room & ~required)
            first = self._spared(host, at) if self._spares_head else at
            chosen = np.sort(np.concatenate((np.flatnonzero(room & required), first))[:width])
            if len(chosen) == width and (
                required.sum() == np.isin(chosen, required.nonzero()).sum()
            ):
                return host.nodes[chosen], int(host.cpus[chosen].min()), tasks
        return None

    def _spared(self, host: Host, at: NDArray[np.int64]) -> NDArray[np.int64]:
        """Places in the host's nodes, those first that a guest should take (rule 6)."""
        unused = np.isin(host.nodes[at], self.snapshot.running.unused_nodes[host.row])
        return at[np.lexsort((-at, ~unused))]

    def _partition(self, host: Host) -> int:
        return int(self.snapshot.running.partition[host.row])

    @cached_property
    def _in_partition(self) -> list[NDArray[np.bool_]]:
        """(n_nodes,) for each partition, whether a node is in it."""
        found = [np.zeros(len(self.snapshot.nodes), dtype=bool) for _ in self.snapshot.partitions]
        for mask, part in zip(found, self.snapshot.partitions, strict=True):
            mask[part.nodes] = True
        return found

    @cached_property
    def _eligibility(self) -> Eligibility:
        return Eligibility(self.snapshot)

    def _masks(self, job: int) -> list[NDArray[np.bool_]]:
        """(n_nodes,) for each alternative of a job, the nodes that it may use."""
        (found,) = self._eligibility.alternatives(np.array([job], dtype=np.int64))
        if isinstance(found, Reason):
            return []
        return [self._eligibility.classes.mask(each.class_) for each in found]

    def _until_s(self, host: Host, row: int) -> NDArray[np.int64]:
        """(n,) when the plan first uses each of a host's nodes for another job than the row's."""
        plan = self.plan
        found: NDArray[np.int64] = self._used_from_s[host.nodes]
        if plan.start_s[row] in (NEVER, UNPLANNED):
            return found
        own = np.isin(host.nodes, plan.nodes_of(row))
        if not (own & (found >= plan.start_s[row])).any():
            return found
        others = np.repeat(np.arange(len(plan)), np.diff(plan.indptr)) != row
        found = found.copy()
        for at in np.flatnonzero(own).tolist():
            there = others & (plan.nodes == host.nodes[at])
            starts = np.repeat(plan.start_s, np.diff(plan.indptr))
            found[at] = int(starts[there].min(initial=NEVER))
        return found

    def _tasks(self, job: int, width: int) -> NDArray[np.int32] | None:
        """The job's tasks, spread over so many nodes evenly; None: they do not fit."""
        jobs = self.snapshot.jobs
        tasks, maximum = int(jobs.tasks[job]), int(jobs.max_tasks_per_node[job])
        found = np.full(width, tasks // width, dtype=np.int32)
        found[: tasks % width] += 1
        if tasks and (tasks < width or (maximum and found[0] > maximum)):
            return None
        return found
