# SPDX-License-Identifier: Apache-2.0
"""The account of waits against EASY, compared with a simulation of EASY second by second."""

import numpy as np
import pytest

from bridge.model.learnt import Learnt
from bridge.planning.dispatch import account
from bridge.planning.dispatch.account import Account

TOTAL, NODES = 16, 16


def naive_easy(jobs, until_s):
    """By id: start under EASY; jobs are (id, submit_s, run_s, limit_s, width), in this order."""
    start_s, running, waiting, coming = {}, [], [], sorted(jobs, key=lambda job: job[1])
    for now_s in range(until_s + 1):
        running = [one for one in running if one[0] > now_s]
        while coming and coming[0][1] <= now_s:
            waiting.append(coming.pop(0))
        free = TOTAL - sum(width for _, _, width in running)
        held, spare = None, 0
        for job in list(waiting):
            name, _, run_s, limit_s, width = job
            fits = width <= free
            if held is not None:
                fits = fits and (now_s + limit_s <= held or width <= spare)
            if fits:
                spare -= width if held is not None and now_s + limit_s > held else 0
                start_s[name] = now_s
                free -= width
                running.append((now_s + run_s, max(now_s + limit_s, now_s + 1), width))
                waiting.remove(job)
            elif held is None:
                left = free
                for end_s in sorted({max(end, now_s + 1) for _, end, _ in running}):
                    left = free + sum(w for _, end, w in running if max(end, now_s + 1) <= end_s)
                    if left >= width:
                        held, spare = end_s, left - width
                        break
    return start_s


def a_run(seed, n_jobs=40):
    """Jobs, and when they really started: first come, first served."""
    rng = np.random.default_rng(seed)
    jobs, at_s = [], 1
    for number in range(n_jobs):
        at_s += int(rng.integers(0, 60))
        limit_s = int(rng.integers(1, 400))
        width = int(rng.choice([1, 1, 2, 3, 8, 12]))
        jobs.append((str(number), at_s, int(rng.integers(1, limit_s + 1)), limit_s, width))
    start_s, running, now_s = {}, [], 0
    for name, submit_s, run_s, _, width in jobs:
        now_s = max(now_s, submit_s)
        while sum(w for end_s, w in running if end_s > now_s) + width > TOTAL:
            now_s = min(end_s for end_s, _ in running if end_s > now_s)
        start_s[name] = now_s
        running.append((now_s + run_s, width))
    return jobs, start_s


def size_class(width):
    return 0 if width == 1 else 1 if width <= 2 else 2 if width <= 8 else 3


def told(jobs, start_s, now_s, seen=None):
    """The account at `now_s`, with what a controller would have told until then."""
    own = Account(seen or Learnt())
    come = [job for job in jobs if job[1] <= now_s]
    over = {id_ for id_, entry in own.done().known.items() if id_ != "*" and entry[6]}
    first = [job for job in come if job[0] not in over]
    columns = np.array([[job[1], job[3], job[4]] for job in first], dtype=np.int64).reshape(-1, 3)
    own.arrive([job[0] for job in first], *columns.T, total=TOTAL, nodes=NODES)
    ended = [job for job in come if start_s[job[0]] + job[2] <= now_s]
    own.end(
        [job[0] for job in ended], [start_s[job[0]] for job in ended],
        [start_s[job[0]] + job[2] for job in ended],
    )  # fmt: skip
    running = {
        job[0]: start_s[job[0]]
        for job in come
        if start_s[job[0]] <= now_s < start_s[job[0]] + job[2]
    }
    own.running = lambda: running
    own.settle(now_s, TOTAL, 0.9, [job[0] for job in come if start_s[job[0]] > now_s])
    return own


@pytest.mark.parametrize("seed", range(6))
def test_classes_weigh_what_they_wait_beyond_easy(seed, monkeypatch):
    monkeypatch.setattr(account, "FLOOR_S", 1)
    jobs, start_s = a_run(seed)
    now_s = jobs[-1][1] + 100
    own = told(jobs, start_s, now_s)
    known = [
        (name, submit_s, run_s if start_s[name] + run_s <= now_s else limit_s, limit_s, width)
        for name, submit_s, run_s, limit_s, width in jobs
    ]
    easy = naive_easy(known, now_s)
    simulated = {job[0]: min(easy.get(job[0], now_s), now_s) - job[1] for job in jobs}
    real = {job[0]: min(start_s[job[0]], now_s) - job[1] for job in jobs}
    assert own.longest_s == max(simulated.values())
    limits, widths = (np.array([job[at] for job in jobs]) for at in (3, 4))
    weights = own.weights(limits, widths, total=TOTAL, nodes=NODES)
    found = dict(zip((job[0] for job in jobs), weights.tolist(), strict=True))
    by_length = max(1.0, (sum(real.values()) + 40) / (0.9 * (sum(simulated.values()) + 40))) ** 4
    for kind in range(4):  # all are shorter than an hour: of the other kind there is one class
        own_ids = [job[0] for job in jobs if size_class(job[4]) == kind]
        waited = sum(real[name] + 1 for name in own_ids)
        minimum = sum(simulated[name] + 1 for name in own_ids)
        expected = max(1.0, waited / (0.9 * minimum)) ** 4 if own_ids else 1.0
        for name in own_ids:
            assert found[name] == pytest.approx(min(expected, 1e4) * min(by_length, 1e4))
    assert max(found.values()) > 1


def test_it_continues_from_what_it_knew():
    jobs, start_s = a_run(1)
    known = Learnt()
    for now_s in sorted({job[1] for job in jobs}):
        last = told(jobs, start_s, now_s, known)
        known = last.done()
    at_once = told(jobs, start_s, now_s)
    assert dict(known.known) == dict(at_once.done().known)
    assert told(jobs, start_s, now_s, known).done().known == known.known  # nothing is new


def one(own, name, width=1, submit_s=10, limit_s=50):
    columns = (np.array([value]) for value in (submit_s, limit_s, width))
    own.arrive([name], *columns, total=TOTAL, nodes=NODES)


def test_cancelled_jobs_leave_and_ends_nobody_told_are_noticed(monkeypatch):
    monkeypatch.setattr(account, "EVERY", 1)
    own = Account(Learnt())
    for name in ("runs", "waits", "cancelled", "again"):
        one(own, name)
    own.running = lambda: {"runs": 20, "again": 20}
    own.settle(30, TOTAL, 1.0, ["waits", "cancelled"])
    one(own, "other")
    own.running = dict
    own.settle(40, TOTAL, 1.0, ["waits", "again", "other"])
    entries = {name: entry[5:] for name, entry in own.done().known.items() if name != "*"}
    assert entries == {"runs": [20, 40], "waits": [0, 0], "again": [0, 0], "other": [0, 0]}


def test_old_jobs_are_forgotten(monkeypatch):
    monkeypatch.setattr(account, "MAX", 5)
    own = Account(Learnt())
    for number in range(20):
        one(own, str(number), submit_s=10 + number)
    own.end([str(number) for number in range(1, 20)], [30] * 19, [40] * 19)
    own.settle(50, TOTAL, 1.0, ["0"])
    assert set(own.done().known) == {"0", "15", "16", "17", "18", "19", "*"}


def test_wider_than_the_machine_is_ignored(monkeypatch):
    monkeypatch.setattr(account, "EVERY", 1)
    own = Account(Learnt())
    own.end(["stranger"], [1], [2])
    one(own, "wide", width=TOTAL + 1)
    own.settle(50, TOTAL, 1.0, ["wide"])
    assert own.longest_s == 0


def test_a_full_account_takes_no_more_until_jobs_have_left(monkeypatch):
    monkeypatch.setattr(account, "MAX_KNOWN", 3)
    own = Account(Learnt())
    for number in range(5):
        one(own, str(number))
    own = Account(own.done())
    assert set(own.done().known) == {"0", "1", "2", "*"}
    own.settle(100, TOTAL, 1.0, ["1", "3", "4"])  # no arrival since: the others were cancelled
    one(own, "3")
    assert set(own.done().known) == {"1", "3", "*"}


def test_a_number_that_comes_again_is_a_new_job():
    own = Account(Learnt())
    one(own, "7", submit_s=10)
    own.end(["7"], [20], [30])
    one(own, "7", submit_s=90)
    assert own.done().known["7"][1] == 90
    assert own.done().known["7"][5:] == [0, 0]


def test_odd_times_do_no_harm(monkeypatch):
    monkeypatch.setattr(account, "EVERY", 1)
    own = Account(Learnt())
    one(own, "long", limit_s=1 << 60)
    one(own, "none", limit_s=0)
    one(own, "later", submit_s=5000)
    own.running = lambda: {"none": 20}
    own.settle(40, TOTAL, 1.0, ["long", "later"])
    one(own, "other", submit_s=41)
    own.running = dict
    own.settle(3, TOTAL, 1.0, ["long", "later", "other"])  # the clock was set back
    assert own.longest_s == 0
    weights = own.weights(np.array([1, 1 << 60]), np.array([1, 16]), total=TOTAL, nodes=NODES)
    assert (weights >= 1).all()
    assert (weights < 2).all()
