# SPDX-License-Identifier: Apache-2.0
"""One scheduling cycle: snapshot in, plan out. Nothing here touches the world."""

import dataclasses

import numpy as np

from bridge.check import check
from bridge.errors import InvalidPlan
from bridge.model.plan import Plan
from bridge.model.snapshot import Snapshot
from bridge.ports import Memory, Policy


def run_cycle(snapshot: Snapshot, memory: Memory, policy: Policy, rng: np.random.Generator) -> Plan:
    """Decides everything about one snapshot.

    Raises:
        PolicyError: a stage failed.
        InvalidPlan: the plan breaks a rule; it must not be used.
    """
    # 1. Order: who is considered first?
    order = policy.order.order(snapshot)

    # 2. Place: which nodes are taken first?
    preference = policy.place.preference(snapshot)

    # 3. Plan: when and where does every job start?
    plan = policy.plan.plan(snapshot, order, preference, memory, rng)

    # 4. Check: nobody trusts a plan.
    if violations := check(snapshot, plan):
        raise InvalidPlan(policy.name, violations)
    return dataclasses.replace(plan, policy=policy.name)
