# SPDX-License-Identifier: Apache-2.0
"""The files of the log of changes: lines of JSON beside the memory.

Rules
    1. Administrators' changes are appended. Beyond `MAX_BYTES` the file becomes the former one,
       which replaces the one before: at least the last `MAX_BYTES` are kept.
    2. The others' file is replaced as a whole: its contents are bounded by `OthersChanges`.
    3. No link is followed. A line that is no change is skipped: the others are listed.
    4. What is in force is a file of text, replaced as a whole: the next start compares with it.
"""

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from google.protobuf.json_format import MessageToDict, Parse, ParseError

from bridge.rpc.pb import operator_pb2 as pb
from bridge.units import NEVER

NAME: Final = "changes.jsonl"
IN_FORCE: Final = "in-force.json"
MAX_BYTES: Final = 4 << 20
MAX_TEXT: Final = 4000
MAX_IN_FORCE: Final = 64 << 20
TEXTS: Final = ("user", "method", "before", "after", "result")
_FLAGS: Final = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW


def others_file(path: Path) -> Path:
    """The file of those who are no administrators, beside the administrators' one."""
    return path.with_name(f"{path.stem}-of-others{path.suffix}")


def append(path: Path, change: pb.OperatorChange) -> None:
    """Appends an entry; returns when the disk has it (rule 1)."""
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


def replace(path: Path, changes: Iterable[pb.OperatorChange]) -> None:
    """Replaces all entries; returns when the disk has them (rule 2)."""
    _replace(path, map(_line, changes))


def replace_in_force(path: Path, text: str) -> None:
    """Replaces what is in force, beside the administrators' file (rule 4)."""
    _replace(path.with_name(IN_FORCE), [text.encode()])


def read_in_force(path: Path) -> str | None:
    """What was in force, as text; None: there is no such file, or it cannot be read."""
    try:
        descriptor = os.open(path.with_name(IN_FORCE), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        with os.fdopen(descriptor, encoding="utf-8", errors="replace") as file:
            return file.read(MAX_IN_FORCE)
    except OSError:
        return None


def read(path: Path) -> Iterator[pb.OperatorChange]:
    """The entries of the former file and of this one, oldest first."""
    for each in (_former(path), path):
        try:
            with each.open("rb") as file:
                for line in file:
                    if (change := _read_line(line)) is not None:
                        yield change
        except OSError:
            continue


def _replace(path: Path, lines: Iterable[bytes]) -> None:
    new = path.with_name(path.name + ".new")
    with os.fdopen(os.open(new, _FLAGS | os.O_TRUNC, 0o600), "wb") as file:
        file.writelines(lines)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)


def _former(path: Path) -> Path:
    return path.with_name(path.name + ".1")


def _line(change: pb.OperatorChange) -> bytes:
    fields = MessageToDict(
        change, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )
    # It writes 64-bit integers as strings.
    return json.dumps(fields | {"at_s": change.at_s, "uid": change.uid}).encode() + b"\n"


def _read_line(line: bytes) -> pb.OperatorChange | None:
    try:
        change = Parse(line, pb.OperatorChange())
    except (ParseError, ValueError, RecursionError):
        return None
    numbers = 0 <= change.at_s < NEVER and -1 <= change.uid < 1 << 32
    texts = change.method and all(len(getattr(change, name)) <= MAX_TEXT for name in TEXTS)
    return change if numbers and texts else None
