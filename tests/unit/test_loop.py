# SPDX-License-Identifier: Apache-2.0
"""Saboteurs: whatever a policy does, the cluster gets a legal plan and a note."""

import dataclasses

import numpy as np
import pytest

from bridge.check import check
from bridge.errors import PolicyError
from bridge.loop import Decider
from bridge.registry import build, parse_policy
from tests.builders import a_job, a_running_job, a_snapshot


class Crashes:
    def plan(self, *_):
        raise ZeroDivisionError("oops")


class GivesUp:
    def plan(self, *_):
        raise PolicyError("tired", "no plan today")


class Oversubscribes:
    """Starts everything now on node 0."""

    def plan(self, snapshot, order, preference, memory, rng):
        plan = build(parse_policy("conservative")).plan.plan(
            snapshot, order, preference, memory, rng
        )
        return dataclasses.replace(
            plan,
            start_s=np.zeros_like(plan.start_s),
            end_s=np.full_like(plan.end_s, 100),
            nodes=np.zeros_like(plan.nodes),
        )


class LosesJobs:
    def plan(self, snapshot, order, preference, memory, rng):
        return build(parse_policy("conservative")).plan.plan(
            snapshot, order[:1], preference, memory, rng
        )


@pytest.mark.parametrize("saboteur", [Crashes(), GivesUp(), Oversubscribes(), LosesJobs()])
def test_a_saboteur_is_replaced_for_the_cycle(saboteur):
    snapshot = a_snapshot(
        nodes=2, jobs=[a_job(nodes=2), a_job()], running=[a_running_job((0,), 50)]
    )()
    decider = Decider(dataclasses.replace(build(parse_policy("easy")), plan=saboteur))
    plan = decider.decide(snapshot)
    assert check(snapshot, plan) == ()
    assert decider.failures == 1
    assert plan.notes
    assert plan.start_s.tolist() == [50, 150]
