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

from bridge.ports import Memory

_log = logging.getLogger(__name__)

Lessons = dict[tuple[str, str], list[int] | None]
"""Predictor and key, and what is known under it; None: nothing any more."""

SCHEMA = """CREATE TABLE IF NOT EXISTS learnt (predictor TEXT NOT NULL, key TEXT NOT NULL,
    value TEXT NOT NULL, PRIMARY KEY (predictor, key));"""


def fresh(memory: Memory) -> Lessons:
    """What changed since the last call; predictors may go on learning in another thread."""
    found: Lessons = {}
    for predictor, learnt in list(memory.at_hand.items()):
        while learnt.unsaved:
            key = learnt.unsaved.pop()
            found[predictor, key] = learnt.known.get(key)
    return found


def keep_lessons(database: sqlite3.Connection, lessons: Lessons) -> None:
    """Writes what changed."""
    database.executemany(
        "DELETE FROM learnt WHERE predictor = ? AND key = ?",
        [which for which, value in lessons.items() if value is None],
    )
    database.executemany(
        "INSERT OR REPLACE INTO learnt VALUES (?, ?, ?)",
        [(*which, json.dumps(value)) for which, value in lessons.items() if value is not None],
    )


def read_lessons(database: sqlite3.Connection) -> dict[str, dict[str, list[int]]]:
    """All that is known, what changed last at the end; what cannot be read is left out."""
    found: dict[str, dict[str, list[int]]] = {}
    damaged = 0
    for predictor, key, text in database.execute(
        "SELECT predictor, key, value FROM learnt ORDER BY rowid"
    ):
        try:
            value = [int(number) for number in json.loads(text)]
        except (ValueError, TypeError):
            value = []
        if value:
            found.setdefault(str(predictor), {})[str(key)] = value
        else:
            damaged += 1
    if damaged:
        _log.warning("%d facts on run times cannot be read: they are forgotten", damaged)
    return found
