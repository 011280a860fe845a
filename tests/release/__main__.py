# SPDX-License-Identifier: Apache-2.0
"""Runs all suites, one after the other, and writes one table: what, commit, passed, time.

A suite that passed at this commit is not run again, so that a run that was stopped continues; the
time of a suite that was stopped and goes on is the sum of its parts.
"""

import argparse
import datetime
import subprocess
import sys
import time
from pathlib import Path

from tests.release import unfinished
from tests.release.runs import NOT_RUN, PASSED, Run, counted, keep, read, renewed, result_of, table
from tests.release.suites import SUITES, listed

ROOT = Path(__file__).parents[2]
RUNS, PAGE = ROOT / "docs/results/tests.jsonl", ROOT / "docs/results/tests.md"
LOGS = ROOT / "build/release"


def main() -> int:
    names = [suite.name for suite in SUITES]
    parser = argparse.ArgumentParser(prog="scripts/test release", description=__doc__)
    parser.add_argument(
        "--only", nargs="+", choices=names, metavar="SUITE", help="these alone: " + ", ".join(names)
    )
    parser.add_argument("--again", action="store_true", help="also what passed at this commit")
    parser.add_argument(
        "--list", action="store_true", help="what each protects, and how long it takes"
    )
    parser.add_argument("--table", action="store_true", help="write the page anew, and end")
    given = parser.parse_args()
    if given.list:
        print(listed())
        return 0
    try:
        if not given.table:
            commit = _commit()
            done = {r.suite for r in read(RUNS) if r.commit == commit and r.result == PASSED}
            for name in given.only or names:
                if given.again or name not in done:
                    keep(RUNS, _run(name, commit))
        runs = read(RUNS)
        PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8"), runs), encoding="utf-8")
    except (OSError, ValueError) as error:
        print(f"scripts/test release: {error}", file=sys.stderr)
        return 2
    print(table(runs))
    latest = {run.suite: run for run in runs}
    requested = given.only or names
    return 0 if all(name in latest and latest[name].result == PASSED for name in requested) else 1


def _commit() -> str:
    """HEAD, with "+" if anything but the results of the suites has been changed."""
    head = _git("rev-parse", "HEAD")
    own = {str(path.relative_to(ROOT)) for path in (RUNS, PAGE)}
    changed = {line[3:] for line in _git("status", "--porcelain").splitlines()} - own
    return head + ("+" if changed else "")


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.rstrip()


def _run(name: str, commit: str) -> Run:
    """Runs a suite, with its output in a file."""
    LOGS.mkdir(parents=True, exist_ok=True)
    log, day = LOGS / f"{name}.log", datetime.datetime.now(datetime.UTC).date().isoformat()
    print(f"{name}: its output is in {log.relative_to(ROOT)} ...", flush=True)
    before_s = unfinished.begun(LOGS / name, commit, time.time())
    began = time.monotonic()
    with log.open("wb") as output:
        code = subprocess.run(
            [str(ROOT / "scripts/test"), name], stdin=subprocess.DEVNULL, stdout=output,
            stderr=subprocess.STDOUT, cwd=ROOT, check=False,
        ).returncode  # fmt: skip
    seconds = round(before_s + time.monotonic() - began)
    unfinished.ended(LOGS / name)
    said = counted(log.read_text(encoding="utf-8", errors="replace").splitlines())
    run = Run(name, commit, result_of(code), said, seconds, day)
    mark = "" if run.result in (PASSED, NOT_RUN) else f" (exit code {code})"
    print(f"{name}: {run.result}{mark} after {seconds} s: {said}", flush=True)
    return run


if __name__ == "__main__":
    sys.exit(main())
