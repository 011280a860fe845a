# SPDX-License-Identifier: Apache-2.0
"""The jobs of a site workload as jobs to simulate, on a described system or a pool.

Rules
    1. Jobs that never started or had not ended are left out; so are those that no node of their
       partitions can hold, that ask for features that no node has, or for partitions that are not
       described. All are counted by reason.
    2. On a described system a job requests its partitions, CPUs, memory (`use_memory`), generic
       resources, features and exclusive nodes. If Slurm gave it more nodes than it had requested,
       its number of nodes is unknown, or its CPUs do not divide by its nodes, they are tasks that
       may be anywhere; otherwise it wants as many nodes, with the same on each.
    3. On a pool only processors, times and dependencies count.
    4. A job with dependencies (afterok, afterany, afternotok, aftercorr, singleton) is submitted
       when these jobs have ended; others when they became eligible, if that was later than their
       submission (begin times, holds). A dependency on a job that is left out has no effect.
    5. A run time is capped at its time limit. A job without a limit gets that of its partition,
       else its run time.
    6. Nodes that were down lose their jobs, as in the faults of a simulation; drained ones and
       those of reservations in which no job ran start no further job.
    7. `ignored` says what the records have and the simulation does not honour.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bridge.errors import ConfigError, RequestError, TraceError
from bridge.lab.sim.workloads.records.as_swf import as_swf, by_submission, codes
from bridge.lab.sim.workloads.records.job_record import JobEnding, JobRecord, SiteWorkload
from bridge.lab.sim.workloads.swf import Trace
from bridge.lab.sim.workloads.system import System
from bridge.lab.sim.workloads.workload import NOT_RUN, TOO_LARGE, Workload
from bridge.model import hostlist
from bridge.model.job import JobTable
from bridge.model.job_columns import objects
from bridge.planning.requests.features import parse_features

NOT_ENDED: Final = "had not ended"
NO_PARTITION: Final = "in partitions that are not described"
NO_FEATURE: Final = "ask for features that no node has"
NO_NODE: Final = "ask for more than any node of their partitions has"
ENDS: Final = frozenset(("afterok", "afterany", "afternotok", "aftercorr", "singleton"))
"""Kinds of dependencies on the end of a job."""
_WORD = re.compile(r"[\w.+-]+")
_COUNT = re.compile(r"\*[0-9]+")


@dataclass(frozen=True)
class NodeOutage:
    """A node that is not available from `start_s` to `end_s` (0: for ever); lost: with its jobs."""

    node: int
    start_s: int
    end_s: int
    lost: bool


@dataclass(frozen=True)
class SiteSimulation:
    """What to simulate.

    Attributes:
        trace: the same jobs in the common format, row by row, for results.
        outages: outages of nodes, in order of time.
        ignored: sentences on what is not honoured.
    """

    workload: Workload
    trace: Trace
    outages: tuple[NodeOutage, ...]
    ignored: tuple[str, ...]


def simulation_of(site: SiteWorkload, system: System | None, processors: int) -> SiteSimulation:
    """Makes the jobs to simulate.

    Args:
        system: described nodes; None: a pool.

    Raises:
        TraceError: no job is left.
        ConfigError: the number of processors is not positive.
    """
    if processors < 1:
        raise ConfigError("procs", f"a machine has at least 1 processor, not {processors}")
    described = system if system is not None and not system.pool else None
    shapes = _Shapes(described) if described is not None else None
    left_out: dict[str, list[int]] = {}
    kept: list[JobRecord] = []
    for job in by_submission([_released(job) for job in site.jobs]):
        why = _why_not(job, processors) or (shapes.why_not(job) if shapes is not None else None)
        if why is None:
            kept.append(job)
        else:
            left_out.setdefault(why, []).append(len(kept))
    if not kept:
        why = "; ".join(f"{len(at):,} {reason}" for reason, at in left_out.items())
        raise TraceError(site.name, None, f"no job can be simulated: {why}")
    after = _dependencies(kept)
    workload = _columns(site.name, kept, processors, described)
    workload = replace(
        workload,
        left_out=dict(map(_counted, left_out.items())),
        left_out_at={why: np.array(at, dtype=np.int64) for why, at in left_out.items()},
        after=after if any(after) else None,
    )
    if shapes is not None and described is not None:
        workload = replace(workload, requests=shapes.requests(workload, kept))
    outages = _outages(site, described)
    trace = replace(as_swf(replace(site, jobs=kept), processors), dropped=site.dropped)
    return SiteSimulation(workload, trace, outages, tuple(_ignored(site, kept, described, after)))


def _counted(item: tuple[str, list[int]]) -> tuple[str, int]:
    return item[0], len(item[1])


def _released(job: JobRecord) -> JobRecord:
    """The job as submitted when it became eligible, if no dependency says when that is."""
    held = not any(kind in ENDS for kind, _ in job.after) and not job.array_limit
    later = job.submit_s < job.eligible_s <= (job.start_s or job.eligible_s)
    return replace(job, submit_s=job.eligible_s) if held and later else job


def _why_not(job: JobRecord, processors: int) -> str | None:
    if job.state in (JobEnding.RUNNING, JobEnding.PENDING):
        return NOT_ENDED
    if job.runtime_s <= 0 or job.cpus <= 0:
        return NOT_RUN
    return TOO_LARGE if job.cpus > processors else None


def _dependencies(jobs: Sequence[JobRecord]) -> NDArray[np.object_]:
    """For each job the ids of those whose end it waits for."""
    rows = {job.id: row for row, job in enumerate(jobs)}
    tasks: dict[str, list[int]] = {}
    for row, job in enumerate(jobs):
        for whole in {job.array, job.component} - {""}:
            tasks.setdefault(whole, []).append(row)
    last: dict[tuple[str, str], int] = {}
    found: list[tuple[str, ...]] = []
    for row, job in enumerate(jobs):
        before: set[int] = set()
        for kind, other in job.after:
            if kind == "singleton" and (job.user, job.name) in last:
                before.add(last[job.user, job.name])
            elif kind == "aftercorr" and f"{other}_{job.id.partition('_')[2]}" in rows:
                before.add(rows[f"{other}_{job.id.partition('_')[2]}"])
            elif kind in ENDS and other in rows:
                before.add(rows[other])
            elif kind in ENDS and other in tasks:
                before.update(tasks[other])
        last[job.user, job.name] = row
        found.append(tuple(jobs[other].id for other in sorted(before - {row})))
    return objects(found)


def _columns(
    name: str, jobs: Sequence[JobRecord], processors: int, system: System | None
) -> Workload:
    maximum = (
        {part.name: part.max_time_s for part in system.partitions} if system is not None else {}
    )
    runtime_s = np.array([job.runtime_s for job in jobs], dtype=np.int64)
    limits = [_limit_s(job, maximum) for job in jobs]
    limit_s = np.where(np.array(limits) > 0, limits, runtime_s).astype(np.int64)
    return Workload(
        name=name,
        processors_total=processors,
        id=objects([job.id for job in jobs]),
        submit_s=np.array([max(job.submit_s, 1) for job in jobs], dtype=np.int64),
        runtime_s=np.minimum(runtime_s, limit_s),
        time_limit_s=limit_s,
        processors=np.array([job.cpus for job in jobs], dtype=np.int64),
        memory_kib=np.zeros(len(jobs), dtype=np.int64),
        user=codes([job.user for job in jobs]),
        group=codes([job.account for job in jobs]),
        executable=codes([job.name for job in jobs]),
        queue=codes([",".join(job.partitions) for job in jobs]),
        row=np.arange(len(jobs)),
        left_out={},
    )


def _limit_s(job: JobRecord, maximum: dict[str, int]) -> int:
    bounds = [maximum[name] for name in job.partitions if name in maximum]
    bound = max(bounds) if bounds and all(bounds) else 0
    limit = min(filter(None, (job.time_limit_s, bound)), default=0)
    return max(limit, 0)


class _Shapes:
    """The requests of jobs on described nodes."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._index = {part.name: at for at, part in enumerate(system.partitions)}
        self._resource = {name: at for at, name in enumerate(system.resources)}
        self._features = frozenset[str]().union(*system.nodes.features)
        self._fits: dict[tuple[Any, ...], bool] = {}

    def partitions(self, job: JobRecord) -> tuple[int, ...]:
        """The described partitions of a job; all if it names none."""
        if not job.partitions:
            return tuple(range(len(self._system.partitions)))
        return tuple(self._index[name] for name in job.partitions if name in self._index)

    def why_not(self, job: JobRecord) -> str | None:
        """Why a job can never start; None: it can."""
        named = self.partitions(job)
        if not named:
            return NO_PARTITION
        words = _WORD.findall(_COUNT.sub("", job.features))
        if any(word not in self._features for word in words) or not _readable(job.features):
            return NO_FEATURE
        low, _, tasks, per_node, per_task = self.demand(job)
        key = (named, low, tasks, per_node, per_task)
        if key not in self._fits:
            self._fits[key] = self._has_room(named, low, tasks, per_node, per_task)
        return None if self._fits[key] else NO_NODE

    def demand(self, job: JobRecord) -> tuple[int, int, int, tuple[int, ...], tuple[int, ...]]:
        """Least and most nodes, tasks, and what each node and each task takes (rule 2)."""
        width = len(self._system.resources)
        nodes = max(job.nodes, 1)
        cpus = job.requested_cpus or job.cpus if job.exclusive else job.cpus
        memory = job.memory_mib if self._system.use_memory else 0
        per_node, per_task = [0] * width, [0] * width
        anywhere = 0 < job.least_nodes < nodes or not job.nodes
        if anywhere or cpus % nodes:
            per_task[0] = 1
            (per_task if job.memory_per == "cpu" else per_node)[1] = memory
            low = max(job.least_nodes, 1) if anywhere else nodes
            high, tasks = max(nodes, low) if not anywhere else cpus, cpus
            high = min(high, len(self._system.nodes))
        else:
            per_node[0] = cpus // nodes
            per_node[1] = memory * per_node[0] if job.memory_per == "cpu" else memory
            low, high, tasks = nodes, nodes, 0
        for name, amount in job.gres.items():
            at = self._resource.get(name, self._resource.get(name.partition(":")[0]))
            if at is None:
                continue
            if tasks and amount % tasks == 0:
                per_task[at] += amount // tasks
            else:
                per_node[at] += -(-amount // nodes)
        return low, max(low, high), tasks, tuple(per_node), tuple(per_task)

    def _has_room(
        self,
        partitions: tuple[int, ...],
        low: int,
        tasks: int,
        per_node: tuple[int, ...],
        per_task: tuple[int, ...],
    ) -> bool:
        capacity = self._system.nodes.capacity
        for at in partitions:
            part = self._system.partitions[at]
            left = capacity[part.nodes] - np.array(per_node)
            left = left[(left >= 0).all(axis=1)]
            if tasks:
                wanted = np.array(per_task)
                room = (left[:, wanted > 0] // wanted[wanted > 0]).min(axis=1)
                if (room > 0).sum() >= low and room.sum() >= tasks:
                    return True
            elif len(left) >= low and (not part.max_nodes or low <= part.max_nodes):
                return True
        return False

    def requests(self, workload: Workload, jobs: Sequence[JobRecord]) -> JobTable:
        """The job table, one row each."""
        demands = [self.demand(job) for job in jobs]
        partitions = [self.partitions(job) for job in jobs]
        alone = {at for at, part in enumerate(self._system.partitions) if part.exclusive}
        whole = self._system.whole_nodes

        def column(at: int) -> NDArray[np.int64]:
            return np.array([demand[at] for demand in demands], dtype=np.int64)

        return JobTable(
            id=workload.id,
            name=objects([job.name for job in jobs]),
            user=objects([job.user for job in jobs]),
            account=objects([job.account for job in jobs]),
            priority=np.arange(len(jobs), 0, -1, dtype=np.int64),
            submit_s=workload.submit_s,
            eligible_s=workload.submit_s,
            time_limit_s=workload.time_limit_s,
            partitions=objects(partitions),
            min_nodes=column(0),
            max_nodes=column(1),
            tasks=column(2),
            per_node=column(3),
            per_task=column(4),
            exclusive=np.array(
                [
                    job.exclusive or whole or not alone.isdisjoint(named)
                    for job, named in zip(jobs, partitions, strict=True)
                ],
                dtype=bool,
            ),
            features=objects([job.features for job in jobs]),
            licences=np.zeros((len(jobs), 0), dtype=np.int64),
        )


def _readable(features: str) -> bool:
    try:
        return not features or bool(parse_features(features))
    except RequestError:
        return False


def _outages(site: SiteWorkload, system: System | None) -> tuple[NodeOutage, ...]:
    """Outages by node, and reservations without jobs as drained nodes."""
    if system is None:
        return ()
    index = {name: at for at, name in enumerate(system.nodes.names)}
    used = {job.reservation for job in site.jobs}
    stretches = [(o.nodes, o.start_s, o.end_s, o.state == "down") for o in site.outages]
    stretches += [
        (r.nodes, r.start_s, r.end_s, False)
        for r in site.reservations
        if r.nodes and r.name not in used
    ]
    found = [
        NodeOutage(index[name], start_s, end_s, lost)
        for nodes, start_s, end_s, lost in stretches
        for name in _names(nodes)
        if name in index and start_s > 0 and (not end_s or end_s > start_s)
    ]
    return tuple(sorted(found, key=lambda each: each.start_s))


def _names(nodes: str) -> list[str]:
    try:
        return hostlist.expand(nodes)
    except (RequestError, ValueError):
        return []


def _ignored(
    site: SiteWorkload,
    jobs: Sequence[JobRecord],
    system: System | None,
    after: NDArray[np.object_],
) -> list[str]:
    """What the records have and the simulation does not honour, as sentences."""
    notes: list[str] = []
    count: Counter[str] = Counter()
    for row, job in enumerate(jobs):
        count["arrays' limits of tasks at a time"] += bool(job.array_limit)
        count["licences"] += bool(job.licences)
        count["heterogeneous jobs' components, which start independently"] += bool(job.component)
        stated = [kind for kind, _ in job.after]
        count["dependencies on starts, or on jobs that are not simulated"] += bool(
            stated and (not after[row] or any(kind not in ENDS for kind in stated))
        )
        count["their reservation: they start outside of it"] += bool(job.reservation)
        if system is None:
            count["partitions"] += bool(job.partitions)
            count["memory"] += bool(job.memory_mib)
            count["generic resources (GPUs)"] += bool(job.gres)
            count["features"] += bool(job.features)
        else:
            known = set(system.resources)
            unknown = {name.partition(":")[0] for name in job.gres} - known
            count["generic resources that no node has"] += bool(unknown)
            count["memory (the system does not say use_memory)"] += bool(
                job.memory_mib and not system.use_memory
            )
    notes += [f"{number:,} jobs: {what}" for what, number in count.items() if number]
    levels = {job.qos for job in jobs}
    if len(levels) > 1:
        notes.append(f"QOS and recorded priorities ({len(levels)} QOS): the policy orders the jobs")
    if system is None and (site.outages or site.reservations):
        notes.append("outages of nodes and reservations: a pool has no nodes with names")
    if system is not None:
        known_nodes = set(system.nodes.names)
        away = sum(not known_nodes & set(_names(each.nodes)) for each in site.outages)
        if away:
            notes.append(f"{away:,} outages: the system has none of their nodes")
    return notes
