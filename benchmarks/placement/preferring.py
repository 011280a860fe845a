#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The effect of placement on waits: whole simulations with and without switches.

`preferring.py --case kth [--case paper ...] [--traces DIR] [--json OUT]`: each case is simulated
under one plan policy with every placer, and compared with `sequential`, which ignores switches:
waits, bounded slowdowns, hops, and the CPU time of a cycle. `--table IN` prints a result as a
table.

Machines of logs are pools of identical nodes with a made-up tree above them; METACENTRUM's nodes
are of two kinds and are shared. `search` of `compact` is bounded by steps, not by the clock, so
that the same seed gives the same figures on any machine.
"""

import argparse
import json
import sys
import time
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).resolve().parents[1]))

from about import about
from results_file import write

from bridge.errors import BridgeError
from bridge.lab.sim.runs.engine import simulate
from bridge.lab.sim.runs.simulation_result import SimulationResult
from bridge.lab.sim.workloads.swf import read_swf
from bridge.lab.sim.workloads.system import System, pool_of, read_system
from bridge.lab.sim.workloads.workload import Workload, workload_from
from bridge.measures import bounded_slowdown, wait_s
from bridge.model.hop_tree import HopTree
from bridge.model.plan import Plan
from bridge.model.snapshot import Snapshot
from bridge.model.topology import regular
from bridge.ports import Preference, Selection
from bridge.registry import build, parse_policy
from bridge.safe_cycle.decider import Decider

SYSTEMS = Path(__file__).resolve().parents[1] / "systems"
PLACES: dict[str, Any] = {
    "sequential": "sequential",
    "annealing": "annealing",
    "compact": {"name": "compact", "budget_ms": 0, "effort": 100},
}
RENUMBERED = "renumbered "
"""`sequential` on nodes of the same weight in another order, by seed: the effect of chance."""


@dataclass(frozen=True)
class Case:
    """A machine, jobs, and a policy.

    Attributes:
        log: file of the trace; empty: the paper's stream.
        jobs: of its first jobs, in each part; None: all.
        levels: nodes below a switch, by level from the leaves up.
        system: description of the machine; None: a pool.
        parts: of the log, one after the other, each on an empty machine.
        places: further placers to compare.
    """

    log: str
    jobs: int | None
    levels: tuple[int, ...]
    plan: str = "easy"
    system: str | None = None
    parts: int = 1
    places: tuple[str, ...] = ()


CASES = {
    "kth": Case("KTH-SP2-1996-2.1-cln.swf.gz", None, (10, 50)),
    "kth-conservative": Case("KTH-SP2-1996-2.1-cln.swf.gz", 5000, (10, 50), "conservative"),
    "sdsc": Case("SDSC-SP2-1998-4.2-cln.swf.gz", 5000, (8, 32)),
    "ctc": Case("CTC-SP2-1996-3.1-cln.swf.gz", 5000, (16, 64)),
    "paper": Case("", 2000, (10, 100)),
    "metacentrum": Case(
        "METACENTRUM-wagap-2013.swf.gz",
        700,
        (4, 16),
        system="METACENTRUM-wagap-2013-used.yaml",
        parts=6,
        places=("renumbered 1", "renumbered 2", "weighted"),
    ),
}


def main() -> None:
    """Runs the cases and prints the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--case", action="append", choices=CASES, help="default: all")
    parser.add_argument("--traces", type=Path, default=Path("traces"), help="where the logs are")
    parser.add_argument("--place", action="append", help="these alone; default: all of the case")
    parser.add_argument("--jobs", type=int, help="of each case at most")
    parser.add_argument("--json", type=Path, help="results are put there, beside what there is")
    parser.add_argument("--table", type=Path, help="print a result, and nothing else")
    options = parser.parse_args()
    if options.table:
        print(table(json.loads(options.table.read_text())["cases"]))
        return
    found: dict[str, Any] = {}
    if options.json and options.json.exists():
        found = json.loads(options.json.read_text())["cases"]
    for name in options.case or CASES:
        found[name] = compared(CASES[name], options.traces, options.jobs, options.place) | about()
        if options.json:
            write(options.json, {"cases": found})
        print(table({name: found[name]}), flush=True)


def compared(case: Case, traces: Path, most: int | None, only: list[str] | None) -> dict[str, Any]:
    """One case under all placers."""
    workload, system = prepared(case, traces)
    count = min(case.jobs or len(workload), most or len(workload))
    parts = [part(workload, at * count, (at + 1) * count) for at in range(case.parts)]
    rows: dict[str, Any] = {}
    first: list[SimulationResult] = []
    for place, spec in {**PLACES, **{name: name for name in case.places}}.items():
        if only and place not in only:
            continue
        run = Run(case, system, spec)
        outcomes = [run.simulated(one) for one in parts]
        first = first or outcomes
        rows[place] = run.row(outcomes, first)
        print(f"{place}: {rows[place]}", file=sys.stderr)
    jobs = sum(len(one) for one in parts)
    return {"jobs": jobs, "plan": case.plan, "levels": case.levels, "places": rows}


def part(workload: Workload, begin: int, end: int) -> Workload:
    """Jobs `begin` to `end` only."""
    columns: dict[str, Any] = {
        field.name: value[begin:end]
        for field in fields(workload)
        if isinstance(value := getattr(workload, field.name), np.ndarray)
    }
    return replace(workload, **columns)


def prepared(case: Case, traces: Path) -> tuple[Workload, System]:
    """Jobs and machine of a case."""
    if not case.log:
        workload = paper_stream(case.jobs or 2000, seed=1)
        system = pool_of(workload.processors_total)
    else:
        trace = read_swf(traces / case.log)
        if case.system is None:
            workload = workload_from(trace)
            system = pool_of(workload.processors_total)
        else:
            system = read_system(SYSTEMS / case.system)
            workload = workload_from(trace, system.processors, system.dialect)
    return workload, replace(system, topology=regular(len(system.nodes), *case.levels))


def paper_stream(n_jobs: int, seed: int) -> Workload:
    """Jobs of U[1, 40] nodes for U[10, 1800] s, U[5, 30] s apart, on 1,000 nodes."""
    dice = np.random.default_rng(seed)
    run_s = dice.integers(10, 1800, n_jobs, endpoint=True)
    unknown = np.full(n_jobs, -1, dtype=np.int64)
    return Workload(
        name="the paper's stream",
        processors_total=1000,
        id=np.array([str(at + 1) for at in range(n_jobs)], dtype=object),
        submit_s=1 + np.cumsum(dice.integers(5, 30, n_jobs, endpoint=True)),
        runtime_s=run_s,
        time_limit_s=run_s,
        processors=dice.integers(1, 40, n_jobs, endpoint=True),
        memory_kib=np.zeros(n_jobs, dtype=np.int64),
        user=unknown,
        group=unknown,
        executable=unknown,
        queue=unknown,
        row=np.arange(n_jobs),
        left_out={},
    )


@dataclass(frozen=True)
class Renumbered:
    """Takes the first nodes that can hold the job, in its own order."""

    seed: int

    def preference(self, snapshot: Snapshot) -> Preference:
        """Lower weight first, then by chance."""
        by_chance = np.random.default_rng(self.seed).permutation(len(snapshot.nodes))
        rank = np.empty(len(snapshot.nodes), dtype=np.int32)
        rank[np.lexsort((by_chance, snapshot.nodes.weight))] = np.arange(len(rank), dtype=np.int32)
        return Preference(Selection.SEQUENTIAL, rank)


class Run:
    """Simulates under one placer, and measures its CPU time."""

    def __init__(self, case: Case, system: System, place: Any) -> None:
        number = str(place).removeprefix(RENUMBERED)
        known = "sequential" if number != str(place) else place
        policy = build(parse_policy({"order": "fcfs", "plan": case.plan, "place": known}))
        self._policy = policy if known is place else replace(policy, place=Renumbered(int(number)))
        assert system.topology is not None
        self._system, self._hop_tree = system, HopTree.of(system.topology)
        self._cpu_ms: list[float] = []
        self._hops = [0.0, 0.0]

    def simulated(self, workload: Workload) -> SimulationResult:
        """One part."""
        decider = Decider(self._policy)

        def decide(snapshot: Snapshot) -> Plan:
            began = time.process_time()
            plan = decider.decide(snapshot)
            self._cpu_ms.append(1e3 * (time.process_time() - began))
            if (savings := decider.telemetry.placement) is not None:
                self._hops[0] += savings.before
                self._hops[1] += savings.after
            return plan

        outcome = simulate(workload, self._system, decide)
        assert decider.failures == 0, "every plan is legal"
        return outcome

    def row(
        self, outcomes: list[SimulationResult], first: list[SimulationResult]
    ) -> dict[str, Any]:
        """The figures compared with those without switches."""
        costs = np.concatenate([self._costs(one) for one in outcomes])
        width = np.concatenate([np.diff(one.indptr) for one in outcomes])
        fewest = np.concatenate([self._on_fewest(one) for one in outcomes])
        start_s, other_s = (
            np.concatenate([one.schedule.start_s for one in some]) for some in (outcomes, first)
        )
        wide = width > 1
        assert np.isfinite(costs).all(), "no job has nodes of two fabrics"
        known = sum(self._costs(one).sum() for one in first)
        ended = np.concatenate([one.schedule.finished for one in outcomes])
        waits = np.concatenate([wait_s(one.schedule) for one in outcomes])[ended]
        slow = np.concatenate([bounded_slowdown(one.schedule) for one in outcomes])[ended]
        return {
            "mean_wait_s": float(waits.mean()),
            "mean_bounded_slowdown": float(slow.mean()),
            "never_started": int((~ended).sum()),
            "wait_s_by_part": [
                float(wait_s(one.schedule)[one.schedule.finished].mean()) for one in outcomes
            ],
            "cost": float(costs.sum()),
            "cost_to_sequential": float(costs.sum() / known),
            "hops_of_a_pair": float(costs.sum() / (1000 * (width[wide] - 1)).sum()),
            "wide_jobs": int(wide.sum()),
            "on_fewest_leaves": float(fewest[wide].mean()),
            "starts_that_differ": int((start_s != other_s).sum()),
            "arranged_before": self._hops[0],
            "arranged_after": self._hops[1],
            "cycles": len(self._cpu_ms),
            "cpu_ms_mean": float(np.mean(self._cpu_ms)),
            "cpu_ms_p99": float(np.percentile(self._cpu_ms, 99)),
        }

    def _costs(self, outcome: SimulationResult) -> NDArray[np.float64]:
        return self._hop_tree.costs((outcome.indptr, outcome.nodes))

    def _on_fewest(self, outcome: SimulationResult) -> NDArray[np.bool_]:
        """Which jobs use as few leaf switches as possible on an empty machine."""
        leaf = self._hop_tree.topology.leaf_of_node
        largest = np.cumsum(np.sort(np.bincount(leaf))[::-1])
        found = []
        for begin, end in pairwise(outcome.indptr.tolist()):
            fewest = 1 + int(np.searchsorted(largest, end - begin))
            found.append(len(np.unique(leaf[outcome.nodes[begin:end]])) == fewest)
        return np.array(found, dtype=bool)


def table(cases: dict[str, Any]) -> str:
    """Markdown."""
    lines = [
        "| jobs, plan | place | hops of a pair | cost | fewest leaves | other starts "
        "| mean wait, s | bounded slowdown | CPU of a cycle, ms (99 %) |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, case in cases.items():
        title = f"{name}: {case['jobs']:,}, {case['plan']}"
        for place, row in case["places"].items():
            lines.append(
                f"| {title} | {place} | {row['hops_of_a_pair']:.2f} "
                f"| {row['cost_to_sequential']:.3f} | {row['on_fewest_leaves']:.0%} "
                f"| {row['starts_that_differ']:,} | {row['mean_wait_s']:,.1f} "
                f"| {row['mean_bounded_slowdown']:.2f} "
                f"| {row['cpu_ms_mean']:.1f} ({row['cpu_ms_p99']:.1f}) |"
            )
            title = ""
    return "\n".join(lines)


if __name__ == "__main__":
    try:
        main()
    except BridgeError as error:
        sys.exit(f"preferring.py: {error}")
