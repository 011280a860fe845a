# SPDX-License-Identifier: Apache-2.0
"""Why running malleable jobs keep their widths, or change them, by a finished plan.

Rules
    1. The first reason that holds is given, in the order of `_Reasons.of`: what forbids any change
       before what forbids growth, then what is missing.
    2. A job that the policy wanted to resize and that a rule of the site left out says so, whatever
       else holds.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from bridge.model.resizes import NO_RESIZES, Resizes
from bridge.model.snapshot import Snapshot
from bridge.model.start_widths import NO_START_WIDTHS, StartWidths
from bridge.model.width_reasons import WidthCode, WidthReason
from bridge.planning.malleable.bases import RULES, most_nodes
from bridge.planning.malleable.expand_shrink import LEAST_LEFT, idle_nodes
from bridge.planning.malleable.loans import Usable, used_from_s
from bridge.ports import Planned, Replan


@dataclass
class Watched:
    """A `bridge.ports.Replan` that notes the resizes which rules left out.

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
    """What a policy asks of a change beyond the rules of all.

    Attributes:
        adaptation_s: how long a change takes.
        between_s: least time between two changes of a job, and how long an idle node must be free.
        one_at_a_time: nothing is decided while a job adapts.
        least: row to the next width that is worth a change; very large: there is none. Left out:
            any allowed one is.
    """

    adaptation_s: int
    between_s: int = 0
    one_at_a_time: bool = False
    least: Mapping[int, int] = field(default_factory=dict)


def with_reasons(
    snapshot: Snapshot, planned: Planned, left_out: set[int], demands: Demands
) -> Planned:
    """The plan with a reason for each running malleable job.

    Args:
        snapshot: what was planned.
        planned: as the policy returns it.
        left_out: see `Watched`.
        demands: of the policy.
    """
    running = snapshot.running
    may = ((running.max_nodes > 0) | running.adapting) & ~running.releasing
    rows = np.flatnonzero(may & (running.indptr[1:] > running.indptr[:-1])).tolist()
    if not rows:
        return planned
    reasons = _Reasons(snapshot, planned, left_out, demands)
    found = tuple(reasons.of(row) for row in rows)
    return replace(planned, plan=replace(planned.plan, widths=found))


class _Reasons:
    def __init__(
        self, snapshot: Snapshot, planned: Planned, left_out: set[int], demands: Demands
    ) -> None:
        plan = planned.plan
        self._snapshot, self._demands, self._left_out = snapshot, demands, left_out
        self._after = {
            job: len(plan.resizes.nodes_of(at)) for at, job in enumerate(plan.resizes.job.tolist())
        }
        self._width = (snapshot.running.indptr[1:] - snapshot.running.indptr[:-1]).tolist()
        self._most = most_nodes(snapshot)
        free = np.flatnonzero(idle_nodes(snapshot, plan)).astype(np.int32)
        self._usable = Usable(snapshot, free)
        until_s = snapshot.now_s + max(demands.between_s, demands.adaptation_s)
        self._calm = used_from_s(plan, len(snapshot.nodes))[free] >= until_s
        self._adapts = bool(snapshot.running.adapting.any())

    def of(self, row: int) -> WidthReason:
        running, now_s, demands = self._snapshot.running, self._snapshot.now_s, self._demands
        job_id, width = str(running.id[row]), self._width[row]
        if (after := self._after.get(row)) is not None:
            code = WidthCode.GROWS if after > width else WidthCode.SHRINKS
            return WidthReason(job_id, code, after)
        if running.adapting[row]:
            return WidthReason(job_id, WidthCode.ADAPTING)
        if row in self._left_out:
            return WidthReason(job_id, WidthCode.RULE)
        calm_s = int(running.resized_s[row]) + demands.between_s
        if running.resized_s[row] and demands.between_s and calm_s > now_s:
            return WidthReason(job_id, WidthCode.TOO_SOON, until_s=calm_s)
        if demands.one_at_a_time and self._adapts:
            return WidthReason(job_id, WidthCode.OTHER_ADAPTS)
        left_s = int(running.end_s[row]) - now_s
        if left_s <= max(LEAST_LEFT * demands.adaptation_s, demands.between_s):
            return WidthReason(job_id, WidthCode.ENDS_SOON)
        return self._no_growth(row, job_id, width)

    def _no_growth(self, row: int, job_id: str, width: int) -> WidthReason:
        most = int(self._most[row])
        rule = RULES[int(self._snapshot.running.width_rule[row])]
        wanted = rule.next_width(width + 1)
        if wanted > most:
            return WidthReason(job_id, WidthCode.WIDEST)
        wanted = max(wanted, self._demands.least.get(row, 0))
        usable, count = self._usable.by(row)
        calm = int(np.count_nonzero(usable & self._calm))
        if not count:
            return WidthReason(job_id, WidthCode.NO_IDLE_NODES)
        if wanted > most:
            return WidthReason(job_id, WidthCode.NO_GAIN)
        if count < wanted - width:
            return WidthReason(job_id, WidthCode.TOO_FEW_NODES, wanted)
        if calm < wanted - width:
            return WidthReason(job_id, WidthCode.PLANNED_NODES)
        return WidthReason(job_id, WidthCode.OTHERS_FIRST)
