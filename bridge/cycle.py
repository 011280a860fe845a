# SPDX-License-Identifier: Apache-2.0
"""One scheduling cycle: a snapshot in, a plan out. No I/O, no clock."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from operator import is_

import numpy as np
from numpy.typing import NDArray

from bridge.check.coscheduling import guests_running
from bridge.check.legality import Violation, check, permitted, permitted_later
from bridge.check.site_rules import broken_rules
from bridge.errors import InvalidPlan
from bridge.model.coscheduling import GuestStart, counted_once
from bridge.model.decisions.resizes import NO_RESIZES, Resizes
from bridge.model.decisions.start_widths import NO_START_WIDTHS, StartWidths
from bridge.model.job import Hold
from bridge.model.plan import Plan, planned_world
from bridge.model.rules.resize_limits import bounded
from bridge.model.rules.site import Site
from bridge.model.snapshot import Snapshot
from bridge.model.topology import PlacementSavings
from bridge.planning.placement.improvement import improve_placement
from bridge.planning.power.awake import awake_first
from bridge.planning.power.saving import power_changes
from bridge.planning.prediction.apply_predictions import (
    apply_predictions,
    drop_unsafe,
    starts_with_limits,
    with_prediction_notes,
)
from bridge.planning.queue.time_windows import eligible_first
from bridge.planning.sharing.guest_rows import with_guests
from bridge.ports import (
    NOTHING_SHARED,
    Context,
    Environment,
    JointPlacer,
    Planned,
    Policy,
    Preference,
    RandomSource,
    Shared,
    State,
    Telemetry,
    plans_itself,
)


@dataclass(frozen=True)
class CycleResult:
    """The result of one cycle.

    Attributes:
        plan: a plan that has passed the check.
        state: input of the next cycle; discard it if this plan is not used.
        telemetry: for metrics.
    """

    plan: Plan
    state: State
    telemetry: Telemetry


def run_cycle(
    snapshot: Snapshot,
    site: Site,
    state: State,
    policy: Policy,
    random: RandomSource,
    *,
    environment: Environment | None = None,
) -> CycleResult:
    """Plans one snapshot. No argument is changed, except that numbers are drawn from `random`.

    Args:
        snapshot: the state of the cluster.
        site: limits, FreePools and protections, which every plan must keep.
        state: from the last cycle whose plan was used.
        policy: one implementation per stage.
        random: the only source of randomness.
        environment: solver and oracle; None: neither.

    Raises:
        PolicyError: a stage failed.
        InvalidPlan: the plan breaks a rule and must not be used.
    """
    context = Context(site, state, random, environment or Environment())
    snapshot = _counted_once(bounded(snapshot, site.resizes))

    # 1. Predict: how long will each job run? Used only where an underestimate is safe.
    predicting = policy.predict.predict(snapshot, context)
    prediction = predicting.prediction
    if prediction is not None:
        prediction = drop_unsafe(snapshot, prediction, site.rules, site.cron_s)
    predicted = snapshot
    if prediction is not None:
        predicted = _counted_once(apply_predictions(snapshot, prediction))

    # 2. Order: which job is considered first? Jobs that are not yet eligible are considered last.
    order = eligible_first(predicted.jobs, policy.order.order(predicted), predicted.now_s)

    # 3. Place: which nodes are preferred? Those without power come last.
    preference = awake_first(predicted, policy.place.preference(predicted))

    # 4. Plan: when and where does every job start?
    if plans_itself(policy.reshape, predicted):
        planned = Planned(Plan.without_rows(predicted.now_s))
    else:
        planned = policy.plan.plan(predicted, order, preference, context)

    # 5. Reshape: which running jobs grow or shrink? The queue is planned around their new widths.
    replan = _Replan(
        snapshot, predicted, prediction is not None, policy, order, preference, context
    )
    planned = policy.reshape.reshape(predicted, order, planned, replan, context)
    changes = planned.plan

    worlds: list[Snapshot] = []

    def world() -> Snapshot:
        if not worlds:
            worlds.append(
                planned_world(predicted, changes.resizes, changes.returns, changes.start_widths)
            )
        return worlds[0]

    # 6. Improve placement: jobs that start together exchange nodes. No start time changes.
    savings: PlacementSavings | None = None
    if predicted.topology is not None and isinstance(policy.place, JointPlacer):
        planned, savings = improve_placement(world(), planned, policy.place, site, context.rng)

    # 7. Share: which jobs share nodes, and under which quotas?
    shared = policy.share.share(world, planned.plan, context)

    def violations_of(plan: Plan) -> tuple[Violation, ...]:
        found = check(predicted, site, plan)
        if prediction is not None and not found and (len(plan.starts_now) or len(plan.resizes)):
            return check(snapshot, site, starts_with_limits(snapshot, plan))
        return found

    planned = _with_shared(planned, shared, lambda plan: not violations_of(plan), replan)
    plan = planned.plan

    # 8. Power: which nodes are powered up for planned jobs, which idle ones down?
    if snapshot.nodes.power_saving is not None:
        power = power_changes(world(), site.rules.power, plan)
        plan = replace(plan, power=power, again_s=min(plan.again_s, power.again_s))

    # 9. Check every plan. Starts must be legal under the full time limits, too.
    if violations := violations_of(plan):
        raise InvalidPlan(policy.name, violations)
    if prediction is not None:
        plan = with_prediction_notes(plan, prediction)
    learnt = {**predicting.learnt, **planned.learnt, **shared.learnt}
    if learnt or planned.promises is not state.promises:
        state = State(planned.promises, {**state.learnt, **learnt})
    return CycleResult(plan.by(policy.name), state, Telemetry(planned.dispatched, savings))


def _counted_once(snapshot: Snapshot) -> Snapshot:
    """The snapshot in which the CPUs of guests are counted once, by the present ends."""
    running = counted_once(snapshot.running)
    return snapshot if running is snapshot.running else snapshot.with_running(running)


def _with_shared(
    planned: Planned, shared: Shared, legal: Callable[[Plan], bool], replan: "_Replan"
) -> Planned:
    """The plan with what the share stage decides, without guests that break a rule."""
    if shared is NOTHING_SHARED:
        return planned

    def tried(guests: Sequence[GuestStart], found: Planned) -> Planned:
        left_out = {each.job_id for each in shared.guests} - {each.job_id for each in guests}
        plan = replace(
            found.plan,
            quotas=shared.quotas.without(left_out),
            requeues=shared.requeues,
            extensions=shared.extensions,
            again_s=min(found.plan.again_s, shared.again_s),
        )
        return replace(found, plan=plan)

    def with_these(guests: Sequence[GuestStart]) -> Planned | None:
        """None: they break a rule."""
        found = tried(guests, replace(planned, plan=with_guests(planned.plan, guests)))
        if legal(found.plan):
            return found
        if not shared.delays or not replan.may_go_beside(planned):
            return None
        found = tried(guests, replan.beside(planned, guests))
        return found if legal(found.plan) else None

    result = tried((), planned)
    if not shared.guests:
        return result
    if (found := with_these(shared.guests)) is not None:
        return found
    guests: list[GuestStart] = []
    for guest in shared.guests:
        if (found := with_these([*guests, guest])) is not None:
            guests.append(guest)
            result = found
    return result


_Wanted = tuple[Resizes, Resizes, StartWidths]
_Around = tuple[_Wanted, Snapshot]


@dataclass(slots=True)
class _Replan:
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
        allowed = self._permitted(resizes)
        if len(allowed) < len(resizes):
            return self(allowed, returns, planned.plan.start_widths)
        found = replace(planned, plan=replace(planned.plan, resizes=resizes, returns=returns))
        if self.context.site.rules.power is None:
            return found
        if len(resizes):
            found = self._within_power(found, resizes, returns)
        if self._breaks_a_rule(found.plan):  # jobs that keep their nodes longer draw longer
            plan = found.plan
            return self(plan.resizes, plan.returns, plan.start_widths)
        return found

    def _within_power(self, planned: Planned, resizes: Resizes, returns: Resizes) -> Planned:
        """The same rows with those growths whose power the rows leave; O(growths) checks."""
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

    def may_go_beside(self, planned: Planned) -> bool:
        """Whether the queue can be planned again around guests: widths and places may change."""
        plan = planned.plan
        changes = len(plan.resizes) or len(plan.returns) or len(plan.start_widths)
        return not changes and planned.promises.kept_plan is None

    def beside(self, planned: Planned, guests: Sequence[GuestStart]) -> Planned:
        """The plan with these guests, and all other jobs planned again around them.

        Args:
            planned: whose rows the guests name; none of a job with several rows.
            guests: that are to start.
        """
        plan = planned.plan
        running, _ = guests_running(self.predicted, with_guests(plan, guests))
        jobs = self.predicted.jobs
        hold, text = jobs.hold.copy(), jobs.hold_text.copy()
        own = plan.job[[guest.row for guest in guests]]
        hold[own], text[own] = Hold.OTHER, "starts as a guest"
        world = running.with_jobs(jobs.with_columns(hold=hold, hold_text=text))
        again = self.policy.plan.plan(world, self.order, self.preference, self.context)
        row_of = {job: row for row, job in enumerate(again.plan.job.tolist())}
        moved = [
            replace(guest, row=row_of[job]) for guest, job in zip(guests, own.tolist(), strict=True)
        ]
        return replace(again, plan=with_guests(again.plan, moved))

    def _permitted(self, resizes: Resizes) -> Resizes:
        resizes = permitted(self.predicted, self.context.site, resizes)
        if self.uses_predictions:  # a job may hold what it is given until its limit
            resizes = permitted(self.snapshot, self.context.site, resizes, by_limits=True)
        return resizes
