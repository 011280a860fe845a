# SPDX-License-Identifier: Apache-2.0
"""The files of the log of changes: lines of JSON beside the memory.

Rules
    1. Administrators' changes are appended. Beyond `MAX_BYTES` the file becomes the former one,
       which replaces the one before: at least the last `MAX_BYTES` are kept.
    2. The others' file is replaced as a whole: its contents are bounded by `OthersChanges`.
    3. No link is followed. A damaged line is skipped, and so is one that no answer can hold: the
       others are listed.
"""

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from bridge.units import NEVER

NAME: Final = "changes.jsonl"
MAX_BYTES: Final = 4 << 20
MAX_TEXT: Final = 4000
_FLAGS: Final = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW


@dataclass(frozen=True)
class LoggedChange:
    """One change that somebody requested.

    Attributes:
        at_s: when, Unix seconds.
        uid: of the user, as the kernel says; -1: it was a program without one.
        user: the user's name, or the program's.
        method: what was called.
        before: what was in force.
        after: what was requested.
        result: "done", or why not.
        done: it was carried out.
    """

    at_s: int
    uid: int
    user: str
    method: str
    before: str
    after: str
    result: str
    done: bool


def others_file(path: Path) -> Path:
    """The file of those who are no administrators, beside the administrators' one."""
    return path.with_name(f"{path.stem}-of-others{path.suffix}")


def append(path: Path, change: LoggedChange) -> None:
    """Rule 1; returns when the disk has the entry."""
    line = _line(change)
    if path.exists() and path.stat().st_size + len(line) > MAX_BYTES:
        path.replace(_former(path))
    with os.fdopen(os.open(path, _FLAGS | os.O_APPEND, 0o600), "r+b", buffering=0) as file:
        end = file.seek(0, os.SEEK_END)
        # After a crash within a line the next one begins a line of its own.
        if end and os.pread(file.fileno(), 1, end - 1) != b"\n":
            line = b"\n" + line
        file.write(line)
        os.fsync(file.fileno())


def replace(path: Path, changes: Iterable[LoggedChange]) -> None:
    """Rule 2; returns when the disk has the entries."""
    new = path.with_name(path.name + ".new")
    with os.fdopen(os.open(new, _FLAGS | os.O_TRUNC, 0o600), "wb") as file:
        file.writelines(map(_line, changes))
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)


def read(path: Path) -> Iterator[LoggedChange]:
    """The entries of the former file and of this one, oldest first."""
    for each in (_former(path), path):
        try:
            with each.open("rb") as file:
                for line in file:
                    if (change := _read_line(line)) is not None:
                        yield change
        except OSError:
            continue


def _former(path: Path) -> Path:
    return path.with_name(path.name + ".1")


def _line(change: LoggedChange) -> bytes:
    return json.dumps(asdict(change)).encode() + b"\n"


def _read_line(line: bytes) -> LoggedChange | None:
    try:
        change = LoggedChange(**json.loads(line))
    except (ValueError, TypeError, RecursionError):
        return None
    kinds = {"at_s": int, "uid": int, "done": bool}
    values = asdict(change)
    sound = all(type(value) is kinds.get(name, str) for name, value in values.items())
    if not sound or not (0 <= change.at_s < NEVER and -1 <= change.uid < 1 << 32):
        return None
    texts = [value for value in values.values() if isinstance(value, str)]
    return change if all(_is_sendable(text) for text in texts) else None


def _is_sendable(text: str) -> bool:
    """It is short, and has no half of a character."""
    return len(text) <= MAX_TEXT and not any("\ud800" <= sign <= "\udfff" for sign in text)
