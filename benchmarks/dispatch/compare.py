#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""All dispatchers on the same instances in one run, as JSON and as a Markdown table.

`compare.py [--instances DIR] [--policies LIST] [--seeds N] [--clock] [--json FILE]`; without a
list: the papers' three at one second, the same with windows of jobs that need not fit now, two of
these with a better initial order, `search` at 50 ms and at one second, and the greedy ones.

Budgets are of counted work, so that results are the same on any machine at any load, and the
times are CPU times; `--clock` uses wall-clock budgets, with each solver in a separate process, and
needs an idle machine. With several seeds the interval is that of Student at 95 % over
the seeds' means. `--table FILE` only shows a file; `--merge FILE...` combines runs with different
seeds or policies.
"""

import argparse
import json
import math
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))

from about import about

HERE = Path(__file__).resolve().parent
PROGRAM = (sys.executable, "-m", "bridge.cli.main")
POLICIES = (
    "easy",
    "conservative",
    str(HERE / "shortest-first.yaml"),
    str(HERE / "slowdown-first.yaml"),
    "pcp19@1000",
    "hcp19@1000",
    "pcp20@1000",
    f"{HERE / 'pcp19-wide.yaml'}@1000",
    f"{HERE / 'hcp19-wide.yaml'}@1000",
    f"{HERE / 'pcp20-wide.yaml'}@1000",
    f"{HERE / 'hcp19-shortest.yaml'}@1000",
    f"{HERE / 'pcp20-shortest.yaml'}@1000",
    "search@50",
    "search@1000",
)
STUDENT = {
    1: 12.706,
    2: 4.303,
    3: 3.182,
    4: 2.776,
    5: 2.571,
    6: 2.447,
    7: 2.365,
    8: 2.306,
    9: 2.262,
}
"""Two-sided 95 % quantiles, by degrees of freedom."""
SAME = 1 + 1e-6


def main() -> None:
    """Runs the comparison, or shows one."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--instances", type=Path)
    parser.add_argument("--policies", default=",".join(POLICIES))
    parser.add_argument("--objective", default="slowdown")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--clock", action="store_true")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--table", type=Path)
    parser.add_argument("--merge", type=Path, nargs="+")
    options = parser.parse_args()
    if options.table:
        print(markdown(json.loads(options.table.read_text())))
        return
    if options.merge:
        parts = [json.loads(path.read_text()) for path in options.merge]
        policies = {one["policy"]: one for part in parts for one in part["policies"]}
        results = [one for part in parts for one in part["results"]]
        found = {**parts[0], "policies": list(policies.values()), "results": results}
    else:
        found = run(options)
    if options.json:
        options.json.write_text(compact(found))
    print(markdown(found))


def run(options: argparse.Namespace) -> dict[str, Any]:
    """One run of all policies for each seed."""
    found: dict[str, Any] = {}
    for seed in range(options.first_seed, options.first_seed + options.seeds):
        command = [*PROGRAM, "lab", "compare", "--json", "--policies", options.policies]
        command += ["--objective", options.objective, "--seed", str(seed)]
        command += [] if options.clock else ["--work"]
        command += ["--instances", str(options.instances)] if options.instances else []
        done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True)
        if done.returncode:
            sys.exit(done.returncode)
        part = json.loads(done.stdout)
        results = [{**one, "seed": seed} for one in part["results"]]
        if not found:
            found = {
                **about(),
                "objective": part["objective"],
                "budgets": "by the clock" if options.clock else "of work",
                "machine": part["machine"],
                "policies": [
                    {"policy": one["name"], "budget_ms": one.pop("budget_ms"), "spec": one}
                    for one in part["policies"]
                ],
                "results": [],
            }
        found["results"] += results
        found["machine"]["after"] = part["machine"]["after"]
    return found


def compact(found: dict[str, Any]) -> str:
    """The result as JSON, one line for each of its parts."""
    parts = []
    for key, value in found.items():
        if isinstance(value, list):
            lines = ",\n ".join(json.dumps(one) for one in value)
            parts.append(f"{json.dumps(key)}: [\n {lines}\n]")
        else:
            parts.append(f"{json.dumps(key)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def relative(found: dict[str, Any], group: str) -> dict[str, dict[int, list[dict[str, Any]]]]:
    """The results of a group by policy and seed, each with its objective relative to the best."""
    best: dict[tuple[str, str], float] = {}
    own = [one for one in found["results"] if group in ("all", one["group"])]
    for one in own:
        key = one["group"], one["instance"]
        best[key] = min(best.get(key, math.inf), one[found["objective"]])
    table: dict[str, dict[int, list[dict[str, Any]]]] = {}
    for one in own:
        ratio = one[found["objective"]] / best[one["group"], one["instance"]]
        table.setdefault(one["policy"], {}).setdefault(one["seed"], []).append(
            {**one, "ratio": ratio}
        )
    return table


def interval(values: list[float]) -> str:
    """The mean, and half of its interval."""
    mean = statistics.fmean(values)
    if len(values) < 2:
        return f"{mean:.3f}"
    off = STUDENT[len(values) - 1] * statistics.stdev(values) / math.sqrt(len(values))
    return f"{mean:.3f} ± {off:.3f}"


def markdown(found: dict[str, Any]) -> str:
    """One table per group of instances."""
    lines = []
    time = "decision_ms" if found["budgets"] == "by the clock" else "cpu_ms"
    for group in ("all", *sorted({one["group"] for one in found["results"]})):
        table = relative(found, group)
        count = len(
            {one["instance"] for seeds in table.values() for one in next(iter(seeds.values()))}
        )
        lines += [f"{group}, {count} instances", ""]
        lines += [
            f"| policy | {found['objective']} | relative | seeds | best of | {time} | max | |",
            "|---|---|---|---|---|---|---|---|",
        ]
        for name, seeds in table.items():
            every = [one for part in seeds.values() for one in part]
            means = [statistics.fmean(one["ratio"] for one in part) for part in seeds.values()]
            best_of = statistics.fmean(
                sum(one["ratio"] <= SAME for one in part) for part in seeds.values()
            )
            why: dict[str, int] = {}
            for one in next(iter(seeds.values())):
                reason = "failed" if one["failed"] else one["fallback"]
                if reason:
                    why[reason] = why.get(reason, 0) + 1
            lines.append(
                f"| {name} | {statistics.fmean(one[found['objective']] for one in every):.2f} | "
                f"{interval(means)} | {len(seeds)} | {best_of:.0f} | "
                f"{statistics.fmean(one[time] for one in every):.0f} | "
                f"{max(one[time] for one in every):.0f} | "
                f"{', '.join(f'{n} {reason}' for reason, n in why.items())} |"
            )
        lines.append("")
    machine = found["machine"]
    before, after = (machine[when]["load_average"][0] for when in ("before", "after"))
    lines.append(
        f"Budgets {found['budgets']}; {machine['before']['cpus']} CPUs, load average {before}"
        f" before, {after} after."
    )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
