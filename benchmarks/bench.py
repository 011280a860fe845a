# SPDX-License-Identifier: Apache-2.0
"""Times the planning kernels on this machine, and compares policies: `bench.py COMMAND --help`.

Everything is planned on an empty system: the first jobs in the queue start, the others wait behind
them. The queues:

* ``clustered``: sizes are powers of two up to 256 (small ones more often), time limits eight usual
  values from ten minutes to a day: few distinct values, as in real queues.
* ``log``: sizes log-uniform up to the whole system, time limits log-uniform from a minute to a day:
  nearly every job different, the kernels' hard case.

The kernels: ``counts`` plans amounts, ``map`` assigns nodes to such a plan, ``whole_nodes`` plans
exclusive jobs on individual nodes, ``shared_nodes`` jobs of one to four nodes that request some of
the cores, memory and GPUs of 64-core nodes.
"""

import json
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

import numpy as np
import typer
from policy_bench.workloads import Column, QueueShape, node_problem, queue, shares
from rich.console import Console
from rich.progress import track

from bridge.cli.main import guard
from bridge.core import (
    NEVER,
    UNLIMITED,
    UNPLANNED,
    map_counts,
    plan_counts,
    plan_nodes,
)
from bridge.dialect import dialect_named
from bridge.errors import ConfigError
from bridge.extras import need
from bridge.lab.sim.workloads.system import read_system
from bridge.model.hop_tree import Metric

app = typer.Typer(
    add_completion=False,
    help="Time the planning kernels, and compare policies.",
    no_args_is_help=True,
)


Each = TypeVar("Each")


def _shown(items: Sequence[Each], what: str) -> Iterable[Each]:
    """The items, with a bar on a terminal and nothing elsewhere."""
    console = Console(stderr=True)
    return track(items, what, console=console, disable=not console.is_terminal, transient=True)


def _milliseconds(work: Callable[[], object], repeats: int) -> list[float]:
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        work()
        times.append(round((time.perf_counter() - began) * 1e3, 3))
    return times


def measure(
    *,
    shape: QueueShape,
    jobs: int,
    nodes: int,
    depth: int,
    seed: int,
    kernels: list[str],
    repeats: int,
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
    whole = node_problem(nodes, count, limit_s, None, depth)
    shared = node_problem(nodes, few, limit_s, per_node, depth)
    works: dict[str, Callable[[], object]] = {
        "counts": counted,
        "map": lambda: map_counts(
            nodes, start, np.where(planned, start + limit_s, 0), count,
            none, np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int32),
        ),
        "whole_nodes": lambda: plan_nodes(whole),
        "shared_nodes": lambda: plan_nodes(shared),
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
    """Time the planning kernels, and compare policies."""


@app.command()
def plan(
    *,
    jobs: Annotated[int, typer.Option(min=1, help="Jobs in the queue.")] = 10_000,
    nodes: Annotated[int, typer.Option(min=1, max=2**24, help="Nodes of the system.")] = 1_000,
    shape: Annotated[QueueShape, typer.Option(help="Shape of the queue.")] = QueueShape.CLUSTERED,
    depth: Annotated[
        int | None,
        typer.Option(
            min=0, help="Maximum number of reservations (1: EASY); default: one for every job."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random queue.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Time one plan of a whole queue from scratch: as counts, and onto concrete whole nodes."""
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
        str,
        typer.Option(
            metavar="openccs|FILE", help="The system of OpenCCS, or a system description."
        ),
    ] = "openccs",
    jobs: Annotated[int, typer.Option(min=100, help="Jobs in the plan.")] = 15_000,
    table: Annotated[bool, typer.Option(help="Also time the table of shared nodes.")] = True,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random jobs.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Measure the figures of the OpenCCS paper: replans, array, recovery, memory; time a table."""
    from policy_bench import planning as bench_planning  # noqa: PLC0415

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
def placement(
    *,
    instances: Annotated[
        Path | None,
        typer.Option(help="Windows, one JSON object per line; default: the bundled sample."),
    ] = None,
    placers: Annotated[
        str,
        typer.Option(
            help="Separated by commas; @N after one: moves (annealing), ms (compact), s (solvers)."
        ),
    ] = "sequential,annealing,contiguous-exact,compact",
    metric: Annotated[
        Metric, typer.Option(help="Hops as the paper defines them, or as its code counts them.")
    ] = Metric.PAPER,
    topology: Annotated[
        Path | None,
        typer.Option(help="A topology.conf; node numbers count its nodes in the file's order."),
    ] = None,
    bound: Annotated[bool, typer.Option(help="Also print a lower bound of the cost.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all random numbers.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Compare placers: communication hops and milliseconds of every window."""
    from policy_bench import placement as bench_placement  # noqa: PLC0415

    chosen = bench_placement.parse_placers(placers)
    windows = list(bench_placement.read_instances(instances or bench_placement.SAMPLE))
    hop_tree = bench_placement.hop_tree_for(
        metric, None if topology is None else dialect_named("").read_topology(topology), windows
    )
    shown = _shown(windows, "placing")
    result = bench_placement.measure(hop_tree, shown, chosen, seed=seed, bound=bound)
    result = {"metric": metric.value, **result}
    if as_json:
        print(json.dumps(result))
        return
    print(f"{len(windows)} windows, metric {metric}:")
    counted = result["counted"]
    for name, total in result["figures"].items():
        spent = f"{total['ms_mean']:10.3f} ms per window" if "ms_mean" in total else ""
        if total.get("placed", len(windows)) < len(windows):
            spent += f", {total['placed']} placed"
        cost = (
            f"{total['cost']:15,.0f}  {total['to_first']:.4f}" if counted else f"{'-':>15}  {'':6}"
        )
        print(f"  {name:22} {cost}{spent}")
    if counted < len(windows):
        print(f"costs are for the {counted} windows that all placers could place")
    if left_out := sum(one.left_out for one in windows):
        print(
            f"{left_out} jobs left out: together with those before them they exceed the idle nodes"
        )


@app.command()
def elastic(
    *,
    scenario: Annotated[
        str, typer.Option(metavar="esp|FILE", help="The ESP workload, or a trace (.swf[.gz]).")
    ] = "esp",
    policies: Annotated[
        str, typer.Option(help="Presets or YAML files, separated by commas.")
    ] = "conservative,fpsma,malleable-performance,malleable",
    shares: Annotated[
        str, typer.Option(help="Percentages of malleable jobs, separated by commas.")
    ] = "0,25,50,75,100",
    seeds: Annotated[
        int,
        typer.Option(
            min=1, max=10_000, help="Repetitions, each with a random order and choice of jobs."
        ),
    ] = 3,
    first_seed: Annotated[
        int, typer.Option(min=0, help="The first seed; the others follow it.")
    ] = 0,
    nodes: Annotated[
        int | None,
        typer.Option(
            min=1, max=2**20, help="Processors of the machine; default: 32, or as in the trace."
        ),
    ] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Only the first N jobs.")] = None,
    mtct_error: Annotated[
        float,
        typer.Option(help="Relative error of the measured communication: 0.3 for 30 %."),
    ] = 0.0,
    speed_up: Annotated[
        str | None,
        typer.Option(
            help="Speed-up of every job: amdahl:FRACTION, downey:PARALLELISM:VARIANCE,"
            " table:WIDTH=SPEEDUP,..., or phases:SHARE*MODEL,...; default: Amdahl's law with a"
            " drawn serial fraction."
        ),
    ] = None,
    change_cost: Annotated[
        str,
        typer.Option(
            help="What a change of width takes: join (as measured of this engine), or seconds:"
            " WHOLE, or WHOLE:STILL of which the job stands still."
        ),
    ] = "join",
    plot: Annotated[
        Path | None, typer.Option(help="Plot the measures over the share: .svg, .png or .pdf.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Compare policies for malleable jobs in simulations: makespan, waits, utilisation."""
    from policy_bench import elastic as bench_elastic  # noqa: PLC0415

    chosen = bench_elastic.cases(
        policies, bench_elastic.percentages("shares", shares), range(first_seed, first_seed + seeds)
    )
    name, drawn = bench_elastic.scenario_of(
        scenario,
        nodes=nodes,
        jobs=jobs,
        mtct_error=mtct_error,
        speed_up=speed_up,
        change_cost=change_cost,
    )
    if plot is not None and plot.suffix not in (".svg", ".png", ".pdf"):
        raise ConfigError("plot", f"'{plot.name:.60}' must end in .svg, .png or .pdf")
    if plot is not None:
        need("matplotlib", "plots", "plot")
    shown = _shown(chosen, "simulating")
    runs = [bench_elastic.run_case(name, drawn, case) for case in shown]
    found = bench_elastic.summary(runs)
    if plot is not None:
        from bridge.lab.report.elastic_plot import plot_elastic  # noqa: PLC0415 (loads matplotlib)

        plot_elastic(plot, found)
    if as_json:
        given = {"mtct_error": mtct_error, "speed_up": speed_up, "change_cost": change_cost}
        print(json.dumps({**given, "runs": runs, "summary": found}))
        return
    print("\n".join(bench_elastic.lines(found)))
    print(f"{seeds} seeds; in brackets 95 % intervals of the mean (bootstrap)")


@app.command()
def power(
    *,
    scenario: Annotated[
        str,
        typer.Option(metavar="power-paper|FILE", help="The paper's workload, or a trace."),
    ] = "power-paper",
    policies: Annotated[
        str | None,
        typer.Option(
            help="Separated by commas: static, hold, scenario-2, scenario-3, power-plan, presets or"
            " YAML files; @nothing, @present or @announced after one: what it sees of the corridor."
            " Default: the available ones of the first five."
        ),
    ] = None,
    seeds: Annotated[
        int, typer.Option(min=1, max=10_000, help="Repetitions, each with other draws.")
    ] = 3,
    first_seed: Annotated[
        int, typer.Option(min=0, help="The first seed; the others follow it.")
    ] = 0,
    corridor: Annotated[
        Path | None, typer.Option(metavar="FILE", help="As for 'schedbridge lab simulate'.")
    ] = None,
    node_power: Annotated[
        str | None, typer.Option(metavar="IDLE:MAX", help="What each node draws, W.")
    ] = None,
    power_error: Annotated[
        float | None,
        typer.Option(help="Percentage by which the draw of jobs may differ from their model."),
    ] = None,
    sensors: Annotated[bool, typer.Option(help="Policies see what jobs draw, as measured.")] = True,
    nodes: Annotated[
        int | None, typer.Option(min=1, max=2**20, help="Processors of a trace's machine.")
    ] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Only the first N jobs.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Compare policies in a corridor of power, in simulations: violations, makespan, energy."""
    from policy_bench import power as bench_power  # noqa: PLC0415

    from bridge.lab.sim.runs.power_options import PowerOptions  # noqa: PLC0415 (likewise)

    chosen = bench_power.entries(policies)
    options = PowerOptions(corridor, node_power, power_error, sensors)
    world = bench_power.JobSource(scenario, options, nodes, jobs)
    world.drawn(first_seed)  # report errors in it before the progress is shown
    cases = [(seed, each) for seed in range(first_seed, first_seed + seeds) for each in chosen]
    shown = _shown(cases, "simulating")
    runs = [bench_power.run_case(world, each, seed) for seed, each in shown]
    found = bench_power.summary(runs)
    if as_json:
        print(json.dumps({"sensors": sensors, "runs": runs, "summary": found}))
        return
    print("\n".join(bench_power.lines(found)))
    print(f"{seeds} seeds; in brackets 95 % intervals of the mean (bootstrap)")


@app.command()
def coschedule(
    *,
    policies: Annotated[
        str, typer.Option(help="Presets or YAML files, separated by commas.")
    ] = "easy,static-half,asax,pairs",
    cores: Annotated[
        str, typer.Option(help="Sizes of the cluster, separated by commas.")
    ] = "64,128,256",
    repeats: Annotated[
        int,
        typer.Option(min=1, max=100, help="Sets of 15 workflows, one after the other."),
    ] = 3,
    seeds: Annotated[
        int, typer.Option(min=1, max=10_000, help="Repetitions, each with another order of jobs.")
    ] = 5,
    first_seed: Annotated[
        int, typer.Option(min=0, help="The first seed; the others follow it.")
    ] = 0,
    interference: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Interference model; default: the bundled one."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Compare policies for jobs that share nodes: the experiment of ASA_X in simulation."""
    from policy_bench import coschedule as bench  # noqa: PLC0415

    chosen = bench.cases(policies, cores, range(first_seed, first_seed + seeds))
    model = bench.model_of(interference)
    runs = [bench.run_case(model, case, repeats) for case in _shown(chosen, "simulating")]
    found = bench.summary(runs)
    if as_json:
        given = {"repeats": repeats, "interference": model.as_value()}
        print(json.dumps({**given, "runs": runs, "summary": found, "paper": bench.PAPER}))
        return
    print("\n".join(bench.lines(found)))
    print(f"{seeds} seeds; in brackets 95 % intervals of the mean (bootstrap); (paper's Table 3)")


def run(arguments: Sequence[str]) -> None:
    """Runs a command; a mistake is one line, never a traceback."""
    guard(lambda: app(args=list(arguments), prog_name="bench.py"), arguments)


if __name__ == "__main__":
    run(sys.argv[1:])
