# SPDX-License-Identifier: Apache-2.0
"""The OpenCCS policy on a real cluster: what it plans shows in squeue and in explain, and runs."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest

from tests.integration.slurm import Cluster, announced_s, expand, instant_s
from tests.integration.test_chunks import held

LOG = "/var/log/slurm/schedbridge.log"
CONFIG = "/etc/schedbridge/bridge.yaml"


def reload(cluster: Cluster, config: str) -> None:
    """The service reads another configuration."""

    def read() -> int:
        return int(cluster.inside("service", "sh", "-c", f"grep -c '{told}' {LOG} || true"))

    told = "limits and FreePools reloaded"
    before = read()
    cluster.inside("service", "sh", "-c", f"cat > {CONFIG} <<'EOF'\n{config}\nEOF")
    cluster.inside("service", "sh", "-c", "kill -HUP $(cat /run/slurm/schedbridge.pid)")
    cluster.wait_for("the rules", lambda: read() > before)


@contextmanager
def site(cluster: Cluster, **planning: object) -> Iterator[None]:
    """The policy openccs, under rules of the site."""
    kept = cluster.inside("service", "cat", CONFIG)
    with cluster.openccs():
        reload(cluster, f"{kept}\nplanning: {json.dumps(planning)}")
        try:
            yield
        finally:
            reload(cluster, kept)


@pytest.fixture
def openccs(cluster: Cluster) -> Iterator[Cluster]:
    with cluster.openccs():
        yield cluster


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


def test_a_chunk_request_that_waits_shows_its_start_and_what_it_waits_for(openccs: Cluster) -> None:
    blocker = openccs.sbatch("-N6", "--exclusive", "-t3", run="sleep 300")
    openccs.wait_state(blocker, "RUNNING")
    options = ("--chunks=1:ncpus=4+4:ncpus=2", "--place=scatter")
    job = openccs.sbatch("-t1", *options, run="sleep 60")
    free_s = instant_s(openccs.job(blocker)["EndTime"])
    assert announced_s(openccs, job) == free_s
    assert len(expand(openccs.job(job)["SchedNodeList"])) == 5
    text = explained(openccs, job)
    assert f"waits for job {blocker}" in text
    assert "with 1 chunk in place of 4" in " ".join(text.split())
    openccs.run("scancel", blocker)
    assert sorted(held(openccs, job).values()) == [2, 2, 2, 2, 4]


@pytest.fixture
def featured(openccs: Cluster) -> Iterator[Cluster]:
    """Three racks (n1-n3, n4-n6, n7-n8) and InfiniBand on n2, n4 and n5."""
    nodes = [f"n{number}" for number in range(1, 9)]
    racks = dict(zip(nodes, "aaabbbcc", strict=True))
    before = {
        node: openccs.run("sinfo", "-N", "-h", "-n", node, "-o", "%b").splitlines()[0]
        for node in nodes
    }

    def give(node: str, features: str) -> None:
        openccs.root(
            "scontrol", "update", f"NodeName={node}", f"AvailableFeatures={features}",
            f"ActiveFeatures={features}",
        )  # fmt: skip

    for node in nodes:
        fabric = ",net=IB" if node in ("n2", "n4", "n5") else ""
        give(node, f"{before[node]},rack={racks[node]}{fabric}")
    try:
        yield openccs
    finally:
        for node in nodes:
            give(node, before[node])


def test_a_group_lies_in_one_rack(featured: Cluster) -> None:
    """Two CPUs are taken on n2: no rack but the second has three whole nodes."""
    blocker = featured.sbatch("-t5", "--chunks=1:ncpus=2:host=n2", run="sleep 300")
    featured.wait_state(blocker, "RUNNING")
    options = ("--chunks=3:ncpus=4", "--place=scatter:group=rack")
    first = featured.sbatch("-t3", *options, run="sleep 300")
    assert set(held(featured, first)) == {"n4", "n5", "n6"}
    second = featured.sbatch("-t2", *options, run="sleep 60")
    third = featured.sbatch("-t2", "--chunks=4:ncpus=4", "--place=scatter:group=rack")
    text = featured.job(first)["EndTime"]
    free_s = instant_s(text)
    assert announced_s(featured, second) == free_s  # though n1, n3, n7 and n8 are free
    assert f"waits for job {first}" in explained(featured, second)
    featured.wait_for("the third's reason", lambda: "can hold it" in explained(featured, third), 30)
    featured.run("scancel", blocker)
    assert set(held(featured, second)) == {"n1", "n2", "n3"}


def test_chunks_on_nodes_with_infiniband(featured: Cluster) -> None:
    """Heterogeneous features: each kind of chunk where its resources are."""
    options = ("--chunks=2:ncpus=4:net=IB+2:ncpus=1:rack=c", "--place=scatter")
    job = featured.sbatch("-t2", *options, run="sleep 60")
    found = held(featured, job)
    assert {node for node, cpus in found.items() if cpus == 4} < {"n2", "n4", "n5"}
    assert {node for node, cpus in found.items() if cpus == 1} == {"n7", "n8"}
    waits = featured.sbatch("-t1", "--chunks=2:ncpus=4:net=IB", "--place=scatter", run="sleep 60")
    text = featured.job(job)["EndTime"]
    assert announced_s(featured, waits) == instant_s(text)
    assert f"waits for job {job}" in explained(featured, waits)
    never = ("-t1", "--chunks=4:ncpus=1:net=IB", "--place=scatter", "--wrap", "true")
    assert featured.process("sbatch", *never).returncode != 0  # there are three
    featured.run("scancel", job)
    assert set(held(featured, waits)) < {"n2", "n4", "n5"}


def test_the_paper_s_large_node_is_for_large_chunks_and_short_jobs(cluster: Cluster) -> None:
    """Here n8 is the large node, three CPUs are many, and three minutes are long."""
    pool = {
        "name": "large",
        "nodes": {"names": "n8"},
        "access": [{"chunk": {"cpus": ">= 3"}}, {"time": "<= 2m"}],
    }
    with site(cluster, free_pools=[pool]):
        blocker = cluster.sbatch("-N7", "--exclusive", "-t5", "-x", "n8", run="sleep 300")
        cluster.wait_state(blocker, "RUNNING")
        small = cluster.sbatch("-t3", "--chunks=1:ncpus=2", run="sleep 60")
        text = cluster.job(blocker)["EndTime"]
        free_s = instant_s(text)
        assert announced_s(cluster, small) == free_s
        told = explained(cluster, small)
        assert "FreePool large keeps nodes from it; with access it would start" in told
        assert "access: cpus >= 3 in one chunk, or time <= 2m" in " ".join(told.split())
        large = cluster.sbatch("-t3", "--chunks=1:ncpus=3", run="sleep 60")
        assert held(cluster, large) == {"n8": 3}
        short = cluster.sbatch("-t2", "--chunks=1:ncpus=1", run="sleep 60")
        assert held(cluster, short) == {"n8": 1}
        assert cluster.state(small) == "PENDING"


def test_licences_of_a_reservation_are_kept_for_it(openccs: Cluster) -> None:
    """There are four of matlab; the reservation keeps three."""
    opens_s = int(time.time()) + 120
    begin = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(opens_s))
    openccs.root(
        "scontrol", "create", "reservation", "ReservationName=course", f"StartTime={begin}",
        "Duration=10", "Nodes=n8", "Users=user", "Licenses=matlab:3",
    )  # fmt: skip
    try:
        two = ("-n1", "-L", "matlab:2")
        short = openccs.sbatch("-t1", *two)
        openccs.wait_state(short, "COMPLETED")
        long = openccs.sbatch("-t10", *two)
        inside = openccs.sbatch("-t10", "-n1", "-L", "matlab:3", "--reservation=course")
        assert announced_s(openccs, long) == opens_s + 600
        assert announced_s(openccs, inside) == opens_s
        openccs.wait_for("the reason", lambda: "reservation course" in explained(openccs, long), 30)
        assert "licence matlab is in use or kept by a reservation" in explained(openccs, long)
    finally:
        openccs.root("sh", "-c", "squeue -h -R course -o %A | xargs -r scancel --quiet")
        openccs.process("scontrol", "delete", "ReservationName=course", user="root")


def test_rules_about_what_there_is_not_are_told(cluster: Cluster) -> None:
    limit = {"user": "alice", "resource": "gpuu", "items": 8}
    with site(cluster, limits=[limit]):
        cluster.wait_for(
            "status to say so",
            lambda: "does not have: gpuu" in cluster.run("schedbridge", "status"),
            30,
        )
        told = "name resources the cluster does not have: gpuu"  # with the next report
        cluster.wait_for("the log", lambda: told in cluster.script("logs", "service"), 30)


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
        shown = openccs.run("squeue", "--start", "-h", "-j", wide, "-o", "%S")
        assert shown == "N/A"
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
    with site(cluster, free_pools=[pool]):
        long = cluster.sbatch("-N2", "--exclusive", "-t60", run="sleep 300")
        short = cluster.sbatch("-N2", "--exclusive", "-t5")
        cluster.wait_state(short, "COMPLETED")
        assert announced_s(cluster, long) == int((opens + timedelta(minutes=30)).timestamp())
        assert cluster.state(long) == "PENDING"
        told = explained(cluster, long)
        assert "FreePool maintenance keeps nodes from it; with access it would start" in told
        assert "with a time limit of" in " ".join(told.split())  # shorter, it would end before
        cluster.run("scancel", long)


def test_a_limit_lets_jobs_run_one_after_the_other(cluster: Cluster) -> None:
    limit = {"user": "alice", "resource": "cpus", "items": 8}
    with site(cluster, limits=[limit]):
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
