# SPDX-License-Identifier: Apache-2.0
"""Guests that harm their hosts as much as they can, on a real Slurm with real cgroups."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from tests.integration.decider import Decider
from tests.integration.slurm import Cluster
from tests.integration.test_sharing import (
    SPIN,
    a_host,
    bound,
    cgroup,
    no_trace_is_left,
    sharing,
    sharing_cluster,
    shown,
    submit,
)

__all__ = ["sharing", "sharing_cluster"]
"""Fixtures."""

PROCESSES = int(os.environ.get("SCHEDBRIDGE_TEST_PROCESSES", "3000"))
"""10,000 take two minutes on two busy CPUs."""
FORKS = f"for i in $(seq {PROCESSES}); do sleep 600 & done; {SPIN}"
WORKS = f"while [ ! -e /tmp/work ]; do sleep 0.2; done; {SPIN}"
"""A host that begins to work when it is told to."""
EATS = """python3 -c '
import time
held = [bytearray(b"x") * (100 << 20) for _ in range(39)]
time.sleep(600)'"""
"""3,900 of the node's 4,096 MiB; the job has requested 300."""


def cpu_s(cluster: Cluster, *jobs: str) -> list[float]:
    """CPU time of jobs on n1 so far."""
    file = "/sys/fs/cgroup/cpuacct/slurm_n1/uid_*/job_{}/cpuacct.usage"
    words = " ".join(file.format(job) for job in jobs)
    found = cluster.inside("n1", "sh", "-c", f"cat {words}")
    return [int(line) / 1e9 for line in found.split()]


@contextmanager
def jobs_may_exceed_their_memory(cluster: Cluster) -> Iterator[None]:
    """Slurm counts the memory of jobs, but kills none that uses more than it has requested."""
    file, more = "/etc/slurm/cgroup.conf", "AllowedRAMSpace=2000"
    for node in ("controller", "n1"):
        cluster.inside(node, "sh", "-c", f"echo {more} >>{file}")
    cluster.root("scontrol", "reconfigure")
    try:
        yield
    finally:
        for node in ("controller", "n1"):
            cluster.inside(node, "sed", "-i", f"/{more}/d", file)
        cluster.root("scontrol", "reconfigure")


def test_thousands_of_processes_that_spin_leave_the_host_its_cpus(sharing: Decider) -> None:
    """At the least weight, without a quota that holds them back."""
    cluster = sharing.cluster
    cluster.inside("n1", "rm", "-f", "/tmp/work")
    host = a_host(sharing, run=WORKS)
    guest = submit(cluster, "--coschedule=guest", "--mem=3000", run=FORKS)
    said = sharing.start_guest(guest, host)
    assert said["outcome"] == "OUTCOME_APPLIED", said
    cluster.wait_state(guest, "RUNNING")
    sharing.tell_agents(job=guest, node="n1", milli_cpus=2000, weight=1, guest=True)
    cluster.wait_for(
        "all processes",
        lambda: len(cgroup(cluster, guest, "cgroup.procs").split()) > PROCESSES, 120,
    )  # fmt: skip
    cluster.inside("n1", "touch", "/tmp/work")
    cluster.wait_for("work of the host", lambda: cpu_s(cluster, host)[0] > 1)
    before = cpu_s(cluster, host, guest)
    cluster.wait_for("more work", lambda: cpu_s(cluster, host)[0] > before[0] + 5)
    after = cpu_s(cluster, host, guest)
    used = [now - then for now, then in zip(after, before, strict=True)]
    assert used[0] > 5 * used[1], used
    cluster.root("scancel", "--signal=KILL", "--full", guest)
    cluster.wait_for("its end", lambda: guest not in cluster.queue(), 120)


def test_a_user_who_renames_his_jobs_lifts_no_share(sharing: Decider) -> None:
    """Nor does he get more time, other nodes or a node alone by changing the guest."""
    cluster = sharing.cluster
    host = a_host(sharing)
    guest = submit(cluster, "--coschedule=guest", run=SPIN)
    said = sharing.start_guest(guest, host)
    assert said["outcome"] == "OUTCOME_APPLIED", said
    cluster.wait_state(guest, "RUNNING")
    bound(sharing, guest)
    for job in (host, guest):
        cluster.run("scontrol", "update", f"JobId={job}", "JobName=harmless")
    for words in ("TimeLimit=+60", "OverSubscribe=NO", "NodeList=n2"):
        refused = cluster.process("scontrol", "update", f"JobId={guest}", words)
        assert refused.returncode != 0, words
    cluster.wait_for("a report", lambda: sharing.reported(guest)["host"] == host)
    assert shown(cluster, guest) == ("25000", "10")
    assert {cluster.state(job) for job in (host, guest)} == {"RUNNING"}


def test_a_guest_that_takes_the_memory_is_requeued_and_its_host_loses_nothing(
    sharing_cluster: Cluster,
) -> None:
    """Although it has requested little; by the memory measured. Its user is told why."""
    cluster = sharing_cluster
    cluster.inside("n1", "sh", "-c", "role alive agent || role start agent")
    cluster.root("schedbridge", "policy", "set", "static-half")
    try:
        with jobs_may_exceed_their_memory(cluster):
            host = submit(cluster, "--coschedule=host", "-J", "host")
            cluster.wait_state(host, "RUNNING")
            began = cluster.job(host)["StartTime"]
            guest = submit(cluster, "--coschedule=guest", "-J", "guest", run=EATS)
            cluster.wait_state(guest, "RUNNING", timeout_s=120)
            cluster.wait_for("its requeue", lambda: cluster.job(guest)["Restarts"] == "1", 120)
            told = cluster.run("scontrol", "show", "job", guest)
            assert "memory" in told, told
            assert cluster.state(host) == "RUNNING"
            assert cluster.job(host)["StartTime"] == began
    finally:
        cluster.root("schedbridge", "policy", "set", "slurm-like")
        cluster.root("sh", "-c", "squeue -h -o %A | sort -u | xargs -r scancel --quiet")
        cluster.wait_empty()
    no_trace_is_left(cluster)
