# SPDX-License-Identifier: Apache-2.0
"""What the checker says of nodes that a plan powers down and up, in plans made by hand."""

from dataclasses import replace

import numpy as np
import pytest

from bridge.check.legality import check
from bridge.extensions.power.changes import PowerChanges, with_changes
from bridge.extensions.power.check import broken_power_changes
from bridge.extensions.power.columns import NAME, PowerSaving
from bridge.extensions.power.rules import Corridor, NodePower, PowerDown, PowerRules, with_power
from bridge.model.plan import Plan
from bridge.model.rules.node_set import NodeSet
from bridge.model.rules.site import Site
from bridge.registry import build, parse_policy
from schedbridge_contracts.builders import a_job, a_running_job, a_snapshot
from schedbridge_contracts.cycles import Memory, run

TYPES = (NodePower("all", NodeSet(), 100, 300),)
EVERY, NONE = PowerDown(), None


def rules(upper_w, down=EVERY):
    return PowerRules(Corridor((0,), (0,), (upper_w,)), TYPES, 0, 10, down)


def world(*off, running=(), jobs=(), resume_s=60):
    """Four nodes; those of these indexes are powered down."""
    snapshot = a_snapshot(nodes=4, running=list(running), jobs=list(jobs), now_s=10)()
    sleeps = np.isin(np.arange(4), off)
    zeros = np.zeros(4, dtype=np.int64)
    saving = PowerSaving(can=np.ones(4, dtype=bool), off=sleeps, resume_s=zeros + resume_s,
                         ready_s=zeros, idle_since_s=zeros)  # fmt: skip
    state = tuple("UP+POWERED_DOWN" if each else "UP" for each in sleeps)
    return replace(snapshot, nodes=replace(snapshot.nodes, state=state).having(NAME, saving))


def said(snapshot, site_rules, down=(), up=(), plan=None):
    changes = PowerChanges(np.array(down, np.int32), np.array(up, np.int32))
    plan = with_changes(plan or Plan.without_rows(10), changes)
    return list(broken_power_changes(snapshot, site_rules, plan))


def test_an_idle_node_may_be_powered_down_and_one_that_is_off_up():
    assert said(world(3), rules(5000), down=[0, 1], up=[3]) == []


def test_nodes_of_running_and_starting_jobs_stay_on():
    busy = world(running=[a_running_job((1,), end_s=500)])
    (found,) = said(busy, rules(5000), down=[1, 2])
    assert found.endswith("which a job uses")
    starting = world(jobs=[a_job(1)])
    plan = run(starting, Memory(), build(parse_policy("conservative")))
    (node,) = plan.nodes_of(0).tolist()
    assert plan.starts_now.tolist() == [0]
    assert len(said(starting, rules(5000), down=[node], plan=plan)) == 1


@pytest.mark.parametrize("site_rules", [None, rules(5000, NONE)])
def test_what_the_site_does_not_permit_is_said(site_rules):
    (found,) = said(world(), site_rules, down=[0])
    assert found.endswith("which the site does not permit")
    assert said(world(3), site_rules, up=[3]) == []


@pytest.mark.parametrize(("upper_w", "fits"), [(600, True), (599, False)])
def test_nodes_that_are_powered_up_draw_beside_what_starts(upper_w, fits):
    snapshot = world(3, jobs=[a_job(1, max_power_w=300)])  # 300 W idle, 200 W beyond, 100 W more
    plan = run(snapshot, Memory(), build(parse_policy("conservative")))
    assert plan.starts_now.tolist() == [0]
    site = with_power(Site(), rules(upper_w))
    assert check(snapshot, site, plan) == ()
    up = with_changes(plan, PowerChanges(up=np.array([3], np.int32)))
    assert (check(snapshot, site, up) == ()) == fits
