# SPDX-License-Identifier: Apache-2.0
"""Runs many seeds, or one: `python -m tests.simulation.whole --help`."""

import argparse
import json
import multiprocessing
import os
import random
import sys
import time
from pathlib import Path

from tests.simulation.whole.checker import judge
from tests.simulation.whole.run import play
from tests.simulation.whole.script import draw
from tests.simulation.whole.shrink import report


def one(seed: int) -> tuple[int, list[str], str, float]:
    """Plays a seed; what it broke, and the digest of its history."""
    began = time.process_time()
    outcome = play(draw(seed))
    broken = [f"{item.rule}: {item}" for item in judge(outcome.history.events)]
    return seed, broken, outcome.history.digest(), time.process_time() - began


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.whole", description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--first", type=int, help="first seed; default: a fresh one")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--done", type=Path, help="results go here; seeds in it are not run again")
    parser.add_argument("--stop", action="store_true", help="at the first broken rule")
    parser.add_argument("--seed", type=int, help="one seed, with a shorter script that breaks too")
    parser.add_argument("--history", action="store_true", help="print all that happened")
    given = parser.parse_args()
    if given.runs < 1:
        parser.error(f"--runs must be 1 or more, not {given.runs}")
    if given.seed is not None:
        return _show(given.seed, whole=given.history)
    done: dict[int, list[str]] = {}
    if given.done is not None and given.done.exists():
        for line in given.done.read_text().splitlines():
            entry = json.loads(line)
            done[entry["seed"]] = entry["broken"]
    first = given.first
    if first is None:
        first = min(done) if done else random.SystemRandom().randrange(10**9)
    seeds = [seed for seed in range(first, first + given.runs) if seed not in done]
    print(f"{given.runs} runs from seed {first}, {len(seeds)} to do", flush=True)
    bad = sum(bool(broken) for broken in done.values())
    began = time.monotonic()
    sink = None
    if given.done is not None:
        try:
            given.done.parent.mkdir(parents=True, exist_ok=True)
            sink = given.done.open("a")
        except OSError as error:
            parser.error(f"--done {given.done}: {error.strerror}")
    with multiprocessing.Pool(given.jobs, maxtasksperchild=200) as pool:
        for number, (seed, broken, digest, spent_s) in enumerate(
            pool.imap_unordered(one, seeds, chunksize=1 if given.stop else 4), 1
        ):
            if sink is not None:
                entry = {"seed": seed, "broken": broken[:20], "digest": digest}
                sink.write(json.dumps(entry | {"s": round(spent_s, 2)}) + "\n")
                sink.flush()
            if broken:
                bad += 1
                print(f"seed {seed} breaks {len(broken)} times: {broken[0]}", flush=True)
                print(f"    again: python -m tests.simulation.whole --seed {seed}", flush=True)
                if given.stop:
                    break
            if number % 100 == 0 or number == len(seeds):
                pace = number / (time.monotonic() - began)
                left_s = (len(seeds) - number) / pace
                print(f"{number} of {len(seeds)} runs, {bad} broken, {left_s / 60:.0f} min left",
                      flush=True)  # fmt: skip
    print(f"{given.runs} runs from seed {first}, {bad} broken")
    return 1 if bad else 0


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
