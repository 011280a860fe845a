# SPDX-License-Identifier: Apache-2.0
"""Which nodes the jobs of a plan get, all of them together.

Rules
    1. The plan stage has said who starts when. No start changes here: nobody waits for somebody
       else's hops.
    2. Jobs trade nodes that are alike (`bridge.planning.trading`): those that start now, then those
       of the next announced instants.
    3. Jobs that start now move to cheaper nodes that nobody else needs (`bridge.planning.moving`).
"""

import numpy as np
from numpy.typing import NDArray

from bridge.model.plan import Plan
from bridge.model.snapshot import Snapshot
from bridge.model.topology import Arranged
from bridge.planning.amounts import Amounts, plain_name
from bridge.planning.conditions import Conditions
from bridge.planning.fabric import Arranger, Fabric, csr
from bridge.planning.freepools import members
from bridge.planning.kept_plan import KeptPlan
from bridge.planning.moving import move
from bridge.planning.trading import Ground, Market, kinds
from bridge.ports import Memory


def arrange(
    snapshot: Snapshot,
    plan: Plan,
    place: Arranger,
    memory: Memory,
    rng: np.random.Generator,
    *,
    conditions: Conditions,
) -> Plan:
    """Gives the jobs of a plan cheaper nodes.

    Args:
        snapshot: the world as it is believed.
        plan: who starts when, and where so far.
        place: finds node sets.
        memory: what was made of it is noted there; the plan that is kept follows.
        rng: chance.
        conditions: that the plan stage obeys.
    """
    assert snapshot.topology is not None, "who arranges has switches"
    fabric = Fabric.of(snapshot.topology)
    shut = _spoken_of(snapshot, conditions)
    ground = Ground(snapshot, fabric, kinds(snapshot, fabric, shut), place, rng)
    market = Market(ground, plan)
    market.trade_all()
    move(ground, market, np.logical_or.reduce([np.zeros(len(snapshot.nodes), bool), *shut]))
    arranged = market.plan()
    if isinstance(memory.kept_plan, KeptPlan):
        memory.kept_plan = memory.kept_plan.moved(snapshot.jobs.id[plan.job], plan, market.image)
    wide = plan.starts_now[np.diff(plan.indptr)[plan.starts_now] > 1]
    before, after = _paid(fabric, plan, wide), _paid(fabric, arranged, wide)
    counted = np.isfinite(before)
    memory.arranged = Arranged(len(wide), float(before[counted].sum()), float(after[counted].sum()))
    return arranged


def _paid(fabric: Fabric, plan: Plan, rows: NDArray[np.intp]) -> NDArray[np.float64]:
    """What some rows pay for their nodes; infinite across fabrics."""
    return fabric.costs(csr([plan.nodes_of(row) for row in rows.tolist()]))


def _spoken_of(snapshot: Snapshot, conditions: Conditions) -> list[NDArray[np.bool_]]:
    """(n_nodes,) bool for every FreePool of nodes, and for every resource that is protected."""
    pools = [pool.nodes for pool in conditions.rules.free_pools if pool.nodes is not None]
    amounts = Amounts(snapshot) if pools else None
    spoken = [members(nodes, snapshot, amounts) for nodes in pools if amounts is not None]
    for name in conditions.protect or {}:
        column = plain_name(name)
        if column in snapshot.resources:
            spoken.append(snapshot.nodes.capacity[:, snapshot.resources.index(column)] > 0)
    return spoken
