# SPDX-License-Identifier: Apache-2.0
"""Reservations of parts of vnodes, as jobs of the wire: its reservations are of whole nodes.

Rules
    1. A reservation that takes every one of its nodes whole, or for itself alone, stays one.
    2. Of any other one, the wire's reservation has no nodes; what it reserves is a job. Before it
       begins, that job waits with a fixed start and the reservation's length. Then it runs, and
       holds what is reserved less what the reservation's own jobs hold.
    3. The first of its waiting jobs that fit into the rest may start: the job of rule 2 leaves out
       what they ask for. All others are held, with the reason.

The last check compares amounts exactly, whatever was planned.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from bridge.left_out import LeftOut
from bridge.pbs.objects.jobs import PbsJob, owner_of
from bridge.pbs.objects.parsed import STANDING, Parsed, PbsReservation
from bridge.pbs.report.wire_chunks import Cluster, amount_up, amount_words, gres_name
from bridge.rpc.pb import scheduler_pb2 as pb

Amounts = dict[str, float]


@dataclass(frozen=True)
class SharedVnodes:
    """The reservations of rule 2.

    Attributes:
        held: waiting jobs that may not start now to why.
    """

    names: frozenset[str] = frozenset()
    jobs: tuple[pb.Job, ...] = ()
    held: Mapping[str, str] = field(default_factory=dict)


def shared_vnodes(parsed: Parsed, cluster: Cluster, left_out: LeftOut) -> SharedVnodes:
    """Returns what stands for reservations of parts of vnodes.

    One for which nothing can be made is added to `left_out`, and closes its vnodes.
    """
    names, jobs, held = set(), [], dict[str, str]()
    now_s = parsed.tables.now_s
    for each in parsed.reservations.values():
        if each.state not in STANDING or each.end_s <= max(now_s, each.start_s):
            continue
        if _is_whole(each, parsed, cluster) or not (partition := _partition(each, parsed, cluster)):
            continue
        made = left_out.unless(each.name, _stand_in, each, partition, parsed, cluster, held)
        if made is not None:
            names.add(each.name)
            jobs.append(made)
    left_out.keep(parsed.reservations)
    return SharedVnodes(frozenset(names), tuple(jobs), held)


def _stand_in(
    each: PbsReservation, partition: str, parsed: Parsed, cluster: Cluster, held: dict[str, str]
) -> pb.Job:
    reserved = _by_node(each.held, cluster)
    if each.start_s > parsed.tables.now_s:
        return _to_come(each, reserved, partition, cluster)
    return _running(each, _rest(each, reserved, parsed, cluster, held), parsed)


def _is_whole(each: PbsReservation, parsed: Parsed, cluster: Cluster) -> bool:
    listed = each.attributes.get("Resource_List")
    place = listed.get("place", "") if isinstance(listed, dict) else ""
    if each.is_maintenance or "excl" in place or not each.held:
        return True
    members = {
        member
        for vnode in each.held
        if vnode in cluster.node_of_vnode
        for member in cluster.nodes[cluster.node_of_vnode[vnode]]
    }
    return all(
        each.held.get(member, {}).get("ncpus", 0.0)
        >= parsed.vnodes[member].amounts.get("ncpus", 0.0)
        for member in members
    )


def _partition(each: PbsReservation, parsed: Parsed, cluster: Cluster) -> str:
    """A queue that uses the vnodes of a reservation; empty: there is none that is started."""
    owners = {vnode.queue for vnode in parsed.vnodes.values() if vnode.queue}
    if any(vnode not in cluster.node_of_vnode for vnode in each.held):
        return ""
    for name, queue in parsed.queues.items():
        if queue.starts and name not in owners and name not in parsed.by_queue:
            return name
    return ""


def _by_node(held: Mapping[str, Mapping[str, float]], cluster: Cluster) -> dict[str, Amounts]:
    found: dict[str, Amounts] = {}
    for vnode, taken in held.items():
        if node := cluster.node_of_vnode.get(vnode):
            on_node = found.setdefault(node, {})
            for name, value in taken.items():
                on_node[name] = on_node.get(name, 0.0) + value
    return found


def _to_come(
    each: PbsReservation, reserved: Mapping[str, Amounts], partition: str, cluster: Cluster
) -> pb.Job:
    chunks = [
        ":".join(["1", *amount_words({"ncpus": 0.0, **taken}, cluster), f"host={node}"])
        for node, taken in reserved.items()
    ]
    return pb.Job(
        id=each.name, version=1, state=pb.JOB_STATE_PENDING, name="reservation",
        user=owner_of(each.attributes).user[:160],
        priority=1, begin_s=each.start_s, hold=pb.HOLD_BEGIN_TIME,
        time_limit_s=each.end_s - each.start_s,
        request=pb.Request(
            partitions=[partition], min_nodes=1, fixed_start=True,
            chunks=pb.Chunks(chunks="+".join(chunks), place="free"),
        ),
    )  # fmt: skip


def _running(each: PbsReservation, rest: Mapping[str, Amounts], parsed: Parsed) -> pb.Job:
    uses = [
        pb.NodeUse(
            nodes=node, cpus=int(taken.get("ncpus", 0)),
            memory_mib=-(-int(taken.get("mem", 0)) // 1024),
            gres=[
                pb.Gres(name=gres_name(name), count=amount_up(parsed.definitions[name].kind, value))
                for name, value in taken.items()
                if name not in ("ncpus", "mem")
                and (known := parsed.definitions.get(name)) is not None
                and known.is_counted
                and value > 0
            ],
        )
        for node, taken in rest.items()
    ]  # fmt: skip
    return pb.Job(
        id=each.name, version=1, state=pb.JOB_STATE_RUNNING, name="reservation", priority=1,
        user=owner_of(each.attributes).user[:160],
        time_limit_s=each.end_s - each.start_s,
        allocation=pb.Allocation(
            start_s=each.start_s, end_s=each.end_s, partition=each.queue, uses=uses
        ),
    )  # fmt: skip


def _rest(
    each: PbsReservation, reserved: Mapping[str, Amounts], parsed: Parsed, cluster: Cluster,
    held: dict[str, str],
) -> dict[str, Amounts]:  # fmt: skip
    """What neither jobs of a reservation hold nor those may take that fit; notes the others."""
    rest = {node: dict(taken) for node, taken in reserved.items()}
    waiting = []
    for job in parsed.jobs.values():
        if job.queue != each.queue:
            continue
        if job.has_vnodes and not job.is_array:
            for node, taken in _by_node(job.held, cluster).items():
                for name, value in taken.items():
                    if name in rest.get(node, {}):
                        rest[node][name] = max(rest[node][name] - value, 0.0)
        elif job.is_waiting and not job.holds:
            waiting.append(job)
    for job in waiting:
        if not _take(job, rest):
            held[job.id] = f"reservation {each.name} has too little left for it"
    return rest


def _take(job: PbsJob, rest: dict[str, Amounts]) -> bool:
    """Takes what a job asks for off the rest, node by node; False: there is too little."""
    wanted: Amounts = {}
    for chunk, want in zip(job.chunks, job.wants, strict=True):
        for name, value in want.items():
            wanted[name] = wanted.get(name, 0.0) + value * chunk.count
    for name, value in wanted.items():
        if value > sum(taken.get(name, 0.0) for taken in rest.values()):
            return False
    for name, value in wanted.items():
        missing = value
        for taken in rest.values():
            less = min(taken.get(name, 0.0), missing)
            if less > 0:
                taken[name] -= less
                missing -= less
    return True
