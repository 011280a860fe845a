# SPDX-License-Identifier: Apache-2.0
"""Two jobs on the CPUs of a node of a real Slurm: decided by the tests, carried out by the plugin
and by the agents on the nodes, in real cgroups."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from bridge.extensions.sharing.on_nodes.cgroup_v1 import own_name
from tests.integration.decider import Decider, deciding
from tests.integration.shared_nodes import shared_nodes, with_service
from tests.integration.slurm import Cluster

CLUSTER = "sbshare"
FULL_SHARE, NO_CGROUP = ("-1", "1024"), ("", "")
"""Quota and shares of a job that runs, and of one that has ended."""
SPIN = "for i in 1 2 3 4; do while :; do :; done & done; wait"
"""More processes than the job has CPUs; they start as quickly as a shell forks."""


@pytest.fixture(scope="module")
def sharing_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    service = with_service(tmp_path_factory.mktemp("service"))
    with shared_nodes(CLUSTER, "--cgroups", *service) as cluster:
        yield cluster


@pytest.fixture
def sharing(sharing_cluster: Cluster) -> Iterator[Decider]:
    sharing_cluster.inside("n1", "sh", "-c", "role alive agent || role start agent")
    with deciding(sharing_cluster) as found:
        yield found
        found.tell_agents()
    no_trace_is_left(sharing_cluster)


def submit(cluster: Cluster, *options: str, run: str = "sleep 600", user: str = "user") -> str:
    """A job of both CPUs of n1."""
    return cluster.sbatch(
        "-p", "share", "-N1", "-n2", "-wn1", "--mem=300", "-t10", "--requeue", *options,
        run=run, user=user,
    )  # fmt: skip


def a_host(decider: Decider, *options: str, run: str = "sleep 600") -> str:
    """A job that may have guests.

    While the service is replaced, Slurm's own scheduler may start it; then it is none.
    """
    cluster = decider.cluster
    for _ in range(5):
        job = submit(cluster, "--coschedule=host", *options, run=run)
        cluster.wait_state(job, "RUNNING")
        if consent(decider, job) == "COSCHEDULE_HOST":
            return job
        cluster.root("scancel", job)
        cluster.wait_empty()
    raise AssertionError("no job became a host")


def consent(decider: Decider, job: str) -> object:
    """What the plugin reports of a running job."""

    def found() -> list[object]:
        return [line["consent"] for line in decider.lines() if line.get("job") == job]

    return decider.cluster.wait_for("a report", found)[-1]


def a_pair(decider: Decider, *, guest_runs: str = "sleep 600") -> tuple[str, str]:
    cluster = decider.cluster
    host = a_host(decider)
    guest = submit(cluster, "--coschedule=guest", run=guest_runs)
    said = decider.start_guest(guest, host)
    assert said["outcome"] == "OUTCOME_APPLIED", said
    cluster.wait_state(guest, "RUNNING")
    return host, guest


def bound(
    decider: Decider, guest: str, milli_cpus: int = 250, weight: int = 1, node: str = "n1"
) -> None:
    """The guest's share is ordered and in force."""
    decider.tell_agents(job=guest, node=node, milli_cpus=milli_cpus, weight=weight, guest=True)
    wanted = str(milli_cpus * 100), str(weight * 1024 // 100)
    decider.cluster.wait_for(
        "the guest's share", lambda: shown(decider.cluster, guest, node) == wanted
    )


def cgroup(cluster: Cluster, job: str, file: str, node: str = "n1") -> str:
    """A file of a job's own cgroup in `cpu`; empty: there is none."""
    words = f"cat $(find /sys/fs/cgroup/cpu -name {own_name((node, job))})/{file} 2>/dev/null"
    return cluster.inside(node, "sh", "-c", f"{words} || true")


def cpu_s(cluster: Cluster, *jobs: str) -> list[float]:
    """CPU time of jobs on n1 so far."""
    file = "/sys/fs/cgroup/cpuacct/slurm_n1/uid_*/job_{}/cpuacct.usage"
    words = " ".join(file.format(job) for job in jobs)
    found = cluster.inside("n1", "sh", "-c", f"cat {words}")
    return [int(line) / 1e9 for line in found.split()]


def cpu_used(cluster: Cluster, host: str, guest: str) -> list[float]:
    """CPU time that a host and its guest use from now on, until the host has used 5 s of it."""
    before = cpu_s(cluster, host, guest)
    cluster.wait_for("more work", lambda: cpu_s(cluster, host)[0] > before[0] + 5)
    after = cpu_s(cluster, host, guest)
    return [now - then for now, then in zip(after, before, strict=True)]


def shown(cluster: Cluster, job: str, node: str = "n1") -> tuple[str, str]:
    """Quota and shares of a job."""
    quota, shares = (
        cgroup(cluster, job, file, node) for file in ("cpu.cfs_quota_us", "cpu.shares")
    )
    return quota, shares


def no_trace_is_left(cluster: Cluster) -> None:
    """The tree of cgroups is the host's, with those that others make there."""
    for node in ("n1", "n2"):
        find = f"find /sys/fs/cgroup/cpu -name 'schedbridge_{node}_*'"
        cluster.wait_for(
            "no trace",
            lambda node=node, find=find: not cluster.inside(node, "sh", "-c", find), 30,
        )  # fmt: skip


# ---------------------------------------------------------------- pairs


def test_a_guest_has_its_hosts_cpus_and_a_quota(sharing: Decider) -> None:
    cluster = sharing.cluster
    host, guest = a_pair(sharing, guest_runs=SPIN)
    both = [cluster.run("scontrol", "show", "job", "-d", job) for job in (host, guest)]
    assert all("Nodes=n1 CPU_IDs=0-1" in text for text in both)
    assert " CPUAlloc=2 " in cluster.run("scontrol", "show", "node", "n1")
    cluster.wait_for("a report", lambda: sharing.reported(guest)["host"] == host)
    bound(sharing, guest)
    # Every process of the guest is there, and none of the host; the kernel holds it back.
    listed = f"cat /sys/fs/cgroup/freezer/slurm_n1/uid_*/job_{guest}/step_*/cgroup.procs"
    steps = set(cluster.inside("n1", "sh", "-c", listed).split())
    cluster.wait_for(
        "all processes",
        lambda: len(steps & set(cgroup(cluster, guest, "cgroup.procs").split())) >= 5,
    )
    throttled = cgroup(cluster, guest, "cpu.stat")
    cluster.wait_for("throttling", lambda: cgroup(cluster, guest, "cpu.stat") != throttled)
    assert shown(cluster, host) == FULL_SHARE


def test_a_guest_that_forks_has_all_its_processes_bound(sharing: Decider) -> None:
    run = "for i in $(seq 1500); do sleep 600 & done; wait"
    cluster = sharing.cluster
    _, guest = a_pair(sharing, guest_runs=run)
    bound(sharing, guest)
    cluster.wait_for(
        "1,500 processes", lambda: len(cgroup(cluster, guest, "cgroup.procs").split()) > 1500, 120
    )
    cluster.root("scancel", guest)
    cluster.wait_for("its end", lambda: guest not in cluster.queue())


def test_a_third_job_and_others_without_consent_are_refused(sharing: Decider) -> None:
    cluster = sharing.cluster
    host, guest = a_pair(sharing)
    third = submit(cluster, "--coschedule=guest")
    said = sharing.start_guest(third, host)
    assert said["outcome"] == "OUTCOME_BUSY", said
    said = sharing.start_guest(third, guest)
    assert "guest" in str(said["text"]), said
    cluster.root("scancel", guest)
    cluster.wait_for("the node", lambda: sharing.start_guest(third, host, on="n2")["text"] ==
                     "some of the nodes are not the host's")  # fmt: skip
    for options, words in (
        ((), "does not allow it to run as a guest"),
        (("--coschedule=host",), "does not allow it to run as a guest"),
        (("--coschedule=both", "--exclusive"), "neither --exclusive nor GRES"),
        (("--coschedule=guest", "--no-requeue"), "may be requeued"),
    ):
        job = submit(cluster, *options)
        said = sharing.start_guest(job, host)
        assert words in str(said["text"]), said
        cluster.root("scancel", job)
    other = submit(cluster, "--coschedule=both", user="alice")
    assert "different users" in str(sharing.start_guest(other, host)["text"])


def test_a_job_that_does_not_consent_is_no_host(sharing: Decider) -> None:
    cluster = sharing.cluster
    for options in (("--coschedule=never",), (), ("--coschedule=both", "--exclusive")):
        alone = submit(cluster, *options)
        cluster.wait_state(alone, "RUNNING")
        assert consent(sharing, alone) == "COSCHEDULE_NEVER"
        guest = submit(cluster, "--coschedule=guest")
        said = sharing.start_guest(guest, alone)
        assert "does not allow a guest" in str(said["text"]), said
        cluster.root("scancel", guest, alone)
        cluster.wait_empty()


# ---------------------------------------------------------------- the way back


def test_a_guest_whose_host_ended_is_an_ordinary_job(sharing: Decider) -> None:
    cluster = sharing.cluster
    host, guest = a_pair(sharing)
    bound(sharing, guest)
    cluster.root("scancel", host)
    cluster.wait_for("a report", lambda: sharing.reported(guest)["host"] == "")
    sharing.tell_agents()  # a plan without quotas
    cluster.wait_for("its full share", lambda: shown(cluster, guest) == FULL_SHARE)
    assert cluster.state(guest) == "RUNNING"


def test_a_guest_is_requeued_and_its_host_loses_nothing(sharing: Decider) -> None:
    cluster = sharing.cluster
    host, guest = a_pair(sharing, guest_runs=SPIN)
    bound(sharing, guest)
    began = cluster.job(host)["StartTime"]
    reason = "its host was 12 percent slower"
    said = sharing.result(sharing.send(guest, requeue=reason))
    assert said["outcome"] == "OUTCOME_APPLIED", said
    cluster.wait_state(guest, "PENDING")
    assert reason in cluster.run("scontrol", "show", "job", guest)
    assert cluster.job(host)["JobState"] == "RUNNING"
    assert cluster.job(host)["StartTime"] == began
    assert sharing.result(sharing.send(host, requeue=""))["outcome"] == "OUTCOME_REFUSED"


def test_a_host_that_its_guest_delays_ends_after_its_own_limit(sharing: Decider) -> None:
    """It has a minute, and needs 100 s; Slurm would end it after 60 to 90 s."""
    cluster = sharing.cluster
    host = a_host(sharing, "-t1", run="sleep 100")
    said = sharing.result(sharing.send(host, extend=60))
    assert "has had no guest" in str(said["text"]), said
    guest = submit(cluster, "--coschedule=guest", run="sleep 600")
    assert sharing.start_guest(guest, host)["outcome"] == "OUTCOME_APPLIED"
    cluster.wait_for("time with guests", lambda: sharing.reported(host)["since_s"])
    said = sharing.result(sharing.send(host, extend=100_000))
    assert said["outcome"] == "OUTCOME_APPLIED", said
    assert cluster.job(host)["TimeLimit"] == "00:02:00"  # not by more than its time with guests
    cluster.wait_for("a report", lambda: sharing.reported(host)["extended_s"] == 60)
    assert sharing.result(sharing.send(guest, requeue=""))["outcome"] == "OUTCOME_APPLIED"
    cluster.wait_for("the guest's end", lambda: sharing.reported(host)["since_s"] == 0, 30)
    hosted_s = int(str(sharing.reported(host)["hosted_s"]))
    assert 0 < hosted_s <= 60
    assert sharing.result(sharing.send(host, extend=60))["outcome"] == "OUTCOME_APPLIED"
    assert cluster.job(host)["TimeLimit"] == "00:02:00"
    cluster.wait_for("its end", lambda: host not in cluster.queue(), 150)
    assert cluster.state(host) == "COMPLETED"


# ---------------------------------------------------------------- losses


def falls_back(cluster: Cluster, guest: str, lost: str) -> None:
    """Waits until the guest has the least share, and says how long that took."""
    began = time.monotonic()
    minimum = "10000", "10"  # 5 % of two CPUs
    cluster.wait_for(f"the least share, {lost}", lambda: shown(cluster, guest) == minimum)
    print(f"{lost}: the least share after {time.monotonic() - began:.1f} s")


def test_without_agent_or_service_the_host_is_kept_from_harm(sharing: Decider) -> None:
    cluster = sharing.cluster
    _, guest = a_pair(sharing, guest_runs=SPIN)
    bound(sharing, guest, milli_cpus=1500, weight=100)
    cluster.inside("n1", "role", "signal", "KILL", "agent")
    falls_back(cluster, guest, "the agent was killed")
    cluster.inside("n1", "role", "start", "agent")
    bound(sharing, guest, milli_cpus=1500, weight=100)
    cluster.inside("n1", "role", "signal", "STOP", "agent")
    falls_back(cluster, guest, "the agent hangs")
    cluster.inside("n1", "role", "signal", "CONT", "agent")
    bound(sharing, guest, milli_cpus=1500, weight=100)
    cluster.inside("service", "sh", "-c", "kill -STOP $(cat /tmp/replacement.pid)")
    falls_back(cluster, guest, "the service hangs")
    cluster.inside("service", "sh", "-c", "kill -CONT $(cat /tmp/replacement.pid)")
    bound(sharing, guest, milli_cpus=1500, weight=100)


def test_a_killed_guest_leaves_at_once_though_no_service_lifts_its_quota(sharing: Decider) -> None:
    cluster = sharing.cluster
    _, guest = a_pair(sharing, guest_runs=SPIN)
    bound(sharing, guest, milli_cpus=100)
    cluster.root("scancel", "--signal=KILL", "--full", guest)
    cluster.wait_for("its end", lambda: guest not in cluster.queue())


@contextmanager
def fallback(cluster: Cluster) -> Iterator[None]:
    """The service hangs, and Slurm's own schedulers decide."""
    log = cluster.inside("controller", "role", "log", "controller")
    count = f"grep -c 'falling back' {log} || true"
    before = cluster.inside("controller", "sh", "-c", count)
    cluster.inside("service", "sh", "-c", "kill -STOP $(cat /tmp/replacement.pid)")
    try:
        cluster.wait_for(
            "fallback", lambda: cluster.inside("controller", "sh", "-c", count) != before, 60
        )
        yield
    finally:
        cluster.inside("service", "sh", "-c", "kill -CONT $(cat /tmp/replacement.pid)")


def stay_out(cluster: Cluster, *jobs: str) -> None:
    """Slurm has looked at all of these jobs, and started none."""
    # A job that can start does, after Slurm has looked at those that came before it.
    free = cluster.sbatch("-p", "share", "-N1", "-n2", "-wn2", "--mem=300", "-t1")
    cluster.wait_for("Slurm's own start", lambda: cluster.state(free) != "PENDING", 120)
    for job in jobs:
        cluster.wait_for(
            "a look", lambda job=job: cluster.job(job)["LastSchedEval"] not in ("N/A", "Unknown"),
            120,
        )  # fmt: skip
        assert cluster.state(job) == "PENDING"


def test_in_fallback_slurm_pairs_nobody(sharing: Decider) -> None:
    cluster = sharing.cluster
    host = a_host(sharing)
    with fallback(cluster):
        stay_out(cluster, submit(cluster, "--coschedule=both"))
        assert cluster.state(host) == "RUNNING"


def test_in_fallback_no_other_user_joins_a_host(sharing: Decider) -> None:
    """Not even with --oversubscribe; and nobody at all joins a host and its guest."""
    cluster = sharing.cluster
    host = a_host(sharing)
    with fallback(cluster):
        stranger = submit(cluster, "--oversubscribe", user="alice")
        stay_out(cluster, stranger)
        cluster.root("scancel", stranger)  # backfill keeps the node for it after the host's end
        # A job of the host's user may join if its user wants it: the host lets jobs in.
        second = submit(cluster, "--oversubscribe")
        cluster.wait_state(second, "RUNNING", timeout_s=120)
        stay_out(cluster, submit(cluster, "--oversubscribe"))
        assert cluster.state(host) == "RUNNING"
    cluster.root("scancel", host, second)
    cluster.wait_for(
        "a node of nobody", lambda: "Owner=N/A" in cluster.run("scontrol", "show", "node", "n1")
    )


def test_in_fallback_nobody_joins_a_host_and_its_guest(sharing: Decider) -> None:
    cluster = sharing.cluster
    host, guest = a_pair(sharing)
    with fallback(cluster):
        stay_out(
            cluster,
            submit(cluster, "--oversubscribe", user="alice"),
            submit(cluster, "--oversubscribe"),
        )
        cluster.root("scancel", host)  # then the guest is alone, and still its user's
        cluster.wait_for("its end", lambda: host not in cluster.queue())
        stay_out(cluster, submit(cluster, "--oversubscribe", user="alice"))
        assert cluster.state(guest) == "RUNNING"


@contextmanager
def users_meet(cluster: Cluster) -> Iterator[None]:
    """Jobs of different users may share nodes."""
    file, silence = "/etc/slurm/schedbridge/bridge.conf", "bridge_silence_s=5"
    more = f"{silence},bridge_coschedule_scope=all"

    def replace(old: str, new: str) -> None:
        cluster.inside("controller", "sed", "-i", f"s/{old}/{new}/", file)
        cluster.root("scontrol", "reconfigure")

    replace(silence, more)
    try:
        yield
    finally:
        replace(more, silence)


def test_in_fallback_nobody_joins_a_host_and_a_guest_of_another_user(sharing: Decider) -> None:
    cluster = sharing.cluster
    host = a_host(sharing)
    guest = submit(cluster, "--coschedule=guest", user="alice")

    def nobody_joins() -> None:
        jobs = [submit(cluster, "--oversubscribe", user=user) for user in ("user", "alice")]
        stay_out(cluster, *jobs)
        cluster.root("scancel", *jobs)

    with users_meet(cluster):
        cluster.wait_for(
            "the guest's start",
            lambda: sharing.start_guest(guest, host)["outcome"] == "OUTCOME_APPLIED",
        )
        cluster.wait_for("a report", lambda: sharing.reported(guest)["host"] == host)
        with fallback(cluster):
            nobody_joins()
            cluster.root("scancel", host)
            cluster.wait_for("its end", lambda: host not in cluster.queue())
            nobody_joins()
            assert cluster.state(guest) == "RUNNING"
        cluster.root("scancel", guest)
        cluster.wait_for(
            "a node of nobody", lambda: "Owner=N/A" in cluster.run("scontrol", "show", "node", "n1")
        )


def test_a_requeued_guest_is_as_its_user_asked(sharing: Decider) -> None:
    cluster = sharing.cluster
    host, guest = a_pair(sharing)
    assert cluster.job(guest)["OverSubscribe"] == "YES"
    with fallback(cluster):
        cluster.root("scontrol", "requeue", guest)
        cluster.wait_for("its way back", lambda: cluster.job(guest)["OverSubscribe"] == "OK", 60)
        stay_out(cluster, guest)
    cluster.root("scancel", host, guest)


# ---------------------------------------------------------------- the service's own decisions


def test_the_service_pairs_two_jobs_and_holds_the_guest_to_half(sharing_cluster: Cluster) -> None:
    cluster = sharing_cluster
    cluster.inside("n1", "sh", "-c", "role alive agent || role start agent")
    cluster.root("schedbridge", "policy", "set", "static-half")
    try:
        host = submit(cluster, "--coschedule=host", "-J", "host")
        cluster.wait_state(host, "RUNNING")
        guest = submit(cluster, "--coschedule=guest", "-J", "guest", run=SPIN)
        cluster.wait_state(guest, "RUNNING", timeout_s=120)
        assert cluster.state(host) == "RUNNING"
        half = 100_000  # of two CPUs, in microseconds of a tenth of a second
        cluster.wait_for("its quota", lambda: shown(cluster, guest)[0] == str(half), 60)
        for job, words in ((host, f"with a guest, job {guest}"), (guest, f"nodes of job {host}")):
            cluster.wait_for(
                f"a comment: {words}",
                lambda job=job, words=words: words in cluster.run("scontrol", "show", "job", job),
            )
        cluster.root("scancel", host)
        cluster.wait_for("its full share", lambda: shown(cluster, guest) == FULL_SHARE)
        assert cluster.state(guest) == "RUNNING"
    finally:
        cluster.root("schedbridge", "policy", "set", "slurm-like")
        cluster.root("sh", "-c", "squeue -h -o %A | sort -u | xargs -r scancel --quiet")
        cluster.wait_empty()
    no_trace_is_left(cluster)


# ---------------------------------------------------------------- restarts


def reboot(cluster: Cluster, *jobs: str) -> None:
    """Restarts the container of node n1, under which these jobs have lost their processes.

    slurmctld misses a batch job at a registration of its node only after BatchStartTimeout and
    MessageTimeout, together 20 s, since the job's start.
    """
    for job in jobs:
        cluster.wait_for(
            "the time for a batch job to start",
            lambda job=job: cluster.job(job)["RunTime"] >= "00:00:25",
        )
    subprocess.run(["docker", "restart", "-t", "0", f"{cluster.name}-n1"], check=True)
    for words in (("munge",), ("node", "n1"), ("agent", "n1")):
        cluster.inside("n1", "role", "start", *words)


def test_a_pair_survives_a_restart_of_the_controller(sharing: Decider) -> None:
    cluster = sharing.cluster
    host, guest = a_pair(sharing)
    cluster.script("restart", "controller")
    cluster.wait_for("a report", lambda: sharing.reported(guest)["host"] == host, 60)
    assert consent(sharing, host) == "COSCHEDULE_HOST"
    assert "Owner=user(" in cluster.run("scontrol", "show", "node", "n1")
    with fallback(cluster):
        stay_out(cluster, submit(cluster, "--oversubscribe", user="alice"))
    cluster.root("scancel", host, guest)
    cluster.wait_for(
        "a node of nobody", lambda: "Owner=N/A" in cluster.run("scontrol", "show", "node", "n1")
    )


def test_after_a_reboot_of_the_node_both_wait_and_nothing_is_left(sharing: Decider) -> None:
    cluster = sharing.cluster
    host, guest = a_pair(sharing)
    bound(sharing, guest)
    reboot(cluster, host, guest)
    for job in (host, guest):
        cluster.wait_for(
            f"another run of job {job}", lambda job=job: cluster.job(job)["Restarts"] == "1", 120
        )
        cluster.wait_for(
            "what its user asked for",
            lambda job=job: cluster.state(job) == "RUNNING"
            or cluster.job(job)["OverSubscribe"] == "OK",
            60,
        )  # fmt: skip
    both = {cluster.state(host), cluster.state(guest)}
    assert both != {"RUNNING"}  # whoever starts again is alone
    no_trace_is_left(cluster)
