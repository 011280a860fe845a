# SPDX-License-Identifier: Apache-2.0
"""Any job as groups of chunks, and chunks as columns."""

import numpy as np
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from bridge.errors import RequestError
from bridge.model.resources import Arrangement, Chunk, ChunkRequest, Place
from bridge.planning.requests.chunk_groups import ClusterWords, chunk_groups, lower_chunks
from bridge.planning.requests.chunks import parse_request
from bridge.registry import build, parse_policy
from bridge.slurm.request import slurm_request
from schedbridge_contracts.builders import a_job, a_node, a_snapshot
from schedbridge_contracts.cycles import Memory, check, run

CLUSTER = ClusterWords(column={"gpu": 2}, n_resources=3, features=frozenset({"ib", "rack=1"}))


def groups(job, nodes=4):
    return chunk_groups(a_snapshot(nodes=nodes, jobs=[job])(), 0)


def lowered(text, cluster=CLUSTER, **told):
    return lower_chunks(parse_request(text), cluster, **told)


def test_kinds_become_groups() -> None:
    found = groups(a_job(chunks="2:ncpus=4:mem=1gb:ngpus=3+3:ncpus=2,place=scatter:excl"))
    assert found.counts.tolist() == [2, 3]
    assert found.wants.tolist() == [[4, 1024, 3], [2, 1024, 0]]
    assert (found.arrangement, found.exclusive) == (Arrangement.SCATTER, True)
    assert (found.min_nodes, found.max_nodes, found.max_per_node) == (5, 5, 1)


def test_a_job_of_whole_nodes_is_scattered_chunks() -> None:
    found = groups(a_job(nodes=3, cpus=2, features="ib"))
    assert (found.counts.tolist(), found.wants.tolist()) == ([3], [[2, 0, 0]])
    assert (found.arrangement, found.exclusive) == (Arrangement.SCATTER, True)
    assert found.features == ("ib",)


def test_tasks_are_free_chunks_within_bounds() -> None:
    job = a_job(
        nodes=2, max_nodes=3, shared=True, tasks=7, cpus_per_task=2, max_tasks_per_node=3, mem_mib=9
    )
    found = groups(job)
    assert (found.counts.tolist(), found.wants.tolist()) == ([7], [[2, 0, 0]])
    assert found.per_node.tolist() == [0, 9, 0]
    assert (found.min_nodes, found.max_nodes, found.max_per_node) == (2, 3, 3)
    assert found.arrangement is Arrangement.FREE


@pytest.mark.parametrize(
    ("text", "memory_mib"),
    [
        ("2:ncpus=3:mem=1000mb", [1002]),  # by CPUs, rounded up
        ("2:ncpus=3:mem=1000mb,place=scatter", [1000]),
        ("2:ncpus=3:mem=1000mb,place=pack", [1000]),
        ("2:ncpus=3:mem=1000mb,place=excl", [1000]),
        ("ncpus=4:mem=4gb+2:ncpus=1:mem=3gb", [12288, 3072]),  # the largest per CPU
        ("ncpus=4:mem=4gb+2:ncpus=1:mem=3gb,place=scatter", [4096, 4096]),  # the largest
        ("ncpus=4:mem=4gb+2:ncpus=1:mem=3gb,place=pack", [4096, 3072]),
    ],
)
def test_memory_is_what_slurm_holds(text: str, memory_mib: list[int]) -> None:
    assert [want[1] for want in lowered(text).wants] == memory_mib


def test_memory_that_the_chunks_leave_open_is_what_slurm_was_told() -> None:
    assert lowered("2:ncpus=3", memory_per_cpu_mib=100).wants == ((3, 300, 0),)
    found = lowered("2:ncpus=3", memory_per_node_mib=100)
    assert (found.wants, found.per_node) == (((3, 0, 0),), (0, 100, 0))


def test_cores_are_whole() -> None:
    found = lowered("2:ncpus=3", ClusterWords(column={}, n_resources=2, threads=2))
    assert found.wants == ((4, 0),)


def test_features_of_some_chunks_are_theirs_alone() -> None:
    found = lowered("2:ib=true:rack=1+ncpus=2:rack=1", constraint="rack=1")
    assert found.features == ("rack=1&ib", "rack=1")


def test_a_group_is_one_alternative_for_each_value() -> None:
    cluster = ClusterWords(
        column={}, n_resources=2, features=frozenset({"rack=1", "rack=2", "ib", "bare"})
    )
    found = lowered("2:ib=true+ncpus=2,place=group=rack", cluster)
    assert found.features == ("[rack=1&ib|rack=2&ib]", "[rack=1|rack=2]")
    assert lowered("2:ncpus=1,place=group=bare", cluster).features == ("bare",)
    with pytest.raises(RequestError, match="no node has a feature 'row"):
        lowered("2:ncpus=1,place=group=row", cluster)
    with pytest.raises(RequestError, match="alternatives"):
        lowered("2:ncpus=1,place=group=rack", cluster, constraint="a|b")


@pytest.mark.parametrize(
    ("text", "told", "says"),
    [
        ("ncpus=1:net=IB", "net=IB", "no node has the feature or resource 'net=IB'"),
        ("ncpus=1:ib=true", "", "constraint"),
        ("ncpus=3:mpiprocs=2", "", "multiple"),
    ],
)
def test_what_the_cluster_cannot_give(text: str, told: str, says: str) -> None:
    with pytest.raises(RequestError, match=says):
        lowered(text, constraint=told)


def test_gpus_where_there_are_none() -> None:
    with pytest.raises(RequestError, match="GPUs"):
        lowered("ncpus=1:ngpus=1", ClusterWords(column={}, n_resources=2))


# ---------------------------------------------------------------- planned by backfill


def planned(*jobs, nodes=4, policy="conservative"):
    snapshot = a_snapshot(nodes=nodes, jobs=jobs)()
    plan = run(snapshot, Memory(), build(parse_policy(policy)), np.random.default_rng(0))
    assert not check(snapshot, plan)
    return plan


def test_free_chunks_share_nodes() -> None:
    plan = planned(a_job(chunks="4:ncpus=2"))
    assert plan.nodes.tolist() == [0, 1]
    assert plan.tasks.tolist() == [2, 2]


def test_scattered_chunks_do_not() -> None:
    assert len(planned(a_job(chunks="4:ncpus=1,place=scatter")).nodes) == 4


def test_packed_chunks_lie_on_one_node() -> None:
    nodes = [a_node(cpus=4), a_node(cpus=8)]
    assert planned(a_job(chunks="3:ncpus=2,place=pack"), nodes=nodes).nodes.tolist() == [1]


def test_a_chunk_is_not_split() -> None:
    plan = planned(a_job(chunks="3:ncpus=3,place=free"))
    assert plan.tasks.tolist() == [1, 1, 1]


def test_a_group_lies_within_one_value() -> None:
    nodes = [a_node(features=(f"rack={at % 2}",)) for at in range(4)]
    plan = planned(a_job(chunks="2:ncpus=4,place=scatter:group=rack"), nodes=nodes)
    assert plan.nodes.tolist() in ([0, 2], [1, 3])


@pytest.mark.parametrize("policy", ["conservative", "openccs"])
def test_a_host_is_obeyed(policy: str) -> None:
    plan = planned(a_job(chunks="2:ncpus=2:host=n3", required=(2,)), policy=policy)
    assert plan.nodes.tolist() == [2]
    assert plan.start_s.tolist() == [0]


@pytest.mark.parametrize("policy", ["easy", "conservative", "openccs"])
def test_several_kinds_are_planned(policy: str) -> None:
    nodes = [a_node(), a_node(), a_node(features=("ib",))]
    text = "2:ncpus=3+ncpus=1+2:ncpus=2:ib=true"
    plan = planned(a_job(chunks=text), nodes=nodes, policy=policy)
    assert plan.groups is not None
    assert plan.groups.sum(axis=0).tolist() == [2, 1, 2]
    assert plan.groups[plan.nodes == 2].tolist() == [[0, 0, 2]]


# ---------------------------------------------------------------- as planned, so held by Slurm


@st.composite
def requests(draw: st.DrawFn) -> ChunkRequest:
    kinds = st.builds(
        Chunk,
        count=st.integers(1, 9),
        ncpus=st.integers(1, 48),
        mem_mib=st.integers(0, 9999),
        amounts=st.sampled_from(((), (("gpu", 1),), (("gpu", 2),))),
    )
    place = st.builds(Place, st.sampled_from(Arrangement), st.booleans())
    return ChunkRequest(tuple(draw(st.lists(kinds, min_size=1, max_size=3))), draw(place))


@given(requests())
def test_slurm_holds_what_is_planned(request: ChunkRequest) -> None:
    try:
        held = slurm_request(request, CLUSTER.generic)
    except RequestError:
        reject()  # GPUs that Slurm has no words for
    found = lower_chunks(request, CLUSTER)
    kinds, counts = request.kinds, [kind.count for kind in request.kinds]
    assert held.tasks * held.cpus_per_task == request.n_cpus
    assert all(kind.ncpus % held.cpus_per_task == 0 for kind in kinds)
    assert 1 <= held.min_nodes <= held.max_nodes <= request.n_chunks
    planned_mib = [want[1] for want in found.wants]
    assert all(mib >= kind.mem_mib for mib, kind in zip(planned_mib, kinds, strict=True))
    if held.memory_per_cpu_mib:
        assert planned_mib == [kind.ncpus * held.memory_per_cpu_mib for kind in kinds]
    elif request.place.arrangement is Arrangement.SCATTER and request.n_chunks > 1:
        assert set(planned_mib) == {held.memory_per_node_mib}
    elif held.memory_per_node_mib:
        total = sum(n * mib for n, mib in zip(counts, planned_mib, strict=True))
        assert total == held.memory_per_node_mib
    gpus = sum(n * want[2] for n, want in zip(counts, found.wants, strict=True))
    (per_node,), (per_task,) = (
        [number for _, number in amounts] or [0] for amounts in (held.per_node, held.per_task)
    )
    assert gpus == held.gpus + per_node * held.max_nodes + per_task * held.tasks
