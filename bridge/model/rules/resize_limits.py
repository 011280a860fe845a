# SPDX-License-Identifier: Apache-2.0
"""How often, and how far, running jobs may be resized, by any policy or user.

Terms
    limit       one entry of `planning.resizes`: of a user or of a partition.
    asked       the number of nodes that a job requested; if unknown, those it holds.
    order       a resize requested by an administrator.

Rules
    1. A job keeps its nodes if its user requested it (`RunningTable.keeps_nodes`), or if a limit of
       its user or its partition says `never`. This applies to orders, too.
    2. All other limits are on growth. A shrink breaks none of them: nodes that others wait for are
       returned, and a limit on one user never makes another one wait.
    3. A job grows no earlier than `apart_s` after its last change of width, only while its user's
       jobs have changed their widths less than `per_hour` times within the last hour, and to at
       most `extra_nodes` beyond its request. Changes in both directions count.
    4. Rule 3 does not apply to orders.
    5. A user or partition that is named has only the limits that name it; EACH is for the others.
    6. A job that would keep its nodes (1) starts on the requested number: it could never get more.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bridge.model.job import JobTable
from bridge.model.rules.limits import EACH, ConsumerKind
from bridge.model.snapshot import Snapshot

WITHIN_S: Final = 3600
"""The period of `ResizeLimit.per_hour`."""


@dataclass(frozen=True, slots=True)
class ResizeLimit:
    """How often, and how far, the jobs of a user or a partition grow.

    Attributes:
        kind: USER or PARTITION.
        name: its name; EACH: all that no other limit names.
        never: its jobs keep their nodes.
        apart_s: minimum time between a change of a job's width and its next growth.
        per_hour: maximum number of changes of all jobs of a user in an hour; None: any number.
        extra_nodes: maximum number of nodes of a job beyond its request; None: any number.
    """

    kind: ConsumerKind
    name: str
    never: bool = False
    apart_s: int = 0
    per_hour: int | None = None
    extra_nodes: int | None = None


class ResizeBounds:
    """The maximum number of nodes of each running job of a snapshot, by rules 1 to 5."""

    def __init__(
        self, snapshot: Snapshot, limits: Sequence[ResizeLimit], *, order: bool = False
    ) -> None:
        """Prepares the queries.

        Args:
            order: an administrator requests the resize (rule 4).
        """
        self._snapshot = snapshot
        self._order = order
        self._named = {(limit.kind, limit.name): limit for limit in limits}

    @property
    def binds(self) -> bool:
        """Whether any job may be bound by more than its own largest width."""
        return bool(self._named) or bool(self._snapshot.running.keeps_nodes.any())

    def _limits(self, row: int) -> list[ResizeLimit]:
        if not self._named:
            return []
        running, partitions = self._snapshot.running, self._snapshot.partitions
        at = int(running.partition[row])
        return self._limits_of(str(running.user[row]), partitions[at].name if at >= 0 else None)

    def _limits_of(self, user: str, partition: str | None) -> list[ResizeLimit]:
        consumers = [(ConsumerKind.USER, user)]
        if partition is not None:
            consumers.append((ConsumerKind.PARTITION, partition))
        found = (
            self._named.get((kind, name), self._named.get((kind, EACH))) for kind, name in consumers
        )
        return [limit for limit in found if limit is not None]

    def never(self, row: int) -> str:
        """Why a job keeps its nodes (rule 1); empty: it need not."""
        if self._snapshot.running.keeps_nodes[row]:
            return "keeps its nodes: it was submitted with --no-resize"
        for limit in self._limits(row):
            if limit.never:
                whose = f"jobs of {limit.kind} {limit.name}" if limit.name != EACH else "its jobs"
                return f"keeps its nodes: by planning.resizes {whose} are never resized"
        return ""

    def starts_as_requested(self, job: int) -> bool:
        """Whether a waiting job would keep its nodes in some of its partitions (rule 6)."""
        jobs, partitions = self._snapshot.jobs, self._snapshot.partitions
        return any(
            limit.never
            for at in jobs.partitions[job]
            for limit in self._limits_of(str(jobs.user[job]), partitions[at].name)
        )

    def maximum(self, row: int) -> tuple[int, str]:
        """The maximum number of nodes of a job after a change that begins now.

        Returns:
            The number, at least what it holds; 0: it keeps its nodes. And the limit that causes
            this, with advice; empty: only the job's own bound.
        """
        running, now_s = self._snapshot.running, self._snapshot.now_s
        if why := self.never(row):
            return 0, why
        maximum, why = int(running.max_nodes[row]), ""
        if self._order or not self._named:
            return maximum, why
        width = int(running.indptr[row + 1] - running.indptr[row])
        requested = int(running.requested_nodes[row]) or width
        user = str(running.user[row])
        for limit in self._limits(row):
            calm_s = int(running.resized_s[row]) + limit.apart_s
            if running.resized_s[row] and now_s < calm_s:
                maximum, why = min(maximum, width), (
                    f"has changed its width {now_s - int(running.resized_s[row])} s ago, and grows "
                    f"after {limit.apart_s} s (planning.resizes: apart): ask again in "
                    f"{calm_s - now_s} s"
                )  # fmt: skip
            if limit.per_hour is not None and running.user_resizes[row] >= limit.per_hour:
                maximum, why = min(maximum, width), (
                    f"cannot grow: jobs of {user} have changed their widths "
                    f"{int(running.user_resizes[row])} times within an hour, of "
                    f"{limit.per_hour} (planning.resizes: per_hour): ask again later"
                )  # fmt: skip
            if limit.extra_nodes is not None and requested + limit.extra_nodes < maximum:
                maximum = max(requested + limit.extra_nodes, width)
                why = (
                    f"asked for {requested} nodes and may have {limit.extra_nodes} more "
                    f"(planning.resizes: extra_nodes): ask for {maximum} at most"
                )
        return min(maximum, int(running.max_nodes[row])), why

    def left(self, row: int) -> int | None:
        """How many more of the user's jobs may grow now, this one among them; None: any number."""
        if self._order:
            return None
        counts = [
            limit.per_hour - int(self._snapshot.running.user_resizes[row])
            for limit in self._limits(row) if limit.per_hour is not None
        ]  # fmt: skip
        return min(counts, default=None)


def bounded(snapshot: Snapshot, limits: Sequence[ResizeLimit]) -> Snapshot:
    """The snapshot for policies, in which the limits bound the widths of jobs."""
    snapshot = _started_as_requested(snapshot, limits)
    running = snapshot.running
    if not np.count_nonzero(running.max_nodes):
        return snapshot
    rows = np.flatnonzero((running.max_nodes > 0) & ~running.releasing)
    if not limits:
        rows = rows[running.keeps_nodes[rows]]
    if not len(rows):
        return snapshot
    bounds = ResizeBounds(snapshot, limits)
    maximum: NDArray[np.int64] = running.max_nodes.copy()
    maximum[rows] = [bounds.maximum(row)[0] for row in rows.tolist()]
    maximum[maximum < running.min_nodes] = 0
    if (maximum == running.max_nodes).all():
        return snapshot
    return replace(snapshot, running=replace(running, max_nodes=maximum))


def _started_as_requested(snapshot: Snapshot, limits: Sequence[ResizeLimit]) -> Snapshot:
    """The snapshot in which jobs that would keep their nodes are not moldable (rule 6)."""
    if not any(limit.never for limit in limits):
        return snapshot
    jobs = snapshot.jobs
    rows = np.flatnonzero(jobs.max_start > 0)
    if not len(rows):
        return snapshot
    bounds = ResizeBounds(snapshot, limits)
    stay = [row for row in rows.tolist() if bounds.starts_as_requested(row)]
    if not stay:
        return snapshot
    minimum, maximum = jobs.min_start.copy(), jobs.max_start.copy()
    minimum[stay] = maximum[stay] = 0
    columns = {**vars(jobs), "min_start": minimum, "max_start": maximum}
    return replace(snapshot, jobs=JobTable.of_columns(columns))
