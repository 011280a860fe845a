# SPDX-License-Identifier: Apache-2.0
"""What every share policy must do where jobs share nodes."""

from dataclasses import replace

import numpy as np
import pytest

from bridge.cycle import run_cycle
from bridge.extensions.sharing.part import shared_of
from bridge.extensions.sharing.rules import (
    Coschedule,
    CoschedulingRules,
    Scope,
    sharing_rules,
    with_sharing,
)
from bridge.extensions.sharing.switch import NAME, turned_off
from bridge.model.rules.site import NO_RULES, Site
from bridge.ports import State
from bridge.recording.recordings import Recording, decode, encode
from bridge.registry import build, parse_policy
from schedbridge_contracts import subject
from schedbridge_contracts.alike import assert_alike
from schedbridge_contracts.crosses import each
from schedbridge_contracts.sharing import (
    NOW_S,
    a_guest,
    a_host,
    a_waiting_job,
    a_world,
    earlier,
    naive_sharing_problem,
    random_sharing_world,
)
from schedbridge_contracts.sharing import (
    SHARING as SITE,
)

POLICIES = subject.tried("share")
SHARING = {name: share for name, share in POLICIES.items() if name != "none"}
SEEDS = range(60)


def a_policy(share):
    return build(parse_policy({"preset": "easy", "share": share}))


def result_of(world, site, share, state=None):
    rng, policy, state = np.random.default_rng(len(world.jobs)), a_policy(share), state or State()
    for by_s in (15, 10, 5):  # some measurements, as a running service has them
        state = run_cycle(earlier(world, by_s), site, state, policy, rng).state
    return run_cycle(world, site, state, policy, rng)


@pytest.mark.parametrize("share", POLICIES.values(), ids=POLICIES)
@each(seed=SEEDS)
def test_plans_keep_the_rules_of_sharing_and_are_repeatable(share, seed):
    world, site = random_sharing_world(seed)
    plan = result_of(world, site, share).plan
    assert naive_sharing_problem(world, site, plan) is None
    assert_alike(plan, result_of(world, site, share).plan)


@pytest.mark.parametrize("share", POLICIES.values(), ids=POLICIES)
@each(seed=SEEDS[:20])
def test_without_rules_of_the_site_nobody_becomes_a_guest(share, seed):
    world, _ = random_sharing_world(seed)
    plan = result_of(world, NO_RULES, share).plan
    assert not len(shared_of(plan).guest_starts)


@pytest.mark.parametrize("share", POLICIES.values(), ids=POLICIES)
def test_switched_off_nobody_becomes_a_guest_and_guests_go(share):
    world = a_world([a_host(), a_guest(), a_host((1,))], [a_waiting_job()])
    _, site = random_sharing_world(0)
    site = with_sharing(site, replace(sharing_rules(site)[0], consent=3, partition="*"))
    off = State(learnt={NAME: turned_off(State().learnt_by(NAME), NOW_S, by_policy=False)})
    plan = result_of(world, site, share, off).plan
    assert not len(shared_of(plan).guest_starts)
    assert shared_of(plan).requeues.id.tolist() == ["g0"]
    assert shared_of(plan).quotas.id.tolist() == ["g0"]


@pytest.mark.parametrize("share", SHARING.values(), ids=SHARING)
@pytest.mark.parametrize(
    ("rules", "host", "guest"),
    [
        ({"scope": Scope.USER}, {"user": "ann"}, {"user": "bob"}),
        ({"scope": Scope.ACCOUNT}, {"account": "a"}, {"account": "b"}),
        ({"consent": Coschedule.NEVER}, {}, {"coschedule": Coschedule.GUEST}),
        ({"consent": Coschedule.NEVER}, {"coschedule": Coschedule.HOST}, {}),
    ],
    ids=["other users", "other accounts", "the host's consent", "the guest's consent"],
)
def test_a_guest_goes_when_the_rules_permit_it_no_longer(share, rules, host, guest):
    world = a_world([a_host(**host), a_guest(**guest)])
    both = CoschedulingRules("*", scope=Scope.ALL, consent=Coschedule.BOTH)
    assert not len(shared_of(result_of(world, with_sharing(Site(), both), share).plan).requeues)
    plan = result_of(world, with_sharing(Site(), replace(both, **rules)), share).plan
    assert shared_of(plan).requeues.id.tolist() == ["g0"]
    assert "at present" in shared_of(plan).requeues.reasons[0]
    assert shared_of(plan).quotas.milli_cpus_per_node.tolist() == [200]


@pytest.mark.parametrize("share", SHARING.values(), ids=SHARING)
@pytest.mark.parametrize(
    ("host", "guest", "words"),
    [
        ({"memory_stall": 0.2}, {}, "memory is short"),
        ({}, {"memory_stall": 0.2}, "memory is short"),
        ({"peak_mib": 3000}, {"peak_mib": 1000}, "do not fit"),
    ],
)
def test_a_guest_goes_when_memory_is_short_and_pauses(share, host, guest, words):
    world = a_world([a_host(**host), a_guest(**guest)])
    found = result_of(world, SITE, share)
    assert words in shared_of(found.plan).requeues.reasons[0]
    alone = a_world([a_host(busy_cpus=0.2)], [a_waiting_job(id="g0")], nodes=1)
    for seed in range(10):
        rng = np.random.default_rng(seed)
        plan = run_cycle(alone, SITE, found.state, a_policy(share), rng).plan
        assert not len(shared_of(plan).guest_starts)
    held = a_world([a_host(**host), a_guest(**guest, requeue=False)])
    plan = result_of(held, SITE, share).plan
    assert not len(shared_of(plan).requeues)
    assert shared_of(plan).quotas.milli_cpus_per_node.tolist() == [200]


@pytest.mark.parametrize("share", SHARING.values(), ids=SHARING)
@pytest.mark.parametrize("host", [{"measured_s": NOW_S - 60}, {"busy_cpus": -1.0}])
def test_a_guest_is_at_the_floor_while_its_host_is_not_measured(share, host):
    plan = result_of(a_world([a_host(**host), a_guest()]), SITE, share).plan
    assert shared_of(plan).quotas.milli_cpus_per_node.tolist() == [200]
    assert not len(shared_of(plan).requeues)


@pytest.mark.parametrize("share", POLICIES.values(), ids=POLICIES)
def test_a_running_guest_always_has_a_quota(share):
    world = a_world([a_host(), a_guest()])
    _, site = random_sharing_world(0)
    plan = result_of(world, site, share).plan
    assert shared_of(plan).quotas.id.tolist() == ["g0"]
    assert 0 < shared_of(plan).quotas.milli_cpus_per_node[0] <= 4000


@pytest.mark.parametrize("share", POLICIES.values(), ids=POLICIES)
@each(seed=SEEDS[:15])
def test_a_recorded_cycle_is_planned_the_same_again(share, seed):
    """Through the file: guests, quotas and requeues, and what the policy has learnt."""
    world, site = random_sharing_world(seed)
    rng, state = np.random.default_rng(seed), State()
    for by_s in (15, 10, 5):
        state = run_cycle(earlier(world, by_s), site, state, a_policy(share), rng).state
    plan = run_cycle(world, site, state, a_policy(share), np.random.default_rng(9)).plan
    spec = parse_policy({"preset": "easy", "share": share})
    kept = decode(encode(Recording(world, state, spec, 9, plan)))
    assert_alike(kept.plan, plan)
    again = run_cycle(kept.snapshot, site, kept.state, build(kept.policy), np.random.default_rng(9))
    assert_alike(again.plan, plan)
