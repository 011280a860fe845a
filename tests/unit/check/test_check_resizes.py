# SPDX-License-Identifier: Apache-2.0
"""What the checker says of running jobs that change their nodes, and of quotas."""

from dataclasses import replace

import numpy as np
import pytest

from bridge.check.legality import check
from bridge.model.decisions.resizes import Resizes
from bridge.model.job import WidthRule
from bridge.model.rules.site import NO_RULES
from bridge.model.topology import Topology
from bridge.registry import build, parse_policy
from schedbridge_contracts.builders import (
    a_job,
    a_partition,
    a_reservation,
    a_running_job,
    a_snapshot,
)
from schedbridge_contracts.cycles import Memory, a_site, run

NOW_S = 10


def a_world(*, width_rule=WidthRule.ANY, maximum=6, adapting=False, **more):
    return a_snapshot(
        nodes=8,
        now_s=NOW_S,
        running=[
            a_running_job((1, 2, 3), id="m", min_nodes=2, max_nodes=maximum, width_rule=width_rule,
                          adapting=adapting, end_s=100),
            a_running_job((6,), id="rigid", end_s=50),
        ],
        **more,
    )()  # fmt: skip


def said(world, *resizes, site=NO_RULES):
    """The texts about a plan without starts that resizes jobs to these nodes."""
    plan = run(replace(world, jobs=a_snapshot()().jobs), Memory(), build(parse_policy("easy")))
    world = replace(world, jobs=a_snapshot(nodes=8)().jobs)
    rows = [(job, by_s, np.array(nodes, np.int32), "") for job, nodes, by_s in resizes]
    return [str(one) for one in check(world, site, replace(plan, resizes=Resizes.of(rows)))]


@pytest.mark.parametrize("nodes", [(1, 2), (1, 3), (1, 2, 3, 4), (0, 1, 2, 3, 7), (1, 2, 3, 4, 5)])
def test_more_or_fewer_nodes_within_its_bounds_are_allowed(nodes):
    assert said(a_world(), (0, nodes, 20)) == []


@pytest.mark.parametrize(
    ("nodes", "by_s", "why"),
    [
        ((1,), 20, "to 1 nodes, which it does not allow"),
        ((0, 1, 2, 3, 4, 5, 7), 20, "to 7 nodes, which it does not allow"),
        ((1, 2, 4), 20, "gains and loses nodes at once"),
        ((1, 2, 3), 20, "is resized to the nodes it has"),
        ((2, 3), 20, "loses the node of its batch script"),
        ((1, 2), NOW_S, "gives nodes back at once"),
        ((1, 2, 3, 6), 20, "is given nodes, but oversubscribes a node"),
        ((1, 1, 2), 20, "is given a node twice or out of order"),
    ],
)
def test_what_breaks_a_rule_is_named(nodes, by_s, why):
    found = said(a_world(), (0, nodes, by_s))
    assert any(why in text and text.startswith("job m:") for text in found), found


def test_jobs_that_are_not_malleable_or_adapting_are_left_alone():
    assert said(a_world(), (1, (6, 7), 20)) == ["job rigid: is resized but not malleable"]
    assert said(a_world(adapting=True), (0, (1, 2), 20)) == [
        "job m: is resized while it is adapting"
    ]


def test_the_batch_host_stays_even_where_it_is_not_the_first_node():
    world = a_world()
    world = replace(world, running=replace(world.running, head=np.array([2, -1])))
    assert said(world, (0, (2, 3), 20)) == []
    (text,) = said(world, (0, (1, 3), 20))
    assert text == "job m: loses the node of its batch script"


def test_the_width_rule_holds():
    assert said(a_world(width_rule=WidthRule.POF2), (0, (1, 2), 20)) == []
    (text,) = said(a_world(width_rule=WidthRule.POF2), (0, (0, 1, 2, 3, 4), 20))
    assert "to 5 nodes, which it does not allow" in text


def test_nodes_of_a_reservation_and_of_another_partition_are_not_given():
    kept = a_world(reservations=[a_reservation((4,), 60, 90)])
    assert "uses nodes of reservation maint" in said(kept, (0, (1, 2, 3, 4), 20))[0]
    later = a_world(reservations=[a_reservation((4,), 100, 190)])
    assert said(later, (0, (1, 2, 3, 4), 20)) == []
    narrow = a_world(partitions=[a_partition("few", range(4))])
    assert "outside partition" in said(narrow, (0, (1, 2, 3, 4), 20))[0]


def test_a_partition_bounds_the_whole_job():
    world = a_world(partitions=[a_partition("all", range(8), max_nodes=4)])
    assert said(world, (0, (1, 2, 3, 4), 20)) == []
    (text,) = said(world, (0, (1, 2, 3, 4, 5), 20))
    assert "5 nodes; partition all allows 4" in text


def test_nodes_that_no_switch_connects_are_not_given():
    tree = Topology(("a", "b"), np.array([-1, -1], np.int32), np.array([0] * 4 + [1] * 4, np.int32))
    world = replace(a_world(), topology=tree)
    assert said(world, (0, (0, 1, 2, 3), 20)) == []
    assert "no fabric connects" in said(world, (0, (1, 2, 3, 4), 20))[0]


def test_limits_bind_what_is_added_but_not_the_number_of_jobs():
    site = a_site({"limits": [{"user": "user", "resource": "cpus", "items": 20}]})
    assert said(a_world(), (0, (1, 2, 3, 4), 20), site=site) == []  # 16 + 4
    (text,) = said(a_world(), (0, (1, 2, 3, 4, 5), 20), site=site)
    assert text.startswith("job m: is given nodes, but is more than the limit of user user on cpus")
    jobs = a_site({"limits": [{"user": "user", "resource": "jobs", "items": 2}]})
    assert said(a_world(), (0, (1, 2, 3, 4), 20), site=jobs) == []


def test_what_a_shrinking_job_still_holds_is_no_second_job():
    site = a_site({"limits": [{"user": "user", "resource": "jobs", "items": 3}]})
    world = a_world(jobs=[a_job(nodes=1, limit_s=10)])
    policy = build(parse_policy("easy"))
    plan = run(world, Memory(), policy, site=site)
    rows = [(0, 20, np.array((1, 2), np.int32), "")]
    assert check(world, site, replace(plan, resizes=Resizes.of(rows))) == ()


def test_starts_collide_with_what_is_added_and_with_what_is_not_free_yet():
    policy = build(parse_policy("easy"))
    world = a_world(jobs=[a_job(nodes=4, limit_s=10)])
    plan = run(world, Memory(), policy)
    assert plan.starts_now.tolist() == [0]
    assert plan.nodes_of(0).tolist() == [0, 4, 5, 7]
    grown = Resizes.of([(0, 20, np.array((1, 2, 3, 4), np.int32), "")])
    assert "oversubscribes a node" in str(check(world, NO_RULES, replace(plan, resizes=grown))[0])
    early = replace(plan, nodes=np.array((0, 3, 4, 5), np.int32))
    shrunk = Resizes.of([(0, 15, np.array((1, 2), np.int32), "")])
    assert "oversubscribes a node" in str(check(world, NO_RULES, replace(early, resizes=shrunk))[0])
    later = replace(early, start_s=plan.start_s + 5, end_s=plan.end_s + 5, reasons=plan.reasons)
    found = check(world, NO_RULES, replace(later, resizes=shrunk))
    assert not any("oversubscribes" in str(one) for one in found), found


def test_columns_that_do_not_fit_together_are_told_apart():
    world = a_world()
    plan = run(world, Memory(), build(parse_policy("easy")))
    whole = Resizes.of([(0, 20, np.array((1, 2), np.int32), "")])
    for broken in (
        replace(whole, reasons=()),
        replace(whole, job=np.array([7], np.int32)),
        replace(whole, indptr=np.array([0, 5])),
        replace(whole, nodes=np.array([1, 99], np.int32)),
    ):
        (found,) = check(world, NO_RULES, replace(plan, resizes=broken))
        assert "do not fit together" in str(found)
