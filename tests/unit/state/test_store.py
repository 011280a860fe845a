# SPDX-License-Identifier: Apache-2.0
import json
import sqlite3
import threading
import time
from contextlib import closing

import pytest

from bridge.ports import Promises, State
from bridge.state import announced_starts
from bridge.state import store as store_module
from bridge.state.accuracy import Announced, Began, Happened
from bridge.state.store import Slow
from bridge.units import DAY_S
from tests.remembering import Store
from tests.unit.planning.scheduler.test_kept_plan import a_plan, same


def rows(path, query):
    with closing(sqlite3.connect(path)) as database:
        return database.execute(query).fetchall()


def said(starts):
    return {job_id: Announced(start_s, "batch") for job_id, start_s in starts.items()}


def took(store, promised=(), started=(), now_s=0, **more):
    """One cycle: promises as {job: start}, starts as (job, start)."""
    begun = [Began(job_id, start_s, "batch") for job_id, start_s in started]
    store.took(Happened(now_s, begun, promised=said(dict(promised)), **more))


def line(store, period="all", partition=""):
    return next(
        line.accuracy
        for line in store.accuracy().lines
        if (line.period, line.partition) == (period, partition)
    )


@pytest.fixture
def path(tmp_path):
    return tmp_path / "deep" / "memory.sqlite"


def test_what_policies_remember_survives(path):
    store = Store(path)
    store.watch(lambda: State(Promises("openccs", {"7": 1234})))
    store.close()
    again = Store(path)
    assert again.state().promises == Promises("openccs", {"7": 1234})
    again.close()


def test_what_was_dropped_before_any_cycle_is_dropped(path):
    store = Store(path)
    store.watch(lambda: State(Promises("openccs", {"7": 1234})))
    store.close()
    again = Store(path)
    assert again.state().promises.start_s
    again.watch(State)  # another policy was set
    again.close()
    third = Store(path)
    assert third.state() == State()
    third.close()


def test_an_announced_start_that_is_damaged_costs_no_other(path, caplog):
    Store(path).close()
    odd = {"7": 1234, "a": -1, "b": "soon", "c": 1.5, "d": None, "e": True, "f": 1 << 62, "8": 60}
    with closing(sqlite3.connect(path)) as database, database:
        saved = json.dumps({"by": "openccs", "planned_start_s": odd})
        database.execute("INSERT OR REPLACE INTO memory VALUES ('policies', ?)", (saved,))
    store = Store(path)
    assert store.state().promises == Promises("openccs", {"7": 1234, "8": 60})
    assert "6 announced starts cannot be read" in caplog.text
    store.close()


def test_starts_that_a_version_before_saved_are_announced_by_anybody(path):
    Store(path).close()
    with closing(sqlite3.connect(path)) as database, database:
        saved = json.dumps({"planned_start_s": {"7": 1234}})
        database.execute("INSERT OR REPLACE INTO memory VALUES ('policies', ?)", (saved,))
    store = Store(path)
    assert store.state().promised_by("openccs").start_s == {"7": 1234}
    store.close()


def test_promises_stand_beside_actual_starts(path):
    store = Store(path)
    took(store, {"1": 100, "2": 300}, now_s=10)
    took(store, {"1": 150}, now_s=20)
    took(store, started=[("1", 140), ("3", 20)], now_s=140)
    store.close()
    assert rows(path, "SELECT * FROM started ORDER BY job_id") == [
        ("1", 140, "batch", 100, 10, 150, 20, 1, 50, 0),
        ("3", 20, "batch", None, None, None, None, None, None, None),
    ]
    assert rows(path, "SELECT * FROM promise") == [("2", "batch", 300, 10, 300, 10, 0, 0, 0)]


def test_a_job_that_runs_twice_has_two_rows(path):
    store = Store(path)
    took(store, {"1": 100}, now_s=10)
    took(store, started=[("1", 100)], now_s=100)
    took(store, {"1": 400}, now_s=200)
    took(store, started=[("1", 390)], now_s=390)
    store.close()
    assert rows(path, "SELECT start_s, first_start_s FROM started ORDER BY 1") == [
        (100, 100),
        (390, 400),
    ]


def test_jobs_that_left_are_kept_apart(path):
    store = Store(path)
    took(store, {"1": 100, "2": 100}, now_s=10)
    took(store, gone=["1", "unheard"], now_s=20)
    took(store, waiting=[], now_s=30)
    store.close()
    assert rows(path, "SELECT job_id, gone_s, first_start_s FROM gone") == [
        ("1", 20, 100),
        ("2", 30, 100),
    ]
    assert rows(path, "SELECT * FROM started") == rows(path, "SELECT * FROM promise") == []


# ------------------------------------------------------------------ over a restart


def test_promises_and_their_changes_survive_a_restart(path):
    store = Store(path)
    took(store, {"1": 100}, now_s=10)
    took(store, {"1": 130}, now_s=20)
    store.close()
    store = Store(path)
    took(store, {"1": 110}, now_s=30)
    store.close()
    store = Store(path)
    took(store, started=[("1", 105)], now_s=105)
    found = line(store)
    store.close()
    assert (found.promised, found.changes, found.later_s, found.earlier_s) == (1, 2, 30, 20)
    assert (found.first.median_s, found.last.median_s) == (5, -5)


def test_a_whole_report_tells_no_start_twice(path):
    store = Store(path)
    took(store, {"1": 100, "2": 100, "3": 100}, now_s=10)
    took(store, started=[("1", 100)], now_s=100)
    store.close()
    store = Store(path)
    started = [("old", 5), ("1", 100), ("2", 120), ("new", 130)]
    for now_s in (200, 300):
        took(store, started=started, waiting=["3"], now_s=now_s)
    assert store.accuracy().waiting_promised == 1
    found = line(store)
    store.close()
    assert (found.promised, found.unpromised, found.gone) == (2, 1, 0)


def test_who_was_cancelled_in_between_is_gone(path):
    store = Store(path)
    took(store, {"1": 100, "2": 100}, now_s=10)
    store.close()
    store = Store(path)
    took(store, waiting=["2"], now_s=50)
    assert line(store).gone == 1
    store.close()


def test_a_file_of_the_first_version_is_brought_up_to_date(path):
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as database:
        database.executescript(
            """
            CREATE TABLE memory (key TEXT PRIMARY KEY, value TEXT NOT NULL);
            CREATE TABLE promise (job_id TEXT PRIMARY KEY,
                first_start_s INTEGER NOT NULL, first_said_s INTEGER NOT NULL,
                last_start_s INTEGER NOT NULL, last_said_s INTEGER NOT NULL);
            CREATE TABLE started (job_id TEXT NOT NULL, start_s INTEGER NOT NULL,
                first_start_s INTEGER, first_said_s INTEGER, last_start_s INTEGER,
                last_said_s INTEGER, PRIMARY KEY (job_id, start_s));
            INSERT INTO promise VALUES ('2', 300, 10, 310, 20);
            INSERT INTO started VALUES ('1', 140, 100, 10, 150, 20), ('3', 20, NULL, NULL, NULL,
                NULL);
            PRAGMA user_version = 1;
            """
        )
    store = Store(path)
    took(store, started=[("2", 305)], now_s=305)
    found = line(store)
    store.close()
    assert (found.promised, found.unpromised) == (2, 1)
    assert found.first.absolute_s.max == 40
    assert rows(path, "PRAGMA user_version") == [(2,)]
    Store(path).close()


# ------------------------------------------------------------------ what is asked


def test_each_partition_and_all_together(path):
    store = Store(path)
    promised = {"a": Announced(100, "x"), "b": Announced(100, "y"), "c": Announced(9, "y")}
    store.took(Happened(10, promised=promised))
    begun = [Began("a", 110, "x"), Began("b", 90, "y"), Began("d", 90, "y")]
    store.took(Happened(110, begun, gone=["c"]))
    lines = {found.partition: found for found in store.accuracy().lines if found.period == "all"}
    store.close()
    assert list(lines) == ["", "x", "y"]
    counts = {
        name: (found.accuracy.promised, found.accuracy.unpromised, found.accuracy.gone)
        for name, found in lines.items()
    }
    assert counts == {"": (2, 1, 1), "x": (1, 0, 0), "y": (1, 1, 1)}
    assert lines["x"].accuracy.last.median_s == 10
    assert lines["y"].accuracy.last.kept == 1
    assert lines[""].accuracy.last.kept == 0.5
    assert (lines[""].last_percentiles_s[0], lines[""].last_percentiles_s[100]) == (-10, 10)


def test_periods_end_at_the_controllers_clock(path):
    store = Store(path)
    now_s = 30 * DAY_S
    ages_s = (60, 7200, 2 * DAY_S, 20 * DAY_S)
    for age_s in sorted(ages_s, reverse=True):
        at_s = now_s - age_s
        took(store, {str(age_s): at_s}, now_s=at_s - 5)
        took(store, started=[(str(age_s), at_s)], now_s=at_s)
    took(store, {"later": now_s + 50}, now_s=now_s)
    found = store.accuracy()
    promised = {one.period: one.accuracy.promised for one in found.lines if not one.partition}
    store.close()
    assert promised == {"hour": 1, "day": 2, "week": 3, "all": 4}
    assert (found.now_s, found.since_s, found.waiting_promised) == (now_s, now_s - 20 * DAY_S, 1)
    assert sum(point.promised for point in found.series if not point.partition) == 4


def test_a_summary_agrees_with_every_row(path):
    """Grouped and repeated errors are the errors of the rows, one by one."""
    store = Store(path)
    errors = [0, 0, 0, 5, 5, -7, 100, 3600]
    for job, error_s in enumerate(errors):
        took(store, {str(job): 1000}, now_s=10)
        took(store, started=[(str(job), 1000 + error_s)], now_s=5000)
    found = line(store).last
    store.close()
    assert found.median_s == sorted(errors)[3] / 2 + sorted(errors)[4] / 2
    assert found.absolute_s.mean == sum(map(abs, errors)) / len(errors)
    assert found.kept == 4 / 8


def test_without_anything_there_are_no_lines(path):
    store = Store(path)
    found = store.accuracy()
    store.close()
    assert (found.now_s, found.lines, found.series) == (0, [], [])


def test_without_a_path_it_is_kept_until_the_end(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store = Store(None)
    store.watch(lambda: State(Promises("openccs", {"1": 2})))
    took(store, {"1": 10}, now_s=1)
    took(store, started=[("1", 12)], now_s=12)
    assert line(store).last.median_s == 2
    store.close()
    assert list(tmp_path.iterdir()) == []


# ------------------------------------------------------------------ cheap


def test_what_did_not_change_is_not_written(path):
    store = Store(path)
    took(store, {"1": 100}, now_s=10)
    store.accuracy()
    written = []
    store._writer.database.set_trace_callback(written.append)
    for now_s in range(11, 30):
        took(store, {"1": 100}, now_s=now_s)
        took(store, now_s=now_s)
    store.accuracy()
    store.close()
    assert not [text for text in written if "INSERT" in text or "DELETE" in text]


def test_many_cycles_are_one_write(path, monkeypatch):
    monkeypatch.setattr(store_module, "LINGER_S", 60)
    store = Store(path)
    written = []
    store._writer.database.set_trace_callback(written.append)
    for now_s in range(1, 200):
        took(store, {"1": 1000 + now_s}, now_s=now_s)
    store.accuracy()
    store.close()
    assert len([text for text in written if "REPLACE INTO promise" in text]) <= 2
    assert rows(path, "SELECT changes FROM promise") == [(198,)]


def test_a_slow_disk_does_not_slow_down_cycles(path):
    store = Store(path)
    free, held = threading.Event(), threading.Event()
    write = store._writer.write

    def slow():
        held.set()
        assert free.wait(300)
        write()

    store._writer.write = slow
    took(store, {"first": 1}, now_s=1)
    store._hurry.set()
    assert held.wait(300)
    for now_s in range(2, 500):
        took(store, {str(job): now_s + job for job in range(100)}, now_s=now_s)
    assert not free.is_set()  # the disk still holds
    with pytest.raises(Slow, match="try again later"):
        store.accuracy(timeout_s=0.05)
    askers = [threading.Thread(target=store.accuracy) for _ in range(store_module.ASKING)]
    for asker in askers:
        asker.start()
    while store._asking._value:
        time.sleep(0.001)
    with pytest.raises(Slow, match="too many queries"):
        store.accuracy(timeout_s=1)
    free.set()
    for asker in askers:
        asker.join(300)
    assert store.accuracy().waiting_promised == 101
    store.close()


def test_what_is_too_much_is_forgotten_and_said_once(path, monkeypatch, caplog):
    monkeypatch.setattr(store_module, "MAX_OWED", 5)
    monkeypatch.setattr(store_module, "LINGER_S", 60)
    store = Store(path)
    for now_s in range(1, 30):
        took(store, {str(now_s): 100}, now_s=now_s)
    store.close()
    assert caplog.text.count("cannot keep up") == 1
    assert 5 <= len(rows(path, "SELECT * FROM promise")) < 29


# ------------------------------------------------------------------ bounded


def test_what_is_older_than_kept_leaves(path):
    for keep_days, left in ((365, ["new", "old"]), (90, ["new"])):
        store = Store(path, keep_days=keep_days)
        took(store, started=[("old", 5), ("new", 91 * DAY_S)], now_s=91 * DAY_S)
        store.close()
        assert rows(path, "SELECT job_id FROM started ORDER BY 1") == [(job,) for job in left]


def test_a_clock_far_ahead_empties_nothing(path, monkeypatch):
    now_s = 1_900_000_000
    monkeypatch.setattr(announced_starts.time, "time", lambda: float(now_s))
    store = Store(path)
    took(store, started=[("1", now_s)], now_s=now_s)
    store.close()
    store = Store(path)
    took(store, started=[("2", now_s + 1000 * DAY_S)], now_s=now_s + 1000 * DAY_S)
    store.close()
    assert len(rows(path, "SELECT * FROM started")) == 2


def test_no_more_rows_than_bounded(path, monkeypatch):
    monkeypatch.setattr("bridge.state.announced_starts.MAX_ROWS", 3)
    store = Store(path)
    took(store, started=[(str(job), 100 + job) for job in range(9)], now_s=200)
    store.close()
    assert rows(path, "SELECT job_id FROM started ORDER BY 1") == [("6",), ("7",), ("8",)]


# ------------------------------------------------------------------ what can be wrong


@pytest.mark.parametrize("content", [b"garbage" * 1000, b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_damaged_file_is_moved_aside(path, content, caplog):
    path.parent.mkdir()
    path.write_bytes(content)
    store = Store(path)
    took(store, {"1": 100}, now_s=10)
    store.close()
    assert len(rows(path, "SELECT * FROM promise")) == 1
    aside = [found for found in path.parent.iterdir() if "damaged" in found.name]
    assert [found.read_bytes() for found in aside] == [content]
    assert "is damaged" in caplog.text


def test_a_file_that_is_damaged_in_the_middle_is_moved_aside(path, caplog):
    store = Store(path)
    took(store, {str(job): job + 1 for job in range(5000)}, now_s=1)
    store.close()
    raw = bytearray(path.read_bytes())
    raw[8192:40960] = b"\xee" * (40960 - 8192)
    path.write_bytes(raw)
    Store(path).close()
    assert "is damaged" in caplog.text


def test_an_unreadable_memory_begins_anew(path, caplog):
    Store(path).close()
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("INSERT INTO memory VALUES ('policies', '[1]')")
    store = Store(path)
    assert store.state().promises.start_s == {}
    assert "start without it" in caplog.text
    store.close()


def test_the_kept_plan_survives_with_its_nodes(path):
    store = Store(path)
    store.watch(lambda: State(Promises("openccs", kept_plan=a_plan(5))))
    store.close()
    again = Store(path)
    same(again.state().promises.kept_plan, a_plan(5))
    again.catch_up()
    again.watch(State)  # a policy without one has come in
    again.close()
    last = Store(path)
    assert last.state().promises.kept_plan is None
    last.close()


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (lambda value: value[:-1] + bytes([value[-1] ^ 1]), "its checksum is wrong"),
        (lambda value: value[:-4], "checksum"),
        (lambda value: value.replace(b'"version":1', b'"version":2', 1), "it has version 2"),
        (lambda value: b"what is this?", "it is not a plan"),
    ],
)
def test_a_plan_that_cannot_be_read_is_refused_and_the_starts_are_kept(
    path, caplog, damage, problem
):
    store = Store(path)
    store.watch(lambda: State(Promises("openccs", {"7": 1234}, a_plan(5))))
    store.close()
    with closing(sqlite3.connect(path)) as database, database:
        (value,) = database.execute("SELECT value FROM memory WHERE key = 'plan'").fetchone()
        database.execute("UPDATE memory SET value = ? WHERE key = 'plan'", (damage(value),))
    again = Store(path)
    promises = again.state().promises
    assert (promises.start_s, promises.kept_plan) == ({"7": 1234}, None)
    assert "the saved plan is not used: " in caplog.text
    assert problem in caplog.text
    again.close()


def test_a_report_nobody_can_read_is_logged_and_the_next_one_works(path, caplog):
    store = Store(path)
    took(store, {"1": "no number at all".encode}, now_s=1)
    took(store, {"2": 100}, now_s=2)
    store.close()
    assert "are dropped" in caplog.text
    assert [job_id for (job_id,) in rows(path, "SELECT job_id FROM promise")][-1] == "2"


def test_what_cannot_be_written_is_tried_again(path, caplog, monkeypatch):
    store = Store(path)
    took(store, {"1": 100}, now_s=1)
    store.accuracy()
    with closing(sqlite3.connect(path)) as other:
        other.execute("BEGIN EXCLUSIVE")
        store._writer.database.execute("PRAGMA busy_timeout = 50")
        took(store, started=[("1", 100)], now_s=100)
        store.accuracy()
        assert "will try again" in caplog.text
        other.rollback()
    store.close()
    assert rows(path, "SELECT job_id, last_start_s FROM started") == [("1", 100)]


def test_what_predictors_learnt_survives(path):
    store = Store(path)
    learnt = store.memory().learnt_by("last-two")
    for user, value in (("ann", [5, 7]), ("bob", [1]), ("ann", [7, 9]), ("eve", [3])):
        learnt.learn(user, value)
    store.close()
    again = Store(path)
    learnt = again.memory().learnt_by("last-two")
    assert list(learnt.known.items()) == [("bob", [1]), ("ann", [7, 9]), ("eve", [3])]
    learnt.forget("bob")
    learnt.learn("ann", [9, 1])
    again.close()
    once_more = Store(path)
    assert once_more.state().learnt_by("last-two").known == {"ann": [9, 1], "eve": [3]}
    once_more.close()


def test_what_was_learnt_and_cannot_be_read_is_forgotten(path, caplog):
    Store(path).close()
    with closing(sqlite3.connect(path)) as database, database:
        database.executemany(
            "INSERT INTO learnt VALUES ('last-two', ?, ?)",
            [("ann", "[1, 2]"), ("bob", "what?"), ("eve", "7"), ("joe", "[]")],
        )
    store = Store(path)
    assert store.state().learnt_by("last-two").known == {"ann": [1, 2]}
    store.close()
    assert "3 facts on run times cannot be read" in caplog.text


# ------------------------------------------------------------------ the corridor of power


def test_what_was_entered_of_the_corridor_survives(path):
    store = Store(path)
    assert store.corridor() is None
    store.keep_corridor("entries 1")
    store.keep_corridor("entries 2")
    store.close()
    again = Store(path)
    assert again.corridor() == "entries 2"
    assert again.corridor() is None  # it is handed out once
    again.close()
    third = Store(path)
    assert third.corridor() == "entries 2"
    third.close()


def test_what_is_entered_is_written_without_delay(path, monkeypatch):
    monkeypatch.setattr(store_module, "LINGER_S", 600)
    store = Store(path)
    took(store, {"1": 100}, now_s=10)  # the writer waits for more of this kind
    store.keep_corridor("entries")
    query = "SELECT value FROM memory WHERE key = 'corridor'"
    for _ in range(1000):
        if rows(path, query):
            break
        time.sleep(0.01)
    assert rows(path, query) == [("entries",)]
    store.close()


def test_a_new_file_gets_the_corridor_as_well(path):
    store = Store(path)
    store.keep_corridor("entries")
    store.accuracy()
    path.unlink()
    took(store, {"1": 100}, now_s=10)
    store.close()
    again = Store(path)
    assert again.corridor() == "entries"
    again.close()
