# SPDX-License-Identifier: Apache-2.0
"""The log of operators' changes: who, when, what, from what to what, and with which result.

Rules
    1. Entries are lines of JSON in a file beside the memory. Beyond `MOST_BYTES` the file becomes
       the former one, which replaces the one before: at least the last `MOST_BYTES` are kept.
    2. Without a file, or where it cannot be written, the last `MOST_HELD` entries are held.
    3. A text of an entry has `MOST_TEXT` characters at most. A damaged line is skipped.
"""

import json
import logging
import os
import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

_log = logging.getLogger(__name__)

NAME: Final = "changes.jsonl"
MOST_BYTES: Final = 4 << 20
MOST_HELD: Final = 1000
MOST_TEXT: Final = 4000


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


class ChangeLog:
    """The file, and the last entries."""

    def __init__(self, path: Path | None) -> None:
        """Opens nothing yet.

        Args:
            path: of the file; None: entries are only held.
        """
        self._path = path
        self._lock = threading.Lock()
        self._held: deque[LoggedChange] = deque(maxlen=MOST_HELD)
        self._failed = False

    def add(self, change: LoggedChange) -> None:
        """Logs a change."""
        texts = ("user", "method", "before", "after", "result")
        values = asdict(change)
        values |= {name: _bounded(values[name]) for name in texts}
        change = LoggedChange(**values)
        _log.info(
            "change: %s by %s (uid %d): %s -> %s: %s",
            change.method, change.user, change.uid, change.before, change.after, change.result,
        )  # fmt: skip
        with self._lock:
            self._held.append(change)
            if self._path is None:
                return
            try:
                self._append(self._path, json.dumps(values).encode() + b"\n")
            except OSError as error:
                if not self._failed:
                    _log.error("changes are not written to %s: %s", self._path, error.strerror)
                self._failed = True
            else:
                self._failed = False

    def last(self, most: int, since_s: int = 0) -> list[LoggedChange]:
        """The last changes, oldest first; at most `most`, none before `since_s`."""
        with self._lock:
            found: deque[LoggedChange] = deque(maxlen=most)
            found.extend(each for each in self._all() if each.at_s >= since_s)
        return list(found)

    def _all(self) -> Iterator[LoggedChange]:
        if self._path is None or self._failed:
            yield from self._held
            return
        for path in (_former(self._path), self._path):
            try:
                with path.open("rb") as file:
                    for line in file:
                        if (change := _read(line)) is not None:
                            yield change
            except OSError:
                continue

    @staticmethod
    def _append(path: Path, line: bytes) -> None:
        if path.exists() and path.stat().st_size + len(line) > MOST_BYTES:
            path.replace(_former(path))
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        file = os.open(path, flags, 0o600)
        try:
            end = os.lseek(file, 0, os.SEEK_END)
            # After a crash within a line the next one begins a line of its own.
            if end and os.pread(file, 1, end - 1) != b"\n":
                line = b"\n" + line
            os.write(file, line)
            os.fsync(file)
        finally:
            os.close(file)


def _former(path: Path) -> Path:
    return path.with_name(path.name + ".1")


def _bounded(text: str) -> str:
    text = text.encode("utf-8", "replace").decode()
    return text if len(text) <= MOST_TEXT else f"{text[: MOST_TEXT - 3]}..."


def _read(line: bytes) -> LoggedChange | None:
    try:
        change = LoggedChange(**json.loads(line))
    except (ValueError, TypeError, RecursionError):
        return None
    kinds = {"at_s": int, "uid": int, "done": bool}
    sound = all(type(value) is kinds.get(name, str) for name, value in asdict(change).items())
    return change if sound else None
