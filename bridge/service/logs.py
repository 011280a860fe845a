# SPDX-License-Identifier: Apache-2.0
"""The package's log on standard error: text or JSON, a bounded number of lines of each kind.

Nothing else is imported here, because the agents of nodes use it and must be small.
"""

import json
import logging
import sys
import time
from collections import Counter as Counted
from collections.abc import Callable
from typing import Any, TextIO

_LONGEST_LINE = 4000
_MAX_LINES = 200
"""Maximum number of lines of a traceback."""

_BURST, _A_SECOND = 200, 5.0
"""Lines of one kind in the log: this many at once, then this many per second."""


def one_line(text: str) -> str:
    """Text without line ends and control sequences."""
    if len(text) > _LONGEST_LINE:
        text = text[:_LONGEST_LINE] + "..."
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


class TextFormatter(logging.Formatter):
    """One line for each record; lines of a traceback are marked to differ from records."""

    def format(self, record: logging.LogRecord) -> str:
        head = f"{self.formatTime(record)} {record.levelname} {record.name}: "
        lines = [head + one_line(record.getMessage())]
        if record.exc_info:
            trace = self.formatException(record.exc_info).splitlines()
            lines += ["    | " + one_line(line) for line in trace[-_MAX_LINES:]]
        return "\n".join(lines)


class JsonFormatter(logging.Formatter):
    """One JSON object per line: time, level, logger, message, and the exception if any."""

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, Any] = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage()[:_LONGEST_LINE],
        }
        if record.exc_info:
            trace = self.formatException(record.exc_info).splitlines()
            entry["exception"] = "\n".join(line[:_LONGEST_LINE] for line in trace[-_MAX_LINES:])
        text = json.dumps(entry, ensure_ascii=False)
        if text.isprintable():
            return text
        # Characters that JSON does not escape, but that end a line for some readers.
        return "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in text)


class BoundedHandler(logging.StreamHandler[TextIO]):
    """Writes the log; limits the number of lines of one kind (with the same pattern)."""

    def __init__(
        self, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(stream)
        self._clock = clock
        self._left: dict[tuple[str, str], tuple[float, float]] = {}
        self._omitted: Counted[tuple[str, str]] = Counted()

    def emit(self, record: logging.LogRecord) -> None:
        """Writes one record, or counts it."""
        kind, now = (record.name, str(record.msg)), self._clock()
        left, then = self._left.get(kind, (float(_BURST), now))
        left = min(float(_BURST), left + (now - then) * _A_SECOND)
        if left < 1:
            self._left[kind] = (left, now)
            self._omitted[kind] += 1
            return
        if len(self._left) > 10_000:  # texts without a pattern
            self._left.clear()
        self._left[kind] = (left - 1, now)
        if omitted := self._omitted.pop(kind, 0):
            text = "%d lines like the next one were left out"
            parts = (record.name, record.levelno, record.pathname, record.lineno, text, (omitted,))
            super().emit(logging.LogRecord(*parts, None))
        super().emit(record)


def start_logging(level: str, form: str) -> None:
    """Sends the package's log to standard error.

    Args:
        level: "debug", "info", "warning" or "error".
        form: "text" or "json".
    """
    handler = BoundedHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("bridge").setLevel(level.upper())
