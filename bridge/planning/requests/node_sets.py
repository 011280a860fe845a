# SPDX-License-Identifier: Apache-2.0
"""The nodes that a site rule selects."""

import numpy as np
from numpy.typing import NDArray

from bridge.model.rules.node_set import NodeSet
from bridge.model.snapshot import Snapshot
from bridge.planning.requests.amounts import plain_name
from bridge.planning.requests.features import parse_features


def members(nodes: NodeSet, snapshot: Snapshot) -> NDArray[np.bool_]:
    """(n_nodes,) which nodes are selected; none has a resource that the cluster does not have."""
    table = snapshot.nodes
    meant = np.ones(len(table), dtype=bool)
    if nodes.names:
        meant &= np.isin(np.array(table.names), np.array(nodes.names))
    if nodes.features:
        alternatives = parse_features(nodes.features)
        result = {
            features: any(matches(features) for matches in alternatives)
            for features in set(table.features)
        }
        meant &= np.array([result[features] for features in table.features], dtype=bool)
    if nodes.having:
        name = plain_name(nodes.having)
        known = name in snapshot.resources
        meant &= (table.capacity[:, snapshot.resources.index(name)] > 0) if known else False
    return meant
