# SPDX-License-Identifier: Apache-2.0
"""The Standard Workload Format: one job per line, 18 numbers, -1 for unknown.

Words: a *directive* is a header comment `; Name: value`; a *data line* is any line that is neither
blank nor a comment.

Rules:
1. A file may be plain or packed by gzip, xz or bzip2, in UTF-8 or UTF-16
   (`bridge.sim.workloads.packed_text`). Lines that begin with `#` are comments, too.
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
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from io import BytesIO
from math import isfinite
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bridge.errors import TraceError
from bridge.sim.workloads.packed_text import foreign, read_packed

N_FIELDS = 18
MOST_BYTES = 2 << 30
"""Maximum number of jobs: five times the longest log of the Parallel Workloads Archive."""
LATEST_S = 1 << 38
"""Latest time in a trace: some 8,700 years."""

_LARGEST = float(2**53)


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
        path: of the file, for messages.
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
            number: of the field, from 19.

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
        raw, cut_off = read_packed(path, MOST_BYTES)
    except OSError as error:
        raise TraceError(shown, None, f"cannot be read: {error.strerror}") from None
    if not lenient and (what := foreign(raw)) is not None:
        raise TraceError(shown, None, what)
    if b"\n" not in raw:  # line ends of old Macs
        raw = raw.replace(b"\r", b"\n")
    lines = raw.split(b"\n")
    dropped: list[str] = []
    if cut_off is not None:
        if not lenient:
            raise TraceError(shown, len(lines), f"{cut_off}; fetch the file again or use --lenient")
        if lines.pop().strip():
            dropped.append(f"{shown}:{len(lines) + 1}: {cut_off}")
    header, where, data = _split(lines)
    if data and not lenient and (what := _separated(data[0])) is not None:
        raise TraceError(shown, where[0], what)
    columns = _parse_all(data)
    if columns is None:
        columns, data, faults = _parse_each(shown, where, data, lenient=lenient)
        dropped = faults + dropped
    if not len(columns):
        raise TraceError(shown, None, "no job lines: this is not a trace, or it is empty")
    return Trace(shown, header, columns, tuple(dropped), _extension(data))


def write_swf(path: Path, header: Iterable[str], columns: NDArray[np.float64]) -> None:
    """Writes a trace that `read_swf` reads back unchanged; gzip if the name ends in `.gz`."""
    text = "".join(f"; {line.strip()}\n" if line.strip() else ";\n" for line in header)
    body = BytesIO()
    np.savetxt(body, columns, fmt="%.15g")
    raw = text.encode("utf-8", "surrogateescape") + body.getvalue()
    # mtime 0: the same schedule gives the same bytes.
    path.write_bytes(gzip.compress(raw, mtime=0) if path.suffix == ".gz" else raw)


def _split(lines: list[bytes]) -> tuple[tuple[str, ...], list[int], list[bytes]]:
    """Header, and the data lines with their line numbers."""
    header: list[str] = []
    where: list[int] = []
    data: list[bytes] = []
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if text.startswith((b";", b"#")):
            header.append(text[1:].strip().decode("utf-8", "surrogateescape"))
        elif text:
            where.append(number)
            data.append(text)
    return tuple(header), where, data


def _separated(line: bytes) -> str | None:
    """What a file with this first line is, if its fields are not separated by blanks."""
    if line.startswith((b"{", b"[")):
        return (
            "this is JSON, not the Standard Workload Format: 'schedbridge import' reads what"
            " sacct --json prints"
        )
    if b"|" in line:
        return (
            "fields are separated by '|': 'schedbridge import' reads what sacct --parsable2 prints"
        )
    for sign in (b",", b";"):
        if line.count(sign) >= 3 and len(line.split()) < N_FIELDS:
            return (
                f"fields are separated by '{sign.decode()}': this is CSV, and the Standard Workload"
                " Format has 18 numbers with blanks between them"
            )
    return None


def _parse_all(data: list[bytes]) -> NDArray[np.float64] | None:
    """Reads all lines at once; None if any of them breaks a rule, or there is none."""
    if not data:
        return None
    width = len(data[0].split())
    if width < N_FIELDS or (width > N_FIELDS and any(len(line.split()) != width for line in data)):
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


def _extension(data: Sequence[bytes]) -> tuple[tuple[str, ...], ...]:
    """The fields of each line beyond the 18th; nothing if the first line has none."""
    if len(data[0].split()) <= N_FIELDS:
        return ()
    return tuple(
        tuple(word.decode("utf-8", "replace") for word in line.split()[N_FIELDS:]) for line in data
    )


def _parse_each(
    shown: str, where: Sequence[int], data: Sequence[bytes], *, lenient: bool
) -> tuple[NDArray[np.float64], list[bytes], list[str]]:
    """Reads line by line, to name the wrong lines; returns the good ones, too."""
    width = max(N_FIELDS, len(data[0].split())) if data else N_FIELDS
    rows: list[list[float]] = []
    good: list[bytes] = []
    faults: list[str] = []
    for number, line in zip(where, data, strict=True):
        values, fault = _parse_line(line, width)
        if fault is None:
            rows.append(values)
            good.append(line)
        elif lenient:
            faults.append(f"{shown}:{number}: {fault}")
        else:
            raise TraceError(
                shown, number, f"{fault}; fix or remove the line, or use --lenient to drop it"
            )
    return np.array(rows, np.float64).reshape(len(rows), N_FIELDS), good, faults


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
        most = LATEST_S if field in _TIMES else _LARGEST
        if not isfinite(value) or abs(value) > most:
            return [], f"{name} is '{shown}', not a possible value"
        if field not in _MAY_BE_FRACTIONS and not value.is_integer():
            return [], f"{name} is '{shown}', not a whole number"
        if field is Field.SUBMIT_S and value < 0:
            return [], f"{name} is '{shown}', before the trace begins"
        values.append(value)
    return values, None
