# SPDX-License-Identifier: Apache-2.0
"""The paper's expensive nodes (section 5.4): an SMP node only for those who need it, or are quick.

Its example: "jobs may only be mapped to an SMP node if they request at least 80 g virtual memory,
or 66 g memory, or 17 cores, or their duration is <= 12 h". Node n1 has 16 CPUs and 64 GiB, n2 32
and 1 TiB. Virtual memory is memory.
"""

import numpy as np
import pytest

from bridge.dialect import dialect_named
from bridge.model.reasons import ReasonCode
from bridge.model.resources import Arrangement
from bridge.model.rules.site import Site
from bridge.planning.site_rules.lowered_rules import lower, stranded, unknown_to
from bridge.registry import build, parse_policy
from bridge.rpc.controller.cycles import Published
from bridge.rpc.operators.explain import explain, nothing_helps
from bridge.rpc.operators.what_if_service import what_if_under
from bridge.rpc.reported.hostlist import NodeIndex
from bridge.units import DAY_S, NEVER
from schedbridge_contracts.builders import a_job, a_node, a_running_job, a_snapshot
from schedbridge_contracts.crosses import each
from schedbridge_contracts.cycles import Memory, a_site, parse_rules, run
from schedbridge_contracts.worlds import random_world

WORDS = dialect_named("").words

H = 3600
GIB = 1024
NODES = [a_node(16, 64 * GIB), a_node(32, 1024 * GIB, features=("smp",))]
SMP = {
    "name": "large memory",
    "nodes": {"features": "smp"},
    "access": [
        {"chunk": {"mem": ">= 66g"}},
        {"chunk": {"cpus": ">= 17"}},
        {"time": "<= 12h"},
    ],
}
WHO = "mem >= 66g in one chunk, or cpus >= 17 in one chunk, or time <= 12h"


def planned(*jobs, pool=SMP, running=(), **parameters):
    """Node names and start by job, and the reasons."""
    snapshot = a_snapshot(nodes=NODES, jobs=jobs, running=running)()
    rules = {"free_pools": [pool]}
    plan_stage = {"name": "openccs", **parameters}
    policy = build(parse_policy({"preset": "openccs", "plan": plan_stage}))
    plan = run(snapshot, Memory(), policy, site=a_site(rules))
    found = {}
    for row in range(len(plan)):
        names = [snapshot.nodes.names[node] for node in plan.nodes_of(row)]
        found[snapshot.jobs.id[plan.job[row]]] = (names, int(plan.start_s[row]), plan.reasons[row])
    return found


def busy(until_s=20 * H):
    """n1 is taken: who starts now starts on n2."""
    return (a_running_job(nodes=(0,), end_s=until_s, cpus=16, shared=True),)


@pytest.mark.parametrize(
    ("requested", "limit_s", "may"),
    [
        ("1:ncpus=1:vmem=80gb", 13 * H, True),
        ("1:ncpus=1:mem=66gb", 13 * H, True),
        ("1:ncpus=1:mem=65gb", 13 * H, False),
        ("1:ncpus=17", 13 * H, True),
        ("1:ncpus=16", 13 * H, False),
        ("1:ncpus=1", 12 * H, True),
        ("1:ncpus=1", 12 * H + 1, False),
        ("3:ncpus=1:mem=30gb", 13 * H, False),  # cheap chunks, however many
        ("3:ncpus=6,place=pack", 13 * H, True),  # that lie together
        ("2:ncpus=1,place=scatter:excl", 13 * H, False),
    ],
)
def test_paper_5_4_only_large_or_short_requests_on_the_smp_node(requested, limit_s, may):
    names, start_s, _ = planned(a_job(id="job", chunks=requested, limit_s=limit_s), running=busy())[
        "job"
    ]
    assert (start_s == 0 and names == ["n2"]) == may


@pytest.mark.parametrize(
    ("job", "may"),
    [
        (a_job(1, shared=True, cpus=17, limit_s=13 * H), True),
        (a_job(1, shared=True, cpus=16, limit_s=13 * H), False),
        (a_job(1, shared=True, cpus=1, mem_mib=66 * GIB, limit_s=13 * H), True),
        (a_job(1, cpus=1, limit_s=13 * H), False),  # to take the whole node is not to ask for it
        (a_job(1, shared=True, tasks=20, max_nodes=20, limit_s=13 * H), False),  # any tasks apart
        (a_job(1, shared=True, tasks=20, max_nodes=1, limit_s=13 * H), True),  # all on one node
    ],
)
def test_plain_requests_of_slurm_are_chunks_too(job, may):
    job.id = "job"
    names, start_s, _ = planned(job, running=busy())["job"]
    assert (start_s == 0 and names == ["n2"]) == may


def test_the_large_chunks_of_a_job_lie_there_and_its_small_ones_do_not():
    job = a_job(id="job", chunks="1:ncpus=20+4:ncpus=1", limit_s=13 * H)
    names, start_s, _ = planned(job)["job"]
    assert (names, start_s) == (["n1", "n2"], 0)
    names, start_s, _ = planned(job, running=busy())["job"]
    assert (names, start_s) == (["n1", "n2"], 20 * H)


def test_a_bound_of_the_whole_job_counts_all_its_chunks():
    pool = {**SMP, "access": [{"mem": ">= 80g"}]}
    small = a_job(id="job", chunks="3:ncpus=1:mem=30gb", limit_s=13 * H)
    assert planned(small, pool=pool, running=busy())["job"][:2] == (["n2"], 0)
    less = a_job(id="job", chunks="2:ncpus=1:mem=30gb", limit_s=13 * H)
    assert planned(less, pool=pool, running=busy())["job"][:2] == (["n1"], 20 * H)


def test_two_bounds_and_a_list_of_users_all_hold():
    pool = {**SMP, "access": [{"users": ["ann"], "cpus": ">= 2, < 4", "time": "> 1h"}]}

    def may(user, cpus, limit_s):
        job = a_job(id="job", shared=True, cpus=cpus, user=user, limit_s=limit_s)
        return planned(job, pool=pool, running=busy())["job"][1] == 0

    assert may("ann", 2, 2 * H)
    assert may("ann", 3, 2 * H)
    assert not may("ann", 1, 2 * H)
    assert not may("ann", 4, 2 * H)
    assert not may("ann", 2, H)
    assert not may("bob", 2, 2 * H)


@pytest.mark.parametrize("horizon_s", [None, DAY_S])
def test_a_job_that_needs_such_a_node_and_has_no_access_is_told_who_has(horizon_s):
    both = a_job(2, id="both", shared=True, cpus=2, limit_s=13 * H)
    huge = a_job(3, id="huge", shared=True, cpus=2, limit_s=13 * H)
    found = planned(both, huge, running=busy(), horizon_s=horizon_s)
    _, start_s, reason = found["both"]
    assert start_s == NEVER
    assert reason.code is ReasonCode.NEVER
    assert reason.text == (
        f"has no access to nodes that it needs: FreePool large memory keeps nodes for {WHO}"
    )
    assert "FreePool" not in found["huge"][2].text


def test_explain_names_the_pool_who_gets_in_and_when_it_would_start():
    rules = {"free_pools": [SMP, {"name": "other", "nodes": {"names": "n9"}}]}
    policy, site = build(parse_policy("openccs")), a_site(rules)
    job = a_job(id="job", chunks="1:ncpus=4", limit_s=13 * H)
    snapshot = a_snapshot(nodes=NODES, jobs=[job], running=busy())()
    plan = run(snapshot, Memory(), policy, site=site)
    published = Published(snapshot, plan, NodeIndex(snapshot.nodes.names))
    reply = explain(published, "job", what_if_under(policy.plan.conditions(site)))
    assert any(
        line.startswith("FreePool large memory keeps nodes from it; with access it would start at")
        for line in reply.lines
    )
    assert nothing_helps(WORDS) not in reply.lines
    shorter, access = reply.changes
    assert (shorter.time_limit_s, shorter.start_s) == (12 * H, 0)
    assert (list(access.free_pools), access.start_s) == (["large memory"], 0)
    assert access.text == f"with access to FreePool large memory (access: {WHO})"


def test_a_resource_that_the_cluster_does_not_have_is_asked_for_by_nobody():
    pool = {**SMP, "access": [{"fpga": ">= 1"}, {"chunk": {"fpga": ">= 1"}}]}
    job = a_job(id="job", shared=True, cpus=1)
    assert planned(job, pool=pool, running=busy())["job"][0] == ["n1"]
    site = Site(parse_rules({"free_pools": [pool]}))
    assert unknown_to(site, a_snapshot(nodes=NODES)()) == ("fpga",)


def test_a_new_minimum_strands_the_small_chunks_that_are_planned_there():
    jobs = [
        a_job(id="small", chunks="1:ncpus=1", limit_s=13 * H),
        a_job(id="large", chunks="1:ncpus=17", limit_s=13 * H),
        a_job(id="mixed", chunks="1:ncpus=17+2:ncpus=1,place=scatter", limit_s=13 * H),
    ]
    running = (*busy(H), a_running_job(nodes=(2,), end_s=H, cpus=16, shared=True))
    nodes = [*NODES, a_node(16, 64 * GIB)]
    snapshot = a_snapshot(nodes=nodes, jobs=jobs, running=running)()
    plan = run(snapshot, Memory(), build(parse_policy("openccs")), np.random.default_rng(0))
    assert all(1 in plan.nodes_of(row) for row in range(3))
    lowered = lower(Site(parse_rules({"free_pools": [SMP]}), cron_s=DAY_S), snapshot)
    assert [(snapshot.jobs.id[plan.job[one.row]], one.text) for one in stranded(lowered, plan)] == [
        ("small", "nodes that FreePool large memory keeps free")
    ]


@each(seed=range(60))
def test_no_small_and_long_chunk_lies_on_a_large_node(seed):
    """Looked at chunk by chunk, without what the planner knows of pools."""
    snapshot = random_world(seed, chunks=True)
    pool = {
        "name": "large",
        "nodes": {"having": "gpu"},
        "access": [{"chunk": {"cpus": ">= 2"}}, {"time": "<= 90s"}, {"cpus": ">= 6"}],
    }
    policy = build(parse_policy("openccs"))
    plan = run(snapshot, Memory(), policy, site=a_site({"free_pools": [pool]}))
    large = set(np.flatnonzero(snapshot.nodes.capacity[:, 2] > 0).tolist())
    jobs = snapshot.jobs
    for row in range(len(plan)):
        job = plan.job[row]
        requested = jobs.chunks[job]
        if requested is None or plan.end_s[row] - plan.start_s[row] <= 90:
            continue
        kinds = requested.request.kinds
        cpus = [want[0] + requested.per_node[0] for want in requested.wants]
        if (
            sum(kind.count * want[0] for kind, want in zip(kinds, requested.wants, strict=True))
            >= 6
        ):
            continue
        packed = requested.request.place.arrangement is Arrangement.PACK
        together = sum(kind.count * n for kind, n in zip(kinds, cpus, strict=True))
        for at in range(plan.indptr[row], plan.indptr[row + 1]):
            if plan.nodes[at] not in large:
                continue
            there = [0] if len(kinds) == 1 else np.flatnonzero(plan.groups[at]).tolist()
            assert all((together if packed else cpus[kind]) >= 2 for kind in there), seed
