# SPDX-License-Identifier: Apache-2.0
"""The nodes of a cluster, as columns."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bridge.model.parts import NO_PARTS, Parts

CPUS, MEMORY_MIB = 0, 1
"""Columns of every resource vector; generic resources ("gpu", "gpu:a100") follow."""


@dataclass(frozen=True)
class NodeTable:
    """Nodes in the controller's order; all tables refer to nodes by index.

    Attributes:
        names: (n_nodes,) as users know them.
        capacity: (n_nodes, n_resources) int64: CPUs, memory MiB, generic resources.
        usable: (n_nodes,) bool: jobs may start here now or once present jobs end.
        weight: (n_nodes,) int32: nodes of lower weight are used first.
        features: (n_nodes,) the active features of each node.
        state: (n_nodes,) the controller's text, for display.
        parts: further columns, of extensions: dataclasses of columns of length n_nodes.
    """

    names: tuple[str, ...]
    capacity: NDArray[np.int64]
    usable: NDArray[np.bool_]
    weight: NDArray[np.int32]
    features: tuple[frozenset[str], ...]
    state: tuple[str, ...]
    parts: Parts = NO_PARTS

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def index(self) -> dict[str, int]:
        """Node name to index."""
        return {name: position for position, name in enumerate(self.names)}

    @cached_property
    def rank(self) -> NDArray[np.int32]:
        """(n_nodes,) by weight; nodes of equal weight have equal rank. Not to be changed."""
        weight = self.weight
        if not len(weight) or not np.count_nonzero(weight != weight[0]):  # as mostly
            return np.zeros(len(weight), dtype=np.int32)
        _, rank = np.unique(weight, return_inverse=True)
        return rank.astype(np.int32)

    def having(self, name: str, part: object | None) -> "NodeTable":
        """Returns the same nodes with another part of an extension; None: without one."""
        return replace(self, parts=self.parts.having(name, part))


def state_flags(words: str) -> frozenset[str]:
    """The flags in the controller's text for a node's state: "UP+DRAIN"."""
    return frozenset(flag.strip("*") for flag in words.upper().split("+"))
