# SPDX-License-Identifier: Apache-2.0
"""Nodes that Slurm powers down and up by programs of the site: a thread stops and boots slurmds."""

import shlex
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.integration.slurm import KEEP, Cluster, expand

CONFIG = Path(__file__).parents[2] / "slurm_conf" / "bridge.yaml"
POWER = """
  power:
    nodes: [{name: all, idle: 60W, max: 200W}]
    corridor: [{upper: 10kW}]
    power_down: {hold: 1s}
"""
EXCLUDED, CPUS = "n1", 2
RESUME_S, SUSPEND_S = 45, 3
PROGRAMS, ORDERS = "/usr/local/sbin", "/var/log/slurm/power-orders"
PROGRAM = f'#!/bin/sh\necho "$(basename "$0") $1 $(date +%s)" >>{ORDERS}\n'


@contextmanager
def switched_nodes(
    name: str, nodes: int, folder: Path, *options: str, planning: str = "\nplanning:"
) -> Iterator[Cluster]:
    """A cluster of nodes of 60 W idle and 200 W at most; all but `EXCLUDED` can be powered down.

    Args:
        name: of the cluster.
        nodes: how many, each in a container of its own.
        folder: for the service's configuration.
        options: further ones of `scripts/cluster up`.
        planning: the section of that name so far, in YAML.
    """
    assert not KEEP, "a cluster whose nodes nobody boots is of no use: run without KEEP_CLUSTER"
    file = folder / "bridge.yaml"
    file.write_text(CONFIG.read_text() + planning.rstrip() + POWER)
    cluster = Cluster(
        name, "--nodes", str(nodes), "--containers", str(nodes), "--cpus", str(CPUS),
        "--service-config", str(file), *_switching_options(), *options,
    )  # fmt: skip
    with cluster.standing(lambda: _install_programs(cluster)):
        yield cluster


def _switching_options() -> list[str]:
    """Options of `scripts/cluster up`.

    Slurm's own SuspendTime is far away, so whatever is powered down or up is so by order of the
    bridge.
    """
    settings = {
        "SuspendProgram": f"{PROGRAMS}/suspend", "ResumeProgram": f"{PROGRAMS}/resume",
        "SuspendTime": "86400", "SuspendTimeout": SUSPEND_S, "ResumeTimeout": RESUME_S,
        "SuspendExcNodes": EXCLUDED, "SlurmctldParameters": "power_save_interval=1",
    }  # fmt: skip
    return [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]


def _install_programs(cluster: Cluster) -> None:
    """Writes the site's programs; slurmctld, started anew, uses them."""
    paths = f"{PROGRAMS}/suspend {PROGRAMS}/resume"
    make = f"printf %s {shlex.quote(PROGRAM)} | tee {paths} >/dev/null && chmod 755 {paths}"
    own = f"touch {ORDERS} && chown slurm {ORDERS}"
    cluster.inside("controller", "sh", "-c", f"{make} && {own}")
    cluster.script("restart", "controller")


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


def state(cluster: Cluster, node: str) -> str:
    return shown(cluster, "node", node)["State"]


def shown(cluster: Cluster, kind: str, name: str) -> dict[str, str]:
    """What scontrol shows; times are Unix seconds."""
    words = ("env", "SLURM_TIME_FORMAT=%s", "scontrol", "show", kind, "-o", name)
    pairs = (word.partition("=") for word in cluster.run(*words).split())
    return {key: value for key, _, value in pairs}


def are_powered_down(cluster: Cluster, *nodes: str) -> bool:
    return all("POWERED_DOWN" in state(cluster, node).split("+") for node in nodes)
