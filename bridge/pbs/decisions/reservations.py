# SPDX-License-Identifier: Apache-2.0
"""Confirms or denies reservations that wait for the scheduler.

Rules
    1. A reservation gets vnodes without queue on which its chunks fit over all of its time, beside
       running jobs that end later than it begins and other confirmed reservations. Waiting jobs are
       planned around it.
    2. A running job without time limit is assumed never to end.
    3. A standing reservation is confirmed if every occurrence fits: `3#(n1:ncpus=1){0-2}`, with all
       occurrences of equal vnodes in one pair of braces.
    4. One for maintenance does not wait for running jobs.
    5. One that lies partly in dedicated time is denied, unless `resv_confirm_ignore` of
       sched_config is dedicated_time, or it is for maintenance. One within it is confirmed, as by
       pbs_sched.
    6. Answers have exactly the form of rule 3: other forms crash the server.

Source: OpenPBS 23.06, pbs_rsub(1B); RFC 5545 for recurrence.
"""

import dataclasses
from collections.abc import Mapping

from bridge.errors import BadRequest
from bridge.pbs.decisions.free_vnodes import FreeVnodes, ReservationRest, takes_whole
from bridge.pbs.decisions.packing import pack_chunks
from bridge.pbs.objects.exec_vnode import format_exec_vnode
from bridge.pbs.objects.jobs import PbsJob, read_job, takes_alone
from bridge.pbs.objects.parsed import (
    ALTERED,
    DEGRADED,
    STANDING,
    UNCONFIRMED,
    Parsed,
    PbsReservation,
    Reader,
)
from bridge.pbs.objects.recurrence import begins, count_of
from bridge.pbs.objects.select import PlaceSharing
from bridge.pbs.objects.vnodes import Vnode
from bridge.pbs.orders import Confirmation
from bridge.pbs.tables import Tables, text

DENIED = Confirmation("null", "PBS_RESV_CONFIRM_FAIL")


def answer(tables: Tables, name: str, reader: Reader | None = None) -> Confirmation | None:
    """Answers a reservation; None: it needs no answer.

    Args:
        tables: the server's.
        reader: keeps what was read before.
    """
    parsed = (reader or Reader()).read(tables)
    requested = parsed.reservations.get(name)
    if requested is None or requested.state not in (UNCONFIRMED, DEGRADED, ALTERED):
        return None
    job = dataclasses.replace(
        read_job(name, requested.attributes, parsed.definitions),
        state="Q",
        held={},
        queue=requested.queue,
    )
    if job.problem or requested.end_s <= max(requested.start_s, tables.now_s):
        return DENIED
    try:
        starts = occurrences(requested)
        written = []
        for start_s in starts:
            one = dataclasses.replace(
                requested, start_s=start_s, end_s=start_s + requested.end_s - requested.start_s
            )
            found = None if _in_dedicated(parsed, one) else _vnodes(parsed, job, one)
            if found is None:
                return DENIED
            written.append(found)
    except BadRequest:
        return DENIED
    location = written[0] if not text(requested.attributes, "reserve_rrule") else _sequence(written)
    partition = text(tables.sched, "partition") or "pbs-default"
    return Confirmation(location, f"PBS_RESV_CONFIRM_SUCCESS:partition={partition}", starts[0])


def _in_dedicated(parsed: Parsed, requested: PbsReservation) -> bool:
    """Whether dedicated time is in the way (rule 5)."""
    if parsed.files.config.confirm_in_dedicated or requested.is_maintenance:
        return False
    spans = parsed.files.calendar.dedicated
    return any(
        begin_s < requested.end_s
        and requested.start_s < end_s
        and not (begin_s <= requested.start_s and requested.end_s <= end_s)
        for begin_s, end_s in spans
    )


def occurrences(requested: PbsReservation) -> list[int]:
    """Returns when a reservation begins, each time.

    Raises:
        BadRequest: its recurrence is not understood, or has too many or no occurrences.
    """
    if not text(requested.attributes, "reserve_rrule"):
        return [requested.start_s]
    return begins(requested.attributes, requested.start_s, count_of(requested.attributes))


def _vnodes(parsed: Parsed, job: PbsJob, requested: PbsReservation) -> str | None:
    """Vnodes for one occurrence; None: there are not enough."""
    free = FreeVnodes(parsed)
    for name, vnode in parsed.vnodes.items():
        free.of_host.setdefault(vnode.host, []).append(name)
    if not requested.is_maintenance:
        for running in parsed.jobs.values():
            end_s = _end_s(running, parsed)
            if running.has_vnodes and not running.is_array and not 0 < end_s <= requested.start_s:
                free.book(running, running.held)
    others = [
        each
        for each in parsed.reservations.values()
        if requested.name not in (each.name, each.of) and each.state in STANDING
        and each.start_s < requested.end_s and requested.start_s < each.end_s
    ]  # fmt: skip
    vnodes = [
        vnode for vnode in parsed.vnodes.values() if _is_free(vnode, job, requested, others, free)
    ]
    outside: dict[str, dict[str, float]] = {}
    for each in others:
        for name, taken in each.held.items():
            on_vnode = outside.setdefault(name, {})
            whole = takes_whole(each, name, parsed)
            held: Mapping[str, float] = parsed.vnodes[name].amounts if whole else taken
            for resource, value in held.items():
                on_vnode[resource] = on_vnode.get(resource, 0.0) + value
    chunks = pack_chunks(job, vnodes, free, ReservationRest(None, outside), {}) if vnodes else None
    return format_exec_vnode(chunks, parsed.definitions) if chunks else None


def _is_free(
    vnode: Vnode,
    job: PbsJob,
    requested: PbsReservation,
    others: list[PbsReservation],
    free: FreeVnodes,
) -> bool:
    attributes = free.parsed.tables.vnodes[vnode.name]
    if vnode.queue or text(attributes, "resv_enable").lower() in ("false", "0"):
        return False
    later = dataclasses.replace(vnode, state="") if vnode.usable else vnode
    if free.closed(later, job, requested):
        return False
    alone = takes_alone(job.place.share, vnode) in (PlaceSharing.EXCLUSIVE, PlaceSharing.HOST)
    return not alone or not any(vnode.name in each.held for each in others)


def _end_s(job: PbsJob, parsed: Parsed) -> int:
    """When a running job ends at the latest; 0: never."""
    word = text(parsed.tables.jobs[job.id], "stime")
    if not job.walltime_s or not word.isdecimal():
        return 0
    return max(int(word) + job.walltime_s, parsed.tables.now_s + 1)


def _sequence(written: list[str]) -> str:
    """Writes the vnodes of all occurrences (rule 3)."""
    at: dict[str, list[int]] = {}
    for index, vnodes in enumerate(written):
        at.setdefault(vnodes, []).append(index)
    return f"{len(written)}#" + "".join(
        f"{vnodes}{{{_spans(each)}}}" for vnodes, each in at.items()
    )


def _spans(ascending: list[int]) -> str:
    spans: list[list[int]] = []
    for index in ascending:
        if spans and index == spans[-1][1] + 1:
            spans[-1][1] = index
        else:
            spans.append([index, index])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in spans)
