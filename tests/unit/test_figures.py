# SPDX-License-Identifier: Apache-2.0
"""The figures in README's table are those in the files that the rows name.

The title of a row's link holds the key of its first figure, and of the second if that is measured
too. A key is a path of names, joined by dots; a dot inside a name is written `~`.
`[name=value,...]` filters a list. Of several values the median is taken, or the mean if the key
begins with `mean `.
"""

import json
import re
import statistics
from pathlib import Path
from typing import Any

import pytest

from schedbridge_contracts.crosses import each

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"
NUMBER = re.compile(r"(\d[\d,]*(?:\.\d+)?)( %)?")


def rows() -> list[list[str]]:
    table = (ROOT / "README.md").read_text()
    table = table.split("<!-- headline figures -->")[1].split("<!-- end of headline figures -->")[0]
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in table.strip().splitlines()[2:]
    ]


def read(file: str) -> Any:
    text = (RESULTS / file).read_text()
    if file.endswith(".jsonl"):
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    return json.loads(text)


def follow(value: Any, path: str) -> Any:
    for name in path.split("."):
        value = value.get(name.replace("~", ".")) if isinstance(value, dict) else None
    return value


def chosen(items: list[Any], conditions: str) -> list[Any]:
    wanted = [one.split("=", 1) for one in conditions.split(",")] if conditions else []
    return [i for i in items if all(str(follow(i, name)) == value for name, value in wanted)]


def look_up(data: Any, key: str) -> float:
    """The value at a key; fails if there is none."""
    kind, key = ("mean", key[5:]) if key.startswith("mean ") else ("median", key)
    match = re.fullmatch(r"(?P<path>[^\[]*)(?:\[(?P<conditions>[^\]]*)\])?(?:\.(?P<rest>.*))?", key)
    assert match, key
    path, conditions, rest = match["path"], match["conditions"], match["rest"]
    if conditions is None and "." in path and isinstance(follow(data, path.split(".")[0]), list):
        path, rest = path.split(".", 1)
        conditions = ""
    found = follow(data, path) if path else data
    if conditions is not None:
        found = [follow(item, rest) for item in chosen(found, conditions)]
        assert found, f"nothing at {key}"
        return float(statistics.mean(found) if kind == "mean" else statistics.median(found))
    assert found is not None, f"nothing at {key}"
    return float(found)


def shown(cell: str) -> tuple[float, float]:
    """The first number of a cell, and half a unit of its last place."""
    match = NUMBER.search(cell)
    assert match, cell
    digits = match[1].replace(",", "")
    part = 0.01 if match[2] else 1.0
    return float(digits) * part, 0.5 * 10.0 ** -len(digits.partition(".")[2]) * part


@each(row={row[0]: row for row in rows()})
def test_the_figures_are_those_of_the_file(row: list[str]) -> None:
    _, ours, peer, taken, source = row
    assert re.match(r"\d{4}-\d\d-\d\d, \w", taken), "date and machine"
    link = re.fullmatch(r'\[([\w.-]+)\]\(benchmarks/results/\1 "([^"]+)"\)', source)
    assert link, source
    data = read(link[1])
    for cell, key in zip((ours, peer), link[2].split("; "), strict=False):
        number, error = shown(cell)
        assert look_up(data, key) == pytest.approx(number, abs=error * 1.0001), key


def test_a_wrong_figure_is_noticed() -> None:
    data = {"runs": [{"run": "a", "s": 1.0}, {"run": "b", "s": 2.0}, {"run": "b", "s": 4.0}]}
    assert look_up(data, "runs[run=b].s") == 3.0
    assert look_up(data, "mean runs.s") == pytest.approx(7 / 3)
    number, error = shown("1,234.5 ms")
    assert (number, error) == (1234.5, 0.05)
    assert shown("47 % after 119 s") == pytest.approx((0.47, 0.005))


def test_every_row_of_the_table_is_read() -> None:
    assert len(rows()) >= 12
    assert all(len(row) == 5 for row in rows())
