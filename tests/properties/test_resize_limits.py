# SPDX-License-Identifier: Apache-2.0
"""Limits on resizes: as an oracle judges them, and no policy gets past them."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.check.legality import check, permitted
from bridge.cycle import run_cycle
from bridge.model.decisions.resizes import Resizes
from bridge.model.rules.limits import ConsumerKind
from bridge.model.rules.resize_limits import ResizeBounds, ResizeLimit, bounded
from bridge.model.rules.site import Site
from bridge.ports import State
from bridge.registry import build, parse_policy
from schedbridge_contracts.builders import a_partition, a_running_job, a_snapshot
from schedbridge_contracts.cycles import Memory, run
from schedbridge_contracts.reshaping import RandomReshape

NOW_S = 10_000
USERS = ("ann", "bob", "eve")


@st.composite
def limits(draw):
    found = []
    for kind, names in ((ConsumerKind.USER, (*USERS, "*")), (ConsumerKind.PARTITION, ("p", "*"))):
        for name in draw(st.lists(st.sampled_from(names), unique=True)):
            of_user = kind is ConsumerKind.USER
            found.append(
                ResizeLimit(
                    kind,
                    name,
                    never=draw(st.integers(0, 7)) == 0,
                    apart_s=draw(st.sampled_from((0, 1, 60, 600))),
                    per_hour=draw(st.sampled_from((None, 0, 1, 2))) if of_user else None,
                    extra_nodes=draw(st.sampled_from((None, 0, 1, 3))),
                )
            )
    return tuple(found)


def a_world(seed):
    """Six malleable jobs of three users with one to three nodes each, and idle nodes."""
    rng = np.random.default_rng(seed)
    widths, first, jobs = rng.integers(1, 4, 6).tolist(), 0, []
    for at, width in enumerate(widths):
        jobs.append(
            a_running_job(
                tuple(range(first, first + width)), id=f"m{at}", user=str(rng.choice(USERS)),
                end_s=NOW_S + 5000, min_nodes=1, max_nodes=int(rng.integers(width, 9)),
                requested_nodes=int(rng.integers(0, 4)),
                resized_s=int(rng.choice((0, NOW_S - 59, NOW_S - 60, NOW_S - 601, NOW_S))),
            )
        )  # fmt: skip
        first += width
    world = a_snapshot(
        nodes=30, now_s=NOW_S, running=jobs, partitions=[a_partition(nodes=range(30), name="p")]
    )()
    counts = {user: int(rng.integers(0, 3)) for user in USERS}
    running = replace(
        world.running,
        keeps_nodes=rng.random(6) < 0.1,
        user_resizes=np.array([counts[user] for user in world.running.user]),
    )
    return replace(world, running=running)


def naive(world, rules, row, width):
    """Whether one job may be resized to a width, if no other one is."""
    running = world.running
    held = int(running.indptr[row + 1] - running.indptr[row])
    mine = []
    for kind, name in (("user", running.user[row]), ("partition", "p")):
        named = [one for one in rules if one.kind == kind and one.name == name]
        mine += named or [one for one in rules if one.kind == kind and one.name == "*"]
    if running.keeps_nodes[row] or any(one.never for one in mine):
        return False
    if width < held:
        return True
    requested = running.requested_nodes[row] or held
    since_s = NOW_S - running.resized_s[row] if running.resized_s[row] else 10**9
    return all(
        since_s >= one.apart_s
        and (one.per_hour is None or running.user_resizes[row] < one.per_hour)
        and (one.extra_nodes is None or width <= requested + one.extra_nodes)
        for one in mine
    )


def to_width(world, row, width):
    running = world.running
    held = running.nodes[running.indptr[row] : running.indptr[row + 1]]
    return np.union1d(held, np.arange(29, 29 - max(width - len(held), 0), -1))[
        : width if width < len(held) else None
    ].astype(np.int32)


@given(seed=st.integers(0, 10_000), rules=limits(), data=st.data())
@settings(deadline=None, max_examples=400)
def test_one_resize_is_judged_as_the_oracle_judges_it(seed, rules, data):
    world, site = a_world(seed), Site(resizes=rules)
    row = data.draw(st.integers(0, 5))
    held = int(np.diff(world.running.indptr)[row])
    choices = [w for w in range(1, int(world.running.max_nodes[row]) + 1) if w != held]
    if not choices:
        return
    width = data.draw(st.sampled_from(choices))
    requested = Resizes.of([(row, NOW_S + 5, to_width(world, row, width), "")])
    assert bool(len(permitted(world, site, requested))) == naive(world, rules, row, width)
    maximum, why = ResizeBounds(world, rules).maximum(row)
    if width > held:
        assert (width <= maximum) == naive(world, rules, row, width)
        assert width <= maximum or why


@given(seed=st.integers(0, 10_000), rules=limits())
@settings(deadline=None, max_examples=200)
def test_a_stage_that_knows_no_limits_keeps_them(seed, rules):
    world, site = a_world(seed), Site(resizes=rules)
    policy = replace(build(parse_policy("slurm-like")), reshape=RandomReshape(seed))
    plan = run_cycle(world, site, State(), policy, np.random.default_rng(0)).plan
    grown = dict.fromkeys(USERS, 0)
    for at, row in enumerate(plan.resizes.job.tolist()):
        width = len(plan.resizes.nodes_of(at))
        assert naive(world, rules, row, width)
        grown[world.running.user[row]] += width > np.diff(world.running.indptr)[row]
    for row, user in enumerate(world.running.user.tolist()):
        left = ResizeBounds(world, rules).left(row)
        assert left is None or grown[user] <= max(left, 0)


@given(seed=st.integers(0, 10_000), rules=limits())
@settings(deadline=None, max_examples=200)
def test_what_policies_see_is_what_the_check_allows(seed, rules):
    world = a_world(seed)
    seen = bounded(world, rules)
    for row, maximum in enumerate(seen.running.max_nodes.tolist()):
        held = int(np.diff(world.running.indptr)[row])
        widths = range(held + 1, int(world.running.max_nodes[row]) + 1)
        allowed = [width for width in widths if naive(world, rules, row, width)]
        assert maximum <= max([held, *allowed])
        assert maximum == 0 or not allowed or maximum == max(allowed)
    again = bounded(seen, rules)
    assert again.running.max_nodes.tolist() == seen.running.max_nodes.tolist()


def test_without_limits_nothing_changes():
    world = a_world(1)
    world = replace(world, running=replace(world.running, keeps_nodes=np.zeros(6, bool)))
    assert bounded(world, ()) is world


@pytest.mark.parametrize("preset", ["malleable", "malleable-performance", "fpsma"])
def test_policies_grow_no_job_that_keeps_its_nodes(preset):
    world = a_world(3)
    free = replace(world.running, keeps_nodes=np.zeros(6, bool), resized_s=np.zeros(6, np.int64))
    world = replace(world, running=free)
    policy = build(parse_policy(preset))
    assert len(run(world, Memory(), policy).resizes)
    kept = replace(world, running=replace(free, keeps_nodes=np.ones(6, bool)))
    assert not len(run(kept, Memory(), policy).resizes)
    site = Site(resizes=(ResizeLimit(ConsumerKind.PARTITION, "p", never=True),))
    plan = run_cycle(world, site, State(), policy, np.random.default_rng(0)).plan
    assert not len(plan.resizes)


def test_a_plan_that_breaks_a_limit_is_refused_with_its_name():
    world = a_world(0)
    free = replace(world.running, keeps_nodes=np.zeros(6, bool), max_nodes=np.full(6, 8))
    free = replace(free, requested_nodes=np.diff(free.indptr), resized_s=np.zeros(6, np.int64))
    world = replace(world, running=free)
    width = int(np.diff(free.indptr)[0]) + 2
    requested = Resizes.of([(0, NOW_S + 5, to_width(world, 0, width), "")])
    plan = replace(run(world, Memory(), build(parse_policy("easy"))), resizes=requested)
    assert check(world, Site(), plan) == ()
    site = Site(resizes=(ResizeLimit(ConsumerKind.USER, "*", extra_nodes=1),))
    (said,) = check(world, site, plan)
    assert "planning.resizes: extra_nodes" in str(said)
    order = permitted(world, site, requested, order=True)
    assert len(order) == 1
    kept = replace(world, running=replace(free, keeps_nodes=np.ones(6, bool)))
    assert not len(permitted(kept, Site(), requested, order=True))
