# SPDX-License-Identifier: Apache-2.0
"""Submits the same jobs to a bridged and a stock Slurm with the same nodes, and compares.

Exits with 1 if the bridge does anything worse that is neither intended nor unsupported.
"""

import argparse
import fcntl
import json
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.differential import run, table
from tests.differential.cases import Case, choose, load
from tests.differential.stand import Stand
from tests.ran import version

EVERY = 10
"""The files are written after every so many cases."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/test differential", description=__doc__)
    add = parser.add_argument
    add("--only", metavar="WORDS", default="", help="cases with all these words in topic and name")
    add("--json", type=Path, metavar="FILE", help="write all outcomes here")
    add("--add", action="store_true", help="keep the other cases of the --json file")
    add("--differences", type=Path, metavar="FILE", help="write the defects here")
    add("--again", action="store_true", help="only the worse and broken cases of the --json file")
    add("--rest", action="store_true", help="only cases that are not in the --json file")
    add("--once", action="store_true", help="do not repeat a case that differs")
    add("--table", type=Path, metavar="FILE", help="write the table here, as Markdown")
    add("--list", action="store_true", help="list the cases and exit")
    add("--keep", action="store_true", help="leave the clusters for the next run")
    add("--name", default="sbdiff", help="prefix of the clusters' names [%(default)s]")
    given = parser.parse_args()
    everything = load()
    cases = choose(everything, given.only)
    if given.again:
        told = json.loads(given.json.read_text())
        differ = {
            (row["topic"], row["name"]) for row in told if row["verdict"] in ("worse", "broken")
        }
        cases = [case for case in cases if (case.topic, case.name) in differ]
    if given.rest and given.json.exists():
        told = json.loads(given.json.read_text())
        known = {(row["topic"], row["name"]) for row in told}
        cases = [case for case in cases if (case.topic, case.name) not in known]
    if given.list:
        for case in cases:
            print(f"{case.topic}: {case.name}: {case.lines}")
        print(f"{len(cases)} cases")
        return 0
    if not cases and not given.rest:
        parser.error("no case is chosen")
    lock = (Path(tempfile.gettempdir()) / f"{given.name}.lock").open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        parser.error(f"another run uses the clusters {given.name}*")
    rows: list[run.Row] = []
    try:
        for variant in dict.fromkeys(case.variant for case in cases):
            of_it = [case for case in cases if case.variant == variant]
            _run(given, variant, of_it, rows, everything)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
    counts = table.counts(_write(given, rows, everything))
    print(", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
    return 1 if counts.get("worse") or counts.get("broken") or len(rows) < len(cases) else 0


def _run(
    given: argparse.Namespace,
    variant: str,
    cases: list[Case],
    rows: list[run.Row],
    everything: list[Case],
) -> None:
    """Runs the cases of one variant on its two clusters, and adds their rows."""
    name = given.name if variant == "plain" else f"{given.name}{variant}"
    stands = (
        Stand(f"{name}stock", bridged=False, variant=variant),
        Stand(f"{name}bridge", bridged=True, variant=variant),
    )
    begin_s = time.monotonic()
    try:
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda s: None if given.keep and s.is_up() else s.up(), stands))
            for number, case in enumerate(cases, 1):
                row = run.run(case, *stands, pool, once=given.once)
                rows.append(row)
                minutes, seconds = divmod(int(time.monotonic() - begin_s), 60)
                print(f"[{minutes:2}:{seconds:02}] {number}/{len(cases)} {row.verdict:<11} "
                      f"{case.topic}: {case.name}", flush=True)  # fmt: skip
                for line in dict.fromkeys(row.differences()):
                    print(f"        {line}", flush=True)
                if number % EVERY == 0:
                    _write(given, rows, everything)
    finally:
        for stand in stands:
            if given.keep:
                stand.close()
            else:
                stand.down()


def _write(given: argparse.Namespace, rows: list[run.Row], everything: list[Case]) -> list[dict]:
    """Writes the requested files from the rows so far; the rows, with --add those before, too."""
    told = [row.as_dict() | {"run": version()} for row in rows]
    if given.add and given.json and given.json.exists():
        fresh = {(row["topic"], row["name"]): row for row in told}
        old = {(row["topic"], row["name"]): row for row in json.loads(given.json.read_text())}
        # In the order of the case files, without cases that no longer exist.
        both = {**old, **fresh}
        told = [both[key] for case in everything if (key := (case.topic, case.name)) in both]
    if given.json:
        given.json.write_text(json.dumps(told, indent=1) + "\n")
    if given.table:
        given.table.write_text(table.markdown(told, wanting=len(everything) - len(told)))
    if given.differences:
        given.differences.write_text(table.differences(told))
    return told


if __name__ == "__main__":
    sys.exit(main())
