# SPDX-License-Identifier: Apache-2.0
"""Guests that harm their hosts as much as they can, and losses in the middle of sharing, on a real
Slurm with real cgroups."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager

from bridge.extensions.sharing.on_nodes.cgroup_v1 import own_name
from tests.integration.decider import Decider
from tests.integration.slurm import Cluster
from tests.integration.test_sharing import (
    FULL_SHARE,
    NO_CGROUP,
    SPIN,
    a_host,
    bound,
    cgroup,
    cpu_s,
    cpu_used,
    no_trace_is_left,
    reboot,
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
WORKS_NOW = "while :; do :; done"
EATS = """python3 -c '
import time
held = [bytearray(b"x") * (100 << 20) for _ in range(39)]
time.sleep(600)'"""
"""3,900 of the node's 4,096 MiB; the job has requested 300."""


NAMED = f"printf slurmstepd >/proc/self/comm; {SPIN}"
"""A job whose processes call themselves as Slurm's own."""
STAYS = f"trap '' TERM; {SPIN}"
"""A job that does not end when it is told to; only SIGKILL ends it."""
HOST, GUEST = ({"user": "1000", "name": name, "nodes": 1} for name in ("host", "guest"))
ALONE = {"runs": 5, "cpu_s": 300.0, "run_s": 300.0}
LEARNT = {
    "format": "schedbridge coscheduling", "version": 1,
    "applications": [{**HOST, **ALONE}, {**GUEST, **ALONE}],
    "pairs": [
        {"host": HOST, "guest": GUEST, "ceilings": {"100": {"count": 10, "harm": 0.01}}}
    ],
}  # fmt: skip


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
    used = cpu_used(cluster, host, guest)
    assert used[0] > 5 * used[1], used
    cluster.root("scancel", "--signal=KILL", "--full", guest)
    cluster.wait_for("its end", lambda: guest not in cluster.queue(), 120)


def test_a_guest_that_calls_itself_slurmstepd_is_bound_as_any_other(sharing: Decider) -> None:
    """In weight and quota, all of its processes."""
    cluster = sharing.cluster
    host = a_host(sharing, run=SPIN)
    guest = submit(cluster, "--coschedule=guest", run=NAMED)
    said = sharing.start_guest(guest, host)
    assert said["outcome"] == "OUTCOME_APPLIED", said
    cluster.wait_state(guest, "RUNNING")
    every = f"cat /sys/fs/cgroup/freezer/slurm_n1/uid_*/job_{guest}/step_*/cgroup.procs"
    names = f"for pid in $({every}); do cat /proc/$pid/comm; done 2>/dev/null | sort | uniq -c"
    cluster.wait_for(
        "its names",
        lambda: cluster.inside("n1", "sh", "-c", names).split() == ["5", "slurmstepd"],
    )  # fmt: skip
    bound(sharing, guest)
    cluster.wait_for(
        "all but Slurm's", lambda: len(cgroup(cluster, guest, "cgroup.procs").split()) == 5
    )
    used = cpu_used(cluster, host, guest)
    assert used[0] > 5 * used[1], used


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


@contextmanager
def deciding_itself(cluster: Cluster, policy: str) -> Iterator[None]:
    """The service pairs jobs by a policy; afterwards nothing runs, and no trace is left."""
    for node in ("n1", "n2"):
        cluster.inside(node, "sh", "-c", "role alive agent || role start agent")
    cluster.root("schedbridge", "policy", "set", policy)
    try:
        yield
    finally:
        cluster.root("schedbridge", "policy", "set", "slurm-like")
        cluster.root("sh", "-c", "squeue -h -o %A | sort -u | xargs -r scancel --quiet")
        cluster.wait_empty()
    no_trace_is_left(cluster)


def paired(cluster: Cluster, node: str, host: tuple[str, ...], guest: tuple[str, ...],
           *, host_runs: str = "sleep 600", guest_runs: str = SPIN) -> tuple[str, str]:  # fmt: skip
    """A host and its guest, with further options each, on a node; started by the service."""
    on = f"-w{node}"
    first = submit(cluster, "--coschedule=host", "-Jhost", on, *host, run=host_runs)
    cluster.wait_state(first, "RUNNING")
    second = submit(cluster, "--coschedule=guest", "-Jguest", on, *guest, run=guest_runs)
    cluster.wait_state(second, "RUNNING", timeout_s=180)
    cluster.wait_for(
        "a comment",
        lambda: f"nodes of job {first}" in cluster.run("scontrol", "show", "job", second),
    )
    return first, second


def test_jobs_beyond_their_time_limit_end_as_in_slurm_whoever_shares_with_them(
    sharing_cluster: Cluster,
) -> None:
    """A guest, and a host, whose users have said a minute: the other of the pair goes on.

    Nothing is left of the shares of those that end, and the next guest has its own.
    """
    cluster = sharing_cluster
    half = "100000"
    with deciding_itself(cluster, "static-half"):
        host, liar = paired(cluster, "n1", (), ("-t1",), guest_runs=STAYS)
        began = cluster.job(host)["StartTime"]
        cluster.wait_for("its quota", lambda: shown(cluster, liar)[0] == half)
        short, guest = paired(cluster, "n2", ("-t1",), (), host_runs=STAYS)
        cluster.wait_for("its quota", lambda: shown(cluster, guest, "n2")[0] == half)
        for job in (liar, short):
            cluster.wait_state(job, "TIMEOUT", timeout_s=180)
            cluster.wait_for("its end", lambda job=job: job not in cluster.queue(), 30)
        assert cluster.state(host) == "RUNNING"
        assert cluster.job(host)["StartTime"] == began
        assert shown(cluster, host) == FULL_SHARE
        assert shown(cluster, liar) == NO_CGROUP
        assert cluster.state(guest) == "RUNNING"
        cluster.wait_for("its full share", lambda: shown(cluster, guest, "n2") == FULL_SHARE)
        another = submit(cluster, "--coschedule=guest", "-Jguest", run=SPIN)
        cluster.wait_state(another, "RUNNING", timeout_s=120)
        cluster.wait_for("its quota", lambda: shown(cluster, another)[0] == half)


def test_a_cancelled_guest_has_its_full_share_before_it_is_killed(
    sharing_cluster: Cluster,
) -> None:
    """From the floor; else it would end slowly, and keep the next one from starting."""
    cluster = sharing_cluster
    with deciding_itself(cluster, "static-half"), slow_kills(cluster):
        _, guest = paired(cluster, "n1", (), (), guest_runs=STAYS)
        cluster.root("schedbridge", "policy", "set", "slurm-like")  # its guests are at the floor
        cluster.wait_for("the floor", lambda: shown(cluster, guest)[0] == "10000")
        cluster.root("scancel", guest)
        processes = f"cat /sys/fs/cgroup/freezer/slurm_n1/uid_*/job_{guest}/step_*/cgroup.procs"
        own = f"$(find /sys/fs/cgroup/cpu -name {own_name(('n1', guest))})"
        # In one look: it has no quota, and five processes are still there.
        look = f"grep -q -e -1 {own}/cpu.cfs_quota_us && {processes} | wc -l || echo 0"
        cluster.wait_for(
            "its full share while it runs",
            lambda: int(cluster.inside("n1", "sh", "-c", look)) >= 5, 40,
        )  # fmt: skip
        cluster.inside("n1", "pkill", "-KILL", "-u", "user")


@contextmanager
def slow_kills(cluster: Cluster) -> Iterator[None]:
    """Slurm waits for 60 s between SIGTERM and SIGKILL."""
    file, usual, slow = "/etc/slurm/slurm.conf", "KillWait=5", "KillWait=60"

    def replace(old: str, new: str) -> None:
        for node in ("controller", "n1"):
            cluster.inside(node, "sed", "-i", f"s/^{old}$/{new}/", file)
        cluster.root("scontrol", "reconfigure")

    replace(usual, slow)
    try:
        yield
    finally:
        replace(slow, usual)


def test_after_a_reboot_of_the_node_what_was_learnt_is_intact(sharing_cluster: Cluster) -> None:
    """Lost runs teach nothing; the next pair begins anew, with a share of its own."""
    cluster = sharing_cluster
    text = "/tmp/learnt.json"
    with deciding_itself(cluster, "pairs"):
        cluster.inside("service", "sh", "-c", f"echo '{json.dumps(LEARNT)}' >{text}")
        cluster.inside("service", "schedbridge", "coschedule", "import", text)
        host, guest = paired(cluster, "n1", ("-t60",), (), host_runs=WORKS_NOW)
        cluster.wait_for("the least weight", lambda: shown(cluster, guest)[1] == "10", 60)
        reboot(cluster, host, guest)
        for job in (host, guest):
            cluster.wait_for(
                "another run", lambda job=job: cluster.job(job)["Restarts"] == "1", 120
            )
            cluster.root("scancel", job)
        cluster.wait_empty()
        no_trace_is_left(cluster)
        kept = json.loads(cluster.inside("service", "schedbridge", "coschedule", "export"))
        assert {each["name"]: each["runs"] for each in kept["applications"]} == {
            "host": 5, "guest": 5,
        }  # fmt: skip
        (pair,) = kept["pairs"]
        assert (pair["host"], pair["guest"]) == (HOST, GUEST)
        assert pair["ceilings"]["100"]["count"] >= 10
        # How much harm was seen depends on what else this machine does: any policy will do now.
        cluster.root("schedbridge", "policy", "set", "static-half")
        host, guest = paired(cluster, "n1", (), ())
        cluster.wait_for("its quota", lambda: shown(cluster, guest)[0] == "100000")
        assert shown(cluster, host) == FULL_SHARE


def test_a_guest_that_takes_the_memory_is_requeued_and_its_host_loses_nothing(
    sharing_cluster: Cluster,
) -> None:
    """Although it has requested little; by the memory measured. Its user is told why."""
    cluster = sharing_cluster
    with deciding_itself(cluster, "static-half"), jobs_may_exceed_their_memory(cluster):
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
