# SPDX-License-Identifier: Apache-2.0
"""Plants faults one at a time in a copy of the tree and tells which suites notice.

`python -m tests.mutants --help`. Exit code 1: a suite fails without a fault, or a fault is noticed
by fewer than two suites, cannot be planted, or leaves no program.
"""

import argparse
import hashlib
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path

import bridge.core
from tests import json_lines
from tests.mutants.mutants import FILE, Mutant, Unfit, read
from tests.mutants.running import CORE, Copy, Ran
from tests.mutants.spreading import spread

ENOUGH = 2


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("only", nargs="*", help="words in the names of the mutants to try")
    parser.add_argument("--all-suites", action="store_true", help="go on after two have noticed")
    parser.add_argument("--trust", action="store_true", help="the suites are known to pass")
    parser.add_argument(
        "--done",
        type=Path,
        metavar="FILE",
        help="results go here; what is there is not tried again",
    )
    parser.add_argument(
        "--home", type=Path, metavar="FOLDER", help="keeps the copy, and what is compiled in it"
    )
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="how many at a time"
    )
    parser.add_argument("--table", action="store_true", help="print what is in --done, and end")
    given = parser.parse_args()
    suites, mutants = read(FILE.read_text(encoding="utf-8"))
    done = _read_done(given.done)
    if given.table:
        print(table(mutants, done))
        return 0
    chosen = [m for m in mutants if not given.only or any(word in m.name for word in given.only)]
    todo = [m for m in chosen if _key(m) not in done]
    bad = sum(len(done[_key(m)]) < ENOUGH for m in chosen if _key(m) in done)
    with tempfile.TemporaryDirectory(prefix="sb-mutants-") as passing:
        home = Path(given.home or passing).resolve()
        copies = [Copy(home / str(number)) for number in range(max(given.jobs, 1))]
        if any(_is_core(m) for m in todo):
            copies[0].prepare_core()
        sound, unsound = (suites, 0) if given.trust else _without_fault(suites, todo, copies)
        bad += unsound

        def attempt(copy: Copy, mutant: Mutant) -> _Tried:
            return _tried(mutant, sound, copy, everything=given.all_suites)

        for number, (mutant, tried) in enumerate(spread(copies, todo, attempt, _is_core), 1):
            enough = len(tried.noticed) >= ENOUGH
            bad += not enough
            if given.done is not None and not tried.problem:
                json_lines.append(given.done, {"key": _key(mutant), "noticed": tried.noticed})
            told = tried.problem or "; ".join(
                f"{n} ({words})" for n, words in tried.noticed.items()
            )
            print(f"{number:>3}/{len(todo)} {'ok ' if enough else 'BAD'} {mutant.name}: "
                  f"{told or 'nobody'}", flush=True)  # fmt: skip
    print(f"{len(chosen)} mutants, {bad} problems")
    return 1 if bad else 0


def table(mutants: list[Mutant], done: dict[str, dict[str, str]]) -> str:
    """Markdown: which suites noticed which mutant, and by what."""
    lines = ["| mutant | noticed by |", "|---|---|"]
    for mutant in mutants:
        noticed = done.get(_key(mutant))
        told = "not tried"
        if noticed is not None:
            said = (f"{name}: `{words.replace('|', '/')}`" for name, words in noticed.items())
            told = "<br>".join(said) or "nobody"
        lines.append(f"| {mutant.name} | {told} |")
    return "\n".join(lines)


def _read_done(path: Path | None) -> dict[str, dict[str, str]]:
    if path is None:
        return {}
    try:
        return dict(json_lines.read(path, itemgetter("key", "noticed"), "what noticed a mutant"))
    except ValueError as error:
        raise Unfit(str(error)) from error


def _key(mutant: Mutant) -> str:
    """Changes with the patch and with the suites."""
    return f"{mutant.name} {hashlib.sha256(repr(mutant).encode()).hexdigest()[:12]}"


def _is_core(mutant: Mutant) -> bool:
    return mutant.file.startswith(CORE) and mutant.file.endswith("pp")


def _indented(error: Unfit) -> str:
    """What is wrong, and below it what a compiler said."""
    return str(error).strip().replace("\n", "\n        ")


def _without_fault(
    suites: dict[str, list[str]], chosen: list[Mutant], copies: list[Copy]
) -> tuple[dict[str, list[str]], int]:
    """The suites that pass: one that fails anyway notices nothing."""

    def attempt(copy: Copy, name: str) -> Ran:
        try:
            return copy.run(suites[name])
        except Unfit as error:
            return Ran(passed=False, words=_indented(error))

    sound, bad = {}, 0
    names = dict.fromkeys(suite for mutant in chosen for suite in mutant.suites)
    for name, ran in spread(copies, names, attempt):
        if ran.passed:
            sound[name] = suites[name]
        else:
            bad += 1
            print(f"suite '{name}' fails without a fault: {ran.words}", flush=True)
    return sound, bad


@dataclass(frozen=True)
class _Tried:
    """The suites that noticed a fault, and what failed first in each; or why it was not tried."""

    noticed: dict[str, str]
    problem: str = ""


def _tried(mutant: Mutant, suites: dict[str, list[str]], copy: Copy, *, everything: bool) -> _Tried:
    path = copy.root / mutant.file
    noticed: dict[str, str] = {}
    before = None
    try:
        planted = mutant.text(copy.root)
        before = path.read_text(encoding="utf-8")
        path.write_text(planted, encoding="utf-8")
        if _is_core(mutant):
            copy.build_core()
        for name in mutant.suites:
            if name in suites and not (ran := copy.run(suites[name])).passed:
                noticed[name] = ran.words
            if len(noticed) >= ENOUGH and not everything:
                break
    except Unfit as error:
        return _Tried({}, _indented(error))
    finally:
        if before is not None:
            path.write_text(before, encoding="utf-8")
            os.utime(path, (time.time(),) * 2)  # make must see that it is another one
        if _is_core(mutant):
            copy.sound_core()
    return _Tried(noticed)


if __name__ == "__main__":
    assert bridge.core
    try:
        sys.exit(main())
    except Unfit as error:
        sys.exit(str(error))
