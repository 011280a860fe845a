# SPDX-License-Identifier: Apache-2.0
"""What the names in requests and allocations refer to: rows and columns of one cluster's tables."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from bridge.dialect import Accounting
from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.rpc.reported.hostlist import NodeIndex

MAX_AMOUNT = 1 << 40
"""Largest amount of anything (memory in MiB) that is accepted; what two million jobs hold of it can
still be counted."""


@dataclass(frozen=True)
class TableColumns:
    """What the rows of the tables refer to: nodes, partitions and columns by index.

    Attributes:
        column: generic resource to its column of the resource vectors.
        memory_mib: (n_nodes,) int64.
        unconsumed: generic resource that jobs do not use up to (n_nodes,) int64: what a job may ask
            a node for.
        partition_exclusive: for each partition, whether its jobs hold whole nodes.
        partition_threads: for each partition, the CPUs of its largest core where jobs hold whole
            cores; otherwise 1.
        partition_mixed: for each partition, whether some of its nodes have smaller cores.
        features: all that any node has.
        dialect: of the controller (`bridge.dialect`).
    """

    nodes: NodeIndex
    resources: tuple[str, ...]
    column: Mapping[str, int]
    memory_mib: NDArray[np.int64]
    partitions: Mapping[str, int] = field(default_factory=dict)
    partition_exclusive: tuple[bool, ...] = ()
    partition_threads: tuple[int, ...] = ()
    partition_mixed: tuple[bool, ...] = ()
    reservations: Mapping[str, int] = field(default_factory=dict)
    licences: Mapping[str, int] = field(default_factory=dict)
    memory_consumable: bool = True
    memory_optional: bool = False
    features: frozenset[str] = frozenset()
    unconsumed: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)
    dialect: str = ""

    def accounting(self, partitions: Iterable[int]) -> Accounting:
        """Returns how CPUs and memory are given out in some partitions, at least one."""
        partitions = tuple(partitions)
        return Accounting(
            core_cpus=max(self.partition_threads[at] for at in partitions),
            cores_differ=any(self.partition_mixed[at] for at in partitions),
            memory_consumable=self.memory_consumable,
            memory_optional=self.memory_optional,
        )

    def gres(self, items: Iterable[pb.Gres], vector: list[int]) -> str:
        """Adds generic resources to a vector; a typed one also counts as its plain kind.

        What is not used up is left out.

        Returns:
            The first name that no node has; empty if all are known.
        """
        unknown = ""
        for item in items:
            name, count = item.name, min(item.count, MAX_AMOUNT)
            at = self.column.get(name)
            if at is None:
                if name not in self.unconsumed:
                    unknown = unknown or name
                continue
            vector[at] += count
            plain = name.partition(":")[0]
            if plain != name:
                vector[self.column[plain]] += count
        return unknown
