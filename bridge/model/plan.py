# SPDX-License-Identifier: Apache-2.0
"""The plan: starts, planned starts and reasons for every pending job."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bridge.model.decisions.prediction import Prediction
from bridge.model.decisions.resizes import NO_RESIZES, Resizes, resized
from bridge.model.decisions.start_widths import NO_START_WIDTHS, StartWidths, with_start_widths
from bridge.model.decisions.width_reasons import WidthReason
from bridge.model.parts import NO_PARTS, Parts
from bridge.model.reasons import Reason
from bridge.model.snapshot import Snapshot
from bridge.units import NEVER, UNPLANNED


@dataclass(frozen=True)
class Plan:
    """Starts, planned starts and reasons, as columns of length n_rows.

    Every pending job of the snapshot has at least one row; an array has one for each task that
    was planned. Rows are in the order in which the policy considered them.

    Attributes:
        now_s: the snapshot's clock.
        policy: name of the policy that made it, for display.
        job: int32 row in `Snapshot.jobs`.
        start_s: int64; `now_s`: start now; later: planned; NEVER; UNPLANNED.
        end_s: int64: start + the time it was planned with (its limit, or its predicted run
            time); 0 without a start.
        partition: int32 index into `Snapshot.partitions`; -1 without a start.
        indptr: (n_rows + 1,) int64; row i uses nodes[indptr[i]:indptr[i + 1]].
        nodes: (nnz,) int32 node indexes, ascending within a row.
        tasks: (nnz,) int32 tasks on each of them; 0 for jobs without tasks.
        reasons: why a row does not start now; None for rows that do.
        groups: (nnz, G) int32: chunks of each kind of the job's request on each of the nodes, for
            jobs with chunks of several kinds; 0 beyond a job's kinds and for other jobs.
            None: there are no such jobs in the plan.
        predicted: the predictions it was planned with, as bounded by
            `bridge.planning.prediction.apply_predictions`; None: planned with time limits.
        resizes: running jobs that get other nodes. The rows are planned around these nodes.
        returns: what these and other running jobs will give back later. The rows are planned
            around that, too, but a later plan carries it out.
        start_widths: waiting jobs planned on other numbers of nodes than requested.
        again_s: when the policy must plan again, event or not; NEVER: only after events.
        widths: why running malleable jobs change or keep their widths; empty: the policy resizes
            none.
        parts: what extensions have decided, by their names.
        notes: deviations from the configured policy, e.g. that it failed and a fallback was used.
    """

    now_s: int
    policy: str
    job: NDArray[np.int32]
    start_s: NDArray[np.int64]
    end_s: NDArray[np.int64]
    partition: NDArray[np.int32]
    indptr: NDArray[np.int64]
    nodes: NDArray[np.int32]
    tasks: NDArray[np.int32]
    reasons: tuple[Reason | None, ...]
    notes: tuple[str, ...] = ()
    groups: NDArray[np.int32] | None = None
    predicted: Prediction | None = None
    resizes: Resizes = NO_RESIZES
    returns: Resizes = NO_RESIZES
    start_widths: StartWidths = NO_START_WIDTHS
    again_s: int = NEVER
    widths: tuple[WidthReason, ...] = ()
    parts: Parts = NO_PARTS

    def __len__(self) -> int:
        return len(self.job)

    @staticmethod
    def without_rows(now_s: int) -> "Plan":
        """An empty plan."""
        none = np.empty(0, dtype=np.int64)
        few = np.empty(0, dtype=np.int32)
        return Plan(now_s, "", few, none, none, few, np.zeros(1, np.int64), few, few, ())

    @staticmethod
    def of_columns(**columns: object) -> "Plan":
        """The plan of these columns; for plans by the thousand.

        Args:
            columns: all attributes without a default, and any others.
        """
        plan = Plan.__new__(Plan)
        plan.__dict__.update(columns)
        return plan

    def by(self, policy: str) -> "Plan":
        """Returns the same plan under another policy's name."""
        renamed = Plan.__new__(Plan)
        renamed.__dict__.update(self.__dict__, policy=policy)
        return renamed

    def having(self, name: str, part: object | None) -> "Plan":
        """Returns the same plan with another part of an extension; None: without one."""
        return replace(self, parts=self.parts.having(name, part))

    def nodes_of(self, row: int) -> NDArray[np.int32]:
        """Returns the node indexes of one row; empty without a start."""
        return self.nodes[self.indptr[row] : self.indptr[row + 1]]

    def tasks_of(self, row: int) -> NDArray[np.int32]:
        """Returns the tasks of one row on each of its nodes; 0 for jobs without tasks."""
        return self.tasks[self.indptr[row] : self.indptr[row + 1]]

    @property
    def only_rows(self) -> bool:
        """Whether it decides nothing but its rows: no widths and no parts."""
        return (
            self.resizes is NO_RESIZES
            and self.returns is NO_RESIZES
            and self.start_widths is NO_START_WIDTHS
            and self.parts is NO_PARTS
        )

    @property
    def starts_now(self) -> NDArray[np.intp]:
        """Rows to start at once."""
        rows: NDArray[np.intp] = (self.start_s == self.now_s).nonzero()[0]
        return rows

    @cached_property
    def planned(self) -> NDArray[np.intp]:
        """Rows with an announced later start."""
        start_s = self.start_s
        later = start_s > max(self.now_s, UNPLANNED)
        rows: NDArray[np.intp] = (later & (start_s != NEVER)).nonzero()[0]
        return rows


def planned_world(
    snapshot: Snapshot,
    resizes: Resizes,
    returns: Resizes = NO_RESIZES,
    start_widths: StartWidths = NO_START_WIDTHS,
) -> Snapshot:
    """The snapshot that the rows of a plan with these changes are planned around."""
    if resizes is NO_RESIZES and returns is NO_RESIZES and start_widths is NO_START_WIDTHS:
        return snapshot
    return with_start_widths(resized(resized(snapshot, resizes), returns), start_widths)
