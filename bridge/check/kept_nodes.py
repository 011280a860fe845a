# SPDX-License-Identifier: Apache-2.0
"""Nodes that a FreePool keeps: rule 4 of `bridge.check.site_rules`."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bridge.check.amounts import CheckedAmounts
from bridge.check.features import alternatives, matching
from bridge.check.sums import Found, meets
from bridge.model.job import WidthRule
from bridge.model.resources import Arrangement
from bridge.model.rules.limits import (
    Bound,
    FreePool,
)
from bridge.model.rules.node_set import NodeSet
from bridge.units import NEVER


def kept_nodes(world: CheckedAmounts, pools: Sequence[FreePool]) -> Found:
    """Rows on nodes that a FreePool keeps (rule 4 of `bridge.check.site_rules`)."""
    for pool in pools:
        times = world.windows(pool.validity)
        kept = nodes_meant(world, pool.nodes or NodeSet())
        outside = meets(world, np.arange(len(world.rows)), times)
        for access in pool.access:
            if not access.chunk:
                outside &= ~world.lets_in(access)
        there = kept[world.node] & outside[world.entry_row]
        if not there.any():
            continue
        by_chunk = [(access.chunk, world.lets_in(access)) for access in pool.access if access.chunk]
        text = f"uses nodes that FreePool {pool.name} keeps free"
        known: dict[tuple[object, ...], bool] = {}
        for at in np.flatnonzero(there).tolist():
            row = int(world.entry_row[at])
            conditions = [bounds for bounds, meets in by_chunk if meets[row]]
            chunks = _chunks_there(world, at) if conditions else ()
            alike = (tuple(conditions), chunks)
            if alike not in known:
                known[alike] = bool(conditions) and all(
                    any(_chunkmeets(world, bounds, chunk) for bounds in conditions)
                    for chunk in chunks
                )
            if not known[alike]:
                yield int(world.rows[row]), text


def _chunkmeets(world: CheckedAmounts, bounds: Sequence[Bound], chunk: tuple[int, ...]) -> bool:
    """Whether a chunk meets all bounds; it requests nothing of resources that are not on nodes."""
    for bound in bounds:
        column = world.column(bound.what)
        amount = chunk[column] if 0 <= column < len(chunk) else 0
        if not bound.minimum <= amount <= bound.maximum:
            return False
    return True


def _chunks_there(world: CheckedAmounts, at: int) -> tuple[tuple[int, ...], ...]:
    """The units of a row on a node: its chunks there, a task, or its whole share.

    Amounts per node are part of each chunk there. Packed chunks are one unit.
    """
    row = int(world.entry_row[at])
    jobs, job = world.snapshot.jobs, int(world.job[row])
    requested = jobs.chunks[job]
    if requested is not None:
        wants = np.array(requested.wants, dtype=np.int64) + np.array(
            requested.per_node, dtype=np.int64
        )
        kinds = requested.request.kinds
        if requested.request.place.arrangement is Arrangement.PACK or kinds[0].host:
            counts = np.array([kind.count for kind in kinds], dtype=np.int64)
            return (tuple((counts @ wants).tolist()),)
        groups = world.plan.groups
        there = [0] if groups is None else np.flatnonzero(groups[world.entry[at]]).tolist() or [0]
        return tuple(tuple(wants[kind].tolist()) for kind in there)
    tasks = int(jobs.tasks[job])
    partition = world.snapshot.partitions[int(world.partition[row])]
    spread = (
        jobs.per_node[job].any()
        or jobs.required[job]
        or jobs.width_rule[job] != WidthRule.ANY
        or max(int(jobs.min_nodes[job]), partition.min_nodes) > 1
        or min(int(jobs.max_nodes[job]), partition.max_nodes or NEVER) < tasks
    )
    if tasks and not spread:
        return (tuple(jobs.per_task[job].tolist()),)
    return (tuple(world.want[at].tolist()),)


def nodes_meant(world: CheckedAmounts, nodes: NodeSet) -> NDArray[np.bool_]:
    """(n_nodes,) which nodes meet all parts of a condition."""
    table = world.snapshot.nodes
    meant = np.ones(len(table), dtype=bool)
    if nodes.names:
        wanted = set(nodes.names)
        meant &= np.array([name in wanted for name in table.names], dtype=bool)
    if nodes.features:
        masks = [matching(one, table.features) for one in alternatives(nodes.features)]
        meant &= np.any(masks, axis=0)
    if nodes.having:
        column = world.column(nodes.having)
        has = 0 <= column < len(world.snapshot.resources)
        meant &= (table.capacity[:, column] > 0) if has else False
    return meant
