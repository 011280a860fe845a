# SPDX-License-Identifier: Apache-2.0
"""Which nodes are powered up for planned jobs, and which idle ones down; whole cycles."""

from dataclasses import replace

import numpy as np
import pytest

from bridge.check.legality import check
from bridge.cycle import run_cycle
from bridge.extensions.power.changes import PowerChanges, changes_of, with_changes
from bridge.extensions.power.closing import CLOSED, with_powered_off
from bridge.extensions.power.columns import NAME, PowerSaving
from bridge.extensions.power.rules import Corridor, NodePower, PowerDown, PowerRules, with_power
from bridge.model.reasons import ReasonCode
from bridge.model.rules.node_set import NodeSet
from bridge.model.rules.site import NO_RULES, Site
from bridge.ports import State
from bridge.registry import build, parse_policy
from schedbridge_contracts.builders import a_job, a_node, a_partition, a_running_job, a_snapshot

NOW = 100_000
OFF, LEAVING, RESUMING = "UP+POWERED_DOWN", "UP+POWERING_DOWN", "UP+POWERING_UP"
DOWN = PowerDown(hold_s=300)


def saving(states, *, idle_s=1000, can=True, resume_s=120, ready_s=90):
    n = len(states)
    resuming = np.array([state == RESUMING for state in states])
    return PowerSaving(
        can=np.full(n, can),
        off=np.array([state != "UP" for state in states]),
        resume_s=np.full(n, resume_s, dtype=np.int64),
        ready_s=np.where(resuming, NOW + ready_s, 0).astype(np.int64),
        idle_since_s=np.full(n, NOW - idle_s, dtype=np.int64),
    )


def world(states, *, jobs=(), running=(), partitions=(), nodes=None, **known):
    snapshot = a_snapshot(
        nodes=nodes or [a_node() for _ in states], jobs=list(jobs), running=list(running),
        partitions=list(partitions), now_s=NOW,
    )()  # fmt: skip
    table = replace(snapshot.nodes, state=tuple(states)).having(NAME, saving(states, **known))
    return with_powered_off(replace(snapshot, nodes=table))


def site(upper_w, *, lower_w=0, down=DOWN, steps=()):
    starts = (0, *(NOW + at for at, _ in steps))
    uppers = (upper_w, *(upper for _, upper in steps))
    corridor = Corridor(starts, (lower_w,) * len(starts), uppers)
    kinds = (NodePower("all", NodeSet(), 100, 300),)
    return with_power(Site(), PowerRules(corridor, kinds, 0, 10, down))


def planned(snapshot, rules, preset="conservative"):
    policy = build(parse_policy(preset))
    result = run_cycle(snapshot, rules, State(), policy, np.random.default_rng(0))
    assert check(snapshot, rules, result.plan) == ()
    return result.plan


PRESETS = ["conservative", "easy", "openccs", "search", "power-plan", "slurm-like"]


@pytest.mark.parametrize("preset", PRESETS)
def test_a_job_is_planned_when_the_node_can_be_had_which_is_powered_up(preset):
    plan = planned(world([OFF, OFF], jobs=[a_job(nodes=2)]), NO_RULES, preset)
    assert plan.start_s.tolist() == [NOW + 120]
    assert changes_of(plan).up.tolist() == [0, 1]
    assert len(changes_of(plan).down) == 0
    assert "powered off" in plan.reasons[0].text


def test_a_node_that_powers_up_is_had_when_it_is_ready_and_not_asked_again():
    plan = planned(world([RESUMING], jobs=[a_job(nodes=1)]), NO_RULES)
    assert plan.start_s.tolist() == [NOW + 90]
    assert len(changes_of(plan)) == 0


def test_a_node_on_its_way_down_is_asked_when_it_is_down():
    plan = planned(world([LEAVING], jobs=[a_job(nodes=1)]), NO_RULES)
    assert plan.start_s.tolist() == [NOW + 120]
    assert len(changes_of(plan)) == 0


def test_nodes_with_power_suffice():
    plan = planned(world([OFF, "UP", OFF], jobs=[a_job(nodes=1)]), NO_RULES)
    assert plan.nodes_of(0).tolist() == [1]
    assert len(changes_of(plan)) == 0


def test_no_node_is_powered_up_long_before_it_is_needed():
    running = a_running_job(nodes=(0,), end_s=NOW + 3600)
    plan = planned(world(["UP", OFF], jobs=[a_job(nodes=2)], running=[running]), NO_RULES)
    assert plan.start_s.tolist() == [NOW + 3600]
    assert len(changes_of(plan)) == 0


def test_nodes_of_running_jobs_are_not_closed():
    running = a_running_job(nodes=(0,), end_s=NOW + 3600)
    snapshot = world([OFF, OFF], running=[running])
    (closed,) = [kept for kept in snapshot.reservations if kept.name == CLOSED]
    assert closed.nodes.tolist() == [1]


def test_idle_power_must_fit_before_a_node_is_powered_up():
    job = a_job(nodes=1, max_power_w=150)
    running = a_running_job(nodes=(0,), end_s=NOW + 3600, max_power_w=300)
    snapshot = world(["UP", OFF], jobs=[job], running=[running])
    assert changes_of(planned(snapshot, site(500))).up.tolist() == [1]
    assert changes_of(planned(snapshot, site(350))).up.tolist() == []


def test_idle_nodes_are_powered_down_for_the_job_that_waits_for_power():
    # 4 idle nodes draw 400 W; the job draws 200 W beyond idle.
    snapshot = world(["UP"] * 4, jobs=[a_job(nodes=1, max_power_w=300)])
    plan = planned(snapshot, site(500))
    assert plan.reasons[0].code is ReasonCode.POWER
    assert changes_of(plan).down.tolist() == [3]
    assert changes_of(planned(snapshot, site(410))).down.tolist() == [2, 3]
    assert len(changes_of(planned(snapshot, site(600)))) == 0  # it starts


def test_nothing_is_powered_down_if_that_does_not_suffice():
    snapshot = world(["UP"] * 4, jobs=[a_job(nodes=2, max_power_w=300)])
    plan = planned(snapshot, site(410))
    assert plan.reasons[0].code is ReasonCode.POWER
    assert len(changes_of(plan)) == 0
    wide = world(["UP"] * 2, jobs=[a_job(nodes=2, max_power_w=300)])
    assert len(changes_of(planned(wide, site(500)))) == 0


def test_a_job_that_cannot_be_helped_does_not_keep_others_from_it():
    # It needs 400 W: two nodes stay on, two save 200 W. There are many like it.
    hopeless = [a_job(nodes=2, max_power_w=300) for _ in range(200)]
    snapshot = world(["UP"] * 4, jobs=[*hopeless, a_job(nodes=1, max_power_w=300)])
    plan = planned(snapshot, site(410))
    assert [why.code for why in plan.reasons] == [ReasonCode.POWER] * 201
    assert changes_of(plan).down.tolist() == [2, 3]
    assert changes_of(plan).reason.startswith("job 201 ")


def test_a_job_whose_nodes_cannot_all_be_powered_up_gets_none_and_keeps_no_other_job_from_it():
    wide, narrow = a_job(nodes=3, max_power_w=110), a_job(nodes=1, max_power_w=110)
    snapshot = world([OFF] * 4, jobs=[wide, narrow])
    plan = planned(snapshot, site(250))
    assert plan.start_s.tolist() == [NOW + 120] * 2
    assert changes_of(plan).up.tolist() == plan.nodes_of(1).tolist()
    assert len(changes_of(plan).up) == 1


def test_a_job_that_no_node_could_make_room_for_can_never_run():
    snapshot = world(["UP"] * 2, jobs=[a_job(nodes=2, max_power_w=300)])
    reason = planned(snapshot, site(300)).reasons[0]
    assert reason.code is ReasonCode.NEVER


def test_power_above_the_bound_is_removed_even_if_not_all_of_it_can_be():
    running = a_running_job(nodes=(0,), end_s=NOW + 3600, max_power_w=300)
    snapshot = world(["UP"] * 4, running=[running], idle_s=0)
    plan = planned(snapshot, site(450))
    assert changes_of(plan).down.tolist() == [2, 3]
    assert "150 W above" in changes_of(plan).reason
    assert changes_of(planned(snapshot, site(100))).down.tolist() == [1, 2, 3]


def test_nodes_on_their_way_down_count_as_saved():
    job = a_job(nodes=1, max_power_w=300)
    assert len(changes_of(planned(world(["UP", "UP", LEAVING], jobs=[job]), site(400)))) == 0


def test_a_node_that_was_in_use_stays_on_for_a_while():
    snapshot = world(["UP"] * 4, jobs=[a_job(nodes=1, max_power_w=300)], idle_s=100)
    plan = planned(snapshot, site(500))
    assert len(changes_of(plan)) == 0
    assert plan.again_s == NOW + 200


def test_the_lower_bound_is_kept():
    snapshot = world(["UP"] * 4, jobs=[a_job(nodes=1, max_power_w=300)])
    assert len(changes_of(planned(snapshot, site(500, lower_w=350)))) == 0


def test_only_nodes_of_permitted_partitions_that_the_controller_can_power():
    parts = [a_partition(name="a", nodes=[0, 1]), a_partition(name="b", nodes=[1, 2, 3])]
    job = a_job(nodes=1, max_power_w=300)
    snapshot = world(["UP"] * 4, jobs=[job], partitions=parts)
    assert changes_of(planned(snapshot, site(500, down=PowerDown(("b",))))).down.tolist() == [3]
    assert len(changes_of(planned(snapshot, site(410, down=PowerDown(("a",)))))) == 0
    none = world(["UP"] * 4, jobs=[job], partitions=parts, can=False)
    assert len(changes_of(planned(none, site(500)))) == 0
    assert len(changes_of(planned(snapshot, site(500, down=None)))) == 0


def test_nodes_on_which_a_job_is_planned_soon_stay_on():
    jobs = [a_job(nodes=1, max_power_w=300), a_job(nodes=3, begin_s=NOW + 200, max_power_w=101)]
    snapshot = world(["UP"] * 4, jobs=jobs)
    assert len(changes_of(planned(snapshot, site(500)))) == 0


def test_a_coming_bound_counts():
    snapshot = world(["UP"] * 4, jobs=[a_job(nodes=1, max_power_w=300, limit_s=3600)])
    plan = planned(snapshot, site(900, steps=[(600, 500)]))
    assert changes_of(plan).down.tolist() == [3]


# ------------------------------------------------------------------ the check


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        (PowerChanges(down=np.array([0], np.int32)), "which a job uses"),
        (PowerChanges(down=np.array([1], np.int32)), "which is off"),
        (PowerChanges(down=np.array([3, 2], np.int32)), "out of order"),
        (PowerChanges(down=np.array([2], np.int32), up=np.array([2], np.int32)), "twice"),
        (PowerChanges(down=np.array([9], np.int32)), "does not exist"),
        (PowerChanges(up=np.array([2], np.int32)), "on or powering up"),
    ],
)
def test_the_check_finds_what_is_wrong(changes, text):
    running = a_running_job(nodes=(0,), end_s=NOW + 3600, max_power_w=300)
    snapshot = world(["UP", OFF, "UP", "UP"], running=[running])
    rules = site(5000)
    plan = planned(snapshot, rules)
    (found, *_) = check(snapshot, rules, with_changes(plan, changes))
    assert text in str(found)


def test_the_check_knows_what_the_site_permits():
    snapshot = world(["UP"] * 2)
    changes = PowerChanges(down=np.array([1], np.int32))
    for rules, text in (
        (site(5000, down=None), "does not permit"),
        (site(5000, down=PowerDown(("other",))), "of partition"),
    ):
        (found,) = check(snapshot, rules, with_changes(planned(snapshot, rules), changes))
        assert text in str(found)


def test_the_check_counts_the_idle_power_of_nodes_that_are_powered_up():
    job = a_job(nodes=1, max_power_w=300)
    snapshot = world(["UP", OFF], jobs=[job])
    plan = planned(snapshot, site(300))
    assert plan.start_s.tolist() == [NOW]
    up = with_changes(plan, PowerChanges(up=np.array([1], np.int32)))
    (found,) = check(snapshot, site(300), up)
    assert "upper bound of power" in str(found)
    assert check(snapshot, site(400), up) == ()
