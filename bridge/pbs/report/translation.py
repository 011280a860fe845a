# SPDX-License-Identifier: Apache-2.0
"""A server's tables as a complete report: nodes, jobs, partitions, reservations, licences.

Rules
    1. An invalid job, vnode or attribute never stops the report: it is held, closed or left out,
       with a reason.
    2. A job with vnodes is running, whatever else is stated; an exiting one is completing. An array
       of which no task remains is not reported.
    3. Why a waiting job is held, the first of: it is not understood; it is held; its queue starts
       no jobs; its reservation has not begun; a limit is reached; its array runs as many tasks as
       it may; dedicated time has not begun; it begins later, or the time of day does not suit it.
    4. A limit holds a job only if the job could not start now even with free nodes. Several jobs
       that could start one by one are not held; the last check refuses those that are too many.
    5. A reservation holds whole nodes on the wire, or is there as a job (`shared_vnodes.py`); the
       last check compares amounts.
    6. Unchanged messages are the same objects as in the report before. A waiting job is judged
       again only if it changed, or something that it depends on (`circumstances.py`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from bridge.errors import BadRequest
from bridge.left_out import LeftOut
from bridge.pbs.objects import indices, limits, values
from bridge.pbs.objects.calendar import FOREVER, Span
from bridge.pbs.objects.fair_share import FairShare
from bridge.pbs.objects.jobs import SUSPENDED, PbsJob
from bridge.pbs.objects.parsed import STANDING, Parsed, PbsQueue, PbsReservation, Reader
from bridge.pbs.objects.values import Kind
from bridge.pbs.objects.vnodes import Vnode
from bridge.pbs.report import wire_chunks
from bridge.pbs.report.circumstances import Circumstances, circumstances, is_judged_by_them
from bridge.pbs.report.node_weights import node_weights
from bridge.pbs.report.priorities import Priorities, Shares
from bridge.pbs.report.several_vnodes import held_on_nodes, node_amounts
from bridge.pbs.report.shared_vnodes import SharedVnodes, shared_vnodes
from bridge.pbs.report.wire_chunks import Cluster
from bridge.pbs.tables import Attributes, Tables, amounts, text
from bridge.rpc.pb import scheduler_pb2 as pb

HELLO_FIELDS: dict[str, Any] = {
    "dialect": "pbs", "memory_consumable": True, "memory_optional": True, "whole_cores": False,
}  # fmt: skip
"""Fields of the hello that follow from PBS's conventions."""

MIDDLE_TIER = 1025
"""Tier on the wire of queues of priority 0."""
_MAX_TEXT = 160
_EXPRESS = 150
"""Priority from which queues are express queues, unless preempt_queue_prio says otherwise."""

_M = TypeVar("_M", pb.Node, pb.Job, pb.Partitions, pb.Reservations, pb.Licences)


@dataclass(frozen=True)
class Report:
    """A complete report.

    Attributes:
        not_modelled: one line for each thing that was left out, or is not supported.
    """

    nodes: Mapping[str, pb.Node]
    jobs: Mapping[str, pb.Job]
    partitions: pb.Partitions
    reservations: pb.Reservations
    licences: pb.Licences
    not_modelled: tuple[str, ...] = field(default_factory=tuple)


@dataclass(frozen=True)
class _Standing:
    """The parts of a waiting job's message besides its request."""

    priority: int
    shares: Shares
    hold: "pb.Hold"
    words: str
    tasks: int
    startable: int
    begin_s: int


@dataclass(frozen=True)
class _Kept:
    """One job's message, and what it was made of.

    Attributes:
        around: the server's pools and reservations.
        request: or why there is none.
        demanded: features that only this job asks for.
    """

    job: PbsJob
    cluster: Cluster
    around: object
    request: pb.Request | str
    demanded: frozenset[str]
    standing: _Standing | None
    message: pb.Job


class Translation:
    """Makes reports; remembers the last one (rule 6)."""

    def __init__(self) -> None:
        self.reader = Reader()
        self.usage = FairShare()
        self.counts_usage = False
        self._kept: dict[str, _Kept] = {}
        self._around: object = None
        self._nodes_of: object = None
        self._partitions_of: object = None
        self._jobs_of: tuple[object, object] | None = None
        self._cluster: Cluster | None = None
        self._demanded: frozenset[str] = frozenset()
        self._last: Report | None = None
        self._shared = SharedVnodes()
        self._left_out = LeftOut("job")
        self._left_out_nodes = LeftOut("node")
        self._left_out_parts = LeftOut("part of reservation")
        self._circumstances: Circumstances | None = None

    def report(self, tables: Tables) -> Report:
        parsed = self.reader.read(tables)
        cluster = self._clustered(parsed)
        self._observe(parsed)
        priorities = Priorities(parsed, self.usage)
        shared = self._shared = shared_vnodes(parsed, cluster, self._left_out_parts)
        last = self._last
        around = _around(parsed)
        same_around, self._around = around == self._around, around
        now = circumstances(parsed, priorities, shared)
        calm = same_around and not now.by_clock and now == self._circumstances
        self._circumstances = now
        jobs = self._all_jobs(parsed, cluster, priorities, calm=calm)
        report = Report(
            self._all_nodes(parsed, cluster, self._demanded),
            jobs,
            self._all_partitions(parsed, cluster),
            _same(_reservations(parsed, shared), last.reservations if last else None),
            _same(_licences(parsed), last.licences if last else None),
            (
                *parsed.problems,
                *([priorities.problem] if priorities.problem else []),
                *parsed.files.problems,
                *self._left_out.problems(),
                *self._left_out_nodes.problems(),
                *self._left_out_parts.problems(),
                *_refused(parsed),
            ),
        )
        self._last = report
        return report

    def _all_jobs(
        self, parsed: Parsed, cluster: Cluster, priorities: Priorities, *, calm: bool
    ) -> Mapping[str, pb.Job]:
        """The jobs, and what stands for reservations; the last ones if nothing has changed.

        `calm`: what waiting jobs are judged by is as before.
        """
        last, made_of = self._last, self._jobs_of
        same = made_of is not None and made_of[0] is parsed.jobs and made_of[1] is cluster
        if calm and same and last is not None:
            return last.jobs
        jobs: dict[str, pb.Job] = {}
        kept: dict[str, _Kept] = {}
        demanded: set[str] = set()
        clocked = False
        for job_id, job in parsed.jobs.items():
            known = self._kept.get(job_id)
            if known is not None and (
                known.job is not job
                or known.cluster is not cluster
                or (known.around is not self._around and known.around != self._around)
            ):
                known = None
            by_them = is_judged_by_them(job)
            clocked |= not by_them and not job.has_vnodes
            if calm and known is not None and by_them:
                made: _Kept | None = known
            else:
                attributes = parsed.tables.jobs[job_id]
                made = self._left_out.unless(
                    job_id, self._job, job, attributes, parsed, priorities, known
                )
            if made is not None:
                kept[job_id] = made
                demanded |= made.demanded
                jobs[job_id] = made.message
        for message in self._shared.jobs:
            jobs[message.id] = self._as_before(message)
        self._left_out.keep(parsed.jobs)
        self._kept, self._demanded = kept, frozenset(demanded)
        self._jobs_of = None if clocked or self._shared.jobs else (parsed.jobs, cluster)
        return jobs

    def _all_nodes(
        self, parsed: Parsed, cluster: Cluster, demanded: frozenset[str]
    ) -> Mapping[str, pb.Node]:
        """The nodes, made again if what they are made of has changed."""
        keys = parsed.settings.node_sort
        made_of = (cluster, demanded, keys)
        last = self._last.nodes if self._last else {}
        if self._nodes_of == made_of and all(key.of == "total" for key in keys):
            return last
        self._nodes_of = made_of
        nodes = _nodes(parsed, cluster, demanded, self._left_out_nodes)
        return {name: _same(node, last.get(name)) for name, node in nodes.items()}

    def _all_partitions(self, parsed: Parsed, cluster: Cluster) -> pb.Partitions:
        """The queues, likewise."""
        made_of = (
            cluster, tuple(parsed.queues.items()), tuple(parsed.by_queue.items()),
            parsed.settings, _express(parsed),
        )  # fmt: skip
        last = self._last.partitions if self._last else None
        if last is not None and self._partitions_of == made_of:
            return last
        self._partitions_of = made_of
        return _same(_partitions(parsed), last)

    def _observe(self, parsed: Parsed) -> None:
        """Counts usage for fair share, where it is used."""
        config, jobs = parsed.files.config, parsed.tables.jobs
        shared = config.prime.fair_share or config.non_prime.fair_share
        self.counts_usage = bool(parsed.files.members) or shared
        if self.counts_usage:
            self.usage.observe(
                ((job, jobs[job_id]) for job_id, job in parsed.jobs.items()),
                config, parsed.tables.now_s,
            )  # fmt: skip

    def _job(
        self, job: PbsJob, attributes: Attributes, parsed: Parsed, priorities: Priorities,
        known: "_Kept | None",
    ) -> "_Kept | None":  # fmt: skip
        """One job's message; None: it is not reported."""
        cluster, around = self._clustered(parsed), self._around
        if job.has_vnodes and not job.is_array:
            if known is not None:
                return known
            message = _running(job, attributes, parsed, cluster)
            return _Kept(job, cluster, around, "", frozenset(), None, self._as_before(message))
        if not job.is_waiting or (job.is_array and not indices.count(job.remaining)):
            return None
        if known is None:
            request, demanded = _request(job, cluster, parsed)
        else:
            request, demanded = known.request, known.demanded
        standing = _standing(
            job, attributes, request, parsed, priorities, beyond=self._shared.held.get(job.id, "")
        )
        if known is not None and known.standing == standing:
            return known
        message = _waiting(job, attributes, request, standing)
        return _Kept(job, cluster, around, request, demanded, standing, self._as_before(message))

    def _as_before(self, message: pb.Job) -> pb.Job:
        return _same(message, self._last.jobs.get(message.id) if self._last else None)

    def _clustered(self, parsed: Parsed) -> Cluster:
        known = self._cluster
        if (
            known is None
            or known.nodes is not parsed.nodes
            or known.definitions is not parsed.definitions
        ):
            known = wire_chunks.cluster_of(parsed.vnodes, parsed.nodes, parsed.definitions)
            self._cluster = known
        return known


def _around(parsed: Parsed) -> object:
    """The inputs of requests besides the job and the vnodes."""
    server, queues = parsed.tables.server, parsed.tables.queues
    pools = amounts(server, "resources_available")
    sets = [text(server, "node_group_enable"), text(server, "node_group_key")]
    sets += [text(queue, "node_group_key") for queue in queues.values()]
    span = parsed.files.calendar.span(parsed.tables.now_s)
    return tuple(pools.items()), tuple((q, r.name) for q, r in parsed.by_queue.items()), sets, span


def _same(made: _M, before: _M | None) -> _M:
    return before if before is not None and before == made else made


# ------------------------------------------------------------------------ nodes


def _nodes(
    parsed: Parsed, cluster: Cluster, demanded: frozenset[str], left_out: LeftOut
) -> dict[str, pb.Node]:
    booleans = sorted(
        {name for vnode in parsed.vnodes.values() for name in vnode.booleans}
        | {d.name for d in parsed.definitions.values() if d.kind is Kind.BOOLEAN and d.on_vnodes}
    )
    weights = node_weights(parsed, cluster.nodes)

    def made(name: str, members: Sequence[str]) -> pb.Node:
        vnodes = [parsed.vnodes[member] for member in members]
        node = _node(name, vnodes, parsed, weights[name])
        node.gres.extend(
            pb.Gres(name=amount, count=count)
            for amount, count in node_amounts(cluster, name).items()
        )
        node.features.extend(wire_chunks.node_features(vnodes, demanded, booleans)[:1024])
        return node

    found = {}
    for name, members in cluster.nodes.items():
        if (node := left_out.unless(name, made, name, members)) is not None:
            found[name] = node
    left_out.keep(cluster.nodes)
    return found


def _node(name: str, members: list[Vnode], parsed: Parsed, weight: int) -> pb.Node:
    """A node, without features."""
    total: dict[str, float] = {}
    for vnode in members:
        for resource, value in vnode.amounts.items():
            total[resource] = total.get(resource, 0) + value
    gres = []
    for resource, value in sorted(total.items()):
        known = parsed.definitions[resource]
        if resource not in ("ncpus", "mem") and known.is_counted:
            count = wire_chunks.amount_down(known.kind, value)
            gres.append(pb.Gres(name=wire_chunks.gres_name(resource), count=count))
    first = members[0]
    return pb.Node(
        name=name,
        cpus=min(int(total.get("ncpus", 0)), 2**31 - 1),
        threads_per_core=1,
        memory_mib=int(total.get("mem", 0)) // 1024,
        gres=gres[:256],
        usable=first.usable and total.get("ncpus", 0) > 0,
        state="+".join(dict.fromkeys(vnode.state for vnode in members))[:64],
        weight=weight,
    )


def _partitions(parsed: Parsed) -> pb.Partitions:
    owned: dict[str, list[str]] = {}
    for name, members in parsed.nodes.items():
        owned.setdefault(parsed.vnodes[members[0]].queue, []).append(name)
    items = []
    for name, queue in parsed.queues.items():
        reservation = parsed.by_queue.get(name)
        nodes = owned.get(name) or owned.get("", [])
        if reservation is not None:
            nodes = _nodes_of(reservation, parsed)
        walltime_s = 0
        for attribute in ("resources_default", "resources_max"):
            word = amounts(queue.attributes, attribute).get("walltime", "")
            walltime_s = walltime_s or _duration(word)
        items.append(
            pb.Partition(
                name=name,
                nodes=",".join(nodes),
                up=queue.starts,
                default_time_s=walltime_s,
                priority_tier=_tier(queue, parsed),
            )
        )
    return pb.Partitions(items=items)


def _tier(queue: PbsQueue, parsed: Parsed) -> int:
    settings = parsed.settings
    if settings.by_queue:
        return MIDDLE_TIER + max(min(queue.priority, 1024), -1024)
    return MIDDLE_TIER + int(settings.preemptive and queue.priority >= _express(parsed))


def _express(parsed: Parsed) -> int:
    """The priority from which queues are express queues."""
    word = text(parsed.tables.sched, "preempt_queue_prio")
    return int(word) if word.isdecimal() and len(word) < 9 else _EXPRESS


def _duration(word: str) -> int:
    try:
        return values.duration_s(word) if word else 0
    except BadRequest:
        return 0


def _dedicated_name(span: Span) -> str:
    return f"dedicated.{span[0]}"


def _reservations(parsed: Parsed, shared: SharedVnodes) -> pb.Reservations:
    """Reservations, and the present or next dedicated time as one of all nodes."""
    span = parsed.files.calendar.span(parsed.tables.now_s)
    dedicated = [
        pb.Reservation(
            name=_dedicated_name(each), start_s=each[0], end_s=each[1],
            nodes=",".join(parsed.nodes),
        )
        for each in ([span] if span else [])
    ]  # fmt: skip
    return pb.Reservations(
        items=dedicated
        + [
            pb.Reservation(
                name=each.name,
                start_s=each.start_s,
                end_s=each.end_s,
                nodes="" if each.name in shared.names else ",".join(_nodes_of(each, parsed)),
                maintenance=each.is_maintenance,
            )
            for each in parsed.reservations.values()
            if each.state in STANDING and each.end_s > max(parsed.tables.now_s, each.start_s)
        ]
    )


def _nodes_of(reservation: PbsReservation, parsed: Parsed) -> list[str]:
    return [
        name
        for name, members in parsed.nodes.items()
        if any(member in reservation.held for member in members)
    ]


def _licences(parsed: Parsed) -> pb.Licences:
    items = []
    for name, value in amounts(parsed.tables.server, "resources_available").items():
        known = parsed.definitions.get(name)
        if known is None or known.on_vnodes or not known.kind.is_amount:
            continue
        try:
            total = wire_chunks.amount_down(known.kind, values.amount(known.kind, value))
        except BadRequest:
            continue
        items.append(pb.Licence(name=name, total=min(total, 2**31 - 1)))
    return pb.Licences(items=items)


def _licence_uses(job: PbsJob, parsed: Parsed) -> list[pb.LicenceUse]:
    pools = amounts(parsed.tables.server, "resources_available")
    uses = []
    for name, value in sorted(job.total.items()):
        known = parsed.definitions[name]
        if name in pools and not known.on_vnodes and value:
            count = wire_chunks.amount_up(known.kind, value)
            uses.append(pb.LicenceUse(name=name, count=min(count, 2**31 - 1)))
    return uses


# ------------------------------------------------------------------------ jobs


def _request(
    job: PbsJob, cluster: Cluster, parsed: Parsed
) -> tuple[pb.Request | str, frozenset[str]]:
    try:
        request, demanded = wire_chunks.wire_request(job, cluster, parsed.tables)
    except BadRequest as error:
        return str(error), frozenset()
    request.licences.extend(_licence_uses(job, parsed))
    if (reservation := parsed.by_queue.get(job.queue)) is not None:
        request.reservation = reservation.name
    elif parsed.files.calendar.is_dedicated(job.queue) and (
        span := parsed.files.calendar.span(parsed.tables.now_s)
    ):
        request.reservation = _dedicated_name(span)
    return request, demanded


def _common(job: PbsJob, attributes: Attributes, state: "pb.JobState") -> pb.Job:
    return pb.Job(
        id=job.id,
        version=job.version,
        state=state,
        name=text(attributes, "Job_Name")[:_MAX_TEXT],
        user=job.owner.user[:_MAX_TEXT],
        account=(text(attributes, "Account_Name") or job.owner.project)[:_MAX_TEXT],
        qos=job.owner.group[:_MAX_TEXT],
        submit_s=_instant(attributes, "qtime") or _instant(attributes, "ctime"),
        eligible_s=_instant(attributes, "etime"),
        requeue=text(attributes, "Rerunable").lower() in ("true", "1"),
    )


def _instant(attributes: Attributes, name: str) -> int:
    return values.instant(text(attributes, name))


def _standing(
    job: PbsJob, attributes: Attributes, request: pb.Request | str, parsed: Parsed,
    priorities: Priorities, *, beyond: str,
) -> _Standing:  # fmt: skip
    bounds = parsed.limits_of(job)
    above_soft = limits.is_above_soft(bounds, job.owner)
    queue = parsed.queues.get(job.queue)
    priority, below = priorities.of(job, attributes, queue, above_soft=above_soft)
    tasks = startable = 0
    if job.is_array:
        tasks = startable = indices.count(job.remaining)
        left = limits.runs_left(bounds, job.owner)
        if job.max_tasks:
            startable = min(startable, max(job.max_tasks - parsed.tasks_running.get(job.id, 0), 0))
        startable = startable if left < 0 else min(startable, left)
    begin_s, late = _begin(job, parsed)
    hold, words = _hold(job, request, parsed, below or late or beyond, startable)
    if hold == pb.HOLD_NONE and begin_s:
        hold = pb.HOLD_BEGIN_TIME
    shares = priorities.shares(job, attributes)
    return _Standing(priority, shares, hold, words[:_MAX_TEXT], tasks, startable, begin_s)


def _begin(job: PbsJob, parsed: Parsed) -> tuple[int, str]:
    """When a job may start at the earliest, 0: now; and why it may never, by the time of day."""
    now_s, calendar = parsed.tables.now_s, parsed.files.calendar
    begin_s = max(job.begin_s, now_s)
    if calendar.holidays.in_force:
        limit_s = job.min_walltime_s or job.walltime_s
        begin_s = calendar.begin_s(job.queue, begin_s, limit_s)
        if begin_s == FOREVER:
            return 0, "is longer than each period of prime and non-prime time in which it may run"
    if calendar.is_dedicated(job.queue) and calendar.span(now_s) is None:
        return 0, f"queue {job.queue} runs jobs in dedicated time only, and none is planned"
    return (begin_s if begin_s > now_s else 0), ""


def _waiting(
    job: PbsJob, attributes: Attributes, request: pb.Request | str, standing: _Standing
) -> pb.Job:
    made = _common(job, attributes, pb.JOB_STATE_PENDING)
    made.priority, made.begin_s = standing.priority, standing.begin_s
    made.array_tasks, made.array_startable = standing.tasks, standing.startable
    made.hold, made.hold_text = standing.hold, standing.words
    shares = standing.shares
    made.share_of, made.share_ppm = shares.of[:_MAX_TEXT], shares.ppm
    made.share_usage, made.share_cost = shares.usage, shares.cost
    made.time_limit_s = job.max_walltime_s or job.walltime_s
    if job.min_walltime_s and job.min_walltime_s < made.time_limit_s:
        made.min_time_s = job.min_walltime_s
    if isinstance(request, pb.Request):
        made.request.CopyFrom(request)
    else:
        made.request.partitions.append(job.queue)
    return made


def _hold(
    job: PbsJob, request: pb.Request | str, parsed: Parsed, below: str, startable: int
) -> tuple["pb.Hold", str]:
    """Why a waiting job may not start now (rule 3)."""
    queue = parsed.queues.get(job.queue)
    now_s, calendar = parsed.tables.now_s, parsed.files.calendar
    if isinstance(request, str):
        return pb.HOLD_OTHER, request
    if job.holds:
        if job.depend and job.holds == "s":
            return pb.HOLD_DEPENDENCY, f"waits for {job.depend}"
        return pb.HOLD_HELD, f"hold of type {job.holds}"
    if queue is None:
        return pb.HOLD_PARTITION, f"there is no queue {job.queue}"
    if not queue.starts:
        return pb.HOLD_PARTITION, queue.problem
    reservation = parsed.by_queue.get(job.queue)
    if reservation is not None and not reservation.start_s <= now_s < reservation.end_s:
        return pb.HOLD_RESERVATION, f"reservation {reservation.name} is not active"
    bounds = parsed.limits_of(job)
    if why := limits.exceeded(bounds, job.owner, job.total, parsed.definitions) or limits.mismatch(
        (place for place, _ in bounds), job.words
    ):
        return pb.HOLD_LIMIT, why
    if below:
        return pb.HOLD_OTHER, below
    if job.is_array and not startable:
        return pb.HOLD_ARRAY_LIMIT, "as many tasks of the array run as may (max_run_subjobs)"
    if calendar.is_dedicated(job.queue) and not calendar.is_within(now_s):
        return pb.HOLD_RESERVATION, f"queue {job.queue} runs jobs in dedicated time only"
    if job.begin_s > now_s:
        return pb.HOLD_BEGIN_TIME, ""
    if job.state not in ("Q", "B"):
        return pb.HOLD_OTHER, f"the job is in state {job.state}"
    return pb.HOLD_NONE, ""


def _running(job: PbsJob, attributes: Attributes, parsed: Parsed, cluster: Cluster) -> pb.Job:
    exiting = job.state == "E"
    made = _common(job, attributes, pb.JOB_STATE_COMPLETING if exiting else pb.JOB_STATE_RUNNING)
    start_s = _instant(attributes, "stime") or made.eligible_s or made.submit_s
    made.time_limit_s = job.walltime_s
    made.priority = 1
    held = made.allocation
    held.start_s = min(start_s or parsed.tables.now_s, parsed.tables.now_s)
    held.end_s = 0 if exiting or not job.walltime_s else held.start_s + job.walltime_s
    held.partition = job.queue
    by_node, n_vnodes, held.exclusive = held_on_nodes(job, cluster)
    if job.state not in SUSPENDED:
        held.licences.extend(_licence_uses(job, parsed))
    alike: dict[tuple[tuple[tuple[str, float], ...], int], list[str]] = {}
    for node, taken in by_node.items():
        use = tuple(sorted(taken.items())), n_vnodes.get(node, 0)
        alike.setdefault(use, []).append(node)
    for (amount, count), nodes in alike.items():
        held.uses.append(_use(dict(amount), nodes, parsed))
        if count:
            held.uses[-1].gres.append(pb.Gres(name=wire_chunks.VNODES, count=count))
    head = next(iter(job.held), "")
    held.head = cluster.node_of_vnode.get(head, "")
    return made


def _use(taken: Mapping[str, float], nodes: list[str], parsed: Parsed) -> pb.NodeUse:
    gres = []
    for name, value in taken.items():
        known = parsed.definitions.get(name)
        if name not in ("ncpus", "mem") and known is not None and value and known.is_counted:
            count = wire_chunks.amount_up(known.kind, value)
            gres.append(pb.Gres(name=wire_chunks.gres_name(name), count=count))
    return pb.NodeUse(
        nodes=",".join(nodes),
        cpus=int(taken.get("ncpus", 0)),
        memory_mib=-(-int(taken.get("mem", 0)) // 1024),
        gres=gres,
    )


def _refused(parsed: Parsed) -> list[str]:
    """The configured features of the server that are not supported."""
    found = []
    server = parsed.tables.server
    if any(
        text(vnode, "provision_enable").lower() == "true" for vnode in parsed.tables.vnodes.values()
    ):
        found.append("provisioning of vnodes is not supported: jobs that ask for aoe are held")
    if values.is_true(text(server, "node_group_enable")):
        keys = [server, *(queue.attributes for queue in parsed.queues.values())]
        if any("," in text(attributes, "node_group_key") for attributes in keys):
            found.append("node_group_key: only the first of several resources is used")
    express = [name for name, queue in parsed.queues.items() if queue.priority >= _express(parsed)]
    if express and parsed.settings.preemptive:
        found.append(
            f"preemption is not supported: jobs of the express queue {express[0]} go first,"
            " but no running job is stopped for them"
        )
    return found
