# SPDX-License-Identifier: Apache-2.0
"""What every share policy must do where jobs share nodes."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from bridge.cycle import run_cycle
from bridge.model.job import Coschedule
from bridge.model.rules.coscheduling import CoschedulingRules, Scope
from bridge.model.rules.site import NO_RULES, Site
from bridge.planning.sharing.switch import NAME, turned_off
from bridge.ports import State
from bridge.recording.recordings import Recording, decode, encode
from bridge.registry import build, choices, parse_policy
from schedbridge_contracts.alike import assert_alike
from schedbridge_contracts.crosses import each
from tests.sharing import (
    NOW_S,
    a_guest,
    a_host,
    a_waiting_job,
    a_world,
    earlier,
    naive_sharing_problem,
    random_sharing_world,
)
from tests.sharing import (
    SHARING as SITE,
)

POLICIES = choices()["share"]
SHARING = [name for name in POLICIES if name != "none"]
SEEDS = range(60)


def a_policy(name, **parameters):
    share = {"name": name, **parameters}
    return build(parse_policy({"preset": "easy", "share": share}))


def result_of(world, site, name, state=None):
    rng, policy, state = np.random.default_rng(len(world.jobs)), a_policy(name), state or State()
    for by_s in (15, 10, 5):  # some measurements, as a running service has them
        state = run_cycle(earlier(world, by_s), site, state, policy, rng).state
    return run_cycle(world, site, state, policy, rng)


@pytest.mark.parametrize("name", POLICIES)
@each(seed=SEEDS)
def test_plans_keep_the_rules_of_sharing_and_are_repeatable(name, seed):
    world, site = random_sharing_world(seed)
    plan = result_of(world, site, name).plan
    assert naive_sharing_problem(world, site, plan) is None
    assert_alike(plan, result_of(world, site, name).plan)


@pytest.mark.parametrize("name", SHARING)
def test_many_of_those_worlds_have_guests(name):
    """Else the test above would say nothing; of each scope there are some."""
    guests = Counter[Scope]()
    for seed in SEEDS:
        world, site = random_sharing_world(seed)
        guests[site.coscheduling[0].scope] += len(result_of(world, site, name).plan.guest_starts)
    assert guests.total() >= 15
    assert all(guests[scope] >= 2 for scope in Scope)


@pytest.mark.parametrize(
    ("scope", "of_guest", "problem"),
    [
        (Scope.USER, {"user": "bob"}, "of two users"),
        (Scope.USER, {"account": "y"}, None),
        (Scope.ACCOUNT, {"account": "y"}, "not of one account"),
        (Scope.ACCOUNT, {"account": ""}, "not of one account"),
        (Scope.ACCOUNT, {"user": "bob"}, None),
        (Scope.ALL, {"user": "bob", "account": "y"}, None),
    ],
)
def test_the_scope_decides_who_shares_and_the_naive_check_notices(scope, of_guest, problem):
    own = {"user": "ann", "account": "x"}
    world = a_world([a_host(**own)], [a_waiting_job(**{**own, **of_guest})], nodes=1)
    site, rules = SITE, SITE.coscheduling[0]
    strict = replace(site, coscheduling=(replace(rules, scope=scope),))
    everyone = replace(site, coscheduling=(replace(rules, scope=Scope.ALL),))
    plan = result_of(world, everyone, "static-half").plan
    assert len(plan.guest_starts) == 1
    assert naive_sharing_problem(world, strict, plan) == problem
    assert len(result_of(world, strict, "static-half").plan.guest_starts) == (problem is None)


@pytest.mark.parametrize("name", POLICIES)
@each(seed=SEEDS[:20])
def test_without_rules_of_the_site_nobody_becomes_a_guest(name, seed):
    world, _ = random_sharing_world(seed)
    plan = result_of(world, NO_RULES, name).plan
    assert not len(plan.guest_starts)


@pytest.mark.parametrize("name", ["pairs"])
@each(seed=SEEDS)
def test_other_jobs_start_when_they_would_without_guests(name, seed):
    world, site = random_sharing_world(seed)
    plan, plain = result_of(world, site, name).plan, result_of(world, site, "none").plan
    for row in range(len(plain)):
        if not plan.host_of(row):
            assert plan.start_s[row] == plain.start_s[row]
            assert plan.nodes_of(row).tolist() == plain.nodes_of(row).tolist()


@pytest.mark.parametrize("name", POLICIES)
def test_switched_off_nobody_becomes_a_guest_and_guests_go(name):
    world = a_world([a_host(), a_guest(), a_host((1,))], [a_waiting_job()])
    _, site = random_sharing_world(0)
    site = replace(site, coscheduling=(replace(site.coscheduling[0], consent=3, partition="*"),))
    off = State(learnt={NAME: turned_off(State().learnt_by(NAME), NOW_S, by_policy=False)})
    plan = result_of(world, site, name, off).plan
    assert not len(plan.guest_starts)
    assert plan.requeues.id.tolist() == ["g0"]
    assert plan.quotas.id.tolist() == ["g0"]


@pytest.mark.parametrize("name", SHARING)
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
def test_a_guest_goes_when_the_rules_permit_it_no_longer(name, rules, host, guest):
    world = a_world([a_host(**host), a_guest(**guest)])
    both = CoschedulingRules("*", scope=Scope.ALL, consent=Coschedule.BOTH)
    assert not len(result_of(world, Site(coscheduling=(both,)), name).plan.requeues)
    plan = result_of(world, Site(coscheduling=(replace(both, **rules),)), name).plan
    assert plan.requeues.id.tolist() == ["g0"]
    assert "at present" in plan.requeues.reasons[0]
    assert plan.quotas.milli_cpus_per_node.tolist() == [200]


@pytest.mark.parametrize("name", SHARING)
@pytest.mark.parametrize(
    ("host", "guest", "words"),
    [
        ({"memory_stall": 0.2}, {}, "memory is short"),
        ({}, {"memory_stall": 0.2}, "memory is short"),
        ({"peak_mib": 3000}, {"peak_mib": 1000}, "do not fit"),
    ],
)
def test_a_guest_goes_when_memory_is_short_and_pauses(name, host, guest, words):
    world = a_world([a_host(**host), a_guest(**guest)])
    found = result_of(world, SITE, name)
    assert words in found.plan.requeues.reasons[0]
    alone = a_world([a_host(busy_cpus=0.2)], [a_waiting_job(id="g0")], nodes=1)
    for seed in range(10):
        rng = np.random.default_rng(seed)
        plan = run_cycle(alone, SITE, found.state, a_policy(name), rng).plan
        assert not len(plan.guest_starts)
    held = a_world([a_host(**host), a_guest(**guest, requeue=False)])
    plan = result_of(held, SITE, name).plan
    assert not len(plan.requeues)
    assert plan.quotas.milli_cpus_per_node.tolist() == [200]


@pytest.mark.parametrize("name", SHARING)
@pytest.mark.parametrize("host", [{"measured_s": NOW_S - 60}, {"busy_cpus": -1.0}])
def test_a_guest_is_at_the_floor_while_its_host_is_not_measured(name, host):
    plan = result_of(a_world([a_host(**host), a_guest()]), SITE, name).plan
    assert plan.quotas.milli_cpus_per_node.tolist() == [200]
    assert not len(plan.requeues)


@pytest.mark.parametrize("name", POLICIES)
def test_a_running_guest_always_has_a_quota(name):
    world = a_world([a_host(), a_guest()])
    _, site = random_sharing_world(0)
    plan = result_of(world, site, name).plan
    assert plan.quotas.id.tolist() == ["g0"]
    assert 0 < plan.quotas.milli_cpus_per_node[0] <= 4000


@pytest.mark.parametrize("name", POLICIES)
@each(seed=SEEDS[:15])
def test_a_recorded_cycle_is_planned_the_same_again(name, seed):
    """Through the file: guests, quotas and requeues, and what the policy has learnt."""
    world, site = random_sharing_world(seed)
    rng, state = np.random.default_rng(seed), State()
    for by_s in (15, 10, 5):
        state = run_cycle(earlier(world, by_s), site, state, a_policy(name), rng).state
    plan = run_cycle(world, site, state, a_policy(name), np.random.default_rng(9)).plan
    spec = parse_policy({"preset": "easy", "share": name})
    kept = decode(encode(Recording(world, state, spec, 9, plan)))
    assert_alike(kept.plan, plan)
    again = run_cycle(kept.snapshot, site, kept.state, build(kept.policy), np.random.default_rng(9))
    assert_alike(again.plan, plan)
