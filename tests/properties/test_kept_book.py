# SPDX-License-Identifier: Apache-2.0
"""A book that is handed from cycle to cycle plans as an empty one would, to the bit."""

import copy
import pickle
import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.cycle import run_cycle
from bridge.model.decisions.resizes import Resizes, resized
from bridge.model.job import Hold
from bridge.model.rules.site import NO_RULES
from bridge.planning.scheduler.former_book import FormerBook
from bridge.planning.scheduler.kept_plan import KeptPlan, from_bytes, to_bytes
from bridge.ports import State
from bridge.registry import PRESETS, build
from schedbridge_contracts.builders import (
    a_job,
    a_node,
    a_partition,
    a_reservation,
    a_running_job,
    a_snapshot,
)
from schedbridge_contracts.crosses import seeds
from schedbridge_contracts.cycles import a_site

RULES = {
    "limits": [
        {"user": "*", "resource": "cpus", "items": 14},
        {"account": "account", "resource": "jobs", "items": 12},
    ],
    "free_pools": [{"name": "p", "resource": "cpus", "keep": 4, "access": [{"time": "<= 100s"}]}],
}
SITES = {
    "no rules": NO_RULES,
    "limits": a_site({"limits": RULES["limits"]}),
    "free pool": a_site({"free_pools": RULES["free_pools"]}),
    "all": a_site(RULES, {"gpu": {"cpus": 1}}),
}


class World:
    """A cluster that starts what it is told to, and to which things happen."""

    def __init__(self, seed: int, n_jobs: int) -> None:
        self.dice = random.Random(seed)
        n = self.dice.randint(3, 7)
        self.nodes = [
            a_node(
                cpus=self.dice.choice((2, 4, 4, 8)),
                gpus=self.dice.choice((0, 0, 1)),
                features=("x",) if self.dice.random() < 0.5 else (),
            )
            for _ in range(n)
        ]
        self.part = sorted(self.dice.sample(range(n), self.dice.randint(1, n)))
        self.now_s, self.jobs, self.running, self.reservations, self.number = 1000, [], [], [], 0
        for _ in range(n_jobs):
            self.submit()

    def submit(self):
        dice, n = self.dice, len(self.nodes)
        self.number += 1
        tasks = dice.choice((0, 0, 1, 2, 5))
        low = dice.randint(1, n)
        job = a_job(
            id=f"j{self.number}",
            nodes=1 if tasks else low,
            max_nodes=n if tasks or dice.random() < 0.15 else low,
            limit_s=dice.choice((20, 60, 100, 300)),
            submit_s=self.now_s,
            priority=dice.randint(1, 4),
            partitions=dice.choice(((0,), (0,), (1,), (0, 1))),
            shared=dice.random() < 0.7,
            cpus=0 if tasks else dice.choice((1, 2)),
            tasks=tasks,
            features=dice.choice(("", "", "", "x")),
            licences=(dice.choice((0, 0, 0, 1)),),
            user=dice.choice(("ann", "bob")),
            array_tasks=3 if dice.random() < 0.1 else 0,
            array_startable=2,
            deadline_s=self.now_s + 900 if dice.random() < 0.1 else 0,
            hold=Hold.BEGIN_TIME if dice.random() < 0.1 else Hold.NONE,
            begin_s=self.now_s + dice.randint(1, 200),
        )
        if dice.random() < 0.15:
            job.chunks = dice.choice(("2:ncpus=1+1:ncpus=2", "2:ncpus=2,place=scatter"))
            job.features, job.tasks, job.cpus = "", 0, 0
        self.jobs.append(job)

    def snapshot(self):
        n = len(self.nodes)
        return a_snapshot(
            nodes=self.nodes,
            jobs=sorted(self.jobs, key=lambda job: job.id),
            running=self.running,
            partitions=[a_partition("all", range(n)), a_partition("some", self.part)],
            reservations=self.reservations,
            licences=[("matlab", 2)],
            now_s=self.now_s,
        )()

    def start(self, snapshot, plan):
        """Most of what is to start now starts; a reply may be lost."""
        by_id = {job.id: job for job in self.jobs}
        for row in plan.starts_now.tolist():
            job = by_id[snapshot.jobs.id[plan.job[row]]]
            if job.array_tasks or self.dice.random() < 0.15:
                continue
            late_s = self.dice.choice((0, 0, 1))
            self.running.append(
                a_running_job(
                    tuple(plan.nodes_of(row).tolist()),
                    int(plan.end_s[row]) + late_s,
                    shared=job.shared,
                    cpus=int(plan.tasks[plan.indptr[row]]) or job.cpus or 1,
                    licences=job.licences,
                    user=job.user,
                    id=job.id,
                )
            )
            self.jobs.remove(job)

    def happens(self):
        dice = self.dice
        self.now_s += dice.choice((0, 1, 1, 7, 40, 150))
        self.running = [
            job for job in self.running if job.end_s > self.now_s or dice.random() < 0.2
        ]
        for _ in range(dice.choice((0, 1, 1, 2))):
            what = dice.random()
            if what < 0.3 or not self.jobs:
                self.submit()
            elif what < 0.5:
                self.jobs.remove(dice.choice(self.jobs))
            elif what < 0.65:
                job = dice.choice(self.jobs)
                job.limit_s, job.priority = dice.choice((20, 100, 400)), dice.randint(1, 4)
            elif what < 0.85 and self.running:
                self.running.remove(dice.choice(self.running))
            elif what < 0.9:
                at = dice.randrange(len(self.nodes))
                self.nodes[at] = replace(self.nodes[at], usable=not self.nodes[at].usable)
            elif what < 0.93:
                at = dice.randrange(len(self.nodes))
                self.nodes[at] = replace(self.nodes[at], cpus=dice.choice((2, 4, 8)))
            elif what < 0.96:
                self.reservations = [] if self.reservations else [
                    a_reservation([0], self.now_s + 20, self.now_s + 300)
                ]  # fmt: skip


def from_nothing(state):
    """The same state without a book."""
    kept = state.promises.kept_plan
    if not isinstance(kept, KeptPlan):
        return state
    bare = KeptPlan(kept.names, kept.placements)
    return State(replace(state.promises, kept_plan=bare), state.learnt)


def everything(result):
    """All that a cycle comes to, as plain values."""
    plan, promises = vars(result.plan), result.state.promises
    columns = {
        name: value.tolist() if isinstance(value, np.ndarray) else value
        for name, value in plan.items()
    }
    return columns, promises.start_s, to_bytes(promises.kept_plan)


def cycle(snapshot, state, site, policy):
    return run_cycle(snapshot, site, state, policy, np.random.default_rng(0))


@pytest.fixture
def taken_over(monkeypatch):
    """How often a book served that was handed over, with rows moved in it, and how often not."""
    counts = {True: 0, False: 0, "settled": 0}
    keep = FormerBook.settle

    def counted(self, *args, **named):
        found = keep(self, *args, **named)
        counts[found is not None] += 1
        counts["settled"] += found is not None and not found.kept.all()
        return found

    monkeypatch.setattr(FormerBook, "settle", counted)
    return counts


@pytest.mark.parametrize("late", ["early", "late"])
@pytest.mark.parametrize("site", SITES)
def test_a_book_that_is_handed_over_plans_as_an_empty_one(site, late, taken_over):
    """Slow: each cycle of each history is planned twice."""
    policy = build(PRESETS["openccs"])
    policy = replace(policy, plan=replace(policy.plan, deadline=late, array_depth=2))

    @settings(max_examples=60, deadline=None, database=None)
    @given(st.integers(0, 1 << 32), st.integers(0, 14), st.integers(2, 9))
    def histories(seed, n_jobs, length):
        world, state = World(seed, n_jobs), State()
        for _ in range(length):
            snapshot = world.snapshot()
            scratch = cycle(snapshot, from_nothing(state), SITES[site], policy)
            kept = cycle(snapshot, state, SITES[site], policy)
            assert everything(kept) == everything(scratch)
            state = kept.state
            world.start(snapshot, kept.plan)
            world.happens()

    histories()
    assert taken_over[True] > 50  # else nothing is tested
    assert taken_over[False] > 3
    assert taken_over["settled"] > 3 or SITES[site].rules.limits or SITES[site].rules.free_pools


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 1 << 32), st.integers(2, 14))
def test_a_state_is_good_for_any_number_of_cycles(seed, n_jobs):
    """What is repeated, looked into beside, or tried with half of the jobs comes to the same."""
    policy, world, state = build(PRESETS["openccs"]), World(seed, n_jobs), State()
    for _ in range(4):
        snapshot = world.snapshot()
        other = World(seed + 1, n_jobs).snapshot()
        first = cycle(snapshot, state, NO_RULES, policy)
        cycle(other, state, NO_RULES, policy)
        again = cycle(snapshot, state, NO_RULES, policy)
        assert everything(again) == everything(first)
        assert everything(cycle(snapshot, copy.deepcopy(state), NO_RULES, policy)) == everything(
            first
        )
        state = world.dice.choice((first, again)).state
        if world.dice.random() < 0.3:
            cycle(other, state, NO_RULES, policy)  # it takes the book and is thrown away
        world.start(snapshot, first.plan)
        world.happens()


def test_a_book_is_handed_over_once_and_never_copied():
    world = World(1, 5)
    kept = cycle(world.snapshot(), State(), NO_RULES, build(PRESETS["openccs"]))
    plan = kept.state.promises.kept_plan
    assert copy.deepcopy(plan).handover.take() is None
    assert pickle.loads(pickle.dumps(plan.handover)).take() is None
    assert from_bytes(to_bytes(plan)).handover.take() is None
    assert plan.handover.take() is not None
    assert plan.handover.take() is None


def some_releases(snapshot, dice):
    """Some running jobs of several nodes are giving some of them back; and until when."""
    running, found = snapshot.running, []
    for row in range(len(running)):
        nodes = running.nodes[running.indptr[row] : running.indptr[row + 1]]
        if len(nodes) > 1 and dice.random() < 0.6:
            by_s = snapshot.now_s + dice.choice((1, 30, 200))
            found.append((row, by_s, nodes[: dice.randint(1, len(nodes) - 1)], ""))
    return resized(snapshot, Resizes.of(found)), len(found)


def too_early(snapshot, plan):
    """Planned jobs that begin on whole nodes which others still hold, or are releasing."""
    running, found = snapshot.running, []
    for row in range(len(plan.start_s)):
        if not 0 <= plan.start_s[row] < plan.end_s[row]:
            continue
        mine = {*plan.nodes_of(row).tolist()}
        for held in range(len(running)):
            theirs = running.nodes[running.indptr[held] : running.indptr[held + 1]]
            early = plan.start_s[row] < max(int(running.end_s[held]), snapshot.now_s + 1)
            if early and running.exclusive[held] and mine & {*theirs.tolist()}:
                found.append((row, held))
    return found


def test_nodes_that_jobs_are_giving_back_are_free_when_they_are():
    """A job then has two rows, and no book is handed over; before and after that one is."""
    policy, releases = build(PRESETS["openccs"]), 0
    for seed in seeds(8, 100):
        world, state = World(seed, 9), State()
        for _ in range(5):
            for job in world.jobs:
                job.shared = False
            snapshot, given = some_releases(world.snapshot(), world.dice)
            releases += given
            scratch = cycle(snapshot, from_nothing(state), NO_RULES, policy)
            kept = cycle(snapshot, state, NO_RULES, policy)
            assert everything(kept) == everything(scratch), seed
            assert not too_early(snapshot, kept.plan), seed
            state = kept.state
            world.start(snapshot, kept.plan)
            world.happens()
    assert releases > 8
