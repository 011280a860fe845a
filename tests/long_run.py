# SPDX-License-Identifier: Apache-2.0
"""A long run of episodes on all cores, which continues where it was stopped.

An episode is made from its seed alone. One that breaks a rule, raises an exception, hangs or ends
its process is broken: it is named with the command that repeats it, and the others are played.
"""

import argparse
import contextlib
import faulthandler
import gc
import multiprocessing
import os
import random
import signal
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from multiprocessing import connection
from pathlib import Path
from typing import Any

from tests import json_lines

HANGS_S = 600
"""An episode that takes longer ends its process, which prints where it was."""

TOLD = 100
"""Episodes after which the run says how far it is."""

LISTED = 10
"""Broken seeds in its last line."""

MEASURED = 50
"""Episodes after which a process looks at its memory."""

WARM = 500
"""Episodes of a process after which its memory may grow by `GROWTH_MIB` at most."""

GROWTH_MIB = 150

FROM_OUTSIDE = (-signal.SIGKILL, -signal.SIGTERM)
"""Exit codes of a process that somebody, or a lack of memory, has ended."""

FORK = multiprocessing.get_context("fork")
"""Nothing need be imported again."""


@dataclass(frozen=True)
class Outcome:
    """What became of an episode.

    Attributes:
        broken: what broke a rule, as "rule: what happened".
        more: what else its program keeps.
        again: it was ended from outside, so a run that continues plays it again.
    """

    seed: int
    broken: list[str] = field(default_factory=list)
    more: dict[str, Any] = field(default_factory=dict)
    again: bool = False

    @classmethod
    def of(cls, entry: dict[str, Any]) -> "Outcome":
        """From a line of a file.

        Raises:
            KeyError, TypeError: it is none.
        """
        left = dict(entry)
        seed, broken, again = left.pop("seed"), left.pop("broken"), left.pop("again", False)
        if type(seed) is not int or not isinstance(broken, list):
            raise TypeError("a number and a list are needed")
        return cls(seed, broken, left, again)

    def entry(self) -> dict[str, Any]:
        """As a line of a file."""
        mark = {"again": True} if self.again else {}
        return {"seed": self.seed, "broken": self.broken, **self.more, **mark}


Play = Callable[[int], Outcome]


def parser(module: str, description: str | None, runs: int) -> argparse.ArgumentParser:
    """The options that all such programs have."""
    made = argparse.ArgumentParser(prog=f"python -m {module}", description=description)
    add = made.add_argument
    add("--runs", type=_positive, default=runs, help="episodes [%(default)s]")
    add("--first", type=int, help="first seed; default: that of --done, or a fresh one")
    add("--jobs", type=_positive, default=os.cpu_count(), help="processes [%(default)s]")
    add("--done", type=Path, help="results go here; what is in it is not played again")
    add("--stop", action="store_true", help="at the first broken episode")
    add("--seed", type=int, help="this episode alone")
    return made


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be 1 or more, not {number}")
    return number


def run(
    play: Play,
    given: argparse.Namespace,
    again: str,
    summary: Callable[[Iterable[Outcome]], str] = lambda _: "",
) -> int:
    """Plays the episodes that are not in the file of results; returns the exit code.

    Args:
        given: what `parser` made of the command line.
        again: the command that repeats an episode, but for its seed.
        summary: what the last line says of all outcomes, besides how many are broken.
    """
    try:
        first, done = _begun(given)
        outcomes = {s: done[s] for s in range(first, first + given.runs) if s in done}
        todo = [s for s in range(first, first + given.runs) if s not in done or done[s].again]
        print(f"{given.runs} runs from seed {first}, {len(todo)} to do", flush=True)
        for outcome in outcomes.values():
            _name(outcome, again)
        with contextlib.closing(_timed(played(play, todo, given.jobs), len(todo))) as new:
            for outcome in new:
                outcomes[outcome.seed] = outcome
                if given.done is not None:
                    json_lines.append(given.done, outcome.entry())
                _name(outcome, again)
                if outcome.broken and given.stop:
                    break
    except (OSError, ValueError) as error:  # of the file: what an episode raises is its outcome
        print(f"{again.partition(' --')[0]}: {error}", file=sys.stderr)
        return 2
    broken = [str(seed) for seed, outcome in sorted(outcomes.items()) if outcome.broken]
    seeds = f": {', '.join(broken[:LISTED])}" if broken else ""
    more = ", ..." if len(broken) > LISTED else ""
    told = summary(outcomes.values())
    print(f"{len(outcomes)} runs from seed {first}, {len(broken)} broken{seeds}{more}{told}")
    return 1 if broken else 0


def _begun(given: argparse.Namespace) -> tuple[int, dict[int, Outcome]]:
    """The first seed, and what the file of results holds, in which the first seed is kept.

    Raises:
        OSError, ValueError: the file cannot be used.
    """
    firsts, done = [], {}
    if given.done is not None:
        for entry in json_lines.read(given.done, _parsed, "the outcome of an episode"):
            if isinstance(entry, int):
                firsts.append(entry)
            else:
                done[entry.seed] = entry
    first = given.first
    if first is None:
        known = firsts or sorted(done) or [random.SystemRandom().randrange(10**9)]
        first = known[0]
    if given.done is not None and not firsts:
        json_lines.append(given.done, {"first": first})
    return first, done


def _parsed(entry: dict[str, Any]) -> Outcome | int:
    return int(entry["first"]) if set(entry) == {"first"} else Outcome.of(entry)


def _name(outcome: Outcome, again: str) -> None:
    """Names an episode that is broken."""
    if not outcome.broken:
        return
    what, left = outcome.broken[0].partition("\n")[0][:300], len(outcome.broken) - 1
    print(f"seed {outcome.seed} is broken: {what}" + (f" (and {left} more)" if left else ""))
    print(f"    again: {again} --seed {outcome.seed}", flush=True)


def _timed(outcomes: Iterator[Outcome], all_of_them: int) -> Iterator[Outcome]:
    """Says now and then how many there have been, and how long the others will take."""
    began = time.monotonic()
    with contextlib.closing(outcomes):
        for number, outcome in enumerate(outcomes, 1):
            yield outcome
            if number % TOLD == 0 or number == all_of_them:
                pace = number / (time.monotonic() - began)
                left_min = (all_of_them - number) / pace / 60
                print(f"{number} of {all_of_them}, {left_min:.0f} min left", flush=True)


def played(play: Play, seeds: Iterable[int], jobs: int) -> Iterator[Outcome]:
    """Yields what became of each episode, as they end."""
    todo, busy = deque(seeds), {}
    try:
        while todo or busy:
            while todo and len(busy) < jobs:
                worker = _Worker(play)
                worker.begin(todo.popleft())
                busy[worker.link] = worker
            for link in connection.wait(busy):
                worker = busy.pop(link)
                outcome = worker.outcome()
                if todo and not worker.has_ended:
                    worker.begin(todo.popleft())
                    busy[link] = worker
                else:
                    worker.end()
                yield outcome
    finally:
        for worker in busy.values():
            worker.end()


class _Worker:
    """A process that plays one episode after the other."""

    def __init__(self, play: Play) -> None:
        self.link, other_end = FORK.Pipe()
        ends = other_end, self.link
        self._process = FORK.Process(target=_work, args=(*ends, play), daemon=True)
        self._process.start()
        other_end.close()
        self._seed = 0
        self.has_ended = False

    def begin(self, seed: int) -> None:
        self._seed = seed
        with contextlib.suppress(OSError):  # it has ended: `outcome` says so
            self.link.send(seed)

    def outcome(self) -> Outcome:
        """Of the episode that was begun; waits for it."""
        try:
            return self.link.recv()
        except (EOFError, OSError):
            self.has_ended = True
            self._process.join()
        code = self._process.exitcode or 0
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return Outcome(self._seed, [f"process ended: {how}"], again=code in FROM_OUTSIDE)

    def end(self) -> None:
        self._process.kill()
        self._process.join()
        self.link.close()


def _work(link: connection.Connection, other_end: connection.Connection, play: Play) -> None:
    """Plays what comes through a pipe, until nobody has its other end any more."""
    other_end.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the other end is interrupted, too, and ends this
    faulthandler.enable(sys.__stderr__)
    memory = Memory()
    with contextlib.suppress(EOFError, OSError):
        while True:
            seed = link.recv()
            faulthandler.dump_traceback_later(HANGS_S, exit=True, file=sys.__stderr__)
            outcome = safely(play, seed)
            faulthandler.cancel_dump_traceback_later()
            if grown := memory.fault():
                outcome = replace(outcome, broken=[*outcome.broken, grown])
            link.send(outcome)


def safely(play: Play, seed: int) -> Outcome:
    """Plays an episode; what it raises breaks it alone."""
    try:
        return play(seed)
    except BaseException as error:  # also what would end the process
        *where, what = traceback.format_exception(error)
        return Outcome(seed, [f"raised {what}{''.join(where)[-4000:]}"])


class Memory:
    """Watches the memory of this process."""

    def __init__(self) -> None:
        self._episodes, self._warm_mib = 0, 0.0

    def fault(self) -> str | None:
        """After an episode: says that memory has grown, if it has."""
        self._episodes += 1
        if self._episodes < WARM or self._episodes % MEASURED:
            return None
        gc.collect()
        now_mib, warm_mib = resident_mib(), self._warm_mib
        if warm_mib and now_mib <= warm_mib + GROWTH_MIB:
            return None
        self._warm_mib = now_mib
        if not warm_mib:
            return None
        return f"memory grew: from {warm_mib:.0f} to {now_mib:.0f} MiB in one process"


def resident_mib() -> float:
    """The memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") / 2**20
