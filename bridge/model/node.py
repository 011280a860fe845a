# SPDX-License-Identifier: Apache-2.0
"""The nodes of a cluster, as columns."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

CPUS, MEMORY_MIB = 0, 1
"""Columns of every resource vector; generic resources ("gpu", "gpu:a100") follow."""

HAS_POWER, POWERING_UP, WITHOUT_POWER = 0, 1, 2
"""Values of `NodeTable.power`."""

_WITHOUT = frozenset({"POWERED_DOWN", "POWERED_OFF", "POWERING_DOWN"})


@dataclass(frozen=True)
class PowerSaving:
    """State of nodes that can be powered down, as columns of length n_nodes.

    Attributes:
        can: bool: the controller may power it down and up again.
        off: bool: it is powered down, on the way there, or on the way up.
        resume_s: int64: off: time until jobs can run there if it is powered up now; on: time to
            power up again after it has been powered down.
        ready_s: int64: powering up: when jobs are expected to be able to run there; 0: it is not.
        idle_since_s: int64: on: since when no job uses it, Unix seconds; 0: unknown.
    """

    can: NDArray[np.bool_]
    off: NDArray[np.bool_]
    resume_s: NDArray[np.int64]
    ready_s: NDArray[np.int64]
    idle_since_s: NDArray[np.int64]

    @property
    def resuming(self) -> NDArray[np.bool_]:
        """(n_nodes,) which are powering up."""
        return self.ready_s > 0


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
        power_saving: None: the controller powers no node down.
    """

    names: tuple[str, ...]
    capacity: NDArray[np.int64]
    usable: NDArray[np.bool_]
    weight: NDArray[np.int32]
    features: tuple[frozenset[str], ...]
    state: tuple[str, ...]
    power_saving: PowerSaving | None = None

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

    @cached_property
    def power(self) -> NDArray[np.int8]:
        """(n_nodes,) `HAS_POWER`, `POWERING_UP` or `WITHOUT_POWER` (also on its way down).

        It follows from `power_saving`, and from the controller's text if that is not reported.
        """
        saving = self.power_saving
        if saving is not None:
            off = np.where(saving.resuming, POWERING_UP, WITHOUT_POWER)
            return np.where(saving.off, off, HAS_POWER).astype(np.int8)
        known = {words: _power(words) for words in set(self.state)}
        return np.array([known[words] for words in self.state], dtype=np.int8)


def _power(words: str) -> int:
    flags = state_flags(words)
    if flags & _WITHOUT:
        return WITHOUT_POWER
    return POWERING_UP if "POWERING_UP" in flags else HAS_POWER


def state_flags(words: str) -> frozenset[str]:
    """The flags in the controller's text for a node's state: "UP+DRAIN"."""
    return frozenset(flag.strip("*") for flag in words.upper().split("+"))
