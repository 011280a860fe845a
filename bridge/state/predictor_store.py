# SPDX-License-Identifier: Apache-2.0
"""What predictors have learnt of run times (`bridge.ports.Learnt`), in the store's file.

| table | a row is |
|---|---|
| learnt | what a predictor knows under a key; what changed last has the largest rowid |

Only what changed is written; what a predictor forgot is deleted.
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
"""Predictor and key, and what is known under it; None: nothing any more."""

_MOST = 2**53
"""What is beyond is no number of seconds, nor of jobs."""

SCHEMA = """CREATE TABLE IF NOT EXISTS learnt (predictor TEXT NOT NULL, key TEXT NOT NULL,
    value TEXT NOT NULL, PRIMARY KEY (predictor, key));"""


def fresh(state: State, saved: State) -> PredictorRecords:
    """What is known otherwise than it was saved."""
    return {
        (predictor, key): value
        for predictor, learnt in state.learnt.items()
        for key, value in learnt.known.since(saved.learnt_by(predictor).known).items()
    }


def everything(state: State) -> PredictorRecords:
    """All that is known."""
    return fresh(state, State())


def join(learnt: Mapping[str, Learnt], late: Mapping[str, Learnt]) -> dict[str, Learnt]:
    """What is known, with what a file knew that was opened late; what was learnt since is newer."""
    found = {**late, **learnt}
    for predictor in late.keys() & learnt.keys():
        own = learnt[predictor]
        known = {**late[predictor].known, **own.known}
        found[predictor] = replace(own, known=Layers(known), guesses={})
    return found


def write_predictor_records(
    database: sqlite3.Connection, predictor_records: PredictorRecords
) -> None:
    """Writes what changed."""
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
    """All that is known, what changed last at the end; what cannot be read is left out."""
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
        if value and all(abs(number) <= _MOST for number in value):
            found.setdefault(names[0], {})[names[1]] = value
        else:
            damaged += 1
    if damaged:
        _log.warning("%d facts on run times cannot be read: they are forgotten", damaged)
    return found
