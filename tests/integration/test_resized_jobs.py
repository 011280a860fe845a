# SPDX-License-Identifier: Apache-2.0
"""What Slurm makes of jobs that were resized: limits, signals, fair share, nodes given back."""

import subprocess
import time
from collections.abc import Iterator

import pytest

from tests.integration.decider import Decider, held, helpers, made, malleable
from tests.integration.slurm import Cluster

CPUS = 4
"""Of each node."""


@pytest.mark.parametrize(
    ("limit", "word", "foreseen"),
    [
        ("MaxTRES=mem={memory}", "(MaxTRES)", True),
        ("MaxTRESMins=cpu=120", "(MaxTRESMins)", True),  # ten minutes on three nodes
        ("MaxTRESMins=mem={memory_minutes}", "(MaxTRESMins)", True),
        ("GrpTRES=mem={memory}", "AssocGrpMemLimit", False),  # Slurm itself tests the helper
    ],
)
def test_limits_of_a_job_bind_what_it_has_after_it_grew(
    decider: Decider, limit: str, word: str, foreseen: bool
) -> None:
    cluster = decider.cluster
    job = malleable(decider, "n[1-2]")
    mib = int(cluster.run("sinfo", "-h", "-N", "-n", "n1", "-p", "main", "-o", "%m"))
    limit = limit.format(memory=3 * mib, memory_minutes=30 * mib)
    kind, tres, _ = limit.split("=")
    cluster.root("sacctmgr", "-i", "modify", "user", "user", "set", limit)
    try:
        said = decider.judged(job, "n[1-4]")
        assert said["outcome"] == "OUTCOME_LIMITED", said
        assert word in str(said["text"]), said
        assert held(cluster, job) == ["n1", "n2"]
        assert not helpers(cluster)
        assert ("CANCELLED" in made(cluster, job)) != foreseen
        decider.resized(job, "n[1-3]")
    finally:
        cluster.root("sacctmgr", "-i", "modify", "user", "user", "set", f"{kind}={tres}=-1")


def trap(place: str) -> str:
    """A shell that writes a file when it gets the signal."""
    return f"trap 'touch {place}' USR1; for i in $(seq 1200); do sleep 0.1; done"


def test_signals_before_the_end_reach_a_job_that_was_resized_as_any_other(decider: Decider) -> None:
    cluster = decider.cluster
    cluster.run("sh", "-c", "rm -rf signals && mkdir signals")
    jobs = []
    for option, nodes in (("--signal=USR1@90", "n[1-2]"), ("--signal=B:USR1@90", "n[3-4]")):
        first, second = (f"n{number}" for number in nodes[2:-1].split("-"))
        job = malleable(
            decider, first, "-t", "2", option, "-w", first, run=trap("signals/$SLURM_JOB_ID.batch")
        )
        decider.resized(job, nodes)
        for node in (first, second):
            command = ["srun", f"--jobid={job}", "--overlap", "-N1", "-n1", "-w", node, "-Q",
                       "sh", "-c", trap(f"signals/{job}.{node}")]  # fmt: skip
            subprocess.Popen(
                [*cluster.login("user"), *command],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
        steps = {f"{job}.0", f"{job}.1"}
        cluster.wait_for(
            "steps on both", lambda job=job, steps=steps: steps <= set(  # type: ignore[misc]
                cluster.run("squeue", "-s", "-h", "-j", job, "-o", "%i").split()
            ), 30,
        )  # fmt: skip
        jobs.append(job)
    all_steps, batch_only = jobs
    expected = {f"{all_steps}.n1", f"{all_steps}.n2", f"{batch_only}.batch"}
    got: set[str] = set()

    def signalled() -> bool:
        got.update(cluster.run("ls", "signals").split())
        return expected <= got

    cluster.wait_for("the signals", signalled, 90)  # Slurm looks every half minute
    time.sleep(1)
    signalled()
    assert got == expected


def test_nodes_given_back_can_be_used_though_another_job_ends_first(decider: Decider) -> None:
    cluster = decider.cluster
    job = malleable(decider, "n[1-4]")
    other = cluster.sbatch("-N1", "-n1", "-w", "n8", run="sleep 300")
    cluster.wait_state(other, "RUNNING")
    decider.resized(job, "n1")  # nothing waits: no nodes are selected until the next submission
    cluster.run("scancel", other)
    cluster.wait_state(other, "CANCELLED")
    cluster.wait_for("no traces", lambda: other not in cluster.run("squeue", "-h", "-o", "%A"), 30)
    after = cluster.sbatch("-N3", "--exclusive", "-w", "n[2-4]", "-t", "1", run="true")
    cluster.wait_state(after, "COMPLETED", timeout_s=30)
    assert cluster.job(job)["NumNodes"] == "1"


FAIR_SHARE = """
PriorityType=priority/multifactor
PriorityDecayHalfLife=365-0
PriorityCalcPeriod=1
"""


@pytest.fixture
def fair_share(session_cluster: Cluster) -> Iterator[None]:
    """Slurm counts usage, once a minute."""
    cluster, conf = session_cluster, "/etc/slurm/slurm.conf"
    change = f"cp {conf} {conf}.before && sed -i '/^PriorityType=/d' {conf}"
    cluster.inside("controller", "sh", "-ec", f"{change} && echo '{FAIR_SHARE}' >>{conf}")
    try:
        cluster.script("restart", "controller")
        yield
    finally:
        cluster.inside("controller", "mv", f"{conf}.before", conf)
        cluster.script("restart", "controller")


def used(cluster: Cluster, user: str) -> int:
    """CPU seconds that fair share has counted."""
    out = cluster.root("sshare", "-h", "-P", "-a", "-u", user, "-o", "User,RawUsage")
    return sum(int(line.split("|")[1]) for line in out.splitlines() if line.startswith(user))


def test_fair_share_counts_each_width_for_as_long_as_a_job_had_it(
    fair_share: None, decider: Decider
) -> None:
    """Each change follows a count at once: what Slurm counts of the minute before it, it counts
    again at the new width.

    Slow: Slurm counts once a minute.
    """
    cluster = decider.cluster
    job = malleable(decider, "n[1-2]", run="sleep 600")
    before = used(cluster, "user")
    counted = cluster.wait_for(
        "the first count", lambda: (now := used(cluster, "user")) > before and now, 90
    )
    for nodes, width in (("n[1-4]", 4), ("n1", 1)):
        began, from_s = counted, time.monotonic()
        decider.resized(job, nodes)
        unsure = CPUS * 4 * (time.monotonic() - from_s + 3)
        at_once = used(cluster, "user")
        assert at_once - began <= unsure, (at_once, began)
        counted = cluster.wait_for(
            "the next count",
            lambda at_once=at_once: (now := used(cluster, "user")) > at_once and now,  # type: ignore[misc]
            90,
        )
        lasted_s = time.monotonic() - from_s
        assert counted - began == pytest.approx(width * CPUS * lasted_s, abs=unsure)
