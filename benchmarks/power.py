# SPDX-License-Identifier: Apache-2.0
"""Policies in a corridor of power: the paper's experiment, and a month of a real log.

Usage: benchmarks/power.py paper [--seeds N] [--policies NAME,...] [--json FILE] [--plot FILE]
       benchmarks/power.py month LOG [--days N] [--malleable PERCENT] [--power-down SECONDS]
                                 [--policies NAME,...] [--json FILE]
       benchmarks/power.py --show FILE      only prints the table of this file

paper   `bench.py power`, with the origin of its figures.
month   N days of a log. The upper bound is 80 % of the peak of static
        backfill without a bound, 60 % each night and for a longer time once a week (`NIGHT`,
        `WEEK`), all announced. Jobs that could never start, because they draw more than any period
        of their time limit allows, are left out for every policy, and counted. With `--malleable`,
        this share of the jobs can change their width (`bridge.lab.sim.workloads.malleable_jobs`).
        With `--power-down`, idle nodes can be powered down, and need this time to power up.
"""

import argparse
import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from about import ROOT, about
from policy_bench.power import JobSource, entries, lines, outcome_of, run_on, summary
from results_file import write

from bridge.extensions.power.rules import NodePower
from bridge.lab.report.line_styles import LINE_COLOURS
from bridge.lab.report.power_plot import draw_power
from bridge.lab.sim.corridor.power import PowerSetting
from bridge.lab.sim.corridor.steps import CorridorStep, CorridorSteps
from bridge.lab.sim.runs.engine import simulate
from bridge.lab.sim.runs.power_options import POWER_PAPER, PowerOptions, end_s
from bridge.lab.sim.workloads.job_power import by_application
from bridge.lab.sim.workloads.malleable_jobs import with_malleable
from bridge.lab.sim.workloads.swf import read_swf
from bridge.lab.sim.workloads.system import pool_of
from bridge.lab.sim.workloads.workload import Workload, workload_from
from bridge.model.rules.node_set import NodeSet
from bridge.registry import PRESETS, build
from bridge.safe_cycle.decider import Decider

DAY_S, HOUR_S = 86_400, 3600
NODE = NodePower("node", NodeSet(), idle_w=100, max_w=350)
ERROR = 0.1
USUAL, REDUCED = 0.8, 0.6
NIGHT = (20, 24)
"""Hours of each day, from the start, in which demand is to be reduced."""
WEEK = (2, 8, 20)
"""Day of the week from the start, and hours of it."""
POLICIES = "static,hold,conservative,power-plan"


def paper(given: argparse.Namespace) -> dict:
    """The paper's experiment, by the command."""
    command = [sys.executable, str(ROOT / "benchmarks" / "bench.py"), "power", "--json"]
    command += ["--seeds", str(given.seeds)]
    if given.policies:
        command += ["--policies", given.policies]
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(done.returncode)
    found: dict = json.loads(done.stdout)
    if given.plot:
        plot(given.plot, given.policies, given.seed)
    return found


def plot(path: Path, policies: str | None, seed: int) -> None:
    """System power over time of one seed, a panel for each policy."""
    workload, setting = JobSource(POWER_PAPER, PowerOptions(sensors=True)).drawn(seed)
    chosen = entries(policies)
    with mpl.rc_context({"svg.hashsalt": "power", "svg.fonttype": "none"}):
        figure, panels = plt.subplots(
            len(chosen), 1, figsize=(9, 2.2 * len(chosen)), layout="constrained", sharex=True
        )
        for axes, entry in zip(np.atleast_1d(panels), chosen, strict=True):
            outcome, _ = outcome_of(workload, setting, entry, seed)
            last_s = end_s(outcome)
            powers = [(entry.name, outcome.power.until(last_s))]
            span_s = outcome.power.origin_s, last_s
            styles = [(LINE_COLOURS[0], ())]
            bounds = outcome.power.bounds
            draw_power(axes, powers, bounds, span_s, scale_s=1, styles=styles)
            axes.set_title(entry.name, loc="left", fontsize=10)
            axes.set_ylabel("W")
            axes.spines[["top", "right"]].set_visible(False)
        np.atleast_1d(panels)[-1].set_xlabel("time since the first submission, s")
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def month(given: argparse.Namespace) -> dict:
    """A month of a log under every policy."""
    workload = days(workload_from(read_swf(given.log)), given.first_day, given.days)
    jobs = by_application(workload.executable, workload.user, NODE, error=ERROR, seed=given.seed)
    workload = replace(workload, power=jobs)
    peak_w = peak(workload, PowerSetting(jobs, NODE))
    steps = corridor(peak_w, given.days + 60)
    kept = startable(workload, steps)
    left_out = int((~kept).sum())
    workload = only(workload, kept)
    if given.malleable:
        workload = with_malleable(workload, given.malleable, seed=given.seed)
    setting = PowerSetting(
        workload.power, NODE, steps, sensors=True, seed=given.seed, resume_s=given.power_down
    )
    runs = []
    for entry in entries(",".join(there(given.policies or POLICIES))):
        began_s = time.perf_counter()
        run = run_on(workload, setting, entry, given.seed, Path(given.log).name.partition("-")[0])
        runs.append({**run, "took_s": round(time.perf_counter() - began_s, 1)})
        print(json.dumps(runs[-1]), file=sys.stderr)
    return {
        "log": Path(given.log).name,
        "days": given.days,
        "first_day": given.first_day,
        "jobs": len(workload),
        "never_startable": left_out,
        "malleable_percent": given.malleable,
        "resume_s": given.power_down,
        "node": {"idle_w": NODE.idle_w, "max_w": NODE.max_w},
        "error": ERROR,
        "peak_w": peak_w,
        "usual_w": steps.steps[0].upper_w,
        "reduced_w": int(REDUCED * peak_w),
        "runs": runs,
        "summary": summary(runs),
    }


def there(policies: str) -> list[str]:
    """The policies that this version has."""
    wanted = policies.split(",")
    needs = {"scenario-2": "malleable-power", "scenario-3": "malleable-power",
             "power-plan": "power-plan"}  # fmt: skip
    return [name for name in wanted if needs.get(name, DEFAULT) in PRESETS]


DEFAULT = "conservative"


def days(workload: Workload, first: int, count: int) -> Workload:
    """The jobs that are submitted within some days of the log."""
    since_s = workload.submit_s - workload.submit_s[0]
    return only(workload, (since_s >= first * DAY_S) & (since_s < (first + count) * DAY_S))


def only(workload: Workload, kept: np.ndarray) -> Workload:
    """Some of the jobs."""
    rows = np.flatnonzero(kept)
    order = np.concatenate((rows, np.flatnonzero(~kept)))
    columns = {
        name: getattr(workload, name)[order]
        for name in (
            "id", "submit_s", "runtime_s", "time_limit_s", "processors", "memory_kib",
            "user", "group", "executable", "queue", "row",
        )
    }  # fmt: skip
    power = workload.power
    if power is not None:
        power = replace(
            power, draw_w=power.draw_w[order], min_w=power.min_w[order], max_w=power.max_w[order]
        )
    return replace(workload, **columns, power=power).first(len(rows))


def peak(workload: Workload, setting: PowerSetting) -> int:
    """The largest system power under static backfill, W."""
    decide = Decider(build(PRESETS[DEFAULT])).decide
    outcome = simulate(workload, pool_of(workload.processors_total), decide, power=setting)
    return int(outcome.power.power_w.max())


def corridor(peak_w: int, n_days: int) -> CorridorSteps:
    """The upper bound over time; every change is announced."""
    windows = []
    for day in range(n_days):
        hours = NIGHT if day % 7 != WEEK[0] else (min(NIGHT[0], WEEK[1]), max(NIGHT[1], WEEK[2]))
        windows.append([day * DAY_S + hour * HOUR_S for hour in hours])
    usual_w, reduced_w = int(USUAL * peak_w), int(REDUCED * peak_w)
    steps = [CorridorStep(0, 0, usual_w, announced=True)]
    for from_s, to_s in windows:
        steps.append(CorridorStep(from_s, 0, reduced_w, announced=True))
        steps.append(CorridorStep(to_s, 0, usual_w, announced=True))
    return CorridorSteps(tuple(steps))


def startable(workload: Workload, steps: CorridorSteps) -> np.ndarray:
    """Jobs that could run alone, by their stated powers, at some time within the bounds."""
    idle_w = NODE.idle_w * workload.processors_total
    need_w = idle_w + workload.processors * (workload.power.max_w - NODE.idle_w)
    starts = [step.at_s for step in steps.steps]
    gap_s = max(
        later - at for at, later, step in zip(starts, starts[1:], steps.steps, strict=False)
        if step.upper_w == steps.steps[0].upper_w
    )  # fmt: skip
    reduced_w = min(step.upper_w for step in steps.steps)
    within = (need_w <= steps.steps[0].upper_w) & (workload.time_limit_s <= gap_s)
    return within | (need_w <= reduced_w)


def main() -> None:
    """Measures, shows, writes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="?", choices=("paper", "month"))
    parser.add_argument("log", nargs="?", type=Path)
    parser.add_argument("--show", type=Path, help="only print the table of this file")
    parser.add_argument("--json", type=Path, help="write every figure here")
    parser.add_argument("--seeds", type=int, default=20, help="[%(default)s]")
    parser.add_argument("--seed", type=int, default=0, help="of a month [%(default)s]")
    parser.add_argument("--days", type=int, default=30, help="of a log [%(default)s]")
    parser.add_argument("--first-day", type=int, default=0, help="of a log [%(default)s]")
    parser.add_argument(
        "--malleable", type=float, default=0.0, help="percent of a month's jobs [%(default)s]"
    )
    parser.add_argument(
        "--power-down", type=int, default=0, metavar="SECONDS",
        help="idle nodes of a month can be powered down, and take so long to come back",
    )  # fmt: skip
    parser.add_argument("--policies")
    parser.add_argument("--plot", type=Path, help="of the paper's experiment, with one seed")
    given = parser.parse_args()
    if given.show:
        found = json.loads(given.show.read_text())
        shown = month_lines(found) if "log" in found else lines(found["summary"])
        print("\n".join(shown))
        return
    if given.what is None or (given.what == "month" and given.log is None):
        parser.error("give paper, or month and a log")
    found = paper(given) if given.what == "paper" else month(given)
    if given.json:
        write(given.json, {**about(), **found})
    print("\n".join(month_lines(found) if "log" in found else lines(found["summary"])))


def month_lines(found: dict) -> list[str]:
    """The table of a month."""
    rows = [
        "| policy | above, times | above, h | avoidable, h | mean wait, h | mean response, h"
        " | makespan, d | energy, MWh | never started | failed cycles |",
        "|---|" + "---:|" * 9,
    ]
    for run in found["runs"]:
        cells = [
            run["policy"], str(run["upper_violations"]), f"{run['upper_s'] / 3600:.2f}",
            f"{run['upper_avoidable_s'] / 3600:.2f}", f"{run['wait_s'] / 3600:.2f}",
            f"{run['response_s'] / 3600:.2f}", f"{run['makespan_s'] / DAY_S:.1f}",
            f"{run['energy_kwh'] / 1000:.2f}", str(run["unfinished"]),
            str(run["failures"]),
        ]  # fmt: skip
        rows.append("| " + " | ".join(cells) + " |")
    return rows


if __name__ == "__main__":
    main()
