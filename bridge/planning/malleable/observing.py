# SPDX-License-Identifier: Apache-2.0
"""Learns speed-ups (`bridge.planning.malleable.speed_ups`) from malleable jobs as they run and end.

Rules
    1. When a job changes its width or leaves, its last measured time in MPI at that width is learnt
       from: once for each width that it had.
    2. The run time of a job that completed on the nodes that it started on is learnt from, too; not
       that of one that failed or was killed, as it might have taken any time.
    3. A job counts as malleable once it has been seen as malleable, even if it is stopped or loses
       its launcher later.
"""

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bridge.model.job import Ending
from bridge.model.learnt import Learning, Learnt
from bridge.model.snapshot import Snapshot
from bridge.planning.malleable.speed import serial_fractions
from bridge.planning.malleable.speed_ups import (
    MAX_USERS,
    Kept,
    from_numbers,
    name_code,
    serial_of,
    to_numbers,
    with_ended,
    with_kept,
    with_measured,
)

NAME: Final = "speed-ups"
"""Of what is learnt, in `bridge.ports.State.learnt`."""

_UNKNOWN: Final = -1
_PARTS: Final = 1_000_000
_NOTICED: Final = 5_000
"""Measurements are recorded in steps of this size, in millionths of a serial fraction."""


@dataclass
class _Followed:
    """A running job as last seen.

    Attributes:
        serial: last measured at this width, in millionths; -1: not measured.
        kept: 1: it has the nodes that it started on; 0: it has changed its width.
    """

    start_s: int
    width: int
    serial: int
    kept: int
    code: int

    def numbers(self) -> list[int]:
        return [self.start_s, self.width, self.serial, self.kept, self.code]


@dataclass(frozen=True)
class _Seen:
    """The running jobs of a snapshot, as columns.

    Attributes:
        row: the row of `Snapshot.running`, of the malleable ones; the other columns are of these.
        serial: as measured, in millionths; -1: not measured.
    """

    there: list[str]
    row: NDArray[np.intp]
    id: list[str]
    start_s: NDArray[np.int64]
    width: NDArray[np.int64]
    serial: NDArray[np.int64]

    @staticmethod
    def of(snapshot: Snapshot) -> "_Seen":
        running = snapshot.running
        own = ~running.releasing
        row = np.flatnonzero(running.malleable)
        width = running.indptr[row + 1] - running.indptr[row]
        mtct = running.mtct[row]
        serial = np.round(serial_fractions(mtct, width) * _PARTS).astype(np.int64)
        serial[(mtct < 0) | (width < 2)] = _UNKNOWN
        there, ids = running.id[own].tolist(), running.id[row].tolist()
        return _Seen(there, row, ids, running.start_s[row], width, serial)

    def is_as(self, known: "_Seen") -> bool:
        """Whether there is nothing to record, given the last record `known`."""
        return (
            self.id == known.id
            and self.there == known.there
            and np.array_equal(self.start_s, known.start_s)
            and np.array_equal(self.width, known.width)
            and not _differs(self.serial, known.serial).any()
        )

    def unlike(self, known: "_Seen | None", noted: NDArray[np.int64]) -> list[int]:
        """The positions of jobs for which there may be something to record.

        Args:
            known: the last record; None: unknown.
            noted: (n,) for the others, set to their recorded measurements.
        """
        if known is None:
            return list(range(len(self.id)))
        places = {job_id: at for at, job_id in enumerate(known.id)}
        of = np.array([places.get(job_id, -1) for job_id in self.id], dtype=np.int64)
        at = np.flatnonzero(of >= 0)
        of = of[at]
        same = (self.start_s[at] == known.start_s[of]) & (self.width[at] == known.width[of])
        same &= ~_differs(self.serial[at], known.serial[of])
        noted[at[same]] = known.serial[of[same]]
        others = np.ones(len(self.id), dtype=bool)
        others[at[same]] = False
        return np.flatnonzero(others).tolist()


_noted: list[tuple[Learnt, _Seen]] = []
"""The last record and its input, as most snapshots equal the one before."""


def observed(snapshot: Snapshot, before: Learnt) -> Learnt:
    """The knowledge after this snapshot; the same object if nothing is new."""
    seen = _Seen.of(snapshot)
    if _noted and _noted[0][0] is before and seen.is_as(_noted[0][1]):
        return before
    known = _noted[0][1] if _noted and _noted[0][0] is before else None
    learning, there = Learning(before), set(seen.there)
    gone = [job_id for job_id in before.running if job_id not in there]
    ended = _ended_runs(snapshot) if gone else {}
    for job_id in gone:
        _over(learning, job_id, ended.get(job_id))
    changed, noted = bool(gone), seen.serial.copy()
    for at in seen.unlike(known, noted):
        job_id, width, serial = seen.id[at], int(seen.width[at]), int(seen.serial[at])
        last = learning.running.get(job_id)
        if (
            last is None
            or len(last) != 5
            or last[:2] != [int(seen.start_s[at]), width]
            or _differs(serial, last[2])
        ):
            _follow(learning, snapshot, int(seen.row[at]), width, serial)
            changed = True
        else:
            noted[at] = last[2]
    after = learning.done() if changed else before
    _noted[:] = [(after, replace(seen, serial=noted))]
    return after


def _differs(serial: Any, known: Any) -> Any:
    """Whether measurements differ enough to be recorded."""
    return (serial != _UNKNOWN) & (abs(serial - known) >= _NOTICED)


def _ended_runs(snapshot: Snapshot) -> dict[str, tuple[int, int]]:
    """Start and run time of the jobs that completed."""
    ended = snapshot.ended
    good = ended.ending == Ending.COMPLETED
    return {
        job_id: (start_s, end_s - start_s)
        for job_id, start_s, end_s in zip(
            ended.id[good].tolist(), ended.start_s[good].tolist(), ended.end_s[good].tolist(),
            strict=True,
        )
    }  # fmt: skip


def _follow(learning: Learning, snapshot: Snapshot, row: int, width: int, serial: int) -> None:
    """Records news of a running job."""
    running = snapshot.running
    job_id, start_s = str(running.id[row]), int(running.start_s[row])
    numbers = learning.running.get(job_id)
    if numbers is None or len(numbers) != 5 or numbers[0] != start_s:
        found = _Followed(start_s, width, serial, 1, name_code(str(running.name[row])))
        learning.running[job_id] = found.numbers()
        learning.traits[job_id] = str(running.user[row])
        return
    found = _Followed(*numbers)
    if width != found.width:
        _teach(learning, job_id, found)
        found.width, found.serial, found.kept = width, serial, 0
    else:
        found.serial = serial
    learning.running[job_id] = found.numbers()


def _over(learning: Learning, job_id: str, ran: tuple[int, int] | None) -> None:
    """Records that a job has left."""
    numbers = learning.running.pop(job_id)
    if numbers is not None and len(numbers) == 5:
        found = _Followed(*numbers)
        whole = ran is not None and found.kept and ran[0] == found.start_s
        _teach(learning, job_id, found, ran[1] if ran is not None and whole else 0)
    learning.traits.pop(job_id)


def _teach(learning: Learning, job_id: str, found: _Followed, run_s: int = 0) -> None:
    user = learning.traits.get(job_id)
    if user is None or (found.serial == _UNKNOWN and not run_s):
        return
    entry = from_numbers(learning.known.get(user) or ())
    kept = entry.get(found.code, ())
    if found.serial != _UNKNOWN:
        kept = with_measured(kept, found.width, found.serial / _PARTS)
    kept = with_ended(kept, found.width, run_s)
    learning.learn(user, user, to_numbers(with_kept(entry, found.code, kept)))
    if len(learning.known) > MAX_USERS:
        for other in learning.known.in_order()[: len(learning.known) - MAX_USERS]:
            learning.known.pop(other)


def kept_of(learnt: Learnt, user: str, name: str) -> Kept:
    """The knowledge about a user's jobs of one name."""
    return from_numbers(learnt.known.get(user) or ()).get(name_code(name), ())


def learnt_serials(
    learnt: Learnt, users: NDArray[np.object_], names: NDArray[np.object_]
) -> NDArray[np.float64]:
    """(n,) the learnt serial fractions of jobs; the assumed one if nothing was learnt."""
    pairs = list(zip(users.tolist(), names.tolist(), strict=True))
    entries = {user: from_numbers(learnt.known.get(user) or ()) for user in {*users.tolist()}}
    found = {
        (user, name): serial_of(entries[user].get(name_code(name), ())) for user, name in {*pairs}
    }
    return np.array([found[pair] for pair in pairs], dtype=np.float64)
