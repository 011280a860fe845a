#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ESP with malleable jobs on a real dockerized cluster, compressed in time, and its simulation.

usage: benchmarks/esp_cluster.py [--strategies NAME,...] [--share P] [--compression X] [--jobs N]
                                 [--nodes N] [--seed N] [--json FILE [--add]]
       benchmarks/esp_cluster.py --show FILE     only prints the table of this file
       benchmarks/esp_cluster.py --plot FILE     only draws this file, as .svg beside it
       benchmarks/esp_cluster.py --again FILE    simulates its runs again, and writes it
       benchmarks/esp_cluster.py --ways FILE     only prints how each cost changes the simulation

Each node is a container with a slurmd, and with an agent under the bridge. Jobs are real: their
processes communicate over sockets, hold data that are redistributed at each change, and their
results are checked. They sleep instead of computing, by Amdahl's law (`elastic_bench/paced.py`).
`static` is Slurm's sched/backfill without the bridge, with default parameters, those in seconds
compressed like everything else; `static-defaults` does not compress them. The simulation of each
run has the same jobs and limits, and the measured durations of a change, of a job's standstill
during it, and of a job's beginning and end.
"""

import argparse
import json
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import results_file
from about import about
from cluster_bench import strategies
from cluster_bench.stand import ROOT, Stand
from elastic_bench import esp_table
from elastic_bench.esp_jobs import Costs, Esp, real_jobs, simulated_jobs
from elastic_bench.esp_run import run
from policy_bench.elastic import ElasticCase, run_case
from progress import say

from bridge.registry import parse_policy

STRATEGIES = ("static", "static-defaults", "fpsma", "malleable-performance", "malleable")
RESHAPES = {"malleable-performance": "performance"}


def policy(strategy: str, compression: float) -> str | dict[str, object]:
    """A strategy that assumes 20 s of ESP per change; 1: for the simulation.

    `malleable` changes a job once in 100 s of ESP: between 100 and 800, the best in simulations
    with two other seeds.
    """
    if strategy.startswith("static"):
        return "conservative"
    reshape: dict[str, object] = {"name": RESHAPES.get(strategy, strategy)}
    reshape["adaptation_s"] = max(round(20 / compression), 1)
    if strategy == "malleable":
        reshape["between_s"] = max(round(100 / compression), 3)
        reshape["learn"] = False  # each job scales by its own random value, regardless of its name
    return {"preset": strategy, "reshape": reshape}


def options(strategy: str, compression: float, folder: Path) -> list[str]:
    """The options of `scripts/cluster up`."""
    image = ["--image", "mpi"]
    if strategy == "static-defaults":
        return image
    if strategy == "static":
        scaled = {"sched_interval": 60, "bf_interval": 30, "bf_resolution": 60}
        each = [f"{key}={max(round(s / compression), 1)}" for key, s in scaled.items()]
        return [*image, "--set", "SchedulerParameters=batch_sched_delay=0," + ",".join(each)]
    config = folder / "bridge.yaml"
    text = (ROOT / "slurm_conf" / "bridge.yaml").read_text()
    waits = {"grant_s": 5, "add_s": 60, "grace_s": 30, "rest_s": max(round(60 / compression), 1)}
    chosen = json.dumps(policy(strategy, compression))
    text = text.replace("policy: slurm-like", f"policy: {chosen}")
    config.write_text(f"{text}\nresizing: {json.dumps(waits)}\n")
    return [*image, "--agents", "--service-config", str(config)]


def esp_of(strategy: str, given: argparse.Namespace) -> Esp:
    """Its jobs: without the bridge all are rigid."""
    share = 0.0 if strategy.startswith("static") else given.share
    return Esp(share, given.seed, given.nodes, given.compression, given.jobs)


def on_cluster(strategy: str, given: argparse.Namespace) -> dict[str, object]:
    """One run of a strategy."""
    jobs = real_jobs(esp_of(strategy, given))
    with tempfile.TemporaryDirectory(prefix="schedbridge-") as folder:
        scheduler = "backfill" if strategy.startswith("static") else "bridge"
        own = ["--containers", str(given.nodes)]
        more = [*own, *options(strategy, given.compression, Path(folder))]
        with Stand(given.name, scheduler, given.nodes, say, options=more) as stand:
            expected_s = 14_000 / given.compression * max(given.jobs / 230, 0.2)
            return run(stand, jobs, 3 * expected_s + 120)


def simulated(strategy: str, given: argparse.Namespace, costs: Costs) -> dict[str, object]:
    """The same jobs in the simulator, in ESP's seconds."""
    whole = esp_of(strategy, given)
    spec = parse_policy(policy(strategy, 1))

    def drawn(share: float, seed: int) -> object:
        return simulated_jobs(replace(whole, share=share, seed=seed), costs)

    found = run_case("esp", drawn, ElasticCase(spec, whole.share, given.seed))  # type: ignore[arg-type]
    kept = ("makespan_s", "utilization", "wait_s", "response_s", "resizes", "failures")
    return {key: found[key] for key in kept}


WAYS = {
    "standing still for whole changes; beginning and end scale with the nodes":
        {"still_s": None, "scale": True},
    "standing still for windows": {"scale": True},
    "beginning and end take as long on any nodes": {"still_s": None},
    "both": {},
}  # fmt: skip
"""The simulated costs; the last is `simulated`."""


def again(path: Path, given: argparse.Namespace) -> None:
    """Simulates the runs of a file again, also with simpler costs."""
    data = json.loads(path.read_text())
    for one in esp_table.complete(data):
        own = argparse.Namespace(**vars(given))
        own.share, own.seed, own.nodes = one["share"], one["seed"], one["nodes"]
        own.compression, own.jobs = one["compression"], one["count"]
        one["costs"].setdefault("still_s", one["window_s"].get("mean", 0.0))
        costs = Costs(**one["costs"])
        found = {
            way: simulated(one["strategy"], own, replace(costs, **changed))
            for way, changed in WAYS.items()
            if one["resizes"] or not changed
        }
        one["simulated"], one["ways"] = list(found.values())[-1], found
        one["simulated_commit"] = about()["commit"]
        say(f"{one['strategy']}: {one['simulated']}")
    head = {key: value for key, value in data.items() if key != "runs"}
    results_file.write(path, {**head, "runs": data["runs"]})


def arguments() -> argparse.Namespace:
    parser = strategies.parser(
        __doc__, "A run of all jobs takes about 12,000 s divided by the compression, and a minute."
    )
    add = parser.add_argument
    add("--ways", type=Path, help="only print how each cost changes the simulation")
    add("--strategies", default="static,malleable-performance,malleable",
        help=f"of {', '.join(STRATEGIES)} [%(default)s]")  # fmt: skip
    add("--share", type=float, default=50.0, help="malleable jobs, percent [%(default)g]")
    add("--compression", type=float, default=20.0, help="ESP's seconds in one [%(default)g]")
    add("--jobs", type=int, default=230, help="only the first ones [%(default)s]")
    add("--nodes", type=int, default=32, help="each in a container of its own [%(default)s]")
    add("--seed", type=int, default=100, help="of order, choice and speed-ups [%(default)s]")
    add("--name", default="esp", help="of the cluster that is made [%(default)s]")
    return strategies.checked(parser, list(STRATEGIES))


def label(strategy: str, given: argparse.Namespace) -> dict[str, object]:
    """What tells a run from others."""
    own = {key: getattr(given, key) for key in ("seed", "nodes", "compression")}
    return {"share": esp_of(strategy, given).share, **own}


def main() -> int:
    given = arguments()
    if given.again:
        again(given.again, given)
        return 0
    if given.ways:
        print("\n".join(esp_table.ways(json.loads(given.ways.read_text()))))
        return 0
    if results_file.shown(esp_table, given.show, given.plot):
        return 0
    return strategies.measure(
        given,
        ("strategy", "share", "seed", "nodes", "compression"),
        lambda strategy: label(strategy, given),
        on_cluster=lambda strategy: on_cluster(strategy, given),
        simulated=lambda strategy, costs: simulated(strategy, given, Costs(**costs)),
        table=esp_table,
    )


if __name__ == "__main__":
    sys.exit(main())
