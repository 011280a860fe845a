# SPDX-License-Identifier: Apache-2.0
"""Results files: JSON in which each row of a table is a line, so that a diff shows what changed."""

import json
from collections.abc import Mapping
from pathlib import Path


def write(path: Path, found: Mapping[str, object]) -> None:
    """Writes an object; also after each run, so that an interrupted program keeps what it has."""
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
            rows = ",".join(f"{pad} {_value(row, depth + 2)}" for row in value)
            text = f"[{rows}{pad}]"
        parts.append(f"{pad}{json.dumps(key)}: {text}")
    return "{" + ",".join(parts) + pad[:-1] + "}"


def _value(value: object, depth: int) -> str:
    if isinstance(value, dict) and any(map(_is_table, value.values())):
        return _object(value, depth)
    return json.dumps(value)


def _is_table(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(row, dict) for row in value)
