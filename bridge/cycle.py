# SPDX-License-Identifier: Apache-2.0
"""One scheduling cycle: snapshot in, plan out. Nothing here touches the world."""

from dataclasses import dataclass

from bridge.check.legality import check
from bridge.errors import InvalidPlan
from bridge.model.plan import Plan
from bridge.model.site import Site
from bridge.model.snapshot import Snapshot
from bridge.model.topology import PlacementSavings
from bridge.planning.placement.hop_tree import JointPlacer
from bridge.planning.placement.improvement import improve_placement
from bridge.planning.prediction.apply_predictions import (
    apply_predictions,
    cautious,
    real_starts,
    told,
)
from bridge.ports import Chance, Context, Environment, Policy, State, Telemetry


@dataclass(frozen=True)
class CycleResult:
    """What one cycle comes to.

    Attributes:
        plan: checked.
        state: for the next cycle, if this plan serves.
        telemetry: for those who count.
    """

    plan: Plan
    state: State
    telemetry: Telemetry


def run_cycle(
    snapshot: Snapshot,
    site: Site,
    state: State,
    policy: Policy,
    chance: Chance,
    *,
    environment: Environment | None = None,
) -> CycleResult:
    """Decides everything about one snapshot; changes none of its arguments but the chance.

    Args:
        snapshot: the world.
        site: what every plan is held to.
        state: as the last plan that served left it.
        policy: one choice per stage.
        chance: the only source of chance.
        environment: solver and oracle; None: neither.

    Raises:
        PolicyError: a stage failed.
        InvalidPlan: the plan breaks a rule; it must not be used.
    """
    context = Context(site, state, chance, environment or Environment())

    # 1. Predict: how long will it run? Predictions are used where they do no harm.
    foreseen = policy.predict.predict(snapshot, context)
    prediction = foreseen.prediction
    if prediction is not None:
        prediction = cautious(snapshot, prediction, site.rules, site.cron_s)
    predicted = snapshot if prediction is None else apply_predictions(snapshot, prediction)

    # 2. Order: who is considered first?
    order = policy.order.order(predicted)

    # 3. Place: which nodes are taken first?
    preference = policy.place.preference(predicted)

    # 4. Plan: when and where does every job start?
    planned = policy.plan.plan(predicted, order, preference, context)

    # 5. Improve placement: on which nodes are those that start together? No start changes.
    savings: PlacementSavings | None = None
    if predicted.topology is not None and isinstance(policy.place, JointPlacer):
        planned, savings = improve_placement(predicted, planned, policy.place, site, context.rng)

    # 6. Check: nobody trusts a plan. What starts now must be legal whatever it takes.
    plan = planned.plan
    violations = check(predicted, site, plan)
    if prediction is not None and not violations:
        if len(plan.starts_now):
            violations = check(snapshot, site, real_starts(snapshot, plan))
        plan = told(plan, prediction)
    if violations:
        raise InvalidPlan(policy.name, violations)
    return CycleResult(
        plan.by(policy.name),
        State(planned.promises, {**state.learnt, **foreseen.learnt}),
        Telemetry(planned.dispatched, savings),
    )
