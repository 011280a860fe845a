# SPDX-License-Identifier: Apache-2.0
"""One cell computed, in the process of a worker: as `schedbridge lab simulate` would.

An error that belongs to the cell (a trace that has no whole week, a policy that the engine cannot
replay) is its result: it would come again. Any other is passed on, and the cell is tried again.
"""

import contextlib
import io
import json
import resource
import tempfile
import time
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from bridge.cli.simulation.replays import Engine, Replays
from bridge.cli.simulation.sharing import SharingOptions
from bridge.errors import BridgeError, ConfigError, ResultError
from bridge.extensions.power.corridor.sites import site_at
from bridge.lab.experiments.cell import Cell, canonical
from bridge.lab.experiments.definition import ESP
from bridge.lab.experiments.perturb import MOVING, WEEK_S, numbers_of, perturbed, taken
from bridge.lab.experiments.provenance import provenance, sha256_of, sources
from bridge.lab.experiments.results import DONE, FAILED, CellResult, JobColumns, packed
from bridge.lab.report.run import figures
from bridge.lab.sim.runs.faults import Fault, recorded_outages
from bridge.lab.sim.runs.simulation_result import SimulationResult
from bridge.lab.sim.workloads.change_costs import JOIN
from bridge.lab.sim.workloads.esp import ESP_NODES, esp
from bridge.lab.sim.workloads.reading import read_workload
from bridge.lab.sim.workloads.system import System, pool_of, read_system
from bridge.lab.sim.workloads.workload import Workload
from bridge.registry import parse_policy


@dataclass(frozen=True)
class Order:
    """What a worker is told.

    Attributes:
        arguments: arguments of the command, for the result's provenance.
        sources: hash of the program that the cell belongs to; empty: it is not compared.
    """

    cell: Cell
    arguments: tuple[str, ...] = ()
    sources: str = ""


def compute(order: Order) -> tuple[CellResult, bytes | None]:
    """Computes a cell.

    Returns:
        Its result, and its judged jobs as `bridge.lab.experiments.results.packed` packs them.
    """
    cell = order.cell
    origin = provenance(order.arguments)
    began_s, used_s = time.perf_counter(), _used_s()
    try:
        if order.sources not in ("", sources()):
            raise ResultError(
                cell.label,
                f"this worker has another schedbridge (sources {sources()}) than the experiment"
                f" ({order.sources}): install the same one",
            )
        result, columns = simulated(cell)
    except BridgeError as error:
        result, columns = CellResult(cell, FAILED, error=str(error)), None
    arrays = None if columns is None else packed(columns)
    cpu_s, wall_s = _used_s() - used_s, time.perf_counter() - began_s
    return replace(result, provenance=origin, cpu_s=cpu_s, wall_s=wall_s), arrays


def simulated(cell: Cell) -> tuple[CellResult, JobColumns]:
    """The measures and the judged jobs of a cell.

    Raises:
        BridgeError: the cell is impossible.
    """
    spec = replace(parse_policy(json.loads(cell.policy_text)), name=cell.policy)
    workload, machine, outages = _world(cell)
    planning = dict(cell.setting.get("planning", {}))
    if "interference" in cell.setting:
        workload, machine, planning = _sharing(cell, workload, machine, planning)
    rules = site_at(planning, int(workload.submit_s.min()), int(workload.submit_s.max()))
    replays = Replays(
        workload, machine, rules, None,
        seed=cell.seed, faults=0, decision_s=0.0, engine=Engine(cell.engine),
        special=bool(planning), placed=False, recorded=outages,
    )  # fmt: skip
    with contextlib.redirect_stderr(io.StringIO()):  # workers share the terminal
        ((simulated, run),) = replays.of([spec])
    result = CellResult(
        cell,
        DONE,
        results=json.loads(json.dumps(figures(run))),
        machine={"name": machine.name, "processors": machine.processors},
    )
    return result, _columns(simulated)


def jobs_of(cell: Cell) -> int:
    """How many jobs a cell has.

    Raises:
        BridgeError: the cell is impossible.
    """
    return len(_world(cell)[0])


def _world(cell: Cell) -> tuple[Workload, System, tuple[Fault, ...]]:
    """The cell's jobs and machine, and its outages if jobs are submitted when they were."""
    outages: tuple[Fault, ...] = ()
    setting = cell.setting
    text = str(setting.get("workload", ""))
    if text.startswith(ESP):
        share, nodes = float(text.removeprefix(ESP)), setting.get("procs", ESP_NODES)
        workload = esp(share, nodes=nodes, seed=cell.seed, changes=JOIN)
        machine = pool_of(workload.processors_total)
    else:
        described = setting.get("system")
        workload, machine, outages = _trace(
            cell.trace_path,
            cell.trace_sha256,
            setting.get("procs"),
            bool(setting.get("lenient")),
            "" if described is None else canonical(described),
        )
    if "weeks" in setting:
        workload = _weeks(workload, *setting["weeks"])
    if "jobs" in setting:
        workload = workload.first(setting["jobs"])
    if cell.parameters.keys() & MOVING:
        outages = ()
    return perturbed(workload, cell.parameters, cell.seed), machine, outages


@lru_cache(maxsize=2)
def _trace(
    path: str, sha256: str, procs: int | None, lenient: bool, described: str
) -> tuple[Workload, System, tuple[Fault, ...]]:
    """The jobs of a trace, its machine and outages; a worker computes many cells of the same one.

    Raises:
        BridgeError: it cannot be read here, or is another one.
    """
    try:
        now = sha256_of(path)
    except OSError as error:
        raise ConfigError(
            "traces",
            f"{path} cannot be read where the cell runs: {error.strerror}; workers on other"
            " machines need a shared file system",
        ) from None
    if now != sha256:
        raise ConfigError("traces", f"{path} has changed since the cell was made: start again")
    if not described:
        found = read_workload(path, None, procs, lenient=lenient)
        machine = pool_of(found.workload.processors_total)
        return found.workload, machine, recorded_outages(found.outages)
    value = json.loads(described)
    with tempfile.TemporaryDirectory(prefix="schedbridge-") as name:
        (Path(name) / "system.yaml").write_text(json.dumps(value["description"]))
        if "topology" in value:
            (Path(name) / "topology.conf").write_text(value["topology"])
        machine = read_system(Path(name) / "system.yaml")
    found = read_workload(path, machine, lenient=lenient)
    return found.workload, machine, recorded_outages(found.outages)


def _weeks(workload: Workload, first: int, count: int) -> Workload:
    begin_s = int(workload.submit_s[0]) + first * WEEK_S
    inside = (workload.submit_s >= begin_s) & (workload.submit_s < begin_s + count * WEEK_S)
    if not inside.any():
        raise ConfigError("traces.weeks", f"{workload.name} has no job in weeks {first} and on")
    return taken(workload, np.flatnonzero(inside))


def _sharing(
    cell: Cell, workload: Workload, machine: System, planning: dict[str, Any]
) -> tuple[Workload, System, dict[str, Any]]:
    with tempfile.TemporaryDirectory(prefix="schedbridge-") as name:
        path = Path(name) / "interference.json"
        path.write_text(cell.setting["interference"])
        options = SharingOptions(path, cell.parameters.get("consent"))
        workload, machine, planning = options.applied(workload, machine, planning, cell.seed)
    return workload, machine, planning


def _columns(simulated: SimulationResult) -> JobColumns:
    workload, schedule = simulated.workload, simulated.schedule
    judged = np.flatnonzero(schedule.finished)
    lag_s = 0.0 if schedule.lag_s is None else schedule.lag_s[judged]
    start_s, end_s = schedule.start_s[judged] + lag_s, schedule.end_s[judged] + lag_s
    return JobColumns(
        id=numbers_of(workload)[judged],
        user=workload.user[judged],
        submit_s=schedule.submit_s[judged].astype(np.float64),
        start_s=np.asarray(start_s, dtype=np.float64),
        end_s=np.asarray(end_s, dtype=np.float64),
        width=schedule.processors[judged],
        limit_s=workload.time_limit_s[judged].astype(np.float64),
        run_s=np.asarray(end_s - start_s, dtype=np.float64),
    )


def _used_s() -> float:
    """CPU time of this thread and of processes that it ended, s."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.thread_time() + ended.ru_utime + ended.ru_stime
