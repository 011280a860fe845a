# SPDX-License-Identifier: Apache-2.0
"""A job with NoReserve gets no planned start: it starts now, or delays no other job."""

import pytest

from bridge.model.reasons import ReasonCode
from bridge.registry import build, choices, parse_policy
from schedbridge_contracts.builders import a_job, a_running_job, a_snapshot
from schedbridge_contracts.cycles import Memory, a_site, run


@pytest.mark.parametrize("plan", choices()["plan"])
class TestEveryPlan:
    def decide(self, plan, jobs, *, running=(), **site):
        stage = {"name": plan} | ({"budget_ms": 0, "effort": 200} if plan == "search" else {})
        policy = build(parse_policy({"order": "fcfs", "plan": stage, "place": "sequential"}))
        snapshot = a_snapshot(nodes=2, jobs=jobs, running=running)()
        return run(snapshot, Memory(), policy, site=a_site(**site))

    def test_starts_where_there_is_room(self, plan):
        made = self.decide(plan, [a_job(nodes=2, limit_s=100, no_place=True)])
        assert made.start_s.tolist() == [0]

    def test_keeps_nobody_waiting(self, plan):
        wide, long = a_job(nodes=2, limit_s=100, no_place=True), a_job(nodes=1, limit_s=900)
        made = self.decide(plan, [wide, long], running=[a_running_job(nodes=(0,), end_s=300)])
        start_s = dict(zip(made.job.tolist(), made.start_s.tolist(), strict=True))
        assert start_s[1] == 0
        assert start_s[0] != 0
        reason = made.reasons[made.job.tolist().index(0)]
        assert reason.code is ReasonCode.RESOURCES
        assert "no place is kept" in reason.text

    def test_what_never_fits_is_said_to(self, plan):
        made = self.decide(plan, [a_job(nodes=3, limit_s=100, no_place=True)])
        assert made.start_s[0] != 0
        assert made.reasons[0].code is ReasonCode.NEVER

    def test_the_tasks_of_an_array_that_fit_start(self, plan):
        tasks = a_job(limit_s=100, no_place=True, array_tasks=3, array_startable=3)
        made = self.decide(plan, [tasks])
        assert (made.start_s == 0).sum() == 2
