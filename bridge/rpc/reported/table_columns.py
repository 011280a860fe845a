# SPDX-License-Identifier: Apache-2.0
"""The indexes to which names in requests and allocations refer: rows and columns of the tables."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from bridge.dialect import Accounting
from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.rpc.reported.hostlist import NodeIndex

MAX_AMOUNT = 1 << 40
"""Largest accepted amount of anything (memory in MiB); the sum over two million jobs fits int64."""


@dataclass(frozen=True)
class TableColumns:
    """The rows and columns of the tables: nodes, partitions and columns by index.

    Attributes:
        column: generic resource to its column of the resource vectors.
        memory_mib: (n_nodes,) int64.
        unconsumed: generic resource that jobs do not consume to (n_nodes,) int64: the most that a
            job may request on a node.
        partition_exclusive: for each partition, whether its jobs hold whole nodes.
        partition_threads: for each partition, the CPUs of its largest core where jobs hold whole
            cores; otherwise 1.
        partition_mixed: for each partition, whether some of its nodes have smaller cores.
        partition_widths: for each partition, the fewest and most nodes of a job; 0: no bound.
        dialect: the controller's dialect (`bridge.dialect`).
        resizable: the controller can change the nodes of running jobs.
    """

    nodes: NodeIndex
    resources: tuple[str, ...]
    column: Mapping[str, int]
    memory_mib: NDArray[np.int64]
    partitions: Mapping[str, int] = field(default_factory=dict)
    partition_exclusive: tuple[bool, ...] = ()
    partition_threads: tuple[int, ...] = ()
    partition_mixed: tuple[bool, ...] = ()
    partition_widths: tuple[tuple[int, int], ...] = ()
    reservations: Mapping[str, int] = field(default_factory=dict)
    licences: Mapping[str, int] = field(default_factory=dict)
    memory_consumable: bool = True
    memory_optional: bool = False
    features: frozenset[str] = frozenset()
    unconsumed: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)
    dialect: str = ""
    resizable: bool = False

    def accounting(self, partitions: Iterable[int]) -> Accounting:
        """Returns how CPUs and memory are allocated in some partitions, at least one."""
        partitions = tuple(partitions)
        return Accounting(
            core_cpus=max(self.partition_threads[at] for at in partitions),
            cores_differ=any(self.partition_mixed[at] for at in partitions),
            memory_consumable=self.memory_consumable,
            memory_optional=self.memory_optional,
        )

    def gres(self, items: Iterable[pb.Gres], vector: list[int]) -> str:
        """Adds generic resources to a vector; a typed one also counts as its plain kind.

        Resources that are not consumed are left out.

        Returns:
            The first unknown name; empty if all are known.
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
