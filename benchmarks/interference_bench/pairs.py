# SPDX-License-Identifier: Apache-2.0
"""Runs workflows on this machine: one alone, or as host beside a guest that is repeated."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from interference_bench.groups import MIN_WEIGHT, USUAL_WEIGHT, Groups

PROGRAM = Path(__file__).parents[2] / "examples" / "workloads" / "workflow.py"
NAMES = ("montage", "blast", "readings", "synthetic")
SIZES: Mapping[str, tuple[int, int]] = {
    "montage": (7, 1), "blast": (40, 1), "readings": (2, 5), "synthetic": (8, 1),
}  # fmt: skip
"""Size of a workflow, and its runs per measurement: about a second alone."""


@dataclass(frozen=True)
class Setting:
    """What a guest may use: quota as a share of the CPUs (1: no quota), and its weight."""

    name: str
    quota: float
    weight: float = USUAL_WEIGHT


SETTINGS = (
    Setting("10 %", 0.1),
    Setting("25 %", 0.25),
    Setting("50 %", 0.5),
    Setting("75 %", 0.75),
    Setting("free", 1.0),
    Setting("weight", 1.0, MIN_WEIGHT),
)


@dataclass(frozen=True)
class Run:
    """One measurement.

    Attributes:
        stages: of the host, in order: name, cores, and the sums of wall and CPU seconds.
        wall_s: of all of them.
        elapsed_s: with the start of processes and the check of results.
        cpu_s: total CPU time of the host.
        guest_cpu_s: CPU time of the guest meanwhile.
        written: blocks of 512 bytes that the host wrote.
        memory_mib: maximum over the stages.
    """

    stages: Mapping[str, tuple[int, float, float]]
    wall_s: float
    elapsed_s: float
    cpu_s: float
    guest_cpu_s: float
    written: int
    memory_mib: float


class Node:
    """All CPUs of this machine that this process may use."""

    def __init__(self, groups: Groups) -> None:
        self._groups = groups
        self.cpus = sorted(os.sched_getaffinity(0))

    def run(self, host: str, guest: str | None = None, setting: Setting | None = None) -> Run:
        """Runs a host to its end, with a guest if there is one.

        Raises:
            RuntimeError: a result is wrong, or the workflow failed.
        """
        groups = self._groups
        with tempfile.TemporaryDirectory(dir=PROGRAM.parents[2] / "build") as folder:
            if guest is not None and setting is not None:
                quota = None if setting.quota == 1 else setting.quota * len(self.cpus)
                groups.limit("guest", quota, setting.weight)
                self._start("guest", guest, Path(folder, "guest"), times=None)
                time.sleep(0.15)  # until it computes
            before = groups.cpu_s("host"), groups.cpu_s("guest")
            began_s = time.monotonic()
            process = self._start("host", host, Path(folder, "host"), times=SIZES[host][1])
            assert process.stdout is not None
            output = process.stdout.read()
            _, status, used = os.wait4(process.pid, 0)
            elapsed_s = time.monotonic() - began_s
            cpu_s = groups.cpu_s("host") - before[0], groups.cpu_s("guest") - before[1]
            groups.limit("guest", None, USUAL_WEIGHT)
            groups.kill("guest")
        if status:
            raise RuntimeError(f"{host} failed beside {guest or 'nobody'}: {output[-300:]}")
        return _run_of(output, elapsed_s, cpu_s, written=used.ru_oublock)

    def _start(
        self, job: str, name: str, folder: Path, times: int | None
    ) -> "subprocess.Popen[str]":
        folder.mkdir()
        words = [sys.executable, str(PROGRAM), "run", name, "--cores", str(len(self.cpus))]
        words += ["--size", str(SIZES[name][0]), "--folder", str(folder)]
        rounds = "while :" if times is None else f"for n in $(seq {times})"
        script = f'{rounds}; do "$@" || exit 1; done'

        def enter() -> None:
            self._groups.enter(job)
            os.sched_setaffinity(0, self.cpus)

        return subprocess.Popen(
            ["sh", "-c", script, "sh", *words],
            preexec_fn=enter,  # noqa: PLW1509 - this program has one thread
            stdout=subprocess.PIPE if job == "host" else subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
        )


def _run_of(output: str, elapsed_s: float, cpu_s: tuple[float, float], written: int) -> Run:
    """Parses the lines that a workflow prints.

    Raises:
        RuntimeError: a result is wrong.
    """
    stages: dict[str, tuple[int, float, float]] = {}
    memory_mib = 0.0
    for line in map(json.loads, output.splitlines()):
        if not line["right"]:
            raise RuntimeError(f"wrong result: {line}")
        _, wall_s, used_s = stages.get(line["stage"], (0, 0.0, 0.0))
        stages[line["stage"]] = line["cores"], wall_s + line["wall_s"], used_s + line["cpu_s"]
        memory_mib = max(memory_mib, line["rss_mib"])
    wall_s = sum(wall_s for _, wall_s, _ in stages.values())
    return Run(stages, wall_s, elapsed_s, *cpu_s, written=written, memory_mib=memory_mib)
