# SPDX-License-Identifier: Apache-2.0
"""Who shares nodes, and that the worlds of the contract suite have enough who do."""

from collections import Counter
from dataclasses import replace

import pytest

from bridge.extensions.sharing.part import shared_of
from bridge.extensions.sharing.rules import Scope, sharing_rules, with_sharing
from schedbridge_contracts.crosses import each
from schedbridge_contracts.sharing import (
    SHARING as SITE,
)
from schedbridge_contracts.sharing import (
    a_host,
    a_waiting_job,
    a_world,
    naive_sharing_problem,
    random_sharing_world,
)
from schedbridge_contracts.test_share_stage import SEEDS, SHARING, result_of


@pytest.mark.parametrize("name", SHARING)
def test_many_of_those_worlds_have_guests(name):
    """Else the test above would say nothing; of each scope there are some."""
    guests = Counter[Scope]()
    for seed in SEEDS:
        world, site = random_sharing_world(seed)
        guests[sharing_rules(site)[0].scope] += len(
            shared_of(result_of(world, site, name).plan).guest_starts
        )
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
    (rules,) = sharing_rules(SITE)
    strict = with_sharing(SITE, replace(rules, scope=scope))
    everyone = with_sharing(SITE, replace(rules, scope=Scope.ALL))
    plan = result_of(world, everyone, "static-half").plan
    assert len(shared_of(plan).guest_starts) == 1
    assert naive_sharing_problem(world, strict, plan) == problem
    assert len(shared_of(result_of(world, strict, "static-half").plan).guest_starts) == (
        problem is None
    )


@pytest.mark.parametrize("name", ["pairs"])
@each(seed=SEEDS)
def test_other_jobs_start_when_they_would_without_guests(name, seed):
    world, site = random_sharing_world(seed)
    plan, plain = result_of(world, site, name).plan, result_of(world, site, "none").plan
    for row in range(len(plain)):
        if not shared_of(plan).host_of(row):
            assert plan.start_s[row] == plain.start_s[row]
            assert plan.nodes_of(row).tolist() == plain.nodes_of(row).tolist()
