# SPDX-License-Identifier: Apache-2.0
"""The values learnt by predictors of run times (`bridge.ports.Learnt`), in the store's file.

Under other names: speed-ups, and the times of changes of width.

| table | a row is |
|---|---|
| learnt | a predictor's value for a key; the last change has the largest rowid |

Only changes are written; what a predictor dropped is deleted.
"""

import json
import logging
import sqlite3
from collections.abc import Mapping
from dataclasses import replace

from bridge.model.layers import Layers
from bridge.model.learnt import Learnt
from bridge.ports import State

_log = logging.getLogger(__name__)

PredictorRecords = dict[tuple[str, str], list[int] | None]
"""Predictor and key, and the value; None: dropped."""

_MAX = 2**53
"""Larger values are neither seconds nor counts of jobs."""

SCHEMA = """CREATE TABLE IF NOT EXISTS learnt (predictor TEXT NOT NULL, key TEXT NOT NULL,
    value TEXT NOT NULL, PRIMARY KEY (predictor, key));"""


def fresh(state: State, saved: State) -> PredictorRecords:
    """The changes since the last save."""
    return {
        (predictor, key): value
        for predictor, learnt in state.learnt.items()
        for key, value in learnt.known.since(saved.learnt_by(predictor).known).items()
    }


def everything(state: State) -> PredictorRecords:
    return fresh(state, State())


def join(learnt: Mapping[str, Learnt], late: Mapping[str, Learnt]) -> dict[str, Learnt]:
    """All values, merged into those of a file opened late; values learnt since are newer."""
    found = {**late, **learnt}
    for predictor in late.keys() & learnt.keys():
        own = learnt[predictor]
        known = {**late[predictor].known, **own.known}
        found[predictor] = replace(own, known=Layers(known), guesses={})
    return found


def write_predictor_records(
    database: sqlite3.Connection, predictor_records: PredictorRecords
) -> None:
    database.executemany(
        "DELETE FROM learnt WHERE predictor = ? AND key = ?",
        [which for which, value in predictor_records.items() if value is None],
    )
    database.executemany(
        "INSERT OR REPLACE INTO learnt VALUES (?, ?, ?)",
        [
            (*which, json.dumps(value))
            for which, value in predictor_records.items()
            if value is not None
        ],
    )


def read_predictor_records(database: sqlite3.Connection) -> dict[str, dict[str, list[int]]]:
    """Reads all values, last changed last; unreadable ones are left out."""
    found: dict[str, dict[str, list[int]]] = {}
    damaged = 0
    for predictor, key, text in database.execute(
        "SELECT CAST(predictor AS BLOB), CAST(key AS BLOB), CAST(value AS BLOB) FROM learnt"
        " ORDER BY rowid"
    ):
        try:
            value = [int(number) for number in json.loads(text)]
            names = predictor.decode(), key.decode()
        except (ValueError, TypeError, AttributeError, OverflowError, RecursionError):
            value = []
        if value and all(abs(number) <= _MAX for number in value):
            found.setdefault(names[0], {})[names[1]] = value
        else:
            damaged += 1
    if damaged:
        _log.warning("%d facts on run times cannot be read: they are dropped", damaged)
    return found
