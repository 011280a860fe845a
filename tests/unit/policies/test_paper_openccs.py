# SPDX-License-Identifier: Apache-2.0
"""Formulas and examples of the OpenCCS paper that are about planning as a whole, by section.

docs/design/0004-planning.md lists where all the others are tested.
"""

import numpy as np
import pytest

from bridge.core import NEVER, Book, pack_nodes
from bridge.model.job import Hold
from bridge.model.reasons import ReasonCode
from bridge.planning.site_rules.capacity_constraints import Mode
from bridge.policies.place.weighted import Weighted
from bridge.registry import build, parse_policy
from schedbridge_contracts.builders import a_job, a_node, a_reservation, a_running_job, a_snapshot
from schedbridge_contracts.crosses import each
from schedbridge_contracts.cycles import Memory, a_site, run

H = 3600
GIB = 1024


def planned(snapshot, memory=None, rules=None, protect=None, **parameters):
    """Start and nodes (by name) of each job, and its reason."""
    policy = build(parse_policy({"preset": "openccs", "plan": {"name": "openccs", **parameters}}))
    plan = run(snapshot, memory or Memory(), policy, site=a_site(rules, protect))
    return {
        snapshot.jobs.id[plan.job[row]]: (
            int(plan.start_s[row]),
            [snapshot.nodes.names[node] for node in plan.nodes_of(row)],
            plan.reasons[row],
        )
        for row in range(len(plan))
    }


def test_section_2_a_job_begins_in_the_second_in_which_the_one_before_it_has_ended():
    jobs = [a_job(1, id="A", limit_s=60), a_job(1, id="B", limit_s=60)]
    found = planned(a_snapshot(nodes=1, jobs=jobs)())
    assert [found[job][0] for job in "AB"] == [0, 60]


@pytest.mark.parametrize(
    ("cores", "hours", "may"),
    [(1, 1024, True), (1024, 1, True), (512, 2, True), (1, 1025, False), (513, 2, False)],
)
def test_section_3_an_area_of_1024_h_is_any_combination_of_cores_and_time(cores, hours, may):
    rules = {"limits": [{"user": "*", "resource": "cpus", "area": "1024h"}]}
    job = a_job(shared=True, tasks=cores, max_nodes=cores, limit_s=hours * H, id="job")
    start_s, _, reason = planned(a_snapshot(nodes=[a_node(2048)], jobs=[job])(), rules=rules)["job"]
    assert (start_s == 0) == may
    assert may or reason.code is ReasonCode.NEVER


@pytest.mark.parametrize(
    ("available", "maximum"), [(40, 30), (100, 45), (66, 30), (68, 30), (69, 31)]
)
def test_section_3_30_45_percent_is_30_items_or_45_percent_of_what_is_available(available, maximum):
    rules = {"limits": [{"user": "*", "resource": "cpus", "items": "30/45%"}]}
    jobs = [a_job(shared=True, tasks=n, max_nodes=n, id=str(n)) for n in (maximum, maximum + 1)]
    found = planned(a_snapshot(nodes=[a_node(available)], jobs=jobs)(), rules=rules)
    assert found[str(maximum)][0] == 0
    assert found[str(maximum + 1)][2].code is ReasonCode.NEVER


@each(seed=range(50))
def test_section_5_1_the_user_s_view_is_mf_of_system_and_pool_and_what_the_limit_leaves(seed):
    """URS = sRS + FreePool; uRS = mf(uRS, limit - usdRS): the book starts where the view says."""
    rng = np.random.default_rng(seed)
    cores, length, wants = 16, int(rng.integers(1, 12)), int(rng.integers(1, 9))
    book = Book(0, np.array([[cores]], dtype=np.int64), np.zeros(1, dtype=np.int32))
    one = np.ones(1, dtype=np.int64)
    everywhere = book.add_class(pack_nodes(np.ones((1, 1), dtype=bool))[0])
    unit = book.add_request(one, one.reshape(1, 1), np.array([everywhere], dtype=np.int32))

    def steps(free):
        """What is free in each second, as a constraint's steps."""
        edges = np.flatnonzero(np.diff(free, prepend=-1))
        return edges.astype(np.int64), free[edges]

    def interval(latest, lasts):
        begin = int(rng.integers(0, latest))
        return slice(begin, begin + int(rng.integers(1, lasts)))

    horizon = 80  # after the end of everything
    pool = np.zeros(horizon, dtype=np.int64)
    pool[interval(20, 20)] = rng.integers(1, 8)
    limit = np.full(horizon, cores, dtype=np.int64)
    limit[interval(20, 20)] -= rng.integers(4, 14)
    to_all = book.add_constraint(*steps(cores - pool))
    of_user = book.add_constraint(*steps(limit))
    system, used = np.zeros_like(pool), np.zeros_like(pool)
    for job in range(int(rng.integers(0, 6))):  # what is planned already, some of it the user's own
        start, lasts, n = (int(rng.integers(*span)) for span in ((0, 25), (1, 12), (1, 3)))
        mine = bool(rng.integers(0, 2))
        terms = [(to_all, n, Mode.COUNT)] + [(of_user, n, Mode.COUNT)] * mine
        columns = tuple(
            np.array(column, dtype=kind)
            for column, kind in zip(
                zip(*terms, strict=True), (np.int32, np.int64, np.int8), strict=True
            )
        )
        where = (np.zeros(1, dtype=np.int32),) * 2
        request = book.add_request(
            np.array([n]), one.reshape(1, 1), np.array([everywhere], dtype=np.int32)
        )
        if book.book(job, request, start, lasts, columns, *where, np.array([n], dtype=np.int32)):
            system[start : start + lasts] += n
            used[start : start + lasts] += n * mine
    free = np.minimum(cores - (system + pool), limit - used)
    assert unit == 0
    request = book.add_request(
        np.array([wants]), one.reshape(1, 1), np.array([everywhere], dtype=np.int32)
    )
    terms = (
        np.array([to_all, of_user], dtype=np.int32),
        np.array([wants, wants], dtype=np.int64),
        np.array([Mode.BOTH, Mode.BOTH], dtype=np.int8),
    )
    found = book.find(request, length, terms)
    enough = np.lib.stride_tricks.sliding_window_view(free >= wants, length).all(axis=1)
    assert found[0] == np.flatnonzero(enough)[0]


def test_section_5_2_a_node_weighs_its_largest_share_of_the_system_and_its_priority_goes_before():
    """W = max(r / r_system), then W * cores + prio * cores; OCuLUS's kinds of nodes."""
    nodes = [
        a_node(16, 64 * GIB), a_node(16, 256 * GIB), a_node(32, 1024 * GIB),
        a_node(16, 64 * GIB, gpus=1), a_node(16, 64 * GIB), a_node(16, 64 * GIB, weight=2),
    ]  # fmt: skip
    snapshot = a_snapshot(nodes=nodes)()
    cores = sum(node.cpus for node in nodes)
    capacity = snapshot.nodes.capacity.astype(float)
    weight = (capacity / capacity.sum(axis=0)).max(axis=1) * cores
    weight += snapshot.nodes.weight * cores
    rank = Weighted().preference(snapshot).rank
    assert np.argsort(rank, kind="stable").tolist() == np.argsort(weight, kind="stable").tolist()
    assert rank.tolist() == [0, 1, 2, 3, 0, 4]  # the only GPU is dearer than two thirds of memory


def test_section_5_2_expensive_chunks_come_first_and_on_cheap_nodes():
    """The large chunk would lie on the large node, too; small ones must not take its place."""
    nodes = [a_node(16, 64 * GIB), a_node(32, 1024 * GIB)]
    job = a_job(id="job", chunks="16:ncpus=1+1:ncpus=16,place=free")
    assert planned(a_snapshot(nodes=nodes, jobs=[job])())["job"][:2] == (0, ["n1", "n2"])
    alone = a_job(id="job", chunks="1:ncpus=16:mem=60gb,place=free")
    assert planned(a_snapshot(nodes=nodes, jobs=[alone])())["job"][1] == ["n1"]
    both = a_job(id="job", chunks="4:ncpus=1+1:ncpus=12,place=free")
    assert planned(a_snapshot(nodes=nodes, jobs=[both])())["job"][1] == ["n1"]


def test_section_5_3_revoking_is_the_inverse_of_booking():
    book = Book(0, np.array([[4], [4]], dtype=np.int64), np.zeros(2, dtype=np.int32))
    everywhere = book.add_class(pack_nodes(np.ones((1, 2), dtype=bool))[0])
    limit = book.add_constraint(np.zeros(1, dtype=np.int64), np.array([6], dtype=np.int64))
    request = book.add_request(
        np.array([2]), np.array([[2]]), np.array([everywhere], dtype=np.int32), 2
    )
    terms = (
        np.array([limit], dtype=np.int32), np.array([4]), np.array([Mode.BOTH], dtype=np.int8),
    )  # fmt: skip
    before = (book.free_at(5).tolist(), [c.tolist() for c in book.constraint_use(limit)])
    start, *where = book.find(request, 10, terms)
    assert book.book(1, request, start, 10, terms, *where)
    assert book.free_at(5).tolist() == [[2], [2]]  # nRS
    assert max(book.constraint_use(limit)[2].tolist()) == 4  # usdRS
    book.revoke(1)
    assert (book.free_at(5).tolist(), [c.tolist() for c in book.constraint_use(limit)]) == before


def test_section_5_4_backfilling_takes_the_affected_jobs_by_priority_and_moves_them_if_earlier():
    memory = Memory()
    running = [a_running_job(nodes=(0, 1), end_s=1000), a_running_job(nodes=(2,), end_s=3000)]
    jobs = [
        a_job(3, id="wide", priority=9),  # waits for n3, whatever ends
        a_job(2, id="low", priority=1, limit_s=500),
        a_job(2, id="high", priority=5, limit_s=500),
    ]
    world = a_snapshot(nodes=3, jobs=jobs, running=running)
    before = {job: row[0] for job, row in planned(world(), memory).items()}
    assert before == {"wide": 3000, "high": 1000, "low": 1500}
    world.running, world.now_s = running[1:], 100  # the first has ended early
    after = {job: row[0] for job, row in planned(world(), memory).items()}
    assert after == {"wide": 3000, "high": 100, "low": 600}


def test_section_5_4_replanning_displaces_jobs_of_lower_priority():
    memory = Memory()
    nodes = [a_node(), a_node(), a_node()]
    jobs = [a_job(1, id="low", priority=1), a_job(2, id="high", priority=5)]
    world = a_snapshot(nodes=nodes, jobs=jobs, running=[a_running_job(nodes=(0, 1, 2), end_s=100)])
    assert {job: row[0] for job, row in planned(world(), memory).items()} == {
        "high": 100, "low": 100,
    }  # fmt: skip
    nodes[0].usable = False
    assert {job: row[0] for job, row in planned(world(), memory).items()} == {
        "high": 100, "low": 200,
    }  # fmt: skip


def test_section_5_4_a_reservation_is_a_system_of_its_own():
    """The same jobs get the same places inside it as on a cluster of its nodes alone."""
    requested = [(2, 100), (1, 300), (2, 50), (3, 100), (1, 20)]
    alone = [a_job(n, id=str(at), limit_s=t) for at, (n, t) in enumerate(requested)]
    inside = [a_job(n, id=str(at), limit_s=t, reservation=0) for at, (n, t) in enumerate(requested)]
    reservation = a_reservation((2, 3, 4), 0, 100_000, "course")
    others = [a_job(5, id="other", limit_s=100)]
    own = planned(a_snapshot(nodes=3, jobs=alone)())
    found = planned(a_snapshot(nodes=6, jobs=inside + others, reservations=[reservation])())
    shift = {"n1": "n3", "n2": "n4", "n3": "n5"}
    for job, (start_s, names, _) in own.items():
        assert found[job][:2] == (start_s, [shift[name] for name in names])
    assert found["other"][0] == 100_000


def test_section_5_4_exclusive_access_where_nodes_have_16_32_and_240_cores():
    """10:ncpus=12, place=free:excl: how many cores that is depends on where the chunks lie."""
    job = a_job(id="job", chunks="10:ncpus=12,place=free:excl")
    kinds = {16: 3, 32: 2, 240: 1}
    nodes = [a_node(cpus) for cpus, count in kinds.items() for _ in range(count)]
    start_s, names, _ = planned(a_snapshot(nodes=nodes, jobs=[job])())["job"]
    assert (start_s, len(names)) == (0, 6)  # 1 + 1 + 1, 2 + 2, and 3 on the last
    small = [a_node(16)] * 3 + [a_node(32)] * 2
    assert planned(a_snapshot(nodes=small, jobs=[job])())["job"][2].code is ReasonCode.NEVER
    busy = a_running_job(nodes=(5,), end_s=100, cpus=1, shared=True)
    found = planned(a_snapshot(nodes=nodes, jobs=[job], running=[busy])())
    assert found["job"][0] == 100  # though 239 of its cores are free


@pytest.mark.parametrize(
    ("requested", "may"),
    [
        ("1:ncpus=14", True), ("1:ncpus=15", False),
        ("1:ncpus=16:ngpus=1", True), ("1:ncpus=1,place=pack:excl", False),
        ("1:ncpus=1:ngpus=1,place=pack:excl", True),
    ],
)  # fmt: skip
def test_section_5_4_x_cores_are_kept_for_jobs_with_gpus(requested, may):
    """Others get min(available - X, requested), here X = 2 of 16, and no node to themselves."""
    snapshot = a_snapshot(nodes=[a_node(16, gpus=1)], jobs=[a_job(id="job", chunks=requested)])()
    start_s, _, _ = planned(snapshot, protect={"gpu": {"cpus": 2}})["job"]
    assert (start_s == 0) == may


def test_section_5_1_the_search_interval_is_that_of_the_kind_of_job():
    """Best effort from now on, for ever; fixed start and deadline within what they say."""
    running = [a_running_job(nodes=(0,), end_s=500)]

    def start(**kind):
        snapshot = a_snapshot(nodes=1, jobs=[a_job(1, id="job", **kind)], running=running)()
        return planned(snapshot)["job"][0]

    assert start() == 500
    assert start(deadline_s=600) == 500
    assert start(deadline_s=599) == NEVER
    assert start(fixed=True, begin_s=700, hold=Hold.BEGIN_TIME) == 700
    assert start(fixed=True, begin_s=499, hold=Hold.BEGIN_TIME) == NEVER
