# SPDX-License-Identifier: Apache-2.0
"""The reasons why running malleable jobs keep or change their widths, by a finished plan.

Rules
    1. The first applicable reason is given: first what forbids any change, then what forbids
       growth, then what is missing. `_Reasons` sets them from the last to the first.
    2. If a rule of the site prevented a resize that the policy wanted, that is the reason, whatever
       else applies.
"""

from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bridge.model.decisions.resizes import NO_RESIZES, Resizes
from bridge.model.decisions.start_widths import NO_START_WIDTHS, StartWidths
from bridge.model.decisions.width_reasons import WidthCode, WidthReason
from bridge.model.plan import Plan
from bridge.model.snapshot import Snapshot
from bridge.planning.malleable.bases import allowed, max_nodes
from bridge.planning.malleable.expand_shrink import MIN_LEFT, idle_nodes
from bridge.planning.malleable.loans import used_from_s
from bridge.planning.malleable.usable import Usable
from bridge.ports import Planned, Replan


@dataclass
class Watched:
    """A `bridge.ports.Replan` that records the resizes that rules prevented.

    Attributes:
        left_out: their rows of `Snapshot.running`.
    """

    replan: Replan
    left_out: set[int] = field(default_factory=set)

    def __call__(
        self,
        resizes: Resizes,
        returns: Resizes = NO_RESIZES,
        widths: StartWidths = NO_START_WIDTHS,
        order: NDArray[np.int64] | None = None,
    ) -> Planned:
        """As `bridge.ports.Replan`."""
        return self._noted(resizes, self.replan(resizes, returns, widths, order))

    def around(self, planned: Planned, resizes: Resizes, returns: Resizes) -> Planned:
        """As `bridge.ports.Replan.around`."""
        return self._noted(resizes, self.replan.around(planned, resizes, returns))

    def _noted(self, resizes: Resizes, found: Planned) -> Planned:
        if len(found.plan.resizes) < len(resizes):
            self.left_out |= {*resizes.job.tolist()} - {*found.plan.resizes.job.tolist()}
        return found


@dataclass(frozen=True)
class Demands:
    """Conditions of a policy on changes, beyond the common rules.

    Attributes:
        adaptation_s: duration of a change.
        between_s: minimum time between two changes of a job, and for which an idle node must be
            free.
        one_at_a_time: nothing is decided while a job adapts.
        minimum: (n_running,) the next width that is worth a change; very large: none is; 0, or
            None for all: any allowed one is.
    """

    adaptation_s: int
    between_s: int = 0
    one_at_a_time: bool = False
    minimum: NDArray[np.int64] | None = None


def with_reasons(
    snapshot: Snapshot, planned: Planned, left_out: set[int], demands: Demands
) -> Planned:
    """The plan with a reason for each running malleable job.

    Args:
        left_out: see `Watched`.
    """
    running = snapshot.running
    rows = np.flatnonzero(running.malleable & (running.indptr[1:] > running.indptr[:-1]))
    if not len(rows):
        return planned
    reasons = _Reasons(snapshot, planned.plan, rows, demands)
    reasons.for_no_growth()
    reasons.for_no_change(left_out)
    return replace(planned, plan=replace(planned.plan, widths=reasons.told()))


class _Reasons:
    """The reasons of some running jobs, by columns; a reason that is set later replaces one."""

    def __init__(
        self, snapshot: Snapshot, plan: Plan, rows: NDArray[np.intp], demands: Demands
    ) -> None:
        running = snapshot.running
        self._snapshot, self._plan, self._rows, self._demands = snapshot, plan, rows, demands
        self._width = running.indptr[rows + 1] - running.indptr[rows]
        self._code = np.full(len(rows), WidthCode.OTHERS_FIRST, dtype=np.int8)
        self._nodes = np.zeros(len(rows), dtype=np.int64)
        self._until_s = np.zeros(len(rows), dtype=np.int64)

    def for_no_growth(self) -> None:
        """Sets the reasons for what is missing, for all of them."""
        snapshot, rows, demands = self._snapshot, self._rows, self._demands
        maximum = max_nodes(snapshot)[rows]
        following = allowed(snapshot.running.width_rule[rows], self._width + 1)
        wanted = following
        if demands.minimum is not None:
            wanted = np.maximum(wanted, demands.minimum[rows])
        free = np.flatnonzero(idle_nodes(snapshot, self._plan)).astype(np.int32)
        if len(free):
            count, calm = self._counts(free)
            more = wanted - self._width
            self._code[calm < more] = WidthCode.PLANNED_NODES
            self._code[count < more] = WidthCode.TOO_FEW_NODES
            self._code[wanted > maximum] = WidthCode.NO_GAIN
            self._code[count == 0] = WidthCode.NO_IDLE_NODES
        else:
            self._code[:] = WidthCode.NO_IDLE_NODES
        self._code[following > maximum] = WidthCode.WIDEST
        self._nodes = np.where(self._code == WidthCode.TOO_FEW_NODES, wanted, 0)

    def _counts(self, free: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """How many idle nodes each job could use, and how many of them stay idle long enough."""
        snapshot, demands = self._snapshot, self._demands
        until_s = snapshot.now_s + max(demands.between_s, demands.adaptation_s)
        calm = used_from_s(self._plan, len(snapshot.nodes))[free] >= until_s
        usable = Usable(snapshot, free)
        group = usable.groups(self._rows)
        calm_counts = [int(np.count_nonzero(mask & calm)) for mask in usable.masks]
        return np.array(usable.counts)[group], np.array(calm_counts)[group]

    def for_no_change(self, left_out: set[int]) -> None:
        """Sets the reasons that forbid any change, and the changes."""
        running, rows, demands = self._snapshot.running, self._rows, self._demands
        now_s, resizes = self._snapshot.now_s, self._plan.resizes
        left_s = running.end_s[rows] - now_s
        self._set(
            left_s <= max(MIN_LEFT * demands.adaptation_s, demands.between_s),
            WidthCode.ENDS_SOON,
        )
        if demands.one_at_a_time and running.adapting.any():
            self._set(np.ones(len(rows), dtype=bool), WidthCode.OTHER_ADAPTS)
        if demands.between_s:
            resized_s = running.resized_s[rows]
            calm_s = resized_s + demands.between_s
            soon = (resized_s != 0) & (calm_s > now_s)
            self._set(soon, WidthCode.TOO_SOON)
            self._until_s[soon] = calm_s[soon]
        if left_out:
            self._set(np.isin(rows, list(left_out)), WidthCode.RULE)
        self._set(running.adapting[rows], WidthCode.ADAPTING)
        if len(resizes):
            after = np.zeros(len(running), dtype=np.int64)
            after[resizes.job] = np.diff(resizes.indptr)
            after = after[rows]
            self._set((after > 0) & (after <= self._width), WidthCode.SHRINKS)
            self._set(after > self._width, WidthCode.GROWS)
            self._nodes = np.where(after > 0, after, self._nodes)

    def _set(self, which: NDArray[np.bool_], code: WidthCode) -> None:
        if which.any():
            self._code[which] = code
            self._nodes[which] = self._until_s[which] = 0

    def told(self) -> tuple[WidthReason, ...]:
        ids = self._snapshot.running.id[self._rows].tolist()
        codes = map(_CODES.__getitem__, self._code.tolist())
        return tuple(map(_reason, ids, codes, self._nodes.tolist(), self._until_s.tolist()))


_CODES: Final = {int(code): code for code in WidthCode}


@lru_cache(maxsize=8192)
def _reason(job_id: str, code: WidthCode, nodes: int, until_s: int) -> WidthReason:
    """Cached, as most jobs keep theirs from cycle to cycle."""
    return WidthReason(job_id, code, nodes, until_s)
