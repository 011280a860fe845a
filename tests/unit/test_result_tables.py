# SPDX-License-Identifier: Apache-2.0
"""The tables in docs/results show what the results files hold.

A comment above each table with figures names its source, relative to `benchmarks/`:

    <!-- rows: PROGRAM ARGUMENTS -->       each row is a line that the program prints
    <!-- values: SOURCE; ... -->           each number is, rounded as shown, a value in one of the
                                           files, or a number that one of the programs prints

`; without NAME / NAME` at the end of `values` leaves out columns and rows with that title: figures
that others have published, and ratios of two values. Numbers of one digit are not compared.

Prose on other pages is compared if it is marked likewise, with a file of results or a page of
docs/results, whose tables then hold the numbers as they are:

    <!-- figures: SOURCE -->
    ...
    <!-- end of figures -->
"""

import json
import re
import shlex
from bisect import bisect_left
from collections.abc import Iterable
from copy import copy
from functools import cache
from pathlib import Path

from tests.in_turn import Call, in_turn

ROOT = Path(__file__).parents[2]
BENCHMARKS = ROOT / "benchmarks"
GENERATED = ("differential.md", "documents.md", "pbs-differential.md", "slurm-suite.md", "tests.md")
"""Written by tests/differential, tests/documents, tests/real_pbs, tests/slurm_suite and
tests/release from their runs; the tests of documents and of releases compare their pages."""
MARK = re.compile(r"<!-- (rows|values): (.*) -->")
NUMBER = re.compile(r"(?<![\w.])(?:\d[\d,]*\d|\d)?(?:\.\d+)?(?![\w])")
PROSE = re.compile(r"<!-- figures: (\S+) -->\n(.*?)<!-- end of figures -->", re.DOTALL)
NO_FIGURES = re.compile(r"`[^`]*`|\]\([^)]*\)|\bSP2\b")
"""Code, addresses, names of logs."""
MAX_UNMARKED = 20
"""Numbers in a table that is about something else: what was replayed, how networks were trained."""
SCALES = (1.0, 100.0, 1e-3, 1e3, 1 / 60, 1 / 3600, 1 / 86_400)
"""As it is; a share in percent; ms of s, s of ms; minutes, hours, days of seconds."""


class Table:
    """A table of a page.

    Attributes:
        kind, sources, without: of the comment above it; None, (), (): there is none.
        rows: lines of its body.
    """

    def __init__(self, page: Path, head: int, end: int, lines: list[str]) -> None:
        self.name = f"{page.name}:{head + 1}"
        self.titles, self.rows = cells(lines[head]), lines[head + 2 : end]
        mark = MARK.fullmatch(lines[head - 2])
        self.kind = mark[1] if mark else None
        text, _, without = (mark[2] if mark else "").partition("; without ")
        self.sources = tuple(text.split("; ")) if text else ()
        self.without = without.split(" / ") if without else []

    def numbers(self) -> list[str]:
        """Numbers of two digits or more in the columns behind the first."""
        found = []
        for row in map(cells, self.rows):
            shown = zip(self.titles[1:], row[1:], strict=True)
            kept = [cell for title, cell in shown if title not in self.without]
            found += NUMBER.findall(" ".join(kept)) if row[0] not in self.without else []
        return [number for number in found if len(re.sub(r"\D", "", number).lstrip("0")) > 1]


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip("|"))]


def tables(page: Path) -> list[Table]:
    lines = [*page.read_text().splitlines(), ""]
    found = []
    for at, line in enumerate(lines):
        if re.fullmatch(r"\|[-:| ]+\|", line):
            end = next(row for row in range(at, len(lines)) if not lines[row].startswith("|"))
            found.append(Table(page, at - 1, end, lines))
    return found


PAGES = sorted((ROOT / "docs" / "results").glob("*.md"))
TABLES = [table for page in PAGES if page.name not in GENERATED for table in tables(page)]


def is_program(source: str) -> bool:
    """A file of results has no arguments."""
    return " " in source


@cache
def outputs() -> dict[str, str]:
    """What all programs that are sources print."""
    commands = sorted(
        {source for table in TABLES for source in table.sources if is_program(source)}
    )
    words = [shlex.split(command) for command in commands]
    calls = [Call(BENCHMARKS / program, tuple(arguments)) for program, *arguments in words]
    results = in_turn(calls, BENCHMARKS)
    failed = {c: r.failure for c, r in zip(commands, results, strict=True) if r.failure}
    assert failed == {}
    return {c: r.printed for c, r in zip(commands, results, strict=True)}


@cache
def values(source: str) -> tuple[float, ...]:
    """All numbers of a file, or that a program prints; ascending."""
    found: set[float] = set()

    def gather(item: object) -> None:
        if isinstance(item, dict):
            for each in item.values():
                gather(each)
        elif isinstance(item, list):
            for each in item:
                gather(each)
        elif isinstance(item, str):
            found.update(float(m.replace(",", "")) for m in re.findall(r"\d[\d,]*(?:\.\d+)?", item))
        elif isinstance(item, int | float):
            found.add(abs(float(item)))

    if not is_program(source):
        text = (BENCHMARKS / source).read_text()
        lines = text.splitlines() if source.endswith("l") else [text]
        gather([json.loads(line) for line in lines if line.strip()])
    else:
        gather(outputs()[source])
    return tuple(sorted(found))


def is_value(number: str, known: tuple[float, ...]) -> bool:
    whole, _, part = number.replace(",", "").partition(".")
    value, half = float(f"{whole or 0}.{part or 0}"), 0.5001 * 10.0 ** -len(part)
    for scale in SCALES:
        at = bisect_left(known, (value - half) / scale)
        if at < len(known) and known[at] <= (value + half) / scale:
            return True
    return False


def missing(table: Table) -> list[str]:
    """What a table shows and its sources do not hold."""
    if table.kind == "rows":
        lines = {line for source in table.sources for line in outputs()[source].splitlines()}
        return [row for row in table.rows if row not in lines]
    known = tuple(sorted(value for source in table.sources for value in values(source)))
    return [number for number in table.numbers() if not is_value(number, known)]


def test_a_table_shows_what_its_source_holds() -> None:
    """Slow: calls every program that makes a table."""
    found = {table.name: missing(table) for table in TABLES if table.kind}
    assert {name: numbers for name, numbers in found.items() if numbers} == {}


def test_tables_with_figures_name_their_source() -> None:
    silent = [table for table in TABLES if table.kind is None]
    assert [table.name for table in silent if len(table.numbers()) >= MAX_UNMARKED] == []


def test_a_figure_that_differs_is_noticed() -> None:
    for table in TABLES:
        if table.kind == "rows":
            other = copy(table)
            other.rows = [f"{row} 1 |" for row in table.rows]
            assert missing(other) != []
        elif table.kind == "values":
            known = tuple(sorted(value for source in table.sources for value in values(source)))
            numbers = [number.replace(",", "") for number in table.numbers()]
            wrong = [f"{float(n) * 1.13:.{len(n.partition('.')[2])}f}" for n in numbers]
            assert not all(is_value(number, known) for number in wrong), table.name


def quoted(page: Path) -> list[tuple[str, str]]:
    """Source and text of the marked prose of a page."""
    return PROSE.findall(page.read_text())


def wrong(source: str, text: str, factor: float = 1.0) -> list[str]:
    """The numbers of a text, times a factor, that its source does not hold."""
    rows: set[str] = set()
    if source.endswith(".md"):
        shown = " ".join(row for table in tables(ROOT / source) for row in table.rows)
        rows = {number.replace(",", "") for number in NUMBER.findall(shown)}
    found = []
    for number in NUMBER.findall(NO_FIGURES.sub("", text)):
        digits = number.replace(",", "")
        if len(re.sub(r"\D", "", digits).lstrip("0")) > 1:
            other = f"{float(digits) * factor:.{len(digits.partition('.')[2])}f}"
            there = other in rows if rows else is_value(other, values(source))
            found += [] if there else [number]
    return found


QUOTING = [page for page in sorted((ROOT / "docs").rglob("*.md")) if quoted(page)]


def test_marked_prose_shows_what_its_source_holds() -> None:
    marked = [(page.name, source, text) for page in QUOTING for source, text in quoted(page)]
    found = {(page, source): wrong(source, text) for page, source, text in marked}
    assert {where: numbers for where, numbers in found.items() if numbers} == {}
    for page, source, text in marked:
        noticed = wrong(source, text, factor=1.13)
        assert len(noticed) >= 2, f"{page}: figures that differ from {source} are not noticed"


def test_prose_is_marked() -> None:
    assert {page.name for page in QUOTING} >= {"TRACES.md", "0001-wire.md"}


def test_sources_are_named() -> None:
    assert sum(table.kind in ("rows", "values") for table in TABLES) >= 40


OLDER = {
    "placement-cluster.json": "needs over an hour of five clusters of 64 nodes at once",
    "placement-experiment.json": "takes over half an hour of a core, most of it in SCIP",
}
"""Measured before the programs called `about`, and why not since: the set only shrinks."""


def states_origin(found: object) -> bool:
    """Whether commit, command and load are stated: here, or by each part that holds results."""
    if isinstance(found, dict):
        named = all(isinstance(found.get(key), str) for key in ("commit", "command"))
        return (named and names_load(found)) or parts_state_origin(found.values())
    return isinstance(found, list) and parts_state_origin(found)


def parts_state_origin(parts: Iterable[object]) -> bool:
    held = [part for part in parts if isinstance(part, dict | list)]
    return bool(held) and all(map(states_origin, held))


def names_load(found: object) -> bool:
    """Whether a load of the machine is among the figures."""
    if isinstance(found, dict):
        loads = any(key.startswith(("load_average", "load_1min")) for key in found)
        return loads or any(map(names_load, found.values()))
    return isinstance(found, list) and any(map(names_load, found))


def test_results_say_where_they_come_from() -> None:
    """Files in `OLDER` do not, all others do: so the set only shrinks."""
    files = (BENCHMARKS / "results").glob("*.json*")
    assert {path.name for path in files if not states_origin(read_result(path))} == set(OLDER)


def test_a_result_without_origin_is_noticed() -> None:
    origin = {"commit": "abc", "command": "x.py", "machine": {"load_average": [0.1]}}
    assert states_origin({**origin, "rows": [{"ms": 1}]})
    assert states_origin({"one": origin, "two": {"runs": [origin, origin]}})
    assert not states_origin({"one": origin, "two": {"ms": 1}})
    assert not states_origin({"rows": [origin, {"ms": 1}]})
    assert not states_origin({"rows": []})
    for key in origin:
        assert not states_origin({name: value for name, value in origin.items() if name != key})


def read_result(path: Path) -> object:
    text = path.read_text()
    return json.loads(text) if path.suffix == ".json" else list(map(json.loads, text.splitlines()))
