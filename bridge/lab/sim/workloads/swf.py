# SPDX-License-Identifier: Apache-2.0
"""The Standard Workload Format: one job per line, 18 numbers, -1 for unknown.

Words: a *directive* is a header comment `; Name: value`; a *data line* is any line that is neither
blank nor a comment.

Rules:
1. A file may be plain or packed by gzip, xz or bzip2, in UTF-8 or UTF-16
   (`bridge.lab.sim.workloads.packed_text`). Lines that begin with `#` are comments, too.
2. Every data line has as many fields as the first, at least 18. Fields beyond the 18th are an
   extension by the producer of the file; they are kept as text and not interpreted.
3. Fields are finite numbers. All but times and memory are whole numbers. Submit times are not
   negative, and no time is beyond `LATEST_S`.
4. A line that breaks rule 2 or 3, and a packed stream that stops early, is refused with its line
   number. `lenient` drops the line and counts it.

A file cut off exactly at a line end cannot be distinguished from a shorter one: `MaxRecords` of the
header does not help, because cleaned logs keep the number of the uncleaned one.

Source: D. G. Feitelson, The Standard Workload Format, Parallel Workloads Archive.
"""

import gzip
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from io import BytesIO
from math import isfinite
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bridge.errors import TraceError
from bridge.files import MIB, held_bytes, history_budget, history_bytes
from bridge.lab.sim.workloads.packed_text import PackedText, foreign
from bridge.line_text import on_one_line

N_FIELDS = 18
LONGEST_LINE = MIB
LATEST_S = 1 << 38
"""Latest time in a trace: some 8,700 years."""

_LARGEST = float(2**53)
_BLOCK, _BLOCK_B = 1 << 14, 1 << 23
"""Lines that are read together, and the bytes after which fewer are."""


class Field(IntEnum):
    """Columns of a trace, from 0."""

    JOB = 0
    SUBMIT_S = 1
    WAIT_S = 2
    RUNTIME_S = 3
    ALLOCATED_PROCESSORS = 4
    AVERAGE_CPU_S = 5
    USED_MEMORY_KIB = 6
    REQUESTED_PROCESSORS = 7
    REQUESTED_TIME_S = 8
    REQUESTED_MEMORY_KIB = 9
    STATUS = 10
    USER = 11
    GROUP = 12
    EXECUTABLE = 13
    QUEUE = 14
    PARTITION = 15
    PRECEDING_JOB = 16
    THINK_TIME_S = 17


_TIMES = [Field.SUBMIT_S, Field.WAIT_S, Field.RUNTIME_S, Field.REQUESTED_TIME_S, Field.THINK_TIME_S]
_MAY_BE_FRACTIONS = frozenset(
    (*_TIMES, Field.AVERAGE_CPU_S, Field.USED_MEMORY_KIB, Field.REQUESTED_MEMORY_KIB)
)
_WHOLE = [field for field in Field if field not in _MAY_BE_FRACTIONS]


@dataclass(frozen=True)
class Trace:
    """The contents of a trace file.

    Attributes:
        path: the path of the file, for messages.
        header: comment lines in order, without `;` and line ends.
        columns: (n_jobs, 18) float64, indexed by `Field`.
        dropped: a message for each line that a lenient reading dropped; empty when strict.
        extension: for each job its fields beyond the 18th, as text; empty if the trace has none.
    """

    path: str
    header: tuple[str, ...]
    columns: NDArray[np.float64]
    dropped: tuple[str, ...] = ()
    extension: tuple[tuple[str, ...], ...] = ()

    def directive(self, name: str) -> str | None:
        """Value of the first header line `name: value`; None: there is none."""
        for line in self.header:
            key, colon, value = line.partition(":")
            if colon and key.strip().lower() == name.lower():
                # Old logs are not all UTF-8: invalid bytes are shown as escapes.
                return value.strip().encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        return None

    def text(self, number: int) -> list[str]:
        """A field beyond the 18th of every job.

        Args:
            number: the number of the field, from 19.

        Raises:
            TraceError: the trace has no such field.
        """
        have = N_FIELDS + (len(self.extension[0]) if self.extension else 0)
        if not N_FIELDS < number <= have:
            raise TraceError(self.path, None, f"has {have} fields, no field {number} with text")
        return [fields[number - N_FIELDS - 1] for fields in self.extension]

    def whole_number(self, name: str) -> int | None:
        """First number of a directive: `MaxNodes: 338 (batch partition)` gives 338."""
        words = (self.directive(name) or "").split()
        try:
            return int(words[0])
        except (IndexError, ValueError):
            return None


def read_swf(path: str | Path, *, lenient: bool = False) -> Trace:
    """Reads a trace.

    Args:
        path: an `.swf` file, plain or packed.
        lenient: drop lines that break the rules instead of refusing the file.

    Raises:
        TraceError: the file cannot be opened, has no jobs, or (strict) breaks a rule.
    """
    shown = str(path)
    try:
        with PackedText(path, history_bytes()) as packed:
            if not lenient and (what := foreign(packed.head)) is not None:
                raise TraceError(shown, None, what)
            reading = _Reading(shown, lenient)
            for line in packed.lines(LONGEST_LINE):
                reading.take(line)
            return reading.end(packed.fault, packed.remedy)
    except OSError as error:
        raise TraceError(shown, None, f"cannot be read: {error.strerror}") from None


class _Reading:
    """Lines become columns block by block; the memory of all that is kept is counted."""

    def __init__(self, shown: str, lenient: bool) -> None:
        self._shown, self._lenient = shown, lenient
        self._budget = history_budget()
        self._line, self._width, self._bytes = 0, 0, 0
        self._header: list[str] = []
        self._where: list[int] = []
        self._data: list[bytes] = []
        self._columns: list[NDArray[np.float64]] = []
        self._dropped: list[str] = []
        self._extension: list[tuple[str, ...]] = []

    def take(self, line: bytes) -> None:
        self._line += 1
        text = line.strip()
        if text.startswith((b";", b"#")):
            self._header.append(text[1:].strip().decode("utf-8", "surrogateescape"))
            self._budget.take(held_bytes(self._header[-1]))
        elif text:
            if not self._width:
                if not self._lenient and (what := _separated(text)) is not None:
                    raise TraceError(self._shown, self._line, what)
                self._width = max(N_FIELDS, len(text.split()))
            self._where.append(self._line)
            self._data.append(text)
            self._bytes += len(text)
            if len(self._data) == _BLOCK or self._bytes >= _BLOCK_B:
                self._read_block()

    def end(self, fault: str | None, remedy: str) -> Trace:
        """The trace, after its last line.

        Args:
            fault: the fault at the file's end, if there is one.

        Raises:
            TraceError: it has no jobs, or (strict) breaks a rule.
            OSError: it needs too much memory.
        """
        if fault is not None and not self._lenient:
            what = f"{fault}: {remedy}, or read it up to there with --lenient"
            raise TraceError(self._shown, self._line + 1, what)
        self._read_block()
        if fault is not None:
            self._drop(f"{self._shown}:{self._line + 1}: {fault}")
        if not self._columns:
            raise TraceError(self._shown, None, "no job lines: this is not a trace, or it is empty")
        columns = np.concatenate(self._columns)
        return Trace(
            self._shown,
            tuple(self._header),
            columns,
            tuple(self._dropped),
            tuple(self._extension),
        )

    def _read_block(self) -> None:
        data = self._data
        columns = _parse_all(data, self._width)
        if columns is None:
            columns, data = self._parse_each()
        self._budget.take(2 * columns.nbytes)  # once more when blocks are joined
        if len(columns):
            self._columns.append(columns)
        if self._width > N_FIELDS:
            for line in data:
                fields = _extension(line)
                self._budget.take(held_bytes(fields))
                self._extension.append(fields)
        self._where, self._data, self._bytes = [], [], 0

    def _parse_each(self) -> tuple[NDArray[np.float64], list[bytes]]:
        """Reads line by line, to name the wrong ones; returns the good lines, too."""
        rows: list[list[float]] = []
        good: list[bytes] = []
        for number, line in zip(self._where, self._data, strict=True):
            values, fault = _parse_line(line, self._width)
            if fault is None:
                rows.append(values)
                good.append(line)
            elif self._lenient:
                self._drop(f"{self._shown}:{number}: {fault}")
            else:
                hint = "fix or remove the line, or use --lenient to drop it"
                raise TraceError(self._shown, number, f"{fault}; {hint}")
        return np.array(rows, np.float64).reshape(len(rows), N_FIELDS), good

    def _drop(self, message: str) -> None:
        self._budget.take(held_bytes(message))
        self._dropped.append(message)


def write_swf(path: Path, header: Iterable[str], columns: NDArray[np.float64]) -> None:
    """Writes a trace that `read_swf` reads back unchanged; gzip if the name ends in `.gz`."""
    lines = (on_one_line(line.strip()) for line in header)
    text = "".join(f"; {line}\n" if line else ";\n" for line in lines)
    body = BytesIO()
    np.savetxt(body, columns, fmt="%.15g")
    raw = text.encode("utf-8", "surrogateescape") + body.getvalue()
    # mtime 0: the same schedule gives the same bytes.
    path.write_bytes(gzip.compress(raw, mtime=0) if path.suffix == ".gz" else raw)


def _separated(line: bytes) -> str | None:
    """What a file with this first line is, if its fields are not separated by blanks."""
    if line.startswith((b"{", b"[")):
        return (
            "this is JSON, not the Standard Workload Format: 'schedbridge lab import' reads what"
            " sacct --json prints"
        )
    if b"|" in line:
        return (
            "fields are separated by '|': 'schedbridge lab import' reads what"
            " sacct --parsable2 prints"
        )
    for sign in (b",", b";"):
        if line.count(sign) >= 3 and len(line.split()) < N_FIELDS:
            return (
                f"fields are separated by '{sign.decode()}': this is CSV, and the Standard Workload"
                " Format has 18 numbers with blanks between them"
            )
    return None


def _parse_all(data: list[bytes], width: int) -> NDArray[np.float64] | None:
    """Reads lines at once; None if any of them breaks a rule, or there is none."""
    if not data or any(len(line.split()) != width for line in data):
        return None
    try:
        columns = np.loadtxt(
            data,
            comments=None,
            ndmin=2,
            usecols=range(N_FIELDS) if width > N_FIELDS else None,
            dtype=np.float64,
        )
    except ValueError:
        return None
    whole = columns[:, _WHOLE]
    sound = (
        np.all(np.abs(columns) <= _LARGEST)  # false for nan, too
        and np.array_equal(whole, np.floor(whole))
        and np.all(columns[:, Field.SUBMIT_S] >= 0)
        and np.all(np.abs(columns[:, _TIMES]) <= LATEST_S)
    )
    return columns if sound else None


def _extension(line: bytes) -> tuple[str, ...]:
    """The fields of a line beyond the 18th."""
    return tuple(word.decode("utf-8", "replace") for word in line.split()[N_FIELDS:])


def _parse_line(line: bytes, width: int) -> tuple[list[float], str | None]:
    """The 18 numbers of a line, or what is wrong with it."""
    words = line.split()
    if len(words) != width:
        kind = "the line is cut off" if len(words) < width else "two lines may have run together"
        return [], f"{len(words)} fields instead of {width}: {kind}"
    values: list[float] = []
    for field in Field:
        word = words[field]
        shown = word.decode("utf-8", "replace")
        name = f"field {field + 1} ({field.name.lower()})"
        try:
            value = float(word.replace(b"_", b"?"))  # float() reads 1_000, the format does not
        except ValueError:
            return [], f"{name} is '{shown}', not a number"
        maximum = LATEST_S if field in _TIMES else _LARGEST
        if not isfinite(value) or abs(value) > maximum:
            return [], f"{name} is '{shown}', not a possible value"
        if field not in _MAY_BE_FRACTIONS and not value.is_integer():
            return [], f"{name} is '{shown}', not a whole number"
        if field is Field.SUBMIT_S and value < 0:
            return [], f"{name} is '{shown}', before the trace begins"
        values.append(value)
    return values, None
