# SPDX-License-Identifier: Apache-2.0
"""Puts the chunks of a job on given vnodes.

Rules
    1. A chunk is on one host; except for vscatter it may use several of its vnodes, each of which
       matches its strings and booleans.
    2. pack: all chunks on one host. scatter: at most one chunk on a host; vscatter: on a vnode.
       group=R: all vnodes have a value of R in common (`bridge.pbs.objects.placement_sets`).
    3. The planned CPUs of each host are a hint for the first attempt; the second one ignores it.
    4. Chunks are placed in descending order of what they take, each on the host that it leaves the
       least CPUs free; in the result they are in the order of the select.
    5. A job that takes hosts alone gets all their vnodes: those of which nothing is taken come
       last, as chunks without amounts, as pbs_sched writes them. The server closes only the vnodes
       that a job's exec_vnode names.
"""

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bridge.pbs.decisions.free_vnodes import FreeVnodes, ReservationRest
from bridge.pbs.objects.jobs import PbsJob, takes_alone
from bridge.pbs.objects.parsed import Parsed
from bridge.pbs.objects.placement_sets import group_key, is_grouped, placement_sets
from bridge.pbs.objects.select import Arrange, PbsChunk, PlaceSharing
from bridge.pbs.objects.vnodes import Vnode, mismatch

Parts = list[tuple[str, dict[str, float]]]

_CPUS = "ncpus"


@dataclass
class _Attempt:
    """One attempt: the amounts taken of vnodes so far, and the rest of the hint."""

    job: PbsJob
    free: FreeVnodes
    kept: ReservationRest
    left: dict[tuple[str, str], float] = field(default_factory=dict)
    hint: dict[str, float] = field(default_factory=dict)
    used_hosts: set[str] = field(default_factory=set)
    used_vnodes: set[str] = field(default_factory=set)


def pack_chunks(
    job: PbsJob,
    vnodes: Sequence[Vnode],
    free: FreeVnodes,
    kept: ReservationRest,
    hint: Mapping[str, float],
) -> list[Parts] | None:
    """Returns for each chunk the vnodes and what it takes there; None: they do not fit.

    Args:
        vnodes: those on which it may start.
        hint: planned CPUs by host.
    """
    for candidates in _groups(job, vnodes, free.parsed):
        for planned in (hint, {}):
            if (found := _attempt(job, candidates, free, kept, planned)) is not None:
                return _with_rest_of_hosts(job, found, free)
            if not hint:
                break
    return None


def _with_rest_of_hosts(job: PbsJob, chunks: list[Parts], free: FreeVnodes) -> list[Parts]:
    """Adds the other vnodes of hosts that the job takes alone (rule 5)."""
    vnodes, used = free.parsed.vnodes, [name for parts in chunks for name, _ in parts]
    hosts = dict.fromkeys(
        vnodes[name].host
        for name in used
        if takes_alone(job.place.share, vnodes[name]) is PlaceSharing.HOST
    )
    rest = [name for host in hosts for name in free.of_host.get(host, ()) if name not in set(used)]
    return chunks + [[(name, {})] for name in rest]


def _groups(job: PbsJob, vnodes: Sequence[Vnode], parsed: Parsed) -> Sequence[Sequence[Vnode]]:
    """The sets of vnodes of which one is to be used: all, or those with a value in common."""
    sets: Sequence[Sequence[Vnode]] = [vnodes]
    if is_grouped(job, parsed.vnodes.values(), parsed.tables, parsed.definitions):
        sets = placement_sets(vnodes, group_key(job, parsed.tables))
    if job.place.arrange is Arrange.PACK:
        sets = [each for part in sets for each in placement_sets(part, "host")]
    return sets


def _attempt(
    job: PbsJob,
    vnodes: Sequence[Vnode],
    free: FreeVnodes,
    kept: ReservationRest,
    hint: Mapping[str, float],
) -> list[Parts] | None:
    hosts: dict[str, list[Vnode]] = {}
    for vnode in vnodes:
        hosts.setdefault(vnode.host, []).append(vnode)
    at = _Attempt(job, free, kept, hint=dict(hint))
    kinds = sorted(
        range(len(job.chunks)),
        key=lambda kind: (-job.wants[kind].get(_CPUS, 0), -sum(job.wants[kind].values())),
    )
    # Chunks that name their host or vnode come first: the others can go elsewhere.
    kinds.sort(key=lambda kind: not {"host", "vnode"} & job.chunks[kind].resources.keys())
    placed: dict[int, list[Parts]] = {}
    for kind in kinds:
        chunk, want = job.chunks[kind], _compared(job.wants[kind], free.parsed)
        found = _place(chunk, want, hosts, at)
        if found is None:
            return None
        placed[kind] = found
    return [parts for kind in range(len(job.chunks)) for parts in placed[kind]]


def _compared(want: Mapping[str, float], parsed: Parsed) -> dict[str, float]:
    """What a chunk takes of vnodes: what is compared with what they have, as under pbs_sched."""
    return {name: value for name, value in want.items() if parsed.definitions[name].compared}


def _place(
    chunk: PbsChunk, want: Mapping[str, float], hosts: Mapping[str, list[Vnode]], at: _Attempt
) -> list[Parts] | None:
    """Places all chunks of a kind, one after the other (rule 4).

    The heap has the hosts by the CPUs that one more chunk would leave free there. Only the host
    that a chunk is placed on changes, so that each chunk looks at few hosts.
    """
    heap: list[tuple[float, int, str]] = []
    for number, (host, vnodes) in enumerate(hosts.items()):
        if (choice := _choice(chunk, want, host, vnodes, at)) is not None:
            heap.append((choice[0], number, host))
    heapq.heapify(heap)
    placed: list[Parts] = []
    while heap and len(placed) < chunk.count:
        rest, number, host = heap[0]
        choice = _choice(chunk, want, host, hosts[host], at)
        if choice is None:
            heapq.heappop(heap)
        elif choice[0] > rest:  # a resource that is counted on a vnode of another host
            heapq.heapreplace(heap, (choice[0], number, host))
        else:
            _take(host, choice[1], want, at)
            placed.append(choice[1])
            heapq.heapreplace(heap, (choice[0] - want.get(_CPUS, 0), number, host))
    return placed if len(placed) == chunk.count else None


def _choice(
    chunk: PbsChunk, want: Mapping[str, float], host: str, vnodes: list[Vnode], at: _Attempt
) -> tuple[float, Parts] | None:
    """The CPUs that a chunk leaves free on a host, and its vnodes there; None: it does not fit."""
    place, cpus, planned = at.job.place.arrange, want.get(_CPUS, 0), at.hint.get(host)
    if place is Arrange.SCATTER and host in at.used_hosts:
        return None
    if at.hint and (planned is None or planned < cpus or (planned == 0 and cpus == 0)):
        return None
    matching = [
        vnode
        for vnode in vnodes
        if not mismatch(vnode, chunk, at.free.parsed.definitions)
        and not (place is Arrange.VSCATTER and vnode.name in at.used_vnodes)
    ]
    parts = _on_host(want, matching, at)
    if parts is None:
        return None
    return (planned if planned is not None else _room(matching, _CPUS, at)) - cpus, parts


def _take(host: str, parts: Parts, want: Mapping[str, float], at: _Attempt) -> None:
    at.used_hosts.add(host)
    if host in at.hint:
        at.hint[host] -= want.get(_CPUS, 0)
    for name, taken in parts:
        at.used_vnodes.add(name)
        for resource, value in taken.items():
            key = _owner(at.free.parsed.vnodes[name], resource), resource
            at.left[key] = at.left.get(key, 0.0) + value


def _on_host(want: Mapping[str, float], vnodes: Sequence[Vnode], at: _Attempt) -> Parts | None:
    """One chunk on one vnode of a host, the fullest that has room, or else on several."""
    best: tuple[float, Vnode] | None = None
    for vnode in vnodes:
        left = {name: _free(vnode, name, at) for name in want}
        if all(left[name] >= value for name, value in want.items()):
            rest = left.get(_CPUS, 0.0) - want.get(_CPUS, 0.0)
            if best is None or rest < best[0]:
                best = (rest, vnode)
    if best is not None:
        return [(best[1].name, dict(want))]
    if at.job.place.arrange is Arrange.VSCATTER or len(vnodes) < 2:
        return None
    missing = {name: value for name, value in want.items() if value > 0}
    parts: Parts = []
    taken_now: dict[tuple[str, str], float] = {}
    for vnode in vnodes:
        taken = {}
        for name, value in missing.items():
            key = _owner(vnode, name), name
            room = _free(vnode, name, at) - taken_now.get(key, 0.0)
            if (maximum := min(value, max(room, 0.0))) > 0:
                taken[name] = maximum
                taken_now[key] = taken_now.get(key, 0.0) + maximum
        if taken:
            parts.append((vnode.name, taken))
            missing = {
                name: value - taken.get(name, 0.0)
                for name, value in missing.items()
                if value > taken.get(name, 0.0)
            }
        if not missing:
            return parts
    return None


def _owner(vnode: Vnode, resource: str) -> str:
    return vnode.counted_on.get(resource, vnode.name)


def _free(vnode: Vnode, resource: str, at: _Attempt) -> float:
    return at.free.room(vnode, resource, at.kept) - at.left.get(
        (_owner(vnode, resource), resource), 0.0
    )


def _room(vnodes: Sequence[Vnode], resource: str, at: _Attempt) -> float:
    return sum(_free(vnode, resource, at) for vnode in vnodes)
