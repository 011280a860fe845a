# SPDX-License-Identifier: Apache-2.0
"""`sbatch --switches=N@time` on a real cluster: two leaf switches of four nodes each."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.integration.slurm import Cluster, expand

CLUSTER = "sbswitches"
LEFT, RIGHT = ["n1", "n2", "n3", "n4"], ["n5", "n6", "n7", "n8"]
TOPOLOGY = """
SwitchName=left Nodes=n[1-4]
SwitchName=right Nodes=n[5-8]
SwitchName=top Switches=left,right
"""


@pytest.fixture(scope="module")
def switched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Slurm has the switches, too: topology/tree."""
    file: Path = tmp_path_factory.mktemp("switches") / "topology.conf"
    file.write_text(TOPOLOGY)
    cluster = Cluster(
        CLUSTER, "--nodes", "8", "--cpus", "4", "--packed", "--accounting", "--topology", str(file)
    )
    with cluster.standing():
        yield cluster


@pytest.fixture
def two(switched: Cluster) -> Iterator[Cluster]:
    yield switched
    switched.root("sh", "-c", "squeue -h -o %A | sort -u | xargs -r scancel --quiet")
    switched.wait_empty()


def blocked(cluster: Cluster, *nodes: str) -> list[str]:
    """Jobs that hold these nodes, each one."""
    jobs = [
        cluster.sbatch("-N1", "--exclusive", "-t30", f"-w{node}", run="sleep 1000")
        for node in nodes
    ]
    for job in jobs:
        cluster.wait_state(job, "RUNNING")
    return jobs


def wide(cluster: Cluster, nodes: int, *options: str) -> str:
    return cluster.sbatch(f"-N{nodes}", "--exclusive", "-t10", *options, run="sleep 1000")


def nodes_of(cluster: Cluster, job: str) -> list[str]:
    return expand(cluster.job(job)["NodeList"])


def waited_s(cluster: Cluster, job: str) -> int:
    """From when it was eligible until it started."""
    script = 'date -d "$1" +%s; date -d "$2" +%s'
    shown = cluster.job(job)
    told = cluster.run("sh", "-c", script, "sh", shown["EligibleTime"], shown["StartTime"])
    eligible_s, start_s = map(int, told.split())
    return start_s - eligible_s


def test_it_lands_on_one_switch(two: Cluster) -> None:
    """The first free nodes are of both switches; those of one are free, too."""
    blocked(two, "n1")
    job = wide(two, 4, "--switches=1")
    two.wait_state(job, "RUNNING")
    assert nodes_of(two, job) == RIGHT
    assert two.job(job)["Switches"].startswith("1@")


def test_it_waits_where_no_switch_has_room_and_then_starts_on_two(two: Cluster) -> None:
    blocked(two, "n1", "n5")
    requested_s = 25
    job = wide(two, 4, f"--switches=1@0:{requested_s}")
    two.wait_for(
        "the reason",
        lambda: "waits for room on 1 leaf switch until" in two.run("schedbridge", "explain", job),
        20,
    )
    assert two.state(job) == "PENDING"
    assert two.job(job)["StartTime"] != "Unknown"
    two.wait_state(job, "RUNNING", timeout_s=120)
    held = nodes_of(two, job)
    assert len(held) == 4
    assert set(held) & set(LEFT)
    assert set(held) & set(RIGHT)
    assert requested_s <= waited_s(two, job) <= requested_s + 30
    assert two.job(job)["Switches"] == f"1@00:00:{requested_s}"


def test_it_starts_as_soon_as_one_switch_has_room(two: Cluster) -> None:
    blockers = blocked(two, "n1", "n5")
    job = wide(two, 4, "--switches=1@5")
    others = wide(two, 4, "-t1")  # ends before the wait does: nobody is held up
    two.wait_state(others, "RUNNING")
    two.run("scancel", others)
    assert two.state(job) == "PENDING"
    two.run("scancel", blockers[1])
    two.wait_state(job, "RUNNING", timeout_s=60)
    assert nodes_of(two, job) == RIGHT
    assert waited_s(two, job) < 300


def test_what_no_switch_can_hold_waits_and_then_starts(two: Cluster) -> None:
    job = wide(two, 5, "--switches=1@0:10")
    two.wait_state(job, "RUNNING", timeout_s=90)
    assert len(nodes_of(two, job)) == 5
    assert waited_s(two, job) >= 10


def test_the_tasks_of_an_array_keep_the_wish(two: Cluster) -> None:
    """The first takes three nodes of one switch: the second is not put on four and one."""
    array = wide(two, 3, "--switches=1@5", "--array=1-3")
    tasks = [f"{array}_{task}" for task in (1, 2)]
    for task in tasks:
        two.wait_state(task, "RUNNING")
    where = sorted(nodes_of(two, task) for task in tasks)
    assert set(where[0]) <= set(LEFT)
    assert set(where[1]) <= set(RIGHT)
    assert two.job(f"{array}_3")["JobState"] == "PENDING"
    assert two.job(f"{array}_3")["Switches"] == "1@00:05:00"


@contextmanager
def known(cluster: Cluster, topology: str, wait_s: int = 0) -> Iterator[None]:
    """The service, not Slurm, knows these switches, and lets all jobs wait so long for few."""
    config, file = "/etc/schedbridge/bridge.yaml", "/etc/schedbridge/switches.conf"
    kept = cluster.inside("service", "cat", config)
    cluster.inside("service", "sh", "-c", f"echo '{topology}' > {file}")
    other = f"topology: {{file: {file}, wait_s: {wait_s}}}"
    cluster.inside("service", "sed", "-i", f"s#^topology:.*#{other}#", config)
    cluster.script("restart", "service")
    try:
        yield
    finally:
        cluster.inside("service", "sh", "-c", f"cat > {config} <<'EOF'\n{kept}\nEOF")
        cluster.script("restart", "service")


def test_a_site_may_let_all_jobs_wait(two: Cluster) -> None:
    with known(two, TOPOLOGY, wait_s=20):
        blocked(two, "n1", "n5")
        job = wide(two, 4)
        two.wait_for(
            "the reason",
            lambda: "waits for room on 1 leaf switch" in two.run("schedbridge", "explain", job),
            15,
        )
        two.wait_state(job, "RUNNING", timeout_s=90)
        assert waited_s(two, job) >= 20
        assert "Switches" not in two.job(job)


def test_no_job_has_nodes_of_two_fabrics(two: Cluster) -> None:
    """Without a switch over both, four nodes are never two and two."""
    apart = "\n".join(line for line in TOPOLOGY.splitlines() if "top" not in line)
    with known(two, apart):
        blockers = blocked(two, "n1", "n5")
        job = wide(two, 4)
        small = two.sbatch("-N3", "--exclusive", "-t5", run="sleep 2")
        two.wait_state(small, "COMPLETED")
        assert two.state(job) == "PENDING"
        never = wide(two, 5)
        two.wait_for(
            "the reason", lambda: "can hold it" in two.run("schedbridge", "explain", never), 20
        )
        two.run("scancel", never, blockers[0])
        two.wait_state(job, "RUNNING")
        assert nodes_of(two, job) == LEFT
