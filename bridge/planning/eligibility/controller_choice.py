# SPDX-License-Identifier: Apache-2.0
"""Determines the nodes from which a controller may choose when it places a job itself.

Some requests contain more than the model has, and sometimes the model is wrong about a node. The
controller then chooses, by its own rules, among nodes that are not promised to other jobs.

Rules
    1. The nodes are usable, in a partition that the job named, not excluded, and enough for it.
       They include its required nodes; some of these, if it may have named more than it needs.
    2. Nodes on which another job is planned to start before this job's time limit would end are
       left out; for a job without a limit, all nodes with a planned start. A limit that may be cut
       (`JobTable.min_time_s`) is that of its planned start, or without one the longest that ends
       before other jobs' planned starts and reservations on enough nodes. If the job is to start
       now, later rows of the plan are ignored that also start now on nodes of the controller's
       choice; otherwise two such jobs would block each other.
    3. Licences that another job's planned start needs before then are not taken. A job that is
       planned to start now has them in the plan.
    4. There is no choice if a limit of the site may count the job, or if the site has FreePools,
       protections or bounds of power, because the effect of the controller's choice is not known in
       advance. Under limits and FreePools a job that is planned to start now may have its planned
       nodes, and others that have no more of anything and that no FreePool keeps: there it cannot
       use more than was planned. If the controller finds none among them, the next plan avoids one
       of the planned nodes (`bridge.rpc.reported.refusals`).
    5. Nodes without a free CPU are left out, except for jobs that ask for more than the model has
       (`beyond_model`), as their partition may oversubscribe CPUs.
    6. There is no choice for requests that only the planner can lay out: chunks, width rules, fixed
       starts, and several nodes if the switches are known, because a job must stay in one fabric
       and may wait for few leaf switches.
    7. A place policy may rank nodes of equal weight by their size alone (`by_size`), which means
       nothing but to keep large nodes free. A job that takes whole nodes gets another number of
       CPUs then than from the controller's own scheduler. If it is planned to start now, on as many
       nodes as it requests, in a partition whose nodes differ in CPUs, the controller chooses;
       but not while an extension has columns of nodes, by which it may rank them.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bridge.model.job import WidthRule
from bridge.model.node import CPUS
from bridge.model.parts import NO_PARTS
from bridge.model.plan import Plan
from bridge.model.rules.limits import EACH, ConsumerKind
from bridge.model.rules.site import Site
from bridge.model.snapshot import Snapshot
from bridge.planning.eligibility.alternatives import limits_to_try
from bridge.planning.requests.node_sets import members
from bridge.units import NEVER, UNLIMITED_S, UNPLANNED

_Starts = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]


@dataclass(frozen=True, slots=True)
class ControllerChoice:
    """A job, and where the controller may start it now.

    Attributes:
        job: row in `Snapshot.jobs`.
        partition: index into `Snapshot.partitions`.
        nodes: (n,) int32, ascending: it may take any of them.
        time_limit_s: to start it with, shorter than its own; 0: its own.
        avoidable: a planned node, if others may do that are not among `nodes`; otherwise -1.
    """

    job: int
    partition: int
    nodes: NDArray[np.int32]
    time_limit_s: int = 0
    avoidable: int = -1


def beyond_model(snapshot: Snapshot) -> NDArray[np.bool_]:
    """(n_jobs,) jobs whose request the model lacks; few switches, too, if switches are unknown."""
    jobs = snapshot.jobs
    chooses: NDArray[np.bool_] = jobs.controller_chooses
    return chooses | (jobs.switches > 0) if snapshot.topology is None else chooses


class Chooser:
    """The nodes that one plan leaves free; finds choices for some of its jobs."""

    def __init__(
        self, snapshot: Snapshot, site: Site, plan: Plan, *, by_size: bool = False
    ) -> None:
        self._snapshot, self._site, self._plan = snapshot, site, plan
        self._by_size = by_size

    def choices(self, jobs: Iterable[int]) -> Iterator[ControllerChoice]:
        """Yields for each job the first of its partitions that has enough nodes."""
        for job in jobs:
            if self._is_the_planners(job) or self._keeps_licences(job):
                continue
            found = self._choice(job)
            if found is not None:
                yield found

    def start(self, row: int) -> ControllerChoice | None:
        """Returns where the controller may make a start that is planned for now.

        Returns:
            None: on the planned nodes alone.
        """
        plan, jobs = self._plan, self._snapshot.jobs
        job, partition, planned = int(plan.job[row]), int(plan.partition[row]), plan.nodes_of(row)
        if self._is_the_planners(job):
            return None
        found = self._choice(job)
        if found is not None or jobs.max_nodes[job] > len(planned):
            return found
        own_s = self._limit_s(job, partition)
        cut = tuple(self._limits_s(job, partition, own_s))
        limit_s = cut[0] if cut else own_s
        free = self._free_nodes(job, partition, limit_s, unreserved=bool(cut))
        free &= self._exchangeable(planned)
        free[planned] = True
        nodes = np.flatnonzero(free).astype(np.int32)
        shorter_s = limit_s if limit_s < own_s else 0
        return ControllerChoice(job, partition, nodes, shorter_s, avoidable=int(planned[0]))

    def instead(self, row: int) -> ControllerChoice | None:
        """Returns where the controller may make a start that the planner could place, too (7).

        Args:
            row: the row of the plan; planned for now.

        Returns:
            None: on the planned nodes alone.
        """
        plan = self._plan
        job, partition, planned = int(plan.job[row]), int(plan.partition[row]), plan.nodes_of(row)
        if not self._has_nodes_by_size(job, partition, len(planned)):
            return None
        limit_s = self._limit_s(job, partition)
        free = self._free_nodes(job, partition, limit_s, unreserved=True)
        name, avoidable = self._snapshot.partitions[partition].name, -1
        if self._site.rules.free_pools or self._may_be_limited(job, name):
            free &= self._exchangeable(planned)
            avoidable = int(planned[0])
        free[planned] = True
        nodes = np.flatnonzero(free).astype(np.int32)
        if len(nodes) <= len(planned):
            return None
        return ControllerChoice(job, partition, nodes, avoidable=avoidable)

    def _has_nodes_by_size(self, job: int, partition: int, width: int) -> bool:
        """Whether only the size of nodes decided which ones a planned job has (7)."""
        snapshot, jobs = self._snapshot, self._snapshot.jobs
        part = snapshot.partitions[partition]
        return (
            self._by_size
            and bool(jobs.exclusive[job] or part.exclusive)
            and not part.shared
            and int(jobs.min_nodes[job]) == int(jobs.max_nodes[job]) == width
            and not (jobs.min_time_s[job] or jobs.deadline_s[job])
            and snapshot.nodes.parts is NO_PARTS
            and self._sizes_differ[partition]
            and not self._is_the_planners(job)
        )

    @cached_property
    def _sizes_differ(self) -> tuple[bool, ...]:
        """For each partition, whether its usable nodes differ in CPUs."""
        nodes = self._snapshot.nodes
        usable = (part.nodes[nodes.usable[part.nodes]] for part in self._snapshot.partitions)
        return tuple(len(set(nodes.capacity[there, CPUS].tolist())) > 1 for there in usable)

    def _is_the_planners(self, job: int) -> bool:
        """Whether only the planner can lay a job out, or knows whether a start is allowed."""
        snapshot, jobs, site = self._snapshot, self._snapshot.jobs, self._site
        if site.binds_starts or site.protect:
            return True
        if jobs.chunks[job] is not None or jobs.width_rule[job] != WidthRule.ANY or jobs.fixed[job]:
            return True
        several = jobs.max_nodes[job] > 1 or jobs.switches[job] > 0
        return snapshot.topology is not None and bool(several)

    def _choice(self, job: int) -> ControllerChoice | None:
        snapshot, jobs = self._snapshot, self._snapshot.jobs
        if self._site.rules.free_pools:
            return None
        for partition in jobs.partitions[job]:
            part = snapshot.partitions[partition]
            if not part.up or self._may_be_limited(job, part.name):
                continue
            own_s = self._limit_s(job, partition)
            for limit_s in self._limits_s(job, partition, own_s):
                nodes = self._nodes(job, partition, limit_s, unreserved=True)
                if nodes is not None:
                    cut_s = limit_s if limit_s < own_s else 0
                    return ControllerChoice(job, partition, nodes, cut_s)
            nodes = self._nodes(job, partition, own_s, unreserved=False)
            if nodes is not None:
                return ControllerChoice(job, partition, nodes)
        return None

    def _limits_s(self, job: int, partition: int, own_s: int) -> Iterable[int]:
        """The time limits to be tried for a job whose limit may be cut, longest first."""
        jobs = self._snapshot.jobs
        if not jobs.min_time_s[job] or jobs.deadline_s[job]:
            return ()
        max_s = min(own_s, self._snapshot.partitions[partition].max_time_s or own_s, UNLIMITED_S)
        planned_s = self._planned_limits_s.get(job)
        if planned_s is not None:
            return (min(planned_s, max_s),)
        return limits_to_try(max_s, min(int(jobs.min_time_s[job]), max_s))

    def _nodes(
        self, job: int, partition: int, limit_s: int, *, unreserved: bool
    ) -> NDArray[np.int32] | None:
        """The nodes of one partition that are free for a time limit; None: not enough."""
        jobs = self._snapshot.jobs
        free = self._free_nodes(job, partition, limit_s, unreserved=unreserved)
        named = free[list(jobs.required[job])]
        there = named.all() or (self._beyond[job] and named.any())
        if free.sum() < max(int(jobs.min_nodes[job]), 1) or not there:
            return None
        return np.flatnonzero(free).astype(np.int32)

    def _free_nodes(
        self, job: int, partition: int, limit_s: int, *, unreserved: bool
    ) -> NDArray[np.bool_]:
        """(n_nodes,) those of one partition that are free for a time limit (1, 2, 5)."""
        snapshot, jobs = self._snapshot, self._snapshot.jobs
        end_s = min(snapshot.now_s + limit_s, NEVER)
        free = self._free_until(job, end_s)
        if not self._beyond[job]:
            free = free & self._has_free_cpus
        if unreserved:
            free = free & self._unreserved_until(int(jobs.reservation[job]), end_s)
        in_partition = np.zeros(len(free), dtype=bool)
        in_partition[snapshot.partitions[partition].nodes] = True
        free = free & in_partition
        free[list(jobs.excluded[job])] = False
        return free

    def _exchangeable(self, planned: NDArray[np.int32]) -> NDArray[np.bool_]:
        """(n_nodes,) those on which a job can use no more than on the planned ones (4)."""
        capacity = self._snapshot.nodes.capacity
        smaller = (capacity <= capacity[planned].min(axis=0)).all(axis=1)
        return np.asarray(smaller & ~self._kept_nodes)

    @cached_property
    def _kept_nodes(self) -> NDArray[np.bool_]:
        """(n_nodes,) those that a FreePool keeps, at whatever time and for whomever."""
        kept = np.zeros(len(self._snapshot.nodes), dtype=bool)
        for pool in self._site.rules.free_pools:
            if pool.nodes is not None:
                kept |= members(pool.nodes, self._snapshot)
        return kept

    def _unreserved_until(self, own: int, end_s: int) -> NDArray[np.bool_]:
        """Nodes without a reservation of others before an instant."""
        snapshot = self._snapshot
        found = np.ones(len(snapshot.nodes), dtype=bool)
        for at, reservation in enumerate(snapshot.reservations):
            if at != own and reservation.start_s < end_s and reservation.end_s > snapshot.now_s:
                found[reservation.nodes] = False
        return found

    @cached_property
    def _planned_limits_s(self) -> dict[int, int]:
        """With which time limits the plan starts jobs now, by job."""
        plan, rows = self._plan, self._plan.starts_now
        limits_s = (plan.end_s - plan.start_s)[rows]
        return dict(zip(plan.job[rows].tolist(), limits_s.tolist(), strict=True))

    def _limit_s(self, job: int, partition: int) -> int:
        """The time limit of the job; NEVER: it has none."""
        part = self._snapshot.partitions[partition]
        limit_s = int(self._snapshot.jobs.time_limit_s[job]) or part.default_time_s
        return limit_s or part.max_time_s or NEVER

    def _free_until(self, job: int, end_s: int) -> NDArray[np.bool_]:
        """Usable nodes without a planned start of another job before an instant (rule 2)."""
        free = self._without(self._planned, job) >= end_s
        here = self._own_now(job)
        if here.any():
            firm = self._without(self._firm, job) >= end_s
            before = (self._first_choosing < self._order[job]) & here
            free |= here & firm & ~before
        return self._snapshot.nodes.usable & free

    def _without(self, starts: _Starts, job: int) -> NDArray[np.int64]:
        """For each node the first planned start of another job."""
        first_s, of, next_s = starts
        return np.where(of == job, next_s, first_s)

    def _own_now(self, job: int) -> NDArray[np.bool_]:
        """The nodes on which the plan starts a job whose nodes the controller chooses now."""
        job_of, nodes = self._choosing
        here = np.zeros(len(self._snapshot.nodes), dtype=bool)
        here[nodes[job_of == job]] = True
        return here

    @cached_property
    def _order(self) -> dict[int, int]:
        """Where in the plan jobs come first whose nodes the controller chooses now."""
        jobs = self._choosing[0].tolist()
        return {job: at for at, job in enumerate(dict.fromkeys(jobs))}

    @cached_property
    def _first_choosing(self) -> NDArray[np.int64]:
        """For each node the first of those jobs there, in the plan's order."""
        job_of, nodes = self._choosing
        first = np.full(len(self._snapshot.nodes), len(job_of), dtype=np.int64)
        np.minimum.at(
            first, nodes, np.array([self._order[job] for job in job_of.tolist()], np.int64)
        )
        return first

    @cached_property
    def _choosing(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Starts now whose nodes the controller chooses: (job, node) pairs in the plan's order."""
        job, nodes, start_s = self._pairs
        chosen = (start_s == self._plan.now_s) & self._beyond[job]
        return job[chosen], nodes[chosen]

    @cached_property
    def _beyond(self) -> NDArray[np.bool_]:
        """(n_jobs,) whether a job asks for more than the model has."""
        return beyond_model(self._snapshot)

    @cached_property
    def _pairs(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """All planned starts: job, node, and when."""
        plan = self._plan
        width = np.diff(plan.indptr)
        start_s, job = np.repeat(plan.start_s, width), np.repeat(plan.job, width)
        has = (start_s != NEVER) & (start_s != UNPLANNED)
        return job[has].astype(np.int64), plan.nodes[has].astype(np.int64), start_s[has]

    @cached_property
    def _planned(self) -> _Starts:
        return self._firsts(*self._pairs)

    @cached_property
    def _firm(self) -> _Starts:
        """Planned starts of jobs that are for later, or whose nodes the planner chooses."""
        job, nodes, start_s = self._pairs
        kept = (start_s != self._plan.now_s) | ~self._beyond[job]
        return self._firsts(job[kept], nodes[kept], start_s[kept])

    def _firsts(
        self, job: NDArray[np.int64], nodes: NDArray[np.int64], start_s: NDArray[np.int64]
    ) -> _Starts:
        """For each node its first start, whose that is, and the first of another job."""
        n_nodes = len(self._snapshot.nodes)
        first_s = np.full(n_nodes, NEVER, dtype=np.int64)
        np.minimum.at(first_s, nodes, start_s)
        of = np.full(n_nodes, -1, dtype=np.int64)
        is_first = start_s == first_s[nodes]
        of[nodes[is_first]] = job[is_first]
        next_s = np.full(n_nodes, NEVER, dtype=np.int64)
        other = job != of[nodes]
        np.minimum.at(next_s, nodes[other], start_s[other])
        return first_s, of, next_s

    @cached_property
    def _has_free_cpus(self) -> NDArray[np.bool_]:
        nodes, running = self._snapshot.nodes, self._snapshot.running
        used = np.zeros(len(nodes), dtype=np.int64)
        np.add.at(used, running.nodes, running.use[:, CPUS])
        whole = np.repeat(running.exclusive, np.diff(running.indptr))
        free: NDArray[np.bool_] = used < nodes.capacity[:, CPUS]
        free[running.nodes[whole]] = False
        return free

    def _keeps_licences(self, job: int) -> bool:
        """Rule 3, whatever the times: such jobs wait for their planned start."""
        wanted = self._snapshot.jobs.licences[job] > 0
        if not wanted.any():
            return False
        plan = self._plan
        planned = (plan.start_s != NEVER) & (plan.start_s != UNPLANNED) & (plan.job != job)
        others = self._snapshot.jobs.licences[plan.job[planned]]
        kept = any(kept.licences.any() for kept in self._snapshot.reservations)
        return kept or bool((others[:, wanted] > 0).any())

    def _may_be_limited(self, job: int, partition: str) -> bool:
        """Whether a limit of the site may count a job (rule 4); may be true without need."""
        jobs = self._snapshot.jobs
        names = {
            ConsumerKind.USER: jobs.user[job],
            ConsumerKind.ACCOUNT: jobs.account[job],
            ConsumerKind.PARTITION: partition,
        }
        return any(limit.name in (EACH, names[limit.kind]) for limit in self._site.rules.limits)
