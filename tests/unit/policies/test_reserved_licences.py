# SPDX-License-Identifier: Apache-2.0
"""Licences that reservations keep: planned around, and planned in."""

import dataclasses

import numpy as np

from bridge.model.reasons import ReasonCode
from bridge.model.snapshot import Reservation
from bridge.planning.explain.blocking_chain import BlockingChains, LinkKind
from bridge.planning.explain.variant_search import Conditions
from bridge.planning.explain.what_if import what_if
from bridge.registry import build, parse_policy
from bridge.units import NEVER
from schedbridge_contracts.builders import a_job, a_running_job, a_snapshot
from schedbridge_contracts.crosses import each
from schedbridge_contracts.cycles import Memory, check, run

LICENCES = [("ansys", 2), ("matlab", 4)]


def a_keeper(name, start_s, end_s, *, ansys=0, matlab=0, nodes=()):
    return Reservation(
        name, start_s, end_s, np.array(nodes, dtype=np.int32), np.array([ansys, matlab])
    )


def wants(matlab, limit_s=100, **requested):
    return a_job(1, limit_s=limit_s, shared=True, cpus=1, licences=(0, matlab), **requested)


def planned(*jobs, reservations=(), running=()):
    snapshot = a_snapshot(
        nodes=8, jobs=jobs, running=running, reservations=reservations, licences=LICENCES
    )()
    policy = build(parse_policy("openccs"))
    return snapshot, run(snapshot, Memory(), policy, np.random.default_rng(0))


def starts(*jobs, **world):
    snapshot, plan = planned(*jobs, **world)
    by_job = dict(zip(plan.job.tolist(), plan.start_s.tolist(), strict=True))
    return [by_job[row] for row in range(len(snapshot.jobs))]


def test_what_is_kept_is_not_there_for_others_while_the_reservation_lasts():
    kept = a_keeper("exam", 150, 400, matlab=3)
    assert starts(wants(2), reservations=[kept]) == [0]  # ends before it begins
    assert starts(wants(2, 150), reservations=[kept]) == [0]  # ends as it begins
    assert starts(wants(2, 151), reservations=[kept]) == [400]
    assert starts(wants(1, 1000), reservations=[kept]) == [0]  # one is left all the time
    assert starts(wants(1, 1000), wants(1, 1000), reservations=[kept]) == [0, 400]


def test_reservations_at_the_same_time_add_up():
    two = [a_keeper("a", 100, 300, matlab=2), a_keeper("b", 200, 400, matlab=2)]
    assert starts(wants(2, 200), reservations=two) == [0]  # until b begins
    assert starts(wants(2, 201), reservations=two) == [300]  # from the end of a
    assert starts(wants(1, 250), reservations=two) == [300]


def test_jobs_of_the_reservation_have_what_it_keeps():
    kept = a_keeper("exam", 100, 400, matlab=4, nodes=(0, 1))
    inside, outside = wants(3, reservation=0), wants(1)
    assert starts(inside, outside, reservations=[kept]) == [100, 0]
    longer = wants(1, 101)
    assert starts(inside, longer, reservations=[kept]) == [100, 400]


def test_what_another_reservation_keeps_is_not_there_for_them():
    own = a_keeper("own", 0, 1000, matlab=1, nodes=(0, 1))
    other = a_keeper("other", 0, 300, matlab=2)
    assert starts(wants(2, reservation=0), reservations=[own, other]) == [0]
    assert starts(wants(3, reservation=0), reservations=[own, other]) == [300]


def test_a_reservation_of_licences_alone_says_nothing_of_nodes():
    kept = dataclasses.replace(a_keeper("exam", 100, 400, matlab=4), anywhere=True)
    closed = a_keeper("maint", 0, 1000, nodes=(0, 1, 2, 3, 4, 5, 6))
    snapshot, plan = planned(wants(3, reservation=0), reservations=[kept, closed])
    assert plan.start_s.tolist() == [100]
    assert plan.nodes.tolist() == [7]  # those of others are not its own
    assert not check(snapshot, plan)


def test_a_reservation_without_that_licence_helps_nobody():
    own = a_keeper("own", 0, 1000, ansys=1, nodes=(0, 1))
    other = a_keeper("other", 0, 300, matlab=4)
    assert starts(wants(1, reservation=0), reservations=[own, other]) == [300]


def test_as_slurm_judges_what_is_kept_stays_kept_though_its_jobs_hold_it():
    kept = a_keeper("exam", 0, 400, matlab=2, nodes=(0, 1))
    held = a_running_job(nodes=(0,), end_s=250, shared=True, cpus=1, licences=(0, 2))
    assert starts(wants(1), reservations=[kept], running=[held]) == [250]


def test_what_runs_into_a_reservation_counts():
    kept = a_keeper("exam", 100, 400, matlab=2)
    held = a_running_job(nodes=(0,), end_s=200, shared=True, cpus=1, licences=(0, 2))
    assert starts(wants(1), wants(1, 50), reservations=[kept], running=[held]) == [0, 0]
    assert starts(wants(1, 101), wants(1, 100), reservations=[kept], running=[held]) == [200, 0]


def test_it_is_explained():
    kept = a_keeper("exam", 50, 400, matlab=4)
    snapshot, plan = planned(wants(1), reservations=[kept])
    assert plan.start_s[0] == 400
    assert plan.reasons[0].code is ReasonCode.LICENCES
    assert plan.reasons[0].text == "licence matlab is in use or kept by a reservation"
    (link,) = BlockingChains(snapshot, plan).of(0)
    assert (link.kind, link.row, link.until_s) == (LinkKind.RESERVATION, 0, 400)
    (shorter,) = what_if(snapshot, plan, 0, Conditions(whole_queue=True), step_s=10)
    assert (shorter.time_limit_s, shorter.start_s) == (50, 0)


def test_one_that_is_kept_for_ever_is_never():
    kept = a_keeper("exam", 0, NEVER, matlab=4)
    _, plan = planned(wants(1), reservations=[kept])
    assert plan.start_s[0] == NEVER
    assert plan.reasons[0].code is ReasonCode.NEVER
    assert "reservations keep too many of the 4" in plan.reasons[0].text


@each(seed=range(30))
def test_no_second_has_more_in_use_than_is_left(seed):
    rng = np.random.default_rng(seed)
    reservations = [
        a_keeper(
            f"r{at}", int(start), int(start + rng.integers(20, 200)),
            ansys=int(rng.integers(0, 3)), matlab=int(rng.integers(0, 4)), nodes=(at,),
        )
        for at, start in enumerate(rng.integers(0, 300, 3))
    ]  # fmt: skip
    running = [
        a_running_job(nodes=(7,), end_s=int(rng.integers(1, 100)), shared=True, licences=(1, 1))
    ]
    jobs = [
        dataclasses.replace(
            wants(int(rng.integers(0, 4)), int(rng.integers(1, 120))),
            reservation=int(rng.integers(-1, 3)) if rng.random() < 0.3 else -1,
        )
        for _ in range(25)
    ]
    snapshot, plan = planned(*jobs, reservations=reservations, running=running)
    rows = [row for row in range(len(plan)) if plan.start_s[row] not in (NEVER, -1)]
    assert rows
    for licence in range(2):
        for at, row in enumerate(rows):  # planned in this order: those behind may take what is kept
            job = plan.job[row]
            wanted = snapshot.jobs.licences[job, licence]
            if not wanted:
                continue
            for t in range(int(plan.start_s[row]), int(plan.end_s[row])):
                held = running[0].licences[licence] * (t < running[0].end_s)
                uses = [
                    snapshot.jobs.licences[plan.job[other], licence]
                    * (plan.start_s[other] <= t < plan.end_s[other])
                    for other in rows
                ]
                kept = sum(
                    keeper.licences[licence]
                    for which, keeper in enumerate(reservations)
                    if keeper.start_s <= t < keeper.end_s
                    and snapshot.jobs.reservation[job] != which
                )
                assert held + sum(uses[: at + 1]) + kept <= snapshot.licence_total[licence]
                assert held + sum(uses) <= snapshot.licence_total[licence]
