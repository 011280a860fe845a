# SPDX-License-Identifier: Apache-2.0
"""States a PBS select in the language of chunks, and vnodes in the same words.

Rules
    1. `mem` is whole MiB: up for chunks, down for vnodes. Other sizes are amounts in MiB, decimal
       numbers amounts in hundredths, both rounded likewise.
    2. A string `color=red` is the feature `color=red`; a boolean the feature `big`, its opposite
       `big.false`. Characters that features cannot have are written as `.` and two digits.
    3. `host=n1` in all chunks is the node; in some chunks only, the feature `on.host=n1`. A vnode
       likewise. Nodes show these features only where a job asks for them, so that equal nodes
       remain equal.
    4. A chunk without CPUs asks the planner for one; what it takes is decided by the last check.
    5. `group=host` and `group=vnode` are `pack`. `scatter` is one chunk per node; so is `vscatter`
       where all nodes have one vnode (`several_vnodes.py` has the rules for others).
    6. A job of several chunks that are not packed is not planned on vnodes with no_multinode_jobs.
    7. `vmem` counts only where some vnode states it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from bridge.errors import BadRequest
from bridge.pbs.objects.definitions import ResourceDefinition
from bridge.pbs.objects.jobs import PbsJob, takes_alone
from bridge.pbs.objects.placement_sets import group_key, is_grouped
from bridge.pbs.objects.select import Arrange, PbsChunk, PlaceSharing
from bridge.pbs.objects.values import Kind, boolean
from bridge.pbs.objects.vnodes import SHAPING, Vnode
from bridge.pbs.tables import Tables
from bridge.rpc.pb import scheduler_pb2 as pb

HUNDREDTHS = 100
ON = "on."
"""Before `host` and `vnode` in features."""
VNODES = "pbs.vnodes"
"""The number of vnodes as an amount of nodes; no resource of PBS has a dot in its name."""
_OWN_WORDS = frozenset(("cores", "place", "select", "rset", "gpu", "host", "mem", "ncpus"))
_PLACES = {
    Arrange.FREE: "free", Arrange.PACK: "pack", Arrange.SCATTER: "scatter",
    Arrange.VSCATTER: "scatter",
}  # fmt: skip
_MAX_NUMBER = 1 << 20


@dataclass(frozen=True)
class Cluster:
    """The inputs of the statement of chunks.

    Attributes:
        nodes: the nodes of the wire, with their vnodes.
        nodes_of_host, node_of_vnode: names on the wire.
        stated: resources that any vnode states.
        single: nodes that accept no jobs of several vnodes.
        sharing: values of the attribute on usable vnodes.
        counted: the vnodes of each node that have CPUs.
    """

    vnodes: Mapping[str, Vnode]
    nodes: Mapping[str, tuple[str, ...]]
    definitions: Mapping[str, ResourceDefinition]
    nodes_of_host: Mapping[str, tuple[str, ...]]
    node_of_vnode: Mapping[str, str]
    stated: frozenset[str]
    single: tuple[str, ...]
    sharing: frozenset[str]
    counted: Mapping[str, tuple[str, ...]]
    has_several: bool


def cluster_of(
    vnodes: Mapping[str, Vnode],
    nodes: Mapping[str, tuple[str, ...]],
    definitions: Mapping[str, ResourceDefinition],
) -> Cluster:
    """Collects what `wire_request` needs."""
    of_vnode = {vnode: name for name, members in nodes.items() for vnode in members}
    of_host: dict[str, list[str]] = {}
    stated: set[str] = set()
    for vnode in vnodes.values():
        for host in {vnode.host, *vnode.strings.get("host", ())}:
            named = of_host.setdefault(host, [])
            if of_vnode[vnode.name] not in named:
                named.append(of_vnode[vnode.name])
        stated |= vnode.amounts.keys() | vnode.counted_on.keys()
    counted = {
        name: tuple(member for member in members if vnodes[member].amounts.get("ncpus", 0) > 0)
        for name, members in nodes.items()
    }
    return Cluster(
        vnodes, nodes, definitions, {host: tuple(named) for host, named in of_host.items()},
        of_vnode, frozenset(stated),
        tuple(name for name, members in nodes.items() if not vnodes[members[0]].multinode),
        frozenset(vnode.sharing for vnode in vnodes.values() if vnode.usable),
        counted, any(len(members) > 1 for members in counted.values()),
    )  # fmt: skip


def wire_request(
    job: PbsJob, cluster: Cluster, tables: Tables
) -> tuple[pb.Request, frozenset[str]]:
    """Returns the request of a job, and the features that only it asks for (rule 3).

    Raises:
        BadRequest: the language of chunks cannot express it.
    """
    if job.problem:
        raise BadRequest(job.problem)
    node = _one_node(job, cluster)
    exclusive = is_exclusive(job, cluster)
    by_vnode = exclusive and _takes_vnodes_alone(job, cluster)
    exclusive = exclusive and not by_vnode
    apart = cluster.has_several and job.place.arrange is Arrange.VSCATTER
    groups, wanted = [], set[str]()
    for chunk, want in zip(job.chunks, job.wants, strict=True):
        widened = _widened(job, want, cluster) if by_vnode else want
        words, on = _chunk(chunk, widened, cluster, node)
        groups.append(f"{words}:{VNODES}=1" if apart else words)
        wanted |= on
    place = "free" if apart else _PLACES[job.place.arrange]
    if is_grouped(job, cluster.vnodes.values(), tables, cluster.definitions):
        key = group_key(job, tables)
        place = "pack" if key in ("host", "vnode") else f"{place}:group={wire_name(key)}"
    requested = pb.Request(
        partitions=[job.queue],
        min_nodes=1,
        exclusive=exclusive,
        chunks=pb.Chunks(chunks="+".join(groups), place=place + (":excl" if exclusive else "")),
    )
    if node:
        requested.required_nodes = node
    elif job.n_chunks > 1 and job.place.arrange is not Arrange.PACK:
        requested.excluded_nodes = ",".join(cluster.single)
    return requested, frozenset(wanted)


def is_exclusive(job: PbsJob, cluster: Cluster) -> bool:
    """Tells whether a job takes vnodes alone that it could get."""
    if job.place.share in (PlaceSharing.EXCLUSIVE, PlaceSharing.HOST) and cluster.sharing == {
        "ignore_excl"
    }:
        return False
    probe = Vnode("", "", "", usable=True)
    return job.place.share in (PlaceSharing.EXCLUSIVE, PlaceSharing.HOST) or any(
        takes_alone(
            job.place.share, Vnode(probe.name, probe.host, "", usable=True, sharing=sharing)
        )
        in (PlaceSharing.EXCLUSIVE, PlaceSharing.HOST)
        for sharing in cluster.sharing
    )


def _nodes_of_queue(job: PbsJob, cluster: Cluster) -> list[str]:
    """The nodes that a job of its queue may use."""
    owners = {name: cluster.vnodes[members[0]].queue for name, members in cluster.nodes.items()}
    own = job.queue if job.queue in owners.values() else ""
    return [name for name, owner in owners.items() if owner == own]


def _takes_vnodes_alone(job: PbsJob, cluster: Cluster) -> bool:
    """Tells whether a job that uses vnodes alone leaves others of their hosts to other jobs."""
    if not cluster.has_several or any(
        takes_alone(job.place.share, Vnode("", "", "", usable=True, sharing=sharing))
        is PlaceSharing.HOST
        for sharing in cluster.sharing
    ):
        return False
    return all(len(cluster.counted[node]) > 1 for node in _nodes_of_queue(job, cluster))


def _widened(job: PbsJob, want: Mapping[str, float], cluster: Cluster) -> Mapping[str, float]:
    """A chunk with the CPUs that all chunks of the job together keep from others, in equal parts.

    Vnodes that differ and jobs of several kinds of chunks are left as they are.
    """
    sizes = {
        cluster.vnodes[vnode].amounts["ncpus"]
        for node in _nodes_of_queue(job, cluster)
        for vnode in cluster.counted[node]
    }
    cpus = max(want.get("ncpus", 0.0), 1.0)
    if len(job.chunks) != 1 or len(sizes) != 1 or cpus > (size := sizes.pop()):
        return want
    apart = job.place.arrange in (Arrange.SCATTER, Arrange.VSCATTER)
    together = 1 if apart else min(size // cpus, job.n_chunks)
    return {**want, "ncpus": size // together}


def _one_node(job: PbsJob, cluster: Cluster) -> str:
    """The node on which all chunks must be; empty: several, or any."""
    named: set[str] = set()
    for chunk in job.chunks:
        if vnode := chunk.resources.get("vnode"):
            named.add(cluster.node_of_vnode.get(vnode, ""))
        elif host := chunk.resources.get("host"):
            nodes = cluster.nodes_of_host.get(host, ())
            named.add(nodes[0] if len(nodes) == 1 else "")
        else:
            named.add("")
    return named.pop() if len(named) == 1 else ""


def _chunk(
    chunk: PbsChunk, want: Mapping[str, float], cluster: Cluster, node: str
) -> tuple[str, set[str]]:
    words = [str(chunk.count), *amount_words(want, cluster)]
    wanted = set()
    for name, stated in chunk.resources.items():
        known = cluster.definitions.get(name)
        if name in ("host", "vnode"):
            if not node:
                feature = f"{ON}{name}={wire_value(stated)}"
                wanted.add(feature)
                words.append(feature)
        elif known is not None and known.kind is Kind.BOOLEAN:
            words.append(f"{wire_name(name)}{'' if boolean(stated) else '.false'}=true")
        elif (
            known is not None
            and known.compared
            and not known.kind.is_amount
            and (name not in SHAPING)
        ):
            words.append(f"{wire_name(name)}={wire_value(stated)}")
    for name in ("mpiprocs", "ompthreads"):
        if (stated := chunk.resources.get(name, "")).isdecimal() and 0 < int(stated[:6]) < 1 << 16:
            words.append(f"{name}={int(stated)}")
    if node:
        words.append(f"host={node}")
    return ":".join(words), wanted


def amount_words(want: Mapping[str, float], cluster: Cluster) -> list[str]:
    """Returns what a chunk takes in the language of chunks, at least one CPU (rule 4)."""
    words = [] if want.get("ncpus") else ["ncpus=1"]
    return words + _amounts(want, cluster)


def _amounts(want: Mapping[str, float], cluster: Cluster) -> list[str]:
    words = []
    for name, value in want.items():
        if name == "ncpus" and value:
            words.append(f"ncpus={int(value)}")
        elif name == "mem" and value:
            words.append(f"mem={-(-int(value) // 1024)}mb")
        elif (
            value
            and cluster.definitions[name].compared
            and (name != "vmem" or "vmem" in cluster.stated)
            and name not in _HANDLED
        ):
            words.append(f"{_amount_name(name)}={amount_up(cluster.definitions[name].kind, value)}")
    return words


_HANDLED = frozenset(("ncpus", "mem"))


def _amount_name(name: str) -> str:
    return name if name == "ngpus" else wire_name(name)


def gres_name(name: str) -> str:
    """Returns the name of an amount as a generic resource of a node."""
    return "gpu" if name == "ngpus" else wire_name(name)


def amount_up(kind: Kind, value: float) -> int:
    """Returns what a chunk asks for in whole units of the wire (rule 1)."""
    if kind is Kind.SIZE:
        return -(-int(value) // 1024)
    if kind is Kind.FLOAT:
        return int(-(-value * HUNDREDTHS // 1))
    return int(value)


def amount_down(kind: Kind, value: float) -> int:
    """Returns what a vnode has in whole units of the wire (rule 1)."""
    if kind is Kind.SIZE:
        return int(value) // 1024
    return int(value * HUNDREDTHS) if kind is Kind.FLOAT else int(value)


def wire_name(name: str) -> str:
    """Returns the name of a resource in the language of chunks."""
    found = f"r.{name}" if name in _OWN_WORDS else name
    return found[:64]


def wire_value(value: str) -> str:
    """Returns the value of a string as a word of the language of chunks."""
    found = "".join(
        letter
        if letter.isascii() and (letter.isalnum() or letter in "_-.")
        else f".{ord(letter):02x}"
        for letter in value
    )[:64]
    if found.lower() in ("true", "false"):
        found += "."
    if found.isdigit() and int(found[:20]) > _MAX_NUMBER:
        found = f"0{found}"[:64]
    return found or "."


def node_features(members: list[Vnode], demanded: frozenset[str], booleans: list[str]) -> list[str]:
    """Returns the features of a node of the wire; its vnodes are alike."""
    first = members[0]
    found = {
        f"{wire_name(name)}={wire_value(value)}"
        for name, texts in first.strings.items()
        if name not in ("host", "vnode")
        for value in texts
    }
    for name in booleans:
        found.add(wire_name(name) if first.booleans.get(name) else f"{wire_name(name)}.false")
    for vnode in members:
        for host in {vnode.host, *vnode.strings.get("host", ())}:
            found.add(f"{ON}host={wire_value(host)}")
        found.add(f"{ON}vnode={wire_value(vnode.name)}")
    return sorted(word for word in found if not word.startswith(ON) or word in demanded)
