# SPDX-License-Identifier: Apache-2.0
"""Requests in chunks on the wire: what comes in, and what a start says of each node."""

from dataclasses import replace

import numpy as np
import pytest

from bridge.model.job import Hold
from bridge.model.plan import Plan
from bridge.planning.requests.chunks import format_request, parse_request
from bridge.registry import build, parse_policy
from bridge.rpc.controller.announcements import Announcements
from bridge.rpc.controller.chunk_allocation import chunk_uses
from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.rpc.reported.hostlist import NodeIndex
from bridge.rpc.reported.session import Session
from schedbridge_contracts.builders import a_job, a_node, a_snapshot
from schedbridge_contracts.cycles import Memory, run
from tests.unit.rpc import worlds
from tests.unit.rpc.test_decode_request import ask
from tests.unit.rpc.test_encode import through_the_wire


def requested(text, place="", **held):
    return ask(chunks=pb.Chunks(chunks=text, place=place), **held)


def test_chunks_stand_for_the_whole_request() -> None:
    low = requested("3:ncpus=2:mem=100mb", "free", tasks=3, cpus_per_task=2, memory_per_cpu_mib=50)
    assert (low.min_nodes, low.max_nodes, low.tasks) == (1, 3, 3)
    assert (low.per_node[:2], low.per_task[:2]) == ((0, 0), (2, 100))
    assert low.chunks.request == parse_request("3:ncpus=2:mem=100mb")
    assert not low.problem


def test_scattered_and_packed() -> None:
    low = requested("3:ncpus=2:ngpus=1", "scatter", tasks=3, cpus_per_task=2, min_nodes=3)
    assert (low.min_nodes, low.max_nodes, low.tasks) == (3, 3, 0)
    assert low.per_node == (2, 0, 1, 0)
    low = requested("3:ncpus=2", "pack:excl", tasks=3, cpus_per_task=2, exclusive=True)
    assert (low.min_nodes, low.max_nodes, low.per_node[0]) == (1, 1, 6)
    assert low.exclusive


def test_a_host_is_a_required_node() -> None:
    low = requested("2:ncpus=2:host=n5", tasks=2, cpus_per_task=2, required_nodes="n5")
    assert (low.required, low.min_nodes, low.max_nodes, low.per_node[0]) == ((5,), 1, 1, 4)


@pytest.mark.parametrize(
    ("text", "held", "says"),
    [
        ("2:ncpus=x", {"tasks": 2}, "--chunks: a whole number"),
        ("2:ncpus=2", {"tasks": 2}, "mean 4 CPUs, Slurm holds 2"),
        ("2:ncpus=2", {}, "Slurm holds 0"),
        ("2:ncpus=1:nvme=true", {"tasks": 2}, "constraint"),
        ("2:ncpus=1:nvme=true", {"tasks": 2, "features": "nvme"}, "no node has the feature"),
        ("x" * 5000, {"tasks": 2}, "4096"),
        ("2:ncpus=1", {"tasks": 2, "required_nodes": "n1"}, "give host="),
        ("2:ncpus=1:host=n2", {"tasks": 2, "required_nodes": "n1"}, "give host="),
        ("2:ncpus=1", {"tasks": 2, "malleable": pb.Malleable(node_constraint="odd")}, "beside"),
    ],
)
def test_what_contradicts_itself_is_the_users_problem(text, held, says) -> None:
    assert says in requested(text, **held).problem


def test_features_of_the_nodes_are_known() -> None:
    session = Session()
    session.greet(worlds.a_hello())
    request = worlds.a_request(
        chunks=pb.Chunks(chunks="2:ncpus=1", place="free:group=rack"), tasks=2
    )
    full = worlds.a_full(jobs=[worlds.a_job(request=request)])
    assert session.apply(full)
    table = session.snapshot()[0].jobs
    assert "no node has a feature 'rack" in table.hold_text[0]
    nodes = [worlds.a_node("n0", features=["rack=1"]), worlds.a_node("n1", features=["rack=2"])]
    delta = pb.CycleRequest(
        epoch=1, generation=2, base_generation=1, now_s=worlds.NOW_S, nodes=nodes
    )
    assert session.apply(delta)
    table = session.snapshot()[0].jobs
    assert table.hold[0] == Hold.NONE
    assert table.features[0] == "[rack=1|rack=2]"
    assert table.chunks[0].request.n_chunks == 2


@pytest.mark.parametrize(
    "text",
    ["3:ncpus=2:mem=1gb", "2:ncpus=4:ngpus=2,place=scatter:excl", "2:ncpus=1:mem=1gb,place=pack",
     "2:ncpus=2:ib=true+ncpus=3,place=free:group=rack"],
)  # fmt: skip
def test_a_controller_in_python_says_chunks_too(text: str) -> None:
    nodes = [a_node(gpus=2, features=("ib", f"rack={at}")) for at in range(3)]
    snapshot = a_snapshot(nodes=nodes, jobs=[a_job(chunks=text)])()
    heard = through_the_wire(snapshot).jobs
    assert heard.hold_text[0] == ""
    assert heard.chunks[0] == snapshot.jobs.chunks[0]
    for name in ("min_nodes", "max_nodes", "tasks", "per_node", "per_task", "features"):
        assert np.array_equal(getattr(heard, name), getattr(snapshot.jobs, name)), name


# ---------------------------------------------------------------- what a start says


def uses(plan: Plan, snapshot, row=0):
    index = NodeIndex(snapshot.nodes.names)
    return {use.nodes: use.cpus for use in chunk_uses(snapshot, plan, row, index)}


def planned(*jobs, nodes=4):
    snapshot = a_snapshot(nodes=nodes, jobs=jobs)()
    policy = build(parse_policy("conservative"))
    return snapshot, run(snapshot, Memory(), policy, np.random.default_rng(0))


def test_a_start_says_the_cpus_on_each_node() -> None:
    snapshot, plan = planned(a_job(chunks="3:ncpus=2"), a_job(shared=True, cpus=1))
    assert uses(plan, snapshot) == {"n1": 4, "n2": 2}
    assert uses(plan, snapshot, 1) == {}
    snapshot, plan = planned(a_job(chunks="3:ncpus=2,place=scatter"))
    assert uses(plan, snapshot) == {"n[1-3]": 2}
    snapshot, plan = planned(a_job(chunks="3:ncpus=1,place=pack"))
    assert uses(plan, snapshot) == {"n1": 3}


def test_chunks_of_several_kinds_by_their_groups() -> None:
    snapshot = a_snapshot(nodes=3, jobs=[a_job(chunks="3:ncpus=2+2:ncpus=1")])()
    plan = Plan(
        now_s=0, policy="test", job=np.zeros(1, np.int32), start_s=np.zeros(1, np.int64),
        end_s=np.full(1, 100), partition=np.zeros(1, np.int32), indptr=np.array([0, 3]),
        nodes=np.arange(3, dtype=np.int32), tasks=np.zeros(3, np.int32), reasons=(None,),
        groups=np.array([[1, 2, 0], [1, 0, 0], [1, 0, 0]], dtype=np.int32),
    )  # fmt: skip
    assert uses(plan, snapshot) == {"n1": 4, "n[2-3]": 2}


def test_decisions_carry_it() -> None:
    snapshot, plan = planned(a_job(chunks="3:ncpus=2"))
    said = Announcements().decide(
        snapshot, np.arange(1), replace(plan), NodeIndex(snapshot.nodes.names)
    )
    (message,) = said.messages
    assert [(use.nodes, use.cpus) for use in message.start.uses] == [("n2", 2), ("n1", 4)]
    assert format_request(snapshot.jobs.chunks[0].request) == "select=3:ncpus=2"
