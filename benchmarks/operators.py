#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The effect of operators on the controller: its call alone, and with clients. Prints JSON.

usage: benchmarks/operators.py [--clients 200] [--jobs 2000] [--nodes 256] [--rounds 5] [--calls 40]

A service (`schedbridge serve`), and a controller that calls it repeatedly with a delta. Rounds
alternate in one run: the controller alone; then with clients, each with its own connection, that
request `plan` without a pause; then with a mix of `plan`, `explain` and `status`. The relevant
figure is the ratio: p99 of the controller's call with clients to that without.

The clients use C-core in a few processes (`--client-processes`), so that the service is measured,
not 200 interpreters on the same processors; `--client-nice` lowers their priority, as if they ran
on another machine.
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import grpc
import numpy as np
from about import about
from results_file import as_text
from wire import NOW_S, a_job, full, hello

from bridge.rpc.pb import operator_pb2, operator_pb2_grpc, scheduler_pb2_grpc
from bridge.rpc.pb import scheduler_pb2 as pb

PATIENCE_S = 60.0


class Controller:
    """Calls with deltas: one job goes, one comes."""

    def __init__(self, path: Path, jobs: int, nodes: int) -> None:
        options = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
        self._stub = scheduler_pb2_grpc.SchedulerStub(
            grpc.insecure_channel(f"unix:{path}", options=options)
        )
        self._stub.Hello(hello(), timeout=60, wait_for_ready=True)
        self._stub.Cycle(full(nodes, jobs), timeout=600)
        self._rng = np.random.default_rng(3)
        self._first, self._next, self._generation = 0, jobs, 1

    def call(self) -> float:
        """One call; returns its duration, s."""
        request = pb.CycleRequest(
            epoch=1,
            generation=self._generation + 1,
            base_generation=self._generation,
            now_s=NOW_S + self._generation,
        )
        request.removed_jobs.append(str(self._first))
        request.jobs.append(a_job(self._next, self._rng))
        began = time.perf_counter()
        reply = self._stub.Cycle(request, timeout=600)
        took_s = time.perf_counter() - began
        assert not reply.need_full
        self._first, self._next, self._generation = (
            self._first + 1, self._next + 1, self._generation + 1
        )  # fmt: skip
        return took_s

    def calls(self, count: int) -> list[float]:
        """Durations of some calls, ms; a tenth of a second between them, like events."""
        found = []
        for _ in range(count):
            found.append(self.call() * 1e3)
            time.sleep(0.1)
        return found


def client_process(path: str, clients: int, what: str, jobs: int) -> None:
    """Sends requests over several connections until standard input ends; prints the results."""
    outcomes: Counter[str] = Counter()
    waited_s: list[float] = []
    end, lock = threading.Event(), threading.Lock()

    def ask(number: int) -> None:
        options = [
            ("grpc.max_receive_message_length", -1),
            ("grpc.use_local_subchannel_pool", 1),  # a separate connection
        ]
        rng = np.random.default_rng(number)
        with grpc.insecure_channel(f"unix:{path}", options=options) as channel:
            stub = operator_pb2_grpc.OperatorStub(channel)
            while not end.is_set():
                kind = "plan" if what == "plan" else ("plan", "explain", "status")[rng.integers(3)]
                began = time.perf_counter()
                try:
                    if kind == "plan":
                        stub.Plan(operator_pb2.PlanRequest(), timeout=PATIENCE_S)
                    elif kind == "explain":
                        job = str(jobs // 2 + int(rng.integers(jobs // 4)))
                        stub.Explain(operator_pb2.ExplainRequest(job_id=job), timeout=PATIENCE_S)
                    else:
                        stub.Status(operator_pb2.StatusRequest(), timeout=PATIENCE_S)
                    outcome = "answered"
                except grpc.RpcError as error:
                    outcome = error.code().name
                    time.sleep(0.01)
                with lock:
                    outcomes[outcome] += 1
                    waited_s.append(time.perf_counter() - began)

    threads = [threading.Thread(target=ask, args=(n,), daemon=True) for n in range(clients)]
    for thread in threads:
        thread.start()
    sys.stdin.read()
    with lock:
        print(json.dumps({"outcomes": dict(outcomes), "waited_s": waited_s}), flush=True)
    os._exit(0)


class Clients:
    """Processes that send requests."""

    def __init__(self, path: Path, what: str, chosen: argparse.Namespace) -> None:
        share = chosen.clients // chosen.client_processes
        self._processes = [
            subprocess.Popen(
                ["nice", "-n", str(chosen.client_nice), sys.executable, __file__,
                 "--client", str(path), what, str(share), str(chosen.jobs)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            )
            for _ in range(chosen.client_processes)
        ]  # fmt: skip

    def end(self) -> dict[str, Any]:
        """The results of their requests."""
        outcomes: Counter[str] = Counter()
        waited_s: list[float] = []
        for process in self._processes:
            out, _ = process.communicate("")
            found = json.loads(out)
            outcomes.update(found["outcomes"])
            waited_s += found["waited_s"]
        answered = outcomes["answered"]
        return {
            "asked": sum(outcomes.values()),
            "answered_percent": round(100 * answered / max(sum(outcomes.values()), 1), 2),
            "outcomes": dict(outcomes),
            "answer_median_s": round(statistics.median(waited_s), 3) if waited_s else None,
            "answer_p99_s": quantile(waited_s, 0.99),
        }


def quantile(values: list[float], share: float) -> float | None:
    return round(float(np.quantile(np.array(values), share)), 3) if values else None


def figures(times_ms: list[float]) -> dict[str, float | None]:
    return {"median_ms": quantile(times_ms, 0.5), "p99_ms": quantile(times_ms, 0.99)}


def start(home: Path, policy: str) -> subprocess.Popen[bytes]:
    settings = {
        "controller": {"socket": str(home / "c" / "s")},
        "operator": {"socket": str(home / "o" / "s")},
        "metrics": {"address": None},
        "memory": {"path": str(home / "memory.sqlite")},
        "policy": policy,
    }
    (home / "bridge.yaml").write_text(json.dumps(settings))
    return subprocess.Popen(
        [sys.executable, "-m", "bridge.cli.main", "serve", "--config", str(home / "bridge.yaml")],
        stderr=(home / "log").open("wb"),
    )


def cpu_s(pid: int) -> float:
    """Processor time of a process and of its children's processes."""
    total = 0.0
    for one in [pid, *children(pid)]:
        fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total


def children(pid: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def measure(home: Path, chosen: argparse.Namespace) -> dict[str, Any]:
    controller = Controller(home / "c" / "s", chosen.jobs, chosen.nodes)
    controller.calls(5)
    rounds: list[dict[str, Any]] = []
    for number in range(chosen.rounds):
        found: dict[str, Any] = {"alone": figures(controller.calls(chosen.calls))}
        for what in ("plan", "mix"):
            clients = Clients(home / "o" / "s", what, chosen)
            time.sleep(5)  # until all have connected
            times_ms = controller.calls(chosen.calls)
            answers = clients.end()
            time.sleep(1)
            found[what] = figures(times_ms) | {"clients": answers}
            found[what]["median_ratio"] = round(
                found[what]["median_ms"] / found["alone"]["median_ms"], 2
            )
            found[what]["p99_ratio"] = round(found[what]["p99_ms"] / found["alone"]["p99_ms"], 2)
        rounds.append(found)
        print(f"round {number + 1}: {json.dumps(found)}", file=sys.stderr)
    summary: dict[str, Any] = {}
    for what in ("alone", "plan", "mix"):
        keys = [key for key in rounds[0][what] if key != "clients"]
        summary[what] = {
            key: round(statistics.median(one[what][key] for one in rounds), 2) for key in keys
        }
        if what != "alone":
            summary[what]["answered_percent"] = min(
                one[what]["clients"]["answered_percent"] for one in rounds
            )
            summary[what]["answer_median_s"] = statistics.median(
                one[what]["clients"]["answer_median_s"] for one in rounds
            )
    return {"median_of_rounds": summary, "rounds": rounds}


def main() -> None:
    if sys.argv[1:2] == ["--client"]:
        path, what, clients, jobs = sys.argv[2:]
        client_process(path, int(clients), what, int(jobs))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--client-processes", type=int, default=2)
    parser.add_argument("--client-nice", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2000)
    parser.add_argument("--nodes", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=40)
    parser.add_argument("--policy", default="slurm-like")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sb-") as name:
        home = Path(name)
        service = start(home, chosen.policy)
        try:
            while not (home / "o" / "s").exists():
                time.sleep(0.1)
            result = {"options": vars(chosen), "load_before": os.getloadavg()[0]}
            result |= measure(home, chosen)
            result["service_cpu_s"] = round(cpu_s(service.pid), 1)
        finally:
            service.send_signal(signal.SIGTERM)
            service.wait(30)
    print(as_text(about() | result))


if __name__ == "__main__":
    main()
