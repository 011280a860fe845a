# SPDX-License-Identifier: Apache-2.0
"""A job counts what the nodes come to that it gets, and gets the most that the rules leave it."""

import numpy as np
import pytest

from bridge.check.site_rules import broken_rules
from bridge.model.plan import Plan
from bridge.model.reasons import ReasonCode
from bridge.model.rules.limits import Rules
from bridge.model.rules.site import Site
from bridge.model.snapshot import Snapshot
from bridge.planning.queue.rows import Rows
from bridge.planning.scheduler.book_planner import BookPlanner
from bridge.planning.scheduler.list_scheduler import ListScheduler
from bridge.planning.scheduler.wait_reasons import explain
from bridge.planning.site_rules.lowered_rules import lower
from bridge.ports import Conditions, Preference, Selection
from bridge.units import DAY_S, NEVER
from schedbridge_contracts.builders import a_job, a_node, a_running_job, a_snapshot
from schedbridge_contracts.cycles import parse_rules

EIGHT = {"limits": [{"user": "*", "resource": "cpus", "items": 8}]}


def booked(snapshot: Snapshot, rules: Rules) -> Plan:
    """All rows in their order, by the book."""
    preference = Preference(Selection.SEQUENTIAL, np.zeros(len(snapshot.nodes), dtype=np.int32))
    rows = Rows(snapshot, np.arange(len(snapshot.jobs)))
    planner = BookPlanner(rows, preference, lowered=lower(Site(rules, cron_s=DAY_S), snapshot))
    everyone = np.arange(len(rows.plannable))
    planner.plan(everyone, not_before=None, latest=np.full(len(everyone), NEVER - 1))
    explain(planner.planned)
    plan = planner.planned.result("test")
    assert broken_rules(snapshot, Site(rules), plan) == []
    return plan


def widths(plan: Plan) -> list[int]:
    return np.diff(plan.indptr).tolist()


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize(
    "rules",
    [
        EIGHT,
        {"limits": [{"account": "account", "resource": "cpus", "items": "50%"}]},
        {"limits": [{"partition": "batch", "resource": "cpus", "area": "800s"}]},
        {"free_pools": [{"name": "p", "resource": "cpus", "keep": 8}]},
        {"free_pools": [{"name": "p", "resource": "cpus", "keep": "all",
                         "access": [{"cpus": "<= 8"}]}]},
        {"free_pools": [{"name": "p", "nodes": {"names": "n[1-4]"}, "access": [{"cpus": "< 9"}]}]},
        {"free_pools": [{"name": "p", "nodes": {"names": "n[3-4]"}}]},
    ],
)  # fmt: skip
def test_a_start_is_as_wide_as_the_rules_let_it_be(rules, shared):
    job = a_job(nodes=1, max_nodes=4, shared=shared, cpus=4, limit_s=100)
    plan = booked(a_snapshot(nodes=4, jobs=[job])(), parse_rules(rules))
    assert (plan.start_s.tolist(), widths(plan)) == ([0], [2])


def test_a_second_job_has_what_the_first_one_leaves():
    jobs = [a_job(nodes=1, max_nodes=3, shared=True, cpus=4) for _ in range(2)]
    rules = {"limits": [{"user": "*", "resource": "cpus", "items": 16}]}
    plan = booked(a_snapshot(nodes=6, jobs=jobs)(), parse_rules(rules))
    assert (plan.start_s.tolist(), widths(plan)) == ([0, 0], [3, 1])


def test_more_nodes_may_be_what_lets_a_job_in():
    """A FreePool for large jobs: on few nodes it has no access, on many it has."""
    pool = {"name": "p", "resource": "cpus", "keep": "all", "access": [{"cpus": ">= 12"}]}
    rules = parse_rules({"free_pools": [pool]})
    job = a_job(nodes=1, max_nodes=4, shared=True, cpus=4)
    plan = booked(a_snapshot(nodes=4, jobs=[job])(), rules)
    assert (plan.start_s.tolist(), widths(plan)) == ([0], [4])
    busy = a_running_job((0, 1), end_s=50)
    plan = booked(a_snapshot(nodes=4, jobs=[job], running=[busy])(), rules)
    assert (plan.start_s.tolist(), widths(plan)) == ([50], [3])


class TestWholeNodes:
    """A job that takes whole nodes counts what these very nodes have."""

    def test_a_large_node_is_not_taken_where_a_small_one_keeps_the_limit(self):
        nodes = [a_node(cpus=16), a_node(cpus=4), a_node(cpus=16)]
        plan = booked(a_snapshot(nodes=nodes, jobs=[a_job()])(), parse_rules(EIGHT))
        assert (plan.start_s.tolist(), plan.nodes.tolist()) == ([0], [1])

    def test_one_large_node_among_small_ones(self):
        nodes = [a_node(cpus=16), a_node(cpus=16), a_node(cpus=4), a_node(cpus=4)]
        rules = {"limits": [{"user": "*", "resource": "cpus", "items": 24}]}
        plan = booked(a_snapshot(nodes=nodes, jobs=[a_job(nodes=3)])(), parse_rules(rules))
        assert plan.start_s.tolist() == [0]
        assert plan.nodes.tolist()[1:] == [2, 3]

    def test_no_node_is_small_enough(self):
        nodes = [a_node(cpus=16), a_node(cpus=12)]
        plan = booked(a_snapshot(nodes=nodes, jobs=[a_job()])(), parse_rules(EIGHT))
        assert plan.start_s.tolist() == [NEVER]
        assert plan.reasons[0].code is ReasonCode.NEVER

    def test_memory_counts_too(self):
        nodes = [a_node(mem_mib=9000), a_node(mem_mib=1000)]
        rules = {"limits": [{"user": "*", "resource": "mem", "items": "2g"}]}
        plan = booked(a_snapshot(nodes=nodes, jobs=[a_job()])(), parse_rules(rules))
        assert (plan.start_s.tolist(), plan.nodes.tolist()) == ([0], [1])

    def test_tasks_share_a_node_where_several_would_break_the_limit(self):
        job = a_job(tasks=4, max_nodes=4)
        rules = {"limits": [{"user": "*", "resource": "cpus", "items": 4}]}
        plan = booked(a_snapshot(nodes=4, jobs=[job])(), parse_rules(rules))
        assert (plan.start_s.tolist(), plan.tasks.tolist()) == ([0], [4])

    def test_chunks_share_a_node_where_several_would_break_the_limit(self):
        job = a_job(chunks="2:ncpus=1,place=free:excl")
        rules = {"limits": [{"user": "*", "resource": "cpus", "items": 4}]}
        plan = booked(a_snapshot(nodes=4, jobs=[job])(), parse_rules(rules))
        assert (plan.start_s.tolist(), widths(plan)) == ([0], [1])


@pytest.mark.parametrize(
    "rules",
    [
        {"limits": [{"user": "*", "resource": "cpus", "area": "800s"}]},
        {"free_pools": [{"name": "p", "resource": "cpus", "access": [{"cpus": "<= 8"}]}]},
    ],
)
def test_rules_that_bind_wide_starts_only_bring_the_book(rules):
    """On the least nodes nothing binds the job; the kernel without rules must not widen it."""
    job = a_job(nodes=1, max_nodes=4, shared=True, cpus=4, limit_s=100)
    snapshot = a_snapshot(nodes=4, jobs=[job])()
    preference = Preference(Selection.SEQUENTIAL, np.zeros(4, dtype=np.int32))
    scheduler = ListScheduler(
        snapshot, np.arange(1), preference, Conditions(Site(parse_rules(rules)))
    )
    scheduler.schedule()
    assert scheduler.by_book
    assert widths(scheduler.plan("test")) == [2]
