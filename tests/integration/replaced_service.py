# SPDX-License-Identifier: Apache-2.0
"""Puts a misbehaving program of `faults/` in the service's place, and the service back again."""

import json
import shlex
import subprocess
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.integration.slurm import Cluster

FAULTS = Path(__file__).parent / "faults"
THERE = "/tmp/faults"
PYTHON = "/opt/schedbridge/bin/python3"
SOCKET, CONFIG = "/run/schedbridge/bridge.sock", "/etc/schedbridge/bridge.yaml"
SERVE = ("--", "serve", "--config", CONFIG)
PID, LOG = "/tmp/replacement.pid", "/tmp/replacement.log"
RESULTS = "/tmp/results.jsonl"
Results = dict[str, list[dict[str, object]]]
"""Results by kind of impossible decision."""


def status(cluster: Cluster) -> dict[str, object]:
    """Returns the status that the service reports; empty if it does not answer."""
    done = cluster.process("schedbridge", "status", "--json")
    return json.loads(done.stdout) if done.returncode == 0 else {}


def fallbacks(cluster: Cluster) -> int:
    """Times that slurmctld fell back to its own scheduler since its start, as the service knows."""
    controller = status(cluster).get("controller_status", {})
    assert isinstance(controller, dict)
    return int(controller.get("fallbacks", 0))


@dataclass
class Silence:
    """The service fell silent between these two instants."""

    not_before_s: float
    not_after_s: float = 0.0


@contextmanager
def silence() -> Iterator[Silence]:
    """Records when its body begins and ends, as seconds may pass in between on a busy machine."""
    silent = Silence(time.time())
    yield silent
    silent.not_after_s = time.time()


class ReplacedService:
    """A program of `faults/` in the service's container, instead of the service.

    Attributes:
        silent: when the service fell silent.
    """

    def __init__(
        self, cluster: Cluster, program: str, *arguments: str, user: str = "slurm"
    ) -> None:
        self.cluster, self.user = cluster, user
        self.silent = Silence(0.0)
        words = shlex.join((PYTHON, f"{THERE}/{program}", *arguments))
        self.command = f"echo $$ >{PID}; exec {words} >{LOG} 2>&1"

    def __enter__(self) -> Self:
        cluster = self.cluster
        cluster.inside("service", "rm", "-rf", THERE, RESULTS, PID, LOG)
        subprocess.run(
            ["docker", "cp", "-q", str(FAULTS), f"{cluster.name}-service:{THERE}"], check=True
        )
        cluster.inside("service", "chmod", "-R", "a+rX", THERE)  # whatever the checkout's modes are
        with silence() as self.silent:
            cluster.script("kill", "service")
        subprocess.run(
            ["docker", "exec", "-d", "-u", self.user, f"{cluster.name}-service", "sh", "-c",
             self.command],
            check=True,
        )  # fmt: skip
        cluster.wait_for("the replacement", lambda: self._pid() != "", 10)
        return self

    def _pid(self) -> str:
        return self.cluster.inside("service", "sh", "-c", f"cat {PID} 2>/dev/null || true")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        if error is not None:
            print("the replacement said:", self.cluster.inside("service", "tail", "-n", "40", LOG))
        self.cluster.inside("service", "kill", "-KILL", self._pid())
        self.cluster.script("restart", "service")

    def results(self) -> Results:
        """Returns the results of the impossible decisions of `altered_service.py`, by kind."""
        text = self.cluster.inside("service", "cat", RESULTS)
        by_kind = defaultdict(list)
        for line in text.splitlines():
            entry = json.loads(line)
            by_kind[entry["kind"]].append(entry)
        return by_kind
