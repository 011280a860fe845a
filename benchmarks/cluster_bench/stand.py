# SPDX-License-Identifier: Apache-2.0
"""The measured cluster: one of scripts/cluster, with the probe on its login container."""

import json
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from cluster_bench.meters import Meters

ROOT = Path(__file__).parents[2]
CPUS_PER_NODE = 4
PARTITION = "main"
_PROBE = "/usr/local/bin/schedbridge-probe"
_BUILD = f"{os.environ.get('SCHEDBRIDGE_IMAGES', 'schedbridge')}/build"
"""The image in which plugins are compiled, as `docker/cluster/images.py` names it."""
_NS_PER_S = 1_000_000_000

# Lets Slurm's backfill examine the whole queue in one cycle, and plan a month ahead; how often it
# runs and yields is unchanged.
_WHOLE_QUEUE = (
    "bf_max_job_test=100000,bf_continue,bf_max_time=3600,bf_window=43200,bf_resolution=60"
)

# The line each scheduler writes when it has allocated nodes to a job: Slurm's main loop, its
# backfill plugin, the bridge's plugin.
_ALLOCATED = re.compile(
    r"^\[(?P<at>[^\]]+)\] .*?(?:sched: Allocate|_start_job: Started|bridge: start)"
    r" JobId=(?P<job>\d+)"
)
_DONE = re.compile(r"^\[(?P<at>[^\]]+)\] _job_complete: JobId=(?P<job>\d+) done")


# Linked with the library of Slurm's own commands: the login node has no other.
_COMPILE = """
set -e
cat >/tmp/probe.c
folder=$(dirname /usr/lib/*/slurm-wlm/libslurmfull.so)
gcc -std=gnu17 -O2 -Wall -Wextra -Werror -pthread -o /tmp/probe /tmp/probe.c \
    -L"$folder" -Wl,-rpath,"$folder" -lslurmfull
cat /tmp/probe
"""


class BenchError(Exception):
    """A part of the benchmark could not be measured; the message says why."""


@dataclass(frozen=True)
class Submitted:
    """A job, and when its submission was begun and answered, ns since 1970."""

    job_id: int
    called_ns: int
    returned_ns: int


def job_line(nodes: int, limit_min: int, command: str, at_s: float = 0.0) -> str:
    """A job for the probe: whole nodes, submitted `at_s` seconds after the probe's start."""
    return f"{round(at_s * 1e6)} {nodes} {limit_min} {command}"


class Stand:
    """One cluster, up for one scheduler and one number of nodes; a context manager."""

    def __init__(
        self,
        name: str,
        scheduler: str,
        nodes: int,
        say: Callable[[str], None],
        *,
        whole_queue: bool = False,
        options: Sequence[str] = (),
    ) -> None:
        """Starts nothing yet; `options`: further ones of `scripts/cluster up`."""
        self.options = options
        self.name, self.scheduler, self.nodes, self.say = name, scheduler, nodes, say
        self.whole_queue = whole_queue

    def __enter__(self) -> "Stand":
        self.script("down")
        self.say(f"{self.scheduler}: starting a cluster of {self.nodes} nodes")
        begin_s = time.monotonic()
        try:
            self.script(
                "up", "--nodes", str(self.nodes), "--packed", "--cpus", str(CPUS_PER_NODE),
                "--scheduler", self.scheduler, *self._settings(), *self.options,
            )  # fmt: skip
            self.shell(
                "sh", "-c", f"cat >{_PROBE} && chmod 755 {_PROBE}", user="root", stdin=_probe()
            )
        except BaseException:
            self.script("down")
            raise
        self.say(f"{self.scheduler}: all idle after {time.monotonic() - begin_s:.0f} s")
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.script("down")
        except BenchError:  # docker releases a network late
            time.sleep(10)
            self.script("down")

    def _settings(self) -> list[str]:
        """Further options of `up`: Slurm's own schedulers run in a Slurm without the bridge."""
        if self.scheduler == "bridge":
            return []
        if not self.whole_queue:
            return ["--no-bridge"]
        snippet = (ROOT / "slurm_conf" / f"{self.scheduler}.conf").read_text()
        own = re.findall(r"^SchedulerParameters=(\S+)", snippet, re.MULTILINE)
        return ["--no-bridge", "--set", "SchedulerParameters=" + ",".join([*own, _WHOLE_QUEUE])]

    # ------------------------------------------------------------------ commands

    def script(self, verb: str, *options: str, timeout_s: float = 600) -> str:
        """Runs a verb of scripts/cluster."""
        done = subprocess.run(
            [str(ROOT / "scripts/cluster"), verb, "--name", self.name, *options],
            capture_output=True, text=True, timeout=timeout_s, check=False,
        )  # fmt: skip
        if done.returncode:
            last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-3:]
            raise BenchError(f"scripts/cluster {verb}: {' / '.join(last)}")
        return done.stdout

    def command(self, *command: str, user: str = "user") -> list[str]:
        """The words that run a command on the login node."""
        return [
            str(ROOT / "scripts/cluster"), "shell", "--name", self.name, "--user", user, "--",
            *command,
        ]  # fmt: skip

    def shell(
        self, *command: str, user: str = "user", stdin: bytes | str = b"", timeout_s: float = 300
    ) -> str:
        """Runs a command on the login node and returns its output."""
        done = subprocess.run(
            self.command(*command, user=user),
            input=stdin.encode() if isinstance(stdin, str) else stdin,
            capture_output=True, timeout=timeout_s, check=False,
        )  # fmt: skip
        if done.returncode:
            last = done.stderr.decode(errors="replace").strip().splitlines()[-3:]
            raise BenchError(f"{' '.join(command[:2])} failed: {' / '.join(last)}")
        return done.stdout.decode()

    def probe(
        self, *arguments: str, jobs: Iterable[str], timeout_s: float, user: str = "user"
    ) -> list[list[str]]:
        """Runs the probe over these jobs; its lines, split into words."""
        stdin = "\n".join(jobs) + "\n"
        out = self.shell(_PROBE, *arguments, user=user, stdin=stdin, timeout_s=timeout_s)
        return [line.split() for line in out.splitlines()]

    def submit(self, jobs: Iterable[str], timeout_s: float = 600) -> list[Submitted]:
        """Submits jobs at their instants."""
        return submissions(self.probe("submit", jobs=jobs, timeout_s=timeout_s))

    # ------------------------------------------------------------------ facts

    def wait(self, what: str, fact: Callable[[], bool], timeout_s: float, every_s: float) -> None:
        """Waits until a condition is true; raises BenchError if that takes too long."""
        deadline = time.monotonic() + timeout_s
        while not fact():
            if time.monotonic() > deadline:
                raise BenchError(f"not within {timeout_s:.0f} s: {what}")
            time.sleep(every_s)

    def wait_idle(self, timeout_s: float = 120) -> None:
        """Waits until no job waits or runs and every node is idle."""

        def idle() -> bool:
            busy = self.shell("squeue", "-h", "-t", "all", "-o", "%t").split()
            nodes = self.shell("sinfo", "-h", "-o", "%T %D").split()
            return not {"PD", "R", "CG", "CF"} & set(busy) and nodes == ["idle", str(self.nodes)]

        self.wait("an empty queue on idle nodes", idle, timeout_s, 1.0)

    def fill(self, jobs: Iterable[str], timeout_s: float = 180) -> None:
        """Submits jobs and waits until they hold every node."""
        self.submit(jobs)

        def full() -> bool:
            return not self.shell("sinfo", "-h", "-t", "idle,completing", "-o", "%D").strip("0\n ")

        self.wait("all nodes allocated", full, timeout_s, 1.0)

    def meters(self) -> Meters:
        """CPU clocks of the daemons that run now."""
        return Meters(self.containers())

    def containers(self) -> list[str]:
        """Ids of the cluster's containers."""
        out = subprocess.run(
            ["docker", "ps", "--quiet", "--filter", f"name=^{self.name}-"],
            capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        if not out:
            raise BenchError(f"no container of the cluster '{self.name}' runs")
        return out.split()

    def service_status(self) -> dict[str, object]:
        """The service's status; empty without a service."""
        if self.scheduler != "bridge":
            return {}
        status: dict[str, object] = json.loads(
            self.shell("schedbridge", "status", "--json", user="root")
        )
        return status

    # ------------------------------------------------------------------ slurmctld's log

    def allocated_ns(self) -> dict[int, int]:
        """When each job got its nodes, from slurmctld's log; its clock has milliseconds."""
        return self._log(_ALLOCATED)

    def done_ns(self) -> dict[int, int]:
        """When each job's end reached slurmctld, from its log."""
        return self._log(_DONE)

    def _log(self, line: re.Pattern[str]) -> dict[int, int]:
        found = {}
        for text in self.script("logs", "controller").splitlines():
            if match := line.match(text):
                found[int(match["job"])] = _instant_ns(match["at"])
        return found


def submissions(lines: Iterable[list[str]]) -> list[Submitted]:
    """The probe's "job" lines."""
    return [Submitted(*map(int, words[1:])) for words in lines if words[0] == "job"]


def _instant_ns(text: str) -> int:
    # The containers keep UTC.
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * _NS_PER_S)


def _probe() -> bytes:
    """The probe program, compiled where the cluster's plugins are compiled."""
    source: IO[bytes]
    with (Path(__file__).parent / "probe.c").open("rb") as source:
        done = subprocess.run(
            ["docker", "run", "--rm", "-i", "--network", "none", _BUILD, "sh", "-c",
             _COMPILE],
            stdin=source, capture_output=True, check=False,
        )  # fmt: skip
    if done.returncode:
        raise BenchError(f"the probe does not compile: {done.stderr.decode()[-500:]}")
    return done.stdout
