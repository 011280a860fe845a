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
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from bridge.model.job import RunningTable, left_out_of
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
            instant if nodes are removed.
        indptr: (n_resizes + 1,) int64; resize i leaves the job nodes[indptr[i]:indptr[i + 1]].
        nodes: (nnz,) int32 node indexes, ascending within a resize.
        reasons: why, one short sentence for each.
        end_s: (n_resizes,) int64: latest end of the job at its new width; 0: as before.
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
        nodes = np.concatenate([each for _, _, each, _ in rows]).astype(np.int32)
        ascending = np.lexsort((nodes, np.arange(len(rows)).repeat(widths)))
        return Resizes(
            job=np.array([job for job, *_ in rows], dtype=np.int32),
            by_s=np.array([by_s for _, by_s, *_ in rows], dtype=np.int64),
            indptr=np.concatenate(([0], np.cumsum(widths))).astype(np.int64),
            nodes=nodes[ascending],
            reasons=tuple(reason for *_, reason in rows),
            end_s=np.array([end_s.get(job, 0) for job, *_ in rows], dtype=np.int64),
        )


NO_RESIZES = Resizes()


def resized(snapshot: Snapshot, resizes: Resizes) -> Snapshot:
    """The snapshot in which these jobs have their new nodes.

    Args:
        resizes: resizes of its running jobs. Rows of `Snapshot.running` keep their positions; rows
            of nodes being released are appended.
    """
    if not len(resizes):
        return snapshot
    for known, changes, found in _made:
        if known is snapshot and changes is resizes:
            return found
    found = _resized(snapshot, resizes)
    _made[:] = [(snapshot, resizes, found), *_made[: _MAX_MADE - 1]]
    return found


_MAX_MADE = 4
_made: list[tuple[Snapshot, Resizes, Snapshot]] = []
"""The last results: planner and check of a cycle ask for the same ones."""


def _resized(snapshot: Snapshot, resizes: Resizes) -> Snapshot:
    running, n_nodes = snapshot.running, len(snapshot.nodes)
    job, widths = resizes.job.astype(np.int64), resizes.indptr[1:] - resizes.indptr[:-1]
    owner = np.arange(len(running)).repeat(running.indptr[1:] - running.indptr[:-1])
    wanted_by = job.repeat(widths)
    held, wanted = owner * n_nodes + running.nodes, wanted_by * n_nodes + resizes.nodes
    changes = np.zeros(len(running), dtype=bool)
    changes[job] = True
    stays = ~changes[owner]
    of_changed = np.flatnonzero(~stays)
    stays[of_changed] = keeps = _among(held[of_changed], wanted)
    owners, nodes, use = owner[stays], running.nodes[stays], running.use[stays]
    if np.count_nonzero(keeps) < len(wanted):
        new = ~_among(wanted, held)
        order = np.argsort(np.concatenate((held[stays], wanted[new])), kind="stable")
        added_use = _added_use(snapshot, wanted_by[new], resizes.nodes[new])
        owners = np.concatenate((owners, wanted_by[new]))[order]
        nodes = np.concatenate((nodes, resizes.nodes[new]))[order]
        use = np.concatenate((use, added_use))[order]
    ends = np.bincount(owners, minlength=len(running)).cumsum()
    gone = ~stays
    counts = np.bincount(owner[gone], minlength=len(running))
    released = np.flatnonzero(counts)
    counts = counts[released]
    columns = {name: column for name, column in vars(running).items() if name not in _HELD}
    if len(released):
        rows = np.concatenate((np.arange(len(running)), released))
        none = left_out_of(running)
        columns = {
            name: column[rows]
            for name, column in columns.items()
            if name in _CHANGED or column is not none.get(name)
        }
    columns["end_s"], columns["head"] = columns["end_s"].copy(), columns["head"].copy()
    has_end = resizes.end_s > 0
    columns["end_s"][job[has_end]] = resizes.end_s[has_end]
    columns["head"][job] = heads(running)[job]  # which a lower node does not become
    if len(released):
        last = slice(len(running), None)
        by_s = resizes.by_s[np.searchsorted(job, released)]
        columns["end_s"][last] = np.minimum(by_s, running.end_s[released])
        columns["releasing"][last] = True
        for name in _NOT_RELEASED:
            columns[name][last] = 0
    columns["indptr"] = np.concatenate(([0], ends, ends[-1] + counts.cumsum())).astype(np.int64)
    columns["nodes"] = np.concatenate((nodes, running.nodes[gone])).astype(np.int32)
    columns["use"] = np.concatenate((use, running.use[gone]))
    return snapshot.with_running(RunningTable.of_columns(columns))


_HELD = frozenset({"indptr", "nodes", "use"})
_NOT_RELEASED = frozenset({"licences", "use_elsewhere", "nodes_elsewhere"})
_CHANGED = frozenset({"end_s", "head", "releasing"}) | _NOT_RELEASED


def heads(running: RunningTable) -> NDArray[np.int64]:
    """`RunningTable.head_of` of each row."""
    holds = running.indptr[1:] > running.indptr[:-1]
    first = np.full(len(running), -1, dtype=np.int64)
    first[holds] = running.nodes[running.indptr[:-1][holds]]
    return np.where(running.head >= 0, running.head, first)


def _among(values: NDArray[np.int64], known: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which values occur among others, which are ascending."""
    if not len(known):
        return np.zeros(len(values), dtype=bool)
    at = np.minimum(known.searchsorted(values), len(known) - 1)
    found: NDArray[np.bool_] = known[at] == values
    return found


def _added_use(
    snapshot: Snapshot, job: NDArray[np.int64], node: NDArray[np.int32]
) -> NDArray[np.int64]:
    """The amounts that jobs hold on added nodes, as (n_added, R) (rule 2).

    Args:
        job: (n_added,) rows of `Snapshot.running`.
        node: (n_added,) the added nodes.
    """
    running = snapshot.running
    first = running.indptr[job]
    use = np.zeros((len(job), running.use.shape[1]), dtype=np.int64)
    holds = first < running.indptr[job + 1]
    use[holds] = running.use[first[holds]]
    whole = holds & running.exclusive[job]
    use[whole] = snapshot.nodes.capacity[node[whole]]
    return use
