# SPDX-License-Identifier: Apache-2.0
"""What every plan policy must obey: chunks of any kinds, the rules of the site, protections."""

import numpy as np
import pytest

from bridge.extensions.power.rules import Corridor, NodePower, PowerRules, with_power
from bridge.model.reasons import ReasonCode
from bridge.model.rules.node_set import NodeSet
from bridge.model.rules.site import Site
from bridge.model.snapshot import Reservation
from bridge.planning.site_rules.lowered_rules import lower, stranded
from bridge.registry import build, parse_policy
from bridge.units import DAY_S, NEVER, UNPLANNED
from schedbridge_contracts import subject
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
from schedbridge_contracts.test_plan_stage import with_bounds
from schedbridge_contracts.worlds import random_world

PLANS = subject.tried("plan")
SEEDS = range(25)
RULES = {
    "limits": [
        {"user": "*", "resource": "cpus", "items": 5},
        {"partition": "*", "resource": "jobs", "items": 3, "valid": {"until": "1970-01-01T00:02"}},
        {"account": "*", "resource": "mem", "duration": "90s"},
    ],
    "free_pools": [
        {"name": "quick", "resource": "cpus", "keep": "20%", "access": [{"time": "< 30s"}]},
        {"name": "gpus", "nodes": {"having": "gpu"}, "access": [{"gpu": ">= 1"}]},
    ],
}
POWER = PowerRules(
    Corridor((0,), (0,), (1100,)),
    (
        NodePower("gpu", NodeSet(having="gpu"), 100, 500),
        NodePower("rest", NodeSet(), 70, 170),
    ),
    base_w=50,
)
PROTECT = {"gpu": {"cpus": 1, "mem_mib": 300}}


def decide(snapshot, plan, *, rules=None, protect=None, power=None):
    policy = {"plan": plan, **subject.beside(order="fcfs", place="sequential")}
    site = a_site(rules, protect)
    site = with_power(site, power)
    made = run(snapshot, Memory(), build(parse_policy(policy)), site=site)
    assert check(snapshot, made, site) == (), gantt(snapshot, made)
    return made


def started(plan):
    return (plan.start_s != NEVER) & (plan.start_s != UNPLANNED)


def row_of(snapshot, plan, job):
    (row,) = np.flatnonzero(plan.job == snapshot.jobs.id.tolist().index(job))
    return int(row)


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
class TestEveryPlan:
    @each(seed=SEEDS)
    def test_chunks_lie_as_requested(self, plan, seed):
        """`check` judges them; what lies in chunks anywhere does so under every policy."""
        snapshot = random_world(seed, chunks=True)
        decide(with_bounds(snapshot, seed) if seed % 2 else snapshot, plan)

    @each(seed=SEEDS)
    def test_rules_hold_at_every_second(self, plan, seed):
        snapshot = random_world(seed, chunks=bool(seed % 2))
        made = decide(snapshot, plan, rules=RULES)
        lowered = lower(Site(parse_rules(RULES, "rules"), cron_s=DAY_S), snapshot)
        assert stranded(lowered, made) == []

    @each(seed=SEEDS)
    def test_protections_hold(self, plan, seed):
        """No more of a GPU node is held by jobs without GPUs than it does not keep."""
        snapshot = random_world(seed)
        made, jobs = decide(snapshot, plan, protect=PROTECT), snapshot.jobs
        cpus, mem, gpu = (snapshot.resources.index(name) for name in ("cpus", "mem_mib", "gpu"))
        keeps = snapshot.nodes.capacity[:, gpu] > 0
        width = np.diff(made.indptr)
        job = np.repeat(made.job, width)
        want = jobs.per_node[job] + jobs.per_task[job] * made.tasks[:, None]
        start_s, end_s = np.repeat(made.start_s, width), np.repeat(made.end_s, width)
        outside = (want[:, gpu] == 0) & keeps[made.nodes]
        assert not (outside & jobs.exclusive[job]).any()
        for at in np.flatnonzero(outside).tolist():
            beside = outside & (made.nodes == made.nodes[at])
            beside &= (start_s <= start_s[at]) & (end_s > start_s[at])
            capacity = snapshot.nodes.capacity[made.nodes[at]]
            assert want[beside, cpus].sum() <= capacity[cpus] - 1
            assert want[beside, mem].sum() <= max(capacity[mem] - 300, 0)

    def test_several_kinds_start_where_there_is_room(self, plan):
        nodes = [a_node(cpus=4), a_node(cpus=4), a_node(cpus=4, features=("ib",))]
        job = a_job(chunks="2:ncpus=3+1:ncpus=2:ib=true,place=scatter")
        made = decide(a_snapshot(nodes=nodes, jobs=[job])(), plan)
        assert made.start_s.tolist() == [0]
        assert made.groups[made.nodes == 2].tolist() == [[0, 1]]

    def test_a_packed_job_waits_for_one_node(self, plan):
        job = a_job(chunks="1:ncpus=2+1:ncpus=2:ngpus=1,place=pack")
        nodes = [a_node(cpus=4), a_node(cpus=4, gpus=1)]
        running = [a_running_job((1,), end_s=70, cpus=1)]
        made = decide(a_snapshot(nodes=nodes, jobs=[job], running=running)(), plan)
        assert made.start_s.tolist() == [70]
        assert made.nodes.tolist() == [1]
        assert made.reasons[0].code is ReasonCode.RESOURCES

    def test_a_limit_is_told(self, plan):
        rules = {"limits": [{"user": "*", "resource": "cpus", "items": 4}]}
        jobs = [a_job(limit_s=50), a_job(limit_s=50), a_job(nodes=2)]
        made = decide(a_snapshot(nodes=4, jobs=jobs)(), plan, rules=rules)
        assert (made.start_s == 0).sum() == 1
        texts = {made.job[row]: made.reasons[row] for row in range(3) if made.start_s[row]}
        assert texts[2].code is ReasonCode.NEVER
        assert "limit of user" in texts[2].text
        assert texts[1].code is ReasonCode.LIMIT
        assert "limit of user" in texts[1].text

    @each(seed=SEEDS)
    def test_the_bound_of_power_holds_at_every_second(self, plan, seed):
        snapshot = random_world(seed, chunks=bool(seed % 2))
        made = decide(snapshot, plan, power=POWER)
        assert stranded(lower(with_power(Site(), POWER), snapshot), made) == []

    def test_power_is_told(self, plan):
        upper = Corridor((0,), (0,), (4 * 70 + 300,))
        power = PowerRules(upper, (NodePower("all", NodeSet(), 70, 170),))
        jobs = [a_job(2, limit_s=50), a_job(2, limit_s=50), a_job(4)]
        made = decide(a_snapshot(nodes=4, jobs=jobs)(), plan, power=power)
        assert (made.start_s == 0).sum() == 1
        texts = {made.job[row]: made.reasons[row] for row in range(3) if made.start_s[row]}
        assert texts[2].code is ReasonCode.NEVER
        assert texts[2].text.startswith("needs 400 W, more than the 300 W")
        assert texts[1].code is ReasonCode.POWER
        assert texts[1].text == "waits for power: needs 200 W, 100 W are free of 580 W"

    def test_a_free_pool_keeps_its_nodes(self, plan):
        pool = {"name": "p", "nodes": {"names": "n1"}, "access": [{"users": ["nobody"]}]}
        rules = {"free_pools": [pool]}
        made = decide(a_snapshot(nodes=2, jobs=[a_job(), a_job(2)])(), plan, rules=rules)
        assert made.nodes.tolist() == [1]
        never = made.reasons[int(np.flatnonzero(made.job == 1)[0])]
        assert never.code is ReasonCode.NEVER
        assert "FreePool p" in never.text

    def test_a_fixed_start_goes_before_what_can_wait(self, plan):
        jobs = [
            a_job(2, limit_s=100, id="first"),
            a_job(chunks="2:ncpus=4+1:ncpus=1,place=free", limit_s=100, id="mixed"),
            a_job(2, limit_s=50, fixed=True, begin_s=120, id="fixed"),
        ]
        running = [a_running_job((0, 1), end_s=50)]
        snapshot = a_snapshot(nodes=2, jobs=jobs, running=running)()
        for world in (snapshot, a_snapshot(nodes=2, jobs=jobs[::2], running=running)()):
            made = decide(world, plan)
            assert made.start_s[row_of(world, made, "fixed")] == 120
            assert made.start_s[row_of(world, made, "first")] == 170

    def test_a_reservation_that_ends_before_is_told(self, plan):
        reservation = a_reservation((0,), 0, 80)
        job = a_job(reservation=0, limit_s=10)
        running = [a_running_job((0,), end_s=100)]
        for more in ([], [a_job(chunks="1:ncpus=1+1:ncpus=2")]):
            snapshot = a_snapshot(
                nodes=1, jobs=[job, *more], running=running, reservations=[reservation]
            )()
            made = decide(snapshot, plan)
            row = int(np.flatnonzero(made.job == 0)[0])
            assert made.start_s[row] == NEVER
            assert made.reasons[row].code is ReasonCode.RESOURCES
            assert made.reasons[row].text == "reservation maint ends before the job can start"

    def test_licences_that_a_reservation_keeps_are_not_there_for_others(self, plan):
        nobody, three = np.zeros(0, dtype=np.int32), np.array([3])
        kept = Reservation("exam", 150, 400, nobody, three)
        for limit_s, start_s in ((150, 0), (151, 400)):
            job = a_job(limit_s=limit_s, licences=(2,))
            snapshot = a_snapshot(
                nodes=2, jobs=[job], reservations=[kept], licences=[("matlab", 4)]
            )()
            assert decide(snapshot, plan).start_s.tolist() == [start_s]

    @each(seed=SEEDS)
    def test_every_row_that_waits_says_why(self, plan, seed):
        made = decide(random_world(seed, chunks=True), plan, rules=RULES)
        for row in np.flatnonzero(made.start_s != 0).tolist():
            assert made.reasons[row] is not None
            assert made.reasons[row].text
