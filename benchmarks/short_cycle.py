#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CPU time of the service per call, while few jobs wait. Prints JSON.

    benchmarks/short_cycle.py [--tree DIR ...] [--policy NAME] [--jobs N] [--nodes N] [--calls N]
                              [--rounds N] [--json FILE]

Starts `schedbridge serve` from each tree (a checkout with its own .venv; default: this one), each
with its socket and gate, memory file, metrics and operators' process, and calls the services in
turn, in rounds of `--calls` calls. One event is reported in each call, as in `cycle_cost.py`; all
jobs take one whole node. The CPU time is that of all threads of the service's process, user and
system, from the kernel's counters, without the caller and without the operators' process.

Calls of kind `cycle` are whole cycles. Those of kind `refused` are answered at once, because their
generation is not the next one: their cost is that of the transport.
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import grpc
from about import ROOT, about
from cycle_cost import WARM_UP, Cluster
from results_file import as_text
from wire import hello

from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.rpc.pb import scheduler_pb2_grpc


@contextmanager
def serving(tree: Path, home: Path, policy: str) -> Iterator[int]:
    """The number of a process that serves from a tree, at the socket `home`/c/s."""
    home.mkdir()
    config = {
        "controller": {"socket": str(home / "c" / "s")},
        "operator": {"socket": str(home / "o" / "s")},
        "metrics": {"address": None},
        "memory": {"path": str(home / "memory.sqlite")},
        "policy": policy,
    }
    file = home / "bridge.yaml"
    file.write_text(json.dumps(config))  # JSON is YAML
    command = [tree / ".venv" / "bin" / "python", "-m", "bridge.cli.main", "serve", "-c", file]
    environment = os.environ | {"PYTHONPATH": str(tree)}
    with (home / "log").open("wb") as log:
        process = subprocess.Popen(
            list(map(str, command)), stdout=log, stderr=log, env=environment, cwd=home
        )
    try:
        while not (home / "o" / "s").exists():
            if process.poll() is not None:
                sys.exit((home / "log").read_text())
            time.sleep(0.05)
        yield process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


class Caller:
    """The controller of one service."""

    def __init__(self, home: Path, pid: int, nodes: int, jobs: int) -> None:
        self._pid = pid
        self._channel = grpc.insecure_channel(f"unix:{home}/c/s")
        grpc.channel_ready_future(self._channel).result(60)
        self._stub = scheduler_pb2_grpc.SchedulerStub(self._channel)
        self._stub.Hello(hello())
        self._cluster = Cluster(nodes, jobs, "whole", seed=1, width=1)
        self._cluster.take(self._stub.Cycle(self._cluster.whole()))
        self.cycles(WARM_UP)

    def cycles(self, calls: int) -> float:
        """Reports events; returns the service's CPU time per call, ms."""
        began_s = self._cpu_s()
        for _ in range(calls):
            _, report = self._cluster.event()
            self._cluster.take(self._stub.Cycle(report))
        return (self._cpu_s() - began_s) * 1e3 / calls

    def refused(self, calls: int) -> float:
        """Calls that are answered at once; returns the service's CPU time per call, ms."""
        report = pb.CycleRequest(epoch=1, generation=2**40, base_generation=2**40 - 1, now_s=1)
        began_s = self._cpu_s()
        for _ in range(calls):
            self._stub.Cycle(report)
        return (self._cpu_s() - began_s) * 1e3 / calls

    def _cpu_s(self) -> float:
        threads = Path(f"/proc/{self._pid}/task").glob("*/schedstat")
        return sum(int(thread.read_text().split()[0]) for thread in threads) * 1e-9

    def close(self) -> None:
        """Ends the connection."""
        self._channel.close()


def commit(tree: Path) -> str:
    """The last commit of a tree that changed the package."""
    command = ["git", "log", "-1", "--format=%h", "--", "bridge"]
    return subprocess.run(
        command, cwd=tree, capture_output=True, text=True, check=True
    ).stdout.strip()


def told(values: list[float]) -> dict[str, float]:
    """Median and extremes of the rounds."""
    found = {"median": statistics.median(values), "min": min(values), "max": max(values)}
    return {name: round(value, 3) for name, value in found.items()}


def main() -> None:
    """Calls all services in turn."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tree", nargs="+", type=Path, default=[ROOT])
    parser.add_argument("--policy", default="slurm-like")
    parser.add_argument("--jobs", type=int, default=20)
    parser.add_argument("--nodes", type=int, default=64)
    parser.add_argument("--calls", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="also write the result to this file")
    chosen = parser.parse_args()
    if min(chosen.jobs, chosen.nodes, chosen.calls, chosen.rounds) < 1:
        parser.error("numbers must be 1 or more")
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sb-", dir="/tmp")))
        callers = []
        for at, tree in enumerate(chosen.tree):
            own = home / str(at)
            pid = stack.enter_context(serving(tree.resolve(), own, chosen.policy))
            callers.append(Caller(own, pid, chosen.nodes, chosen.jobs))
            stack.callback(callers[-1].close)
        times: list[dict[str, list[float]]] = [{"cycle": [], "refused": []} for _ in callers]
        for _ in range(chosen.rounds):
            for caller, found in zip(callers, times, strict=True):
                found["cycle"].append(caller.cycles(chosen.calls))
        for _ in range(chosen.rounds):
            for caller, found in zip(callers, times, strict=True):
                found["refused"].append(caller.refused(chosen.calls))
    trees: list[dict[str, Any]] = [
        {"commit": commit(tree), "cpu_ms": {kind: told(values) for kind, values in found.items()}}
        for tree, found in zip(chosen.tree, times, strict=True)
    ]
    text = as_text({**about(), "trees": trees})
    print(text)
    if chosen.json:
        chosen.json.write_text(text + "\n")


if __name__ == "__main__":
    main()
