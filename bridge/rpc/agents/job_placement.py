# SPDX-License-Identifier: Apache-2.0
"""Where the running jobs are placed, by the controller's last report."""

from collections.abc import Sequence
from functools import cached_property

from bridge.model.job import RunningTable


class JobPlacement:
    """The nodes of each running job; the jobs are found when they are looked for.

    A job is named by the controller's id, or by its number on its nodes: a task of an array has one
    that only the controller knows. Nodes that it is giving back, rows of their own in a snapshot,
    are no longer its nodes.
    """

    def __init__(self, running: RunningTable | None = None, names: Sequence[str] = ()) -> None:
        """Reads a report.

        Args:
            running: the running jobs; None: nothing has been reported.
        """
        self._running, self._names = running, names
        self._nodes: dict[int, frozenset[str]] = {}

    @cached_property
    def _rows(self) -> dict[str, int]:
        if self._running is None:
            return {}
        ids, numbers = self._running.id.tolist(), self._running.number.tolist()
        own = (~self._running.releasing).nonzero()[0].tolist()
        by_number = {str(numbers[row]): row for row in own if numbers[row] > 0}
        return by_number | {str(ids[row]): row for row in own}

    def nodes(self, job: str) -> frozenset[str] | None:
        """The nodes that a job holds; None: no running job is called so."""
        row = self._rows.get(job)
        if row is None or self._running is None:
            return None
        found = self._nodes.get(row)
        if found is None:
            first, end = self._running.indptr[row : row + 2].tolist()
            held = self._running.nodes[first:end].tolist()
            found = self._nodes[row] = frozenset(self._names[node] for node in held)
        return found

    def user(self, job: str) -> str | None:
        """The user of a job, as the controller calls him; None: no running job is called so."""
        row = self._rows.get(job)
        return None if row is None or self._running is None else str(self._running.user[row])

    def number(self, job_id: str) -> str | None:
        """The number of an array's task on its nodes; None: its id has it, or it is unknown."""
        row = self._rows.get(job_id)
        if row is None or self._running is None or str(self._running.id[row]) != job_id:
            return None
        number = int(self._running.number[row])
        return str(number) if number > 0 else None
