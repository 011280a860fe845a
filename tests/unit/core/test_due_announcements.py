# SPDX-License-Identifier: Apache-2.0
"""`due_announcements` against the rules written with NumPy, on random plans and earlier tables."""

import numpy as np
import pytest

from bridge.core import NEVER, UNPLANNED, due_announcements
from schedbridge_contracts.crosses import each

VERSION, KIND, START_S, PARTITION, NODES, CODE, WORDS, SAID_S = range(8)
NOTHING, PLANNED, PENDING = range(3)
PAUSES = {"words_s": 60, "prompt": 3, "calm_s": 10}
NOW_S = 1_000


def world(rng, n_jobs=40, n_nodes=9):
    """The arguments of a random plan in which some jobs start now, and no table of before."""
    job = rng.permutation(n_jobs)[: n_jobs - 5]
    start_s = rng.choice([NOW_S, NOW_S + 7, NOW_S + 5_000, NEVER, UNPLANNED], len(job))
    width = np.where((start_s == NEVER) | (start_s == UNPLANNED), 0, rng.integers(1, 4, len(job)))
    held = [np.sort(rng.choice(n_nodes, n, replace=False)) for n in width.tolist()]
    told = np.flatnonzero(start_s != NOW_S)
    row_of = np.full(n_jobs, -1)
    row_of[job[told]] = told
    return {
        "now_s": NOW_S,
        "start_s": start_s,
        "partition": rng.integers(0, 2, len(job)).astype(np.int32),
        "indptr": np.concatenate(([0], np.cumsum(width))),
        "nodes": np.concatenate([np.empty(0, int), *held]).astype(np.int32),
        "reason": rng.integers(0, 4, len(job)),
        "code": np.array([0, 3, 3, 5]),
        "words": np.array([0, -(2**62), 17, 17]),
        "mix": rng.integers(-(2**62), 2**62, n_nodes),
        "row_of": row_of,
        "version": rng.integers(0, 2**64 - 1, n_jobs, dtype=np.uint64),
        "serial": np.sort(rng.choice(10 * n_jobs, n_jobs, replace=False)),
        "said": np.zeros((8, n_jobs), dtype=np.int64),
        "in_order": job[told],
    }


def expected(args):
    """The table, the jobs and the seconds, by the rules."""
    rows = args["row_of"]
    has, row = rows >= 0, np.where(rows >= 0, rows, 0)
    start_s = args["start_s"][row]
    planned = has & (start_s != NEVER) & (start_s != UNPLANNED)
    sums = np.concatenate(([0], np.cumsum(args["mix"][args["nodes"]])))
    prints = sums[args["indptr"][1:]] - sums[args["indptr"][:-1]]
    now = np.zeros((8, len(rows)), dtype=np.int64)
    now[VERSION], now[SAID_S] = args["version"].view(np.int64), args["now_s"]
    now[KIND] = np.where(has, np.where(planned, PLANNED, PENDING), NOTHING)
    now[START_S] = np.where(planned, start_s, 0)
    now[PARTITION] = np.where(planned, args["partition"][row], -1)
    now[NODES] = np.where(planned, prints[row], 0)
    now[CODE] = np.where(has, args["code"][args["reason"][row]], 0)
    now[WORDS] = np.where(has, args["words"][args["reason"][row]], 0)
    before = args["said"]
    differs = (now[:WORDS] != before[:WORDS]).any(axis=0)
    differs |= (now[WORDS] != before[WORDS]) & (abs(NOW_S - before[SAID_S]) >= PAUSES["words_s"])
    jobs = args["in_order"][differs[args["in_order"]]]
    moved = (now[VERSION] == before[VERSION]) & (now[KIND] == before[KIND])
    wait_s = np.zeros(len(jobs), dtype=np.int64)
    n_moved = 0
    for at, job in enumerate(jobs.tolist()):
        n_moved += moved[job]
        lead_s = min(now[START_S, job], before[START_S, job]) - NOW_S
        pause_s = min(max(lead_s // 100, 1), PAUSES["calm_s"]) if n_moved > PAUSES["prompt"] else 1
        left_s = pause_s - (NOW_S + args["serial"][job]) % pause_s
        told = before[SAID_S, job] <= NOW_S and NOW_S + left_s - before[SAID_S, job] <= pause_s
        wait_s[at] = left_s if moved[job] and told else 0
    later = wait_s[wait_s > 0]
    return now, jobs[wait_s == 0], min(later.min(), PAUSES["calm_s"]) if len(later) else 0


def changed(rng, table):
    """A table of before: many announcements moved, others are old, and some are the same."""
    before = table.copy()
    n = before.shape[1]
    before[SAID_S] = NOW_S - rng.choice([-5, 0, 1, 2, 9, 59, 60], n)
    for part, share in ((START_S, 0.7), (NODES, 0.2), (VERSION, 0.1), (KIND, 0.1), (WORDS, 0.2)):
        at = rng.random(n) < share
        before[part, at] += rng.integers(1, 4, int(at.sum()))
    before[:, rng.random(n) < 0.1] = 0
    return before


@each(seed=range(30))
def test_as_by_the_rules(seed):
    rng = np.random.default_rng(seed)
    args = world(rng)
    for _ in range(3):
        table, jobs, again_s = expected(args)
        found, due, again = due_announcements(**args, **PAUSES)
        assert np.array_equal(found.reshape(8, -1), table)
        assert due.tolist() == jobs.tolist()
        assert again == again_s
        args["said"] = changed(rng, table)


def test_of_no_jobs():
    args = world(np.random.default_rng(0), n_jobs=5)
    assert not len(args["start_s"])
    args |= {
        name: args[name][..., :0] for name in ("row_of", "version", "serial", "said", "in_order")
    }
    args["said"] = np.zeros((8, 0), dtype=np.int64)
    found, due, again = due_announcements(**args, **PAUSES)
    assert (len(found), len(due), again) == (0, 0, 0)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("nodes", lambda column: column + 9),
        ("reason", lambda column: column + 4),
        ("row_of", lambda column: column + 40),
        ("row_of", lambda column: column[:-1]),
        ("in_order", lambda column: column + 40),
        ("said", lambda column: column[:7]),
        ("said", lambda column: column.astype(float)),
        ("indptr", lambda column: column[::-1].copy()),
    ],
)
def test_wrong_columns_are_refused_by_name(name, wrong):
    args = world(np.random.default_rng(1))
    args[name] = wrong(args[name])
    with pytest.raises(ValueError, match=name):
        due_announcements(**args, **PAUSES)


def test_the_interval_must_be_positive():
    with pytest.raises(ValueError, match="calm_s"):
        due_announcements(**world(np.random.default_rng(1)), **PAUSES | {"calm_s": 0})
