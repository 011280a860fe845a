# SPDX-License-Identifier: Apache-2.0
"""One scheduling cycle: snapshot in, plan out. Nothing here touches the world."""

import dataclasses

import numpy as np

from bridge.check import check
from bridge.errors import InvalidPlan
from bridge.model.plan import Plan
from bridge.model.snapshot import Snapshot
from bridge.planning.arranging import arrange
from bridge.planning.believing import believe, real_starts, told
from bridge.planning.conditions import Conditions, HasConditions
from bridge.planning.fabric import Arranger
from bridge.ports import Memory, Policy


def run_cycle(snapshot: Snapshot, memory: Memory, policy: Policy, rng: np.random.Generator) -> Plan:
    """Decides everything about one snapshot.

    Raises:
        PolicyError: a stage failed.
        InvalidPlan: the plan breaks a rule; it must not be used.
    """
    # 1. Predict: how long will it run? What is believed of that can do no harm.
    prediction = policy.predict.predict(snapshot, memory)
    believed = snapshot if prediction is None else believe(snapshot, prediction)

    # 2. Order: who is considered first?
    order = policy.order.order(believed)

    # 3. Place: which nodes are taken first?
    preference = policy.place.preference(believed)

    # 4. Plan: when and where does every job start?
    plan = policy.plan.plan(believed, order, preference, memory, rng)

    # 5. Arrange: on which nodes do those that start together sit? No start changes.
    memory.arranged = None
    if believed.topology is not None and isinstance(policy.place, Arranger):
        held_to = policy.plan.conditions if isinstance(policy.plan, HasConditions) else Conditions()
        plan = arrange(believed, plan, policy.place, memory, rng, conditions=held_to)

    # 6. Check: nobody trusts a plan. What starts now must be legal whatever it takes.
    violations = check(believed, plan)
    if prediction is not None and not violations:
        if len(plan.starts_now):
            violations = check(snapshot, real_starts(snapshot, plan))
        plan = told(plan, prediction)
    if violations:
        raise InvalidPlan(policy.name, violations)
    return dataclasses.replace(plan, policy=policy.name)
