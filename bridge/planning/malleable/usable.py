# SPDX-License-Identifier: Apache-2.0
"""The nodes onto which running malleable jobs could grow."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from bridge.model.snapshot import Snapshot
from bridge.planning.eligibility.alternatives import Eligibility


class Usable:
    """Which of some nodes each job could use; computed once for equal jobs.

    Attributes:
        masks: (n_free,) which of the nodes the jobs of each group could use.
    """

    def __init__(self, snapshot: Snapshot, free: NDArray[np.int32]) -> None:
        """Begins without groups.

        Args:
            free: (n_free,) these nodes.
        """
        self._snapshot, self._free = snapshot, free
        self._known: dict[object, int] = {}
        self.masks: list[NDArray[np.bool_]] = []
        self.counts: list[int] = []

    def groups(self, rows: NDArray[np.intp]) -> list[int]:
        """The group of each of some jobs.

        Args:
            rows: the rows of `Snapshot.running`, of jobs that hold nodes.
        """
        known, keys = self._known, list(self._keys(rows))
        if keys and keys.count(keys[0]) == len(keys) and not known:
            return [self._new(keys[0], int(rows[0]))] * len(keys)
        return [
            known[key] if key in known else self._new(key, int(rows[at]))
            for at, key in enumerate(keys)
        ]

    def _keys(self, rows: NDArray[np.intp]) -> Iterator[tuple[object, ...]]:
        """Everything that `growable` depends on."""
        running, reservations = self._snapshot.running, self._snapshot.reservations
        holds = [b""] * len(rows)
        for at in np.flatnonzero(~running.exclusive[rows]).tolist():
            holds[at] = running.use[running.indptr[rows[at]]].tobytes()
        columns: list[Sequence[object]] = [
            running.partition[rows].tolist(), running.features[rows].tolist(), holds
        ]  # fmt: skip
        if reservations:
            begin_s = np.array([item.start_s for item in reservations])
            ends_after = begin_s < running.end_s[rows, None]
            columns += [running.reservation[rows].tolist(), [each.tobytes() for each in ends_after]]
        return zip(*columns, strict=True)

    def _new(self, key: object, row: int) -> int:
        free = self._free
        mask = growable(self._snapshot, row)[free] if len(free) else np.zeros(0, dtype=bool)
        self.masks.append(mask)
        self.counts.append(int(np.count_nonzero(mask)))
        return self._known.setdefault(key, len(self._known))


def growable(snapshot: Snapshot, job: int) -> NDArray[np.bool_]:
    """(n_nodes,) nodes of a running job's partition and reservation that match its constraint."""
    running, nodes = snapshot.running, snapshot.nodes
    found = np.zeros(len(nodes), dtype=bool)
    partition = int(running.partition[job])
    if partition < 0 or not snapshot.partitions[partition].up:
        return found
    found[snapshot.partitions[partition].nodes] = True
    if not running.exclusive[job]:
        first = int(running.indptr[job])
        found &= (nodes.capacity >= running.use[first]).all(axis=1)
    for at, item in enumerate(snapshot.reservations):
        if running.reservation[job] == at and not item.anywhere:
            inside = np.zeros(len(nodes), dtype=bool)
            inside[item.nodes] = True
            found &= inside
        elif item.start_s < running.end_s[job]:
            found[item.nodes] = False
    if constraint := str(running.features[job]):
        eligibility = Eligibility(snapshot)
        found &= np.logical_or.reduce(eligibility.classes.matching(constraint))
    return found
