# SPDX-License-Identifier: Apache-2.0
"""Tables of the experiment on the cluster: mean over runs, and the least and the most.

A job's time alone is the mean of jobs of the same stage and width under `easy`, by the wall time
that they print. Stages of less than `LEAST_S` alone are left out of slowdowns.
"""

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from cluster_bench.figures import percentile

ALONE: Final = "easy"
LEAST_S: Final = 2.0
BOUND: Final = 0.1

PAPER: Final[Mapping[str, Mapping[str, tuple[float, ...]]]] = {
    "wait_s": {ALONE: (3.5, 1.5, 0.5), "static-half": (1.7, 0.8, 0.3), "asax": (1.8, 1.0, 0.3)},
    "response_s": {ALONE: (4.4, 2.4, 1.4), "static-half": (4.8, 2.8, 2.0), "asax": (3.5, 2.0, 0.9)},
    "cpu": {ALONE: (53, 45, 32), "static-half": (90, 92, 89), "asax": (82, 84, 83)},
}
"""Table 3 on 64, 128 and 256 cores, with the lost +- signs restored: h, h, %."""

Entry = Mapping[str, Any]


def lines(found: Mapping[str, Any], table: str = "policies") -> Sequence[str]:
    """A table as lines of Markdown."""
    runs = [run for run in found["runs"] if "error" not in run]
    return TABLES[table](runs)


def in_short(run: Entry) -> str:
    """One run in a line."""
    return (
        f"{run['policy']}: makespan {run['makespan_s']} s, wait {run['wait_s']} s, "
        f"CPU {100 * run['cpu']:.0f} %, {run['guests']} guests, {run['requeued']} requeued, "
        f"right {run['right']} of {run['count']}"
    )


def alone_s(runs: Iterable[Entry], column: str = "wall_s") -> dict[tuple[str, str, int], float]:
    """Wall or CPU time alone, by workflow, stage and nodes."""
    found = defaultdict(list)
    for run in runs:
        for job in run["jobs"] if run["policy"] == ALONE else ():
            found[_key(job)].append(job[column])
    return {key: statistics.mean(each) for key, each in found.items()}


def slowdowns(run: Entry, alone: Mapping[tuple[str, str, int], float], role: str) -> list[float]:
    """Of the jobs of a run with a role (`host`, `guest`, empty: all), beyond their time alone."""
    return [
        job["wall_s"] / alone[_key(job)] - 1
        for job in run["jobs"]
        if (not role or job[role]) and job["right"] and alone.get(_key(job), 0.0) >= LEAST_S
    ]


def _key(job: Entry) -> tuple[str, str, int]:
    return job["kind"], job["stage"], job["nodes"]


def _by_policy(runs: Sequence[Entry]) -> dict[str, list[Entry]]:
    found: dict[str, list[Entry]] = {}
    for run in runs:
        found.setdefault(run["policy"], []).append(run)
    return found


def _policies(runs: Sequence[Entry]) -> list[str]:
    alone = alone_s(runs)

    def cell(group: Sequence[Entry], value: Callable[[Entry], float], digits: int = 0) -> str:
        values = [value(run) for run in group]
        mean = statistics.mean(values)
        return f"{mean:.{digits}f} ({min(values):.{digits}f}-{max(values):.{digits}f})"

    made = [
        "| policy | runs | wait, s | response, s | makespan, s | CPU, % | memory, MiB | guests "
        "| requeued | all jobs slower, % | right |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for policy, group in _by_policy(runs).items():
        right, count = (sum(run[key] for run in group) for key in ("right", "count"))
        slower = cell(group, lambda run: 100 * _mean(slowdowns(run, alone, "")), 1)
        made.append(
            f"| {policy} | {len(group)} | {cell(group, lambda run: run['wait_s'])} "
            f"| {cell(group, lambda run: run['response_s'])} "
            f"| {cell(group, lambda run: run['makespan_s'])} "
            f"| {cell(group, lambda run: 100 * run['cpu'])} "
            f"| {cell(group, lambda run: run['memory_mib'])} "
            f"| {cell(group, lambda run: run['guests'])} "
            f"| {cell(group, lambda run: run['requeued'])} "
            f"| {slower if alone else '-'} "
            f"| {right} of {count} |"
        )
    return made


def _workflows(runs: Sequence[Entry]) -> list[str]:
    """Slowdown of hosts by workflow."""
    alone = alone_s(runs)
    kinds = sorted({job["kind"] for run in runs for job in run["jobs"]})
    made = [
        f"| policy | {' | '.join(kinds)} | all hosts | above 10 % |",
        "|---|" + "---:|" * (len(kinds) + 2),
    ]
    for policy, group in _by_policy(runs).items():
        role = "" if policy == ALONE else "host"
        cells = []
        for kind in kinds:
            own = [
                {**run, "jobs": [job for job in run["jobs"] if job["kind"] == kind]}
                for run in group
            ]
            found = [value for run in own for value in slowdowns(run, alone, role)]
            cells.append(f"{100 * _mean(found):+.1f} % of {len(found)}" if found else "-")
        every = [value for run in group for value in slowdowns(run, alone, role)]
        above = sum(value > BOUND for value in every)
        cells.append(f"{100 * _mean(every):+.1f} %" if every else "-")
        made.append(f"| {policy} | {' | '.join(cells)} | {above} of {len(every)} |")
    return made


def _cpu(runs: Sequence[Entry]) -> list[str]:
    """Hosts that were nobody's guest: wall time, CPU time, and wall time per CPU time."""
    alone, alone_cpu = alone_s(runs), alone_s(runs, "cpu_s")
    made = [
        "| policy | hosts | wall time: median | most | CPU time: median | most "
        "| wall time per CPU time: median | most |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for policy, group in _by_policy(runs).items():
        found = [
            (job["wall_s"] / alone[_key(job)], job["cpu_s"] / alone_cpu[_key(job)])
            for run in group
            for job in run["jobs"]
            if job["host"] and not job["guest"] and alone.get(_key(job), 0.0) >= LEAST_S
        ]
        columns = [[a for a, _ in found], [b for _, b in found], [a / b for a, b in found]]
        cells = [
            f"{100 * (each(column) - 1):+.0f} %"
            for column in columns if column
            for each in (statistics.median, max)
        ]  # fmt: skip
        made.append(f"| {policy} | {len(found)} | {' | '.join(cells or ['-'] * 6)} |")
    return made


def _harm(runs: Sequence[Entry]) -> list[str]:
    """Guests, and how long those that were put back had been beside their hosts."""
    made = [
        "| policy | guests | beside hosts, s in a run | put back | after s: median | most |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for policy, group in _by_policy(runs).items():
        pairs = [pair for run in group for pair in run["pairs"]]
        after_s = [pair["beside_s"] for pair in pairs if pair["requeued"]]
        cells = [f"{percentile(after_s, 50):.1f}", f"{max(after_s):.1f}"] if after_s else ["-", "-"]
        made.append(
            f"| {policy} | {len(pairs)} | {_mean([run['pair_s'] for run in group]):.0f} "
            f"| {len(after_s)} | {' | '.join(cells)} |"
        )
    return made


def _paper(runs: Sequence[Entry]) -> list[str]:
    """Relative to exclusive nodes, as measured and in the paper's Table 3 on its three clusters."""
    made = [
        "| policy | wait | paper's | response | paper's | CPU, % | paper's |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    groups = _by_policy(runs)
    if ALONE not in groups:
        return made
    for policy, group in groups.items():
        cells = []
        for name, theirs in PAPER.items():
            scale = 100 if name == "cpu" else 1 / _mean([run[name] for run in groups[ALONE]])
            digits = 0 if name == "cpu" else 2
            cells.append(f"{scale * _mean([run[name] for run in group]):.{digits}f}")
            base = (1.0,) * 3 if name == "cpu" else theirs[ALONE]
            ratios = [a / b for a, b in zip(theirs.get(policy, ()), base, strict=False)]
            cells.append(", ".join(f"{ratio:.{digits}f}" for ratio in ratios) or "-")
        made.append(f"| {policy} | {' | '.join(cells)} |")
    return made


TABLES: Final = {
    "policies": _policies, "paper": _paper, "workflows": _workflows, "cpu": _cpu, "harm": _harm,
}  # fmt: skip


def _mean(values: Sequence[float]) -> float:
    return statistics.mean(values) if values else 0.0
