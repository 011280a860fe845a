# SPDX-License-Identifier: Apache-2.0
"""Resizes of running jobs: the decision, and the snapshot that results from it.

Rules
    1. A resize names all nodes that the job has afterwards. It either adds or removes nodes, never
       both.
    2. Added nodes belong to the job from the time of the snapshot on. On each of them it holds the
       same as on its first node; an exclusive job holds them whole.
    3. Removed nodes stay with the job until `by_s`, when its processes there are expected to have
       ended. In the resized snapshot they are a row of their own (`RunningTable.releasing`), so
       every planner sees that they become free later.
    4. `Plan.returns` are resizes that have not begun: they only remove nodes, of jobs as they are
       after the resizes that begin now.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from bridge.model.job import RunningTable
from bridge.model.node import NodeTable
from bridge.model.snapshot import Snapshot

Resize = tuple[int, int, NDArray[np.int32], str]
"""Row of `Snapshot.running`, when it is complete, the nodes afterwards, and why."""


def _no_counts() -> NDArray[np.int32]:
    return np.empty(0, dtype=np.int32)


@dataclass(frozen=True)
class Resizes:
    """Running jobs with new sets of nodes, as columns of length n_resizes.

    Attributes:
        job: (n_resizes,) int32 rows of `Snapshot.running`, ascending, each once.
        by_s: (n_resizes,) int64: when the change is expected to be complete; after the snapshot's
            instant where nodes are removed.
        indptr: (n_resizes + 1,) int64; resize i leaves the job nodes[indptr[i]:indptr[i + 1]].
        nodes: (nnz,) int32 node indexes, ascending within a resize.
        reasons: why, one short sentence for each.
        end_s: (n_resizes,) int64: when the job ends at its new width at the latest; 0: as before.
            Left out: 0 throughout.
    """

    job: NDArray[np.int32] = field(default_factory=_no_counts)
    by_s: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    indptr: NDArray[np.int64] = field(default_factory=lambda: np.zeros(1, dtype=np.int64))
    nodes: NDArray[np.int32] = field(default_factory=_no_counts)
    reasons: tuple[str, ...] = ()
    end_s: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def __post_init__(self) -> None:
        if not len(self.end_s):
            object.__setattr__(self, "end_s", np.zeros(len(self.job), dtype=np.int64))

    def __len__(self) -> int:
        return len(self.job)

    def nodes_of(self, row: int) -> NDArray[np.int32]:
        """All nodes that the job has afterwards."""
        return self.nodes[self.indptr[row] : self.indptr[row + 1]]

    def only(self, rows: Sequence[int]) -> "Resizes":
        """Some of the resizes, by their rows here."""
        kept = [
            (int(self.job[row]), int(self.by_s[row]), self.nodes_of(row), self.reasons[row])
            for row in rows
        ]
        return Resizes.of(kept, {int(self.job[row]): int(self.end_s[row]) for row in rows})

    @staticmethod
    def of(
        rows: Sequence[Resize],
        end_s: Mapping[int, int] = MappingProxyType({}),
    ) -> "Resizes":
        """Builds the columns.

        Args:
            rows: for each job (row in `Snapshot.running`, by_s, its nodes afterwards, why); in any
                order.
            end_s: row in `Snapshot.running` to when that job ends at its new width.
        """
        if not rows:
            return NO_RESIZES
        rows = sorted(rows, key=lambda row: row[0])
        widths = [len(nodes) for _, _, nodes, _ in rows]
        return Resizes(
            job=np.array([job for job, *_ in rows], dtype=np.int32),
            by_s=np.array([by_s for _, by_s, *_ in rows], dtype=np.int64),
            indptr=np.concatenate(([0], np.cumsum(widths))).astype(np.int64),
            nodes=np.concatenate([np.sort(nodes) for _, _, nodes, _ in rows]).astype(np.int32),
            reasons=tuple(reason for *_, reason in rows),
            end_s=np.array([end_s.get(job, 0) for job, *_ in rows], dtype=np.int64),
        )


NO_RESIZES = Resizes()


def held_after(
    running: RunningTable, nodes: NodeTable, job: int, after: NDArray[np.int32]
) -> NDArray[np.int64]:
    """The holdings of a job on each node after a resize, as (n_after, R) int64 (rule 2)."""
    own = slice(int(running.indptr[job]), int(running.indptr[job + 1]))
    held, use = running.nodes[own], running.use[own]
    if not len(held):
        return np.zeros((len(after), use.shape[1]), dtype=np.int64)
    at = np.searchsorted(held, after).clip(0, len(held) - 1)
    had = held[at] == after
    added = nodes.capacity[after] if running.exclusive[job] else use[:1]
    found: NDArray[np.int64] = np.where(had[:, np.newaxis], use[at], added)
    return found


def resized(snapshot: Snapshot, resizes: Resizes) -> Snapshot:
    """The snapshot in which these jobs have their new nodes.

    Args:
        snapshot: the cluster.
        resizes: of its running jobs. Rows of `Snapshot.running` keep their positions; rows of nodes
            being released are appended.
    """
    if not len(resizes):
        return snapshot
    running = snapshot.running
    nodes = [running.nodes[a:b] for a, b in zip(running.indptr, running.indptr[1:], strict=False)]
    use = [running.use[a:b] for a, b in zip(running.indptr, running.indptr[1:], strict=False)]
    released, until_s = [], []
    end_s, head = running.end_s.copy(), running.head.copy()
    for row, job in enumerate(resizes.job.tolist()):
        after = resizes.nodes_of(row)
        leaves = ~np.isin(nodes[job], after)
        held = held_after(running, snapshot.nodes, job, after)
        if leaves.any():
            released.append(job)
            until_s.append(min(int(resizes.by_s[row]), int(running.end_s[job])))
            nodes.append(nodes[job][leaves])
            use.append(use[job][leaves])
        nodes[job], use[job] = after, held
        end_s[job] = resizes.end_s[row] or end_s[job]
        head[job] = running.head_of(job)  # which a lower node does not become
    running = replace(running, end_s=end_s, head=head)
    return replace(snapshot, running=_with_releases(running, nodes, use, released, until_s))


def _with_releases(
    running: RunningTable,
    nodes: Sequence[NDArray[np.int32]],
    use: Sequence[NDArray[np.int64]],
    released: Sequence[int],
    until_s: Sequence[int],
) -> RunningTable:
    """The table with the new nodes, and rows of the nodes being released appended."""
    rows = np.concatenate((np.arange(len(running)), released)).astype(np.int64)
    own = {"indptr", "nodes", "use"}
    columns = {name: getattr(running, name)[rows] for name in vars(running) if name not in own}
    last = slice(len(running), None)
    columns["end_s"][last] = until_s
    columns["releasing"][last] = True
    columns["licences"][last] = 0
    widths = [len(each) for each in nodes]
    return RunningTable(
        **columns,
        indptr=np.concatenate(([0], np.cumsum(widths))).astype(np.int64),
        nodes=np.concatenate(nodes).astype(np.int32),
        use=np.concatenate(use),
    )
