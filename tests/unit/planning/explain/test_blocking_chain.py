# SPDX-License-Identifier: Apache-2.0
import dataclasses

import numpy as np
import pytest

from bridge.model.job import Hold
from bridge.model.reasons import Reason, ReasonCode
from bridge.planning.explain.blocking_chain import BlockingChains, LinkKind
from bridge.registry import build, parse_policy
from bridge.units import NEVER, UNPLANNED
from schedbridge_contracts.builders import a_job, a_reservation, a_running_job, a_snapshot
from schedbridge_contracts.crosses import each
from schedbridge_contracts.cycles import Memory, a_site, run
from schedbridge_contracts.worlds import random_world


def planned(snapshot, policy="conservative", rules=None):
    return run(snapshot, Memory(), build(parse_policy(policy)), site=a_site(rules))


def chain(snapshot, row, **options):
    return BlockingChains(snapshot, planned(snapshot)).of(row, **options)


def test_a_job_that_starts_now_waits_for_nothing():
    assert chain(a_snapshot(jobs=[a_job()])(), 0) == ()


def test_through_waiting_jobs_to_the_running_one():
    snapshot = a_snapshot(
        nodes=2,
        running=[a_running_job(nodes=(0, 1), end_s=50)],
        jobs=[a_job(nodes=2, limit_s=100), a_job(nodes=2, limit_s=100), a_job(nodes=1)],
    )()
    links = chain(snapshot, 2)
    assert [(link.kind, link.row, link.until_s) for link in links] == [
        (LinkKind.WAITING, 1, 250),
        (LinkKind.WAITING, 0, 150),
        (LinkKind.RUNNING, 0, 50),
    ]
    assert [link.shared_nodes for link in links] == [1, 2, 2]


def test_it_can_be_cut_short():
    jobs = [a_job(nodes=2) for _ in range(8)]
    snapshot = a_snapshot(nodes=2, running=[a_running_job(nodes=(0, 1))], jobs=jobs)()
    assert len(chain(snapshot, 7, longest=3)) == 3


def test_a_running_job_past_its_time_ends_in_the_next_second():
    snapshot = a_snapshot(nodes=1, now_s=500, running=[a_running_job(end_s=400)], jobs=[a_job()])()
    assert [(link.kind, link.until_s) for link in chain(snapshot, 0)] == [(LinkKind.RUNNING, 501)]


def test_somebody_elses_reservation():
    snapshot = a_snapshot(
        nodes=1, reservations=[a_reservation([0], 10, 300)], jobs=[a_job(limit_s=100)]
    )()
    assert [(link.kind, link.row, link.until_s) for link in chain(snapshot, 0)] == [
        (LinkKind.RESERVATION, 0, 300)
    ]


def test_the_begin_time():
    snapshot = a_snapshot(jobs=[a_job(begin_s=70, hold=Hold.BEGIN_TIME)])()
    assert [(link.kind, link.until_s) for link in chain(snapshot, 0)] == [(LinkKind.BEGIN_TIME, 70)]


def test_a_licence():
    snapshot = a_snapshot(
        nodes=2,
        licences=[("sim", 1)],
        running=[a_running_job(nodes=(0,), end_s=80, licences=(1,))],
        jobs=[a_job(nodes=1, licences=(1,), excluded=(0,))],
    )()
    (link,) = chain(snapshot, 0)
    assert (link.kind, link.licence, link.until_s) == (LinkKind.RUNNING, "sim", 80)


def test_a_limit_is_held_by_jobs_of_the_same_user_or_account_wherever_they_run():
    running = [
        a_running_job(nodes=(0, 1, 2), end_s=50, user="bob", account="b"),
        a_running_job(nodes=(3,), end_s=50, user="eve", account="a"),
        a_running_job(nodes=(4,), end_s=50, user="alice", account="a"),
    ]
    job = a_job(user="alice", account="a")
    rules = {"limits": [{"user": "alice", "resource": "cpus", "items": 4}]}
    for count, holder in ((3, 2), (2, 1), (1, 0)):
        snapshot = a_snapshot(nodes=6, running=running[:count], jobs=[job])()
        plan = planned(snapshot, "openccs", rules)
        if count < 3:  # nobody of hers runs: as if she had to wait for the others
            reason = Reason(ReasonCode.LIMIT, "the limit is reached until then")
            plan = dataclasses.replace(
                plan, start_s=np.array([50]), end_s=np.array([150]), reasons=(reason,)
            )
        (link,) = BlockingChains(snapshot, plan).of(0)
        assert (link.kind, link.row, link.shared_nodes) == (LinkKind.RUNNING, holder, 0)


@pytest.mark.parametrize("policy", ["conservative", "easy", "slurm-like", "openccs"])
@each(seed=range(30))
def test_every_planned_start_is_explained_and_every_chain_ends(seed, policy):
    snapshot = random_world(seed)
    plan = planned(snapshot, policy)
    chains = BlockingChains(snapshot, plan)
    for row in range(len(plan)):
        links = chains.of(row, longest=100)
        start_s = int(plan.start_s[row])
        if start_s in (NEVER, UNPLANNED, snapshot.now_s):
            assert links == ()
            continue
        assert links, f"seed {seed}, row {row}: nothing explains the start at {start_s}"
        assert links[0].until_s == start_s
        ends = [link.until_s for link in links]
        assert ends == sorted(ends, reverse=True)
        assert all(link.kind is LinkKind.WAITING for link in links[:-1])
