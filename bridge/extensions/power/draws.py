# SPDX-License-Identifier: Apache-2.0
"""Learns the power of applications on each of their nodes, from measured jobs that have ended.

Terms
    application   jobs of one user under one name.
    run           of a job: the largest high quantile of a minute, and the smallest low one, W on a
                  node, between its first measurement and its end.

Rules
    1. A job is used once, after it has gone. Jobs that were never measured are not used.
    2. The last `MAX_RUNS` runs of an application are kept. The expected power of its jobs lies
       between the low quantile of their smallest powers and the high quantile of their largest
       ones; ranks are rounded outwards, so that few runs are all used.
    3. All numbers are clamped on input and on reading. A user's jobs change only that user's entry,
       which is bounded (`MAX_NAMES`), as is the number of users (`MAX_USERS`): the entries whose
       last change is oldest are removed first.
"""

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bridge.model.learnt import Learning, Learnt
from bridge.model.snapshot import Snapshot
from bridge.planning.malleable.speed_ups import name_code

NAME: Final = "power"
"""Key in `bridge.ports.State.learnt`."""
VERSION: Final = 1
MAX_USERS: Final = 2_000
MAX_NAMES: Final = 32
MAX_RUNS: Final = 16
MAX_W: Final = 1_000_000
LOW, HIGH = 0.1, 0.9

Runs = tuple[tuple[int, int], ...]
"""Smallest and largest power of each run, the last one at the end."""
Entry = dict[int, Runs]
"""The applications of one user, by `name_code`, the last change at the end."""


def observed(snapshot: Snapshot, before: Learnt) -> Learnt:
    """The state after this snapshot, whose columns have the power of jobs; may be `before`."""
    running = snapshot.running
    own = np.flatnonzero(~running.releasing)
    here = set(running.id[own].tolist())
    gone = [job_id for job_id in before.running if job_id not in here]
    known = (running.measured_max_power_w[own] > 0) & (running.power_lost_s[own] == 0)
    rows = own[known]
    found = []
    for row, job_id, start_s, min_w, max_w in zip(
        rows.tolist(), running.id[rows].tolist(), running.start_s[rows].tolist(),
        running.measured_min_power_w[rows].tolist(), running.measured_max_power_w[rows].tolist(),
        strict=True,
    ):  # fmt: skip
        numbers = before.running.get(job_id)
        if numbers is None or numbers[0] != start_s:
            numbers = [start_s, min_w, max_w, name_code(str(running.name[row]))]
        elif min_w < numbers[1] or max_w > numbers[2]:
            numbers = [start_s, min(min_w, numbers[1]), max(max_w, numbers[2]), numbers[3]]
        else:
            continue
        found.append((job_id, numbers, str(running.user[row])))
    if not gone and not found:
        return before
    learning = Learning(before)
    for job_id in gone:
        _teach(learning, job_id)
    for job_id, numbers, user in found:
        held = learning.running.get(job_id)
        if held is not None and held[0] != numbers[0]:
            _teach(learning, job_id)  # it was requeued
        learning.running[job_id] = numbers
        learning.traits[job_id] = user
    return learning.done()


def _teach(learning: Learning, job_id: str) -> None:
    """A job is gone."""
    numbers, user = learning.running.pop(job_id), learning.traits.get(job_id)
    learning.traits.pop(job_id)
    if numbers is None or user is None:
        return
    _, min_w, max_w, code = numbers
    entry = from_numbers(learning.known.get(user) or ())
    runs = (*entry.pop(code, ()), (min_w, max_w))[-MAX_RUNS:]
    kept = dict([*entry.items(), (code, runs)][-MAX_NAMES:])
    learning.learn(user, user, to_numbers(kept))
    if len(learning.known) > MAX_USERS:
        for other in learning.known.in_order()[: len(learning.known) - MAX_USERS]:
            learning.known.pop(other)


def bounds_of(runs: Runs) -> tuple[int, int]:
    """The expected power of a job of an application (rule 2), W; (0, 0): unknown."""
    if not runs:
        return 0, 0
    last = len(runs) - 1
    minimum, maximum = (sorted(run[side] for run in runs) for side in (0, 1))
    return minimum[math.floor(LOW * last)], maximum[math.ceil(HIGH * last)]


def learnt_bounds(
    learnt: Learnt, users: NDArray[np.object_], names: NDArray[np.object_]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The expected power of jobs on each of their nodes, W; 0: unknown.

    Args:
        learnt: so far.
        users: (n,) of the jobs.
        names: (n,) likewise.

    Returns:
        Lower and upper bounds, (n,) each.
    """
    min_w, max_w = (np.zeros(len(users), dtype=np.int64) for _ in range(2))
    if not learnt.known:
        return min_w, max_w
    entries: dict[str, Entry] = {}
    bounds: dict[tuple[str, str], tuple[int, int]] = {}
    for row, key in enumerate(zip(users.tolist(), names.tolist(), strict=True)):
        user, name = key
        if user not in entries:
            entries[user] = from_numbers(learnt.known.get(user) or ())
        if not entries[user]:
            continue
        if key not in bounds:
            bounds[key] = bounds_of(entries[user].get(name_code(name), ()))
        min_w[row], max_w[row] = bounds[key]
    return min_w, max_w


def to_numbers(entry: Entry) -> list[int]:
    """An entry in the form of the store."""
    found = [VERSION]
    for code, runs in entry.items():
        found += [code, len(runs)]
        for run in runs:
            found += run
    return found


def from_numbers(numbers: Sequence[int]) -> Entry:
    """An entry from the store, up to the first invalid number."""
    if not numbers or numbers[0] != VERSION:
        return {}
    found: Entry = {}
    at = 1
    while at + 1 < len(numbers) and len(found) < MAX_NAMES:
        code, count = numbers[at : at + 2]
        rows = numbers[at + 2 : at + 2 + 2 * max(count, 0)]
        if not 1 <= count <= MAX_RUNS or len(rows) < 2 * count:
            break
        pairs = zip(rows[::2], rows[1::2], strict=True)
        found[code] = tuple(
            (minimum, maximum) for minimum, maximum in pairs if 0 < minimum <= maximum <= MAX_W
        )
        at += 2 + 2 * count
    return {code: runs for code, runs in found.items() if runs}
