# SPDX-License-Identifier: Apache-2.0
"""The judge of site rules finds what a reading by hand finds, second by second, no more."""

import dataclasses

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bridge.check.site_rules import broken_rules
from bridge.extensions.power.rules import Corridor, NodePower, PowerRules, with_power
from bridge.model.plan import Plan
from bridge.model.rules.node_set import NodeSet
from bridge.model.rules.site import Site
from bridge.model.snapshot import Snapshot
from bridge.planning.scheduler.list_scheduler import ListScheduler
from bridge.planning.site_rules.rules_text import parse_site
from bridge.ports import Conditions, Preference, Selection
from bridge.units import NEVER, UNPLANNED
from schedbridge_contracts.builders import (
    a_job,
    a_node,
    a_reservation,
    a_running_job,
    a_snapshot,
)
from tests.properties.naive_rules import Naive
from tests.properties.rule_worlds import sites, worlds

SLOW = [HealthCheck.too_slow]  # beside a load it says nothing of the generator


def without_rules(snapshot: Snapshot) -> Plan:
    """A plan that knows of no rule."""
    order = np.arange(len(snapshot.jobs))
    rank = np.zeros(len(snapshot.nodes), dtype=np.int32)
    scheduler = ListScheduler(
        snapshot, order, Preference(Selection.SEQUENTIAL, rank), Conditions(), by_book=True
    )
    scheduler.schedule()
    return scheduler.plan("none")


def shifted(plan: Plan, by: list[int]) -> Plan:
    """Rows somewhat later: nodes may be oversubscribed then, which is not judged here."""
    has_start = (plan.start_s != NEVER) & (plan.start_s != UNPLANNED)
    more = np.where(has_start, np.resize(np.array(by, dtype=np.int64), len(plan)), 0)
    return dataclasses.replace(plan, start_s=plan.start_s + more, end_s=plan.end_s + more)


@settings(max_examples=120, deadline=None, suppress_health_check=SLOW)
@given(worlds(), sites, st.lists(st.integers(0, 40), min_size=1, max_size=6))
def test_the_judge_finds_what_a_reading_by_hand_finds(snapshot, site, by):
    """Slow: reading by hand compares each job with each, at every event."""
    plan = shifted(without_rules(snapshot), by)
    found = broken_rules(snapshot, site, plan)
    by_hand = Naive(snapshot, site).broken(plan)
    assert bool(found) == bool(by_hand), (found, by_hand[:5])


@settings(max_examples=100, deadline=None, suppress_health_check=SLOW)
@given(worlds(), sites, st.lists(st.integers(0, 40), min_size=1, max_size=6))
def test_without_those_who_are_blamed_nothing_is_broken(snapshot, site, by):
    """Slow: reading by hand compares each job with each, at every event."""
    plan = shifted(without_rules(snapshot), by)
    found = broken_rules(snapshot, site, plan)
    start_s = plan.start_s.copy()
    start_s[[row for row, _ in found]] = UNPLANNED
    left = dataclasses.replace(plan, start_s=start_s)
    assert Naive(snapshot, site).broken(left) == []


@pytest.mark.parametrize(("now", "later", "broken"), [(3, 0, [0]), (2, 2, []), (2, 3, [1])])
def test_licences_that_a_reservation_keeps_are_for_its_own_jobs(now, later, broken):
    """Four, of which a reservation keeps two: two are there for others, four for both together."""
    jobs = [
        a_job(shared=True, cpus=1, licences=(now,), limit_s=50),
        a_job(shared=True, cpus=1, licences=(later,), limit_s=50, reservation=0),
    ]
    snapshot = a_snapshot(nodes=2, jobs=jobs, licences=[("lic", 4)])()
    keeper = dataclasses.replace(
        a_reservation([1], 20, 100), licences=np.array([2], dtype=np.int64)
    )
    snapshot = dataclasses.replace(snapshot, reservations=(keeper,))
    plan = Plan(
        now_s=0, policy="", job=np.arange(2, dtype=np.int32), start_s=np.array([0, 20]),
        end_s=np.array([50, 70]), partition=np.zeros(2, dtype=np.int32),
        indptr=np.arange(3), nodes=np.arange(2, dtype=np.int32),
        tasks=np.zeros(2, dtype=np.int32), reasons=(None, None),
    )  # fmt: skip
    assert [row for row, _ in broken_rules(snapshot, Site(), plan)] == broken


def test_a_limit_that_is_cut_for_a_deadline_counts_as_it_is_cut():
    """A job that states no limit and must have ended soon; what the fuzzer found."""
    snapshot = a_snapshot(jobs=[a_job(limit_s=0, deadline_s=500, min_s=60)])()
    plan = without_rules(snapshot)
    assert (plan.start_s[0], plan.end_s[0]) == (0, 500)
    for max_s, broken in ((500, 0), (499, 1)):
        given = {"limits": [{"partition": "*", "resource": "cpus", "duration": f"{max_s}s"}]}
        assert len(broken_rules(snapshot, parse_site(given), plan)) == broken


@pytest.mark.parametrize(("most", "broken"), [(4, [0, 1]), (5, [0]), (6, [])])
def test_cpus_on_nodes_that_are_not_known_count(most, broken):
    """Of two users, each with a job on a known node and on others, and one that is planned."""
    jobs = [a_job(shared=True, cpus=2, user="ann"), a_job(shared=True, cpus=1, user="bob")]
    running = [
        a_running_job((0,), shared=True, cpus=1, cpus_elsewhere=3, user="ann"),
        a_running_job((1,), shared=True, cpus=2, cpus_elsewhere=2, user="bob"),
    ]
    snapshot = a_snapshot(nodes=[a_node(cpus=8)] * 2, jobs=jobs, running=running)()
    site = parse_site({"limits": [{"user": "*", "resource": "cpus", "items": str(most)}]})
    assert [row for row, _ in broken_rules(snapshot, site, without_rules(snapshot))] == broken


@pytest.mark.parametrize(("upper_w", "broken"), [(510, True), (511, False)])
def test_power_on_nodes_that_are_not_known_counts(upper_w, broken):
    """Of two jobs, one as stated and one as the type that draws most; by hand and by the check."""
    running = [
        a_running_job((), end_s=50, max_power_w=80, nodes_elsewhere=2),
        a_running_job((0,), end_s=50, max_power_w=0, nodes_elsewhere=1),
    ]
    snapshot = a_snapshot(nodes=2, jobs=[a_job(limit_s=10)], running=running)()
    kinds = (
        NodePower("first", NodeSet(names=(snapshot.nodes.names[0],)), 1, 11),
        NodePower("rest", NodeSet(), 20, 120),
    )
    rules = PowerRules(Corridor((0,), (0,), (upper_w,)), kinds, 100)
    site, plan = with_power(Site(), rules), without_rules(snapshot)
    # base 100, idle 21, elsewhere 2 * 80 + 120, and beyond idle 10 and 100
    assert bool(Naive(snapshot, site).broken(plan)) == broken
    assert bool(broken_rules(snapshot, site, plan)) == broken
