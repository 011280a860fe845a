# SPDX-License-Identifier: Apache-2.0
"""The rules of the OpenCCS policy, one by one, and its promises on random worlds."""

import dataclasses

import numpy as np
import pytest

from bridge.errors import ConfigError
from bridge.model.reasons import ReasonCode
from bridge.model.rules.site import Site
from bridge.planning.queue.time_windows import not_yet_eligible
from bridge.planning.site_rules.lowered_rules import lower, stranded
from bridge.registry import build, parse_policy
from bridge.units import NEVER, UNPLANNED
from schedbridge_contracts.builders import (
    a_job,
    a_node,
    a_reservation,
    a_running_job,
    a_snapshot,
    gantt,
)
from schedbridge_contracts.crosses import each
from schedbridge_contracts.cycles import Memory, a_site, check, parse_rules, run
from schedbridge_contracts.worlds import random_world


def decide(snapshot, memory=None, order="slurm", rules=None, protect=None, **parameters):
    policy = {"preset": "openccs", "order": order, "plan": {"name": "openccs", **parameters}}
    memory = Memory() if memory is None else memory
    site = a_site(rules, protect)
    return run(snapshot, memory, build(parse_policy(policy)), site=site)


def starts(snapshot, plan):
    found = {}
    for row in range(len(plan)):
        found.setdefault(snapshot.jobs.id[plan.job[row]], int(plan.start_s[row]))
    return found


def nodes_of(snapshot, plan, job):
    (row,) = np.flatnonzero(snapshot.jobs.id[plan.job] == job)
    return [snapshot.nodes.names[node] for node in plan.nodes_of(row)]


def reason_of(snapshot, plan, job):
    (row,) = np.flatnonzero(snapshot.jobs.id[plan.job] == job)
    return plan.reasons[row]


class TestKeptPlan:
    def test_a_new_job_of_higher_priority_does_not_delay_an_announced_one(self):
        memory = Memory()
        running = [a_running_job(nodes=(0, 1), end_s=100)]
        world = a_snapshot(nodes=2, running=running, jobs=[a_job(2, id="old", priority=1)])
        assert starts(world(), decide(world(), memory)) == {"old": 100}
        world.jobs = [a_job(2, id="new", priority=9), a_job(2, id="old", priority=1)]
        assert starts(world(), decide(world(), memory)) == {"old": 100, "new": 200}

    def test_a_job_whose_start_did_not_arrive_keeps_what_was_announced(self):
        memory = Memory()
        running = [a_running_job(nodes=(0, 1), end_s=100)]
        world = a_snapshot(nodes=2, running=running, jobs=[a_job(2, id="old", priority=1)])
        assert starts(world(), decide(world(), memory)) == {"old": 100}
        world.running, world.now_s = [], 100
        assert starts(world(), decide(world(), memory)) == {"old": 100}
        world.jobs = [a_job(2, id="new", priority=9), a_job(2, id="old", priority=1)]
        world.now_s = 103
        assert starts(world(), decide(world(), memory)) == {"old": 103, "new": 203}

    def test_who_may_use_what_is_kept_free_displaces_nobody_by_being_kept_first(self):
        """He was planned after, and beside, one who had to leave the FreePool alone."""
        memory = Memory()
        rules = {
            "free_pools": [
                {"name": "p", "resource": "cpus", "keep": "2", "access": [{"users": ["carol"]}]}
            ]
        }
        held = {"shared": True}
        world = a_snapshot(
            nodes=[a_node(cpus=8), a_node(cpus=8), a_node(cpus=2)],
            running=[
                a_running_job((0,), end_s=100, cpus=8, **held),
                a_running_job((1,), end_s=1000, cpus=8, **held),
                a_running_job((2,), end_s=90, cpus=2, user="carol", **held),
            ],
            jobs=[a_job(1, id="outside", cpus=8, shared=True)],
        )
        assert starts(world(), decide(world(), memory, rules=rules)) == {"outside": 100}
        inside = a_job(1, id="inside", cpus=2, shared=True, user="carol", priority=9)
        world.jobs = [inside, *world.jobs]
        for world.now_s in (0, 10, 20):
            plan = decide(world(), memory, rules=rules)
            assert starts(world(), plan) == {"inside": 90, "outside": 100}

    def test_without_keeping_priority_decides(self):
        memory = Memory(planned_start_s={"old": 100})
        running = [a_running_job(nodes=(0, 1), end_s=100)]
        jobs = [a_job(2, id="new", priority=9), a_job(2, id="old", priority=1)]
        world = a_snapshot(nodes=2, running=running, jobs=jobs)
        plan = decide(world(), memory, keep_plan=False)
        assert starts(world(), plan) == {"new": 100, "old": 200}

    def test_a_promise_that_gives_way_leaves_reservations_closed(self):
        memory = Memory()
        world = a_snapshot(
            nodes=[a_node(cpus=4)] * 3,
            now_s=645,
            running=[a_running_job(nodes=(0, 1), end_s=900, id="5")],
            reservations=[a_reservation([0, 1, 2], 1799, 1925)],
            jobs=[
                a_job(1, max_nodes=3, tasks=6, limit_s=300, shared=True, id="small"),
                a_job(3, limit_s=900, shared=True, cpus=1, id="large"),
            ],
        )
        assert starts(world(), decide(world(), memory)) == {"small": 900, "large": 1925}
        world.now_s = 900  # the running job is at its end, and still there
        assert starts(world(), decide(world(), memory)) == {"small": 901, "large": 1925}

    def test_an_early_end_moves_jobs_forward_by_priority(self):
        memory = Memory()
        running = [a_running_job(nodes=(0, 1), end_s=1000)]
        jobs = [a_job(2, id="low", priority=1), a_job(2, id="high", priority=5)]
        world = a_snapshot(nodes=2, running=running, jobs=jobs)
        assert starts(world(), decide(world(), memory)) == {"high": 1000, "low": 1100}
        world.running, world.now_s = [], 50
        assert starts(world(), decide(world(), memory)) == {"high": 50, "low": 150}

    def test_a_lost_node_displaces_the_job_of_lower_priority(self):
        memory = Memory()
        nodes = [a_node(), a_node()]
        running = [a_running_job(nodes=(0, 1), end_s=100)]
        jobs = [a_job(1, id="low", priority=1), a_job(1, id="high", priority=5)]
        world = a_snapshot(nodes=nodes, running=running, jobs=jobs)
        assert starts(world(), decide(world(), memory)) == {"high": 100, "low": 100}
        nodes[0].usable = False
        world.running = [a_running_job(nodes=(1,), end_s=100)]
        assert starts(world(), decide(world(), memory)) == {"high": 100, "low": 200}

    def test_starts_alone_are_kept_after_a_restart(self):
        running = [a_running_job(nodes=(0, 1), end_s=100)]
        jobs = [a_job(2, id="new", priority=9), a_job(2, id="old", priority=1)]
        world = a_snapshot(nodes=2, running=running, jobs=jobs)
        plan = decide(world(), Memory(planned_start_s={"old": 100}))
        assert starts(world(), plan) == {"old": 100, "new": 200}

    def test_nodes_that_mean_others_now_are_not_kept(self):
        memory = Memory()
        world = a_snapshot(nodes=3, running=[a_running_job((0, 1, 2), 100)], jobs=[a_job(1)])
        decide(world(), memory)
        fewer = a_snapshot(nodes=1, running=[a_running_job((0,), 100)], jobs=[a_job(1)])()
        assert starts(fewer, decide(fewer, memory)) == {"1": 100}

    @each(seed=range(60))
    def test_no_newcomer_delays_what_is_announced(self, seed):
        before = random_world(seed, arrays=False, chunks=True)
        newcomer = int(np.argmax(before.jobs.priority))
        memory = Memory()
        hidden = random_world(seed, arrays=False, chunks=True, hide=newcomer)
        promised = starts(hidden, decide(hidden, memory))
        now = starts(before, decide(before, memory))
        early = set(hidden.jobs.id[not_yet_eligible(hidden.jobs, hidden.now_s)].tolist())
        for job, start_s in promised.items():
            if start_s not in (NEVER, UNPLANNED, hidden.now_s) and job not in early:
                assert now[job] <= start_s, f"seed {seed}: {job}"


class TestPlaces:
    def test_it_starts_wide_and_waits_narrow(self):
        world = a_snapshot(nodes=4, jobs=[a_job(1, max_nodes=3)])()
        assert len(nodes_of(world, decide(world), "1")) == 3
        busy = a_snapshot(
            nodes=4, running=[a_running_job((0, 1, 2, 3))], jobs=[a_job(1, max_nodes=3)]
        )()
        assert len(nodes_of(busy, decide(busy), "1")) == 1

    def test_chunks_of_several_kinds(self):
        world = a_snapshot(
            nodes=[a_node(cpus=4, gpus=1), a_node(cpus=4), a_node(cpus=4)],
            jobs=[a_job(chunks="1:ncpus=2:ngpus=1+2:ncpus=3")],
        )()
        plan = decide(world)
        assert check(world, plan) == ()
        assert starts(world, plan) == {"1": 0}
        assert plan.groups.tolist() == [[1, 0], [0, 1], [0, 1]]

    def test_packed_chunks_wait_for_one_node_that_holds_them_all(self):
        world = a_snapshot(
            nodes=[a_node(cpus=4), a_node(cpus=8)],
            running=[a_running_job((1,), 70)],
            jobs=[a_job(chunks="2:ncpus=2+1:ncpus=3,place=pack")],
        )()
        plan = decide(world)
        assert starts(world, plan) == {"1": 70}
        assert nodes_of(world, plan, "1") == ["n2"]
        assert plan.groups.tolist() == [[2, 1]]

    def test_chunks_that_no_cluster_of_this_size_holds_are_never(self):
        world = a_snapshot(nodes=2, jobs=[a_job(chunks="2:ncpus=3+1:ncpus=4")])()
        plan = decide(world)
        assert starts(world, plan) == {"1": NEVER}
        assert reason_of(world, plan, "1").code is ReasonCode.NEVER

    def test_cpus_of_gpu_nodes_are_kept_for_gpu_jobs(self):
        jobs = [a_job(shared=True, tasks=4, id="cpu", priority=5)]
        jobs.append(a_job(shared=True, tasks=1, gpus=0, cpus=0, id="more", priority=3))
        world = a_snapshot(nodes=[a_node(cpus=4, gpus=1)], jobs=jobs)()
        assert starts(world, decide(world))["cpu"] == 0
        kept = decide(world, protect={"gpu": {"cpus": 2}})
        assert starts(world, kept)["cpu"] == NEVER
        assert reason_of(world, kept, "cpu").code is ReasonCode.NEVER

    def test_cheap_nodes_first(self):
        world = a_snapshot(
            nodes=[a_node(cpus=4, gpus=2), a_node(cpus=4), a_node(cpus=4)],
            jobs=[a_job(shared=True, tasks=1)],
        )()
        assert nodes_of(world, decide(world), "1") == ["n2"]

    def test_beyond_the_horizon_is_the_waiting_room(self):
        running = [a_running_job((0,), 5000)]
        world = a_snapshot(nodes=1, running=running, jobs=[a_job()])()
        plan = decide(world, horizon_s=3600)
        assert starts(world, plan) == {"1": UNPLANNED}
        assert "waiting room" in reason_of(world, plan, "1").text
        assert starts(world, decide(world, horizon_s=7200)) == {"1": 5000}

    def test_the_waiting_room_is_left_when_nodes_return(self):
        nodes = [a_node(), a_node(usable=False)]
        memory = Memory()
        world = a_snapshot(nodes=nodes, jobs=[a_job(2)])
        plan = decide(world(), memory)
        assert starts(world(), plan) == {"1": NEVER}
        assert reason_of(world(), plan, "1").text == "needs 2 nodes of batch, only 1 is up"
        nodes[1].usable = True
        assert starts(world(), decide(world(), memory)) == {"1": 0}


RULES = {
    "limits": [
        {"user": "alice", "resource": "cpus", "items": 4},
        {"account": "*", "resource": "cpus", "items": "75%"},
        {"user": "*", "resource": "gpu", "duration": "100s"},
    ],
    "free_pools": [
        {"name": "small", "resource": "cpus", "keep": "2/20%", "access": [{"cpus": "< 3"}]},
    ],
}


class TestRules:
    def test_a_limit_puts_jobs_one_after_the_other(self):
        jobs = [a_job(1, id=name, user="alice", priority=p) for p, name in ((2, "a"), (1, "b"))]
        world = a_snapshot(nodes=4, jobs=jobs)()
        rules = {"limits": [{"user": "alice", "resource": "cpus", "items": 4}]}
        plan = decide(world, rules=rules)
        assert starts(world, plan) == {"a": 0, "b": 100}
        assert reason_of(world, plan, "b").code is ReasonCode.LIMIT
        assert "alice" in reason_of(world, plan, "b").text

    def test_running_jobs_count(self):
        running = [a_running_job((0,), 60, user="alice")]
        world = a_snapshot(nodes=4, running=running, jobs=[a_job(1, user="alice")])()
        rules = {"limits": [{"user": "alice", "resource": "cpus", "items": 4}]}
        assert starts(world, decide(world, rules=rules)) == {"1": 60}

    def test_more_than_the_limit_is_never(self):
        world = a_snapshot(nodes=4, jobs=[a_job(2, user="alice")])()
        rules = {"limits": [{"user": "alice", "resource": "cpus", "items": 4}]}
        plan = decide(world, rules=rules)
        assert starts(world, plan) == {"1": NEVER}
        assert reason_of(world, plan, "1").code is ReasonCode.NEVER

    def test_a_free_pool_keeps_room_for_small_jobs(self):
        jobs = [a_job(shared=True, tasks=n, id=str(n), priority=n) for n in (8, 2)]
        world = a_snapshot(nodes=[a_node(cpus=8)], jobs=jobs)()
        rules = {"free_pools": [{"name": "s", "resource": "cpus", "keep": 2,
                                 "access": [{"cpus": "< 3"}]}]}  # fmt: skip
        plan = decide(world, rules=rules)
        assert starts(world, plan) == {"8": NEVER, "2": 0}

    def test_nodes_in_maintenance_by_cron(self):
        # 1970-01-01 was a Thursday; now is Monday, 1970-01-05, 7 o'clock.
        now_s = 4 * 86_400 + 7 * 3600
        world = a_snapshot(
            nodes=[a_node(gpus=1), a_node()], now_s=now_s,
            jobs=[
                a_job(1, limit_s=7200, excluded=(1,), id="gpu"),
                a_job(1, limit_s=7200, id="any"),
            ],
        )()  # fmt: skip
        rules = {"free_pools": [{"name": "maintenance", "nodes": {"having": "gpu"},
                                 "valid": {"cron": "0 8 * * 1", "length": "10h"}}]}  # fmt: skip
        plan = decide(world, rules=rules)
        assert starts(world, plan) == {"gpu": now_s + 11 * 3600, "any": now_s}
        assert nodes_of(world, plan, "any") == ["n2"]

    @each(seed=range(60))
    def test_plans_obey_the_rules(self, seed):
        snapshot = random_world(seed, chunks=True)
        dice = np.random.default_rng(seed)
        users = np.array(["alice", "bob"], dtype=object)
        jobs = dataclasses.replace(
            snapshot.jobs, user=users[dice.integers(0, 2, len(snapshot.jobs))]
        )
        snapshot = dataclasses.replace(snapshot, jobs=jobs)
        plan = decide(snapshot, rules=RULES)
        assert check(snapshot, plan) == (), f"seed {seed}\n{gantt(snapshot, plan)}"
        assert stranded(lower(Site(parse_rules(RULES), cron_s=86_400), snapshot), plan) == [], (
            f"seed {seed}"
        )


@each(seed=range(100))
def test_chunk_worlds_are_planned_legally(seed):
    snapshot = random_world(seed, chunks=True)
    for order in ("fcfs", "slurm"):
        plan = decide(snapshot, order=order)
        assert check(snapshot, plan) == (), f"seed {seed}\n{gantt(snapshot, plan)}"


@pytest.mark.parametrize(
    ("parameters", "key"),
    [
        ({"horizon_s": 0}, "policy.plan.horizon_s"),
        ({"array_depth": 0}, "policy.plan.array_depth"),
        ({"protect": {}}, "policy.plan.protect"),
        ({"rules": {}}, "policy.plan.rules"),
    ],
)
def test_wrong_parameters_are_named(parameters, key):
    with pytest.raises(ConfigError) as caught:
        parse_policy({"preset": "openccs", "plan": {"name": "openccs", **parameters}})
    assert caught.value.key.startswith(key)
