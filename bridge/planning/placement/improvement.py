# SPDX-License-Identifier: Apache-2.0
"""Which nodes the jobs of a plan get, all of them together.

Rules
    1. The plan stage has said who starts when. No start changes here: nobody waits for somebody
       else's hops.
    2. Jobs trade nodes that are alike (`bridge.planning.placement.node_swap`): those that start
       now, then those of the next announced instants.
    3. Jobs that start now move to cheaper nodes that nobody else needs
       (`bridge.planning.placement.relocation`).
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bridge.model.plan import Plan
from bridge.model.site import Site
from bridge.model.snapshot import Snapshot
from bridge.model.topology import Arranged
from bridge.planning.placement.fabric import Arranger, Fabric, csr
from bridge.planning.placement.node_swap import Ground, Market, kinds
from bridge.planning.placement.relocation import move
from bridge.planning.requests.amounts import Amounts, plain_name
from bridge.planning.scheduler.kept_plan import KeptPlan
from bridge.planning.site_rules.freepools import members
from bridge.planning.site_rules.lowered_rules import weighs_nodes
from bridge.ports import Planned


def arrange(
    snapshot: Snapshot,
    planned: Planned,
    place: Arranger,
    site: Site,
    rng: np.random.Generator,
) -> tuple[Planned, Arranged]:
    """Gives the jobs of a plan cheaper nodes.

    Args:
        snapshot: the world as it is believed.
        planned: who starts when, and where so far.
        place: finds node sets.
        site: whose rules may speak of nodes.
        rng: chance.

    Returns:
        The plan, and with it the one that is kept, on other nodes; and what they save.
    """
    assert snapshot.topology is not None, "who arranges has switches"
    plan, promises = planned.plan, planned.promises
    fabric = Fabric.of(snapshot.topology)
    shut = _spoken_of(snapshot, site)
    ground = Ground(snapshot, fabric, kinds(snapshot, fabric, shut), place, rng)
    market = Market(ground, plan)
    market.trade_all()
    spoken_of = np.logical_or.reduce([np.zeros(len(snapshot.nodes), bool), *shut])
    move(ground, market, spoken_of, weighed=weighs_nodes(site.rules))
    arranged = market.plan()
    if isinstance(promises.kept_plan, KeptPlan):
        kept = promises.kept_plan.moved(snapshot.jobs.id[plan.job], plan, market.image)
        promises = replace(promises, kept_plan=kept)
    wide = plan.starts_now[np.diff(plan.indptr)[plan.starts_now] > 1]
    before, after = _paid(fabric, plan, wide), _paid(fabric, arranged, wide)
    counted = np.isfinite(before)
    saved = Arranged(len(wide), float(before[counted].sum()), float(after[counted].sum()))
    return replace(planned, plan=arranged, promises=promises), saved


def _paid(fabric: Fabric, plan: Plan, rows: NDArray[np.intp]) -> NDArray[np.float64]:
    """What some rows pay for their nodes; infinite across fabrics."""
    return fabric.costs(csr([plan.nodes_of(row) for row in rows.tolist()]))


def _spoken_of(snapshot: Snapshot, site: Site) -> list[NDArray[np.bool_]]:
    """(n_nodes,) bool for every FreePool of nodes, and for every resource that is protected."""
    pools = [pool.nodes for pool in site.rules.free_pools if pool.nodes is not None]
    amounts = Amounts(snapshot) if pools else None
    spoken = [members(nodes, snapshot, amounts) for nodes in pools if amounts is not None]
    for name in site.protect:
        column = plain_name(name)
        if column in snapshot.resources:
            spoken.append(snapshot.nodes.capacity[:, snapshot.resources.index(column)] > 0)
    return spoken
