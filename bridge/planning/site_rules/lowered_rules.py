# SPDX-License-Identifier: Apache-2.0
"""A site's limits, FreePools and further bounds, lowered for one snapshot.

    lowered = lower(site, snapshot)
    lowered.constraints                 the constraints of the book
    lowered.running                     the terms of running jobs
    lowered.terms(rows, ...)            the terms of jobs, or why a job can never run
    lowered.closures, .closed_to(...)   nodes that only some jobs may use at certain times
    stranded(lowered, plan)             jobs of a plan that are no longer valid, and why

Rules
    1. What a job uses depends on where it runs and on how many nodes
       (`bridge.planning.requests.amounts`): the terms are those of the nodes it is planned on.
    2. Absolute validities are exact. Cron is evaluated up to the horizon; later times are found in
       later cycles.
    3. A rule on a resource that the cluster does not have has no effect (`unknown_to`).
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bridge.core import NEVER
from bridge.extension_packages import weighted_bounds
from bridge.model.node import MEMORY_MIB
from bridge.model.plan import Plan
from bridge.model.reasons import Reason
from bridge.model.rules.limits import COUNTED, EACH, TIME, Rules
from bridge.model.rules.site import Site
from bridge.model.snapshot import Snapshot
from bridge.planning.eligibility.alternatives import Eligibility
from bridge.planning.queue.layouts import layouts
from bridge.planning.queue.time_windows import requested_time_limit_s, shortest_s
from bridge.planning.requests.amounts import Amounts, plain_name
from bridge.planning.site_rules.capacity_constraints import (
    UNBOUNDED,
    CapacityConstraintList,
    CapacityConstraints,
    Mode,
    TermList,
    Terms,
)
from bridge.planning.site_rules.freepools import (
    AccessRequests,
    Closure,
    JobClosures,
    LoweredFreePools,
)
from bridge.planning.site_rules.limits import Consumers, Horizon, LoweredLimits
from bridge.planning.site_rules.usage_vector import UsageVector
from bridge.planning.site_rules.weighted_bounds import LoweredBound, binds
from bridge.units import UNPLANNED


def unknown_to(site: Site, snapshot: Snapshot) -> tuple[str, ...]:
    """Names the resources in the rules of a site that a cluster does not have."""
    kept = {name for resource, keeps in site.protect.items() for name in (resource, *keeps)}
    missing = {name for name in kept if plain_name(name) not in snapshot.resources}
    names = {limit.resource for limit in site.rules.limits}
    for pool in site.rules.free_pools:
        names.add(pool.resource)
        names.add(pool.nodes.having if pool.nodes else "")
        for access in pool.access:
            names.update(bound.what for bound in (*access.bounds, *access.chunk))
    for part in site.parts.values():
        names.update(part.resources)
    known = {*snapshot.resources, *snapshot.licences, *COUNTED, "", EACH, TIME}
    missing.update(name for name in names if plain_name(name) not in known)
    return tuple(sorted(missing))


@dataclass(frozen=True)
class Extent:
    """The nodes of n jobs, or layouts of jobs.

    Attributes:
        nodes: (n,) most nodes.
        fewest: (n,) fewest nodes; None: the same.
        have: (n, 2) most CPUs and memory of these nodes; for jobs with whole nodes. None: those of
            the largest nodes of the partition.
        amounts: (n,) the maximum that they add to each of `LoweredRules.bounds`; empty: not known.
    """

    nodes: NDArray[np.int64]
    fewest: NDArray[np.int64] | None = None
    have: NDArray[np.int64] | None = None
    amounts: tuple[NDArray[np.int64], ...] = ()

    @classmethod
    def of_plan(cls, lowered: "LoweredRules", plan: Plan, rows: NDArray[np.intp]) -> "Extent":
        """The nodes of some rows of a plan, ascending."""
        snapshot, width = lowered.snapshot, np.diff(plan.indptr)
        have = np.zeros((len(plan), MEMORY_MIB + 1), dtype=np.int64)
        owner = np.repeat(np.arange(len(plan)), width)
        np.add.at(have, owner, snapshot.nodes.capacity[plan.nodes, : MEMORY_MIB + 1])
        amounts = tuple(bound.of_plan(plan, rows) for bound in lowered.bounds)
        return cls(width[rows], have=have[rows], amounts=amounts)


class LoweredRules:
    """Rules, lowered for one snapshot; `lower` makes it.

    Attributes:
        running: terms of the running jobs; they only count.
        closures: nodes closed to jobs without access.
        any: there are rules; otherwise nothing is summed.
        bounds_minimum: a FreePool gives access to large requests: on more nodes a job may have
            access that it does not have on few.
        bounds_chunks: a FreePool gives access to chunks.
        weighs_nodes: rules count CPUs or memory, of which jobs with whole nodes take as much as
            their nodes have.
        bounds: those with weights of nodes, of extensions.
    """

    def __init__(self, site: Site, snapshot: Snapshot) -> None:
        rules = site.rules
        self.snapshot = snapshot
        self._amounts = Amounts(snapshot)
        self._consumers = Consumers(snapshot)
        horizon = Horizon(snapshot.now_s, snapshot.now_s + site.cron_s, rules.timezone)
        constraints = CapacityConstraintList()
        self._limits = LoweredLimits(
            rules.limits, self._amounts, self._consumers, horizon, constraints
        )
        self._pools = LoweredFreePools(
            rules.free_pools,
            snapshot,
            amounts=self._amounts,
            consumers=self._consumers,
            horizon=horizon,
            constraints=constraints,
        )
        self.bounds = tuple(
            LoweredBound(bound, snapshot, constraints)
            for bound in weighted_bounds(snapshot, site)
            if binds(bound, snapshot.now_s)
        )
        self.constraints: CapacityConstraints = constraints.done()
        self.closures: tuple[Closure, ...] = self._pools.closures
        self._counts = bool(rules.limits or rules.free_pools)
        self.any = self._counts or bool(self.bounds)
        self.bounds_minimum = self._pools.bounds_minimum
        self.bounds_chunks = any(a.chunk for pool in rules.free_pools for a in pool.access)
        self.weighs_nodes = weighs_nodes(rules)
        counted = TermList(len(snapshot.running))
        if self._counts:
            used = self._amounts.of_running()
            self._limits.count_running(counted, self._consumers.running, used)
            self._pools.count_running(counted, used)
        for bound in self.bounds:
            bound.count_running(counted)
        self.running: Terms = counted.done(self.constraints)

    def _access_requests(
        self,
        rows: NDArray[np.int64],
        partition: NDArray[np.int64],
        time_limit_s: NDArray[np.int64],
        extent: Extent,
    ) -> AccessRequests:
        used = self._amounts.of_jobs(rows, partition, extent.nodes, extent.have)
        fewest = extent.nodes if extent.fewest is None else extent.fewest
        return AccessRequests(
            who=self._consumers.of_jobs(rows, partition),
            used=used,
            requested=self._amounts.requested(rows, fewest) if self.bounds_minimum else used,
            time_limit_s=time_limit_s,
            shortest_s=shortest_s(self.snapshot.jobs, rows, time_limit_s),
        )

    def takes_whole(
        self, rows: NDArray[np.int64], partition: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """(n,) which jobs take whole nodes."""
        return self._amounts.takes_whole(rows, partition)

    def terms(
        self,
        rows: NDArray[np.int64],
        partition: NDArray[np.int64],
        time_limit_s: NDArray[np.int64],
        extent: Extent,
    ) -> Terms:
        """The terms of jobs; one entry per job or per layout of it.

        Args:
            rows: (n,) rows of `snapshot.jobs`, with repetitions.
            partition: (n,) indexes into `snapshot.partitions`.
            time_limit_s: (n,) how long each would be booked.

        Returns:
            Their terms, with a reason for those that can never run. O(n) per rule.
        """
        terms = TermList(len(rows))
        if not self.any:
            return terms.done(self.constraints)
        if self._counts:
            requests = self._access_requests(rows, partition, time_limit_s, extent)
            self._limits.add_terms(terms, requests.who, requests.used, time_limit_s)
            self._pools.add_terms(terms, requests)
        for at, bound in enumerate(self.bounds):
            known = extent.amounts
            maximum = known[at] if known else bound.maximum(rows, partition, extent.nodes)
            bound.add_terms(terms, maximum)
        return terms.done(self.constraints)

    def closed_to(
        self,
        rows: NDArray[np.int64],
        partition: NDArray[np.int64],
        time_limit_s: NDArray[np.int64],
        extent: Extent,
    ) -> list[JobClosures]:
        """(n,) the closures of each job, or of some of its chunks; as `terms`."""
        if not self.closures:
            return [()] * len(rows)
        return self._pools.closed_to(self._access_requests(rows, partition, time_limit_s, extent))


def weighs_nodes(rules: Rules) -> bool:
    """Whether rules count CPUs or memory, which differ between whole nodes."""
    names = {limit.resource for limit in rules.limits}
    for pool in rules.free_pools:
        names.add(pool.resource)
        names.update(bound.what for access in pool.access for bound in access.bounds)
    return bool({plain_name(name) for name in names} & {"cpus", "mem_mib", EACH})


def lower(site: Site, snapshot: Snapshot) -> LoweredRules:
    """Lowers the rules of a site for a snapshot, whose running jobs count."""
    return LoweredRules(site, snapshot)


@dataclass(frozen=True, slots=True)
class Stranded:
    """A row of a plan that is no longer valid, and the rule that it breaks."""

    row: int
    text: str


class Sums:
    """The use of each constraint while jobs are added one after the other."""

    _CAPACITY = 1 << 48  # more than all amounts together

    def __init__(self, lowered: LoweredRules) -> None:
        self._constraints = lowered.constraints
        self._used: dict[int, UsageVector] = {}
        running = lowered.snapshot.running
        now_s = lowered.snapshot.now_s
        for job, end_s in enumerate(running.end_s.tolist()):
            self.put(now_s, max(end_s, now_s + 1), lowered.running, job)

    def _use_of(self, constraint: int) -> UsageVector:
        """Its use; what its bound leaves of the capacity counts as used."""
        found = self._used.get(constraint)
        if found is None:
            found = UsageVector()
            starts, amounts = self._constraints.steps(constraint)
            for start, end, amount in zip(
                starts.tolist(), [*starts[1:].tolist(), NEVER], amounts.tolist(), strict=True
            ):
                if amount != UNBOUNDED:
                    found.increment(start, end, self._CAPACITY - amount)
            self._used[constraint] = found
        return found

    def broken(self, start_s: int, end_s: int, terms: Terms, job: int) -> str | None:
        """The label of the first constraint that a job at [start_s, end_s) would break."""
        own = terms.of(job)
        for constraint, amount, mode in zip(
            terms.constraint[own].tolist(), terms.amount[own].tolist(), terms.mode[own].tolist(),
            strict=True,
        ):  # fmt: skip
            if mode == Mode.COUNT:
                continue
            if self._use_of(constraint).max_used(start_s, end_s) + amount > self._CAPACITY:
                label: str = self._constraints.labels[constraint]
                return label
        return None

    def put(self, start_s: int, end_s: int, terms: Terms, job: int) -> None:
        own = terms.of(job)
        for constraint, amount, mode in zip(
            terms.constraint[own].tolist(), terms.amount[own].tolist(), terms.mode[own].tolist(),
            strict=True,
        ):  # fmt: skip
            if mode != Mode.CHECK:
                self._use_of(constraint).increment(start_s, end_s, amount)


def stranded(lowered: LoweredRules, plan: Plan) -> list[Stranded]:
    """Finds the rows of a plan that are no longer valid under changed rules.

    Rows are checked in the plan's order, which is that of priority: a row that is no longer valid
    frees its capacity for those behind it.

    Args:
        lowered: the new rules, for the snapshot that the plan was made with.
    """
    planned = np.flatnonzero((plan.start_s != NEVER) & (plan.start_s != UNPLANNED))
    rows = plan.job[planned].astype(np.int64)
    where = plan.partition[planned].astype(np.int64)
    start_s, end_s = plan.start_s[planned], plan.end_s[planned]
    extent = Extent.of_plan(lowered, plan, planned)
    limit_s = requested_time_limit_s(lowered.snapshot.jobs, rows, end_s - start_s)
    terms = lowered.terms(rows, where, limit_s, extent)
    closed = lowered.closed_to(rows, where, limit_s, extent)
    sums, access, found = Sums(lowered), _AccessCheck(lowered, plan), []
    for at, row in enumerate(planned.tolist()):
        begin, end = int(start_s[at]), int(end_s[at])
        broken = sums.broken(begin, end, terms, at)
        if broken is None:
            broken = access.broken(row, closed[at])
        if broken is None:
            sums.put(begin, end, terms, at)
        else:
            found.append(Stranded(row, broken))
    return found


class _AccessCheck:
    """Checks the nodes of planned rows against closures."""

    def __init__(self, lowered: LoweredRules, plan: Plan) -> None:
        self._lowered, self._plan = lowered, plan

    @cached_property
    def _eligibility(self) -> Eligibility:
        return Eligibility(self._lowered.snapshot)

    def broken(self, row: int, job_closures: JobClosures) -> str | None:
        """The closure that excludes a row, or its chunks, from one of its nodes."""
        plan = self._plan
        own = slice(int(plan.indptr[row]), int(plan.indptr[row + 1]))
        start_s, end_s = int(plan.start_s[row]), int(plan.end_s[row])
        for each in job_closures:
            closure = self._lowered.closures[each.closure]
            starts, ends = closure.windows.T
            on = closure.nodes[plan.nodes[own]]
            if not on.any() or not ((starts < end_s) & (ends > start_s)).any():
                continue
            if not each.chunks or any(each.shuts(want) for want in self._demands(row, own, on)):
                return f"nodes that FreePool {closure.name} keeps free"
        return None

    def _demands(self, row: int, own: slice, on: NDArray[np.bool_]) -> list[tuple[int, ...]]:
        """The requests of a row's chunks on some of its nodes."""
        plan, snapshot = self._plan, self._lowered.snapshot
        job = int(plan.job[row])
        found = self._eligibility.alternatives(np.array([job], dtype=np.int64))[0]
        if isinstance(found, Reason):
            return []
        here = [each for each in found if each.partition == plan.partition[row]] or found
        options = layouts(snapshot, self._eligibility, job, here[0]).minimum
        if not options:
            return []
        wants = options[0].together()
        if plan.groups is None or not plan.groups[own].any():
            return wants
        kinds = np.flatnonzero(plan.groups[own][on].any(axis=0)).tolist()
        return [
            want
            for group, want in zip(options[0].groups, wants, strict=True)
            if group.kind in kinds
        ]
