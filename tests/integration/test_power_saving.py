# SPDX-License-Identifier: Apache-2.0
"""Nodes powered down and up on a real cluster, by order of the bridge.

Five nodes of 60 W idle and 200 W at most; n1 is in SuspendExcNodes.
"""

from collections.abc import Iterator

import pytest

from tests.integration.slurm import Cluster
from tests.integration.switched_nodes import (
    EXCLUDED,
    RESUME_S,
    SUSPEND_S,
    Machines,
    are_powered_down,
    shown,
    state,
    switched_nodes,
)

CLUSTER = "sbsaving"
ALL, USED = ("n1", "n2", "n3", "n4", "n5"), "n5"


@pytest.fixture(scope="module")
def saving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The cluster. Slurm uses the programs from its second start on, when they are there."""
    with switched_nodes(CLUSTER, len(ALL), tmp_path_factory.mktemp("saving")) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def switched(saving: Cluster) -> Iterator[Machines]:
    found = Machines(saving)
    yield found
    found.close()


@pytest.fixture
def machines(saving: Cluster, switched: Machines) -> Machines:
    """No job, no bound, and every node on and idle, however the last test left them."""
    saving.root("schedbridge", "power", "corridor", "--upper", "none", "--for", "1h")
    saving.root("sh", "-c", "squeue -h -o %A | xargs -r scancel --quiet")
    saving.wait_empty()
    switched.mend()
    off = [node for node in ALL if "POWERED_DOWN" in state(saving, node)]
    if off:
        saving.root("scontrol", "update", f"NodeName={','.join(off)}", "State=POWER_UP")
    saving.wait_for("all nodes", lambda: {state(saving, node) for node in ALL} == {"IDLE"})
    switched.forget()
    return switched


def bounded(cluster: Cluster, watts: int) -> None:
    cluster.root("schedbridge", "power", "corridor", "--upper", f"{watts}W", "--for", "1h")


def occupies(cluster: Cluster, node: str) -> str:
    job = cluster.sbatch("-N1", f"-w{node}", "--exclusive", "-t60", run="sleep 3000")
    cluster.wait_state(job, "RUNNING")
    return job


def log_line(cluster: Cluster, words: str) -> str:
    """The line of slurmctld's log that holds these words, or nothing."""
    lines = cluster.script("logs", "controller").splitlines()
    return next((line for line in lines if words in line), "")


def test_idle_nodes_give_their_power_to_a_waiting_job(saving: Cluster, machines: Machines) -> None:
    occupies(saving, USED)
    bounded(saving, 460)  # drawn are 5 x 60 W and 140 W: the job lacks 120 W, two idle nodes
    job = saving.sbatch("-N1", "--exclusive", "-t10", run="sleep 1000")
    saving.wait_for(
        "why the job waits",
        lambda: "needs 140 W, 20 W are free of 460 W" in saving.run("schedbridge", "explain", job),
    )
    saving.wait_state(job, "RUNNING")
    assert are_powered_down(saving, "n3", "n4"), "the job runs before its power is free"
    assert shown(saving, "job", job)["NodeList"] in ("n1", "n2")
    assert machines.nodes_of("suspend") == ["n3", "n4"]
    assert not machines.of("resume")
    last_s = machines.of("suspend")[-1].at_s
    assert int(shown(saving, "job", job)["StartTime"]) >= last_s + SUSPEND_S
    assert log_line(saving, f"nodes n[3-4] power down (job {job} waits for 120 W): done")


def test_nodes_that_are_excluded_or_in_use_stay_on(saving: Cluster, machines: Machines) -> None:
    occupies(saving, USED)
    bounded(saving, 100)  # far less than what stays on draws
    saving.wait_for("idle nodes off", lambda: are_powered_down(saving, "n2", "n3", "n4"))
    waits = saving.sbatch("-N1", "-w" + EXCLUDED, "-t1")  # the bridge plans again with what is left
    saving.wait_for("its reason", lambda: "power" in saving.run("schedbridge", "explain", waits))
    assert (state(saving, EXCLUDED), state(saving, USED)) == ("IDLE", "ALLOCATED")
    assert machines.nodes_of("suspend") == ["n2", "n3", "n4"]
    assert not machines.of("resume")
    assert log_line(saving, "W above its upper bound): done")


def test_nodes_come_back_for_a_job_that_starts_when_they_are_there(
    saving: Cluster, machines: Machines
) -> None:
    bounded(saving, 100)
    saving.wait_for("idle nodes off", lambda: are_powered_down(saving, "n2", "n3", "n4", "n5"))
    machines.may_boot.clear()
    saving.root("schedbridge", "power", "corridor", "--upper", "none", "--for", "1h")
    job = saving.sbatch(
        "-N5", "--exclusive", "-t5", run="srun hostname | sort >~/ran-$SLURM_JOB_ID; sleep 1000"
    )
    sleeping = ["n2", "n3", "n4", "n5"]
    saving.wait_for("Slurm's orders", lambda: machines.nodes_of("resume") == sleeping)
    assert log_line(saving, "nodes n[2-5] power up (jobs are planned there): done")

    def announced_s() -> int:
        seen = shown(saving, "job", job)
        assert seen["JobState"] == "PENDING", "started on nodes that are not there"
        return int(seen["StartTime"]) if seen["StartTime"].isdigit() else 0

    submitted_s = int(shown(saving, "job", job)["SubmitTime"])
    soon_s = range(submitted_s + RESUME_S, machines.of("resume")[-1].at_s + RESUME_S + 3)
    saving.wait_for("the announced start", lambda: announced_s() in soon_s)
    machines.may_boot.set()
    saving.wait_state(job, "RUNNING")
    ran = shown(saving, "job", job)
    assert ran["Restarts"] == "0"
    for node in sleeping:
        assert int(shown(saving, "node", node)["BootTime"]) <= int(ran["StartTime"])
    hosts = saving.wait_for("its output", lambda: saving.process("cat", f"ran-{job}").stdout)
    assert hosts.split() == list(ALL)
    assert machines.nodes_of("resume") == sleeping, "one was ordered twice"


def test_a_node_that_does_not_come_back_is_replaced(saving: Cluster, machines: Machines) -> None:
    bounded(saving, 100)
    saving.wait_for("idle nodes off", lambda: are_powered_down(saving, "n2", "n3", "n4", "n5"))
    machines.broken.add("n2")
    saving.root("schedbridge", "power", "corridor", "--upper", "none", "--for", "1h")
    job = saving.sbatch("-N2", "--exclusive", "-t5", run="srun hostname >~/ran-$SLURM_JOB_ID")
    saving.wait_for("Slurm's order", lambda: machines.nodes_of("resume") == ["n2"])
    saving.wait_state(job, "COMPLETED", timeout_s=4 * RESUME_S)
    assert sorted(saving.run("cat", f"ran-{job}").split()) == ["n1", "n3"]
    assert shown(saving, "job", job)["Restarts"] == "0"
    assert "DOWN" in state(saving, "n2").split("+")
    assert machines.nodes_of("resume") == ["n2", "n3"]
    machines.mend()
    saving.inside("n2", "slurmd", "-b", "-N", "n2")  # late, but here
    saving.wait_for("its return", lambda: state(saving, "n2") == "IDLE")
