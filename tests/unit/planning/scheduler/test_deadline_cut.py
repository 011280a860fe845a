# SPDX-License-Identifier: Apache-2.0
"""A job whose limit may be cut starts where a shortened run ends by its deadline."""

import pytest

from bridge.registry import build, choices, parse_policy
from schedbridge_contracts.builders import a_job, a_reservation, a_snapshot
from schedbridge_contracts.cycles import Memory, a_site, run


@pytest.mark.parametrize("plan", choices()["plan"])
class TestEveryPlan:
    def decide(self, plan, job, site=None):
        stage = {"name": plan} | ({"budget_ms": 0, "effort": 200} if plan == "search" else {})
        policy = build(parse_policy({"order": "fcfs", "plan": stage, "place": "sequential"}))
        snapshot = a_snapshot(nodes=1, jobs=[job], reservations=[a_reservation([0], 100, 400)])()
        return run(snapshot, Memory(), policy, site=site or a_site())

    def test_before_a_reservation(self, plan):
        """The whole limit would reach into the reservation; what is left of it does not."""
        made = self.decide(plan, a_job(limit_s=200, deadline_s=90, min_s=50))
        assert (made.start_s.tolist(), made.end_s.tolist()) == ([0], [90])

    def test_the_deadline_lies_too_far_behind_it(self, plan):
        made = self.decide(plan, a_job(limit_s=200, deadline_s=150, min_s=50))
        assert made.start_s[0] != 0

    def test_rules_speak_of_the_limit_that_was_asked_for(self, plan):
        site = a_site({"limits": [{"user": "*", "resource": "cpus", "duration": "100s"}]})
        made = self.decide(plan, a_job(limit_s=200, deadline_s=90, min_s=50), site)
        assert made.start_s[0] != 0
