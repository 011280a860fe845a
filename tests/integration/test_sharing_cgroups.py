# SPDX-License-Identifier: Apache-2.0
"""Cgroups of jobs on a real Slurm, by the SPANK plugin alone: made before a job's first process
runs, and given their full share at the end of another job."""

from collections.abc import Iterator
from contextlib import contextmanager

from bridge.extensions.sharing.on_nodes.cgroup_v1 import own_name
from tests.integration.decider import Decider
from tests.integration.slurm import Cluster
from tests.integration.test_sharing import (
    FULL_SHARE,
    SPIN,
    a_host,
    a_pair,
    bound,
    cgroup,
    cpu_used,
    falls_back,
    sharing,
    sharing_cluster,
    shown,
    submit,
)

__all__ = ["sharing", "sharing_cluster"]
"""Fixtures."""

CHAIN = """#!/bin/sh
[ -e /tmp/enough ] || $0 &
"""
"""Each process starts the next one, and ends; Slurm alone can hardly catch them all to end them."""
CHAINS = """exec 2>/dev/null
for i in $(seq 60); do /tmp/chain & done
srun --overlap -n2 sh -c 'for i in $(seq 30); do /tmp/chain & done; sleep 600'"""


@contextmanager
def no_agent(cluster: Cluster) -> Iterator[None]:
    """Neither the agent of n1 nor its guardian runs."""
    cluster.inside("n1", "sh", "-c", "! role alive agent || role signal KILL agent")
    cluster.inside("n1", "sh", "-c", "pkill -KILL -f [o]n_nodes.guardian || true")
    try:
        yield
    finally:
        cluster.inside("n1", "role", "start", "agent")


def outside(cluster: Cluster, job: str) -> tuple[int, int]:
    """How many processes of a job are listed on n1, and how many of them are outside its cgroup.

    By the kernel's list of each process, without slurmstepd's. Most of a chain's have ended before
    they are looked at. One that ends is in no cgroup any longer, and has no `exe` then.
    """
    own = own_name(("n1", job))
    look = f"""
for p in $(cat $(find /sys/fs/cgroup/freezer/slurm_n1/uid_*/job_{job} -name cgroup.procs)); do
    echo listed
    name=$(cat /proc/$p/comm) && groups=$(cat /proc/$p/cgroup) && [ "$name" != slurmstepd ] &&
        readlink /proc/$p/exe >/dev/null && case $groups in *{own}*) echo in;; *) echo out;; esac
done
true"""
    found = cluster.inside("n1", "sh", "-c", look).split()
    return found.count("listed"), found.count("out")


MAX_EXCESS = 1.25
"""What a quota may be exceeded by: CPUs take it in slices that they may not use up in a period."""


def uptime_s(cluster: Cluster) -> float:
    return float(cluster.inside("n1", "cat", "/proc/uptime").split()[0])


def test_every_process_of_both_jobs_starts_in_its_cgroup(sharing: Decider) -> None:
    """While no agent runs that could move them; of the batch script and of a step, in chains that
    fork faster than anybody moves them. Nothing is left to be moved for the agent that comes later.
    """
    cluster = sharing.cluster
    cluster.inside("n1", "sh", "-c", f"printf '{CHAIN}' >/tmp/chain; chmod 755 /tmp/chain")
    cluster.inside("n1", "rm", "-f", "/tmp/enough")
    with no_agent(cluster):
        host = a_host(sharing, run=SPIN)
        guest = submit(cluster, "--coschedule=guest", run=CHAINS)
        said = sharing.start_guest(guest, host)
        assert said["outcome"] == "OUTCOME_APPLIED", said
        for job, minimum in ((host, 5), (guest, 60)):
            cluster.wait_for(
                "its processes",
                lambda job=job, minimum=minimum: outside(cluster, job)[0] >= minimum,
                60,
            )
            assert outside(cluster, job)[1] == 0
            assert shown(cluster, job) == FULL_SHARE
    bound(sharing, guest, milli_cpus=100)
    log = cluster.inside("n1", "role", "log", "agent")
    said = cluster.inside("n1", "sh", "-c", f"grep 'of job {guest} ' {log} || true")
    assert "started outside" not in said
    assert outside(cluster, guest)[1] == 0
    began_s = uptime_s(cluster)
    used = cpu_used(cluster, host, guest)
    took_s = uptime_s(cluster) - began_s
    print("CPU time of host and guest, s:", used, "within", took_s)
    # By the clock, not by the host: beside other work its host gets less, and the quota stays.
    assert used[1] < 0.1 * took_s * MAX_EXCESS, (used, took_s)
    cluster.inside("n1", "touch", "/tmp/enough")


def test_a_guest_alone_has_the_whole_node_though_nothing_of_ours_runs(sharing: Decider) -> None:
    """Slurm's own end of the host lifts it: agent, guardian and service are dead."""
    cluster = sharing.cluster
    host, guest = a_pair(sharing, guest_runs=SPIN)
    bound(sharing, guest)
    cluster.inside("service", "sh", "-c", "kill -STOP $(cat /tmp/replacement.pid)")
    try:
        with no_agent(cluster):
            # Its quota, or the least: the guardian may have seen the agent's end before its own.
            assert shown(cluster, guest) in {("25000", "10"), ("10000", "10")}
            cluster.root("scancel", host)
            cluster.wait_for("its full share", lambda: shown(cluster, guest) == FULL_SHARE, 60)
            assert cluster.state(guest) == "RUNNING"
            throttled = cgroup(cluster, guest, "cpu.stat").splitlines()[1]
            assert cgroup(cluster, guest, "cpu.stat").splitlines()[1] == throttled
    finally:
        cluster.inside("service", "sh", "-c", "kill -CONT $(cat /tmp/replacement.pid)")


def test_a_guest_alone_has_the_whole_node_while_the_service_is_down(sharing: Decider) -> None:
    """Its host is protected as long as it runs."""
    cluster = sharing.cluster
    host, guest = a_pair(sharing, guest_runs=SPIN)
    bound(sharing, guest, milli_cpus=1500, weight=100)
    cluster.inside("service", "sh", "-c", "kill -STOP $(cat /tmp/replacement.pid)")
    try:
        falls_back(cluster, guest, "the service hangs")
        cluster.root("scancel", host)
        cluster.wait_for("no quota", lambda: shown(cluster, guest)[0] == "-1", 60)
        assert cluster.state(guest) == "RUNNING"
    finally:
        cluster.inside("service", "sh", "-c", "kill -CONT $(cat /tmp/replacement.pid)")
