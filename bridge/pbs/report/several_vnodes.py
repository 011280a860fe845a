# SPDX-License-Identifier: Apache-2.0
"""Hosts of several vnodes on the wire, which has nodes only: a job uses vnodes, and of them alone.

Rules
    1. Vnodes of a node count if they have CPUs. Where any node has several, each node has the
       amount `VNODES`, its number of vnodes.
    2. vscatter: each chunk takes one of `VNODES`, and chunks may share a node.
    3. place=exclhost takes nodes alone. place=excl does so too, unless all nodes of the job's queue
       have several vnodes: then its chunks take the CPUs of whole vnodes, where they are all alike.
    4. A running job that uses vnodes alone takes all that these have, and one of `VNODES` each; so
       does one that takes all CPUs of a vnode. exclhost extends to all nodes of the host.

What rules 2 and 3 leave open (which vnode is free) is decided by the last check.
"""

from collections.abc import Mapping

from bridge.pbs.objects.jobs import SUSPENDED, PbsJob, takes_alone
from bridge.pbs.objects.select import PlaceSharing
from bridge.pbs.report.wire_chunks import VNODES, Cluster, is_exclusive

_ALONE = (PlaceSharing.EXCLUSIVE, PlaceSharing.HOST)


def node_amounts(cluster: Cluster, node: str) -> dict[str, int]:
    """Returns the amount of rule 1; empty: no node has several vnodes."""
    return {VNODES: len(cluster.counted[node])} if cluster.has_several else {}


def held_on_nodes(
    job: PbsJob, cluster: Cluster
) -> tuple[dict[str, dict[str, float]], dict[str, int], bool]:
    """Returns what a running job takes of each node, its `VNODES` there, and whether alone."""
    by_node: dict[str, dict[str, float]] = {}
    counts: dict[str, int] = {}
    exclusive = job.state not in SUSPENDED and is_exclusive(job, cluster)
    apart = exclusive and any(
        len(cluster.counted[node]) > 1
        for vnode in job.held
        if (node := cluster.node_of_vnode.get(vnode))
    )
    whole_hosts = False
    for name, taken in job.held.items():
        node, vnode = cluster.node_of_vnode.get(name), cluster.vnodes.get(name)
        if node is None or vnode is None:
            continue
        share = takes_alone(job.place.share, vnode)
        whole_hosts |= share is PlaceSharing.HOST
        alone = apart and share in _ALONE
        amounts = _all_of(taken, vnode.amounts) if alone else taken
        on_node = by_node.setdefault(node, {})
        for resource, value in amounts.items():
            on_node[resource] = on_node.get(resource, 0) + value
        cpus = vnode.amounts.get("ncpus", 0.0)
        if cpus and (alone or taken.get("ncpus", 0.0) >= cpus) and job.state not in SUSPENDED:
            counts[node] = counts.get(node, 0) + 1
    if exclusive and whole_hosts:
        for node in [n for name in by_node for n in _of_same_host(cluster, name)]:
            by_node.setdefault(node, {})
    return by_node, counts if cluster.has_several else {}, exclusive and (whole_hosts or not apart)


def _all_of(taken: Mapping[str, float], amounts: Mapping[str, float]) -> dict[str, float]:
    return {**taken, **{name: max(value, taken.get(name, 0)) for name, value in amounts.items()}}


def _of_same_host(cluster: Cluster, node: str) -> tuple[str, ...]:
    return cluster.nodes_of_host.get(cluster.vnodes[cluster.nodes[node][0]].host, ())
