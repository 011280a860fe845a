# SPDX-License-Identifier: Apache-2.0
"""One scheduling cycle: a snapshot in, a plan out. No I/O, no clock."""

from collections.abc import Collection
from dataclasses import dataclass

from bridge.cycle_view import CycleUnderWay
from bridge.errors import InvalidPlan
from bridge.extension_packages import active_stages, counted
from bridge.extensions.elastic.replan import QueueReplan
from bridge.model.plan import Plan
from bridge.model.rules.resize_limits import bounded
from bridge.model.rules.site import Site
from bridge.model.snapshot import Snapshot
from bridge.model.topology import PlacementSavings
from bridge.planning.placement.improvement import improve_placement
from bridge.planning.prediction.apply_predictions import (
    apply_predictions,
    drop_unsafe,
    with_prediction_notes,
)
from bridge.planning.queue.time_windows import eligible_first
from bridge.ports import (
    Context,
    Environment,
    JointPlacer,
    Planned,
    Policy,
    RandomSource,
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
    left_out: Collection[str] = (),
) -> CycleResult:
    """Plans one snapshot. No argument is changed, except that numbers are drawn from `random`.

    Args:
        site: limits, FreePools and protections, which every plan must keep.
        state: from the last cycle whose plan was used.
        policy: one implementation per stage.
        random: the only source of randomness.
        environment: solver and oracle; None: neither.
        left_out: names of extensions whose stages do not run; what they would decide is not in
            the plan, and stays as it is.

    Raises:
        PolicyError: a stage failed.
        ExtensionError: a stage of an extension failed.
        InvalidPlan: the plan breaks a rule and must not be used.
    """
    context = Context(site, state, random, environment or Environment())
    snapshot = snapshot.with_running(counted(bounded(snapshot, site.resizes).running))
    extensions = active_stages(snapshot, policy, left_out)

    # 1. Predict: how long will each job run? Used only where an underestimate is safe.
    predicting = policy.predict.predict(snapshot, context)
    prediction = predicting.prediction
    predicted = snapshot
    if prediction is not None:
        prediction = drop_unsafe(snapshot, prediction, site)
        predicted = apply_predictions(snapshot, prediction)
        predicted = predicted.with_running(counted(predicted.running))

    # 2. Order: which job is considered first? Jobs that are not yet eligible are considered last.
    order = eligible_first(predicted.jobs, policy.order.order(predicted), predicted.now_s)

    # 3. Place: which nodes are preferred?
    preference = policy.place.preference(predicted)
    for extension in extensions:
        preference = extension.before_plan(predicted, preference)

    # 4. Plan: when and where does every job start?
    if plans_itself(policy.reshape, predicted):
        planned = Planned(Plan.without_rows(predicted.now_s))
    else:
        planned = policy.plan.plan(predicted, order, preference, context)

    # 5. Reshape: which running jobs grow or shrink? The queue is planned around their new widths.
    replan = QueueReplan(
        snapshot, predicted, prediction is not None, policy, order, preference, context
    )
    planned = policy.reshape.reshape(predicted, order, planned, replan, context)
    cycle = CycleUnderWay(
        snapshot, predicted, prediction, policy, order, preference, context, planned.plan
    )

    # 6. Improve placement: jobs that start together exchange nodes. No start time changes.
    savings: PlacementSavings | None = None
    if predicted.topology is not None and isinstance(policy.place, JointPlacer):
        planned, savings = improve_placement(
            cycle.world(), planned, policy.place, site, context.rng
        )

    # 7. Extensions: what else goes with this plan?
    for extension in extensions:
        planned = extension.after_plan(planned, cycle)
    plan = planned.plan

    # 8. Check every plan. Starts must be legal under the full time limits, too.
    if violations := cycle.violations_of(plan):
        raise InvalidPlan(policy.name, violations)
    if prediction is not None:
        plan = with_prediction_notes(plan, prediction)
    learnt = {**predicting.learnt, **planned.learnt}
    if learnt or planned.promises is not state.promises:
        state = State(planned.promises, {**state.learnt, **learnt})
    return CycleResult(plan.by(policy.name), state, Telemetry(planned.dispatched, savings))
