# SPDX-License-Identifier: Apache-2.0
"""CPU time of choosing widths within a power corridor, compared with CP-SAT on the same problem.

Usage: benchmarks/power_configuration.py [--json FILE] [--repeats N] [--problems N] [--solved N]
       benchmarks/power_configuration.py --show FILE

Each case is a set of seeded problems: running malleable jobs, nodes and a corridor that their power
violates. `programme` is `configuration` of `extensions.power.planning` as called, `CP-SAT` the
same goals one after the other, with one worker; choices that both prove are compared. Times are CPU
times of this process; the minimum of the repeats of each problem counts, because other processes
can only add to it. The table has the median and the maximum over the problems.
"""

import argparse
import json
import statistics
import time
from pathlib import Path

import numpy as np
from about import about
from ortools.sat.python import cp_model
from results_file import write

from bridge.extensions.power.planning.configuration import (
    Configuration,
    Room,
    Scalable,
    configuration,
)

IDLE_W = 71
CASES = (
    # name, running jobs, nodes, draws beyond idle: of two applications, or measured of each job
    ("the paper's system: up to 14 jobs, 14 nodes", 14, 14, "two"),
    ("200 jobs, 1,000 nodes, two applications", 200, 1000, "two"),
    ("200 jobs, 1,000 nodes, each measured", 200, 1000, "measured"),
    ("200 jobs, 1,000 nodes, each measured, rules on widths", 200, 1000, "rules"),
    ("200 jobs, 1,000 nodes, least and most draw differ", 200, 1000, "spread"),
)


def problem(seed: int, running: int, nodes: int, draws: str) -> tuple[list[Scalable], Room]:
    """Jobs on 60 to 100 % of the nodes, and a corridor that they violate."""
    rng = np.random.default_rng(seed)
    small = nodes < 100
    count = int(rng.integers(2, running // 2 + 1)) if small else running
    busy = int(nodes * rng.uniform(0.6, 1.0))
    widths = 1 + rng.multinomial(busy - count, rng.dirichlet(np.full(count, 2.0)))
    jobs = []
    for name, width in enumerate(widths.tolist()):
        upper_w = (99, 179)[name % 2] if draws == "two" else int(rng.integers(60, 260))
        lower_w = upper_w - (int(rng.integers(0, 30)) if draws == "spread" else 0)
        most = nodes if small else max(width, int(rng.integers(4, 33)))
        allowed = range(1, most + 1)
        kind = rng.integers(4) if draws == "rules" else 0
        if kind == 1:
            allowed = tuple(sorted({1, 2, 4, 8, 16, 32, width}))
        elif kind == 2:
            allowed = tuple(sorted({*range(2, most + 1, 2), width}))
        jobs.append(Scalable(str(name), width, allowed, lower_w, upper_w))
    drawn_w = sum(job.width * job.upper_w for job in jobs)
    share = (0.5, 0.7, 0.85, 1.15, 1.3, 1.6)[seed % 6]
    upper_w = int(drawn_w * share * (1.0 if share < 1 else 1.3))
    lower_w = int(drawn_w * share * (0.7 if share < 1 else 1.0))
    return jobs, Room(nodes, lower_w, upper_w)


def reached(jobs: list[Scalable], found: Configuration) -> tuple[int, ...]:
    """A configuration's value of each goal."""
    by = [abs(found.widths[job.id] - job.width) for job in jobs]
    return found.over_w, found.under_w, found.idle, sum(each > 0 for each in by), sum(by)


def by_solver(jobs: list[Scalable], room: Room) -> tuple[int, ...] | None:
    """The optimum of each goal, by CP-SAT; None: not proved in 2 s per goal."""
    model = cp_model.CpModel()
    width = [
        model.new_int_var_from_domain(cp_model.Domain.from_values(list(job.widths)), job.id)
        for job in jobs
    ]
    over, under = model.new_int_var(0, 1 << 40, ""), model.new_int_var(0, 1 << 40, "")
    upper_w = sum(w * job.upper_w for w, job in zip(width, jobs, strict=True))
    lower_w = sum(w * job.lower_w for w, job in zip(width, jobs, strict=True))
    model.add(upper_w - over <= room.upper_w)
    model.add(lower_w + under >= room.lower_w)
    model.add(sum(width) <= room.nodes)
    changed, by = [], []
    for w, job in zip(width, jobs, strict=True):
        by.append(model.new_int_var(0, room.nodes, ""))
        model.add_abs_equality(by[-1], w - job.width)
        changed.append(model.new_bool_var(""))
        model.add(w == job.width).only_enforce_if(~changed[-1])
    found = []
    for goal in (over, under, room.nodes - sum(width), sum(changed), sum(by)):
        model.minimize(goal)
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = solver.parameters.random_seed = 1
        solver.parameters.max_time_in_seconds = 2
        if solver.solve(model) != cp_model.OPTIMAL:
            return None
        found.append(round(solver.objective_value))
        model.add(goal <= found[-1])
        model.clear_hints()
        for index, value in enumerate(solver.response_proto.solution):
            model.proto.solution_hint.vars.append(index)
            model.proto.solution_hint.values.append(value)
    return tuple(found)


def measure(case: tuple[str, int, int, str], problems: int, repeats: int, solved: int) -> dict:
    """One row of the table."""
    name, running, nodes, draws = case
    own_ms, solver_ms, proven, settled, compared, different = [], [], 0, 0, 0, 0
    for seed in range(problems):
        jobs, room = problem(seed, running, nodes, draws)
        taken = []
        for _ in range(repeats):
            began = time.process_time()
            found = configuration(jobs, room)
            taken.append(1e3 * (time.process_time() - began))
        own_ms.append(min(taken))
        proven += found.proven
        settled += found.settled
        if seed < solved:
            began = time.process_time()
            best = by_solver(jobs, room)
            solver_ms.append(1e3 * (time.process_time() - began))
            if best is not None and found.proven:
                goals = 5 if found.settled else 3
                compared += 1
                different += best[:goals] != reached(jobs, found)[:goals]
    row = {
        "case": name, "problems": problems, "proven": proven, "settled": settled,
        "median_ms": round(statistics.median(own_ms), 3), "most_ms": round(max(own_ms), 3),
    }  # fmt: skip
    if solved:
        row |= {
            "solved": min(solved, problems),
            "solver_median_ms": round(statistics.median(solver_ms), 1),
            "solver_most_ms": round(max(solver_ms), 1),
            "compared": compared, "different": different,
        }  # fmt: skip
    return row


def lines(rows: list[dict]) -> list[str]:
    """A table."""
    found = [
        "| case | proven | changes, too | programme, ms: median | most | CP-SAT, ms: median | most "
        "| both proved | they differ |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        found.append(
            f"| {row['case']} | {row['proven']} of {row['problems']} | {row['settled']} "
            f"| {row['median_ms']:.2f} | {row['most_ms']:.2f} | {row.get('solver_median_ms', '')} "
            f"| {row.get('solver_most_ms', '')} | {row.get('compared', '')} "
            f"| {row.get('different', '')} |"
        )
    return found


def main() -> None:
    """Measures, shows, writes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--show", type=Path, help="only print the table of this file")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--problems", type=int, default=60)
    parser.add_argument("--solved", type=int, default=6, help="by CP-SAT, too: of each case")
    given = parser.parse_args()
    if given.show:
        print("\n".join(lines(json.loads(given.show.read_text())["rows"])))
        return
    rows = [measure(case, given.problems, given.repeats, given.solved) for case in CASES]
    print("\n".join(lines(rows)))
    if given.json:
        write(given.json, {**about(), "rows": rows})


if __name__ == "__main__":
    main()
