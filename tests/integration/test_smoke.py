# SPDX-License-Identifier: Apache-2.0
"""A dozen things that every site does, on one real cluster that has everything: every change is
tried on it.

Four nodes of two CPUs, with accounting, agents, cgroups, a partition whose jobs may share nodes,
and nodes that can be powered down. n1 never is.
"""

from collections.abc import Iterator

import pytest

from tests.integration.decider import Decider, deciding, held, malleable
from tests.integration.replaced_service import fallbacks, status
from tests.integration.shared_nodes import PARTITION
from tests.integration.shared_nodes import PLANNING as SHARING
from tests.integration.slurm import Cluster, announced_s, expand
from tests.integration.switched_nodes import (
    CPUS,
    Machines,
    are_powered_down,
    shown,
    state,
    switched_nodes,
)

CLUSTER = "sbsmoke"
ALL = ("n1", "n2", "n3", "n4")
WHOLE = ("-N4", "--exclusive")
LONG = "sleep 600"


@pytest.fixture(scope="module")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    options = ("--accounting", "--agents", "--cgroups", "--set", PARTITION)
    folder = tmp_path_factory.mktemp("smoke")
    with switched_nodes(CLUSTER, len(ALL), folder, *options, planning=SHARING) as cluster:
        yield cluster


@pytest.fixture
def site(standing: Cluster) -> Iterator[Cluster]:
    """The cluster, without jobs and with all nodes, and so it is left."""
    standing.wait_for("all nodes", lambda: {state(standing, n) for n in ALL} == {"IDLE"}, 90)
    yield standing
    standing.root("sh", "-c", "squeue -h -o %A | sort -u | xargs -r scancel --quiet")
    standing.wait_empty()


@pytest.fixture
def decider(site: Cluster) -> Iterator[Decider]:
    with deciding(site) as found:
        yield found
        found.tell_agents()


def blocked(cluster: Cluster) -> str:
    """A job that has all nodes."""
    job = cluster.sbatch(*WHOLE, "-t10", run=LONG)
    cluster.wait_state(job, "RUNNING")
    return job


def decided(cluster: Cluster) -> int:
    """How many starts the service has decided since it began; 0 if it does not answer."""
    decisions = status(cluster).get("decisions", {})
    assert isinstance(decisions, dict)
    return int(decisions.get("start", 0))


def the_bridge_decides(cluster: Cluster) -> None:
    """Jobs that are submitted now are started by the bridge, at last."""

    def started() -> bool:
        before = decided(cluster)
        job = cluster.sbatch("-n1", "-t1", run="true")
        cluster.wait_state(job, "COMPLETED")
        return decided(cluster) > before

    cluster.wait_for("a start by the bridge", started)


def test_jobs_start_when_they_were_announced_or_before(site: Cluster) -> None:
    """Slow: real jobs run one after the other."""
    blocker = blocked(site)
    jobs = [site.sbatch("-N2", "--exclusive", "-t1", run="true") for _ in range(3)]
    starts = [announced_s(site, job) for job in jobs]
    assert starts[0] == starts[1] < starts[2]
    first, second = (set(expand(site.job(job)["SchedNodeList"])) for job in jobs[:2])
    assert first | second == set(ALL)
    site.run("scancel", blocker)
    records = site.assert_sound(jobs, cpus_per_node=CPUS)
    by_id = {record.job_id: record for record in records}
    assert all(by_id[job].start_s <= start for job, start in zip(jobs, starts, strict=True))


def test_srun_and_salloc_get_nodes(site: Cluster) -> None:
    assert sorted(site.run("srun", "-N4", "-t1", "hostname").split()) == list(ALL)
    assert len(site.run("salloc", "-Q", "-N2", "-t1", "srun", "hostname").split()) == 2


def test_a_waiting_job_has_a_reason_that_users_understand(site: Cluster) -> None:
    blocker = blocked(site)
    job = site.sbatch("-N2", "-t1")
    held_job = site.sbatch("-N2", "-t1", "--hold")
    start = announced_s(site, job)
    site.wait_for("why", lambda: blocker in site.process("schedbridge", "explain", job).stdout)
    reasons = dict(
        line.split(maxsplit=1) for line in site.run("squeue", "-h", "-o", "%i %r").splitlines()
    )
    assert reasons[held_job] == "JobHeldUser"
    assert reasons[job] not in ("None", "")
    assert announced_s(site, job) == start


def test_what_nobody_could_run_is_refused_in_words(site: Cluster) -> None:
    done = site.process("sbatch", "--chunks=2:ncpus=x", "--wrap", "true")
    assert done.returncode != 0
    assert "ncpus=x" in done.stderr
    done = site.process("sbatch", "-N5", "--wrap", "true")
    assert done.returncode != 0
    assert site.queue() == {}


def test_limits_of_two_accounts_are_kept(site: Cluster) -> None:
    """Slow: real jobs of two accounts run one after the other."""
    jobs = {}
    for user, account, cpus in (("alice", "small", 2), ("bob", "smaller", 1)):
        site.root("sacctmgr", "-i", "add", "account", account, f"GrpTRES=cpu={cpus}")
        site.root("sacctmgr", "-i", "add", "user", user, f"account={account}")
        jobs[account, cpus] = [
            site.sbatch("-A", account, "-n1", "-t1", run="sleep 2", user=user) for _ in range(3)
        ]
    site.wait_for(
        "the limit's reason", lambda: "Assoc" in site.run("squeue", "-h", "-t", "PD", "-o", "%r")
    )
    for (account, cpus), mine in jobs.items():
        records = site.assert_sound(mine, cpus_per_node=CPUS)
        changes = [(r.start_s, r.cpus) for r in records] + [(r.end_s, -r.cpus) for r in records]
        used = 0
        for _, change in sorted(changes):
            used += change
            assert used <= cpus, account


def test_an_array_keeps_its_own_limit(site: Cluster) -> None:
    array = site.sbatch("--array=0-4%2", "-n1", "-t1", run="sleep 1")
    tasks = [f"{array}_{task}" for task in range(5)]
    records = site.assert_sound(tasks, cpus_per_node=CPUS)
    changes = sorted([(r.start_s, 1) for r in records] + [(r.end_s, -1) for r in records])
    running = 0
    for _, change in changes:
        running += change
        assert running <= 2


def test_a_reservation_is_planned_around_and_in(site: Cluster) -> None:
    site.root(
        "schedbridge", "reserve", "exam", "--start", "now+5minutes", "--duration", "10m",
        "--nodes", "3", "--users", "user",
    )  # fmt: skip
    try:
        record = shown(site, "reservation", "exam")
        inside = site.sbatch("-N3", "-t2", "--reservation=exam")
        crossing = site.sbatch(*WHOLE, "-t10")
        short = site.sbatch(*WHOLE, "-t1", run="true")
        assert announced_s(site, inside) == int(record["StartTime"])
        assert announced_s(site, crossing) == int(record["EndTime"])
        site.wait_state(short, "COMPLETED")
    finally:
        site.root("scancel", "-R", "exam")
        site.root("schedbridge", "unreserve", "exam")
    site.wait_state(crossing, "RUNNING", "COMPLETED")


def test_each_daemon_is_restarted_and_nothing_is_lost(site: Cluster) -> None:
    """Slow: restarts real daemons, and waits until each is back."""
    running = site.sbatch("-n1", "-wn1", "-t10", run=LONG)
    site.wait_state(running, "RUNNING")
    waiting = site.sbatch(*WHOLE, "-t1", run="true")
    for daemon in (("service",), ("controller",), ("dbd",), ("node", "n1")):
        site.script("restart", *daemon)
        site.wait_for("slurmctld", lambda: not site.process("squeue", "-h").returncode)
        the_bridge_decides(site)
        assert announced_s(site, waiting)
        assert site.state(running) == "RUNNING", daemon
    site.inside("n1", "sh", "-c", "role signal KILL agent; role start agent")
    site.run("scancel", running)
    site.assert_sound([waiting], cpus_per_node=CPUS)


def test_slurm_goes_on_alone_while_the_service_is_gone(site: Cluster) -> None:
    """Slow: waits until Slurm's own backfill takes over."""
    before = fallbacks(site)
    site.script("kill", "service")
    jobs = [site.sbatch("-n1", "-t1", run="true") for _ in range(3)]
    for job in jobs:
        site.wait_state(job, "COMPLETED", timeout_s=90)
    site.script("restart", "service")
    the_bridge_decides(site)
    site.wait_for("the fallback to be counted", lambda: fallbacks(site) > before)
    site.assert_sound(jobs, cpus_per_node=CPUS)


def test_nodes_are_powered_down_and_come_back_for_a_job(site: Cluster) -> None:
    """Slow: waits until nodes are idle long enough to be powered down."""
    machines = Machines(site)
    try:
        site.root("schedbridge", "power", "corridor", "--upper", "100W", "--for", "1h")
        site.wait_for("idle nodes off", lambda: are_powered_down(site, "n2", "n3", "n4"), 90)
        assert state(site, "n1") == "IDLE"
        site.root("schedbridge", "power", "corridor", "--upper", "none", "--for", "1h")
        job = site.sbatch(*WHOLE, "-t5", run="srun hostname >~/ran-$SLURM_JOB_ID")
        site.wait_state(job, "COMPLETED", timeout_s=120)
        assert sorted(site.run("cat", f"ran-{job}").split()) == list(ALL)
        assert shown(site, "job", job)["Restarts"] == "0"
        assert machines.nodes_of("resume") == ["n2", "n3", "n4"]
    finally:
        machines.close()


def test_a_running_job_grows_and_shrinks(decider: Decider) -> None:
    """Slow: a real job grows and shrinks."""
    job = malleable(decider, "n1", "-wn1")
    decider.resized(job, "n[1-3]")
    decider.resized(job, "n[1-2]")
    assert held(decider.cluster, job) == ["n1", "n2"]


def test_a_guest_is_bound_beside_its_host_and_leaves_no_trace(decider: Decider) -> None:
    """Slow: waits until a real guest has run beside its host."""
    cluster = decider.cluster

    def submit(role: str, run: str) -> str:
        return cluster.sbatch(
            "-p", "share", "-N1", "-n2", "-wn1", "--mem=300", "-t10", "--requeue",
            f"--coschedule={role}", run=run,
        )  # fmt: skip

    def is_host(job: str) -> bool:
        lines = [line for line in decider.lines() if line.get("job") == job]
        return bool(lines) and lines[-1].get("consent") == "COSCHEDULE_HOST"

    host = submit("host", LONG)
    cluster.wait_for("a host", lambda: is_host(host))
    guest = submit("guest", "while :; do :; done & while :; do :; done")
    said = decider.start_guest(guest, host)
    assert said["outcome"] == "OUTCOME_APPLIED", said
    cluster.wait_state(guest, "RUNNING")
    decider.tell_agents(job=guest, node="n1", milli_cpus=250, weight=1, guest=True)
    find = "find /sys/fs/cgroup/cpu -path '*schedbridge_n1_*'"  # the host's: others have their own
    quota = f"{find} -name cpu.cfs_quota_us -exec cat {{}} +"
    cluster.wait_for("a quota", lambda: "25000" in cluster.inside("n1", "sh", "-c", quota))
    cluster.root("scancel", guest, host)
    cluster.wait_empty()
    cluster.wait_for("no trace", lambda: not cluster.inside("n1", "sh", "-c", find))
