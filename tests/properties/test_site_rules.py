# SPDX-License-Identifier: Apache-2.0
"""No start and no announced start of any policy breaks a rule of the site, nor does the net's.

Every plan is read by hand, second by second (`tests.properties.naive_rules`): limits, FreePools,
protections, licences and the bound of power, with variable widths, arrays, chunks, whole nodes of
different sizes, running jobs, deadlines and validities by cron; over two cycles, so that plans are
kept, with expected run times, and with places that trade nodes.
"""

import dataclasses

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bridge.model.rules.site import Site
from bridge.model.snapshot import Snapshot
from bridge.model.topology import regular
from bridge.ports import Environment
from bridge.registry import build, choices, parse_policy
from bridge.safe_cycle.decider import Decider
from bridge.units import UNPLANNED
from tests.properties.naive_rules import Naive
from tests.properties.rule_worlds import power_sites, sites, worlds

EXAMPLES = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
SETTINGS = {
    "easy": {"depth": 2},
    "search": {"budget_ms": 0, "effort": 400},
    **{name: {"budget_ms": 0, "effort": 0.002} for name in ("pcp19", "hcp19", "pcp20")},
}
PLACES = st.sampled_from(
    ["sequential", "best-fit", "weighted", {"name": "compact", "budget_ms": 0}]
)


def assert_kept(snapshot: Snapshot, site: Site, plan) -> None:
    naive = Naive(snapshot, site)
    if plan.predicted is None:
        assert naive.broken(plan) == []
    else:  # whatever they take, what starts now must be right
        starts = np.where(plan.start_s == plan.now_s, plan.start_s, -1)
        limit_s = snapshot.jobs.time_limit_s[plan.job]
        jobs = snapshot.jobs
        cut = (jobs.deadline_s[plan.job] > 0) | (jobs.min_time_s[plan.job] > 0)
        end_s = np.where(cut, plan.end_s, plan.start_s + limit_s)
        has = starts >= 0
        real = dataclasses.replace(
            plan, start_s=np.where(has, plan.start_s, UNPLANNED), end_s=np.where(has, end_s, 0)
        )
        assert naive.broken(real) == []


def later(snapshot: Snapshot, by_s: int) -> Snapshot:
    return dataclasses.replace(snapshot, now_s=snapshot.now_s + by_s, generation=2)


@pytest.mark.parametrize("plan", choices()["plan"])
class TestEveryPlan:
    @EXAMPLES
    @given(worlds(), sites, PLACES, st.booleans(), st.integers(1, 30))
    def test_no_start_breaks_a_rule(self, plan, snapshot, site, place, expects, by_s):
        snapshot = dataclasses.replace(snapshot, topology=regular(len(snapshot.nodes), 2))
        stage = {"name": plan, **SETTINGS.get(plan, {})}
        policy = {"order": "slurm", "plan": stage, "place": place}
        if expects:
            policy["predict"] = "oracle"
        run_s = {job: 5 + 3 * at for at, job in enumerate(snapshot.jobs.id)}
        decider = Decider(
            build(parse_policy(policy)), site=site, environment=Environment(run_s=run_s)
        )
        for now in (snapshot, later(snapshot, by_s)):
            made = decider.decide(now)
            assert decider.failures == 0, made.notes
            assert_kept(now, site, made)

    @EXAMPLES
    @given(worlds(), power_sites, PLACES, st.booleans(), st.integers(1, 30))
    def test_no_start_exceeds_the_bound_of_power(self, plan, snapshot, site, place, expects, by_s):
        self.test_no_start_breaks_a_rule.hypothesis.inner_test(
            self, plan, snapshot, site, place, expects, by_s
        )


class _Raises:
    def __getattr__(self, name):
        raise RuntimeError(name)


@EXAMPLES
@given(worlds(), sites | power_sites)
def test_the_net_keeps_the_rules_too(snapshot, site):
    policy = dataclasses.replace(build(parse_policy("easy")), plan=_Raises())
    decider = Decider(policy, site=site)
    made = decider.decide(snapshot)
    assert decider.failures == 1
    assert_kept(snapshot, site, made)
