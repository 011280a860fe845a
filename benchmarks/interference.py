# SPDX-License-Identifier: Apache-2.0
"""Measures how the workflows of examples/workloads slow each other down on one node.

Usage: benchmarks/interference.py [--repeats N] [--seed N] [--also FILE] [--json FILE]
           [--model FILE]
       benchmarks/interference.py --show FILE [--table pairs|alone|fit|harm]

Each workflow runs alone, and as host with each workflow as guest, which is repeated until the host
has ended; the guest has a quota of 10, 25, 50 or 75 % of the CPUs, none (free), or none with the
lowest weight. Both use all CPUs of this machine. They are in cgroups (v1 or v2) below one whose
weight is 32 times that of any other process, so that other load affects them less. Each repeat runs
all cases once, in random order. It needs root, and 4 minutes per repeat. `--also` adds the runs of
an earlier session, each relative to its own session's runs alone.

`slowdowns` are the times of all stages of the host divided by the median alone; the table shows the
median, the minimum and the maximum. `host_cpus` is the CPU time of these stages divided by that
alone, `guest_cpus` the CPU time of the guest, as a share of the CPUs.

Then the model of `bridge.lab.sim.sharing` is fitted (`interference_bench/fit.py`), its error is
reported, also for pairs that it was not fitted to, and it is written as a file for
`--interference`.
"""

import argparse
import json
import os
import random
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from about import ROOT, about
from interference_bench import fit
from interference_bench.groups import Groups
from interference_bench.pairs import NAMES, SETTINGS, SIZES, Node, Run, Setting
from results_file import write

Case = tuple[str, str | None, Setting | None]


def measure(repeats: int, seed: int) -> dict[Case, list[Run]]:
    """All cases, several times each."""
    cases: list[Case] = [(name, None, None) for name in NAMES for _ in range(3)]
    cases += [(host, guest, each) for host in NAMES for guest in NAMES for each in SETTINGS]
    found: dict[Case, list[Run]] = {}
    rng = random.Random(seed)
    (ROOT / "build").mkdir(exist_ok=True)
    with Groups() as groups:
        node = Node(groups)
        for name in NAMES:
            node.run(name)  # fills caches
        for repeat in range(repeats):
            rng.shuffle(cases)
            for case in cases:
                found.setdefault(case, []).append(node.run(*case))
            print(f"repeat {repeat + 1} of {repeats}: done", file=sys.stderr)
    return found


def median(values: Sequence[float]) -> float:
    """Rounded to milliseconds or permille."""
    return round(float(np.median(values)), 4)


def tables(
    found: Mapping[Case, Sequence[Run]],
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Rows of workflows alone, and of pairs."""
    alone, pairs = [], []
    memory_mib = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**20
    base = {name: median([r.wall_s for r in found[name, None, None]]) for name in NAMES}
    base_cpu = {name: median(list(map(_stage_cpu_s, found[name, None, None]))) for name in NAMES}
    for name in NAMES:
        runs = found[name, None, None]
        alone.append(
            {
                "workflow": name,
                "size": SIZES[name][0],
                "times": SIZES[name][1],
                "runs": len(runs),
                **{
                    key: median([getattr(run, key) for run in runs])
                    for key in ("wall_s", "elapsed_s", "cpu_s", "written", "memory_mib")
                },
                "least": round(min(run.wall_s for run in runs) / base[name], 3),
                "most": round(max(run.wall_s for run in runs) / base[name], 3),
                "node_memory_mib": round(memory_mib),
                "stages": [
                    {
                        "stage": stage,
                        "cores": runs[0].stages[stage][0],
                        "wall_s": median([run.stages[stage][1] for run in runs]),
                        "cpu_s": median([run.stages[stage][2] for run in runs]),
                    }
                    for stage in runs[0].stages
                ],
            }
        )
    cpus = len(os.sched_getaffinity(0))
    for (host, guest, setting), runs in sorted(found.items(), key=_by_name):
        if guest is None or setting is None:
            continue
        slowdown = [run.wall_s / base[host] for run in runs]
        pairs.append(
            {
                "host": host,
                "guest": guest,
                "setting": setting.name,
                "slowdowns": [round(each, 3) for each in slowdown],
                "host_cpus": [round(_stage_cpu_s(r) / base_cpu[host], 3) for r in runs],
                "guest_cpus": [round(r.guest_cpu_s / r.elapsed_s / cpus, 3) for r in runs],
            }
        )
    return alone, pairs


def _stage_cpu_s(run: Run) -> float:
    """CPU time of all stages."""
    return sum(cpu_s for _, _, cpu_s in run.stages.values())


def together(one: dict[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Two sessions as one: all runs of pairs, each relative to its own session's runs alone.

    Figures of applications alone are averaged.
    """
    alone = []
    for row, also in zip(one["alone"], other["alone"], strict=True):
        stages = [_mean(a, b) for a, b in zip(row["stages"], also["stages"], strict=True)]
        alone.append({**_mean(row, also), "runs": row["runs"] + also["runs"], "stages": stages})
    pairs = [
        {
            **row,
            **{
                key: also.get(key, []) + row[key]
                for key in ("slowdowns", "host_cpus", "guest_cpus")
            },
        }
        for row, also in zip(one["pairs"], other["pairs"], strict=True)
    ]
    sessions = [*other["sessions"], *one["sessions"]]
    return {**one, "sessions": sessions, "alone": alone, "pairs": pairs}


def _mean(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Means of the measurements; texts and integers are those of the first."""
    return {
        key: round((value + other[key]) / 2, 4) if isinstance(value, float) else value
        for key, value in one.items()
    }


def _by_name(item: tuple[Case, object]) -> tuple[int, int, int]:
    host, guest, setting = item[0]
    if guest is None or setting is None:
        return NAMES.index(host), -1, -1
    return NAMES.index(host), NAMES.index(guest), SETTINGS.index(setting)


def fitted(
    alone: Sequence[Mapping[str, Any]], pairs: Sequence[Mapping[str, Any]], cpus: int
) -> tuple[dict[str, Any], "fit.Interference"]:
    """The model of these rows, and its errors."""
    profiles = {
        row["workflow"]: fit.profile(row["workflow"], row, row["stages"], cpus) for row in alone
    }
    settings = {setting.name: setting for setting in SETTINGS}
    measured = [
        fit.Measured(
            row["host"],
            row["guest"],
            settings[row["setting"]],
            median(row["slowdowns"]),
            median(row["guest_cpus"]),
        )
        for row in pairs
    ]
    parameters = fit.fit(profiles, measured)
    none = np.zeros_like(parameters)
    rows = []
    for name, found in (
        ("without interference", fit.errors(profiles, measured, none)),
        ("fitted", fit.errors(profiles, measured, parameters)),
        ("pair left out", fit.left_out(profiles, measured)),
    ):
        size = np.abs(found)
        rows.append(
            {
                "model": name,
                "median_percent": round(100 * float(np.median(size)), 1),
                "p90_percent": round(100 * float(np.quantile(size, 0.9)), 1),
                "most_percent": round(100 * float(size.max()), 1),
                "mean_percent": round(100 * float(found.mean()), 1),
            }
        )
    count = len(profiles)
    made = fit.applications(profiles, parameters)
    guests = [
        fit.predicted(profiles[p.host], profiles[p.guest], made, p.setting)[1] - p.guest_cpu
        for p in measured
    ]
    facts = {
        "errors": rows,
        "guest_cpu_error": round(float(np.median(np.abs(guests))), 3),
        "disk": float(parameters[-1]),
        "parameters": [
            {
                "workflow": name,
                "pressure": float(parameters[at]),
                "sensitivity": float(parameters[count + at]),
            }
            for at, name in enumerate(profiles)
        ],
    }
    return facts, fit.model(profiles, parameters, "measured by benchmarks/interference.py")


def show(found: Mapping[str, Any], table: str) -> list[str]:
    """A table of the documents."""
    if table == "pairs":
        names = [setting.name for setting in SETTINGS]
        lines = [f"| host | guest | {' | '.join(names)} |", "|---|---|" + "---:|" * len(names)]
        cells: dict[tuple[str, str], list[str]] = {}
        for row in found["pairs"]:
            seen = row["slowdowns"]
            text = f"{median(seen):.2f} ({min(seen):.2f}-{max(seen):.2f})"
            cells.setdefault((row["host"], row["guest"]), []).append(text)
        return lines + [f"| {' | '.join((*key, *row))} |" for key, row in cells.items()]
    if table == "harm":
        return _harm(found["pairs"])
    if table == "alone":
        lines = ["| workflow | stage | share | CPUs of it busy |", "|---|---|---:|---:|"]
        for row in found["alone"]:
            for stage in row["stages"]:
                share = stage["wall_s"] / row["wall_s"]
                busy = stage["cpu_s"] / max(stage["wall_s"] * stage["cores"], 1e-9)
                if share >= 0.01:
                    lines.append(
                        f"| {row['workflow']} | {stage['stage']} | {share:.2f} | {busy:.2f} |"
                    )
        return lines
    lines = [
        "| model | error: median | 90 % | most | mean with sign |",
        "|---|---:|---:|---:|---:|",
    ]
    for row in found["fit"]["errors"]:
        lines.append(
            f"| {row['model']} | {row['median_percent']:.1f} % | {row['p90_percent']:.1f} % "
            f"| {row['most_percent']:.1f} % | {row['mean_percent']:+.1f} % |"
        )
    return lines


def _load(facts: Mapping[str, Any]) -> list[float]:
    found: list[float] = facts["machine"]["load_average"]
    return found


def _harm(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """How much hosts are slowed down, and what guests get, over all pairs of each setting."""
    lines = [
        "| guest's quota | hosts slower: median | most | pairs above 10 % | guest's CPUs |",
        "|---|---:|---:|---:|---:|",
    ]
    for setting in SETTINGS:
        own = [row for row in rows if row["setting"] == setting.name]
        slower = [100 * (median(row["slowdowns"]) - 1) for row in own]
        guests = 100 * float(np.median([median(row["guest_cpus"]) for row in own]))
        lines.append(
            f"| {setting.name} | {float(np.median(slower)):.0f} % | {max(slower):.0f} % "
            f"| {sum(each > 10 for each in slower)} of {len(own)} | {guests:.0f} % |"
        )
    return lines


def main() -> None:
    """Measures and fits, or shows a file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3, help="of all cases [3]")
    parser.add_argument("--seed", type=int, default=0, help="of the order [0]")
    parser.add_argument("--json", type=Path, help="write the figures there")
    parser.add_argument("--also", type=Path, metavar="FILE", help="add an earlier session")
    parser.add_argument("--model", type=Path, help="write the model there")
    parser.add_argument("--show", type=Path, metavar="FILE", help="show these figures")
    parser.add_argument("--table", choices=("pairs", "alone", "fit", "harm"), default="pairs")
    options = parser.parse_args()
    if options.show:
        print("\n".join(show(json.loads(options.show.read_text()), options.table)))
        return
    if options.repeats < 1:
        parser.error("--repeats is at least 1")
    if os.geteuid():
        parser.error("it needs root, for cgroups")
    alone, pairs = tables(measure(options.repeats, options.seed))
    facts = about()
    session = {"date": facts["date"], "repeats": options.repeats, "load": _load(facts)}
    result: dict[str, Any] = {**facts, "sessions": [session], "alone": alone, "pairs": pairs}
    if options.also:
        result = together(result, json.loads(options.also.read_text()))
    found, made = fitted(result["alone"], result["pairs"], len(os.sched_getaffinity(0)))
    result["fit"] = found
    if options.json:
        write(options.json, result)
    if options.model:
        options.model.write_text(json.dumps(made.as_value(), indent=1) + "\n")
    for table in ("alone", "pairs", "fit"):
        print("\n".join(show(result, table)), end="\n\n")


if __name__ == "__main__":
    main()
