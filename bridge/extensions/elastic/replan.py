# SPDX-License-Identifier: Apache-2.0
"""Plans the queue again around other widths of running and waiting jobs."""

from dataclasses import dataclass, field, replace
from operator import is_

import numpy as np
from numpy.typing import NDArray

from bridge.check.legality import check, permitted, permitted_later
from bridge.check.site_rules import broken_rules
from bridge.model.decisions.resizes import NO_RESIZES, Resizes
from bridge.model.decisions.start_widths import NO_START_WIDTHS, StartWidths
from bridge.model.plan import Plan, planned_world
from bridge.model.snapshot import Snapshot
from bridge.ports import Context, Planned, Policy, Preference

_Wanted = tuple[Resizes, Resizes, StartWidths]
_Around = tuple[_Wanted, Snapshot]


@dataclass(slots=True)
class QueueReplan:
    """Plans the queue around other widths; see `bridge.ports.Replan`."""

    snapshot: Snapshot
    predicted: Snapshot
    uses_predictions: bool
    policy: Policy
    order: NDArray[np.int64]
    preference: Preference
    context: Context
    worlds: list[tuple[_Wanted, _Around]] = field(default_factory=list)

    def __call__(
        self,
        resizes: Resizes,
        returns: Resizes = NO_RESIZES,
        widths: StartWidths = NO_START_WIDTHS,
        order: NDArray[np.int64] | None = None,
    ) -> Planned:
        """The plan with these changes; see `bridge.ports.Replan`."""
        (resizes, returns, widths), world = self._around(resizes, returns, widths)
        order = self.order if order is None else order
        again = self.policy.plan.plan(world, order, self.preference, self.context)
        plan = replace(again.plan, resizes=resizes, returns=returns, start_widths=widths)
        return replace(again, plan=plan)

    def _around(self, *wanted: *_Wanted) -> _Around:
        """What of these is permitted, and the world with it; kept, for another order."""
        if self.worlds and all(map(is_, self.worlds[-1][0], wanted)):
            return self.worlds[-1][1]
        resizes, returns, widths = wanted
        resizes = self._permitted(resizes)
        if self.uses_predictions:
            widths = NO_START_WIDTHS  # nothing is predicted for other widths
        returns, widths = permitted_later(self.predicted, resizes, returns, widths)
        world = planned_world(self.predicted, resizes, returns, widths)
        self.worlds[:] = [(wanted, ((resizes, returns, widths), world))]
        return self.worlds[-1][1]

    def around(self, planned: Planned, resizes: Resizes, returns: Resizes) -> Planned:
        """The same rows with other changes; see `bridge.ports.Replan`."""
        allowed = self._permitted(resizes)
        if len(allowed) < len(resizes):
            return self(allowed, returns, planned.plan.start_widths)
        found = replace(planned, plan=replace(planned.plan, resizes=resizes, returns=returns))
        if not self.context.site.binds_starts:
            return found
        if len(resizes):
            found = self._within_bounds(found, resizes, returns)
        if self._breaks_a_rule(found.plan):  # jobs that keep their nodes longer draw longer
            plan = found.plan
            return self(plan.resizes, plan.returns, plan.start_widths)
        return found

    def _within_bounds(self, planned: Planned, resizes: Resizes, returns: Resizes) -> Planned:
        """The same rows with those growths that the rows leave room for; O(growths) checks."""
        if not check(self.predicted, self.context.site, planned.plan):
            return planned
        width = np.diff(self.predicted.running.indptr)[resizes.job]
        grows = np.diff(resizes.indptr) > width
        kept = np.flatnonzero(~grows).tolist()
        found = self._only(planned, resizes, returns, kept)
        for row in np.flatnonzero(grows).tolist():
            tried = self._only(planned, resizes, returns, [*kept, row])
            if not check(self.predicted, self.context.site, tried.plan):
                kept, found = [*kept, row], tried
        return found

    def _only(
        self, planned: Planned, resizes: Resizes, returns: Resizes, rows: list[int]
    ) -> Planned:
        some = resizes.only(sorted(rows))
        later, _ = permitted_later(self.predicted, some, returns, NO_START_WIDTHS)
        return replace(planned, plan=replace(planned.plan, resizes=some, returns=later))

    def _breaks_a_rule(self, plan: Plan) -> bool:
        """Whether the rows of a plan break a rule of the site around its changes of widths."""
        world = planned_world(self.predicted, plan.resizes, plan.returns, plan.start_widths)
        return bool(broken_rules(world, self.context.site, plan))

    def _permitted(self, resizes: Resizes) -> Resizes:
        resizes = permitted(self.predicted, self.context.site, resizes)
        if self.uses_predictions:  # a job may hold what it is given until its limit
            resizes = permitted(self.snapshot, self.context.site, resizes, by_limits=True)
        return resizes
