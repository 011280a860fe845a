# SPDX-License-Identifier: Apache-2.0
"""Moves the jobs of a plan to cheaper nodes; no start changes.

Rules
    1. The plan stage has set all starts. None changes here: no job waits so that another one has
       fewer hops.
    2. Jobs swap nodes of one type (`bridge.planning.placement.node_swap`): those that start
       now, then those of the next announced starts.
    3. Jobs that start now move to cheaper nodes that no other job needs
       (`bridge.planning.placement.relocation`).
    4. No job gets nodes on which it would add another amount to a bound with weights of nodes.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bridge.extension_packages import weighted_bounds
from bridge.model.hop_tree import HopTree, csr
from bridge.model.node import CPUS
from bridge.model.plan import Plan
from bridge.model.rules.site import Site
from bridge.model.snapshot import Snapshot
from bridge.model.topology import PlacementSavings
from bridge.planning.placement.node_swap import NodeSwapper, SwapContext, node_types
from bridge.planning.placement.relocation import relocate
from bridge.planning.requests.amounts import plain_name
from bridge.planning.requests.node_sets import members
from bridge.planning.scheduler.kept_plan import KeptPlan
from bridge.planning.site_rules.lowered_rules import weighs_nodes
from bridge.ports import JointPlacer, Planned


def improve_placement(
    snapshot: Snapshot,
    planned: Planned,
    place: JointPlacer,
    site: Site,
    rng: np.random.Generator,
) -> tuple[Planned, PlacementSavings]:
    """Places the jobs of a plan on other nodes at the same starts.

    Args:
        snapshot: the cluster, with predictions.
        place: finds node sets.
        site: its rules may name nodes.
        rng: source of random numbers.

    Returns:
        The plan and the kept plan on the new nodes, and the savings.
    """
    assert snapshot.topology is not None, "placement is improved on a tree of switches"
    plan, promises = planned.plan, planned.promises
    hop_tree = HopTree.of(snapshot.topology)
    shut, kinds = _named_by_rules(snapshot, site), _kinds_by_weight(snapshot, site)
    told_apart = shut if kinds is None else [*shut, *(kinds == kind for kind in np.unique(kinds))]
    types = node_types(snapshot, hop_tree, told_apart)
    context = SwapContext(snapshot, hop_tree, types, place, rng)
    swapper = NodeSwapper(context, plan)
    swapper.swap_all()
    ruled = np.logical_or.reduce([np.zeros(len(snapshot.nodes), bool), *shut])
    relocate(context, swapper, ruled, weighed=weighs_nodes(site.rules), kinds=kinds)
    improved = swapper.plan()
    if isinstance(promises.kept_plan, KeptPlan):
        kept = promises.kept_plan.relocated(snapshot.jobs.id[plan.job], plan, swapper.image)
        promises = replace(promises, kept_plan=kept)
    wide = plan.starts_now[np.diff(plan.indptr)[plan.starts_now] > 1]
    before, after = _paid(hop_tree, plan, wide), _paid(hop_tree, improved, wide)
    counted = np.isfinite(before)
    saved = PlacementSavings(len(wide), float(before[counted].sum()), float(after[counted].sum()))
    return replace(planned, plan=improved, promises=promises), saved


def _paid(hop_tree: HopTree, plan: Plan, rows: NDArray[np.intp]) -> NDArray[np.float64]:
    """The cost of the nodes of some rows; infinite across fabrics."""
    return hop_tree.costs(csr([plan.nodes_of(row) for row in rows.tolist()]))


def _kinds_by_weight(snapshot: Snapshot, site: Site) -> NDArray[np.int64] | None:
    """(n_nodes,) equal for nodes on which any job adds the same to all bounds; None: no bound."""
    bounds = weighted_bounds(snapshot, site)
    if not bounds:
        return None
    columns = [column for bound in bounds for column in (bound.floor, bound.weight)]
    columns.append(snapshot.nodes.capacity[:, CPUS])
    _, kind = np.unique(np.column_stack(columns), axis=0, return_inverse=True)
    return kind.reshape(-1).astype(np.int64)


def _named_by_rules(snapshot: Snapshot, site: Site) -> list[NDArray[np.bool_]]:
    """(n_nodes,) bool for every FreePool of nodes, and for every resource that is protected."""
    pools = [pool.nodes for pool in site.rules.free_pools if pool.nodes is not None]
    spoken = [members(nodes, snapshot) for nodes in pools]
    for name in site.protect:
        column = plain_name(name)
        if column in snapshot.resources:
            spoken.append(snapshot.nodes.capacity[:, snapshot.resources.index(column)] > 0)
    return spoken
