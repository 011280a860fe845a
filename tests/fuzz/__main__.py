# SPDX-License-Identifier: Apache-2.0
"""Sends very many senseless messages, on all cores: python -m tests.fuzz --help.

It ends with exit code 1 if one breaks a rule of `tests.fuzz.harness`, or if the memory of a process
grows beyond a bound.
"""

import faulthandler
import sys
from collections import Counter
from collections.abc import Iterable

from tests import long_run
from tests.fuzz.harness import MESSAGES, Broken, Episode, quiet

MODULE = "tests.fuzz"


def play(seed: int) -> long_run.Outcome:
    """Plays an episode."""
    try:
        with quiet():
            return long_run.Outcome(seed, more={"counts": Episode(seed).run()})
    except Broken as error:
        return long_run.Outcome(seed, [str(error)])


def summary(outcomes: Iterable[long_run.Outcome]) -> str:
    """What the messages came to, except in broken episodes."""
    counts: Counter[str] = Counter()
    for outcome in outcomes:
        counts.update(outcome.more.get("counts", {}))
    return f" ({', '.join(f'{count} {name}' for name, count in counts.items())})"


def main() -> int:
    """Runs the command."""
    parser = long_run.parser(MODULE, f"{__doc__} An episode has {MESSAGES} messages.", runs=50_000)
    parser.add_argument("--strict", action="store_true", help="setting aside is a fault, too")
    given = parser.parse_args()
    Episode.strict = given.strict
    if given.seed is not None:
        faulthandler.enable()
        print(dict(Episode(given.seed).run()))
        return 0
    strict = " --strict" if given.strict else ""
    return long_run.run(play, given, f"python -m {MODULE}{strict}", summary)


if __name__ == "__main__":
    sys.exit(main())
