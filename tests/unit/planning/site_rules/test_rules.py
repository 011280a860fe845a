# SPDX-License-Identifier: Apache-2.0
"""The paper's Example 1 and its three FreePools, and what a change of rules strands."""

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from bridge.model.plan import Plan
from bridge.model.reasons import ReasonCode
from bridge.model.resources import Chunk, ChunkRequest, LoweredChunks
from bridge.model.rules.limits import ConsumerKind, FreePool, Items, Limit, Rules
from bridge.model.rules.node_set import NodeSet
from bridge.model.rules.site import Site
from bridge.planning.requests.amounts import Amounts
from bridge.planning.site_rules.capacity_constraints import UNBOUNDED, Mode, Terms
from bridge.planning.site_rules.freepools import JobClosure
from bridge.planning.site_rules.lowered_rules import (
    Extent,
    LoweredRules,
    Sums,
    lower,
    stranded,
    unknown_to,
)
from bridge.units import DAY_S, NEVER, UNPLANNED
from schedbridge_contracts.builders import a_job, a_node, a_partition, a_running_job, a_snapshot
from schedbridge_contracts.cycles import parse_rules

HOUR_S = 3600


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


JULY, AUGUST = at("2017-07-01"), at("2017-08-10")


def terms_of(lowered: LoweredRules) -> Terms:
    """Of all jobs, in their first partition, on their least nodes."""
    jobs = lowered.snapshot.jobs
    rows = np.arange(len(jobs))
    where = np.array([parts[0] for parts in jobs.partitions], dtype=np.int64)
    return lowered.terms(rows, where, jobs.time_limit_s, Extent(jobs.min_nodes))


def told(lowered: LoweredRules, job: int = 0) -> list[tuple[str, int, Mode]]:
    """One job's terms: label, amount, mode."""
    terms = terms_of(lowered)
    own = terms.of(job)
    return [
        (lowered.constraints.labels[constraint], amount, Mode(mode))
        for constraint, amount, mode in zip(
            terms.constraint[own].tolist(), terms.amount[own].tolist(), terms.mode[own].tolist(),
            strict=True,
        )
    ]  # fmt: skip


def fits(lowered: LoweredRules, start_s: int, job: int = 0) -> bool:
    terms = terms_of(lowered)
    end_s = start_s + int(lowered.snapshot.jobs.time_limit_s[job])
    return Sums(lowered).broken(start_s, end_s, terms, job) is None


def shared(**requested: object) -> a_job:
    return a_job(shared=True, **requested)  # type: ignore[arg-type]


# ------------------------------------------------------------------ Example 1

EXAMPLE_1 = parse_rules(
    {
        "limits": [
            {"user": "alice", "resource": "*", "items": "unlimited", "duration": "7d"},
            {
                "user": "alice", "resource": "cpus", "items": 640, "duration": "4d3h",
                "valid": {"from": "2017-08-01", "until": "2017-08-31"},
            },
            {"user": "alice", "resource": "gpu", "items": "unlimited", "area": "500h"},
            {"user": "alice", "resource": "arrayjobs", "items": 1000},
            {"user": "alice", "resource": "jobs", "items": 5000},
        ],
    }
)  # fmt: skip


def example_1(now_s: int, *jobs: a_job, running: tuple[a_running_job, ...] = ()) -> LoweredRules:
    nodes = [a_node(cpus=64, mem_mib=65536, gpus=4) for _ in range(20)]
    jobs = tuple(replace(job, user="alice") for job in jobs)
    snapshot = a_snapshot(nodes=nodes, jobs=jobs, running=running, now_s=now_s)()
    return lower(Site(EXAMPLE_1, cron_s=365 * DAY_S), snapshot)


def test_example_1_640_cores_in_august_and_any_number_before_and_after():
    job = shared(nodes=11, cpus=64, limit_s=DAY_S)
    lowered = example_1(JULY, job)
    assert fits(lowered, JULY)
    assert not fits(lowered, AUGUST)
    assert not fits(lowered, at("2017-07-31 00:00:01"))  # would reach into August
    assert fits(lowered, at("2017-07-31"))
    assert not fits(lowered, at("2017-08-31 23:59:59"))  # the last day counts whole
    assert fits(lowered, at("2017-09-01"))
    assert fits(example_1(AUGUST, replace(job, nodes=10)), AUGUST)


def test_example_1_running_jobs_count():
    running = a_running_job(nodes=(0, 1), end_s=AUGUST + HOUR_S, cpus=32, shared=True, user="alice")
    lowered = example_1(AUGUST, shared(nodes=10, cpus=64, limit_s=DAY_S), running=(running,))
    assert not fits(lowered, AUGUST)
    assert fits(lowered, AUGUST + HOUR_S)
    others = example_1(
        AUGUST, shared(nodes=10, cpus=64, limit_s=DAY_S), running=(replace(running, user="bob"),)
    )
    assert fits(others, AUGUST)


def test_example_1_cores_for_4_d_3_h_in_august_overrides_7_d():
    five_days = example_1(JULY, shared(cpus=1, limit_s=5 * DAY_S))
    assert fits(five_days, JULY)
    assert not fits(five_days, AUGUST)
    assert fits(five_days, at("2017-09-01"))
    assert fits(example_1(JULY, shared(cpus=1, limit_s=99 * HOUR_S)), AUGUST)
    assert not fits(example_1(JULY, shared(cpus=1, limit_s=99 * HOUR_S + 1)), AUGUST)


def test_example_1_when_august_is_over_the_7_d_of_all_resources_hold_for_cores_too():
    eight_days = example_1(at("2017-09-01"), shared(cpus=1, limit_s=8 * DAY_S))
    reason = terms_of(eight_days).reasons[0]
    assert reason is not None
    assert reason.code is ReasonCode.NEVER
    assert reason.text == "user alice may use cpus for 7 d at most"


def test_example_1_memory_has_the_7_d_at_all_times():
    reason = terms_of(example_1(JULY, shared(cpus=1, mem_mib=9, limit_s=8 * DAY_S))).reasons[0]
    assert reason is not None
    assert reason.text == "user alice may use mem_mib for 7 d at most"


def test_example_1_cores_alone_may_run_for_8_days_at_no_time():
    """Outside August the 7 d of all resources hold for cores; inside, 4 d 3 h do."""
    lowered = example_1(JULY, shared(cpus=1, limit_s=8 * DAY_S))
    assert not any(fits(lowered, JULY + day * DAY_S) for day in range(0, 300, 5))


def test_example_1_500_gpu_hours_in_one_job():
    exact = shared(cpus=1, nodes=5, gpus=4, limit_s=25 * HOUR_S)
    assert fits(example_1(JULY, exact), JULY)
    over = terms_of(example_1(JULY, replace(exact, limit_s=25 * HOUR_S + 1))).reasons[0]
    assert over is not None
    assert over.text == "user alice may use 500 hours times gpu in one job at most"


def test_example_1_jobs_and_tasks_of_arrays_at_once():
    assert told(example_1(JULY, shared(cpus=1, limit_s=60)))[-1:] == [
        ("limit of user alice on jobs", 1, Mode.BOTH)
    ]
    array = told(example_1(JULY, shared(cpus=1, limit_s=60, array_tasks=9)))
    assert ("limit of user alice on arrayjobs", 1, Mode.BOTH) in array
    assert ("limit of user alice on jobs", 1, Mode.BOTH) in array


def test_a_consumer_without_limits_may_use_everything_for_ever():
    nodes = [a_node(cpus=64)]
    snapshot = a_snapshot(nodes=nodes, jobs=[shared(cpus=64, limit_s=99 * DAY_S, user="bob")])()
    lowered = lower(Site(EXAMPLE_1, cron_s=DAY_S), snapshot)
    assert len(lowered.constraints) == 0
    assert told(lowered) == []


# ------------------------------------------------------------------ the three FreePools

FREE_POOLS = parse_rules(
    {
        "free_pools": [
            {
                "name": "small jobs", "resource": "cpus", "keep": "10/20%",
                "access": [{"cpus": "< 4", "time": "< 1h"}],
            },
            {
                "name": "gpus", "resource": "gpu", "keep": "all",
                "access": [{"accounts": ["G1", "G2"]}, {"users": ["alice"]}, {"time": "<= 2h"}],
            },
            {
                "name": "gpu maintenance", "nodes": {"having": "gpu"},
                "valid": {"cron": "0 8 * */2 mon#1", "length": "10h"},
            },
        ]
    }
)  # fmt: skip


def free_pools(
    *jobs: a_job, nodes: int = 10, now_s: int = JULY, running: tuple[a_running_job, ...] = ()
) -> LoweredRules:
    cluster = [a_node(cpus=10, gpus=2 if index < 2 else 0) for index in range(nodes)]
    snapshot = a_snapshot(nodes=cluster, jobs=jobs, running=running, now_s=now_s)()
    return lower(Site(FREE_POOLS, cron_s=365 * DAY_S), snapshot)


def test_free_pool_1_20_percent_of_the_cores_for_small_and_short_jobs():
    assert fits(free_pools(shared(nodes=8, cpus=10, limit_s=HOUR_S)), JULY)
    large = terms_of(free_pools(shared(nodes=9, cpus=9, limit_s=60)))
    assert large.reasons[0] is not None
    assert large.reasons[0].text == (
        "requests 81, more than the 80 of the cpus that FreePool small jobs leaves to all"
    )
    label = "cpus that FreePool small jobs leaves to all"
    assert told(free_pools(shared(cpus=3, limit_s=HOUR_S - 1))) == [(label, 3, Mode.COUNT)]
    assert told(free_pools(shared(cpus=4, limit_s=HOUR_S - 1))) == [(label, 4, Mode.BOTH)]
    assert told(free_pools(shared(cpus=3, limit_s=HOUR_S))) == [(label, 3, Mode.BOTH)]


def test_free_pool_1_but_at_minimum_10_cores():
    lowered = free_pools(shared(cpus=1), nodes=4)  # 20 % of 40 cores are 8
    assert lowered.constraints.peak[0] == 30
    assert free_pools(shared(cpus=1), nodes=6).constraints.peak[0] == 60 - 12
    lost = [replace(a_node(cpus=10), usable=index > 1) for index in range(6)]
    snapshot = a_snapshot(nodes=lost, jobs=[shared(cpus=1)])()
    assert lower(Site(FREE_POOLS, cron_s=DAY_S), snapshot).constraints.peak[0] == 40 - 10


def test_free_pool_1_is_filled_by_those_with_access():
    running = tuple(
        a_running_job(nodes=(node,), cpus=10, shared=True, end_s=JULY + HOUR_S) for node in range(8)
    )
    small, large = shared(cpus=3, limit_s=60), shared(cpus=4, limit_s=60)
    lowered = free_pools(small, large, running=running)
    assert fits(lowered, JULY, job=0)
    assert not fits(lowered, JULY, job=1)
    assert fits(lowered, JULY + HOUR_S, job=1)


@pytest.mark.parametrize(
    ("who", "limit_s", "may"),
    [
        ({"account": "G1"}, DAY_S, True),
        ({"account": "G2"}, DAY_S, True),
        ({"user": "alice"}, DAY_S, True),
        ({"user": "bob", "account": "G3"}, 2 * HOUR_S, True),
        ({"user": "bob", "account": "G3"}, 2 * HOUR_S + 1, False),
    ],
)
def test_free_pool_2_gpus_for_g1_g2_and_alice_others_for_two_hours(who, limit_s, may):
    lowered = free_pools(shared(cpus=1, gpus=1, limit_s=limit_s, **who))
    reason = terms_of(lowered).reasons[0]
    assert (reason is None) == may
    if reason is not None:
        assert reason.text == "has no access to FreePool gpus, which keeps all free"
    assert fits(lowered, JULY) == may
    without = terms_of(free_pools(shared(cpus=1, limit_s=limit_s, **who)))
    assert without.reasons == (None,)  # who asks for no GPU does not meet this pool


def test_free_pool_3_nodes_with_gpus_for_maintenance_every_two_months():
    lowered = free_pools(shared(cpus=1), now_s=at("2018-01-02"))
    (closure,) = lowered.closures
    assert closure.name == "gpu maintenance"
    assert np.flatnonzero(closure.nodes).tolist() == [0, 1]
    assert [datetime.fromtimestamp(start, UTC).isoformat() for start in closure.windows[:3, 0]] == [
        "2018-03-05T08:00:00+00:00", "2018-05-07T08:00:00+00:00", "2018-07-02T08:00:00+00:00",
    ]  # fmt: skip
    assert set((closure.windows[:, 1] - closure.windows[:, 0]).tolist()) == {10 * HOUR_S}
    one = np.zeros(1, dtype=np.int64)
    assert lowered.closed_to(one, one, one + 60, Extent(one + 1)) == [(JobClosure(0),)]


# ------------------------------------------------------------------ rules beyond the paper


def limited(*limits: Limit, jobs: tuple[a_job, ...], **world: object) -> LoweredRules:
    snapshot = a_snapshot(jobs=jobs, **world)()  # type: ignore[arg-type]
    return lower(Site(Rules(limits), cron_s=DAY_S), snapshot)


def test_each_user_that_is_not_named_has_a_constraint_of_its_own():
    each = Limit(ConsumerKind.USER, "*", "cpus", Items(4))
    ann = Limit(ConsumerKind.USER, "ann", "cpus", Items(6))
    jobs = tuple(shared(cpus=3, user=user) for user in ("ann", "bob", "cid", "bob"))
    lowered = limited(each, ann, jobs=jobs)
    terms = terms_of(lowered)
    assert [lowered.constraints.labels[constraint] for constraint in terms.constraint] == [
        f"limit of user {user} on cpus" for user in ("ann", "bob", "cid", "bob")
    ]
    sums = Sums(lowered)
    verdicts = []
    for job in range(4):
        verdicts.append(sums.broken(0, 10, terms, job) is None)
        if verdicts[-1]:
            sums.put(0, 10, terms, job)
    assert verdicts == [True, True, True, False]


@pytest.mark.parametrize("kind", list(ConsumerKind))
def test_a_limit_holds_for_the_name_as_it_is_written(kind):
    """Of names that begin or end alike, one has a limit of its own, and one may have nothing."""
    names = ("ann", "an", "anna", "nn", "Ann")
    limits = (Limit(kind, "ann", "cpus", Items(4)), Limit(kind, "anna", "cpus", Items(0)))
    parts = [a_partition(name, range(4)) for name in names]
    jobs = tuple(
        shared(cpus=5, user=name if kind is ConsumerKind.USER else "user",
               account=name if kind is ConsumerKind.ACCOUNT else "account", partitions=(at,))
        for at, name in enumerate(names)
    )  # fmt: skip
    terms = terms_of(limited(*limits, jobs=jobs, partitions=parts))
    assert [reason is None for reason in terms.reasons] == [False, True, False, True, True]


def test_a_partition_has_percentages_of_its_own_nodes():
    half = Limit(ConsumerKind.PARTITION, "small", "cpus", Items(percent=50))
    parts = (a_partition("all", range(4)), a_partition("small", [0, 1]))
    jobs = (shared(cpus=5), shared(cpus=5, partitions=(1,)), shared(cpus=4, partitions=(1,)))
    terms = terms_of(limited(half, jobs=jobs, partitions=parts))
    assert [reason is None for reason in terms.reasons] == [True, False, True]


def test_licences_are_limited_like_all_else():
    some = Limit(ConsumerKind.ACCOUNT, "account", "matlab", Items(percent=50))
    jobs = (shared(cpus=1, licences=(2,)), shared(cpus=1, licences=(3,)), shared(cpus=1))
    terms = terms_of(limited(some, jobs=jobs, licences=[("matlab", 4)]))
    assert [reason is None for reason in terms.reasons] == [True, False, True]
    assert np.diff(terms.indptr).tolist() == [1, 1, 0]


def test_limits_of_user_account_and_partition_all_hold():
    limits = [
        Limit(ConsumerKind.USER, "user", "cpus", Items(3)),
        Limit(ConsumerKind.ACCOUNT, "account", "cpus", Items(2)),
        Limit(ConsumerKind.PARTITION, "batch", "cpus", Items(1)),
    ]
    assert {amount for _, amount, _ in told(limited(*limits, jobs=(shared(cpus=1),)))} == {1}
    assert len(told(limited(*limits, jobs=(shared(cpus=1),)))) == 3


def test_resources_that_the_cluster_does_not_have_are_named():
    limit = Limit(ConsumerKind.USER, "user", "fpga", Items(0))
    snapshot = a_snapshot(jobs=[shared(cpus=1)])()
    assert unknown_to(Site(Rules((limit,))), snapshot) == ("fpga",)
    assert told(limited(limit, jobs=(shared(cpus=1),))) == []


def test_whole_nodes_count_as_the_largest_ones_of_their_partition_at_most():
    nodes = [a_node(cpus=4, mem_mib=1000), a_node(cpus=7, mem_mib=3000, gpus=2)]
    jobs = (a_job(nodes=2, cpus=1), a_job(nodes=1, cpus=1, gpus=2), shared(nodes=2, cpus=1))
    snapshot = a_snapshot(nodes=nodes, jobs=jobs)()
    rows, zeros = np.arange(3), np.zeros(3, dtype=np.int64)
    used = Amounts(snapshot).of_jobs(rows, zeros, np.array([2, 1, 2]))
    assert used.tolist() == [[11, 4000, 0, 1, 0], [7, 3000, 2, 1, 0], [2, 0, 0, 1, 0]]


def test_amounts_depend_on_the_width():
    job = shared(nodes=1, max_nodes=4, cpus=2, tasks=6, cpus_per_task=1)
    snapshot = a_snapshot(jobs=[job])()
    rows, zeros = np.zeros(2, dtype=np.int64), np.zeros(2, dtype=np.int64)
    used = Amounts(snapshot).of_jobs(rows, zeros, np.array([1, 4]))
    assert used[:, 0].tolist() == [2 + 6, 8 + 6]


def test_chunks_of_several_kinds_all_count():
    chunks = LoweredChunks(
        ChunkRequest((Chunk(count=2, ncpus=3), Chunk(count=5, ncpus=1))),
        wants=((3, 10, 1), (1, 0, 0)), features=("", ""), per_node=(0, 100, 0),
    )  # fmt: skip
    snapshot = a_snapshot(jobs=[shared(nodes=3)])()
    column = np.empty(1, dtype=object)
    column[0] = chunks
    snapshot = replace(snapshot, jobs=replace(snapshot.jobs, chunks=column))
    one = np.zeros(1, dtype=np.int64)
    assert Amounts(snapshot).of_jobs(one, one, one + 3)[0, :3].tolist() == [11, 320, 2]


def test_nodes_are_chosen_by_name_feature_and_resource():
    nodes = [a_node(gpus=1), a_node(features=("ib",)), a_node(gpus=1, features=("ib",))]
    snapshot = a_snapshot(nodes=nodes, jobs=[shared(cpus=1)])()

    def members(**chosen: object) -> list[int]:
        pool = FreePool("p", nodes=NodeSet(**chosen))  # type: ignore[arg-type]
        (closure,) = lower(Site(Rules(free_pools=(pool,)), cron_s=DAY_S), snapshot).closures
        return np.flatnonzero(closure.nodes).tolist()

    assert members(having="gpu") == [0, 2]
    assert members(features="ib") == [1, 2]
    assert members(having="gpu", features="ib") == [2]
    assert members(names=("n1", "n9")) == [0]
    assert members(having="fpga") == []


def test_every_constraint_has_a_key_of_its_own_that_stays():
    now, later = (example_1(now_s, shared(cpus=1, gpus=1)) for now_s in (JULY, AUGUST))
    assert now.constraints.keys == later.constraints.keys
    assert len(set(now.constraints.keys)) == len(now.constraints)
    assert "user/alice/cpus/items/0" in now.constraints.keys
    assert "user/alice/cpus/duration/356400" in now.constraints.keys
    assert free_pools(shared(cpus=1)).constraints.keys == ("pool/small jobs", "pool/gpus")


def test_constraints_are_steps_from_the_clock_on():
    lowered = example_1(JULY, shared(cpus=1, limit_s=60))
    at_cpus = lowered.constraints.labels.index("limit of user alice on cpus")
    starts, amounts = lowered.constraints.steps(at_cpus)
    assert starts.tolist() == [JULY, at("2017-08-01"), at("2017-09-01")]
    assert amounts.tolist() == [UNBOUNDED, 640, UNBOUNDED]


@pytest.mark.parametrize(("min_s", "mode"), [(0, Mode.COUNT), (900, Mode.COUNT), (600, Mode.BOTH)])
def test_access_for_long_jobs_is_not_for_those_that_may_be_cut_below_it(min_s: int, mode: Mode):
    """A deadline may cut the limit when the job starts; the cut limit counts."""
    rules = parse_rules(
        {"free_pools": [
            {"name": "long", "resource": "cpus", "keep": 2, "access": [{"time": ">= 15m"}]}
        ]}
    )  # fmt: skip
    job = shared(cpus=1, limit_s=1200, min_s=min_s)
    snapshot = a_snapshot(nodes=[a_node(cpus=4)], jobs=[job])()
    ((_, amount, found),) = told(lower(Site(rules, cron_s=DAY_S), snapshot))
    assert (amount, found) == (1, mode)


# ------------------------------------------------------------------ changed rules


def planned(*rows: tuple[int, int, int, tuple[int, ...]]) -> Plan:
    """Rows of job, start, end, nodes."""
    nodes = [node for *_, several in rows for node in several]
    return Plan(
        now_s=0,
        policy="test",
        job=np.array([row[0] for row in rows], dtype=np.int32),
        start_s=np.array([row[1] for row in rows], dtype=np.int64),
        end_s=np.array([row[2] for row in rows], dtype=np.int64),
        partition=np.zeros(len(rows), dtype=np.int32),
        indptr=np.cumsum([0, *(len(row[3]) for row in rows)], dtype=np.int64),
        nodes=np.array(nodes, dtype=np.int32),
        tasks=np.zeros(len(nodes), dtype=np.int32),
        reasons=(None,) * len(rows),
    )


def test_a_changed_limit_says_which_planned_jobs_it_strands():
    jobs = tuple(shared(cpus=2, limit_s=100) for _ in range(4))
    plan = planned((0, 0, 100, (0,)), (1, 0, 100, (1,)), (2, 50, 150, (2,)), (3, 100, 200, (3,)))
    before = limited(Limit(ConsumerKind.USER, "user", "cpus", Items(6)), jobs=jobs)
    assert stranded(before, plan) == []
    after = limited(Limit(ConsumerKind.USER, "user", "cpus", Items(4)), jobs=jobs)
    assert [(row.row, row.text) for row in stranded(after, plan)] == [
        (2, "limit of user user on cpus")
    ]


def test_rows_without_a_start_are_not_stranded():
    jobs = (shared(cpus=4, limit_s=100),)
    none = limited(Limit(ConsumerKind.USER, "user", "cpus", Items(0)), jobs=jobs)
    for start_s in (UNPLANNED, NEVER):
        assert stranded(none, planned((0, start_s, 0, ()))) == []


def test_a_new_closure_strands_jobs_on_its_nodes():
    jobs = (shared(cpus=1, limit_s=3 * HOUR_S), shared(cpus=1, limit_s=3 * HOUR_S, user="root"))
    nodes = [a_node(gpus=1), a_node()]
    rules = parse_rules(
        {"free_pools": [{
            "name": "maint", "nodes": {"having": "gpu"}, "access": [{"users": ["root"]}],
            "valid": {"cron": "0 8 * * *", "length": "2h"},
        }]}
    )  # fmt: skip
    lowered = lower(Site(rules, cron_s=2 * DAY_S), a_snapshot(nodes=nodes, jobs=jobs)())
    seven = 7 * HOUR_S
    plan = planned(
        (0, seven, seven + 3 * HOUR_S, (0,)),  # reaches into it
        (0, seven, seven + 3 * HOUR_S, (1,)),  # on another node
        (1, seven, seven + 3 * HOUR_S, (0,)),  # has access
        (0, 10 * HOUR_S, 13 * HOUR_S, (0,)),  # begins as it ends
        (0, 5 * HOUR_S, 8 * HOUR_S, (0,)),  # ends as it begins
    )
    assert [(row.row, row.text) for row in stranded(lowered, plan)] == [
        (0, "nodes that FreePool maint keeps free")
    ]


def test_100_000_jobs_share_what_they_ask_alike():
    """Not a measurement: it fails when the work is done job by job."""
    jobs = [shared(cpus=1 + n % 7, limit_s=60 + n, user=f"u{n % 50}") for n in range(1000)]
    snapshot = a_snapshot(jobs=jobs)()
    rules = replace(EXAMPLE_1, free_pools=FREE_POOLS.free_pools)
    lowered = lower(Site(rules, cron_s=365 * DAY_S), snapshot)
    rows = np.tile(np.arange(1000), 100)
    zeros = np.zeros_like(rows)
    terms = lowered.terms(rows, zeros, snapshot.jobs.time_limit_s[rows], Extent(zeros + 1))
    assert len(terms) == 100_000
    distinct = {id(reason) for reason in terms.reasons if reason is not None}
    assert len(distinct) < 1000


def test_running_jobs_use_what_they_hold_on_nodes_that_are_not_known():
    running = [
        a_running_job((0,), shared=True, cpus=1, cpus_elsewhere=3),
        a_running_job((0, 1), shared=True, cpus=2, cpus_elsewhere=2),
    ]
    snapshot = a_snapshot(nodes=2, running=running)()
    assert Amounts(snapshot).of_running()[:, 0].tolist() == [4, 6]
