# SPDX-License-Identifier: Apache-2.0
"""Checks that guests start, run and leave by the rules, without code of the planners.

Rules
    1. A guest starts now, all at once, on some or all nodes of its host. The host runs, is not
       itself a guest, has no guest on these nodes, and holds all CPUs of its nodes, so that no
       third job can start there.
    2. Both are in one partition, where the controller can share and the site lets jobs share. Both
       consent, and the scope of the site's rules for that partition covers them.
    3. Neither requested whole nodes or chunks, both use only CPUs and memory, and the guest may be
       requeued.
    4. On each node the memory of the host, as requested or as measured if that is more, the memory
       that the guest asks for, and the margin fit. A host whose memory is unknown has no guest, and
       a job that does not state its memory is no guest.
    5. A guest obeys all rules of an ordinary start, except that its CPUs are its host's
       (`host_cpus_free`). All other rows obey the rules with the guests running (`guests_running`).
    6. Quotas are for guests that run or start now, one for each, with valid values.
    7. A guest is requeued only if it runs and may be requeued, once.
    8. A time limit is lengthened only of a running job that has had guests, is none itself, and
       whose controller can do it: once, by the time with guests at most.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridge.extensions.port import Check, Worlds
from bridge.extensions.sharing.counting import as_reported, counted_once, pairs
from bridge.extensions.sharing.part import SharedNodes, shared_of
from bridge.extensions.sharing.quotas import MAX_WEIGHT, MIN_WEIGHT
from bridge.extensions.sharing.rules import NAME, CoschedulingRules, rules_of, sharing_rules
from bridge.model.job import RUNNING_COLUMNS, RunningTable, rows_by_id
from bridge.model.job_columns import objects
from bridge.model.node import CPUS, MEMORY_MIB
from bridge.model.plan import Plan
from bridge.model.reasons import Reason, ReasonCode
from bridge.model.rules.site import Site
from bridge.model.snapshot import Snapshot
from bridge.model.sound_columns import amounts, length
from bridge.units import UNPLANNED

Broken = tuple[str, str]
"""Job id, and what is wrong."""
_WAITS = Reason(ReasonCode.OTHER, "starts as a guest")


class SharingCheck(Check):
    """See `bridge.extensions.port.Check`."""

    def broken(self, snapshot: Snapshot, site: Site, plan: Plan) -> Iterator[Broken]:
        """The violations of rules 1 to 4 and 6 to 8."""
        part = shared_of(plan)
        if part.host_id is not None and len(part.host_id) > len(plan):
            yield "", "has hosts for more rows than it has"
            return
        yield from _starts(snapshot, site, plan)
        yield from _quotas(snapshot, plan)
        yield from _requeues(snapshot, part)
        yield from _extensions(snapshot, part)

    def worlds(self, snapshot: Snapshot, site: Site, plan: Plan) -> Worlds:  # noqa: ARG002
        """Those of rule 5."""
        if not len(shared_of(plan).guest_starts):
            return ()
        return (
            (host_cpus_free(snapshot, plan), plan.having(NAME, None)),
            guests_running(snapshot, plan),
        )

    def faults(self, snapshot: Snapshot, plan: Plan) -> Iterator[tuple[str, str]]:  # noqa: ARG002
        """Columns of different lengths, and impossible amounts."""
        part = shared_of(plan)
        quotas, longer = part.quotas, part.extensions
        if part.host_id is not None and len(part.host_id) > len(plan):
            yield "host_id", f"has {len(part.host_id)} rows where {len(plan)} belong"
        yield from length("requeues.reasons", part.requeues.reasons, len(part.requeues))
        for name, column, count in (
            ("extensions.total_s", longer.total_s, len(longer)),
            ("quotas.milli_cpus_per_node", quotas.milli_cpus_per_node, len(quotas)),
            ("quotas.weight", quotas.weight, len(quotas)),
        ):
            yield from length(name, column, count)
            yield from amounts(name, column)


def _starts(snapshot: Snapshot, site: Site, plan: Plan) -> Iterator[Broken]:
    running, ids, part = snapshot.running, snapshot.jobs.id, shared_of(plan)
    rows_of = rows_by_id(running)
    shared = set[int]()
    for guest in pairs(running):
        shared.update(running.nodes[running.indptr[guest] : running.indptr[guest + 1]].tolist())
    reported = as_reported(running)
    for row in part.guest_starts.tolist():
        job, host_id = int(plan.job[row]), part.host_of(row)
        host, nodes = rows_of.get(host_id), plan.nodes_of(row)
        if host is None:
            text = f"is to be the guest of {host_id:.60}, which does not run"
        elif not shared.isdisjoint(nodes.tolist()):
            text = f"is to be a second guest of {host_id:.60} on a node"
        else:
            text = _pair(snapshot, site, plan, (row, host), reported)
        shared.update(nodes.tolist())
        if text:
            yield str(ids[job]), text


def _pair(
    snapshot: Snapshot, site: Site, plan: Plan, at: tuple[int, int], reported: NDArray[np.int64]
) -> str:
    """Why a guest may not run on its host; empty: it may.

    Args:
        at: the guest's row there, and its host's in the running jobs.
        reported: what running jobs hold, as `RunningTable.use`, each by itself.
    """
    row, host = at
    jobs, running, job = snapshot.jobs, snapshot.running, int(plan.job[row])
    held = slice(int(running.indptr[host]), int(running.indptr[host + 1]))
    nodes, use = running.nodes[held], reported[held]
    capacity = snapshot.nodes.capacity[nodes]
    rules = _rules(snapshot, site, int(running.partition[host]))
    inside = np.isin(nodes, plan.nodes_of(row))
    if plan.start_s[row] != plan.now_s or not np.array_equal(plan.nodes_of(row), nodes[inside]):
        return "starts as a guest, but not now on nodes of its host"
    if running.host_id[host] or running.adapting[host]:
        return "is to be the guest of a job that is a guest or is being resized"
    if (use[:, CPUS] != capacity[:, CPUS]).any():
        return "is to be the guest of a job that does not hold all CPUs of its nodes"
    if rules is None:
        return "is to share nodes in a partition without sharing"
    if plan.partition[row] != running.partition[host]:
        return "is to share nodes with a job of another partition"
    if not rules.allows_host(int(running.coschedule[host])):
        return "is to be the guest of a job that has not consented"
    if not rules.allows_guest(int(jobs.coschedule[job])):
        return "is to be a guest and has not consented"
    if not rules.together(
        (str(running.user[host]), str(running.account[host])),
        (str(jobs.user[job]), str(jobs.account[job])),
    ):
        return f"is to share nodes with a job of another {rules.scope}"
    if running.exclusive[host] or jobs.exclusive[job]:
        return "is to share nodes that it or its host requested whole"
    wants = jobs.per_node[job] + jobs.per_task[job] * plan.tasks_of(row)[:, None]
    if wants[:, MEMORY_MIB + 1 :].any() or use[:, MEMORY_MIB + 1 :].any():
        return "is to share nodes and uses generic resources"
    if jobs.chunks[job] is not None:
        return "is to be a guest and requests chunks"
    if not jobs.requeue[job]:
        return "is to be a guest and may not be requeued"
    return _memory(capacity[inside], use[inside], wants, int(running.peak_mib[host]), rules)


def _memory(
    capacity: NDArray[np.int64],
    use: NDArray[np.int64],
    wants: NDArray[np.int64],
    peak_mib: int,
    rules: CoschedulingRules,
) -> str:
    """Why the memory of host and guest does not fit on a node; empty: it fits (rule 4)."""
    host = np.maximum(use[:, MEMORY_MIB], peak_mib)
    guest = wants[:, MEMORY_MIB]
    if not (host > 0).all() or not (guest > 0).all():
        return "is to share nodes, but its memory or its host's is not known"
    margin = rules.memory_margin * capacity[:, MEMORY_MIB]
    if (host + guest + margin > capacity[:, MEMORY_MIB]).any():
        return "is to share nodes that lack the memory for both"
    return ""


def _rules(snapshot: Snapshot, site: Site, partition: int) -> CoschedulingRules | None:
    if partition < 0 or not snapshot.partitions[partition].shared:
        return None
    return rules_of(sharing_rules(site), snapshot.partitions[partition].name)


def _quotas(snapshot: Snapshot, plan: Plan) -> Iterator[Broken]:
    """Quotas of jobs that are no guests, second ones, and impossible ones (rule 6)."""
    quotas, starts = shared_of(plan).quotas, shared_of(plan).guest_starts
    if not len(quotas.id) == len(quotas.milli_cpus_per_node) == len(quotas.weight):
        yield "", "has columns of quotas of different length"
        return
    running = snapshot.running
    known = set(running.id[running.host_id.astype(bool)].tolist())
    known.update(snapshot.jobs.id[plan.job[starts]].tolist())
    seen: set[str] = set()
    for job_id, quota, weight in zip(
        quotas.id.tolist(), quotas.milli_cpus_per_node.tolist(), quotas.weight.tolist(), strict=True
    ):
        if job_id not in known or job_id in seen:
            yield job_id, "has two quotas" if job_id in seen else "has a quota but is no guest"
        elif quota < 0 or not MIN_WEIGHT <= weight <= MAX_WEIGHT:
            yield job_id, "has an impossible quota or weight"
        seen.add(job_id)


def _requeues(snapshot: Snapshot, part: SharedNodes) -> Iterator[Broken]:
    """Requeues of jobs that are no running guests or may not be, and second ones (rule 7)."""
    running, seen = snapshot.running, set[str]()
    if len(part.requeues.reasons) != len(part.requeues.id):
        yield "", "has columns of requeues of different length"
        return
    guests = {
        job_id: bool(running.requeue[row])
        for row, job_id in enumerate(running.id.tolist())
        if running.host_id[row]
    }
    for job_id in part.requeues.id.tolist():
        if job_id in seen or not guests.get(job_id, False):
            yield job_id, "is requeued twice, is no guest, or may not be requeued"
        seen.add(job_id)


def _extensions(snapshot: Snapshot, part: SharedNodes) -> Iterator[Broken]:
    """Limits lengthened twice, or by more than the time with guests (rule 8)."""
    running, seen = snapshot.running, set[str]()
    if len(part.extensions.total_s) != len(part.extensions.id):
        yield "", "has columns of extensions of different length"
        return
    max_s: dict[str, int] = {}
    for row in np.flatnonzero(running.extendable).tolist():
        if not running.host_id[row] and not running.releasing[row]:
            since_s, now_s = int(running.hosted_since_s[row]), snapshot.now_s
            until_s = min(now_s, int(running.end_s[row]) - int(running.extended_s[row]))
            present_s = max(until_s - since_s, 0) if since_s else 0  # clocks can be set back
            ran_s = max(now_s - int(running.start_s[row]), 0)
            max_s[str(running.id[row])] = min(int(running.hosted_s[row]) + present_s, ran_s)
    for job_id, total_s in zip(
        part.extensions.id.tolist(), part.extensions.total_s.tolist(), strict=True
    ):
        if job_id in seen or not 0 < total_s <= max_s.get(job_id, 0):
            yield job_id, "has its limit lengthened twice, or by more than its time with guests"
        seen.add(job_id)


# ---------------------------------------------------------------- worlds for rule 5


def host_cpus_free(snapshot: Snapshot, plan: Plan) -> Snapshot:
    """The snapshot in which the hosts of the plan's guests hold no CPU on the guests' nodes."""
    running, part = snapshot.running, shared_of(plan)
    starts = part.guest_starts.tolist()
    hosts = {part.host_of(row) for row in starts}
    shared = np.concatenate([plan.nodes_of(row) for row in starts])
    use = running.use.copy()
    for row, job_id in enumerate(running.id.tolist()):
        if job_id in hosts:
            held = np.arange(running.indptr[row], running.indptr[row + 1])
            use[held[np.isin(running.nodes[held], shared)], CPUS] = 0
    return snapshot.with_running(replace(running, use=use))


def guests_running(snapshot: Snapshot, plan: Plan) -> tuple[Snapshot, Plan]:
    """The snapshot in which the plan's guests run, and the plan in which they wait."""
    rows = shared_of(plan).guest_starts
    running = counted_once(_with_guests(snapshot, plan, rows))
    starts = np.ones(len(plan), dtype=bool)
    starts[rows] = False
    width = np.diff(plan.indptr)
    entries = np.repeat(starts, width)
    waits = dict.fromkeys(rows.tolist(), _WAITS)
    return snapshot.with_running(running), replace(
        plan.having(NAME, None),
        start_s=np.where(starts, plan.start_s, UNPLANNED),
        end_s=np.where(starts, plan.end_s, 0),
        partition=np.where(starts, plan.partition, -1).astype(np.int32),
        indptr=np.concatenate(([0], np.cumsum(np.where(starts, width, 0)))).astype(np.int64),
        nodes=plan.nodes[entries],
        tasks=plan.tasks[entries],
        groups=None if plan.groups is None else plan.groups[entries],
        reasons=tuple(waits.get(row, reason) for row, reason in enumerate(plan.reasons)),
    )


def _with_guests(snapshot: Snapshot, plan: Plan, rows: NDArray[np.intp]) -> RunningTable:
    """The running jobs and guests as reported, each with CPUs of its own."""
    jobs, running = snapshot.jobs, snapshot.running
    job, more = plan.job[rows], len(rows)
    columns: dict[str, NDArray[Any]] = {
        each.name: each.left_out(more, running.use.shape[1])
        for each in RUNNING_COLUMNS
        if each.name != "licences"
    }
    columns |= {
        "id": objects(f"{jobs.id[at]} (guest {row})" for row, at in zip(rows, job, strict=True)),
        "name": jobs.name[job], "user": jobs.user[job], "account": jobs.account[job],
        "start_s": plan.start_s[rows], "end_s": plan.end_s[rows],
        "partition": plan.partition[rows].astype(np.int64), "licences": jobs.licences[job],
        "requeue": jobs.requeue[job],
        "host_id": objects(shared_of(plan).host_of(row) for row in rows.tolist()),
    }  # fmt: skip
    nodes = [plan.nodes_of(row) for row in rows.tolist()]
    use = [
        jobs.per_node[at] + jobs.per_task[at] * plan.tasks_of(row)[:, None]
        for row, at in zip(rows.tolist(), job.tolist(), strict=True)
    ]
    ends = running.indptr[-1] + np.cumsum([len(each) for each in nodes])
    return RunningTable(
        **{
            name: np.concatenate((getattr(running, name), column))
            for name, column in columns.items()
        },
        indptr=np.concatenate((running.indptr, ends)).astype(np.int64),
        nodes=np.concatenate((running.nodes, *nodes)),
        use=np.concatenate((running.use, *use)),
    )
