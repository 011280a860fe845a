# SPDX-License-Identifier: Apache-2.0
"""`schedbridge bench`: how long the planning kernels take on this machine.

Everything is planned on an emptied system, so the first jobs in the queue are what runs and the
rest waits behind them. The queues:

* ``clustered``: sizes are powers of two up to 256 (small ones more often), time limits eight usual
  values from ten minutes to a day: few distinct values, as in real queues.
* ``log``: sizes log-uniform up to the whole system, time limits log-uniform from a minute to a day:
  nearly every job different, the kernels' hard case.

The kernels: ``counts`` plans amounts, ``map`` gives such a plan concrete nodes, ``whole_nodes``
plans exclusive jobs onto concrete nodes, ``shared_nodes`` jobs of one to four nodes that want some
of the cores, memory and GPUs of 64-core nodes.
"""

import enum
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track

from bridge.core import (
    NEVER,
    UNLIMITED,
    UNPLANNED,
    Select,
    map_counts,
    pack_nodes,
    plan_counts,
    plan_nodes,
)
from bridge.errors import ConfigError
from bridge.planning.placement.fabric import Metric
from bridge.sim.system import read_system
from bridge.slurm.topology_conf import read_topology

app = typer.Typer(add_completion=False, help="Time the planning kernels.", no_args_is_help=True)

Column: TypeAlias = NDArray[np.int64]

_SIZES: Final = np.array([1, 2, 4, 8, 16, 32, 64, 128, 256])
_SIZE_WEIGHTS: Final = np.array([30, 14, 14, 14, 12, 8, 5, 2, 1])
_LIMITS_S: Final = np.array([600, 1800, 3600, 7200, 14400, 28800, 43200, 86400])
_LIMIT_WEIGHTS: Final = np.array([10, 10, 20, 12, 14, 10, 8, 16])
_NODE: Final = (64, 256_000, 4)  # cores, MiB, GPUs


class Shape(enum.StrEnum):
    """Which queue."""

    CLUSTERED = "clustered"
    LOG = "log"


def _log_uniform(rng: np.random.Generator, low: int, high: int, n: int) -> Column:
    return np.exp(rng.uniform(np.log(low), np.log(high), n)).astype(np.int64)


def queue(shape: Shape, jobs: int, nodes: int, seed: int) -> tuple[Column, Column]:
    """Makes a queue.

    Args:
        shape: see the module.
        jobs: number of jobs.
        nodes: number of nodes; no job wants more.
        seed: of the random generator.

    Returns:
        Nodes wanted and time limits in s, both (jobs,) int64.
    """
    rng = np.random.default_rng(seed)
    if shape is Shape.LOG:
        return _log_uniform(rng, 1, nodes, jobs), _log_uniform(rng, 60, 86_400, jobs)
    sizes = rng.choice(_SIZES, jobs, p=_SIZE_WEIGHTS / _SIZE_WEIGHTS.sum())
    limits = rng.choice(_LIMITS_S, jobs, p=_LIMIT_WEIGHTS / _LIMIT_WEIGHTS.sum())
    return np.minimum(sizes, nodes).astype(np.int64), limits.astype(np.int64)


def shares(shape: Shape, jobs: int, seed: int) -> tuple[Column, Column]:
    """Makes what the jobs of ``shared_nodes`` want.

    Returns:
        Nodes wanted, (jobs,), and cores, MiB and GPUs on each, (jobs, 3); int64.
    """
    rng = np.random.default_rng(seed + 1)
    if shape is Shape.LOG:
        cores, memory = _log_uniform(rng, 1, 64, jobs), _log_uniform(rng, 1000, 256_000, jobs)
    else:
        cores = rng.choice([1, 2, 4, 8, 16, 32], jobs)
        memory = cores * rng.choice([1000, 2000, 4000], jobs)
    gpus = rng.choice([0, 0, 0, 0, 1, 2], jobs)
    per_node = np.stack([cores, memory, gpus], axis=1).astype(np.int64)
    return rng.choice([1, 1, 1, 1, 2, 4], jobs).astype(np.int64), per_node


def node_columns(
    nodes: int, count: Column, limit_s: Column, per_node: Column | None, depth: int
) -> dict[str, Any]:
    """Makes the arguments of ``plan_nodes``: one class, nothing running.

    Args:
        nodes: number of nodes, all alike.
        count: (n_jobs,) nodes wanted; at most ``nodes`` are asked for.
        limit_s: (n_jobs,) time limits, s.
        per_node: (n_jobs, 3) what a shared job wants of a node; None: whole nodes.
        depth: how many jobs may hold a reservation.
    """
    n_jobs, n_res = len(count), len(_NODE)
    wanted = np.minimum(count, nodes).astype(np.int32)

    def nothing(*shape: int, dtype: type[np.generic] = np.int64) -> NDArray[Any]:
        return np.zeros(shape, dtype=dtype)

    everywhere = pack_nodes(np.ones((1, nodes), dtype=np.bool_))
    nowhere = nothing(0, everywhere.shape[1], dtype=np.uint64)
    return {
        "now": 0,
        "depth": depth,
        "select": int(Select.SEQUENTIAL),
        "capacity": np.tile(np.array(_NODE, dtype=np.int64), (nodes, 1)),
        "node_rank": nothing(nodes, dtype=np.int32),
        "run_indptr": nothing(1),
        "run_nodes": nothing(0, dtype=np.int32),
        "run_use": nothing(0, n_res),
        "run_end": nothing(0),
        "run_exclusive": nothing(0, dtype=np.bool_),
        "run_counter": nothing(0, 0),
        "class_nodes": everywhere,
        "blackout_class": nothing(0, dtype=np.int32),
        "blackout_start": nothing(0),
        "blackout_end": nothing(0),
        "blackout_nodes": nowhere,
        "counter_capacity": nothing(0),
        "job_counter": nothing(n_jobs, 0),
        "alt_indptr": np.arange(n_jobs + 1, dtype=np.int64),
        "alt_class": nothing(n_jobs, dtype=np.int32),
        "alt_time_limit_s": limit_s,
        "alt_min_nodes": wanted,
        "alt_max_nodes": wanted,
        "per_node": nothing(n_jobs, n_res) if per_node is None else per_node,
        "tasks": nothing(n_jobs, dtype=np.int32),
        "per_task": nothing(n_jobs, n_res),
        "max_tasks_per_node": nothing(n_jobs, dtype=np.int32),
        "exclusive": np.full(n_jobs, per_node is None),
        "not_before": nothing(n_jobs),
        "width_rule": nothing(n_jobs, dtype=np.int8),
        "required": np.full(n_jobs, -1, dtype=np.int32),
        "required_nodes": nowhere,
    }


def _milliseconds(work: Callable[[], object], repeats: int) -> list[float]:
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        work()
        times.append(round((time.perf_counter() - began) * 1e3, 3))
    return times


def measure(
    *, shape: Shape, jobs: int, nodes: int, depth: int, seed: int, kernels: list[str], repeats: int
) -> dict[str, Any]:
    """Times kernels on one queue.

    Args:
        shape: which queue.
        jobs: number of jobs.
        nodes: number of nodes.
        depth: how many jobs may hold a reservation.
        seed: of the queue.
        kernels: names from the module's list.
        repeats: how often each; all times are reported, the median is the result.

    Returns:
        The case, per kernel ``<kernel>_ms`` (median) and ``<kernel>_ms_all``, and of the counted
        plan ``starts_now`` and ``last_start_s``.
    """
    count, limit_s = queue(shape, jobs, nodes, seed)
    none = np.zeros(0, dtype=np.int64)
    any_time = np.zeros(jobs, dtype=np.int64)

    def counted() -> Column:
        return plan_counts(0, nodes, none, none, count, limit_s, any_time, depth)

    start = counted()
    planned = (start != UNPLANNED) & (start != NEVER)
    few, per_node = shares(shape, jobs, seed)
    whole = node_columns(nodes, count, limit_s, None, depth)
    shared = node_columns(nodes, few, limit_s, per_node, depth)
    works: dict[str, Callable[[], object]] = {
        "counts": counted,
        "map": lambda: map_counts(
            nodes, start, np.where(planned, start + limit_s, 0), count,
            none, np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int32),
        ),
        "whole_nodes": lambda: plan_nodes(**whole),
        "shared_nodes": lambda: plan_nodes(**shared),
    }  # fmt: skip
    result: dict[str, Any] = {
        "shape": shape.value,
        "jobs": jobs,
        "nodes": nodes,
        "depth": None if depth == UNLIMITED else depth,
        "seed": seed,
        "starts_now": int((start == 0).sum()),
        "last_start_s": int(start[planned].max()),
    }
    for kernel in kernels:
        times = _milliseconds(works[kernel], repeats)
        result[f"{kernel}_ms"] = statistics.median(times)
        result[f"{kernel}_ms_all"] = times
    return result


@app.callback()
def main() -> None:
    """Time the planning kernels."""


@app.command()
def plan(
    *,
    jobs: Annotated[int, typer.Option(min=1, help="Jobs in the queue.")] = 10_000,
    nodes: Annotated[int, typer.Option(min=1, max=2**24, help="Nodes of the system.")] = 1_000,
    shape: Annotated[Shape, typer.Option(help="What the queue looks like.")] = Shape.CLUSTERED,
    depth: Annotated[
        int | None,
        typer.Option(min=0, help="Reservations at most (1: EASY); default: for every job."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the random queue.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Time one plan of a whole queue, from nothing: as counts, and onto concrete whole nodes."""
    kernels = ["counts", "map", "whole_nodes"]
    deep = UNLIMITED if depth is None else depth
    result = measure(
        shape=shape, jobs=jobs, nodes=nodes, depth=deep, seed=seed, kernels=kernels, repeats=3
    )
    if as_json:
        print(json.dumps(result))
        return
    print(f"{jobs:,} jobs ({shape}), {nodes:,} nodes, median of 3:")
    for kernel, words in zip(
        kernels,
        ("plan as counts", "map the counts onto nodes", "plan onto whole nodes"),
        strict=True,
    ):
        print(f"  {words:<27}{result[f'{kernel}_ms']:>12,.2f} ms")


@app.command()
def planning(
    *,
    system: Annotated[
        str, typer.Option(metavar="openccs|FILE", help="OpenCCS's own, or a described system.")
    ] = "openccs",
    jobs: Annotated[int, typer.Option(min=100, help="Jobs in the plan.")] = 15_000,
    table: Annotated[bool, typer.Option(help="Time the table of shared nodes, too.")] = True,
    seed: Annotated[int, typer.Option(min=0, help="Of the random jobs.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Take the figures of the OpenCCS paper: replans, an array, recovery, memory; and a table."""
    from bridge.cli import bench_planning  # noqa: PLC0415 (it stands on this module)

    if system == "openccs":
        machine = bench_planning.openccs()
    else:
        machine = bench_planning.machine_of(read_system(Path(system)))
    result = bench_planning.measure_system(machine, jobs, seed)
    result["table"] = bench_planning.measure_tables() if table else []
    if as_json:
        print(json.dumps(result))
        return
    print(
        f"{result['jobs_booked']:,} jobs planned over {result['plan_span_days']} days on "
        f"{result['nodes']:,} nodes, {result['cores']:,} cores, in {result['plan_s']} s:"
    )
    for key in ("replans_per_s", "array_10k_s", "recover_5000_s", "book_mib", "peak_mib"):
        print(f"  {key:<16}{result[key] if result[key] is not None else 'none':>12}")
    for cell in result["table"]:
        against = f"   {cell['ratio']:.2f} of plan_nodes" if "ratio" in cell else ""
        print(f"  {cell['shape']:<10}{cell['jobs']:>8,} jobs {cell['book_s']:>9.3f} s{against}")


@app.command()
def dispatch(
    *,
    instances: Annotated[
        Path | None,
        typer.Option(help="Directory of recordings ('schedbridge record'); else the bundled ones."),
    ] = None,
    policies: Annotated[
        str, typer.Option(help="Presets or YAML files, by commas; a budget in ms behind an @.")
    ] = "easy,conservative",
    budget_ms: Annotated[
        int, typer.Option(min=1, help="Of policies that have one and none of their own.")
    ] = 1000,
    objective: Annotated[
        str, typer.Option(help="slowdown, bounded-slowdown, wait, priority or delay.")
    ] = "slowdown",
    min_queue: Annotated[
        int, typer.Option(min=0, help="Only instances with so many waiting jobs.")
    ] = 1,
    by_work: Annotated[
        bool, typer.Option("--work", help="Budgets are of counted work, not of the clock.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Of all chance.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Hold policies against each other on the same recorded cycles: objective and time."""
    from bridge.cli import bench_dispatch  # noqa: PLC0415 (loads the planners)
    from bridge.cli.asking import console  # noqa: PLC0415 (needs gRPC)

    if objective not in bench_dispatch.MEASURES:
        known = ", ".join(bench_dispatch.MEASURES)
        raise ConfigError("objective", f"there is no '{objective}'; there are {known}")
    entries = bench_dispatch.entries(policies, budget_ms, by_work=by_work)
    cycles, groups = bench_dispatch.load_instances(instances or bench_dispatch.bundled(), min_queue)
    before = bench_dispatch.machine()
    results = bench_dispatch.compare(cycles, groups, entries, seed, by_work=by_work)
    figures = bench_dispatch.summary(results, entries, objective)
    figures["machine"] = {"before": before, "after": bench_dispatch.machine()}
    if as_json:
        print(json.dumps(figures))
        return
    screen = console()
    for group in figures["groups"]:
        screen.print(bench_dispatch.table(figures, group))
        screen.print()
    print(
        f"{figures['instances']} instances; mean {objective}, less is better; relative to the best"
    )


@app.command()
def placement(
    *,
    instances: Annotated[
        Path | None,
        typer.Option(help="Windows, one JSON object a line; else the bundled sample."),
    ] = None,
    placers: Annotated[
        str,
        typer.Option(
            help="By commas; behind an @ moves of annealing, ms of compact, s of solvers."
        ),
    ] = "sequential,annealing,contiguous-exact,compact",
    metric: Annotated[
        Metric, typer.Option(help="Hops as the paper defines them, or as its code counts them.")
    ] = Metric.PAPER,
    topology: Annotated[
        Path | None,
        typer.Option(help="A topology.conf; node numbers count its nodes in the file's order."),
    ] = None,
    bound: Annotated[bool, typer.Option(help="Also a cost that nothing falls below.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Of all chance.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Hold placers against each other: communication hops and milliseconds of every window."""
    from bridge.cli import bench_placement  # noqa: PLC0415 (loads the placers)

    chosen = bench_placement.parse_placers(placers)
    windows = list(bench_placement.read_instances(instances or bench_placement.SAMPLE))
    fabric = bench_placement.fabric_for(
        metric, None if topology is None else read_topology(topology), windows
    )
    shown = track(windows, "placing", console=Console(stderr=True), disable=as_json, transient=True)
    result = bench_placement.measure(fabric, shown, chosen, seed=seed, bound=bound)
    result = {"metric": metric.value, **result}
    if as_json:
        print(json.dumps(result))
        return
    print(f"{len(windows)} windows, metric {metric}:")
    counted = result["counted"]
    for name, total in result["placers"].items():
        spent = f"{total['ms_mean']:10.3f} ms a window" if "ms_mean" in total else ""
        if total.get("placed", len(windows)) < len(windows):
            spent += f", {total['placed']} placed"
        cost = (
            f"{total['cost']:15,.0f}  {total['to_first']:.4f}" if counted else f"{'-':>15}  {'':6}"
        )
        print(f"  {name:22} {cost}{spent}")
    if counted < len(windows):
        print(f"costs are of the {counted} windows that all placers could place")
    if left_out := sum(one.left_out for one in windows):
        print(
            f"{left_out} jobs left out: with those before them they want more nodes than are idle"
        )
