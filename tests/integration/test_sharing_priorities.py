# SPDX-License-Identifier: Apache-2.0
"""Two jobs on a node of a real Slurm that makes no cgroups: the agent falls back on priorities."""

import os
from collections.abc import Iterator

import pytest

from tests.integration.decider import Decider, deciding
from tests.integration.shared_nodes import shared_nodes
from tests.integration.slurm import Cluster
from tests.integration.test_sharing import SPIN, a_pair, reboot

CLUSTER = "sbshareprio"
PRIORITIES = """
for folder in /proc/[0-9]*; do
    [ "$(stat -c %u $folder 2>/dev/null)" = 0 ] && continue
    tr '\\0' '\\n' 2>/dev/null <$folder/environ | grep -qx "SLURM_JOB_ID=$0" || continue
    sed 's/.*) //' $folder/stat 2>/dev/null | cut -d' ' -f 17,39
done
"""
"""Niceness and policy of each process of a job: fields 19 and 41 of stat, behind two others."""
USUAL, MIN = (0, os.SCHED_OTHER), (19, os.SCHED_IDLE)


@pytest.fixture(scope="module")
def plain_cluster() -> Iterator[Cluster]:
    waits = "AuthInfo=cred_expire=10"  # how long a requeued job waits, s
    with shared_nodes(CLUSTER, "--set", waits) as cluster:
        yield cluster


@pytest.fixture
def sharing(plain_cluster: Cluster) -> Iterator[Decider]:
    with deciding(plain_cluster) as found:
        yield found
        found.tell_agents()


def priorities(cluster: Cluster, job: str) -> list[tuple[int, int]]:
    """Of each process of a job on n1."""
    lines = cluster.inside("n1", "sh", "-c", PRIORITIES, job).splitlines()
    found = [tuple(map(int, line.split())) for line in lines]
    return [(nice, policy) for nice, policy in found]


def test_without_cgroups_a_guest_has_the_lowest_priority_until_its_host_ends(
    sharing: Decider,
) -> None:
    cluster = sharing.cluster
    host, guest = a_pair(sharing, guest_runs=SPIN)
    cluster.wait_for("all processes", lambda: len(priorities(cluster, guest)) >= 5)
    sharing.tell_agents(job=guest, node="n1", milli_cpus=250, weight=1, guest=True)
    cluster.wait_for("the lowest priority of all", lambda: set(priorities(cluster, guest)) == {MIN})
    assert set(priorities(cluster, host)) == {USUAL}
    cluster.root("scancel", host)
    cluster.wait_for("a report", lambda: sharing.reported(guest)["host"] == "")
    sharing.tell_agents()  # a plan without quotas
    cluster.wait_for("its priority", lambda: set(priorities(cluster, guest)) == {USUAL})
    assert cluster.state(guest) == "RUNNING"


def test_neither_a_name_nor_an_environment_says_whose_process_it_is(sharing: Decider) -> None:
    """A guest that calls itself slurmstepd, and another user's process that claims to be of it."""
    cluster = sharing.cluster
    _, guest = a_pair(sharing, guest_runs=f"printf slurmstepd >/proc/self/comm; {SPIN}")
    try:
        stranger = cluster.inside(
            "n1", "sh", "-c",
            f"SLURM_JOB_ID={guest} SLURMD_NODENAME=n1 setpriv --reuid=65534 --clear-groups "
            "sleep 600 >/dev/null 2>&1 & echo $!",
        )  # fmt: skip
        cluster.wait_for("all processes", lambda: len(priorities(cluster, guest)) >= 6)
        sharing.tell_agents(job=guest, node="n1", milli_cpus=250, weight=1, guest=True)
        cluster.wait_for(
            "the lowest priority of all but one",
            lambda: sorted(priorities(cluster, guest)) == [USUAL, *[MIN] * 5],
        )
        assert cluster.inside("n1", "ps", "-o", "ni=", stranger) == "0"
        cluster.inside("n1", "kill", stranger)
    finally:  # without cgroups Slurm takes them for its own, and does not end them
        cluster.inside("n1", "pkill", "-KILL", "-u", "user")


def test_without_an_agent_a_guest_falls_to_the_lowest_priority(sharing: Decider) -> None:
    cluster = sharing.cluster
    host, guest = a_pair(sharing, guest_runs=SPIN)
    cluster.wait_for("all processes", lambda: len(priorities(cluster, guest)) >= 5)
    # Two orders, because the second one cannot be seen but by what it changes of the first.
    sharing.tell_agents(job=guest, node="n1", milli_cpus=250, weight=1, guest=True)
    cluster.wait_for("the first order", lambda: set(priorities(cluster, guest)) == {MIN})
    sharing.tell_agents(job=guest, node="n1", milli_cpus=1500, weight=100, guest=True)
    cluster.wait_for("the second order", lambda: MIN not in priorities(cluster, guest))
    cluster.inside("n1", "role", "signal", "KILL", "agent")
    try:
        cluster.wait_for("the least share", lambda: set(priorities(cluster, guest)) == {MIN})
        assert set(priorities(cluster, host)) == {USUAL}
    finally:
        cluster.inside("n1", "role", "start", "agent")


def test_after_a_reboot_of_its_node_no_job_has_the_share_of_one_before(sharing: Decider) -> None:
    cluster = sharing.cluster
    host, guest = a_pair(sharing, guest_runs=SPIN)
    sharing.tell_agents(job=guest, node="n1", milli_cpus=250, weight=1, guest=True)
    cluster.wait_for("the lowest priority of all", lambda: set(priorities(cluster, guest)) == {MIN})
    reboot(cluster, host, guest)
    # Both have lost their processes; Slurm puts them back into the queue, with the same numbers.
    for job in (host, guest):
        cluster.wait_for("its loss", lambda job=job: cluster.state(job) == "PENDING", 120)
    cluster.root("scancel", host)
    cluster.wait_state(guest, "RUNNING", timeout_s=180)
    cluster.wait_for("all processes", lambda: len(priorities(cluster, guest)) >= 5)
    sharing.tell_agents()  # a plan without quotas
    cluster.wait_for("its priority", lambda: set(priorities(cluster, guest)) == {USUAL})
    cluster.root("scancel", guest)
    cluster.wait_empty()
