# SPDX-License-Identifier: Apache-2.0
"""A cluster of 64 nodes below four pods: jobs land where the placer says, and it is shown."""

import json
import subprocess
from collections.abc import Iterator
from xml.etree import ElementTree

import pytest

from tests.integration.slurm import Cluster, expand
from tests.integration.test_dispatch import metric

NODES, PODS, LEAF = 64, 4, 4


@pytest.fixture(scope="module")
def tree() -> Iterator[Cluster]:
    """Slurm has the switches, too: topology/tree."""
    cluster = Cluster(
        "sbtree", "--nodes", str(NODES), "--packed", "--cpus", "4", "--topology", "tree"
    )
    cluster.up()
    policy = "{preset: easy, place: compact}"
    cluster.inside("service", "sh", "-c", f"echo '{policy}' > /tmp/policy.yaml")
    cluster.inside("service", "schedbridge", "policy", "set", "/tmp/policy.yaml")
    yield cluster
    cluster.down()


@pytest.fixture
def empty(tree: Cluster) -> Iterator[Cluster]:
    yield tree
    tree.root("sh", "-c", "squeue -h -o %A | sort -u | xargs -r scancel --quiet")
    tree.root("scontrol", "update", "PartitionName=main", "State=UP")
    tree.wait_empty()
    tree.wait_for(
        "idle nodes",
        lambda: tree.run("sinfo", "-h", "-p", "main", "-o", "%D %t") == f"{NODES} idle",
    )


def leaf(node: str) -> int:
    return (int(node.removeprefix("n")) - 1) // LEAF


def shown(cluster: Cluster, *words: str) -> dict[str, object]:
    text = cluster.run("schedbridge", "topology", "show", "--json", *words)
    found: dict[str, object] = json.loads(text)
    return found


def jobs_of(told: dict[str, object]) -> dict[str, dict[str, object]]:
    listed = told["jobs"]
    assert isinstance(listed, list)
    return {job["id"]: job for job in listed}


def submit(cluster: Cluster, nodes: int, *options: str) -> str:
    return cluster.sbatch(f"-N{nodes}", "--exclusive", "-t5", *options, run="sleep 300")


def connections(cluster: Cluster) -> int:
    """Of operators with the service."""
    sockets = cluster.inside("service", "cat", "/proc/net/unix").splitlines()
    return sum("operator" in line and line.split()[5] == "03" for line in sockets)


def opened(cluster: Cluster, sizes: list[int]) -> tuple[list[str], dict[str, object]]:
    """Submits jobs while their partition is down, opens it, and records the cycle in between."""
    cluster.root("scontrol", "update", "PartitionName=main", "State=DOWN")
    jobs = [submit(cluster, size) for size in sizes]
    cluster.wait_for(
        "the whole queue in the service",
        lambda: (
            json.loads(cluster.run("schedbridge", "status", "--json"))["jobs_pending"] == len(jobs)
        ),
    )
    out = "/tmp/opened"
    cluster.inside("service", "rm", "-rf", out)
    words = f"schedbridge lab record --out {out} --cycles 1 --min-queue {len(jobs)}"
    callers = connections(cluster)
    recorder = subprocess.Popen(
        ["docker", "exec", f"{cluster.name}-service", "sh", "-c", words],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        cluster.wait_for("the recorder", lambda: connections(cluster) > callers)
        cluster.root("sleep", "2")  # from its call to its question
        cluster.root("scontrol", "update", "PartitionName=main", "State=UP")
        _, said = recorder.communicate(timeout=60)
    finally:
        recorder.kill()
    assert recorder.returncode == 0, said
    files = cluster.inside("service", "sh", "-c", f"ls {out}/*.cycle.json.gz")
    text = cluster.inside("service", "schedbridge", "topology", "show", "--json", files)
    told: dict[str, object] = json.loads(text)
    return jobs, told


def test_jobs_that_start_together_land_as_the_cycle_says(empty: Cluster) -> None:
    """Five jobs on a tree with holes: Slurm's allocations are the recorded plan's, node by node."""
    holes = [submit(empty, 1, "-w", f"n{number}") for number in (2, 19, 37, 38, 60)]
    for job in holes:
        empty.wait_state(job, "RUNNING")
    before = metric(empty, "schedbridge_hops_total")
    sizes = [3, 16, 7, 12, 2]
    jobs, told = opened(empty, sizes)
    planned = jobs_of(told)
    for job, size in zip(jobs, sizes, strict=True):
        empty.wait_state(job, "RUNNING")
        held = expand(empty.job(job)["NodeList"])
        assert len(held) == size
        assert planned[job]["nodes"] == held
        assert planned[job]["running"] is False
    # Alone on this tree every one of them fits below as few leaf switches as its size needs, but
    # for the sixteen: no pod is whole. Together they must at least not be scattered.
    assert all(
        planned[job]["leaf_switches"] <= -(-size // LEAF) + 1
        for job, size in zip(jobs, sizes, strict=True)
    )
    # The metric counts the improved placement, in thousandths of a hop, as `cost` does.
    after = metric(empty, "schedbridge_hops_total")
    cost = sum(float(planned[job]["cost"]) for job in jobs)  # type: ignore[arg-type]
    assert after['when="after"'] - before['when="after"'] == pytest.approx(cost, rel=1e-6)
    assert after['when="before"'] - before['when="before"'] > cost
    # And the living service shows the same jobs, running.
    now = jobs_of(shown(empty))
    assert {job: now[job]["nodes"] for job in jobs} == {job: planned[job]["nodes"] for job in jobs}
    assert all(now[job]["running"] for job in (*jobs, *holes))


def test_a_job_fits_a_pod_though_lower_nodes_are_free(empty: Cluster) -> None:
    """n1-n4 and the last pod are free of blockers: sixteen nodes go below one pod."""
    blockers = [submit(empty, 1, "-w", f"n{number}") for number in (6, 21, 39)]
    for job in blockers:
        empty.wait_state(job, "RUNNING")
    job = submit(empty, 16)
    empty.wait_state(job, "RUNNING")
    assert expand(empty.job(job)["NodeList"]) == [f"n{number}" for number in range(49, 65)]
    assert jobs_of(shown(empty))[job]["hops_per_pair"] == pytest.approx((12 * 4 + 3 * 2) / 15)
    explained = empty.run("schedbridge", "explain", job)
    assert "n[49-64]" in explained


def test_everybody_may_look_and_nothing_is_told_of_waiting_jobs(empty: Cluster) -> None:
    running = submit(empty, 64)
    empty.wait_state(running, "RUNNING")
    waiting = empty.sbatch("-N2", "--exclusive", "-t5", user="alice", run="sleep 1")
    for user in ("user", "bob"):
        out = empty.run("schedbridge", "topology", "show", user=user)
        assert "64 nodes: 64 busy" in out
        assert "  leaf1..leaf4" not in out, "sixteen leaf switches have a line each"
        assert out.count("AAAA") == NODES // LEAF
    told = shown(empty)
    assert running in jobs_of(told)
    assert waiting not in jobs_of(told)
    assert told["levels"] == 3
    drawn = empty.run("sh", "-c", "schedbridge topology show --svg t.svg && cat t.svg")
    assert drawn.count("<title>n") == NODES
    ElementTree.fromstring(drawn)
    checked = empty.run("schedbridge", "topology", "check", "/etc/slurm/topology.conf", "--live")
    assert "64 nodes, 16 leaf switches of 4, 3 levels" in checked


def test_a_drained_node_is_shown_and_not_used(empty: Cluster) -> None:
    empty.root("scontrol", "update", "NodeName=n64", "State=DRAIN", "Reason=test")
    empty.wait_for("n64 drained", lambda: shown(empty)["down"] == 1)
    assert "  leaf16  ...!" in empty.run("schedbridge", "topology", "show")
    job = submit(empty, 16)
    empty.wait_state(job, "RUNNING")
    held = expand(empty.job(job)["NodeList"])
    assert {leaf(node) // 4 for node in held} in ({0}, {1}, {2})
    empty.root("scontrol", "update", "NodeName=n64", "State=RESUME")
