# SPDX-License-Identifier: Apache-2.0
"""Nodes powered down and up on a real cluster: Slurm orders, a thread stops and boots slurmds.

Five nodes of 60 W idle and 200 W at most; n1 is in SuspendExcNodes. Slurm's own SuspendTime is far
away, so whatever is powered down or up here is so by order of the bridge.
"""

import shlex
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.integration.slurm import KEEP, Cluster, expand

CLUSTER = "sbsaving"
CONFIG = Path(__file__).parents[2] / "slurm_conf" / "bridge.yaml"
PLANNING = """
planning:
  power:
    nodes: [{name: all, idle: 60W, max: 200W}]
    corridor: [{upper: 10kW}]
    power_down: {hold: 1s}
"""
ALL, EXCLUDED, USED = ("n1", "n2", "n3", "n4", "n5"), "n1", "n5"
RESUME_S, SUSPEND_S = 45, 3
PROGRAMS, ORDERS = "/usr/local/sbin", "/var/log/slurm/power-orders"
PROGRAM = f'#!/bin/sh\necho "$(basename "$0") $1 $(date +%s)" >>{ORDERS}\n'


@dataclass(frozen=True)
class Order:
    """One call of a program by Slurm; `at_s` is the controller's clock, Unix seconds."""

    program: str
    nodes: tuple[str, ...]
    at_s: int


class Machines:
    """What would switch real nodes: a thread that stops and boots their slurmds as ordered."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.orders: list[Order] = []
        self.may_boot = threading.Event()
        self.may_boot.set()
        self.broken: set[str] = set()
        self.failed: list[BaseException] = []
        self._follows = subprocess.Popen(
            ["docker", "exec", f"{cluster.name}-controller", "tail", "-n", "+1", "-F", ORDERS],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self.may_boot.set()
        self._follows.terminate()
        self._thread.join()
        assert not self.failed, self.failed

    def of(self, program: str) -> list[Order]:
        return [order for order in self.orders if order.program == program]

    def nodes_of(self, program: str) -> list[str]:
        """In several orders if need be: Slurm hands out so many a second (SuspendRate)."""
        return sorted(node for order in self.of(program) for node in order.nodes)

    def forget(self) -> None:
        self.orders.clear()

    def mend(self) -> None:
        self.broken.clear()
        self.may_boot.set()

    def _run(self) -> None:
        assert self._follows.stdout is not None
        for line in self._follows.stdout:
            program, nodes, at_s = line.split()
            order = Order(program, tuple(expand(nodes)), int(at_s))
            self.orders.append(order)
            try:
                self._carry_out(order)
            except (AssertionError, OSError, subprocess.SubprocessError) as failure:
                self.failed.append(failure)

    def _carry_out(self, order: Order) -> None:
        if order.program == "resume":
            self.may_boot.wait()
        for node in order.nodes:
            if node in self.broken:
                continue
            # -b: the host's uptime, which slurmd reports as the node's, began long ago.
            boots = ("slurmd", "-b", "-N", node)
            ends = ("role", "end", "node", node)
            self._cluster.inside(node, *(boots if order.program == "resume" else ends))


@pytest.fixture(scope="module")
def saving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The cluster. Slurm uses the programs from its second start on, when they are there."""
    assert not KEEP, "a cluster whose nodes nobody boots is of no use: run without KEEP_CLUSTER"
    file = tmp_path_factory.mktemp("saving") / "bridge.yaml"
    file.write_text(CONFIG.read_text() + PLANNING)
    settings = {
        "SuspendProgram": f"{PROGRAMS}/suspend", "ResumeProgram": f"{PROGRAMS}/resume",
        "SuspendTime": "86400", "SuspendTimeout": SUSPEND_S, "ResumeTimeout": RESUME_S,
        "SuspendExcNodes": EXCLUDED, "SlurmctldParameters": "power_save_interval=1",
    }  # fmt: skip
    words = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    cluster = Cluster(
        CLUSTER, "--nodes", str(len(ALL)), "--containers", str(len(ALL)), "--cpus", "2",
        "--service-config", str(file), *words,
    )  # fmt: skip
    cluster.up()
    paths = f"{PROGRAMS}/suspend {PROGRAMS}/resume"
    make = f"printf %s {shlex.quote(PROGRAM)} | tee {paths} >/dev/null && chmod 755 {paths}"
    own = f"touch {ORDERS} && chown slurm {ORDERS}"
    cluster.inside("controller", "sh", "-c", f"{make} && {own}")
    cluster.script("restart", "controller")
    yield cluster
    cluster.down()


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


def state(cluster: Cluster, node: str) -> str:
    return shown(cluster, "node", node)["State"]


def shown(cluster: Cluster, kind: str, name: str) -> dict[str, str]:
    """What scontrol shows; times are Unix seconds."""
    words = ("env", "SLURM_TIME_FORMAT=%s", "scontrol", "show", kind, "-o", name)
    pairs = (word.partition("=") for word in cluster.run(*words).split())
    return {key: value for key, _, value in pairs}


def are_powered_down(cluster: Cluster, *nodes: str) -> bool:
    return all("POWERED_DOWN" in state(cluster, node).split("+") for node in nodes)


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
