# SPDX-License-Identifier: Apache-2.0
"""The tables of promises and starts in the store, and the queries on them.

| table | one row per | holds |
|---|---|---|
| promise | waiting job with an announced start | its promise (`bridge.state.accuracy.Promise`) |
| started | start | its promise and the actual start; no promise: NULL |
| gone | promised job that left without a start | its promise, and when it left |

Rules
    1. Only the owner of the connection calls these functions; they contain all the SQL.
    2. A start is identified by job and instant, so a repeated report adds nothing.
    3. Rows expire by the controller's clock, but not by instants in the future, and a part at a
       time, so that a clock that jumped ahead does not empty the tables. `MAX_ROWS` bounds each
       table.
    4. A start or departure with a damaged number is left out; a damaged name is read as far as it
       is readable. So one bad row changes nothing of what is said of the others.
"""

import sqlite3
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bridge.measures import StartAccuracy
from bridge.state.accuracy import FIELDS, Promise, StartColumns, WaitEnd
from bridge.units import DAY_S

MAX_S: Final = 2**40
"""No instant is later."""

MAX_ROWS: Final = 2_000_000
"""Most starts kept: about 250 MB on disk, and four seconds of evaluation."""

LEAVING: Final = 50
MIN_LEAVING: Final = 10
"""What becomes too old within an hour is one row in 24 * keep_days; these leave room for a service
that was away for some days."""

PERIODS: Final[Mapping[str, int | None]] = {
    "hour": 3600,
    "day": DAY_S,
    "week": 7 * DAY_S,
    "all": None,
}
"""How far back each period reaches, s."""

POINTS: Final = 96
_STEPS_S: Final = (300, 900, 3600, 4 * 3600, DAY_S, 7 * DAY_S, 30 * DAY_S)

_PROMISE: Final = ", ".join(f"{name} INTEGER" for name in FIELDS)
SCHEMA: Final = f"""
CREATE TABLE IF NOT EXISTS promise (job_id TEXT PRIMARY KEY, partition TEXT NOT NULL, {_PROMISE});
CREATE TABLE IF NOT EXISTS started (
    job_id TEXT NOT NULL, start_s INTEGER NOT NULL, partition TEXT NOT NULL, {_PROMISE},
    PRIMARY KEY (job_id, start_s)
);
CREATE TABLE IF NOT EXISTS gone (
    job_id TEXT NOT NULL, gone_s INTEGER NOT NULL, partition TEXT NOT NULL, {_PROMISE},
    PRIMARY KEY (job_id, gone_s)
);
CREATE INDEX IF NOT EXISTS started_at ON started (start_s);
CREATE INDEX IF NOT EXISTS gone_at ON gone (gone_s);
"""
_COLUMNS: Final = ", ".join(FIELDS)
_NUMBERS: Final = " AND ".join(f"typeof({name}) = 'integer'" for name in FIELDS)
_SOUND: Final = (
    f"typeof({{at}}) = 'integer' AND {{at}} BETWEEN 1 AND {MAX_S}"
    f" AND coalesce(min({_COLUMNS}), 0) >= 0 AND coalesce(max({_COLUMNS}), 0) <= {MAX_S}"
)
"""Of a row with or without a promise. Texts and blobs are larger than any number."""
_MARKS: Final = ", ".join("?" * len(FIELDS))
_ROW: Final = np.dtype(
    [
        (name, np.int64)
        for name in ("partition", "start_s", "first_start_s", "last_start_s", "changes", "later_s",
                     "earlier_s")
    ]
)  # fmt: skip
_NO_PROMISE: Final = (None,) * len(FIELDS)


@dataclass(frozen=True)
class AccuracyLine:
    """Accuracy of the announced starts of one partition in one period.

    Attributes:
        period: a key of `PERIODS`.
        partition: "": all of them.
        first_percentiles_s, last_percentiles_s: (101,) int64 error that 0, 1, ... 100 percent of
            promised starts do not exceed, by the first and the last promise; empty without any.
    """

    period: str
    partition: str
    accuracy: StartAccuracy
    first_percentiles_s: NDArray[np.int64]
    last_percentiles_s: NDArray[np.int64]


@dataclass(frozen=True)
class AccuracyPoint:
    """Promised starts within one span of time, against the last promise."""

    from_s: int
    partition: str
    promised: int
    absolute_p50_s: float
    absolute_p90_s: float


@dataclass(frozen=True)
class StartRecords:
    """Summary of the records; no job is named.

    Attributes:
        now_s: the controller's clock; 0: no report yet.
        since_s: the earliest start kept.
        lines: by period, all partitions first.
        series: series of all starts kept, in spans of `step_s`.
    """

    now_s: int = 0
    since_s: int = 0
    keep_days: int = 0
    waiting_promised: int = 0
    lines: Sequence[AccuracyLine] = ()
    series: Sequence[AccuracyPoint] = ()
    step_s: int = 0


def upgrade(database: sqlite3.Connection) -> None:
    """Adds the columns that tables of older versions lack."""
    for table in ("promise", "started"):
        for column in ("partition TEXT NOT NULL DEFAULT ''", "changes INTEGER DEFAULT 0",
                       "later_s INTEGER DEFAULT 0", "earlier_s INTEGER DEFAULT 0"):  # fmt: skip
            database.execute(f"ALTER TABLE {table} ADD COLUMN {column}")


def kept_promises(database: sqlite3.Connection) -> list[tuple[str, str, Promise]]:
    """Job id, partition and promise of every waiting job with one; unreadable rows are left out."""
    rows = database.execute(
        f"SELECT CAST(job_id AS BLOB), CAST(partition AS BLOB), {_COLUMNS} FROM promise"
        f" WHERE {_NUMBERS} AND min({_COLUMNS}) >= 0 AND max({_COLUMNS}) <= {MAX_S}"
    )
    return [
        (job_id.decode(errors="replace"), partition.decode(errors="replace"), Promise(*promise))
        for job_id, partition, *promise in rows
        if job_id and partition is not None
    ]


def keep_promises(
    database: sqlite3.Connection,
    promises: Iterable[tuple[str, str, Promise]],
    dropped: Iterable[str],
) -> None:
    """Writes changed promises, and removes those of jobs that no longer wait."""
    database.executemany("DELETE FROM promise WHERE job_id = ?", ((job_id,) for job_id in dropped))
    database.executemany(
        f"INSERT OR REPLACE INTO promise (job_id, partition, {_COLUMNS}) VALUES (?, ?, {_MARKS})",
        ((job_id, partition, *promise) for job_id, partition, promise in promises),
    )


def keep_records(
    database: sqlite3.Connection, started: Iterable[WaitEnd], gone: Iterable[WaitEnd]
) -> None:
    """Writes starts and departures."""
    for table, at, records in (("started", "start_s", started), ("gone", "gone_s", gone)):
        database.executemany(
            f"INSERT OR IGNORE INTO {table} (job_id, {at}, partition, {_COLUMNS})"
            f" VALUES (?, ?, ?, {_MARKS})",
            (
                (*record[:3], *(_NO_PROMISE if record.promise is None else record.promise))
                for record in records
            ),
        )


def is_known(database: sqlite3.Connection, job_id: str, start_s: int) -> bool:
    found = database.execute(
        "SELECT 1 FROM started WHERE job_id = ? AND start_s = ?", (job_id, start_s)
    )
    return found.fetchone() is not None


def latest_s(database: sqlite3.Connection) -> int:
    """The latest recorded start; 0: none."""
    found = database.execute("SELECT max(start_s) FROM started WHERE typeof(start_s) = 'integer'")
    return int(found.fetchone()[0] or 0)


def prune(database: sqlite3.Connection, now_s: int, keep_days: int) -> None:
    """Removes starts older than this many days, and the oldest beyond `MAX_ROWS`.

    Oldest first, in parts: if a clock leaps ahead, a table loses `MIN_LEAVING` rows or one in
    `LEAVING` per hour, not all.
    """
    before_s = min(now_s, int(time.time())) - keep_days * DAY_S
    for table, at in (("started", "start_s"), ("gone", "gone_s")):
        (count,) = database.execute(f"SELECT count(*) FROM {table}").fetchone()
        database.execute(
            f"DELETE FROM {table} WHERE rowid IN"
            f" (SELECT rowid FROM {table} WHERE {at} < ? ORDER BY {at} LIMIT ?)",
            (before_s, max(MIN_LEAVING, count // LEAVING)),
        )
        database.execute(
            f"DELETE FROM {table} WHERE rowid <= (SELECT max(rowid) FROM {table}) - ?",
            (MAX_ROWS,),
        )


# ---------------------------------------------------------------- what is asked


def summarise(
    database: sqlite3.Connection, now_s: int, keep_days: int, waiting_promised: int
) -> StartRecords:
    """Evaluates all records. O(starts): a million take two seconds."""
    now_s = now_s or latest_s(database)
    names, rows = _read(database)
    since_s = int(rows["start_s"][0]) if len(rows) else now_s
    lines: list[AccuracyLine] = []
    for period, length_s in PERIODS.items():
        from_s = since_s if length_s is None else now_s - length_s
        begin = int(np.searchsorted(rows["start_s"], from_s))
        lines += _lines(database, period, from_s, names=names, rows=rows[begin:])
    step_s = next(
        (step_s for step_s in _STEPS_S if (now_s - since_s) / step_s <= POINTS), _STEPS_S[-1]
    )
    points = _points("", rows, step_s)
    for code, name in enumerate(names):
        points += _points(name, rows[rows["partition"] == code], step_s)
    points.sort(key=lambda point: (point.from_s, point.partition))
    return StartRecords(now_s, since_s, keep_days, waiting_promised, lines, points, step_s)


def _read(database: sqlite3.Connection) -> tuple[list[str], NDArray[np.void]]:
    """The partition names, and all starts by time with the index of their partition.

    SQLite releases Python's lock at every row, so other threads are hardly delayed.
    """
    codes: dict[bytes | None, int] = {}
    found = database.execute(
        "SELECT CAST(partition AS BLOB), "
        + ", ".join(f"CAST(coalesce({name}, 0) AS INTEGER)" for name in (_ROW.names or ())[1:])
        + f" FROM started WHERE {_SOUND.format(at='start_s')}"
    )
    rows = np.fromiter(
        ((codes.setdefault(name, len(codes)), *numbers) for name, *numbers in found), dtype=_ROW
    )
    return [(name or b"").decode(errors="replace") for name in codes], rows[
        np.argsort(rows["start_s"], kind="stable")
    ]


def _lines(
    database: sqlite3.Connection,
    period: str,
    from_s: int,
    *,
    names: Sequence[str],
    rows: NDArray[np.void],
) -> list[AccuracyLine]:
    gone_in = [
        ((name or b"").decode(errors="replace"), count)
        for name, count in database.execute(
            "SELECT CAST(partition AS BLOB), count(*) FROM gone"
            f" WHERE {_SOUND.format(at='gone_s')} AND gone_s >= ? GROUP BY 1",
            (from_s,),
        )
    ]
    gone = {name: sum(n for other, n in gone_in if other == name) for name, _ in gone_in}
    if not len(rows) and not gone:
        return []
    lines = [_line(period, "", rows, sum(gone.values()))]
    code = {name: code for code, name in enumerate(names)}
    for name in sorted(code.keys() | gone.keys()):
        own = rows[rows["partition"] == code.get(name, -1)]
        if len(own) or name in gone:
            lines.append(_line(period, name, own, gone.get(name, 0)))
    return lines


def _line(period: str, partition: str, rows: NDArray[np.void], gone: int) -> AccuracyLine:
    promised = rows["first_start_s"] != 0
    return AccuracyLine(
        period,
        partition,
        StartColumns(rows["start_s"], rows, gone).accuracy(),
        _percentiles((rows["start_s"] - rows["first_start_s"])[promised]),
        _percentiles((rows["start_s"] - rows["last_start_s"])[promised]),
    )


def _percentiles(error_s: NDArray[np.int64]) -> NDArray[np.int64]:
    if not len(error_s):
        return error_s
    return np.percentile(error_s, np.arange(101), method="inverted_cdf").astype(np.int64)


def _points(partition: str, rows: NDArray[np.void], step_s: int) -> list[AccuracyPoint]:
    rows = rows[rows["first_start_s"] != 0]
    error_s = np.abs(rows["start_s"] - rows["last_start_s"])
    spans, begin = np.unique(rows["start_s"] // step_s, return_index=True)
    points = []
    for span, part in zip(spans.tolist(), np.split(error_s, begin[1:]), strict=False):
        p50, p90 = np.percentile(part, (50, 90))
        points.append(AccuracyPoint(span * step_s, partition, len(part), float(p50), float(p90)))
    return points
