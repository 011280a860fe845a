# SPDX-License-Identifier: Apache-2.0
"""Runs many seeds, or one: `python -m tests.simulation.whole --help`."""

import sys
import time

from tests import long_run
from tests.simulation.whole.checker import judge
from tests.simulation.whole.run import play
from tests.simulation.whole.script import draw
from tests.simulation.whole.shrink import report

MODULE = "tests.simulation.whole"
KEPT = 20
"""Broken rules of a seed."""


def one(seed: int) -> long_run.Outcome:
    """Plays a seed; what it broke, the digest of its history, and its CPU time."""
    began = time.process_time()
    history = play(draw(seed)).history
    broken = [f"{item.rule}: {item}" for item in judge(history.events)]
    spent_s = round(time.process_time() - began, 2)
    return long_run.Outcome(seed, broken[:KEPT], {"digest": history.digest(), "s": spent_s})


def main() -> int:
    parser = long_run.parser(MODULE, __doc__, runs=100)
    parser.add_argument("--history", action="store_true", help="print all that happened")
    given = parser.parse_args()
    if given.seed is not None:
        return _show(given.seed, whole=given.history)
    return long_run.run(one, given, f"python -m {MODULE}")


def _show(seed: int, *, whole: bool) -> int:
    outcome = play(draw(seed))
    broken = judge(outcome.history.events)
    if whole:
        print(outcome.history.text())
    if broken:
        print(report(outcome, broken))
    else:
        print(f"seed {seed}: {len(outcome.history.events)} events, nothing broken")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
