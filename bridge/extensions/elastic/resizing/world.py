# SPDX-License-Identifier: Apache-2.0
"""The running jobs of a snapshot by id, with node names for node indexes."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from bridge.extensions.elastic.resizing.launchers import Names
from bridge.model.snapshot import Snapshot


class World:
    """One snapshot, as far as resizes need it.

    Attributes:
        now_s: its instant, Unix seconds.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        running = snapshot.running
        releasing = running.releasing
        self._rows = {
            str(running.id[row]): row
            for row in np.flatnonzero((running.max_nodes > 0) & ~releasing).tolist()
        }
        self._snapshot = snapshot
        self.now_s = snapshot.now_s

    def __contains__(self, job_id: object) -> bool:
        return job_id in self._rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def malleable(self) -> list[str]:
        """Ids of malleable running jobs."""
        return list(self._rows)

    def row(self, job_id: str) -> int:
        """Row of `Snapshot.running`."""
        return self._rows[job_id]

    def nodes(self, job_id: str) -> Names:
        """Nodes that the controller reports, the one that the job keeps first."""
        running, row = self._snapshot.running, self._rows[job_id]
        names, head = self._snapshot.nodes.names, running.head_of(row)
        held = running.nodes[running.indptr[row] : running.indptr[row + 1]].tolist()
        return tuple(names[node] for node in sorted(held, key=lambda node: (node != head, node)))

    def indexes(self, nodes: Names) -> NDArray[np.int32]:
        """Node indexes, ascending; nodes that are no longer there are left out."""
        index = self._snapshot.nodes.index
        return np.array(sorted(index[name] for name in nodes if name in index), dtype=np.int32)

    def knows(self, nodes: Names) -> bool:
        """Whether all these nodes still exist."""
        return all(name in self._snapshot.nodes.index for name in nodes)

    def version(self, job_id: str) -> int:
        return int(self._snapshot.running.version[self._rows[job_id]])

    def user(self, job_id: str) -> str:
        return str(self._snapshot.running.user[self._rows[job_id]])

    def ends(self, job_id: str) -> bool:
        """Whether it holds no node any more, or ends at any moment."""
        running, row = self._snapshot.running, self._rows[job_id]
        empty = running.indptr[row] == running.indptr[row + 1]
        return bool(empty) or int(running.end_s[row]) == 0
