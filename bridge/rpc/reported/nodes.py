# SPDX-License-Identifier: Apache-2.0
"""The nodes a controller has reported, in its order, as columns that deltas change in place.

A node that cannot be read starts nothing (`left_out`); without a valid name it is not there.
"""

import re
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from bridge.errors import SnapshotError
from bridge.left_out import LeftOut
from bridge.model.job_columns import MAX_COUNT
from bridge.model.node import CPUS, MEMORY_MIB, NodeTable
from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.rpc.reported.extension_wire import NodeParts
from bridge.rpc.reported.hostlist import NodeIndex
from bridge.rpc.reported.safe_text import printable
from bridge.rpc.reported.table_columns import MAX_AMOUNT
from bridge.units import NEVER

MAX_NODES = 200_000
MAX_GRES_KINDS = 256
_NAME = re.compile(r"[A-Za-z0-9_.\-]{1,255}")
_GRES = re.compile(r"[^\s:,\[\]]{1,64}(:[^\s,\[\]]{1,64})?")
MAX_FEATURE = 1024


class ReportedNodes:
    """Nodes by index.

    Attributes:
        index: names and hostlists.
        column: generic resource to its column of the resource vectors.
        resources: names of those columns.
        renumbered: grows when the meaning of an index or a column changes, or the properties of
            nodes that lowering uses (threads, memory, features, resources that are not consumed).
        features: all that any node has, or had.
        unconsumed: from generic resources that jobs do not consume to (n_nodes,) int64 amounts;
            they have no column.
        memory_mib, threads: (n_nodes,) int64; threads that make a core, at least 1.
        left_out: nodes that cannot be read.
    """

    def __init__(self) -> None:
        self.left_out = LeftOut("node")
        self.index = NodeIndex(())
        self.resources: tuple[str, ...] = ("cpus", "mem_mib")
        self.column: dict[str, int] = {}
        self.unconsumed: dict[str, NDArray[np.int64]] = {}
        self.renumbered = 0
        self.features: frozenset[str] = frozenset()
        self.memory_mib: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self.threads: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self._capacity: NDArray[np.int64] = np.zeros((0, 2), dtype=np.int64)
        self._usable: NDArray[np.bool_] = np.zeros(0, dtype=bool)
        self._weight: NDArray[np.int32] = np.zeros(0, dtype=np.int32)
        self._gres: list[tuple[tuple[str, int, bool], ...]] = []
        self._features: list[frozenset[str]] = []
        self._state: list[str] = []
        self._parts = NodeParts()
        self._known_features: dict[tuple[str, ...], frozenset[str]] = {}
        self._table: NodeTable | None = None

    def __len__(self) -> int:
        return len(self.index)

    def apply(self, changed: Sequence[pb.Node], removed: Sequence[str]) -> bool:
        """Applies new, changed and removed nodes.

        Returns:
            True if anything changed.

        Raises:
            SnapshotError: there are too many nodes.
        """
        if not changed and not removed:
            return False
        if len(changed) > MAX_NODES:
            raise SnapshotError("nodes", f"more than {MAX_NODES} nodes")
        if removed:
            self._remove(removed)
        changed = self._readable(changed)
        known = self.index.index
        fresh = [node.name for node in changed if node.name not in known]
        if fresh:
            self._append(fresh)
        self._write(changed)
        self._table = None
        return True

    def _readable(self, changed: Sequence[pb.Node]) -> list[pb.Node]:
        """Each node once; for one that cannot be read, one that is not usable."""
        found: dict[str, pb.Node] = {}
        for node in changed:
            name = printable(node.name)
            read = self.left_out.unless(name, _read, node)
            if read is not None and node.name in found:
                self.left_out.add(name, "is listed twice")
                read = None
            if read is None and _NAME.fullmatch(node.name):
                read = pb.Node(name=node.name, state=node.state)
            if read is not None:
                found[node.name] = read
        return list(found.values())

    def _remove(self, removed: Sequence[str]) -> None:
        gone = set(removed)
        for name in gone:
            known = self.left_out.reasons.pop(printable(name), None)
            if known is None and name not in self.index.index:
                self.left_out.add(printable(name), "is removed, and was not there")
        keep = np.array([name not in gone for name in self.index.names], dtype=bool)
        stay = np.flatnonzero(keep).tolist()
        self.memory_mib, self.threads = self.memory_mib[keep], self.threads[keep]
        self._capacity, self._usable = self._capacity[keep], self._usable[keep]
        self._weight = self._weight[keep]
        self._parts.keep(keep)
        self._gres = [self._gres[at] for at in stay]
        self._features = [self._features[at] for at in stay]
        self._state = [self._state[at] for at in stay]
        self.index = NodeIndex([self.index.names[at] for at in stay])
        self.renumbered += 1
        self._regroup()

    def _append(self, names: Sequence[str]) -> None:
        more = len(names)
        if len(self.index) + more > MAX_NODES:
            raise SnapshotError("nodes", f"more than {MAX_NODES} nodes")
        zeros = np.zeros(more, dtype=np.int64)
        self.memory_mib = np.concatenate((self.memory_mib, zeros))
        self.threads = np.concatenate((self.threads, zeros))
        self._usable = np.concatenate((self._usable, zeros.astype(bool)))
        self._weight = np.concatenate((self._weight, zeros.astype(np.int32)))
        self._parts.append(more)
        width = self._capacity.shape[1]
        self._capacity = np.concatenate((self._capacity, np.zeros((more, width), dtype=np.int64)))
        self.unconsumed = {
            kind: np.concatenate((amount, zeros)) for kind, amount in self.unconsumed.items()
        }
        self._gres += [()] * more
        self._features += [frozenset()] * more
        self._state += [""] * more
        self.index = NodeIndex((*self.index.names, *names))
        self.renumbered += 1

    def _write(self, changed: Sequence[pb.Node]) -> None:
        rows = np.array([self.index.index[node.name] for node in changed], dtype=np.int64)
        memory = np.array([node.memory_mib for node in changed], dtype=np.int64)
        threads = np.array([max(node.threads_per_core, 1) for node in changed], dtype=np.int64)
        if (self.memory_mib[rows] != memory).any() or (self.threads[rows] != threads).any():
            self.renumbered += 1
        self.memory_mib[rows], self.threads[rows] = memory, threads
        self._usable[rows] = [node.usable and node.cpus > 0 for node in changed]
        self._weight[rows] = [min(node.weight, 2**31 - 1) for node in changed]
        self._parts.write(rows, changed)
        regrouped = False
        for row, node in zip(rows.tolist(), changed, strict=True):
            gres = tuple((item.name, item.count, item.no_consume) for item in node.gres)
            if gres != self._gres[row]:
                self._gres[row], regrouped = gres, True
            words = tuple(node.features)
            if not self.features.issuperset(words):
                self.features |= frozenset(words)
                self.renumbered += 1
            self._features[row] = self._known_features.setdefault(words, frozenset(words))
            self._state[row] = printable(node.state[:64])
        if regrouped:
            self._regroup()
        self._capacity[rows, CPUS] = [node.cpus for node in changed]
        self._capacity[rows, MEMORY_MIB] = memory

    def _regroup(self) -> None:
        """Assigns columns to the generic resources and counts them again."""
        self._leave_out_kinds()
        items = {item for gres in set(self._gres) for item in gres}
        kinds = _kinds(items)
        lent = {name.partition(":")[0] for name, _, no_consume in items if no_consume}
        counted = sorted(kind for kind in kinds if kind.partition(":")[0] not in lent)
        resources = ("cpus", "mem_mib", *counted)
        if resources != self.resources:
            self.resources = resources
            self.column = {kind: at for at, kind in enumerate(resources) if at > MEMORY_MIB}
            self.renumbered += 1
        n_nodes = len(self._gres)
        capacity = np.zeros((n_nodes, len(resources)), dtype=np.int64)
        capacity[:, : MEMORY_MIB + 1] = self._capacity[:, : MEMORY_MIB + 1]
        unconsumed = {
            kind: np.zeros(n_nodes, dtype=np.int64) for kind in kinds if kind not in self.column
        }
        for row, gres in enumerate(self._gres):
            for name, count, _ in gres:
                for kind in {name, name.partition(":")[0]}:
                    if kind in unconsumed:
                        unconsumed[kind][row] += count
                    else:
                        capacity[row, self.column[kind]] += count
        self._capacity = capacity
        before, self.unconsumed = self.unconsumed, unconsumed
        if before.keys() != unconsumed.keys() or any(
            not np.array_equal(before[kind], amount) for kind, amount in unconsumed.items()
        ):
            self.renumbered += 1

    def _leave_out_kinds(self) -> None:
        """Without the generic resources of nodes with which there were too many kinds."""
        kinds: set[str] = set()
        beyond: set[tuple[tuple[str, int, bool], ...]] = set()
        for gres in sorted(set(self._gres), key=lambda each: (len(each), each)):
            if len(more := kinds | _kinds(gres)) > MAX_GRES_KINDS:
                beyond.add(gres)
            else:
                kinds = more
        if not beyond:
            return
        for row, gres in enumerate(self._gres):
            if gres in beyond:
                self._gres[row] = ()
                reason = f"its {len(gres)} generic resources: more than {MAX_GRES_KINDS} in all"
                self.left_out.add(self.index.names[row], reason)

    def table(self) -> NodeTable:
        """Returns the nodes as columns; the same object until something changes."""
        if self._table is None:
            self._table = NodeTable(
                names=self.index.names,
                capacity=self._capacity.copy(),
                usable=self._usable.copy(),
                weight=self._weight.copy(),
                features=tuple(self._features),
                state=tuple(self._state),
                parts=self._parts.parts(),
            )
        return self._table


def _kinds(items: Iterable[tuple[str, int, bool]]) -> set[str]:
    """The kinds of generic resources, with and without their types."""
    names = {name for name, _, _ in items}
    return names | {name.partition(":")[0] for name in names}


def _read(node: pb.Node) -> pb.Node:
    name = node.name
    if not _NAME.fullmatch(name):
        raise SnapshotError("nodes.name", f"'{name[:64]}' is not a node name")
    if node.cpus > MAX_COUNT or node.memory_mib > MAX_AMOUNT or node.threads_per_core > 1024:
        raise SnapshotError(f"nodes[{name}]", "impossible size")
    if not (0 <= node.idle_since_s < NEVER and 0 <= node.ready_s < NEVER):
        raise SnapshotError(f"nodes[{name}]", "idle_since_s or ready_s is not a valid time")
    if len(node.features) > 1024 or len(node.gres) > MAX_GRES_KINDS:
        raise SnapshotError(f"nodes[{name}]", "more than 1024 features or 256 generic resources")
    if any(len(word) > MAX_FEATURE or not word.isprintable() for word in node.features):
        raise SnapshotError(f"nodes[{name}]", "has a feature whose name is too long or odd")
    kinds = set()
    for item in node.gres:
        sound = _GRES.fullmatch(item.name) and item.name.isprintable()
        if not sound or item.count > MAX_AMOUNT:
            raise SnapshotError(
                f"nodes[{name}].gres", f"'{item.name[:64]}' is not a generic resource"
            )
        if item.name in kinds:
            raise SnapshotError(f"nodes[{name}].gres", f"'{item.name}' is listed twice")
        kinds.add(item.name)
    return node
