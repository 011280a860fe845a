# SPDX-License-Identifier: Apache-2.0
"""Sends very many senseless messages: python -m tests.fuzz [--rounds N] [--seed N] [--from N].

It ends with exit code 1 at the first that breaks a rule of `tests.fuzz.harness`, or when memory
grows beyond a bound. `--from` goes on with the episode that the last line of progress names.
"""

import argparse
import faulthandler
import gc
import random
import sys
import time
from collections import Counter
from pathlib import Path

from tests.fuzz.harness import MESSAGES, Broken, Episode, quiet

EVERY = 50
"""Episodes between two lines of progress."""

WARM = 500
"""Episodes after which memory may grow by `GROWTH_MIB` at most."""

GROWTH_MIB = 150


def resident_mib() -> float:
    """Memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 2**20


def main() -> int:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=1_000_000, help="messages")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**9))
    parser.add_argument("--from", type=int, default=0, dest="first", help="episode to begin with")
    parser.add_argument("--episode", help="this one alone: SEED:NUMBER")
    parser.add_argument("--strict", action="store_true", help="setting aside is a fault, too")
    parser.add_argument("--go-on", action="store_true", help="tell of faults and go on")
    given = parser.parse_args()
    if not 0 <= given.first < -(-given.rounds // MESSAGES):
        parser.error(f"--rounds {given.rounds} leaves nothing from episode {given.first} on")
    faulthandler.enable()
    Episode.strict = given.strict
    if given.episode:
        print(dict(Episode(given.episode).run()))
        return 0
    quiet()
    began, counts, warm_mib, faults = time.monotonic(), Counter(), 0.0, 0
    for number in range(given.first, -(-given.rounds // MESSAGES)):
        faulthandler.dump_traceback_later(300, exit=True)
        at = time.monotonic()
        try:
            counts += Episode(f"{given.seed}:{number}").run()
        except Broken as error:
            faults += 1
            print(error, flush=True)
            if not given.go_on:
                return 1
        if (took_s := time.monotonic() - at) > 5:
            print(f"slow: episode {given.seed}:{number} took {took_s:.1f} s", flush=True)
        done = number + 1 - given.first
        if done == WARM:
            gc.collect()
            warm_mib = resident_mib()
        if done % EVERY == 0:
            rate = counts["messages"] / (time.monotonic() - began)
            print(
                f"seed {given.seed}, next episode {number + 1}: {dict(counts)}; {rate:.0f} a "
                f"second; {resident_mib():.0f} MiB",
                flush=True,
            )
            if warm_mib and resident_mib() > warm_mib + GROWTH_MIB:
                print(f"memory has grown from {warm_mib:.0f} MiB", flush=True)
                return 1
    print(f"seed {given.seed}: {dict(counts)}; {faults} faults", flush=True)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
