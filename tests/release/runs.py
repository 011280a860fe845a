# SPDX-License-Identifier: Apache-2.0
"""What became of the suites: one line of JSON for each run, and the page made from them."""

import json
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from tests import json_lines
from tests.release.suites import SUITES

PASSED, FAILED, NOT_RUN = "passed", "failed", "not run"
CANNOT_RUN = 77
"""The exit code of a suite that lacks something it needs, as with automake."""
BEGIN, END = "<!-- suites -->", "<!-- end of suites -->"


@dataclass(frozen=True)
class Run:
    """One run of a suite.

    Attributes:
        suite: its name.
        commit: the commit that was tested; with "+" at the end, with uncommitted changes.
        result: PASSED, FAILED or NOT_RUN.
        said: its last line that says what was counted.
        seconds: how long it took.
        day: when it began, ISO date.
    """

    suite: str
    commit: str
    result: str
    said: str
    seconds: int
    day: str


def read(file: Path) -> list[Run]:
    """The runs in a file, oldest first; none if there is no file.

    Raises:
        ValueError: a line is none of this program's; the message names it.
    """
    return list(json_lines.read(file, lambda entry: Run(**entry), "a run of a suite"))


def keep(file: Path, run: Run) -> None:
    """Adds a run; of each suite only the latest one at a commit stays."""
    before = [old for old in read(file) if (old.suite, old.commit) != (run.suite, run.commit)]
    lines = [json.dumps(asdict(each)) for each in (*before, run)]
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_name(file.name + ".new")
    new.write_text("\n".join(lines) + "\n", encoding="utf-8")
    new.replace(file)


def result_of(code: int) -> str:
    """What an exit code of `scripts/test` says."""
    return {0: PASSED, CANNOT_RUN: NOT_RUN}.get(code, FAILED)


def counted(output: Iterable[str]) -> str:
    """The last line of a suite's output that counts something, else its last line."""
    lines = [line.strip("= \n") for line in output if line.strip("= \n")]
    for line in reversed(lines):
        if re.search(r"\d+ (passed|failed|mutants|seeds|runs|rounds|cases|tests)\b", line):
            return re.sub(r" in [\d.]+s( \([\d:, a-z]+\))?$", "", line)
    return lines[-1] if lines else ""


def table(runs: Iterable[Run]) -> str:
    """Markdown: the latest run of each suite, in the order of the list."""
    latest = {run.suite: run for run in runs}
    rows = ["| suite | protects | commit | result | counted | time |", "|---|---|---|---|---|---:|"]
    for suite in SUITES:
        run = latest.get(suite.name)
        cells = (
            ("", "no run is recorded", "", "")
            if run is None
            else (f"{run.commit[:10]}, {run.day}", run.result, run.said.replace("|", "/"),
                  f"{run.seconds / 60:.1f} min")
        )  # fmt: skip
        rows.append("| " + " | ".join((f"`{suite.name}`", suite.protects, *cells)) + " |")
    return "\n".join(rows)


def renewed(page: str, runs: Iterable[Run]) -> str:
    """A page with the table between its two marks made anew.

    Raises:
        ValueError: the page lacks a mark.
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"the page must hold {BEGIN} and, after it, {END}")
    return f"{before}{BEGIN}\n{table(runs)}\n{END}{after}"
