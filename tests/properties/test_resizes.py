# SPDX-License-Identifier: Apache-2.0
"""Plans around running jobs that grow and shrink: legal as an oracle says, by seed."""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.check.legality import check
from bridge.cycle import run_cycle
from bridge.model.decisions.resizes import NO_RESIZES, resized
from bridge.model.rules.site import NO_RULES
from bridge.ports import State
from bridge.registry import build, parse_policy
from schedbridge_contracts.crosses import each
from schedbridge_contracts.reshaping import (
    RandomReshape,
    a_malleable_world,
    naive_problem,
    random_resizes,
)

POLICIES = ("slurm-like", "easy", "conservative", "openccs")


def a_plan(snapshot, preset, resizes):
    """The preset's plan on the world with these jobs resized, carrying the resizes."""
    result = run_cycle(
        resized(snapshot, resizes), NO_RULES, State(), build(parse_policy(preset)),
        np.random.default_rng(0),
    )  # fmt: skip
    return replace(result.plan, resizes=resizes)


@given(seed=st.integers(0, 100_000), preset=st.sampled_from(POLICIES))
@settings(deadline=None, max_examples=300)
def test_a_plan_around_allowed_resizes_is_legal(seed, preset):
    snapshot = a_malleable_world(seed)
    resizes = random_resizes(snapshot, np.random.default_rng(seed))
    plan = a_plan(snapshot, preset, resizes)
    assert naive_problem(snapshot, plan) is None
    assert check(snapshot, NO_RULES, plan) == ()


@given(seed=st.integers(0, 100_000))
@settings(deadline=None, max_examples=600)
def test_any_resizes_are_judged_as_the_oracle_judges_them(seed):
    """Slow: the oracle looks at every second of every node."""
    snapshot = a_malleable_world(seed)
    resizes = random_resizes(snapshot, np.random.default_rng(seed), wild=True)
    plan = replace(a_plan(snapshot, "easy", NO_RESIZES), resizes=resizes)
    # The rows were planned without the resizes: they may collide with what is added.
    expected = naive_problem(snapshot, plan)
    found = check(snapshot, NO_RULES, plan)
    assert bool(found) == (expected is not None), (found, expected)


@each(seed=range(60))
def test_a_cycle_with_a_reshape_stage_plans_around_its_resizes(seed):
    snapshot = a_malleable_world(seed)
    policy = replace(build(parse_policy("slurm-like")), reshape=RandomReshape(seed))
    result = run_cycle(snapshot, NO_RULES, State(), policy, np.random.default_rng(0))
    assert naive_problem(snapshot, result.plan) is None


def test_the_random_reshape_stage_does_resize():
    policy = build(parse_policy("slurm-like"))
    grows = shrinks = 0
    for seed in range(120):
        reshaping, world = replace(policy, reshape=RandomReshape(seed)), a_malleable_world(seed)
        resizes = run_cycle(
            world, NO_RULES, State(), reshaping, np.random.default_rng(0)
        ).plan.resizes
        held = np.diff(world.running.indptr)[resizes.job]
        grows += int((np.diff(resizes.indptr) > held).sum())
        shrinks += int((np.diff(resizes.indptr) < held).sum())
    assert grows > 5
    assert shrinks > 25


@each(seed=range(30))
def test_what_is_held_is_moved_not_lost(seed):
    """Released nodes and kept ones together are what was held; rows keep their places."""
    snapshot = a_malleable_world(seed)
    resizes = random_resizes(snapshot, np.random.default_rng(seed))
    before, after = snapshot.running, resized(snapshot, resizes).running
    assert after.id.tolist()[: len(before)] == before.id.tolist()
    assert not after.releasing[: len(before)].any()
    assert after.releasing[len(before) :].all()
    grown = {
        (int(job), int(node))
        for row, job in enumerate(resizes.job)
        for node in resizes.nodes_of(row)
    }
    owner = {job_id: at for at, job_id in enumerate(before.id.tolist())}
    held = {
        (owner[after.id[row]], node)
        for row in range(len(after))
        for node in after.nodes[after.indptr[row] : after.indptr[row + 1]].tolist()
    }
    had = {
        (row, node)
        for row in range(len(before))
        for node in before.nodes[before.indptr[row] : before.indptr[row + 1]].tolist()
    }
    assert held == had | grown
