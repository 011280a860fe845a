# SPDX-License-Identifier: Apache-2.0
"""The free amounts of vnodes now, and the jobs that use them exclusively.

Rules
    1. An amount with `@other` is counted on that vnode.
    2. A job uses a vnode alone by its place and the vnode's `sharing`; exclhost extends to all
       vnodes of the host.
    3. A vnode in state job-exclusive is in use alone, even if no job is known there.
    4. Vnodes of a reservation that is active, or that begins before the job would end, are free for
       its own jobs only, up to the reserved amounts. Another job may use what is not reserved.
"""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from bridge.pbs.objects.jobs import SUSPENDED, Held, PbsJob, takes_alone
from bridge.pbs.objects.parsed import STANDING, Parsed, PbsReservation
from bridge.pbs.objects.select import PlaceSharing
from bridge.pbs.objects.vnodes import CLOSED, Vnode

_ALONE = (PlaceSharing.EXCLUSIVE, PlaceSharing.HOST)


@dataclass
class FreeVnodes:
    """The free amounts; admitted starts change them.

    Attributes:
        used: vnode to resource to amount.
        jobs: vnode to the running jobs there, with their users and groups.
        alone: vnode to the job that uses it alone.
        of_host: host to its vnodes.
        in_reservation: queue of a reservation to what its jobs hold.
    """

    parsed: Parsed
    used: dict[str, dict[str, float]] = field(default_factory=dict)
    jobs: dict[str, dict[str, tuple[str, str]]] = field(default_factory=dict)
    alone: dict[str, str] = field(default_factory=dict)
    of_host: dict[str, list[str]] = field(default_factory=dict)
    in_reservation: dict[str, dict[str, dict[str, float]]] = field(default_factory=dict)

    @classmethod
    def of(cls, parsed: Parsed) -> "FreeVnodes":
        """Counts what running jobs hold."""
        free = cls(parsed)
        for name, vnode in parsed.vnodes.items():
            free.of_host.setdefault(vnode.host, []).append(name)
        for job in parsed.jobs.values():
            if job.has_vnodes and not job.is_array:
                free.book(job, job.held)
        return free

    def book(self, job: PbsJob, held: Held, job_id: str = "") -> None:
        owner = (job.owner.user, job.owner.group)
        self._count_inside(job, held, 1)
        for name, taken in held.items():
            self._count(name, taken, 1)
            if job.state in SUSPENDED:
                continue
            self.jobs.setdefault(name, {})[job_id or job.id] = owner
            vnode = self.parsed.vnodes.get(name)
            share = takes_alone(job.place.share, vnode) if vnode else PlaceSharing.SHARED
            if share in _ALONE:
                self.alone[name] = job_id or job.id
            if share is PlaceSharing.HOST and vnode is not None:
                for other in self.of_host.get(vnode.host, ()):
                    self.alone[other] = job_id or job.id

    def release(self, job: PbsJob, held: Held, job_id: str) -> None:
        """Removes a job again."""
        self._count_inside(job, held, -1)
        for name, taken in held.items():
            self._count(name, taken, -1)
            self.jobs.get(name, {}).pop(job_id, None)
        for name in [name for name, owner in self.alone.items() if owner == job_id]:
            del self.alone[name]

    def _count_inside(self, job: PbsJob, held: Held, sign: int) -> None:
        if job.queue not in self.parsed.by_queue:
            return
        inside = self.in_reservation.setdefault(job.queue, {})
        for vnode, taken in held.items():
            on_vnode = inside.setdefault(vnode, {})
            for name, value in taken.items():
                on_vnode[name] = on_vnode.get(name, 0.0) + sign * value

    def _count(self, name: str, taken: Mapping[str, float], sign: int) -> None:
        vnode = self.parsed.vnodes.get(name)
        for resource, value in taken.items():
            on = vnode.counted_on.get(resource, name) if vnode else name
            used = self.used.setdefault(on, {})
            used[resource] = used.get(resource, 0.0) + sign * value

    def room(self, vnode: Vnode, resource: str, kept: "ReservationRest") -> float:
        """Returns how much of a resource a job can take of a vnode."""
        known = self.parsed.definitions.get(resource)
        if known is not None and not known.compared:
            return math.inf
        on = vnode.counted_on.get(resource, vnode.name)
        owner = self.parsed.vnodes.get(on)
        total = owner.amounts.get(resource, 0.0) if owner else 0.0
        used = self.used.get(on, {}).get(resource, 0.0)
        return kept.room(on, resource, total - used)

    def closed(self, vnode: Vnode, job: PbsJob, reservation: PbsReservation | None) -> str:
        """Returns why a job may not start on a vnode, apart from amounts; empty: it may."""
        if not vnode.usable:
            words = set(vnode.state.split(","))
            return f"is {vnode.state}" if words & CLOSED else "takes no jobs of this scheduler"
        if reservation is None and vnode.queue != self._queue(job):
            return f"belongs to queue {vnode.queue}" if vnode.queue else "is not of the job's queue"
        if vnode.name in self.alone:
            return f"is used alone by job {self.alone[vnode.name]}"
        if "job-exclusive" in vnode.state and not self.jobs.get(vnode.name):
            return "is in state job-exclusive"
        if "resv-exclusive" in vnode.state and reservation is None:
            return "is reserved"
        share, there = takes_alone(job.place.share, vnode), self.jobs.get(vnode.name, {})
        if share in _ALONE and there:
            return f"is used by job {next(iter(there))}, and the job wants it alone"
        if share is PlaceSharing.HOST:
            for other in self.of_host.get(vnode.host, ()):
                if self.jobs.get(other):
                    return f"is on a host that job {next(iter(self.jobs[other]))} uses"
        return self._too_many(vnode, job, there)

    def _queue(self, job: PbsJob) -> str:
        """The queue whose vnodes a job uses; empty: those of no queue."""
        owners = self._owners
        return job.queue if job.queue in owners else ""

    @cached_property
    def _owners(self) -> frozenset[str]:
        return frozenset(vnode.queue for vnode in self.parsed.vnodes.values() if vnode.queue)

    @staticmethod
    def _too_many(vnode: Vnode, job: PbsJob, there: Mapping[str, tuple[str, str]]) -> str:
        users = Counter(user for user, _ in there.values())
        groups = Counter(group for _, group in there.values())
        counts = {
            "max_running": len(there),
            "max_user_run": users[job.owner.user],
            "max_group_run": groups[job.owner.group],
        }
        for limit, maximum in vnode.limits.items():
            if counts[limit] >= maximum:
                return f"runs {counts[limit]} jobs, its {limit} is {maximum}"
        return ""


@dataclass(frozen=True)
class ReservationRest:
    """The amounts that reservations leave to one job (rule 4).

    Attributes:
        inside: what its own reservation has, less what other jobs of it hold; None: it has none.
        outside: what other reservations take: vnode to resource to amount.
    """

    inside: Held | None
    outside: Held

    def room(self, vnode: str, resource: str, free: float) -> float:
        """Returns what a job can take of what is free."""
        if self.inside is not None:
            return min(free, self.inside.get(vnode, {}).get(resource, 0.0))
        return free - self.outside.get(vnode, {}).get(resource, 0.0)


def kept_by_reservations(
    parsed: Parsed, free: FreeVnodes, own: PbsReservation | None, end_s: int
) -> ReservationRest:
    """Returns what reservations leave to a job.

    Args:
        own: the job's reservation.
        end_s: when the job would end.
    """
    if own is not None:
        return ReservationRest(_less(own.held, free.in_reservation.get(own.queue, {})), {})
    outside: dict[str, dict[str, float]] = {}
    for each in parsed.reservations.values():
        if each.state not in STANDING or each.start_s >= end_s or each.end_s <= parsed.tables.now_s:
            continue
        active = each.start_s <= parsed.tables.now_s
        left = _less(each.held, free.in_reservation.get(each.queue, {})) if active else each.held
        for vnode, taken in left.items():
            on_vnode = outside.setdefault(vnode, {})
            whole = parsed.vnodes[vnode].amounts if takes_whole(each, vnode, parsed) else taken
            for name, value in whole.items():
                on_vnode[name] = on_vnode.get(name, 0.0) + value
    return ReservationRest(None, outside)


def takes_whole(reservation: PbsReservation, vnode: str, parsed: Parsed) -> bool:
    """Tells whether a reservation takes a vnode alone."""
    listed = reservation.attributes.get("Resource_List")
    place = listed.get("place", "") if isinstance(listed, dict) else ""
    return vnode in parsed.vnodes and ("excl" in place or reservation.is_maintenance)


def _less(whole: Held, part: Held) -> dict[str, dict[str, float]]:
    return {
        vnode: {
            name: max(value - part.get(vnode, {}).get(name, 0.0), 0.0)
            for name, value in taken.items()
        }
        for vnode, taken in whole.items()
    }
