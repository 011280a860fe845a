# SPDX-License-Identifier: Apache-2.0
"""Runs Slurm's own tests on scheduling on a stock and on a bridged Slurm of the same image.

Both clusters are single containers of the image schedbridge/suite, which holds Slurm's tests of the
same version (scripts/cluster build --only suite). What a test prints, and what slurmctld logged
meanwhile, is in the folder of --logs: stock/test1.2.txt, bridge/test1.2.txt, ... A test that one
cluster alone fails is run once more on both (test1.2.again.txt).

  --only test1.2                  one test; several names are several tests
  --only 'reservations expect'    those with all of these words in suite, name, topic and text
  --keep --only ...               the clusters stay, so that the next run begins at once
  --json FILE --add --rest        goes on where the file ends; --again: those that differ

Exits with 1 if a test could not be run, or fails with the bridge only and does not test an
unsupported feature (docs/ADMIN.md).
"""

import argparse
import fcntl
import json
import re
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cluster.engine import ROOT, Trouble

from tests.ran import version
from tests.slurm_suite import run, table
from tests.slurm_suite.choice import FILE, SUITES, Choice, Test, choose, load
from tests.slurm_suite.stand import TESTS, SuiteStand

LOGS = ROOT / "build" / "slurm-suite"


def main() -> int:
    given = _given()
    choice = load()
    tests = _chosen(given, choice)
    if given.list:
        for test in tests:
            print(f"{test.suite:<6} {test.name:<13} {test.topic}: {test.what}")
        for group in choice.left_out:
            print(f"left out: {len(group.numbers)} in {group.suite}: {group.why}")
        print(f"{len(tests)} tests")
        return 0
    if not tests and not given.rest:
        print("no test is chosen: --list names them", file=sys.stderr)
        return 2
    lock = (Path(tempfile.gettempdir()) / f"{given.name}.lock").open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        print(f"another run uses the clusters {given.name}*", file=sys.stderr)
        return 2
    rows: list[run.Row] = []
    try:
        if tests:
            _run(given, tests, choice, rows)
    except Trouble as trouble:
        print(f"{trouble.detail}\n{trouble}".strip(), file=sys.stderr)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
    told = _write(given, rows, choice)
    print(*table.summary(told), sep="\n")
    bad = any(row["verdict"] in (run.Verdict.BRIDGE_ONLY, run.Verdict.NOT_RUN) for row in told)
    return 1 if bad or len(rows) < len(tests) else 0


def _given() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="scripts/test slurm-suite", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    add = parser.add_argument
    add("--only", metavar="WORDS", default="", help="names of tests, or words they must hold")
    add("--json", type=Path, metavar="FILE", help="write all results here")
    add("--add", action="store_true", help="keep what the file of --json says of other tests")
    add("--rest", action="store_true", help="only tests that the file of --json does not hold yet")
    add("--again", action="store_true", help="only tests that the file of --json says differ")
    add("--once", action="store_true", help="do not run a test again that differs")
    add("--table", type=Path, metavar="FILE", help="write the table here, as Markdown")
    add("--logs", type=Path, metavar="FOLDER", default=LOGS,
        help="what the tests print [build/slurm-suite]")  # fmt: skip
    add("--list", action="store_true", help="only name the tests")
    add("--keep", action="store_true", help="leave the clusters for the next run")
    add("--name", default="sbsuite", help="how the clusters' names begin [%(default)s]")
    given = parser.parse_args()
    if (given.add or given.rest or given.again) and not given.json:
        parser.error("--add, --rest and --again need --json FILE")
    return given


def _chosen(given: argparse.Namespace, choice: Choice) -> list[Test]:
    tests = choose(choice.tests, given.only)
    told = json.loads(given.json.read_text()) if given.json and given.json.exists() else []
    if given.rest:
        tests = [test for test in tests if test.name not in {row["name"] for row in told}]
    if given.again:
        differ = {row["name"] for row in told if row["verdict"] in run.DIFFER}
        tests = [test for test in tests if test.name in differ]
    return tests


def _run(given: argparse.Namespace, tests: list[Test], choice: Choice, rows: list[run.Row]) -> None:
    """Runs the tests one after the other; `rows` gets one for each."""
    stands = (
        SuiteStand(f"{given.name}stock", bridged=False),
        SuiteStand(f"{given.name}bridge", bridged=True),
    )
    begin_s = time.monotonic()
    try:
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda s: None if given.keep and s.is_up() else s.up(), stands))
            _look(choice, stands[0])
            for number, test in enumerate(tests, 1):
                row = run.run(test, stands, pool, given.logs, once=given.once)
                rows.append(row)
                minutes, seconds = divmod(int(time.monotonic() - begin_s), 60)
                stock, bridge = row.results[-1]
                print(
                    f"[{minutes:2}:{seconds:02}] {number}/{len(tests)} {row.verdict:<11} "
                    f"stock {stock.status} {stock.took_s:.0f} s, "
                    f"bridge {bridge.status} {bridge.took_s:.0f} s  {test.name}: {test.what}",
                    flush=True,
                )
                if row.verdict is not run.Verdict.SAME:
                    why = bridge.why or stock.why
                    print(f"        {why}\n        {given.logs}/*/{test.name}*", flush=True)
                _write(given, rows, choice)
    finally:
        for stand in stands:
            stand.close()
            if not given.keep:
                stand.down()


def _look(choice: Choice, stand: SuiteStand) -> None:
    """Says which tests of this Slurm's suite chosen.yaml does not know, and the other way round."""
    files = stand.root(f"ls {TESTS}/expect {TESTS}/python/tests").split()
    for suite, pattern in zip(SUITES, (r"test(\d+\.\d+)", r"test_(\d+_\d+)\.py"), strict=True):
        there = {match[1] for file in files if (match := re.fullmatch(pattern, file))}
        fresh, gone = choice.unknown(suite, there)
        for numbers, words in ((fresh, "it does not name"), (gone, "this Slurm does not have")):
            if numbers:
                print(f"{FILE.name}: tests in {suite} that {words}: {', '.join(sorted(numbers))}",
                      file=sys.stderr)  # fmt: skip


def _write(given: argparse.Namespace, rows: list[run.Row], choice: Choice) -> list[dict]:
    """The files that were asked for, of the rows so far; the rows, with --add those before, too."""
    told = [row.as_dict() | {"run": version()} for row in rows]
    if given.add and given.json.exists():
        both = {row["name"]: row for row in [*json.loads(given.json.read_text()), *told]}
        # In the order of the choice; what is not chosen any more is forgotten.
        told = [both[test.name] for test in choice.tests if test.name in both]
    if given.json:
        given.json.write_text(json.dumps(told, indent=1) + "\n")
    if given.table:
        given.table.write_text(table.markdown(told, choice))
    return told


if __name__ == "__main__":
    sys.exit(main())
