# SPDX-License-Identifier: Apache-2.0
"""Results files: JSON in which each run is a line, so that diffs are readable."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol


class Table(Protocol):
    """A module that shows a results file."""

    def lines(self, found: Mapping[str, Any]) -> Sequence[str]:
        """A table as lines of Markdown."""

    def plot(self, found: Mapping[str, Any], path: Path) -> None:
        """Draws a plot."""


def shown(table: Table, show: Path | None, plot: Path | None) -> bool:
    """Prints or draws a results file, if requested; returns whether it did."""
    for path in (show, plot):
        if path is None:
            continue
        found = json.loads(path.read_text())
        if path is plot:
            table.plot(found, path.with_suffix(".svg"))
        else:
            print("\n".join(table.lines(found)))
    return bool(show or plot)


def write(path: Path, found: Mapping[str, object]) -> None:
    """Writes an object; also after each run, so that an interrupted program keeps its results."""
    path.write_text(as_text(found) + "\n", encoding="utf-8")


def as_text(found: Mapping[str, object]) -> str:
    """The object with a line for each key, and for each row of a list of objects."""
    return _object(found, 1)


def _object(found: Mapping[str, object], depth: int) -> str:
    pad = "\n" + " " * depth
    parts = []
    for key, value in found.items():
        text = _value(value, depth + 1)
        if _is_table(value):
            rows = ",".join(f"{pad} {json.dumps(row)}" for row in value)
            text = f"[{rows}{pad}]"
        parts.append(f"{pad}{json.dumps(key)}: {text}")
    return "{" + ",".join(parts) + pad[:-1] + "}"


def _value(value: object, depth: int) -> str:
    if isinstance(value, dict) and any(map(_is_table, value.values())):
        return _object(value, depth)
    return json.dumps(value)


def _is_table(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(row, dict) for row in value)
