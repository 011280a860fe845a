#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The paper's experiment on power on a real dockerized cluster, compared with its simulation.

usage: benchmarks/power_cluster.py [--strategies NAME,...] [--compression X] [--jobs N] [--nodes N]
                                   [--seed N] [--json FILE [--add]]
       benchmarks/power_cluster.py --show FILE     only prints the tables of this file
       benchmarks/power_cluster.py --plot FILE     only draws this file, as .svg beside it
       benchmarks/power_cluster.py --again FILE    simulates its runs again, and writes it

Each node is a container with a slurmd, and with an agent under the bridge. The jobs are the MPI
programs pi and heat of `examples/elastic` under MPICH, run by `schedbridge run`; their results are
compared with those of rigid runs. They compute by sleeping, as Amdahl's law says
(`power_bench/pace.c`). The draw of each node is written each second into a meter that its agent
reads: idle power, or the draw of the job that holds the node in Slurm (`power_bench/rig.py`). The
corridor is changed by `schedbridge power corridor`, unannounced.

Strategies: `static` is Slurm's sched/backfill without the bridge, `scenario-2` and `scenario-3` are
`malleable-power` with widths of running jobs only and with starts of waiting ones, `power-plan` is
the preset. The simulation of each run has the same jobs, limits and instants, and the measured
times of changes, beginnings and ends.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

import results_file
from about import about
from cluster_bench import strategies
from cluster_bench.stand import ROOT, Stand
from policy_bench.power import PowerPolicy, figures_of, outcome_of
from power_bench import table
from power_bench.jobs import Costs, Experiment, real_jobs, simulated_jobs
from power_bench.rig import NodeMeters
from power_bench.run import run
from progress import say

from bridge.lab.sim.corridor.paper import PAPER_NODE
from bridge.lab.sim.corridor.sight import Sight
from bridge.lab.sim.runs.power_options import end_s
from bridge.registry import parse_policy

STRATEGIES = ("static", "scenario-2", "scenario-3", "power-plan")
_TICK_S, _BETWEEN_S = 30, 60


def policy(strategy: str, compression: float) -> str | dict[str, object]:
    """A strategy whose own times are compressed like the jobs'."""
    if strategy == "static":
        return "conservative"
    preset = "power-plan" if strategy == "power-plan" else "malleable-power"
    reshape: dict[str, object] = {
        "name": "power-plan" if strategy == "power-plan" else "power-corridor",
        "tick_s": max(round(_TICK_S / compression), 1),
        "adaptation_s": 2,
    }
    if strategy == "power-plan":
        reshape["between_s"] = max(round(_BETWEEN_S / compression), 3)
    if strategy == "scenario-2":
        reshape["waiting"] = 0
    return {"preset": preset, "reshape": reshape}


def options(strategy: str, given: Experiment, folder: Path) -> list[str]:
    """The options of `scripts/cluster up`."""
    image = ["--image", "mpi"]
    if strategy == "static":
        scaled = {"sched_interval": 60, "bf_interval": 30, "bf_resolution": 60}
        each = [f"{key}={max(round(s / given.compression), 1)}" for key, s in scaled.items()]
        return [*image, "--set", "SchedulerParameters=batch_sched_delay=0," + ",".join(each)]
    first = given.corridor.steps[0]
    node = {"name": "all", "idle": f"{PAPER_NODE.idle_w}W", "max": f"{PAPER_NODE.max_w}W"}
    corridor = {"lower": f"{first.lower_w}W", "upper": f"{first.upper_w}W"}
    power = {"nodes": [node], "corridor": [corridor], "grace": "10s"}
    waits = {"grant_s": 5, "add_s": 30, "grace_s": 20, "rest_s": 10}
    text = (ROOT / "slurm_conf" / "bridge.yaml").read_text()
    chosen = json.dumps(policy(strategy, given.compression))
    text = text.replace("policy: slurm-like", f"policy: {chosen}")
    config = folder / "bridge.yaml"
    config.write_text(
        f"{text}\nplanning: {json.dumps({'power': power})}\nresizing: {json.dumps(waits)}\n"
    )
    return [
        *image, "--agents", "--service-config", str(config), "--power-files", str(folder / "sys"),
    ]  # fmt: skip


def on_cluster(strategy: str, given: Experiment, name: str) -> dict[str, object]:
    """One run of a strategy."""
    scheduler = "backfill" if strategy == "static" else "bridge"
    jobs = real_jobs(given, malleable=scheduler == "bridge")
    with tempfile.TemporaryDirectory(prefix="schedbridge-") as path:
        folder = Path(path)
        nodes = [f"n{number}" for number in range(1, given.nodes + 1)]
        rig = NodeMeters(folder / "sys", nodes)
        more = ["--containers", str(given.nodes), *options(strategy, given, folder)]
        with Stand(name, scheduler, given.nodes, say, options=more) as stand:
            return run(stand, given, jobs, rig, 8 * 300 / given.compression + 180)


def simulated(strategy: str, given: Experiment, costs: Costs) -> dict[str, object]:
    """The same jobs in the simulator."""
    workload = simulated_jobs(given, costs)
    spec = parse_policy(policy(strategy, given.compression))
    sight = Sight.NOTHING if strategy == "static" else Sight.PRESENT
    entry = PowerPolicy(strategy, spec, sight)
    outcome, counted = outcome_of(workload, given.setting(workload), entry, given.seed)
    assert outcome.power is not None
    last_s, origin_s = end_s(outcome), outcome.power.origin_s
    power = outcome.power.until(last_s)
    series = {
        "at_s": (power.at_s - origin_s).tolist(), "power_w": power.power_w.tolist(),
        "end_s": [last_s - origin_s],
    }  # fmt: skip
    return {**figures_of(outcome), **counted, "power": series}


def experiment_of(given: argparse.Namespace) -> Experiment:
    """The experiment that the arguments describe."""
    return Experiment(given.seed, given.compression, given.jobs, given.nodes)


def again(path: Path) -> None:
    """Simulates the runs of a file again."""
    data = json.loads(path.read_text())
    for one in table.complete(data):
        given = Experiment(one["seed"], one["compression"], one["count"], one["nodes"])
        one["simulated"] = simulated(one["strategy"], given, Costs(**one["costs"]))
        one["simulated_commit"] = about()["commit"]
    results_file.write(path, data)


def arguments() -> argparse.Namespace:
    parser = strategies.parser(
        __doc__, "All strategies take about 18 minutes at the default compression."
    )
    add = parser.add_argument
    add("--strategies", default=",".join(STRATEGIES), help="[%(default)s]")
    add("--compression", type=float, default=5.0,
        help="of run times and of the corridor's instants [%(default)g]")  # fmt: skip
    add("--jobs", type=int, default=20, help="only the first ones [%(default)s]")
    add("--nodes", type=int, default=14, help="each in a container of its own [%(default)s]")
    add("--seed", type=int, default=0, help="of sizes, run times and draws [%(default)s]")
    add("--name", default="powerbench", help="of the cluster that is made [%(default)s]")
    given = strategies.checked(parser, STRATEGIES)
    if not 1 <= given.jobs <= 20:
        parser.error("--jobs: 1 to 20")
    if not 1 <= given.compression <= 10:
        parser.error("--compression: 1 to 10")
    return given


def main() -> int:
    given = arguments()
    if given.again:
        again(given.again)
        return 0
    if results_file.shown(table, given.show, given.plot):
        return 0
    experiment = experiment_of(given)
    return strategies.measure(
        given,
        ("strategy", "seed", "compression", "count", "nodes"),
        lambda _: vars(experiment),
        on_cluster=lambda strategy: on_cluster(strategy, experiment, given.name),
        simulated=lambda strategy, costs: simulated(strategy, experiment, Costs(**costs)),
        table=table,
    )


if __name__ == "__main__":
    sys.exit(main())
