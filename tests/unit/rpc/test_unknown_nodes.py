# SPDX-License-Identifier: Apache-2.0
"""What running jobs hold on nodes that are not known counts to limits and FreePools."""

import numpy as np
import pytest

from bridge.check.legality import check
from bridge.check.site_rules import broken_rules
from bridge.extensions.power.rules import Corridor, NodePower, PowerRules, with_power
from bridge.model.rules.limits import Access, ConsumerKind, FreePool, Items, Limit, Rules
from bridge.model.rules.node_set import NodeSet
from bridge.model.rules.site import Site
from bridge.registry import PRESETS, build
from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.safe_cycle.decider import Decider
from tests.unit.rpc.worlds import (
    NOW_S,
    a_delta,
    a_full,
    a_job,
    a_node,
    a_request,
    a_running_job,
    a_session,
    running_of,
    some_nodes,
)

GPUS = [pb.Gres(name="gpu", count=2)]


def limited(cpus):
    return Site(Rules(limits=(Limit(ConsumerKind.USER, "*", "cpus", Items(cpus)),)))


def running(job_id, user, *uses):
    job = a_running_job(job_id, "", end_s=NOW_S + 5000)
    job.user = user
    job.allocation.uses.extend(uses)
    return job


def waiting(job_id, user):
    return a_job(
        job_id, user=user, request=a_request(min_nodes=1, max_nodes=1, min_cpus_per_node=2)
    )


def elsewhere(session):
    """CPUs, memory and GPUs of each job on nodes that are not known."""
    return {job_id: job["use_elsewhere"] for job_id, job in running_of(session).items()}


def starting(snapshot, site, preset="conservative"):
    plan = Decider(build(PRESETS[preset]), site=site).decide(snapshot)
    return snapshot.jobs.id[plan.job[plan.start_s == snapshot.now_s]].tolist(), plan


def test_what_is_stated_of_nodes_that_are_not_known_is_held_there():
    nodes = [a_node("n0", gres=GPUS), a_node("n1", cpus=64, memory_mib=5000)]
    held = {
        "8": [pb.NodeUse(nodes="m[1-3]", cpus=2, memory_mib=100, gres=GPUS)],
        "9": [pb.NodeUse(nodes="n0,m[1,1]", cpus=2), pb.NodeUse(nodes="m2,n1", cpus=3)],
        "10": [pb.NodeUse(nodes="n[", cpus=2), pb.NodeUse(nodes="m1", cpus=1)],
        "11": [pb.NodeUse(nodes="m[1-2]", cpus=1 << 31, memory_mib=1 << 63)],
        "12": [pb.NodeUse(nodes="n0", cpus=1 << 31)],
        "13": [pb.NodeUse(nodes="n0", cpus=1)],
        "14": [pb.NodeUse(nodes="m[1-100000000]", cpus=1 << 30)] * 40,
    }  # fmt: skip
    session = a_session(a_full([running(at, "ann", *uses) for at, uses in held.items()], nodes))
    assert elsewhere(session) == {
        "8": [6, 300, 6], "9": [5, 0, 0], "10": [3, 0, 0], "11": [128, 10000, 0],
        "12": [0, 0, 0], "13": [0, 0, 0], "14": [40 << 30, 0, 0],
    }  # fmt: skip
    found = running_of(session)
    assert [found[at]["nodes_elsewhere"] for at in held] == [3, 2, 2, 2, 0, 0, 40]
    assert [found[at]["nodes"] for at in held] == [[], [0, 1], [], [], [0], [0], []]
    assert found["9"]["use"] == [[4, 1000, 2], [64, 5000, 0]]
    assert found["13"]["use"] == [[1, 0, 0]]


def test_all_else_that_is_sound_is_as_reported():
    """Two jobs, as if their nodes were known but for their end and what they hold."""

    def jobs(*nodes):
        for number, name in enumerate(nodes, 8):
            job = running(str(number), "ann", pb.NodeUse(nodes=name, cpus=1))
            job.allocation.licences.add(name="l", count=number)
            job.allocation.number = 100 + number
            job.allocation.min_power_w, job.allocation.max_power_w = 90 + number, 200 + number
            job.requeue = number == 9
            yield job

    licences = pb.Licences(items=[pb.Licence(name="l", total=40)])
    known, unknown = (
        running_of(a_session(a_full(list(jobs(*nodes)), licences=licences)))
        for nodes in (("n0", "n1"), ("m0", "n[0,7]"))
    )
    held = {"nodes", "use", "use_elsewhere", "nodes_elsewhere", "exclusive", "end_s"}
    for job_id in ("8", "9"):
        assert {
            name for name, value in known[job_id].items() if unknown[job_id][name] != value
        } <= held


def test_a_node_that_cannot_be_read_is_held_as_stated():
    """It has nothing that could be held whole; two jobs, one of which is on an unknown node too."""
    jobs = [
        running("8", "ann", pb.NodeUse(nodes="n1,m1", cpus=2)),
        running("9", "ann", pb.NodeUse(nodes="n1", cpus=3)),
    ]
    session = a_session(a_full(jobs, [a_node("n0"), a_node("n1", cpus=1 << 31)]))
    found = running_of(session)
    assert [found[at]["use"] for at in ("8", "9")] == [[[2, 0]], [[3, 0]]]
    assert elsewhere(session) == {"8": [2, 0], "9": [0, 0]}


def test_a_node_that_becomes_known_is_held_there():
    job = running("8", "ann", pb.NodeUse(nodes="n[3-4]", cpus=2))
    session = a_session(a_full([job, running("9", "bob", pb.NodeUse(nodes="n5", cpus=1))]))
    assert elsewhere(session) == {"8": [2, 0], "9": [1, 0]}
    assert session.apply(a_delta(1, nodes=[a_node("n5")]))
    assert elsewhere(session) == {"8": [2, 0], "9": [0, 0]}
    assert running_of(session)["9"]["use"] == [[1, 0]]
    assert not session.apply(a_delta(2, now_s=NOW_S + 70, removed_nodes=["n3"]))  # is that so?
    assert session.apply(a_full([job], some_nodes(3), generation=3, now_s=NOW_S + 71))
    assert elsewhere(session)["8"] == [4, 0]


@pytest.mark.parametrize("preset", ["slurm-like", "conservative", "openccs"])
def test_limits_count_what_is_held_on_nodes_that_are_not_known(preset):
    """Wholly unknown nodes of one user, partly unknown ones of another; a third one may start."""
    jobs = [
        running("8", "ann", pb.NodeUse(nodes="m[1-3]", cpus=2)),
        running("9", "bob", pb.NodeUse(nodes="n1,m1", cpus=2)),
        running("10", "joe", pb.NodeUse(nodes="n2", cpus=4)),
        waiting("1", "ann"), waiting("2", "bob"), waiting("3", "joe"),
    ]  # fmt: skip
    snapshot, _ = a_session(a_full(jobs)).snapshot()
    assert starting(snapshot, limited(6), preset)[0] == ["3"]
    assert starting(snapshot, limited(8), preset)[0] == ["1", "2", "3"]


def test_freepools_count_what_is_held_on_nodes_that_are_not_known():
    """16 CPUs are known: 2 are held there by joe, and 8 elsewhere by two others."""
    jobs = [
        running("8", "ann", pb.NodeUse(nodes="m1", cpus=5)),
        running("9", "bob", pb.NodeUse(nodes="m2", cpus=3)),
        running("10", "joe", pb.NodeUse(nodes="n2", cpus=2)),
        waiting("1", "ann"), waiting("2", "bob"), waiting("3", "eve"),
    ]  # fmt: skip
    snapshot, _ = a_session(a_full(jobs)).snapshot()
    access = (Access(users=frozenset({"eve"})),)
    for keep, started in ((2, ["1", "2", "3"]), (4, ["1", "3"]), (6, ["3"])):
        pool = FreePool("eves", resource="cpus", keep=Items(keep), access=access)
        assert starting(snapshot, Site(Rules(free_pools=(pool,))))[0] == started, keep


def test_the_check_counts_it_by_itself():
    """It finds the rows of a plan that was made as if nothing were held there."""
    jobs = [
        running("8", "ann", pb.NodeUse(nodes="m1", cpus=5)),
        running("9", "bob", pb.NodeUse(nodes="m2", cpus=3)),
        waiting("1", "ann"), waiting("2", "bob"),
    ]  # fmt: skip
    snapshot, _ = a_session(a_full(jobs)).snapshot()
    table = snapshot.running
    blind = snapshot.with_running(
        table.with_columns(use_elsewhere=np.zeros_like(table.use_elsewhere))
    )
    started, plan = starting(blind, limited(6))
    assert started == ["1", "2"]
    assert broken_rules(blind, limited(6), plan) == []
    ((row, text),) = broken_rules(snapshot, limited(6), plan)
    assert snapshot.jobs.id[plan.job[row]] == "1"
    assert text == "is more than the limit of user ann on cpus leaves"


def test_the_bound_of_power_counts_them_in_planning_and_in_the_check():
    """Jobs on an unknown and on three unknown nodes, of 90 W each by the type or as stated."""
    jobs = [
        running("8", "ann", pb.NodeUse(nodes="m1", cpus=1)),
        running("9", "bob", pb.NodeUse(nodes="m[2-4]", cpus=1)),
        waiting("1", "ann"), waiting("2", "bob"),
    ]  # fmt: skip
    jobs[1].allocation.max_power_w = 90
    snapshot, _ = a_session(a_full(jobs)).snapshot()
    table = snapshot.running
    blind = snapshot.with_running(
        table.with_columns(nodes_elsewhere=np.zeros_like(table.nodes_elsewhere))
    )
    kinds = (NodePower("all", NodeSet(), 0, 90),)
    site = with_power(Site(), PowerRules(Corridor((0,), (0,), (4 * 90 + 45,)), kinds))
    assert starting(snapshot, site)[0] == ["1"]
    started, plan = starting(blind, site)
    assert started == ["1", "2"]
    assert not any("power" in str(one) for one in check(blind, site, plan))
    assert any("power" in str(one) for one in check(snapshot, site, plan))
