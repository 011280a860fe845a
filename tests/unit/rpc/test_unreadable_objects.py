# SPDX-License-Identifier: Apache-2.0
"""One object of a report that cannot be read: how it is planned, and that others are as usual."""

import pytest

from bridge.errors import SnapshotError
from bridge.extensions.power.rules import Corridor, NodePower, PowerRules, with_power
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
    jobs_of,
    partitions,
    running_of,
    some_nodes,
)

UNREADABLE = {
    "unknown node in an allocation": {"jobs": [a_running_job("9", "n99")]},
    "bad hostlist in an allocation": {"jobs": [a_running_job("9", "n[")]},
    "node held twice": {
        "jobs": [
            pb.Job(
                id="9", version=1, state=pb.JOB_STATE_RUNNING,
                allocation=pb.Allocation(
                    start_s=1, end_s=2,
                    uses=[pb.NodeUse(nodes="n0", cpus=1), pb.NodeUse(nodes="n[0-1]", cpus=1)],
                ),
            )
        ]
    },
    "absurd CPUs": {"jobs": [a_running_job("9", "n0", cpus=1 << 31)]},
    "absurd memory": {"jobs": [a_running_job("9", "n0", memory_mib=1 << 63)]},
    "a job twice": {"jobs": [a_job("9"), a_job("9")]},
    "changed and removed": {"jobs": [a_job("9")], "removed_jobs": ["9"]},
    "no id": {"jobs": [a_job("")]},
    "long id": {"jobs": [a_job("9" * 300)]},
    "unprintable id": {"jobs": [a_job("9\n")]},
    "two impossible ids of running jobs": {
        "jobs": [a_running_job("9 ", "n1", cpus=1), a_running_job("", "n0", cpus=1)]
    },
    "no state": {"jobs": [pb.Job(id="9", version=1)]},
    "unknown hold": {"jobs": [a_job("9", hold=77)]},
    "node twice": {"nodes": [a_node("n0"), a_node("n0")]},
    "node without a name": {"nodes": [a_node("")]},
    "node name with brackets": {"nodes": [a_node("n[1-2]")]},
    "huge node": {"nodes": [a_node("n0", cpus=1 << 31)]},
    "huge memory": {"nodes": [a_node("n0", memory_mib=1 << 60)]},
    "odd gres": {"nodes": [a_node("n0", gres=[pb.Gres(name="a b", count=1)])]},
    "gres twice": {"nodes": [a_node("n0", gres=[pb.Gres(name="g", count=1)] * 2)]},
    "node that never was": {"removed_nodes": ["n77"]},
    "partition twice": {
        "partitions": pb.Partitions(items=[pb.Partition(name="a"), pb.Partition(name="a")])
    },
    "partition without a name": {"partitions": pb.Partitions(items=[pb.Partition()])},
    "negative partition time": {"partitions": partitions(max_time_s=-5)},
    "more uses than nodes": {
        "jobs": [
            pb.Job(
                id="9", version=1, state=pb.JOB_STATE_RUNNING,
                allocation=pb.Allocation(start_s=1, end_s=2, uses=[pb.NodeUse()] * 5),
            )
        ]
    },
    "licence twice": {"licences": pb.Licences(items=[pb.Licence(name="l")] * 2)},
    "removed node in use": {"removed_nodes": ["n3"], "partitions": partitions("n[0-2]")},
    "absurd start": {"jobs": [a_running_job("9", "n0", end_s=0, start_s=-5)]},
}  # fmt: skip


def test_an_object_that_cannot_be_read_is_asked_for_once_and_stops_no_other():
    """Waiting jobs, running ones, nodes and the rest: two others of each are as without it."""
    jobs = [a_job("1"), a_job("3"), a_running_job("2", "n3"), a_running_job("4", "n2", cpus=1)]
    parts = partitions().items
    for what, odd in UNREADABLE.items():
        session = a_session(a_full(jobs, nodes=some_nodes(5)))
        before = running_of(session), jobs_of(session)
        assert not session.apply(a_delta(1, **odd)), what
        whole = {key: value for key, value in odd.items() if not key.startswith("removed")}
        whole["jobs"] = jobs + odd.get("jobs", [])
        whole["nodes"] = some_nodes(4) + odd.get("nodes", [])
        whole["partitions"] = pb.Partitions(
            items=[*parts, *odd.get("partitions", pb.Partitions()).items]
        )
        assert session.apply(a_full(generation=2, now_s=NOW_S + 30, **whole)), what
        assert session.apply(a_delta(2, now_s=NOW_S + 85, jobs=odd.get("jobs", []))), what
        assert session.full_requests == 1, what
        for known, now in zip(before, (running_of(session), jobs_of(session)), strict=True):
            for job_id, job in known.items():
                assert now[job_id] | {"licences": []} == job | {"licences": []}, what


def test_an_allocation_that_cannot_be_read_holds_all_of_the_nodes_that_it_names(caplog):
    odd = [
        a_running_job("8", "n[0,7]", cpus=1),
        a_running_job("9", "n1", cpus=1 << 31, start_s=-5),
        a_running_job("10", "n["),
    ]
    session = a_session(a_full([*odd, a_running_job("2", "n2", cpus=1), a_job("1")]))
    running = running_of(session)
    assert {at: held["nodes"] for at, held in running.items()} == {
        "8": [0], "9": [1], "10": [], "2": [2]
    }  # fmt: skip
    assert [running[at]["exclusive"] for at in ("8", "9", "2")] == [True, True, False]
    whole = a_node("n")  # limits count what its nodes have
    assert [running[at]["use"] for at in ("8", "9")] == [[[whole.cpus, whole.memory_mib]]] * 2
    assert "job 8 is left out: jobs[8].allocation: no node 'n7'" in caplog.text
    plan = Decider(build(PRESETS["conservative"])).decide(session.snapshot()[0])
    assert plan.start_s[0] == NOW_S
    # What is reported as it should be is as usual again; its end frees the nodes.
    assert session.apply(a_delta(1, jobs=[a_running_job("8", "n0", cpus=1)], removed_jobs=["9"]))
    assert {at: held["exclusive"] for at, held in running_of(session).items()} == {
        "8": False, "10": True, "2": False
    }  # fmt: skip


def test_an_allocation_that_cannot_be_read_holds_its_licences():
    jobs = [
        a_running_job(name, nodes, licences=[pb.LicenceUse(name="l", count=count)])
        for name, nodes, count in (("8", "n[0,7]", 2), ("9", "n[", 1))
    ]
    licences = pb.Licences(items=[pb.Licence(name="l", total=4)])
    running = running_of(a_session(a_full(jobs, licences=licences)))
    assert {name: held["licences"] for name, held in running.items()} == {"8": [2], "9": [1]}


def test_an_allocation_that_cannot_be_read_draws_its_stated_power():
    """Two such jobs, each on a node of its own, and one that waits, for which nothing is stated."""
    jobs = [
        a_running_job("8", "n[0,7]", min_power_w=90, max_power_w=150),
        a_running_job("9", "n1", cpus=1 << 31, min_power_w=95, max_power_w=200),
        a_job("1", request=a_request(max_nodes=1, exclusive=True)),
    ]
    session = a_session(a_full(jobs))
    running = running_of(session)
    watts = {at: (job["min_power_w"], job["max_power_w"]) for at, job in running.items()}
    assert watts == {"8": (90, 150), "9": (95, 200)}
    needed_w = 2 * 150 + 200 + 250 + 71  # also on the node that is not known
    for upper_w, starts in ((needed_w, True), (needed_w - 1, False)):
        corridor = Corridor((0,), (0,), (upper_w,))
        power = PowerRules(corridor, (NodePower("any", NodeSet(), 71, 250),), 0)
        decider = Decider(build(PRESETS["conservative"]), site=with_power(Site(), power))
        plan = decider.decide(session.snapshot()[0])
        assert (plan.start_s[0] == NOW_S) == starts


def test_a_waiting_job_that_cannot_be_read_any_more_is_not_planned():
    session = a_session(a_full([a_job("1"), a_job("2"), a_job("3")]))
    odd = [a_job("1", hold=76), a_job("2", hold=77)]
    assert not session.apply(a_delta(1, jobs=odd))
    assert session.apply(a_full([*odd, a_job("3")], generation=2))
    assert list(jobs_of(session)) == ["3"]
    assert session.apply(a_delta(2, jobs=[a_job("1"), a_job("4", hold=76)]))
    assert list(jobs_of(session)) == ["3", "1"]
    session.apply(a_delta(3, jobs=[a_job("1", hold=77)]))
    assert (list(jobs_of(session)), session.gone) == (["3"], [])


def test_a_job_without_a_version_is_an_error_of_the_controller():
    """It would be lost until it changes, though a whole report follows one that was damaged."""
    session = a_session(a_full([a_job("1"), a_job("2")]))
    odd = [a_job("1", version=0), a_job("2")]
    assert not session.apply(a_delta(1, jobs=odd[:1]))
    with pytest.raises(SnapshotError, match="has no version"):
        session.apply(a_full(odd, generation=2))
    assert session.apply(a_full([a_job("1"), a_job("2")], generation=3))
    assert list(jobs_of(session)) == ["1", "2"]


def test_a_job_that_is_listed_twice_holds_its_nodes():
    jobs = [a_running_job("8", "n0"), a_job("8"), a_job("9"), a_running_job("9", "n1"), a_job("1")]
    session = a_session(a_full(jobs))
    assert running_of(session).keys() == {"8", "9"}
    assert list(jobs_of(session)) == ["1"]


def test_nodes_with_too_many_kinds_of_resources_lose_their_own_only():
    kinds = [[pb.Gres(name=f"g{at}k{kind}", count=1) for kind in range(200)] for at in range(2)]
    usual = [pb.Gres(name="gpu:a100", count=2)]
    nodes = [a_node(f"o{at}", gres=each) for at, each in enumerate(kinds)]
    nodes += [a_node("n0", gres=usual), a_node("n1", gres=usual)]
    session = a_session(a_full(nodes=nodes))
    found = session.snapshot()[0]
    column = found.resources.index("gpu")
    assert found.nodes.capacity[:, column].tolist() == [0, 0, 2, 2]
    assert len(found.resources) == 2 + 200 + 2
