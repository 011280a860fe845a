# SPDX-License-Identifier: Apache-2.0
"""The OpenCCS policy on a real cluster: what it plans shows in squeue and in explain, and runs."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest

from tests.integration.slurm import Cluster
from tests.integration.test_chunks import held


@contextmanager
def policy(cluster: Cluster, **parameters: object) -> Iterator[None]:
    text = json.dumps({"preset": "openccs", "plan": {"name": "openccs", **parameters}})
    cluster.inside("service", "sh", "-c", f"echo '{text}' > /tmp/policy.yaml")
    cluster.inside("service", "schedbridge", "policy", "set", "/tmp/policy.yaml")
    try:
        yield
    finally:
        cluster.inside("service", "schedbridge", "policy", "set", "slurm-like")


@pytest.fixture
def openccs(cluster: Cluster) -> Iterator[Cluster]:
    with policy(cluster):
        yield cluster


def announced_s(cluster: Cluster, job: str) -> int:
    """The start that squeue shows, once there is one."""

    def shown() -> int:
        text = cluster.run("squeue", "--start", "-h", "-j", job, "-o", "%S")
        return (
            0 if text in ("", "N/A") else int(datetime.fromisoformat(f"{text}+00:00").timestamp())
        )

    return cluster.wait_for(f"an announced start of {job}", shown, 30)


def explained(cluster: Cluster, job: str) -> str:
    return cluster.run("schedbridge", "explain", job)


@pytest.mark.parametrize(
    ("options", "cpus"),
    [
        (("--chunks=1:ncpus=3+2:ncpus=1", "--place=scatter"), [1, 1, 3]),
        (("--chunks=2:ncpus=3+2:ncpus=1",), [4, 4]),
        (("--chunks=1:ncpus=2+2:ncpus=1", "--place=pack"), [4]),
        (("--chunks=1:ncpus=2:large=true+1:ncpus=1", "--place=scatter"), [1, 2]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value[0], str) else "",
)
def test_chunks_of_several_kinds_run_cpu_for_cpu(
    openccs: Cluster, options: tuple[str, ...], cpus: list[int]
) -> None:
    job = openccs.sbatch("-t1", *options, run="sleep 60")
    found = held(openccs, job)
    assert sorted(found.values()) == cpus
    if "large=true" in options[0]:
        assert {node for node, n in found.items() if n == 2} <= {"n5", "n6", "n7", "n8"}


def test_an_announced_start_stands_against_higher_priority(openccs: Cluster) -> None:
    blocker = openccs.sbatch("-N8", "--exclusive", "-t2", run="sleep 300")
    openccs.wait_state(blocker, "RUNNING")
    old = openccs.sbatch("-N8", "--exclusive", "-t2", run="sleep 300")
    promised = announced_s(openccs, old)
    new = openccs.sbatch("-N8", "--exclusive", "-t2", run="sleep 300")
    openccs.root("scontrol", "update", f"JobId={new}", "Priority=4000000000")
    assert announced_s(openccs, new) >= promised + 120
    assert announced_s(openccs, old) == promised
    assert blocker in explained(openccs, old)


def test_a_lost_node_is_replanned_and_its_return_too(openccs: Cluster) -> None:
    blocker = openccs.sbatch("-N8", "--exclusive", "-t2", run="sleep 300")
    openccs.wait_state(blocker, "RUNNING")
    wide = openccs.sbatch("-N8", "--exclusive", "-t1")
    narrow = openccs.sbatch("-N7", "--exclusive", "-t1")
    first = announced_s(openccs, wide)
    assert announced_s(openccs, narrow) == first + 60
    openccs.root("scontrol", "update", "NodeName=n3", "State=DRAIN", "Reason=test")
    try:
        openccs.wait_for("the reason", lambda: "only 7 are up" in explained(openccs, wide), 30)
        openccs.wait_for(
            "the narrow job to move up", lambda: announced_s(openccs, narrow) <= first, 30
        )
    finally:
        openccs.root("scontrol", "update", "NodeName=n3", "State=RESUME")
    openccs.wait_for("the wide job's return", lambda: announced_s(openccs, wide) >= first, 30)


def test_a_free_pool_by_cron_keeps_nodes_from_long_jobs(cluster: Cluster) -> None:
    opens = (datetime.now(UTC) + timedelta(minutes=10)).replace(second=0, microsecond=0)
    pool = {
        "name": "maintenance",
        "nodes": {"names": ["n[1-8]"]},
        "valid": {"cron": f"{opens.minute} {opens.hour} * * *", "length": "30m"},
    }
    with policy(cluster, rules={"free_pools": [pool]}):
        long = cluster.sbatch("-N2", "--exclusive", "-t60", run="sleep 300")
        short = cluster.sbatch("-N2", "--exclusive", "-t5")
        cluster.wait_state(short, "COMPLETED")
        assert announced_s(cluster, long) == int((opens + timedelta(minutes=30)).timestamp())
        assert cluster.state(long) == "PENDING"
        cluster.run("scancel", long)


def test_a_limit_lets_jobs_run_one_after_the_other(cluster: Cluster) -> None:
    limit = {"user": "alice", "resource": "cpus", "items": 8}
    with policy(cluster, rules={"limits": [limit]}):
        first = cluster.sbatch("-N2", "--exclusive", "-t2", run="sleep 300", user="alice")
        cluster.wait_state(first, "RUNNING")
        second = cluster.sbatch("-N2", "--exclusive", "-t2", run="sleep 300", user="alice")
        other = cluster.sbatch("-N2", "--exclusive", "-t1", user="bob")
        cluster.wait_state(other, "COMPLETED")
        assert announced_s(cluster, second) > time.time() + 30
        assert "limit of user alice" in explained(cluster, second)
        cluster.root("scancel", first)
        cluster.wait_state(second, "RUNNING")
        cluster.root("scancel", second)
