# SPDX-License-Identifier: Apache-2.0
"""Speed-ups of applications, learnt from ended jobs: what is kept, and the resulting curve.

Terms
    application   jobs of one user with one name. Only the name is known while a job waits; the
                  launcher names the program only when it runs.
    kept          for each width of an application: the mean serial fraction that follows from its
                  measured time in MPI (`bridge.planning.malleable.speed`), and the mean
                  logarithm of the run times of jobs that kept this width from start to end.

Rules
    1. The curve is Amdahl's with one serial fraction: so it rises with the width and never exceeds
       the perfect speed-up, whatever was reported.
    2. The serial fraction is the mean of an assumption (`UNKNOWN_SERIAL`, which counts as one job),
       of the measurements at each width (one for each job there, at most `MAX_COUNTED`), and of
       the result of run times at two or more widths: the least squares of T(w) = a + b / w,
       a, b >= 0, relative to the run times. The latter counts as half the number of its jobs, and
       only if the widest width is at least `LEVERAGE` times the narrowest; jobs of one name may
       differ in their input.
    3. Means forget: a further job counts at least 1 / `MEMORY`.
    4. All numbers are clamped when they arrive and when they are read. A user's jobs change that
       user's entry only, which is bounded (`MAX_NAMES`, `MAX_WIDTHS`), as is the number of
       users (`MAX_USERS`): the least recently changed is dropped first.

Source: G. Amdahl, AFIPS 1967. Serial fractions from measured speed-ups: A. Karp
and H. Flatt, CACM 33(5), 1990. Downey's model (A. Downey, UC Berkeley CSD-97-933, 1997) has two
parameters, for which one job rarely has enough widths. The pseudo-count is ours.
"""

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from bridge.planning.malleable.speed import UNKNOWN_SERIAL, speed

VERSION: Final = 1
MAX_USERS: Final = 2_000
MAX_NAMES: Final = 32
MAX_WIDTHS: Final = 8
MAX_COUNTED: Final = 4
MEMORY: Final = 8
LEVERAGE: Final = 1.5

_WIDEST: Final = 1 << 20
_LONGEST_LOG: Final = math.log(10 * 365 * 86_400)
_PARTS: Final = 1_000_000
"""Fractions and logarithms are kept in millionths."""
_FIELDS: Final = 5
_MANY: Final = 1_000


@dataclass(frozen=True, slots=True)
class AtWidth:
    """The knowledge about one width.

    Attributes:
        width: number of nodes.
        measured: jobs whose time in MPI was measured there.
        serial: their mean serial fraction.
        ended: jobs that ran there from start to end.
        log_run: their mean logarithm of the run time, s.
    """

    width: int
    measured: int = 0
    serial: float = 0.0
    ended: int = 0
    log_run: float = 0.0


Kept = tuple[AtWidth, ...]
"""The widths of one application, the most recently changed last."""


@dataclass(frozen=True, slots=True)
class SpeedUpPoint:
    """A speed-up against one node.

    Attributes:
        source: "measured" at this width; "learnt" from others; "assumed": nothing is known.
    """

    width: int
    speed_up: float
    source: str


def with_measured(kept: Kept, width: int, serial: float) -> Kept:
    """Adds a job that was measured at a width."""
    if not 2 <= width <= _WIDEST or not serial >= 0:
        return kept
    at, rest = _taken(kept, width)
    mean = at.serial + (min(serial, 1.0) - at.serial) / min(at.measured + 1, MEMORY)
    return _bounded(rest, replace(at, measured=min(at.measured + 1, _MANY), serial=mean))


def with_ended(kept: Kept, width: int, run_s: int) -> Kept:
    """Adds an ended job that had this width throughout."""
    if not 1 <= width <= _WIDEST or run_s < 1:
        return kept
    at, rest = _taken(kept, width)
    log_run = min(math.log(run_s), _LONGEST_LOG)
    mean = at.log_run + (log_run - at.log_run) / min(at.ended + 1, MEMORY)
    return _bounded(rest, replace(at, ended=min(at.ended + 1, _MANY), log_run=mean))


def _taken(kept: Kept, width: int) -> tuple[AtWidth, Kept]:
    at = next((each for each in kept if each.width == width), AtWidth(width))
    return at, tuple(each for each in kept if each.width != width)


def _bounded(rest: Kept, last: AtWidth) -> Kept:
    return (*rest, last)[-MAX_WIDTHS:]


def serial_of(kept: Kept) -> float:
    """The serial fraction of an application (rule 2), in [0, 1]."""
    weight, total = 1.0, UNKNOWN_SERIAL
    for at in kept:
        counts = min(at.measured, MAX_COUNTED)
        weight, total = weight + counts, total + counts * at.serial
    ran = [at for at in kept if at.ended]
    if len(ran) > 1 and max(at.width for at in ran) >= LEVERAGE * min(at.width for at in ran):
        counts_half = sum(min(at.ended, MAX_COUNTED) for at in ran) / 2
        weight, total = weight + counts_half, total + counts_half * _by_run_times(ran)
    return min(max(total / weight, 0.0), 1.0)


def _by_run_times(ran: Sequence[AtWidth]) -> float:
    """Least squares of 1 = a / T + b / (w T) over the widths, a, b >= 0: a / (a + b)."""
    minimum = min(at.log_run for at in ran)
    rows = []
    for at in ran:
        root = math.sqrt(min(at.ended, MAX_COUNTED))
        inverse = math.exp(minimum - at.log_run)  # in units of the shortest
        rows.append((root * inverse, root * inverse / at.width, root))
    aa, ab, bb = (sum(row[i] * row[j] for row in rows) for i, j in ((0, 0), (0, 1), (1, 1)))
    ay, by = (sum(row[i] * row[2] for row in rows) for i in (0, 1))
    determinant = aa * bb - ab * ab
    if determinant <= 1e-12 * aa * bb:
        return UNKNOWN_SERIAL
    a, b = (ay * bb - by * ab) / determinant, (by * aa - ay * ab) / determinant
    if b <= 0:
        return 1.0
    return a / (a + b) if a > 0 else 0.0


def curve(kept: Kept, widths: Sequence[int]) -> list[SpeedUpPoint]:
    """Speed-ups at some widths, ascending, for display."""
    serial, known = serial_of(kept), serial_of(kept) != UNKNOWN_SERIAL or bool(kept)
    measured = {at.width: at.serial for at in kept if at.measured}
    found = []
    for width in sorted({*widths}):
        if width in measured:
            found.append(SpeedUpPoint(width, speed(measured[width], width), "measured"))
        else:
            found.append(
                SpeedUpPoint(width, speed(serial, width), "learnt" if known else "assumed")
            )
    return found


# ---------------------------------------------------------------- as numbers


@lru_cache(maxsize=4096)
def name_code(name: str) -> int:
    """A job name as a number; collisions within a user are very unlikely."""
    digest = hashlib.blake2b(name.encode(errors="replace"), digest_size=6).digest()
    return int.from_bytes(digest, "big")


Entry = dict[int, Kept]
"""The applications of one user by `name_code`, the most recently changed last."""


def with_kept(entry: Entry, code: int, kept: Kept) -> Entry:
    """The entry with a changed application (rule 4)."""
    rest = [(other, its) for other, its in entry.items() if other != code]
    return dict([*rest, (code, kept)][-MAX_NAMES:])


def to_numbers(entry: Entry) -> list[int]:
    """An entry as the store keeps it."""
    found = [VERSION]
    for code, kept in entry.items():
        found += [code, len(kept)]
        for at in kept:
            found += [
                at.width, at.measured, round(at.serial * _PARTS), at.ended,
                round(at.log_run * _PARTS),
            ]  # fmt: skip
    return found


def from_numbers(numbers: Sequence[int]) -> Entry:
    """Reads a stored entry, up to the first invalid number."""
    if not numbers or numbers[0] != VERSION:
        return {}
    found: Entry = {}
    at = 1
    while at + 1 < len(numbers) and len(found) < MAX_NAMES:
        code, count = numbers[at : at + 2]
        rows = numbers[at + 2 : at + 2 + _FIELDS * max(count, 0)]
        if not 0 <= count <= MAX_WIDTHS or len(rows) < _FIELDS * count:
            break
        found[code] = tuple(_read(rows))
        at += 2 + _FIELDS * count
    return found


def _read(rows: Sequence[int]) -> Iterator[AtWidth]:
    for first in range(0, len(rows), _FIELDS):
        width, measured, serial, ended, log_run = rows[first : first + _FIELDS]
        if 1 <= width <= _WIDEST:
            yield AtWidth(
                width,
                min(max(measured, 0), _MANY),
                min(max(serial / _PARTS, 0.0), 1.0),
                min(max(ended, 0), _MANY),
                min(max(log_run / _PARTS, 0.0), _LONGEST_LOG),
            )
