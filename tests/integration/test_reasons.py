# SPDX-License-Identifier: Apache-2.0
"""Why jobs wait, as a real `squeue` shows it and as `schedbridge explain` tells it.

8 nodes of 4 CPUs in `main`; n1 to n4 are fast, there are licences.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.integration.slurm import Cluster

LONG = "sleep 3600"


def squeue(cluster: Cluster, job: str, words: str) -> None:
    """Waits until squeue shows exactly these words."""
    seen = ["nothing"]

    def shown() -> bool:
        seen[0] = cluster.run("squeue", "-h", "-j", job, "-o", "%r")
        return seen[0] == words

    try:
        cluster.wait_for(f"squeue to say '{words}'", shown, 30)
    except AssertionError as error:
        raise AssertionError(f"'{seen[0]}' is shown: {error}") from None


def explained(cluster: Cluster, job: str, words: str) -> None:
    """Waits until explain says these words among others."""

    def says() -> bool:
        return words in cluster.process("schedbridge", "explain", job).stdout

    cluster.wait_for(f"explain to say '{words}'", says, 30)


def holding(cluster: Cluster, *options: str) -> str:
    """A job that runs."""
    job = cluster.sbatch("-t60", *options, run=LONG)
    cluster.wait_state(job, "RUNNING")
    return job


@contextmanager
def reserved(cluster: Cluster, *options: str) -> Iterator[None]:
    """A reservation of root's, named r1."""
    cluster.root("scontrol", "create", "reservation", "ReservationName=r1", "Users=root", *options)
    try:
        yield
    finally:
        cluster.root("scontrol", "delete", "reservation", "r1")


@pytest.fixture
def licence(cluster: Cluster) -> str:
    """All items of it are in use."""
    shown = cluster.run("scontrol", "show", "licenses", "-o")
    name = shown.split("LicenseName=")[1].split()[0]
    holding(cluster, "-n1", "-L", f"{name}:{shown.split('Total=')[1].split()[0]}")
    return name


def test_a_licence_in_use(cluster: Cluster, licence: str) -> None:
    job = cluster.sbatch("-n1", "-L", licence)
    squeue(cluster, job, "Licenses")
    explained(cluster, job, f"licence {licence} is in use")
    wide = cluster.sbatch("-N8", "--exclusive", "-L", licence)  # and the nodes are busy, too
    squeue(cluster, wide, "Licenses")


@pytest.mark.parametrize(
    ("options", "word", "told"),
    [
        (("-H",), "JobHeldUser", "JobHeldUser: held by user or administrator"),
        (("--begin=now+1hour",), "BeginTime", "begin time"),
        (("-a", "1-2%1", "-H"), "JobHeldUser", "JobHeldUser"),
    ],
)
def test_what_slurm_holds_back_by_itself(
    cluster: Cluster, options: tuple[str, ...], word: str, told: str
) -> None:
    job = cluster.sbatch(*options)
    squeue(cluster, job, word)
    explained(cluster, job, told)


def test_a_dependency(cluster: Cluster) -> None:
    first = holding(cluster, "-n1")
    job = cluster.sbatch("-n1", f"--dependency=afterok:{first}")
    squeue(cluster, job, "Dependency")
    explained(cluster, job, "Dependency: waits for a job it depends on")


def test_named_nodes_that_are_in_use(cluster: Cluster) -> None:
    holding(cluster, "--exclusive", "-w", "n8")
    one = cluster.sbatch("-n1", "-w", "n8")
    two = cluster.sbatch("-N2", "--exclusive", "-w", "n[7-8]")
    squeue(cluster, one, "needs n8, which is in use")
    squeue(cluster, two, "needs n[7-8], of which n8 is in use")
    explained(cluster, one, "needs n8, which is in use")


def test_nodes_that_are_drained(cluster: Cluster) -> None:
    cluster.root("scontrol", "update", "NodeName=n[1-4]", "State=DRAIN", "Reason=test")
    named = cluster.sbatch("-n1", "-w", "n2")
    fast = cluster.sbatch("-n1", "-C", "fast")
    wide = cluster.sbatch("-N5")
    squeue(cluster, named, "ReqNodeNotAvail, UnavailableNodes:n2")
    explained(cluster, named, "needs n2, which is drained")
    squeue(cluster, fast, "needs 1 node of main with fast, none is up")
    squeue(cluster, wide, "needs 5 nodes of main, only 4 are up")


def test_a_reservation_of_others(cluster: Cluster) -> None:
    with reserved(cluster, "StartTime=now", "Duration=60", "Nodes=n[1-2]"):
        job = cluster.sbatch("-N7")
        squeue(cluster, job, "ReqNodeNotAvail, May be reserved for other job")
        explained(cluster, job, "reservation r1 keeps n[1-2] until ")
        own = cluster.sbatch("-n1", "-w", "n1")
        explained(cluster, own, "reservation r1 keeps n1 until ")


def test_a_floating_reservation_that_only_slurm_knows(cluster: Cluster) -> None:
    with reserved(
        cluster, "Flags=TIME_FLOAT", "StartTime=now+10minutes", "Duration=60", "Nodes=n[1-8]"
    ):
        job = cluster.sbatch("-n1", "-t30")
        squeue(cluster, job, "ReqNodeNotAvail, May be reserved for other job")
        cluster.wait_state(cluster.sbatch("-n1", "-t5", run=LONG), "RUNNING")


def test_maintenance_that_comes_too_soon(cluster: Cluster) -> None:
    flags = ("Flags=MAINT,IGNORE_JOBS", "StartTime=now+10minutes", "Duration=60", "Nodes=ALL")
    with reserved(cluster, *flags):
        job = cluster.sbatch("-n1", "-t20")
        squeue(cluster, job, "ReqNodeNotAvail, Reserved for maintenance")
        explained(cluster, job, "before it would end")


def test_preemption_that_is_configured_is_complained_of(cluster: Cluster) -> None:
    conf = "/etc/slurm/slurm.conf"
    log = "/var/log/slurm/slurmctld.log"
    told = "PreemptType=preempt/partition_prio: jobs are preempted only for jobs whose nodes Slurm"
    lines = "PreemptType=preempt/partition_prio\nPreemptMode=REQUEUE"

    def count() -> int:
        return int(cluster.inside("controller", "sh", "-c", f"grep -c '{told}' {log} || true"))

    before = count()
    cluster.inside("controller", "sh", "-c", f"cp {conf} /tmp/slurm.conf")
    cluster.inside("controller", "sh", "-c", f"printf '{lines}\n' >> {conf}")
    try:
        cluster.script("restart", "controller")
        cluster.wait_for("the line", lambda: count() == before + 1, 30)
    finally:
        cluster.inside("controller", "sh", "-c", f"cat /tmp/slurm.conf > {conf}")
        cluster.script("restart", "controller")
    cluster.wait_for("an answer", lambda: not cluster.process("scontrol", "ping").returncode, 30)
    assert count() == before + 1
