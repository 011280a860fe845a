# SPDX-License-Identifier: Apache-2.0
"""Running jobs whose ids are impossible count as others do, and nobody can name them."""

import pytest

from bridge.check.legality import check
from bridge.extensions.power.rules import Corridor, NodePower, PowerRules, with_power
from bridge.model.rules.node_set import NodeSet
from bridge.model.rules.site import Site
from bridge.ports import Promises, State
from bridge.recording.recordings import Recording, decode, encode
from bridge.registry import PRESETS
from bridge.rpc.controller.cycles import Published
from bridge.rpc.operators.explain import explain
from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.rpc.reported.decode_allocation import is_id
from bridge.rpc.reported.hostlist import NodeIndex
from tests.unit.rpc.test_unknown_nodes import limited, running, starting, waiting
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
)

IMPOSSIBLE = {
    "none, twice": ("", ""), "a space": ("8 ", "9 9"), "unprintable": ("8\n", "8\t"),
    "too long": ("8" * 5000, "8" * 4999 + "9"), "the key of another": ("", "? (1)"),
}  # fmt: skip
"""Pairs of ids that no two jobs can have; what is shown of some pairs is the same."""


def two(ids, **settings):
    """Two running jobs, on n0 and n1."""
    return [a_running_job(each, f"n{at}", **settings) for at, each in enumerate(ids)]


def holding(session):
    """Nodes of jobs that hold some."""
    return sorted(job["nodes"] for job in running_of(session).values())


def test_they_hold_their_nodes_as_reported():
    for what, ids in IMPOSSIBLE.items():
        session = a_session(a_full([*two(ids, cpus=3), a_running_job("7", "n2"), a_job("1")]))
        assert holding(session) == [[0], [1], [2]], what
        found = running_of(session)
        odd = {key: job for key, job in found.items() if key != "7"}
        assert len(odd) == 2
        assert not any(is_id(key) for key in odd)
        for job in odd.values():
            assert (job["use"], job["exclusive"], job["user"]) == ([[3, 0]], False, "bob")


def test_one_job_waits_for_the_nodes_that_they_hold():
    whole = a_request(min_nodes=1, max_nodes=1, exclusive=True)
    for what, ids in IMPOSSIBLE.items():
        nodes = [a_node(f"n{at}") for at in range(3)]
        jobs = [*two(ids), a_job("1", request=whole), a_job("2", request=whole)]
        snapshot, _ = a_session(a_full(jobs, nodes)).snapshot()
        started, plan = starting(snapshot, Site())
        assert len(started) == 1, what
        assert plan.nodes_of(plan.start_s.tolist().index(NOW_S)).tolist() == [2]
        assert not check(snapshot, Site(), plan)


@pytest.mark.parametrize("preset", ["slurm-like", "conservative", "openccs"])
def test_limits_count_them(preset):
    jobs = [
        running("", "ann", pb.NodeUse(nodes="n0", cpus=3)),
        running("", "ann", pb.NodeUse(nodes="n1", cpus=2)),
        running("b b", "bob", pb.NodeUse(nodes="n2", cpus=1)),
        waiting("1", "ann"), waiting("2", "bob"),
    ]  # fmt: skip
    snapshot, _ = a_session(a_full(jobs)).snapshot()
    assert starting(snapshot, limited(6), preset)[0] == ["2"]
    assert starting(snapshot, limited(7), preset)[0] == ["1", "2"]


def test_licences_count_them():
    jobs = two(("", "9 "), licences=[pb.LicenceUse(name="l", count=2)])
    licences = pb.Licences(items=[pb.Licence(name="l", total=5)])
    wanted = [
        a_job(name, request=a_request(max_nodes=1, licences=[pb.LicenceUse(name="l", count=1)]))
        for name in ("1", "2")
    ]
    snapshot, _ = a_session(a_full([*jobs, *wanted], licences=licences)).snapshot()
    assert len(starting(snapshot, Site())[0]) == 1


def test_the_bound_of_power_counts_them():
    jobs = [*two(("", "9 "), max_power_w=90), waiting("1", "ann"), waiting("2", "bob")]
    kinds = (NodePower("all", NodeSet(), 0, 90),)
    for starts in (0, 1, 2):
        upper_w = 2 * 90 + starts * 45
        rules = PowerRules(Corridor((0,), (0,), (upper_w,)), kinds)
        snapshot, _ = a_session(a_full(jobs)).snapshot()
        started, plan = starting(snapshot, with_power(Site(), rules))
        assert len(started) == starts
        assert not check(snapshot, with_power(Site(), rules), plan)


def test_one_whose_allocation_cannot_be_read_either_holds_all_of_the_nodes_that_it_names():
    jobs = [a_running_job("", "n[0,7]", cpus=1), a_running_job("8 ", "n1", cpus=1 << 31)]
    found = running_of(a_session(a_full(jobs)))
    assert sorted(job["nodes"] for job in found.values()) == [[0], [1]]
    assert all(job["exclusive"] for job in found.values())


def test_they_go_with_the_next_full_report_that_does_not_have_them():
    for what, ids in IMPOSSIBLE.items():
        jobs = two(ids)
        session = a_session(a_full(jobs))
        assert session.apply(a_full(jobs, generation=2))
        assert holding(session) == [[0], [1]], what
        assert session.apply(a_full(jobs[1:], generation=3))
        assert holding(session) == [[1]], what
        assert session.apply(a_full(generation=4))
        assert holding(session) == [], what


def test_deltas_change_and_remove_them():
    jobs = two(("8 ", "9 "))
    session = a_session(a_full(jobs))
    moved = a_running_job("8 ", "n3", state=pb.JOB_STATE_COMPLETING)
    assert session.apply(a_delta(1, jobs=[moved]))
    assert holding(session) == [[1], [3]]
    assert session.apply(a_delta(2, removed_jobs=["8 "]))
    assert holding(session) == [[1]]
    assert session.apply(a_delta(3, jobs=[a_job("9 ")]))  # it waits again
    assert holding(session) == []


def test_one_of_several_with_the_same_id_is_gone_only_by_a_full_report():
    jobs = two(("", ""))
    session = a_session(a_full(jobs))
    assert session.apply(a_delta(1, removed_jobs=[""]))
    assert holding(session) == [[0], [1]]
    assert session.left_out_jobs  # so that a full report is requested
    assert session.apply(a_full(jobs[1:], generation=3))
    assert holding(session) == [[1]]


def test_nothing_is_decided_for_them():
    """They neither change their width nor share their nodes, whatever else is told of them."""
    jobs = two(("", "9 "), adapting=True, number=7, head="n0")
    for job in jobs:
        job.request.malleable.max_nodes = 4
        job.coschedule, job.extendable, job.requeue = pb.COSCHEDULE_BOTH, True, True
        job.allocation.uses[0].until_s = NOW_S + 5
    session = a_session(a_full(jobs), features=["resize", "share", "extend"])
    found = running_of(session)
    assert len(found) == 2
    for job in found.values():
        assert (job["max_nodes"], job["adapting"], job["releasing"], job["number"]) == (0, 0, 0, 0)
        assert job["coschedule"] == pb.COSCHEDULE_NEVER
        assert not job["extendable"]
        assert not job["requeue"]


def test_nobody_can_name_them_and_no_start_is_recorded():
    session = a_session(a_full([a_job("1"), a_job("2")]))
    session.apply(a_full([*two(("", "9 ")), a_job("1"), a_job("2")], generation=2))
    assert session.started == []
    snapshot, _ = session.snapshot()
    _, plan = starting(snapshot, Site())
    assert len(snapshot.running) == 2
    for key in snapshot.running.id:
        assert explain(Published(snapshot, plan, NodeIndex(snapshot.nodes.names)), key) is None
    assert explain(Published(snapshot, plan, NodeIndex(snapshot.nodes.names)), "1") is not None


def test_a_recording_holds_them():
    snapshot, _ = a_session(a_full([*two(("", "9 ")), a_job("1")])).snapshot()
    _, plan = starting(snapshot, Site())
    found = decode(
        encode(Recording(snapshot, State(Promises("easy")), PRESETS["conservative"], 1, plan))
    )
    assert found.snapshot.running.id.tolist() == snapshot.running.id.tolist()
    assert found.snapshot.running.nodes.tolist() == [0, 1]
