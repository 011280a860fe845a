# SPDX-License-Identifier: Apache-2.0
"""Sends very many senseless messages, on all cores: python -m tests.fuzz --help.

It ends with exit code 1 if one breaks a rule of `tests.fuzz.harness`, or if the memory of a process
grows beyond a bound.
"""

import argparse
import faulthandler
import gc
import json
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.fuzz.harness import MESSAGES, Broken, Episode, quiet

BLOCK = 50
"""Episodes that one process plays before it says what became of them."""

WARM = 500
"""Episodes after which the memory of a process may grow by `GROWTH_MIB` at most."""

GROWTH_MIB = 150

HANGS_S = 300
"""An episode that takes longer ends its process, and tells where it was."""


@dataclass(frozen=True)
class Block:
    """What became of some episodes.

    Attributes:
        seed: all episodes of a run have it.
        first: number of the first episode.
        episodes: how many there were.
        counts: of messages, and of what became of them.
        faults: what broke a rule.
    """

    seed: int
    first: int
    episodes: int
    counts: dict[str, int]
    faults: list[str]


class Memory:
    """Watches this process."""

    def __init__(self) -> None:
        self.episodes, self.warm_mib = 0, 0.0

    def fault(self) -> str | None:
        """Says that it has grown, if it has."""
        if self.episodes < WARM:
            return None
        gc.collect()
        now_mib = _resident_mib()
        if not self.warm_mib:
            self.warm_mib = now_mib
        if now_mib <= self.warm_mib + GROWTH_MIB:
            return None
        return f"memory has grown from {self.warm_mib:.0f} to {now_mib:.0f} MiB"


_memory = Memory()


def play(seed: int, first: int, episodes: int) -> Block:
    """Plays some episodes in this process."""
    quiet()
    counts: Counter[str] = Counter()
    faults = []
    for number in range(first, first + episodes):
        faulthandler.dump_traceback_later(HANGS_S, exit=True, file=sys.__stderr__)
        try:
            counts += Episode(f"{seed}:{number}").run()
        except Broken as error:
            counts["messages"] += MESSAGES
            faults.append(str(error))
    faulthandler.cancel_dump_traceback_later()
    _memory.episodes += episodes
    if grown := _memory.fault():
        faults.append(f"{grown} before episode {first + episodes}")
    return Block(seed, first, episodes, dict(counts), faults)


def read_done(path: Path | None, seed: int | None) -> list[Block]:
    """The blocks in a file; without a seed those of the seed of its first line.

    Raises:
        ValueError: a line is none of this program's.
    """
    if path is None or not path.exists():
        return []
    blocks = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            blocks.append(Block(**json.loads(line)))
        except (ValueError, TypeError) as error:
            raise ValueError(f"{path}, line {number} is no block of episodes: {error}") from error
    if seed is None and blocks:
        seed = blocks[0].seed
    return [block for block in blocks if block.seed == seed]


def to_do(episodes: int, done: list[Block]) -> Iterator[tuple[int, int]]:
    """First episode and length of each block that is not done."""
    played = {number for b in done for number in range(b.first, b.first + b.episodes)}
    for first in range(0, episodes, BLOCK):
        missing = [n for n in range(first, min(first + BLOCK, episodes)) if n not in played]
        if missing:
            yield missing[0], missing[-1] - missing[0] + 1


def main() -> int:
    """Runs the command."""
    given = _given()
    Episode.strict = given.strict
    if given.episode:
        faulthandler.enable()
        print(dict(Episode(given.episode).run()))
        return 0
    try:
        done = read_done(given.done, given.seed)
        if given.done is not None:
            given.done.parent.mkdir(parents=True, exist_ok=True)
            given.done.touch()
    except (OSError, ValueError) as error:
        print(f"tests.fuzz: {error}", file=sys.stderr)
        return 2
    seed = given.seed
    if seed is None:
        seed = done[0].seed if done else random.SystemRandom().randrange(10**9)
    todo = list(to_do(-(-given.rounds // MESSAGES), done))
    print(f"seed {seed}: {sum(n for _, n in todo) * MESSAGES} of {given.rounds} rounds to do")
    whole = True
    for block in _played(seed, todo, given.jobs):
        if block is None:
            whole = False
            break
        done.append(block)
        if given.done is not None:
            with given.done.open("a", encoding="utf-8") as sink:
                sink.write(json.dumps(asdict(block)) + "\n")
        if block.faults and given.stop:
            break
    faults = [fault for block in done for fault in block.faults]
    print("".join(f"{fault}\n" for fault in faults), end="")
    counts: Counter[str] = Counter()
    for block in done:
        counts += Counter(block.counts)
    told = ", ".join(f"{count} {name}" for name, count in counts.items() if name != "messages")
    print(f"seed {seed}: {counts['messages']} rounds, {len(faults)} faults ({told})")
    return 1 if faults or not whole else 0


def _given() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    add = parser.add_argument
    add("--rounds", type=int, default=1_000_000, help="messages [%(default)s]")
    add("--seed", type=int, help="that of all episodes; default: that of --done, or a fresh one")
    add("--jobs", type=int, default=os.cpu_count(), help="processes [%(default)s]")
    add("--done", type=Path, help="results go here; what is in it is not played again")
    add("--episode", metavar="SEED:NUMBER", help="this one alone")
    add("--strict", action="store_true", help="setting aside is a fault, too")
    add("--stop", action="store_true", help="at the first fault")
    given = parser.parse_args()
    if given.rounds < 1 or given.jobs < 1:
        parser.error("--rounds and --jobs must be 1 or more")
    return given


def _played(seed: int, todo: list[tuple[int, int]], jobs: int) -> Iterator[Block | None]:
    """Yields each block when it has been played; None if a process ended by itself."""
    began, played = time.monotonic(), 0
    all_episodes = sum(episodes for _, episodes in todo)
    with ProcessPoolExecutor(jobs) as pool:
        blocks = {pool.submit(play, seed, *each): each for each in todo}
        try:
            for result in as_completed(blocks):
                block = result.result()
                played += block.episodes
                pace = played / (time.monotonic() - began)
                left_min = (all_episodes - played) / pace / 60
                print(
                    f"{played * MESSAGES} of {all_episodes * MESSAGES} rounds, "
                    f"{pace * MESSAGES:.0f} a second, {left_min:.0f} min left",
                    flush=True,
                )
                yield block
        except BrokenProcessPool:
            open_blocks = sorted(each for result, each in blocks.items() if not result.done()
                                 or result.exception() is not None)  # fmt: skip
            print(f"a process ended by itself; the next blocks were {open_blocks[: 2 * jobs]}: "
                  f"repeat an episode by --episode {seed}:NUMBER", flush=True)  # fmt: skip
            yield None
        finally:
            pool.shutdown(cancel_futures=True)


def _resident_mib() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") / 2**20


if __name__ == "__main__":
    sys.exit(main())
