# SPDX-License-Identifier: Apache-2.0
"""The switches and nodes with their jobs, from the last cycle.

Of other users' jobs only what `squeue` shows is disclosed, as in `bridge.rpc.operators.explain`.
"""

from itertools import islice

from bridge.rpc.controller.cycles import Published
from bridge.rpc.operators.explain import planned_job, running_job
from bridge.rpc.pb import operator_pb2 as pb


def topology_reply(published: Published, limit: int) -> pb.TopologyReply:
    """The tree as of a cycle.

    Args:
        limit: most jobs; 0: all.
    """
    snapshot, plan = published.snapshot, published.plan
    nodes, topology = snapshot.nodes, snapshot.topology
    reply = pb.TopologyReply(now_s=snapshot.now_s)
    leaves = [-1] * len(nodes)
    if topology is not None:
        leaves = topology.leaf_of_node.tolist()
        reply.switches.extend(
            pb.SwitchAbove(name=name, parent=parent)
            for name, parent in zip(topology.names, topology.parent.tolist(), strict=True)
        )
    reply.nodes.extend(
        pb.NodePlace(name=name, leaf=leaf, usable=usable, state=state)
        for name, leaf, usable, state in zip(
            nodes.names, leaves, nodes.usable.tolist(), nodes.state, strict=True
        )
    )
    running = (running_job(published, row) for row in range(len(snapshot.running)))
    starting = (planned_job(published, int(row)) for row in plan.starts_now)
    reply.jobs.extend(islice(running, limit or None))
    reply.jobs.extend(islice(starting, max(limit - len(reply.jobs), 0) if limit else None))
    return reply
