# SPDX-License-Identifier: Apache-2.0
"""Which classes of jobs wait longer under `search` and `recommended` than under EASY.

    python benchmarks/search_classes.py DIRECTORY --keep FOLDER --out benchmarks/results/FILE.json
    python benchmarks/search_classes.py --keep FOLDER --out FILE.json                 # reads only
    python benchmarks/search_classes.py --show benchmarks/results/search_classes.json
    python benchmarks/search_classes.py --verdicts benchmarks/results/search_classes.json

Whole logs on counts, with little effort a decision, by `lab experiment`: jobs submitted in
the same second in another order in each run. Intervals, and Holm's correction for all comparisons
of a kind of class (size, run time, jobs of the user), are those of `lab experiment-report`.
Cells in FOLDER are not computed again. `--logs NAME:RUNS,...` chooses logs and numbers of runs;
`NAME/FIRST+COUNT:RUNS` takes some weeks of a log, counted from 0.
"""

import argparse
import json
import re
import tempfile
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from about import about
from orders import KEPT, LOGS, SEARCHED, brief, called, computed, small
from results_file import write

RUNS = "KTH-SP2:1,METACENTRUM:1,SDSC-SP2:1,KTH-SP2/23+4:5"
"""In weeks 23 to 26 of KTH-SP2 is the span in which a class waits longer (docs/results)."""
PART = re.compile(r"[^:/]+(/\d+\+\d+)?:[1-9]\d*")
POLICIES = ["easy", small("search", SEARCHED), small("recommended", SEARCHED)]
KINDS = ("size", "length", "user")
FEW = 30
"""Classes of fewer judged jobs are left out of the tables."""
SHORT_S = 60
"""As are those whose mean wait under EASY is shorter."""
MEASURES = {"wait_mean": "mean wait", "wait_p99": "99 % of the waits"}


def definition(directory: Path, kept: Path, part: str) -> dict[str, Any]:
    """The experiment on one log or a part of it, as `--logs` names it."""
    name, _, runs = part.partition(":")
    log, _, weeks = name.partition("/")
    file, options = LOGS[log]
    trace = {"file": str(directory / f"{file}.swf.gz"), "name": log, **options}
    if weeks:
        first, count = map(int, weeks.split("+"))
        named = f"{log}, weeks {first} to {first + count - 1}"
        trace |= {"name": named, "weeks": {"first": first, "count": count}}
    return {
        "results": str(kept), "baseline": "easy", "policies": POLICIES, "seeds": int(runs),
        "traces": [trace], "perturbations": ["ties"],
    }  # fmt: skip


def rows(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The waits of each log, policy and class, as they are judged."""
    over = {(one["trace"], one["policy"]): one for one in report["fairness"]}
    found: dict[tuple[str, str, str], dict[str, Any]] = {}
    for one in report["comparisons"]:
        if one["measure"] in (*MEASURES, "wait_max"):
            key = one["trace"], one["policy"], one["class"]
            facts = over[key[:2]]
            row = {
                "log": one["trace"], "policy": one["policy"], "kind": one["class_kind"],
                "class": one["class"], "jobs": one["jobs"], "runs": len(facts["seeds"]),
                "over": facts["over"],
            }  # fmt: skip
            found.setdefault(key, row)[one["measure"]] = {name: one[name] for name in KEPT}
    return list(found.values())


def is_judged(row: Mapping[str, Any]) -> bool:
    """Whether the row is that of a class with enough jobs that wait."""
    return (
        row["kind"] in KINDS and row["jobs"] >= FEW and row["wait_mean"]["base"] >= SHORT_S
    )  # fmt: skip


def lines(found: Mapping[str, Any]) -> Sequence[str]:
    """The classes of each log as lines of Markdown."""
    policies = list(dict.fromkeys(row["policy"] for row in found["rows"]))
    table: dict[tuple[str, str], dict[str, Any]] = defaultdict(dict)
    for row in found["rows"]:
        if is_judged(row):
            table[row["log"], row["class"]][row["policy"]] = row
    head = [f"{policy}, {words}" for policy in policies for words in MEASURES.values()]
    out = [
        f"| log | class | jobs | easy, s | {' | '.join(head)} |",
        f"|{'---|' * (4 + len(head))}",
    ]
    for (log, name), by_policy in table.items():
        one = next(iter(by_policy.values()))
        cells = [
            brief(by_policy[policy][measure]) if policy in by_policy else "–"
            for policy in policies
            for measure in MEASURES
        ]
        mean_s = one["wait_mean"]["base"]
        out.append(f"| {log} | {name} | {one['jobs']:,} | {mean_s:,.0f} | {' | '.join(cells)} |")
    return out


def verdicts(found: Mapping[str, Any]) -> Sequence[str]:
    """How many classes of each log are shown better, worse or neither."""
    counts: dict[tuple[str, str], Counter[tuple[str, str]]] = defaultdict(Counter)
    every: dict[tuple[str, str], Mapping[str, Any]] = {}
    for row in found["rows"]:
        key = row["log"], row["policy"]
        if row["kind"] == "all":
            every[key] = row
        elif is_judged(row):
            counts[key].update((measure, row[measure]["outcome"]) for measure in MEASURES)
    head = [
        "log", "policy", "runs", "intervals over", "mean wait", "classes better, not shown, worse",
        "99 % of the waits", "classes better, not shown, worse", "longest wait",
    ]  # fmt: skip
    out = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for (log, policy), row in every.items():
        cells = [log, policy, str(row["runs"]), row["over"]]
        for measure in MEASURES:
            of = counts[log, policy]
            better, worse = of[measure, "better"], of[measure, "worse"]
            others = sum(n for (own, _), n in of.items() if own == measure) - better - worse
            cells += [brief(row[measure]), f"{better}, {others}, {worse}"]
        cells.append(f"{100 * row['wait_max']['difference']:+,.0f} %")
        out.append(f"| {' | '.join(cells)} |")
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("directory", type=Path, nargs="?", help="of the logs")
    parser.add_argument("--keep", type=Path, help="folder of the cells")
    parser.add_argument("--logs", default=RUNS, help="with commas; default: %(default)s")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--show", type=Path, help="the table of all classes")
    parser.add_argument("--verdicts", type=Path, help="the table of their numbers")
    given = parser.parse_args()
    for path, table in ((given.show, lines), (given.verdicts, verdicts)):
        if path is not None:
            print("\n".join(table(json.loads(path.read_text()))))
    if given.show or given.verdicts:
        return
    if given.keep is None:
        parser.error("name the folder of the cells with --keep")
    if given.directory is not None:
        for part in given.logs.split(","):
            if not PART.fullmatch(part) or part.partition(":")[0].partition("/")[0] not in LOGS:
                parser.error(f"--logs: '{part}' is not NAME:RUNS or NAME/FIRST+COUNT:RUNS of a log")
        for part in given.logs.split(","):
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder, "plan.yaml")
                plan = definition(given.directory.resolve(), given.keep.resolve(), part)
                path.write_text(json.dumps(plan))
                called("lab", "experiment", str(path), "--workers", "1", "--json")
    report = json.loads(called("lab", "experiment-report", str(given.keep), "--json"))
    found = {
        **about(),
        "computed": computed(given.keep),
        "trim": report["trim"],
        "notes": report["notes"],
        "rows": rows(report),
    }
    print("\n".join([*verdicts(found), "", *lines(found)]))
    if given.out:
        write(given.out, found)


if __name__ == "__main__":
    main()
