# SPDX-License-Identifier: Apache-2.0
"""A file of the memory that comes late, a service that is killed, clocks that leap."""

import random
import signal
import threading

from bridge.state import memory_file, memory_writer
from bridge.state import store as store_module
from bridge.units import DAY_S
from tests.memory_files import (
    LOCK,
    PATIENCE_S,
    PROMISED,
    aside,
    fill,
    opened,
    promises,
    rows,
    script,
    took,
)
from tests.remembering import Store

# ------------------------------------------------------------------ what happened meanwhile


def test_what_happened_while_there_was_no_file_happens_to_what_it_holds(path):
    store = Store(path)
    took(store, {"1": 100, "2": 100, "3": 100, "4": 100, "5": 100}, now_s=10)
    took(store, started=[("5", 50)], now_s=50)
    store.close()
    # The service is away: 1 starts at 60, 2 is cancelled.
    with script(LOCK, path) as backup:
        assert backup.stdout.readline() == "locked\n"
        store = Store(path)
        assert store.problem
        took(store, {"3": 130, "6": 200}, [("1", 60), ("5", 50)], 70, waiting=["3", "4", "6"])
        took(store, started=[("3", 120)], now_s=120)
        took(store, started=[("6", 210)], now_s=210)
        took(store, {"4": 300}, now_s=220)
        store.accuracy()
    opened(store)
    took(store, {"7": 400}, now_s=230)
    store.close()
    assert rows(
        path, "SELECT job_id, start_s, first_start_s, last_start_s, later_s FROM started ORDER BY 1"
    ) == [("1", 60, 100, 100, 0), ("3", 120, 100, 130, 30), ("5", 50, 100, 100, 0),
          ("6", 210, 200, 200, 0)]  # fmt: skip
    assert rows(path, "SELECT job_id, gone_s FROM gone") == [("2", 70)]
    assert promises(path) == {"4": 300, "7": 400}


def test_what_policies_do_with_a_file_that_comes_late(path):
    fill(path)
    with script(LOCK, path) as backup:
        assert backup.stdout.readline() == "locked\n"
        store = Store(path)
        memory = store.memory()
        store.catch_up()
        memory.planned_start_s["new"] = 9  # a cycle
        memory.learnt_by("last-two").learn("bob", [5])
        took(store, {"new": 9}, now_s=70)
        store.accuracy()
    opened(store)
    store.catch_up()
    assert memory.planned_start_s == {"new": 9}
    assert memory.learnt_by("last-two").known == {"ann": [1, 2], "bob": [5]}
    took(store, {"new": 10}, now_s=80)
    store.close()
    again = Store(path)
    assert again.memory().planned_start_s == {"new": 9}
    assert again.memory().learnt["last-two"] == {"ann": [1, 2], "bob": [5]}
    again.close()


def test_what_waits_for_a_file_is_bounded(path, monkeypatch, caplog):
    monkeypatch.setattr(memory_writer, "MAX_MISSED", 50)
    path.mkdir()
    store = Store(path)
    for now_s in range(1, 40):
        took(store, {"1": 100 + now_s, "2": 200}, [(f"s{now_s}", now_s)], now_s)
        store.accuracy()
    assert len(store._writer.missed) < 30
    assert "starts so far are dropped" in caplog.text
    path.rmdir()
    opened(store)
    store.close()
    assert promises(path) == {"1": 139, "2": 200}


# ------------------------------------------------------------------ killed at any moment


WRITE = """
import sys
from pathlib import Path
from bridge.state import store as store_module
from bridge.state.accuracy import Announced, Began, Happened
from tests.remembering import Store
store_module.LINGER_S = store_module.SAVE_EVERY_S = 0
store = Store(Path(sys.argv[1]))
first = max([0, *(int(job) for job in store.memory().planned_start_s)])
store.catch_up()
print("ready", flush=True)
for job in range(first + 1, first + 100_000):
    store.memory().planned_start_s = {str(job): job}
    store.took(Happened(job, [Began(str(job - 1), job, "batch")],
                        promised={str(job): Announced(job + 1, "batch")}))
    if job % 10 == 0:
        store.accuracy()
        print(job, flush=True)
"""


def test_killed_at_any_moment(path):
    chance = random.Random(7)
    known = 0
    for _ in range(6):
        with script(WRITE, path) as service:
            assert service.stdout.readline() == "ready\n"
            for _ in range(chance.randrange(30)):
                known = int(service.stdout.readline())
            service.send_signal(signal.SIGKILL)
            service.wait()
        starts = {int(job) for (job,) in rows(path, "SELECT job_id FROM started")}
        assert starts >= set(range(1, known))  # what was answered for is on disk
        assert aside(path) == []


# ------------------------------------------------------------------ clocks


def test_a_clock_that_leaps_ahead_costs_a_part_of_the_records(path, monkeypatch):
    store = Store(path)
    now_s = 1000 * DAY_S
    took(store, started=[(str(job), now_s + job) for job in range(500)], now_s=now_s + 500)
    store.close()
    future_s = now_s + 30 * 365 * DAY_S
    monkeypatch.setattr("bridge.state.announced_starts.time.time", lambda: float(future_s))
    for _ in range(3):  # three hours, or starts
        store = Store(path)
        took(store, {"x": future_s}, now_s=future_s)
        store.close()
    assert len(rows(path, "SELECT * FROM started")) == 500 - 3 * 10


def test_a_clock_that_was_ahead_does_not_hide_later_starts(path):
    store = Store(path)
    took(store, {"x": 10**9}, now_s=10**9)
    store.close()
    store = Store(path)
    took(store, {"y": 2000}, now_s=1000)  # it is right again
    store.close()
    store = Store(path)
    took(store, started=[("y", 2000)], waiting=[], now_s=2500)
    store.close()
    assert rows(path, "SELECT job_id, start_s, first_start_s FROM started") == [("y", 2000, 2000)]


def test_a_disk_that_does_not_answer_stops_no_start(path, monkeypatch, caplog):
    fill(path)
    free = threading.Event()
    prepare = memory_file._prepare

    def hangs(at):
        assert free.wait(PATIENCE_S)
        return prepare(at)

    monkeypatch.setattr(memory_file, "_prepare", hangs)
    monkeypatch.setattr(store_module, "OPEN_S", 0.1)
    store = Store(path)
    assert store.memory().planned_start_s == {}
    assert "does not answer" in caplog.text
    free.set()
    opened(store)
    store.catch_up()
    assert store.memory().planned_start_s == PROMISED
    store.close()


def test_the_corridor_of_a_file_that_comes_late_is_handed_out(path):
    first = Store(path)
    first.keep_corridor("old")
    first.close()
    with script(LOCK, path) as backup:
        assert backup.stdout.readline() == "locked\n"
        store = Store(path)
        assert store.corridor() is None
        store.keep_corridor("new")
        store.accuracy()
    opened(store)
    assert store.corridor() == "old"
    store.keep_corridor("old and new")
    store.close()
    again = Store(path)
    assert again.corridor() == "old and new"
    again.close()
