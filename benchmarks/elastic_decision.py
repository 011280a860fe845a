# SPDX-License-Identifier: Apache-2.0
"""What a decision on malleable jobs takes: 100 of them run on 1,000 nodes.

Usage: benchmarks/elastic_decision.py [--json FILE] [--repeats N]
       benchmarks/elastic_decision.py --show FILE

Each case is one snapshot: malleable jobs on up to twice the nodes that they ask for, and a queue
behind them. A cycle is measured as a whole, check included, and what it takes beyond one of
`conservative`, which resizes nothing. Times are those of this process on the CPU; the least and the
median of the repeats are reported, as other processes can only add to them. The jobs have been seen
by a cycle before.
"""

import argparse
import dataclasses
import json
import statistics
import time
from pathlib import Path

import numpy as np
from about import about

from bridge.cycle import run_cycle
from bridge.model.site import NO_RULES
from bridge.model.snapshot import Snapshot
from bridge.ports import State
from bridge.registry import build, parse_policy
from bridge.sim.controller import Controller
from bridge.sim.esp import esp
from bridge.sim.malleable_jobs import with_malleable
from bridge.sim.system import pool_of

RUNNING, NODES, NOW_S = 100, 1000, 5000
CASES = (
    ("nodes are idle, no job waits", 0, 0.9),
    ("nodes are idle, 50 jobs wait", 50, 0.9),
    ("all nodes are busy, no job waits", 0, 1.0),
    ("all nodes are busy, 50 jobs wait", 50, 1.0),
)
POLICIES = ("conservative", "malleable", "malleable-performance", "fpsma")


def snapshot(waiting: int, busy: float) -> Snapshot:
    """Malleable jobs on so large a part of the nodes, and jobs that wait."""
    rng = np.random.default_rng(1)
    jobs = with_malleable(esp(0, nodes=NODES).first(RUNNING + waiting), 100, seed=1)
    sizes = rng.integers(2, 17, RUNNING + waiting)
    widths = sizes[:RUNNING] * rng.uniform(1, 2, RUNNING)
    widths = np.maximum((widths * NODES * busy / widths.sum()).astype(np.int64), 1)
    if busy == 1:
        widths[-1] += NODES - widths.sum()
    sizes[:RUNNING] = np.maximum(widths // 2, 1)
    malleable = dataclasses.replace(
        jobs.malleable, nominal=sizes, min_nodes=np.ones_like(sizes), max_nodes=8 * sizes
    )
    times = rng.integers(6000, 20_000, RUNNING + waiting)
    jobs = dataclasses.replace(
        jobs, processors=sizes, runtime_s=times, time_limit_s=times, malleable=malleable
    )
    controller = Controller(jobs, pool_of(NODES))
    first = np.concatenate(([0], np.cumsum(widths)))
    for job in range(RUNNING):
        nodes = np.arange(first[job], first[job + 1], dtype=np.int32)
        controller._start(
            job, nodes, np.zeros(len(nodes), dtype=np.int64), 0, now_s=0, predicted_s=1
        )
    for job in range(RUNNING, RUNNING + waiting):
        controller.submit(job)
    return controller.snapshot(NOW_S)


def measure(world: Snapshot, preset: str, repeats: int) -> tuple[list[float], int]:
    """Milliseconds of a cycle, and how many jobs it resizes."""
    policy, taken = build(parse_policy(preset)), []
    state = run_cycle(world, NO_RULES, State(), policy, np.random.default_rng(0)).state
    for _ in range(repeats + 3):
        began = time.process_time()
        result = run_cycle(world, NO_RULES, state, policy, np.random.default_rng(0))
        taken.append(1e3 * (time.process_time() - began))
    return taken[3:], len(result.plan.resizes)


def lines(rows: list[dict]) -> list[str]:
    """A table."""
    found = [
        "| case | policy | resizes | cycle, ms: least | median | beyond `conservative` |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for row in rows:
        found.append(
            f"| {row['case']} | {row['policy']} | {row['resizes']} | {row['least_ms']:.2f} "
            f"| {row['median_ms']:.2f} | {row['stage_ms']:.2f} |"
        )
    return found


def main() -> None:
    """Measures, shows, writes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--show", type=Path, help="only print the table of this file")
    parser.add_argument("--repeats", type=int, default=50)
    given = parser.parse_args()
    if given.show:
        print("\n".join(lines(json.loads(given.show.read_text())["rows"])))
        return
    rows = []
    for name, waiting, busy in CASES:
        world = snapshot(waiting, busy)
        plain_ms = min(measure(world, "conservative", given.repeats)[0])
        for policy in POLICIES:
            taken, resizes = measure(world, policy, given.repeats)
            rows.append({
                "case": name, "policy": policy, "resizes": resizes,
                "least_ms": round(min(taken), 3), "median_ms": round(statistics.median(taken), 3),
                "stage_ms": round(max(min(taken) - plain_ms, 0), 3),
            })  # fmt: skip
    print("\n".join(lines(rows)))
    if given.json:
        text = {**about(), "running": RUNNING, "nodes": NODES, "repeats": given.repeats}
        given.json.write_text(json.dumps({**text, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
