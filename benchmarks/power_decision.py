# SPDX-License-Identifier: Apache-2.0
"""CPU time of a decision on power by the whole policy: 14 nodes as in the paper, and 1,000.

Usage: benchmarks/power_decision.py [--json FILE] [--repeats N]
       benchmarks/power_decision.py --show FILE

Each case is one snapshot and one corridor. A cycle is measured as a whole, with its plan of the
queue and its check, and relative to one of `conservative` under the same corridor. The times of the
programme alone are in `power_configuration.py`. Times are CPU times of this process; the minimum
and the median of the repeats are reported, because other processes can only add to them.
"""

import argparse
import dataclasses
import json
import statistics
import time
from pathlib import Path

import numpy as np
from about import about
from results_file import write

from bridge.cycle import run_cycle
from bridge.extensions.power.planning.estimates import system_power
from bridge.extensions.power.rules import Corridor, NodePower, PowerRules, with_power
from bridge.lab.sim.cluster.controller import Controller
from bridge.lab.sim.workloads.esp import esp
from bridge.lab.sim.workloads.job_power import drawn_around
from bridge.lab.sim.workloads.malleable_jobs import with_malleable
from bridge.lab.sim.workloads.system import pool_of
from bridge.model.rules.node_set import NodeSet
from bridge.model.rules.site import Site
from bridge.model.snapshot import Snapshot
from bridge.ports import State
from bridge.registry import build, parse_policy

NOW_S = 5000
NODE = NodePower("node", NodeSet(), idle_w=71, max_w=275)
SIZES = (
    # name, nodes, running, waiting
    ("14 nodes, 6 jobs run, 14 wait", 14, 6, 14),
    ("1,000 nodes, 200 jobs run, none waits", 1000, 200, 0),
    ("1,000 nodes, 200 jobs run, 30 wait", 1000, 200, 30),
)
BOUNDS = (
    # name, lower and upper bound as shares of what the jobs draw beyond idle
    ("within its bounds", 0.5, 1.2),
    ("above the upper bound", 0.3, 0.7),
    ("below the lower bound", 1.05, 1.6),
    ("no widths end it", 0.0, 0.02),
)
POLICIES = ("conservative", "malleable-power", "power-plan")


def snapshot(nodes: int, running: int, waiting: int) -> Snapshot:
    """Malleable jobs on 90 % of the nodes, which draw differently, and jobs that wait."""
    rng = np.random.default_rng(1)
    count = running + waiting
    jobs = with_malleable(esp(0, nodes=nodes).first(count), 100, seed=1)
    widths = 1 + rng.multinomial(int(0.9 * nodes) - running, rng.dirichlet(np.full(running, 2.0)))
    sizes = rng.integers(1, max(nodes // 60, 4), count)
    sizes[:running] = widths
    malleable = dataclasses.replace(
        jobs.malleable,
        nominal=sizes,
        min_nodes=np.maximum(sizes // 4, 1),
        max_nodes=np.minimum(4 * sizes, nodes),
    )
    times = rng.integers(6000, 20_000, count)
    power = drawn_around(rng.uniform(120, 250, count), NODE, error=0.1, seed=1)
    jobs = dataclasses.replace(
        jobs, processors=sizes, runtime_s=times, time_limit_s=times, malleable=malleable,
        power=power,
    )  # fmt: skip
    controller = Controller(jobs, pool_of(nodes))
    first = np.concatenate(([0], np.cumsum(widths)))
    for job in range(running):
        own = np.arange(first[job], first[job + 1], dtype=np.int32)
        controller.plans.start(
            job, own, np.zeros(len(own), dtype=np.int64), 0, None, now_s=0, predicted_s=1
        )
    for job in range(running, count):
        controller.submit(job)
    return controller.snapshot(NOW_S)


def site(world: Snapshot, lower: float, upper: float) -> Site:
    """Bounds at these shares of what the running jobs draw."""
    idle_w = NODE.idle_w * len(world.nodes)
    least_w, most_w = system_power(PowerRules(Corridor(), (NODE,)), world)
    bounds = Corridor(
        (0,),
        (int(idle_w + lower * (least_w - idle_w)) if lower else 0,),
        (int(idle_w + upper * (most_w - idle_w)),),
    )
    return with_power(Site(), PowerRules(bounds, (NODE,)))


def measure(world: Snapshot, where: Site, preset: str, repeats: int) -> tuple[list[float], int]:
    """Milliseconds of a cycle, and how many jobs it resizes."""
    policy, taken = build(parse_policy(preset)), []
    for _ in range(repeats + 2):
        began = time.process_time()
        result = run_cycle(world, where, State(), policy, np.random.default_rng(0))
        taken.append(1e3 * (time.process_time() - began))
    return taken[2:], len(result.plan.resizes)


def lines(rows: list[dict]) -> list[str]:
    """A table."""
    found = [
        "| system | power | policy | resizes | cycle, ms: least | median | beyond `conservative` |",
        "|---|---|---|---:|---:|---:|---:|",
    ]
    for row in rows:
        found.append(
            f"| {row['system']} | {row['power']} | {row['policy']} | {row['resizes']} "
            f"| {row['least_ms']:.2f} | {row['median_ms']:.2f} | {row['stage_ms']:.2f} |"
        )
    return found


def main() -> None:
    """Measures, shows, writes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--show", type=Path, help="only print the table of this file")
    parser.add_argument("--repeats", type=int, default=30)
    given = parser.parse_args()
    if given.show:
        print("\n".join(lines(json.loads(given.show.read_text())["rows"])))
        return
    rows = []
    for system, *sizes in SIZES:
        world = snapshot(*sizes)
        for power, lower, upper in BOUNDS:
            where = site(world, lower, upper)
            plain_ms = 0.0
            for policy in POLICIES:
                taken, resizes = measure(world, where, policy, given.repeats)
                plain_ms = plain_ms or min(taken)
                rows.append({
                    "system": system, "power": power, "policy": policy, "resizes": resizes,
                    "least_ms": round(min(taken), 3),
                    "median_ms": round(statistics.median(taken), 3),
                    "stage_ms": round(max(min(taken) - plain_ms, 0), 3),
                })  # fmt: skip
    print("\n".join(lines(rows)))
    if given.json:
        text = {**about(), "repeats": given.repeats}
        write(given.json, {**text, "rows": rows})


if __name__ == "__main__":
    main()
