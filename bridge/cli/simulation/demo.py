# SPDX-License-Identifier: Apache-2.0
"""`schedbridge lab demo`: what a site gains, shown on a real trace.

1. Starts the real service (`schedbridge serve`) as a separate process on a Unix socket.
2. Waits until its health service reports that it serves.
3. A simulated Slurm controller replays a real trace through it with the plugin's protocol.
4. Replays the same jobs under EASY, the usual policy of sites, and under the service's own policy
   in this process, to verify that service and wire do not change the result.
5. Prints a table, writes the report, ends the service.
"""

import json
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import Annotated

import grpc
import numpy as np
import typer
from grpc_health.v1 import health_pb2, health_pb2_grpc
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn

from bridge.cli.simulation.run_results import results_table, run_of, write_files
from bridge.errors import ControllerError, Unreachable
from bridge.interpreter import python
from bridge.lab.report.columns import milliseconds
from bridge.lab.sim.runs.engine import simulate as run_simulation
from bridge.lab.sim.runs.replay import replay, replay_depth
from bridge.lab.sim.runs.simulation_result import SimulationProgress as Point
from bridge.lab.sim.runs.simulation_result import SimulationResult
from bridge.lab.sim.workloads.swf import Trace, read_swf
from bridge.lab.sim.workloads.system import System, pool_of
from bridge.lab.sim.workloads.workload import Workload, workload_from
from bridge.ports import Decide
from bridge.registry import PRESETS, build
from bridge.rpc.clients.remote_decider import RemoteDecider
from bridge.safe_cycle.decider import Decider
from bridge.units import DAY_S

POLICY = "responsive"
READY_S = 30.0
END_S = 10.0
LOG_LINES = 20
_TRACE = "data/KTH-SP2-1996-excerpt.swf.gz"


def demo(
    out: Annotated[Path, typer.Option(help="Directory for the report.")] = Path("demo-report"),
    jobs: Annotated[
        int | None, typer.Option(help="Only the first N jobs of the trace.", min=1)
    ] = None,
) -> None:
    """Run the real service: it plans a real trace for a simulated controller."""
    console = Console(highlight=False, soft_wrap=True)
    with as_file(files("bridge.lab.sim").joinpath(_TRACE)) as path:
        trace = read_swf(path)
    workload = workload_from(trace)
    workload = workload if jobs is None else workload.first(jobs)
    system = pool_of(workload.processors_total)
    console.print(
        f"Trace: {len(workload):,} jobs of {trace.directive('Installation')}, "
        f"{trace.directive('Computer')}, {system.processors} nodes"
    )
    began = time.monotonic()
    with _service(POLICY) as service:
        console.print(f"Service: process {service.process.pid} answers at {service.address}")
        with RemoteDecider(service.address) as remote:
            title = f"{POLICY}, through the service"
            result = _replay(title, workload, system, remote.decide, console)
    took_s = time.monotonic() - began
    title = f"{POLICY}, without the service"
    alone = _replay(title, workload, system, Decider(build(PRESETS[POLICY])).decide, console)
    easy_result = _easy(workload, system)
    served = run_of(f"{POLICY} (service)", "service over gRPC", result)
    easy = run_of("easy", "kernel replay", easy_result)
    console.print()
    console.print(results_table([served, easy]))
    same = int(np.sum(result.schedule.start_s == alone.schedule.start_s))
    facts = _facts(trace, service.address, result, took_s, same)
    console.print()
    for key in ("decisions over the wire", "refused by the controller", "check"):
        console.print(f"{key}: {facts[key]}")
    lead = (
        f"{len(workload):,} jobs of a real trace ({trace.directive('Computer')}, "
        f"{system.processors} nodes), scheduled twice: by the schedbridge service with its policy "
        f"{POLICY}, and by EASY backfilling, first come first served. Same jobs, same machine, "
        "same time limits."
    )
    page = write_files(
        out,
        title="What this site would gain",
        lead=lead,
        facts=facts,
        trace=trace,
        results=[result, easy_result],
        runs=[served, easy],
        summary={"trace": _TRACE, "jobs": len(workload), "processors": system.processors},
        against=easy,
    )
    if page is not None:
        console.print(f"report: {page}")
    if result.refusals or not result.schedule.finished.all() or same < len(workload):
        raise typer.Exit(1)


def _easy(workload: Workload, system: System) -> SimulationResult:
    depth = replay_depth(PRESETS["easy"], system)
    assert depth is not None  # a pool, and backfilling on counts
    return replay(workload, system, depth, placed=True)


def _facts(
    trace: Trace, address: str, result: SimulationResult, took_s: float, same: int
) -> Mapping[str, str]:
    times = result.decision_ms
    return {
        "policy": (
            f"{POLICY}: jobs that have waited long for their length go first, and run times are "
            "predicted from the user's last two jobs"
        ),
        "price": "some long or wide jobs wait longer than under EASY: see the longest wait",
        "trace": f"KTH-SP2, Parallel Workloads Archive; thanks to {trace.directive('Acknowledge')}",
        "service": f"policy {POLICY} at {address}",
        "decisions over the wire": (
            f"{len(times):,} in {took_s:.1f} s; mean {milliseconds(float(times.mean()))}, "
            f"99 % within {milliseconds(float(np.percentile(times, 99)))}, whole round trip"
        ),
        "refused by the controller": f"{len(result.refusals):,}",
        "check": (
            f"{same:,} of {len(result.workload):,} jobs started in the same second as under "
            f"{POLICY} without service and wire"
        ),
    }


# ---------------------------------------------------------------- the service


@dataclass(frozen=True)
class _Service:
    process: subprocess.Popen[bytes]
    address: str


@contextmanager
def _service(policy: str) -> Iterator[_Service]:
    """The real service while the block runs; ended afterwards, whatever happens.

    Raises:
        Unreachable: it did not become ready, or ended before the block; the message has the last
            lines of its log.
    """
    with tempfile.TemporaryDirectory(prefix="schedbridge-demo-") as name:
        home = Path(name)
        socket = home / "controller" / "controller.sock"
        for directory in (socket.parent, home / "operator"):
            directory.mkdir(mode=0o700)
        # JSON is YAML, and needs no quoting rules.
        config = {
            "controller": {"socket": str(socket)},
            "operator": {"socket": str(home / "operator" / "operator.sock")},
            "metrics": {"address": None},
            "memory": {"path": str(home / "memory.sqlite")},
            "policy": policy,
            "log": {"level": "warning"},
        }
        (home / "bridge.yaml").write_text(json.dumps(config))
        log = home / "service.log"
        with log.open("wb") as stream:
            process = subprocess.Popen(
                python("-m", "bridge.cli.main", "serve", "--config", str(home / "bridge.yaml")),
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
            )
        address = f"unix:{socket}"
        try:
            _wait_until_ready(process, address)
            yield _Service(process, address)
        except ControllerError as error:
            code = process.poll()
            problem = error if code is None else f"its process ended with exit code {code}"
            tail = "\n".join(log.read_text(errors="replace").splitlines()[-LOG_LINES:])
            raise Unreachable(
                f"the service failed: {problem}; its log ends with:\n{tail or '(nothing)'}"
            ) from error
        finally:
            _end(process)


def _wait_until_ready(process: subprocess.Popen[bytes], address: str) -> None:
    deadline = time.monotonic() + READY_S
    with grpc.insecure_channel(address) as channel:
        health = health_pb2_grpc.HealthStub(channel)
        while time.monotonic() < deadline:
            if process.poll() is not None:
                raise Unreachable("it ended at once")
            try:
                answer = health.Check(health_pb2.HealthCheckRequest(), timeout=1.0)
            except grpc.RpcError:
                time.sleep(0.05)
                continue
            if answer.status == health_pb2.HealthCheckResponse.SERVING:
                return
            time.sleep(0.05)
    raise Unreachable(f"it is not ready after {READY_S:.0f} s")


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


# ---------------------------------------------------------------- the replay


def _replay(
    title: str, workload: Workload, system: System, decide: Decide, console: Console
) -> SimulationResult:
    console.print(f"\n{title}:")
    with _live(console) as bars:
        task = bars.add_task("", total=len(workload), state="")
        observe = _reporter(bars, task, int(workload.submit_s[0]), system.processors, console)
        return run_simulation(workload, system, decide, observe=observe)


def _live(console: Console) -> Progress:
    return Progress(
        BarColumn(bar_width=16),
        TaskProgressColumn(),
        TextColumn("{task.fields[state]}"),
        console=console,
        disable=not console.is_terminal,
        transient=True,
    )


def _reporter(
    bars: Progress, task: TaskID, origin_s: int, processors: int, console: Console
) -> Callable[[Point], None]:
    """Shows every decision on a terminal; elsewhere a line for every tenth of the jobs."""
    printed = 0

    def report(point: Point) -> None:
        nonlocal printed
        day, rest = divmod(point.now_s - origin_s, DAY_S)
        state = (
            f"day {day + 1:2d} {rest // 3600:02d}:{rest % 3600 // 60:02d}"
            f"  {point.running:3d} running {point.waiting:3d} waiting"
            f" {point.used_processors / processors:4.0%} busy {point.decision_ms:4.1f} ms"
        )
        bars.update(task, completed=point.finished, state=state)
        tenth = 10 * point.finished // point.jobs
        if not console.is_terminal and tenth > printed:
            printed = tenth
            console.print(f"{tenth * 10:3d} %  {state}")

    return report
