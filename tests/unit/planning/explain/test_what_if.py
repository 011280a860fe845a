# SPDX-License-Identifier: Apache-2.0
import dataclasses
import tracemalloc

import numpy as np
import pytest

from bridge.model.job import Hold, WidthRule
from bridge.model.reasons import Reason, ReasonCode
from bridge.model.rules.limits import ConsumerKind, FreePool, Items, Limit, Rules
from bridge.model.rules.site import Site
from bridge.planning.explain.changes import SizeKind, Variants, fewer_chunks
from bridge.planning.explain.variant_search import VariantSearch
from bridge.planning.explain.what_if import MAX_CHANGES, what_if
from bridge.planning.requests.chunk_groups import chunk_columns
from bridge.planning.site_rules.lowered_rules import lower, stranded
from bridge.ports import Conditions
from bridge.registry import build, parse_policy
from bridge.slurm.dialect import slurm_time
from bridge.units import NEVER, UNPLANNED
from schedbridge_contracts.builders import (
    a_job,
    a_node,
    a_partition,
    a_reservation,
    a_running_job,
    a_snapshot,
)
from schedbridge_contracts.crosses import each
from schedbridge_contracts.cycles import Memory, a_site, check, run
from schedbridge_contracts.worlds import random_world

HOUR = 3600
WHOLE = Conditions(whole_queue=True)


def planned(snapshot, policy="openccs", rules=None):
    return run(snapshot, Memory(), build(parse_policy(policy)), site=a_site(rules))


def changes(snapshot, job=-1, policy="openccs", conditions=WHOLE, **options):
    plan = planned(snapshot, policy)
    job = job % len(snapshot.jobs)
    row = int(np.flatnonzero(plan.job == job)[0])
    return what_if(snapshot, plan, row, conditions, **options)


def told(found):
    return [(change.options, change.start_s) for change in found]


def a_gap(**settings):
    """Node 1 is free until 2 h, then a reservation; both nodes are free from 5 h on."""
    return a_snapshot(
        nodes=2,
        running=[a_running_job(nodes=(0,), end_s=5 * HOUR)],
        reservations=[a_reservation([1], 2 * HOUR, 5 * HOUR)],
        **settings,
    )()


def test_the_longest_time_limit_that_fits_before_something_else():
    (change,) = changes(a_gap(jobs=[a_job(limit_s=3 * HOUR)]))
    assert (change.options, change.start_s, change.time_limit_s) == ("--time=2:00:00", 0, 2 * HOUR)
    assert change.text == "with a time limit of 2 h in place of 3 h"


def test_whole_minutes():
    snapshot = a_snapshot(
        nodes=1, reservations=[a_reservation([0], 119, HOUR)], jobs=[a_job(limit_s=600)]
    )()
    assert told(changes(snapshot)) == [("--time=0:01:00", 0)]


def test_an_earlier_start_and_a_start_now_are_both_told():
    snapshot = a_snapshot(
        nodes=1,
        reservations=[a_reservation([0], HOUR, 2 * HOUR), a_reservation([0], 4 * HOUR, 9 * HOUR)],
        jobs=[a_job(limit_s=3 * HOUR)],
    )()
    assert told(changes(snapshot)) == [("--time=1:00:00", 0), ("--time=2:00:00", 2 * HOUR)]


def test_a_job_without_a_time_limit_of_its_own():
    partition = a_partition(nodes=range(2), default_time_s=4 * HOUR)
    snapshot = a_gap(jobs=[a_job(limit_s=0)], partitions=[partition])
    assert changes(snapshot)[0].text == "with a time limit of 2 h in place of 4 h"


def test_fewer_nodes():
    snapshot = a_snapshot(
        nodes=4, running=[a_running_job(nodes=(3,), end_s=HOUR)], jobs=[a_job(nodes=4)]
    )()
    (change,) = changes(snapshot)
    assert (change.options, change.start_s, change.size_kind) == ("-N 3", 0, SizeKind.NODES)
    assert change.text == "with 3 nodes in place of 4 and the tasks of as many"


def test_the_place_that_it_has_is_not_in_its_way():
    snapshot = a_snapshot(
        nodes=2,
        running=[a_running_job(nodes=(0,), end_s=HOUR)],
        jobs=[a_job(nodes=2, limit_s=7200)],
    )()
    assert planned(snapshot).start_s.tolist() == [HOUR]
    assert told(changes(snapshot)) == [("-N 1", 0)]


def test_what_it_could_have_as_it_is_is_no_change():
    running = [a_running_job(nodes=(0,), end_s=HOUR)]
    snapshot = a_snapshot(nodes=2, running=running, jobs=[a_job(nodes=2, limit_s=7200)])()
    plan = planned(snapshot)
    late = dataclasses.replace(plan, start_s=plan.start_s + HOUR, end_s=plan.end_s + HOUR)
    found = what_if(snapshot, late, 0, WHOLE)  # at 1 h it could start with any time limit
    assert told(found) == [("-N 1", 0)]


def test_a_width_rule_is_kept():
    snapshot = a_snapshot(
        nodes=8,
        running=[a_running_job(nodes=(7,), end_s=HOUR)],
        jobs=[a_job(nodes=8, width_rule=WidthRule.POF2)],
    )()
    assert told(changes(snapshot)) == [("--malleable=4-8", 0)]


def test_named_nodes_stay():
    snapshot = a_snapshot(
        nodes=3,
        running=[a_running_job(nodes=(2,), end_s=HOUR)],
        jobs=[a_job(nodes=3, required=(0, 2))],
    )()
    assert changes(snapshot) == ()


def test_fewer_tasks():
    snapshot = a_snapshot(
        nodes=[a_node(cpus=4), a_node(cpus=4)],
        running=[a_running_job(nodes=(0,), end_s=HOUR, shared=True, cpus=3)],
        jobs=[a_job(tasks=8, max_nodes=8, shared=True)],
    )()
    assert told(changes(snapshot)) == [("-n 5", 0)]


def test_tasks_of_several_cpus_are_told_in_cpus():
    snapshot = a_snapshot(
        nodes=[a_node(cpus=4), a_node(cpus=4)],
        running=[a_running_job(nodes=(0,), end_s=HOUR, shared=True, cpus=3)],
        jobs=[a_job(tasks=4, max_nodes=4, cpus_per_task=2, shared=True)],
    )()
    (change,) = changes(snapshot)
    assert (change.size, change.text) == (2, "with tasks for 4 CPUs in place of 8")


def test_fewer_chunks():
    snapshot = a_snapshot(
        nodes=[a_node(cpus=8), a_node(cpus=8, gpus=2)],
        running=[a_running_job(nodes=(0,), end_s=HOUR)],
        jobs=[a_job(chunks="2:ncpus=1:ngpus=1+4:ncpus=2:mem=1mb,place=free:shared")],
    )()
    (change,) = changes(snapshot)
    assert change.start_s == 0
    assert change.options == "--chunks=1:ncpus=1:ngpus=1+3:ncpus=2:mem=1mb --place=free:shared"
    assert change.text == "with 3 chunks in place of 4"


def test_another_partition():
    snapshot = a_snapshot(
        nodes=3,
        running=[a_running_job(nodes=(0,), end_s=HOUR)],
        partitions=[
            a_partition("batch", [0]),
            a_partition("short", [1], max_time_s=HOUR),
            a_partition("wide", [1, 2], min_nodes=2),
            a_partition("down", [1, 2], up=False),
            a_partition("long", [1, 2]),
        ],
        jobs=[a_job(limit_s=HOUR), a_job(limit_s=2 * HOUR)],
    )()
    assert told(changes(snapshot, 1)) == [("-p long", 0)]
    plan = planned(snapshot)
    assert plan.start_s[0] == HOUR or plan.start_s[1] == HOUR


def test_two_changes_only_where_no_single_one_helps():
    settings = {
        "nodes": 2,
        "running": [a_running_job(nodes=(0,), end_s=9 * HOUR)],
        "jobs": [a_job(limit_s=2 * HOUR)],
    }
    parts = [a_partition("batch", [0]), a_partition("short", [1], max_time_s=HOUR)]
    assert told(changes(a_snapshot(partitions=parts, **settings)())) == [
        ("-p short --time=1:00:00", 0)
    ]
    parts.append(a_partition("long", [1]))
    assert told(changes(a_snapshot(partitions=parts, **settings)())) == [("-p long", 0)]


def test_fewer_nodes_for_a_shorter_time():
    snapshot = a_snapshot(
        nodes=2,
        running=[a_running_job(nodes=(0,), end_s=9 * HOUR)],
        reservations=[a_reservation([1], HOUR, 9 * HOUR)],
        jobs=[a_job(nodes=2, limit_s=2 * HOUR)],
    )()
    assert told(changes(snapshot)) == [("--time=1:00:00 -N 1", 0)]


def test_a_job_that_can_never_run_as_it_is():
    snapshot = a_snapshot(nodes=3, jobs=[a_job(nodes=5)])()
    assert told(changes(snapshot)) == [("-N 3", 0)]


def test_a_time_limit_beyond_the_partitions():
    partition = a_partition(nodes=range(4), max_time_s=HOUR)
    snapshot = a_snapshot(partitions=[partition], jobs=[a_job(limit_s=2 * HOUR)])()
    assert told(changes(snapshot)) == [("--time=1:00:00", 0)]
    assert told(changes(snapshot, policy="easy", conditions=None)) == [("--time=1:00:00", 0)]


def test_nothing_helps():
    snapshot = a_snapshot(nodes=1, running=[a_running_job(end_s=HOUR)], jobs=[a_job()])()
    assert changes(snapshot) == ()


@pytest.mark.parametrize(
    "job",
    [
        a_job(nodes=4, hold=Hold.HELD),
        a_job(nodes=4, hold=Hold.DEPENDENCY),
        a_job(nodes=4, array_tasks=5, array_startable=0),
    ],
)
def test_a_job_that_is_held_is_not_looked_at(job):
    running = [a_running_job(nodes=(0,), end_s=HOUR)]
    assert changes(a_snapshot(running=running, jobs=[job])()) == ()


def test_a_job_that_starts_now_needs_no_change():
    assert changes(a_snapshot(jobs=[a_job()])()) == ()


def test_a_begin_time_is_kept():
    snapshot = a_snapshot(
        nodes=2,
        running=[a_running_job(nodes=(0,), end_s=HOUR)],
        jobs=[a_job(nodes=2, hold=Hold.BEGIN_TIME, begin_s=600)],
    )()
    assert told(changes(snapshot)) == [("-N 1", 600)]


def test_beyond_the_reservation_depth_only_a_start_now_is_told():
    settings = {
        "nodes": 2,
        "running": [a_running_job(nodes=(0,), end_s=HOUR)],
        "reservations": [a_reservation([1], HOUR, 3 * HOUR)],
    }
    # The first job holds the only reservation of EASY, from 3 h on.
    jobs = [a_job(nodes=2, limit_s=HOUR), a_job(nodes=2, limit_s=HOUR)]
    snapshot = a_snapshot(jobs=jobs, **settings)()
    assert planned(snapshot, "easy").start_s.tolist() == [3 * HOUR, UNPLANNED]
    assert told(changes(snapshot, policy="easy", conditions=None)) == [("-N 1", 0)]
    jobs[1].limit_s = 2 * HOUR
    found = changes(a_snapshot(jobs=jobs, **settings)(), policy="easy", conditions=None)
    assert told(found) == [("--time=1:00:00 -N 1", 0)]


def test_limits_are_kept():
    limit = Limit(ConsumerKind.USER, "user", "cpus", items=Items(minimum=8))
    conditions = dataclasses.replace(WHOLE, site=Site(Rules(limits=(limit,))))
    snapshot = a_snapshot(
        nodes=4, running=[a_running_job(nodes=(3,), end_s=HOUR)], jobs=[a_job(nodes=3)]
    )()
    plan = planned(snapshot)
    stuck = dataclasses.replace(
        plan,
        start_s=np.array([UNPLANNED]), end_s=np.array([0]), partition=np.array([-1], np.int32),
        indptr=np.array([0, 0]), nodes=plan.nodes[:0], tasks=plan.tasks[:0],
        reasons=(Reason(ReasonCode.NEVER, "too many CPUs for its user"),),
    )  # fmt: skip
    assert told(what_if(snapshot, stuck, 0, conditions)) == [("-N 1", 0), ("-N 2", HOUR)]


def test_a_free_pool_is_kept():
    pool = FreePool("night", "cpus", keep=Items(minimum=4))
    conditions = dataclasses.replace(WHOLE, site=Site(Rules(free_pools=(pool,))))
    snapshot = a_snapshot(nodes=4, jobs=[a_job(nodes=4)])()
    plan = planned(a_snapshot(nodes=4, jobs=[a_job(nodes=5)])())
    assert plan.start_s[0] == NEVER
    assert told(what_if(snapshot, plan, 0, conditions)) == [("-N 3", 0)]


def test_no_start_beyond_the_horizon():
    snapshot = a_snapshot(
        nodes=2, running=[a_running_job(nodes=(0, 1), end_s=5 * HOUR)], jobs=[a_job(nodes=3)]
    )()
    assert told(changes(snapshot)) == [("-N 2", 5 * HOUR)]
    assert changes(snapshot, conditions=dataclasses.replace(WHOLE, horizon_s=4 * HOUR)) == ()


def test_a_deadline_is_kept():
    snapshot = a_snapshot(
        nodes=1,
        running=[a_running_job(end_s=HOUR)],
        jobs=[a_job(limit_s=3 * HOUR, deadline_s=3 * HOUR)],
    )()
    assert told(changes(snapshot)) == [("--time=2:00:00", HOUR)]


def test_an_array_is_changed_as_a_whole():
    snapshot = a_snapshot(
        nodes=2,
        running=[a_running_job(nodes=(1,), end_s=HOUR)],
        jobs=[a_job(nodes=2, array_tasks=3, array_startable=3)],
    )()
    assert told(changes(snapshot)) == [("-N 1", 0)]


@pytest.mark.parametrize(
    ("seconds", "text"), [(60, "0:01:00"), (7200, "2:00:00"), (86_400 + 3660, "1-01:01:00")]
)
def test_times_as_slurm_takes_them(seconds, text):
    assert slurm_time(seconds) == text


# ------------------------------------------------------------------ what is told is true


def changed(snapshot, job, change):
    """The snapshot with the job as the change says."""
    jobs = snapshot.jobs
    columns = {f.name: getattr(jobs, f.name).copy() for f in dataclasses.fields(jobs)}
    if change.time_limit_s:
        columns["time_limit_s"][job] = change.time_limit_s
    if change.partition >= 0:
        columns["partitions"][job] = (change.partition,)
    if change.size_kind is SizeKind.NODES:
        if columns["max_nodes"][job] == columns["min_nodes"][job]:
            columns["max_nodes"][job] = change.size
        columns["min_nodes"][job] = change.size
    elif change.size_kind is SizeKind.TASKS:
        columns["tasks"][job] = change.size
        columns["max_nodes"][job] = min(change.size, columns["max_nodes"][job])
    elif change.size_kind is SizeKind.CHUNKS:
        fewer = columns["chunks"][job] = fewer_chunks(columns["chunks"][job], change.size)
        for name, value in vars(chunk_columns(fewer)).items():
            columns[name][job] = value
    return dataclasses.replace(snapshot, jobs=type(jobs)(**columns))


def with_place(snapshot, plan, row, place):
    """The plan with a row at another place; other rows of its job have none."""
    job = plan.job[row]
    start_s, end_s, partition = plan.start_s.copy(), plan.end_s.copy(), plan.partition.copy()
    reasons = list(plan.reasons)
    kinds = 0 if plan.groups is None else plan.groups.shape[1]
    chunks = snapshot.jobs.chunks[job]
    kinds = max(kinds, len(chunks.request.kinds) if chunks else 0)
    nodes, tasks, groups, width = [], [], [], []
    for at in range(len(plan)):
        own = slice(int(plan.indptr[at]), int(plan.indptr[at + 1]))
        if plan.job[at] != job:
            nodes += plan.nodes[own].tolist()
            tasks += plan.tasks[own].tolist()
            for entry in range(own.start, own.stop):
                given = [] if plan.groups is None else plan.groups[entry].tolist()
                groups.append(given + [0] * (kinds - len(given)))
            width.append(own.stop - own.start)
            continue
        start_s[at], end_s[at], partition[at] = UNPLANNED, 0, -1
        reasons[at] = reasons[at] or Reason(ReasonCode.OTHER, "moved")
        width.append(0)
        if at != row:
            continue
        start_s[at], end_s[at] = place.start_s, place.start_s + place.length_s
        partition[at] = place.alternative.partition
        lying = sorted(set(place.nodes.tolist()))
        width[-1] = len(lying)
        for node in lying:
            here = np.flatnonzero(place.nodes == node)
            parts = [(place.layout.groups[place.groups[i]], int(place.chunks[i])) for i in here]
            nodes.append(node)
            tasks.append(sum(group.tasks * many for group, many in parts))
            given = [0] * kinds
            if chunks and len(chunks.request.kinds) > 1:
                for group, many in parts:
                    given[group.kind] += many
            groups.append(given)
    return dataclasses.replace(
        plan,
        start_s=start_s, end_s=end_s, partition=partition, reasons=tuple(reasons),
        indptr=np.cumsum([0, *width]).astype(np.int64),
        nodes=np.array(nodes, np.int32), tasks=np.array(tasks, np.int32),
        groups=np.array(groups, np.int32).reshape(-1, kinds) if kinds else None,
    )  # fmt: skip


RULES = {
    "limits": [
        {"user": "user", "resource": "cpus", "items": 14},
        {"partition": "some", "resource": "jobs", "items": 2},
        {"account": "account", "resource": "mem", "duration": "100s"},
    ],
    "free_pools": [
        {"name": "kept", "resource": "cpus", "keep": 2, "access": [{"time": "< 60s"}]},
        {"name": "gpus", "nodes": {"having": "gpu"}, "access": [{"time": "< 80s"}]},
    ],
}


@each(seed=range(40))
def test_what_is_told_is_true_of_chunks_and_under_rules(seed):
    """Slow: plans each of 40 worlds again for every answer."""
    snapshot = random_world(seed, chunks=True)
    plan = planned(snapshot, "openccs", rules=RULES)
    assert_all_true(snapshot, plan, dataclasses.replace(WHOLE, site=a_site(RULES)))


@pytest.mark.parametrize("policy", ["openccs", "conservative", "easy"])
@each(seed=range(40))
def test_what_is_told_is_true_and_the_next_larger_value_is_not(seed, policy):
    snapshot = random_world(seed)
    plan = planned(snapshot, policy)
    conditions = WHOLE if policy == "openccs" else Conditions()
    assert_all_true(snapshot, plan, conditions)


def assert_all_true(snapshot, plan, conditions, step_s=10):
    before = {stranding.row for stranding in judged(snapshot, plan, conditions)}
    for row in range(len(plan)):
        job = int(plan.job[row])
        found = what_if(snapshot, plan, row, conditions, step_s=step_s)
        assert sum(not change.free_pools for change in found) <= MAX_CHANGES
        assert all(not change.free_pools for change in found[:-1])
        present_s = int(plan.start_s[row])
        for change in found:
            assert change.start_s >= snapshot.now_s
            assert present_s in (NEVER, UNPLANNED) or change.start_s < present_s
            other, granted = changed(snapshot, job, change), without(conditions, change.free_pools)
            search = VariantSearch(other, plan, job, granted)
            place = search.place(search.variants.plain(), NEVER)
            assert place is not None
            assert place.start_s == change.start_s, (row, change)
            moved = with_place(other, plan, row, place)
            assert check(other, moved) == (), (row, change)
            after = {stranding.row for stranding in judged(other, moved, granted)}
            assert after <= before, (row, change)
        search = VariantSearch(snapshot, plan, job, conditions)
        for change in found:
            below_s = search.present_s(present_s)
            now = change.start_s == snapshot.now_s
            assert change.start_s < below_s
            if change.time_limit_s and not change.size and change.partition < 0:
                longer_s = change.time_limit_s + step_s
                if longer_s < search.limit_s():
                    start_s = search.start_s(search.variants.plain(short=True), below_s, longer_s)
                    assert start_s > snapshot.now_s if now else start_s == NEVER
            if change.size and not change.time_limit_s:
                values = search.variants.sizes.values.tolist()
                at = values.index(change.size) + 1
                if at < len(values):
                    start_s = search.start_s(search.variants.of_size(at), below_s)
                    assert start_s > snapshot.now_s if now else start_s == NEVER


@pytest.mark.parametrize("policy", ["conservative", "easy"])
@each(seed=range(40))
def test_the_policy_keeps_what_is_told(seed, policy):
    """Planned again with the change the job starts then, or earlier."""
    snapshot = random_world(seed, arrays=False)
    plan = planned(snapshot, policy)
    for row in range(len(plan)):
        job = int(plan.job[row])
        for change in what_if(snapshot, plan, row, Conditions(), step_s=10):
            if policy == "easy" and change.start_s > snapshot.now_s:
                continue  # its rule 3: beyond the depth nothing later is planned
            again = planned(changed(snapshot, job, change), policy)
            assert again.start_s[again.job == job][0] <= change.start_s, (row, change)


def without(conditions, names):
    """The same without some FreePools."""
    rules = conditions.site.rules
    pools = tuple(pool for pool in rules.free_pools if pool.name not in names)
    site = Site(dataclasses.replace(rules, free_pools=pools))
    return dataclasses.replace(conditions, site=site)


def judged(snapshot, plan, conditions):
    return stranded(lower(conditions.site, snapshot), plan)


def test_the_variants_are_told_apart():
    snapshot = random_world(3)
    for job in range(len(snapshot.jobs)):
        variants = Variants(snapshot, job)
        jobs = variants.snapshot.jobs
        assert jobs.time_limit_s[variants.plain()] == snapshot.jobs.time_limit_s[job]
        assert jobs.time_limit_s[variants.plain(short=True)] == 1
        for which, partition in enumerate(variants.partitions):
            for short in (False, True):
                row = variants.in_partition(which, short=short)
                assert jobs.partitions[row] == (partition,)
                limit_s = 1 if short else snapshot.jobs.time_limit_s[job]
                assert jobs.time_limit_s[row] == limit_s
        assert len(jobs) == len(snapshot.jobs) + 2 * (
            1 + len(variants.partitions) + len(variants.sizes.values)
        )


@pytest.mark.parametrize(
    "job",
    [
        a_job(shared=True, tasks=2**30, max_nodes=4),
        a_job(nodes=2**20),
        a_job(nodes=2**20, width_rule=WidthRule.POF2),
        a_job(chunks=f"{2**20}:ncpus=1"),
    ],
    ids=["tasks", "nodes", "powers of two", "chunks"],
)
def test_sizes_of_a_huge_job_are_few_and_cheap(job):
    """Slow: every allocation is traced."""
    tracemalloc.start()
    try:
        sizes = Variants(a_snapshot(jobs=[job])(), 0).sizes
        _, maximum = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert maximum < 64 << 20
    values = sizes.values.tolist()
    assert values == sorted(set(values))
    assert len(values) <= 1024
    assert values[-1] == {WidthRule.POF2: 2**19}.get(job.width_rule, sizes.own - 1)
    assert values[0] <= sizes.own / 100
