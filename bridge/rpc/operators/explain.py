# SPDX-License-Identifier: Apache-2.0
"""Why does my job not start? Answers from the last cycle, in sentences and in blocking jobs.

Rules
    1. Most important first: what is expected, why not now, what helps.
    2. The answer states what it waits for, link by link (`bridge.planning.explain.blocking_chain`),
       and which change of the job would let it start earlier (`bridge.planning.explain.what_if`).
    3. Blockers are the running jobs on the nodes the job is planned on; for a job without a
       planned start those in its partitions. Then the waiting jobs that start before it there.
       Earliest end first, at most `MAX_BLOCKERS`.
    4. About other users' jobs only what `squeue` shows is disclosed: id, name, user, partition,
       nodes, expected start and end.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from bridge.dialect import dialect_of
from bridge.model.job import Hold
from bridge.model.plan import Plan
from bridge.model.reasons import Reason, ReasonCode
from bridge.model.snapshot import Snapshot
from bridge.planning.explain.blocking_chain import BlockingChains, ChainLink, LinkKind
from bridge.planning.explain.changes import JobChange
from bridge.planning.explain.what_if import can_change
from bridge.planning.queue.readable_reasons import held_text
from bridge.planning.queue.time_windows import MISSED
from bridge.rpc.controller.announcements import pending
from bridge.rpc.controller.cycles import Published
from bridge.rpc.operators import extension_methods
from bridge.rpc.pb import operator_pb2 as pb
from bridge.rpc.reported.decode_allocation import is_id
from bridge.units import NEVER, UNPLANNED, format_clock, format_duration
from bridge.words import Words

MAX_BLOCKERS = 20
MAX_LINKS_TOLD = 3
"""In the sentence; the message has them all."""


def rigid(words: Words) -> str:
    """The sentence for a job that states a range of nodes, and shares its nodes."""
    return (
        f"keeps the {words.node}s that it starts on, although it states a range: only jobs that"
        f" hold whole {words.node}s ({words.whole_nodes_option}) can be resized"
    )


UNKNOWN_CHANGES = (
    "changes that would let it start earlier could not be computed: see the service's log"
)


def nothing_helps(words: Words) -> str:
    """The sentence for a job that no change lets start earlier."""
    return (
        f"no shorter {words.time_limit}, smaller size or other {words.partition} is sure to let it "
        "start earlier"
    )


WhatIf = Callable[[Published, int], tuple[JobChange, ...] | None]

_ADVICE = {
    ReasonCode.NODES_DOWN: "it starts when they are back; without naming them it may start earlier",
    ReasonCode.LIMIT: "it becomes free to start when other jobs of that user or {words.account} "
    "end",
    ReasonCode.POWER: "it becomes free to start when other jobs end or the bound of power rises",
    ReasonCode.NEVER: "it can never run as it is: ask for less, or for another {words.partition}",
    ReasonCode.BAD_REQUEST: "it can never run as it is: cancel it and submit it again, corrected",
    ReasonCode.REFUSED: "it is tried again when jobs end, {words.node}s change, or after a while",
}
"""With places for words of the dialect."""

_LINK_KINDS = {
    LinkKind.RUNNING: pb.CHAIN_KIND_RUNNING_JOB,
    LinkKind.WAITING: pb.CHAIN_KIND_WAITING_JOB,
    LinkKind.RESERVATION: pb.CHAIN_KIND_RESERVATION,
    LinkKind.BEGIN_TIME: pb.CHAIN_KIND_BEGIN_TIME,
}


def planned_jobs(published: Published, limit: int) -> list[pb.PlannedJob]:
    """The waiting jobs in the order of their starts, those without a start last.

    Args:
        published: the last cycle.
        limit: most jobs; 0: all.
    """
    plan = published.plan
    key = np.where(plan.start_s == UNPLANNED, NEVER, plan.start_s)
    rows = np.argsort(key, kind="stable")
    return [planned_job(published, int(row)) for row in (rows[:limit] if limit else rows)]


def planned_job(published: Published, row: int) -> pb.PlannedJob:
    snapshot, plan = published.snapshot, published.plan
    jobs, job = snapshot.jobs, int(plan.job[row])
    start_s = int(plan.start_s[row])
    message = pb.PlannedJob(job_id=jobs.id[job], name=jobs.name[job], user=jobs.user[job])
    if start_s in (NEVER, UNPLANNED):
        partitions = [snapshot.partitions[at].name for at in jobs.partitions[job]]
        message.partition = ",".join(partitions)
    else:
        nodes = plan.nodes_of(row)
        message.partition = snapshot.partitions[plan.partition[row]].name
        message.start_s, message.end_s = start_s, int(plan.end_s[row])
        message.nodes, message.node_count = published.nodes.fold(nodes), len(nodes)
    if plan.reasons[row] is not None:
        message.reason.CopyFrom(pending(plan.reasons[row]))
    return message


def running_job(published: Published, row: int) -> pb.PlannedJob:
    snapshot, running = published.snapshot, published.snapshot.running
    nodes = running.nodes[running.indptr[row] : running.indptr[row + 1]]
    partition = int(running.partition[row])
    return pb.PlannedJob(
        job_id=running.id[row],
        name=running.name[row],
        user=running.user[row],
        partition=snapshot.partitions[partition].name if partition >= 0 else "",
        start_s=int(running.start_s[row]),
        end_s=int(running.end_s[row]),
        nodes=published.nodes.fold(nodes),
        node_count=len(nodes),
        running=True,
    )


def explain(
    published: Published, job_id: str, what_if: WhatIf | None = None
) -> pb.ExplainReply | None:
    """Explains one job; None if it is neither waiting nor running.

    Args:
        published: the last cycle.
        what_if: finds changes that would let a row of the plan start earlier; None: not available.
    """
    if not is_id(job_id):
        return None
    snapshot = published.snapshot
    row = _find(snapshot.running.id, job_id)
    if row is not None:
        return _explain_running(published, row)
    job = _find(snapshot.jobs.id, job_id)
    if job is None:  # an unstarted task of an array
        job = _find(snapshot.jobs.id, dialect_of(snapshot).array_of(job_id))
    if job is None:
        return None
    rows = np.flatnonzero(published.plan.job == job)
    key = np.where(published.plan.start_s[rows] == UNPLANNED, NEVER, published.plan.start_s[rows])
    row = int(rows[np.argmin(key)])
    changes, failed = None, False
    if what_if is not None and can_change(published.snapshot, published.plan, row):
        changes = what_if(published, row)
        failed = changes is None
    reply = _explain_waiting(published, job, row, changes)
    if failed:
        reply.lines.append(UNKNOWN_CHANGES)
    return reply


def _find(ids: NDArray[np.object_], job_id: str) -> int | None:
    found = np.flatnonzero(ids == job_id)
    return int(found[0]) if len(found) else None


def _explain_running(published: Published, row: int) -> pb.ExplainReply:
    job = running_job(published, row)
    now_s = published.snapshot.now_s
    where = job.nodes or f"no {dialect_of(published.snapshot).words.node}s"
    lines = [f"runs since {_when(job.start_s, now_s)} on {where}"]
    if job.end_s > now_s:
        lines.append(f"ends at the latest {_when(job.end_s, now_s)}")
    else:
        lines.append("its time is up; it is expected to end at any moment")
    running = published.snapshot.running
    lines.extend(extension_methods.lines(published, row))
    if running.rigid[row] and not running.exclusive[row]:
        lines.append(rigid(dialect_of(published.snapshot).words))
    predicted = published.plan.predicted
    if predicted is not None and now_s < predicted.end_s[row] < job.end_s:
        lines.append(
            f"expected to end {_when(int(predicted.end_s[row]), now_s)}, "
            f"by {predicted.by} run times"
        )
    return pb.ExplainReply(job=job, lines=lines)


def _explain_waiting(
    published: Published, job: int, row: int, changes: tuple[JobChange, ...] | None
) -> pb.ExplainReply:
    snapshot, plan = published.snapshot, published.plan
    now_s, start_s = snapshot.now_s, int(plan.start_s[row])
    message = planned_job(published, row)
    reason = plan.reasons[row]
    words = dialect_of(snapshot).words
    lines: list[str] = []
    if start_s == now_s:
        lines.append(f"starts now on {message.nodes} in {words.partition} {message.partition}")
        return pb.ExplainReply(job=message, lines=lines)
    if start_s not in (NEVER, UNPLANNED):
        lines.append(
            f"expected to start {_when(start_s, now_s)} on {message.nodes} "
            f"in {words.partition} {message.partition}"
        )
    chain = BlockingChains(snapshot, plan).of(row)
    missed = _missed(snapshot, job, reason)
    blockers = []
    if missed or _needs_nodes(reason):
        blockers = _blockers(published, job, row, start_s)
    if reason is not None:
        lines.append(f"does not start now: {reason.text}{_meaning(snapshot, job, reason)}")
        if advice := missed or _advice(snapshot, reason):
            lines.append(advice)
    if chain:
        lines.append(chain_sentence(published, chain))
    holders = [blocker for blocker in blockers if blocker.running]
    if holders:
        last = max(blocker.end_s for blocker in holders)
        count = len({blocker.job_id for blocker in holders})
        what = "1 running job" if count == 1 else f"{count} running jobs"
        lines.append(f"{what} in its way; the last ends at the latest {_when(last, now_s)}")
    if snapshot.jobs.rigid[job] and not snapshot.jobs.exclusive[job]:
        lines.append(rigid(words))
    if snapshot.jobs.array_tasks[job] > 0:
        lines.append(f"{snapshot.jobs.array_tasks[job]} tasks of this array have not started")
    hold = Hold(int(snapshot.jobs.hold[job]))
    if hold is Hold.BEGIN_TIME and snapshot.jobs.begin_s[job] > now_s:
        lines.append(f"not to begin before {_when(int(snapshot.jobs.begin_s[job]), now_s)}")
    if changes is not None:
        lines += [
            f"FreePool {name} keeps {words.node}s from it; with access it would start "
            f"{_when(change.start_s, now_s)}"
            for change in changes
            for name in change.free_pools
        ]
        if all(change.free_pools for change in changes):
            lines.append(nothing_helps(words))
    return pb.ExplainReply(
        job=message,
        lines=lines,
        blockers=blockers,
        chain=[_link(published, link) for link in chain],
        changes=[_change(snapshot, change) for change in changes or ()],
        changes_known=changes is not None,
    )


def chain_sentence(published: Published, chain: tuple[ChainLink, ...]) -> str:
    """Describes the blocking chain in one sentence."""
    parts = [_waits_for(published, link) for link in chain[:MAX_LINKS_TOLD]]
    text = "; that one ".join(f"waits for {part}" for part in parts)
    if more := len(chain) - len(parts):
        text += f"; and so on through {more} more"
    return text


def _waits_for(published: Published, link: ChainLink) -> str:
    now_s = published.snapshot.now_s
    when = format_clock(link.until_s, now_s)
    if link.kind is LinkKind.BEGIN_TIME:
        return f"its begin time {when}"
    if link.kind is LinkKind.RESERVATION:
        reservation = published.snapshot.reservations[link.row]
        edge = "begins" if reservation.start_s == link.until_s else "ends"
        return f"reservation {reservation.name}, which {edge} {when}"
    job = _job_of(published, link)
    on = ""
    if link.shared_nodes:
        node = dialect_of(published.snapshot).words.node
        on = f" on {link.shared_nodes} of its {node}s" if link.shared_nodes > 1 else f" on a {node}"
    if link.licence:
        on = f" with licence {link.licence}"
    who = f"job {job.job_id} of {job.user}"
    if link.kind is LinkKind.RUNNING:
        return f"{who}, running until {when} at the latest{on}"
    return f"{who}, planned until {when}{on}"


def _job_of(published: Published, link: ChainLink) -> pb.PlannedJob:
    if link.kind is LinkKind.RUNNING:
        return running_job(published, link.row)
    return planned_job(published, link.row)


def _link(published: Published, link: ChainLink) -> pb.ChainLink:
    message = pb.ChainLink(
        kind=_LINK_KINDS[link.kind],
        until_s=link.until_s,
        shared_nodes=link.shared_nodes,
        licence=link.licence,
    )
    if link.kind in (LinkKind.RUNNING, LinkKind.WAITING):
        message.job.CopyFrom(_job_of(published, link))
    elif link.kind is LinkKind.RESERVATION:
        message.reservation = published.snapshot.reservations[link.row].name
    return message


def _change(snapshot: Snapshot, change: JobChange) -> pb.Change:
    message = pb.Change(
        start_s=change.start_s,
        time_limit_s=change.time_limit_s,
        options=change.options,
        text=change.text,
        free_pools=change.free_pools,
    )
    if change.partition >= 0:
        message.partition = snapshot.partitions[change.partition].name
    if change.size_kind is not None:
        setattr(message, change.size_kind.value, change.size)
    return message


def _meaning(snapshot: Snapshot, job: int, reason: Reason) -> str:
    """Explains a reason of the controller that users see without a sentence."""
    jobs = snapshot.jobs
    word = jobs.hold_text[job]
    text = held_text(dialect_of(snapshot).words, Hold(int(jobs.hold[job])))
    return f": {text}" if text and word == reason.text and word.isalpha() else ""


def _advice(snapshot: Snapshot, reason: Reason) -> str:
    words = dialect_of(snapshot).words
    if reason.code is ReasonCode.HELD:
        return f"release it with '{words.release_command}'; but not an administrator's hold"
    return _ADVICE.get(reason.code, "").format(words=words)


def _missed(snapshot: Snapshot, job: int, reason: Reason | None) -> str:
    """Advice for a job that misses its own fixed start or deadline; empty for others."""
    if reason is None or not reason.text.startswith(MISSED):
        return ""
    if snapshot.jobs.fixed[job]:
        return f"give it another time with '{dialect_of(snapshot).words.begin_command}'"
    helps = f"a shorter {dialect_of(snapshot).words.time_limit} or a later deadline helps"
    return helps if not reason.can_ever_run else f"it still starts if room appears in time; {helps}"


def _needs_nodes(reason: Reason | None) -> bool:
    return reason is not None and reason.code in (
        ReasonCode.RESOURCES,
        ReasonCode.PRIORITY,
        ReasonCode.LICENCES,
    )


def _blockers(published: Published, job: int, row: int, start_s: int) -> list[pb.PlannedJob]:
    snapshot, plan = published.snapshot, published.plan
    running = snapshot.running
    wanted = np.zeros(len(snapshot.nodes), dtype=bool)
    if start_s in (NEVER, UNPLANNED):
        for partition in snapshot.jobs.partitions[job]:
            wanted[snapshot.partitions[partition].nodes] = True
    else:
        wanted[plan.nodes_of(row)] = True
    owner = np.repeat(np.arange(len(running)), np.diff(running.indptr))
    holders = np.unique(owner[wanted[running.nodes]])
    holders = holders[np.argsort(running.end_s[holders], kind="stable")]
    found = [running_job(published, int(at)) for at in holders[:MAX_BLOCKERS]]
    room = MAX_BLOCKERS - len(found)
    if start_s not in (NEVER, UNPLANNED):
        found += [planned_job(published, at) for at in _before(plan, wanted, start_s, row)[:room]]
    return found


def _before(plan: Plan, wanted: NDArray[np.bool_], start_s: int, row: int) -> list[int]:
    """Rows that hold the requested nodes before a start; earliest end first."""
    owner = np.repeat(np.arange(len(plan)), np.diff(plan.indptr))
    rows = np.unique(owner[wanted[plan.nodes]])
    rows = rows[(plan.start_s[rows] < start_s) & (rows != row)]
    ordered: list[int] = rows[np.argsort(plan.end_s[rows], kind="stable")].tolist()
    return ordered


def _when(at_s: int, now_s: int) -> str:
    """An instant as text: `at 14:05 (in 20 min)`, with the date if it is not today."""
    shown = format_clock(at_s, now_s)
    if at_s >= now_s:
        return f"at {shown} (in {format_duration(at_s - now_s)})"
    return f"{shown} ({format_duration(now_s - at_s)} ago)"
