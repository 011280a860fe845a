# SPDX-License-Identifier: Apache-2.0
"""Placement sets: vnodes with a value of a resource in common.

Rules
    1. The resource is that of `place=group=RESOURCE`; otherwise, with `node_group_enable`, that of
       the queue's or else the server's node_group_key: of several its first.
    2. A job that fits into no set even if all its vnodes were free uses any vnodes, unless the
       scheduler's do_not_span_psets is True. So does pbs_sched.
    3. Whether it fits is estimated from above: each kind of chunks alone, and the sum of all.

Source: OpenPBS 23.06, pbs_sched_attributes(7): do_not_span_psets.
"""

from collections.abc import Iterable, Mapping, Sequence

from bridge.pbs.objects.definitions import ResourceDefinition
from bridge.pbs.objects.jobs import PbsJob
from bridge.pbs.objects.select import Arrange
from bridge.pbs.objects.values import is_true
from bridge.pbs.objects.vnodes import Vnode, mismatch
from bridge.pbs.tables import Tables, text

MAX_SETS = 1024


def values_of(vnode: Vnode, name: str) -> tuple[str, ...]:
    """Returns a vnode's values of a resource."""
    if name in ("host", "vnode"):
        return (vnode.host if name == "host" else vnode.name,)
    if name in vnode.booleans:
        return (str(vnode.booleans[name]),)
    if name in vnode.amounts:
        return (f"{vnode.amounts[name]:g}",)
    return vnode.strings.get(name, ())


def placement_sets(vnodes: Iterable[Vnode], name: str) -> list[list[Vnode]]:
    """Returns the sets of vnodes by the values of a resource, in the order of the values."""
    sets: dict[str, list[Vnode]] = {}
    for vnode in vnodes:
        for value in values_of(vnode, name):
            sets.setdefault(value, []).append(vnode)
    return [sets[value] for value in sorted(sets)[:MAX_SETS]]


def group_key(job: PbsJob, tables: Tables) -> str:
    """Returns the resource by whose values a job's vnodes are chosen; empty: none (rule 1)."""
    if job.place.group or not is_true(text(tables.server, "node_group_enable")):
        return job.place.group
    queue = tables.queues.get(job.queue, {})
    keys = text(queue, "node_group_key") or text(tables.server, "node_group_key")
    return keys.partition(",")[0].strip().strip('"')


def is_grouped(
    job: PbsJob,
    vnodes: Iterable[Vnode],
    tables: Tables,
    definitions: Mapping[str, ResourceDefinition],
) -> bool:
    """Tells whether a job stays within one set (rule 2)."""
    key = group_key(job, tables)
    if not key:
        return False
    if is_true(text(tables.sched, "do_not_span_psets")):
        return True
    usable = [vnode for vnode in vnodes if vnode.usable]
    return any(_may_fit(job, each, definitions) for each in placement_sets(usable, key))


def _may_fit(
    job: PbsJob, vnodes: Sequence[Vnode], definitions: Mapping[str, ResourceDefinition]
) -> bool:
    apart = job.place.arrange in (Arrange.SCATTER, Arrange.VSCATTER)
    by_vnode = job.place.arrange is Arrange.VSCATTER
    if apart and job.n_chunks > len({v.name if by_vnode else v.host for v in vnodes}):
        return False
    requested: dict[str, float] = {}
    for chunk, want in zip(job.chunks, job.wants, strict=True):
        room = 0
        for vnode in vnodes:
            if not mismatch(vnode, chunk, definitions):
                each = _count(vnode, want, chunk.count, definitions)
                room += min(each, 1) if apart else each
        # Chunks over several vnodes of a host are not counted here: their sum decides.
        if room < chunk.count and len(vnodes) == len({vnode.host for vnode in vnodes}):
            return False
        for name, value in want.items():
            requested[name] = requested.get(name, 0.0) + chunk.count * value
    return all(
        not definitions[name].compared
        or value <= sum(vnode.amounts.get(name, 0.0) for vnode in vnodes if name in vnode.amounts)
        or any(name in vnode.counted_on for vnode in vnodes)
        for name, value in requested.items()
    )


def _count(
    vnode: Vnode,
    want: Mapping[str, float],
    maximum: int,
    definitions: Mapping[str, ResourceDefinition],
) -> int:
    """How many chunks fit on an empty vnode."""
    found = maximum
    for name, value in want.items():
        if value > 0 and name not in vnode.counted_on and definitions[name].compared:
            found = min(found, int(vnode.amounts.get(name, 0.0) // value))
    return found
