#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Predicted run times under EASY, `search` and two dispatchers, on whole logs and parts of logs.

    benchmarks/predictions.py DIRECTORY [--part NAME ...] [--log WORD] --json FILE
    benchmarks/predictions.py --show FILE

Runs `lab simulate` for each case of the parts below, and writes the file after each; cases
that the file has are not repeated. Simulations of EASY alone and those bounded by effort give the
same waits on any machine; times of decisions are wall time.

| part | is |
|---|---|
| easy | EASY on whole logs of a pool of processors, with each predictor and patience |
| shared | EASY on the whole of METACENTRUM, whose jobs share nodes of two kinds |
| beginning | EASY with each predictor on the parts that `search_loop.py` replays |
| nodes | `search` and EASY on the first jobs of METACENTRUM |
| dispatchers | EASY, `search`, `hcp19` and `pcp20` on the first 500 jobs of two logs |
| counted | the same on the first 300 jobs, with the time of decisions free and counted |
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from about import ROOT, about
from results_file import write

KTH, SDSC, CTC, HPC2N, METACENTRUM = (
    "KTH-SP2-1996-2.1-cln", "SDSC-SP2-1998-4.2-cln", "CTC-SP2-1996-3.1-cln", "HPC2N-2002-2.2-cln",
    "METACENTRUM-wagap-2013",
)  # fmt: skip
LEARNING = ("last-two", "name-history")
PREDICTORS = ("time-limit", *LEARNING, "oracle")
HOUR_S, DAY_S = 3600, 86_400
BOUNDED = {
    "search": {"name": "search", "budget_ms": 0, "effort": 20_000},
    "hcp19": {"name": "hcp19", "budget_ms": 0, "effort": 0.02},
    "pcp20": {"name": "pcp20", "budget_ms": 0, "effort": 0.3},
}
"""Plans bounded by counted work, not by the clock."""
KEPT = (
    "engine", "decisions", "decision_ms_mean", "decision_ms_p99", "wait_s_mean", "wait_s_p99",
    "wait_s_max", "bounded_slowdown_mean", "by_size", "run_times", "unfinished", "fell_back",
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A simulation.

    Attributes:
        part, log: of the table above; without its suffix.
        jobs: the first ones only; 0: all.
        preset, plan: the policy; with the preset's own plan if that is None.
        predict: the predictor.
        patience_s: its patience: "default", "none", or seconds.
        decision_time: `free` or `counted`.
        engine: of `schedbridge lab simulate`.
    """

    part: str
    log: str
    jobs: int
    preset: str
    predict: str
    patience_s: str = "default"
    plan: dict[str, Any] | None = None
    decision_time: str = "free"
    engine: str = "auto"

    def policy(self) -> dict[str, Any]:
        """As in a service's configuration."""
        predict: dict[str, Any] = {"name": self.predict}
        if self.patience_s != "default":
            predict["patience_s"] = None if self.patience_s == "none" else int(self.patience_s)
        plan = {} if self.plan is None else {"plan": self.plan}
        return {"preset": self.preset, "predict": predict, **plan}


def cases() -> Iterator[Case]:
    """All of them, the quickest logs first."""
    for log in (KTH, SDSC, CTC, HPC2N):
        yield from _easy("easy", log, DAY_S)
    for log, jobs in ((CTC, 12_000), (HPC2N, 20_000)):
        for predict in PREDICTORS:
            yield Case("beginning", log, jobs, "easy", predict)
    for log in (KTH, SDSC):
        for preset in ("easy", *BOUNDED):
            for predict in PREDICTORS:
                own = BOUNDED.get(preset)
                yield Case("dispatchers", log, 500, preset, predict, plan=own, engine="cycle")
    for preset, plan in BOUNDED.items():
        for predict in PREDICTORS[:2]:
            for decision_time in ("free", "counted"):
                yield Case(
                    "counted", KTH, 300, preset, predict, plan=plan, decision_time=decision_time,
                    engine="cycle",
                )  # fmt: skip
    for jobs in (5_000, 10_000):
        for preset, chosen in (("easy", None), ("search", {**BOUNDED["search"], "effort": 4_000})):
            yield Case("nodes", METACENTRUM, jobs, preset, "time-limit", plan=chosen)
    yield from _easy("shared", METACENTRUM, HOUR_S)


def _easy(part: str, log: str, patience_s: int) -> Iterator[Case]:
    """EASY on a whole log: each predictor, the learning ones with three kinds of patience."""
    for predict in PREDICTORS:
        for patience in ("default", str(patience_s), "none") if predict in LEARNING else [""]:
            yield Case(part, log, 0, "easy", predict, patience or "default")


def run(case: Case, directory: Path) -> dict[str, Any]:
    """Simulates a case."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as policy:
        policy.write(json.dumps(case.policy()))  # JSON is YAML
        policy.flush()
        command = [
            sys.executable, "-m", "bridge.cli.main", "lab", "simulate",
            str(directory / f"{case.log}.swf.gz"), "--json", "--policy", policy.name,
            "--decision-time", case.decision_time, "--engine", case.engine,
        ]  # fmt: skip
        command += ["--jobs", str(case.jobs)] if case.jobs else []
        if case.log == METACENTRUM:
            command += ["--system", str(ROOT / f"benchmarks/systems/{METACENTRUM}-used.yaml")]
        done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True)
    if done.returncode:  # it has reported the error on stderr
        sys.exit(done.returncode)
    told = json.loads(done.stdout)
    found = {key: told["results"][0].get(key) for key in KEPT}
    return {"case": asdict(case), "system": told["system"], "jobs": told["jobs"], **found}


def easy_table(runs: list[dict[str, Any]]) -> list[str]:
    """EASY on whole logs."""
    lines = [
        "| log | `predict` | mean wait, s | 99 % waited | longest wait | mean bounded slowdown "
        "| mean wait of wide jobs | mean error, s | median error, s | underestimated | accuracy |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    patience = {"default": "", "none": "… patience null", str(HOUR_S): "… an hour's patience",
                str(DAY_S): "… a day's patience"}  # fmt: skip
    log = ""
    for one in (each for each in runs if each["case"]["part"] in ("easy", "shared")):
        case, times = one["case"], one["run_times"]
        widest = one["by_size"][-1]["wait_s_mean"] / 3600
        title = patience[case["patience_s"]] or f"`{case['predict']}`"
        lines.append(
            f"| {case['log'] if case['log'] != log else ''} | {title} "
            f"| {one['wait_s_mean']:,.0f} | {one['wait_s_p99'] / 3600:.0f} h "
            f"| {one['wait_s_max'] / DAY_S:.1f} d | {one['bounded_slowdown_mean']:.1f} "
            f"| {widest:.1f} h | {times['off_s']['mean']:,.0f} | {times['off_s']['p50']:,.0f} "
            f"| {times['under']:.0%} | {times['accuracy']:.0%} |"
        )
        log = case["log"]
    return lines


def dispatchers_table(runs: list[dict[str, Any]]) -> list[str]:
    """Mean wait in s / bounded slowdown by predictor."""
    lines = [
        "| log | policy | " + " | ".join(f"`{name}`" for name in PREDICTORS)
        + " | a decision, ms | longest wait by limits, h |",
        "|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    own = [one for one in runs if one["case"]["part"] == "dispatchers"]
    for log in dict.fromkeys(one["case"]["log"] for one in own):
        for preset in ("easy", *BOUNDED):
            row = [
                one for one in own if (one["case"]["log"], one["case"]["preset"]) == (log, preset)
            ]
            known = {
                one["case"]["predict"]: f"{one['wait_s_mean']:,.0f} / "
                f"{one['bounded_slowdown_mean']:.1f}" for one in row
            }  # fmt: skip
            cells = [known.get(name, "–") for name in PREDICTORS]
            if row:
                lines.append(
                    f"| {log if preset == 'easy' else ''} | `{preset}` | {' | '.join(cells)} "
                    f"| {row[0]['decision_ms_mean']:.0f} | {row[0]['wait_s_max'] / 3600:.1f} |"
                )
    return lines


def counted_table(runs: list[dict[str, Any]]) -> list[str]:
    """Waits with the time of decisions free and counted."""
    lines = [
        "| policy | `predict` | free: mean wait, s | counted, s | bounded slowdown, counted |",
        "|---|---|---|---|---|",
    ]
    own = [one for one in runs if one["case"]["part"] == "counted"]
    for free, counted in zip(own[::2], own[1::2], strict=False):
        case = free["case"]
        lines.append(
            f"| `{case['preset']}` | `{case['predict']}` | {free['wait_s_mean']:,.3f} "
            f"| {counted['wait_s_mean']:,.3f} | {counted['bounded_slowdown_mean']:.2f} |"
        )
    return lines


def show(runs: list[dict[str, Any]]) -> None:
    for table in (easy_table, dispatchers_table, counted_table):
        print("\n".join(table(runs)), end="\n\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", nargs="?", type=Path, help="where the logs are")
    parts = list(dict.fromkeys(case.part for case in cases()))
    parser.add_argument("--part", action="append", choices=parts, help="default: all")
    parser.add_argument("--log", default="", help="only logs with this in their names")
    parser.add_argument("--json", type=Path, help="results are put there, beside what there is")
    parser.add_argument("--show", type=Path, help="only print the tables of this file")
    given = parser.parse_args()
    if given.show:
        show(json.loads(given.show.read_text())["runs"])
        return
    if given.directory is None or given.json is None:
        parser.error("a directory of logs and --json FILE are needed")
    known = json.loads(given.json.read_text())["runs"] if given.json.exists() else []
    found = {json.dumps(one["case"]): one for one in known}
    order = [json.dumps(asdict(case)) for case in cases()]
    for case in cases():
        key = json.dumps(asdict(case))
        if key in found or case.part not in (given.part or parts) or given.log not in case.log:
            continue
        found[key] = run(case, given.directory) | about()
        runs = [found[each] for each in order if each in found]
        write(given.json, {"runs": runs})
        print(key, found[key]["wait_s_mean"], file=sys.stderr, flush=True)
    show([found[each] for each in order if each in found])


if __name__ == "__main__":
    main()
