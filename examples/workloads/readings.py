# SPDX-License-Identifier: Apache-2.0
"""Bound by messages, like statistics of power readings: tasks exchange small values all the time.

Quantiles are found by bisection: every step asks all tasks how many of their readings lie below a
value. Two sequential stages write the readings, and the report; between them two parallel ones.
"""

import array
import bisect
import json

from stage import Stage, noise

READINGS = 20_000  # for each unit of size
QUANTILES = 40
ROUNDS = 24  # bisection of 24 bits
LAGS = 200


def _readings(size):
    data = noise("power", size, 3 * READINGS * size)
    return [int.from_bytes(data[3 * k : 3 * k + 3], "big") for k in range(READINGS * size)]


def _bounds(tasks, count):
    return tasks.rank * count // tasks.size, (tasks.rank + 1) * count // tasks.size


def record(tasks, size, folder):
    """Writes the readings."""
    values = array.array("L", _readings(size))
    with (folder / "readings").open("wb") as file:
        values.tofile(file)
    return len(values)


def _mine(tasks, size, folder, beyond=0):
    values = array.array("L")
    begin, end = _bounds(tasks, READINGS * size)
    end = min(end + beyond, READINGS * size)
    with (folder / "readings").open("rb") as file:
        file.seek(begin * values.itemsize)
        values.fromfile(file, end - begin)
    return values


def quantiles(tasks, size, folder):
    """Finds the quantiles, bit by bit, all tasks together."""
    mine, found = sorted(_mine(tasks, size, folder)), []
    for number in range(1, QUANTILES):
        wanted, value = number * READINGS * size // QUANTILES, 0
        for bit in reversed(range(ROUNDS)):
            tried = value + (1 << bit)
            below = sum(tasks.exchange(bisect.bisect_left(mine, tried)))
            if below <= wanted:
                value = tried
        found.append(value)
    if tasks.rank == 0:
        (folder / "quantiles.json").write_text(json.dumps(found))
    return len(found)


def correlate(tasks, size, folder):
    """Sums the products of readings some minutes apart, one lag after the other."""
    begin, end = _bounds(tasks, READINGS * size)
    mine, sums = _mine(tasks, size, folder, beyond=LAGS), []
    for lag in range(1, LAGS + 1, 8):
        last = min(end - begin, len(mine) - lag)
        part = sum(mine[k] * mine[k + lag] for k in range(0, last, 16) if k < end - begin)
        sums.append(sum(tasks.exchange(part)) > 0)
    return sum(sums)


def report(tasks, size, folder):
    """Reads the quantiles."""
    return json.loads((folder / "quantiles.json").read_text())


def expected(size):
    """The quantiles of the sorted readings."""
    ordered = sorted(_readings(size))
    return [ordered[number * len(ordered) // QUANTILES] for number in range(1, QUANTILES)]


STAGES = (
    Stage("record", record, parallel=False, expected=lambda size: READINGS * size),
    Stage("quantiles", quantiles, parallel=True, expected=lambda _: QUANTILES - 1),
    Stage("correlate", correlate, parallel=True, expected=lambda _: LAGS // 8),
    Stage("report", report, parallel=False, expected=expected),
)
