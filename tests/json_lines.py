# SPDX-License-Identifier: Apache-2.0
"""Files of results, one line of JSON each, to which a program that may be killed adds lines."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

Entry = TypeVar("Entry")


def read(path: Path, parse: Callable[[Any], Entry], what: str) -> Iterator[Entry]:
    """Yields what each line holds; nothing if there is no file.

    Half a line at the end, which a program left that was killed, is ignored.

    Args:
        parse: makes an entry from what a line holds.
        what: what a line should be, for the message.

    Raises:
        ValueError: a line is none of this program's.
    """
    if not path.exists():
        return
    *lines, half = path.read_bytes().split(b"\n")
    if half and not half.startswith(b"{"):
        lines.append(half)
    for number, line in enumerate(lines, 1):
        try:
            yield parse(json.loads(line))
        except (ValueError, TypeError, KeyError) as error:
            problem = f"{type(error).__name__}: {error}"
            raise ValueError(f"{path}, line {number} is not {what}: {problem}") from error


def append(path: Path, entry: dict[str, Any]) -> None:
    """Adds a line; half a line at the end is cut off first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        if file.tell():
            file.seek(-1, os.SEEK_END)
            if file.read() != b"\n":
                file.truncate(path.read_bytes().rfind(b"\n") + 1)
        file.write(json.dumps(entry).encode() + b"\n")
