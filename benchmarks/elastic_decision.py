# SPDX-License-Identifier: Apache-2.0
"""The duration of a decision on malleable jobs: 100 of them run on 1,000 nodes.

Usage: benchmarks/elastic_decision.py [--json FILE] [--repeats N]
       benchmarks/elastic_decision.py --show FILE

Each case is one snapshot: malleable jobs on up to twice the requested nodes, and a queue. A whole
cycle is measured, check included, and its difference from one of `conservative`, which resizes
nothing. Times are CPU times of this process; the minimum and the median of the repeats are
reported, because other processes can only add to them.

Before the measured cycle, cycles of the same policy decide on the same system and their decisions
are carried out, until none is under way. Events in the 10 s since then:

    nothing     the same jobs run and wait.
    end         a running job has ended, another one in each repeat.
    submission  a job was submitted, another one in each repeat.
    start       a job was submitted and started, another one in each repeat; only if nodes are idle
    at
            first.
restart     there was no earlier cycle: the service has just started, and decides everything at
            once.
"""

import argparse
import dataclasses
import itertools
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from about import about
from results_file import write

from bridge.cycle import CycleResult, run_cycle
from bridge.lab.sim.cluster.controller import Controller
from bridge.lab.sim.workloads.esp import esp
from bridge.lab.sim.workloads.malleable_jobs import with_malleable
from bridge.lab.sim.workloads.system import pool_of
from bridge.model.job import Ending
from bridge.model.rules.site import NO_RULES
from bridge.model.snapshot import Snapshot
from bridge.ports import State
from bridge.registry import build, parse_policy

RUNNING, NODES, NOW_S = 100, 1000, 5000
SINCE_S = 10
"""Between the previous cycle and the measured one."""
SPARE = 60
"""Additional jobs, which the changes between cycles submit or start."""
CASES = (
    ("nodes are idle, no job waits", 0, 0.9),
    ("nodes are idle, 50 jobs wait", 50, 0.9),
    ("all nodes are busy, no job waits", 0, 1.0),
    ("all nodes are busy, 50 jobs wait", 50, 1.0),
)
SINCE = ("nothing", "end", "submission", "start", "restart")
POLICIES = ("conservative", "malleable", "malleable-performance", "fpsma")


class World:
    """Malleable jobs on this part of the nodes, and waiting jobs; new for each repeat."""

    def __init__(self, waiting: int, busy: float) -> None:
        rng = np.random.default_rng(1)
        count = RUNNING + waiting + SPARE
        jobs = with_malleable(esp(0, nodes=NODES).first(count), 100, seed=1)
        sizes = rng.integers(2, 17, count)
        widths = sizes[:RUNNING] * rng.uniform(1, 2, RUNNING)
        widths = np.maximum((widths * NODES * busy / widths.sum()).astype(np.int64), 1)
        if busy == 1:
            widths[-1] += NODES - widths.sum()
        sizes[:RUNNING] = np.maximum(widths // 2, 1)
        malleable = dataclasses.replace(
            jobs.malleable, nominal=sizes, min_nodes=np.ones_like(sizes), max_nodes=8 * sizes
        )
        times = rng.integers(6000, 20_000, count)
        self._jobs = dataclasses.replace(
            jobs, processors=sizes, runtime_s=times, time_limit_s=times, malleable=malleable
        )
        self._first = np.concatenate(([0], np.cumsum(widths)))
        self._waiting = range(RUNNING, RUNNING + waiting)

    def after(
        self, since: str, repeat: int, decide: Callable[[Snapshot, State], CycleResult]
    ) -> tuple[Snapshot, State]:
        """The system after a change, and the state of the previous cycle; another one each time."""
        controller = Controller(self._jobs, pool_of(NODES))
        for job in range(RUNNING):
            self._start(controller, job, int(self._first[job]), int(self._first[job + 1]), 0)
        for job in self._waiting:
            controller.submit(job)
        if since == "restart":
            return controller.snapshot(NOW_S), State()
        state = _settled(controller, decide, State(), NOW_S)
        spare = RUNNING + len(self._waiting) + repeat % SPARE
        now_s = NOW_S + SINCE_S
        if since == "end":
            controller.end(repeat % RUNNING, now_s, Ending.COMPLETED)
        elif since in {"submission", "start"}:
            controller.submit(spare)
        if since == "start":
            state = _settled(controller, decide, state, now_s)
            now_s += SINCE_S
        return controller.snapshot(now_s), state

    @staticmethod
    def _start(controller: Controller, job: int, first: int, last: int, now_s: int) -> None:
        nodes = np.arange(first, last, dtype=np.int32)
        controller.plans.start(
            job,
            nodes,
            np.zeros(len(nodes), dtype=np.int64),
            0,
            None,
            now_s=now_s,
            predicted_s=1,
        )


def _settled(
    controller: Controller,
    decide: Callable[[Snapshot, State], CycleResult],
    state: State,
    now_s: int,
) -> State:
    """Decides and carries out until nothing is under way; the last cycle's state."""
    until_s = now_s + SINCE_S
    while now_s < until_s:
        result = decide(controller.snapshot(now_s), state)
        controller.plans.apply(result.plan, now_s)
        if controller.plans.refusals:
            raise SystemExit(f"elastic_decision: {controller.plans.refusals[0]}")
        state, now_s = result.state, controller.adaptations.next_s()
        if now_s < until_s:
            controller.adaptations.finish(now_s)
    return state


def measure(world: World, since: str, preset: str, repeats: int) -> tuple[list[float], int]:
    """Milliseconds of a cycle, and how many jobs it resizes (the median)."""
    policy, taken, resizes = build(parse_policy(preset)), [], []

    def decide(snapshot: Snapshot, state: State) -> CycleResult:
        return run_cycle(snapshot, NO_RULES, state, policy, np.random.default_rng(0))

    for repeat in range(repeats + 3):
        snapshot, state = world.after(since, repeat, decide)
        began = time.process_time()
        result = decide(snapshot, state)
        taken.append(1e3 * (time.process_time() - began))
        resizes.append(len(result.plan.resizes))
    return taken[3:], int(statistics.median(resizes[3:]))


def lines(rows: list[dict]) -> list[str]:
    """A table."""
    found = [
        "| case | since the last cycle | policy | resizes | cycle, ms: least | median "
        "| beyond `conservative` |",
        "|---|---|---|---:|---:|---:|---:|",
    ]
    for row in rows:
        found.append(
            f"| {row['case']} | {row.get('since', 'nothing')} | {row['policy']} | {row['resizes']} "
            f"| {row['least_ms']:.2f} | {row['median_ms']:.2f} | {row['stage_ms']:.2f} |"
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
    for (name, waiting, busy), since in itertools.product(CASES, SINCE):
        if since == "start" and busy == 1:
            continue
        world = World(waiting, busy)
        plain_ms = min(measure(world, since, "conservative", given.repeats)[0])
        for policy in POLICIES:
            taken, resizes = measure(world, since, policy, given.repeats)
            rows.append({
                "case": name, "since": since, "policy": policy, "resizes": resizes,
                "least_ms": round(min(taken), 3), "median_ms": round(statistics.median(taken), 3),
                "stage_ms": round(max(min(taken) - plain_ms, 0), 3),
            })  # fmt: skip
    print("\n".join(lines(rows)))
    if given.json:
        text = {**about(), "running": RUNNING, "nodes": NODES, "repeats": given.repeats}
        write(given.json, {**text, "rows": rows})


if __name__ == "__main__":
    main()
