# SPDX-License-Identifier: Apache-2.0
import sqlite3

import pytest

from bridge.errors import ConfigError
from bridge.store import KEEP_S, Store


def rows(path, query):
    with sqlite3.connect(path) as database:
        return database.execute(query).fetchall()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "deep" / "memory.sqlite"


def test_what_policies_remember_survives(path):
    store = Store(path)
    store.memory().planned_start_s["7"] = 1234
    store.close()
    again = Store(path)
    assert again.memory().planned_start_s == {"7": 1234}
    again.close()


def test_promises_stand_beside_actual_starts(path):
    store = Store(path)
    store.took({"1": 100, "2": 300}, [], now_s=10)
    store.took({"1": 150}, [], now_s=20)
    store.took({}, [("1", 140), ("3", 20)], now_s=140)
    store.close()
    assert rows(path, "SELECT * FROM started ORDER BY job_id") == [
        ("1", 140, 100, 10, 150, 20),
        ("3", 20, None, None, None, None),
    ]
    assert rows(path, "SELECT * FROM promise") == [("2", 300, 10, 300, 10)]


def test_a_job_that_runs_twice_has_two_rows(path):
    store = Store(path)
    store.took({"1": 100}, [], now_s=10)
    store.took({}, [("1", 100)], now_s=100)
    store.took({"1": 400}, [], now_s=200)
    store.took({}, [("1", 390)], now_s=390)
    store.close()
    assert rows(path, "SELECT start_s, first_start_s FROM started ORDER BY 1") == [
        (100, 100),
        (390, 400),
    ]


def test_promises_survive_a_restart(path):
    store = Store(path)
    store.took({"1": 100}, [], now_s=10)
    store.close()
    store = Store(path)
    store.took({}, [("1", 105)], now_s=105)
    store.close()
    assert rows(path, "SELECT first_start_s, start_s FROM started") == [(100, 105)]


@pytest.mark.parametrize("content", [b"garbage" * 1000, b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_damaged_file_is_moved_aside(path, content, caplog):
    path.parent.mkdir()
    path.write_bytes(content)
    store = Store(path)
    store.took({"1": 100}, [], now_s=10)
    store.close()
    assert len(rows(path, "SELECT * FROM promise")) == 1
    aside = [found for found in path.parent.iterdir() if "damaged" in found.name]
    assert [found.read_bytes() for found in aside] == [content]
    assert "is damaged" in caplog.text


def test_a_file_that_is_damaged_in_the_middle_is_moved_aside(path, caplog):
    store = Store(path)
    store.took({str(job): job for job in range(5000)}, [], now_s=1)
    store.close()
    raw = bytearray(path.read_bytes())
    raw[8192:40960] = b"\xee" * (40960 - 8192)
    path.write_bytes(raw)
    Store(path).close()
    assert "is damaged" in caplog.text


def test_an_unreadable_memory_begins_anew(path, caplog):
    Store(path).close()
    with sqlite3.connect(path) as database:
        database.execute("INSERT INTO memory VALUES ('policies', '[1]')")
    store = Store(path)
    assert store.memory().planned_start_s == {}
    assert "begin anew" in caplog.text
    store.close()


def test_a_newer_file_is_refused(path):
    Store(path).close()
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA user_version = 2")
    with pytest.raises(ConfigError, match="newer schedbridge"):
        Store(path)
    assert path.exists()


def test_a_place_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"memory.path: cannot write"):
        Store(tmp_path / "file" / "memory.sqlite")


def test_old_rows_are_dropped(path):
    store = Store(path)
    store.took({"old": 1, "new": 1}, [("old", 5), ("new", KEEP_S + 10)], now_s=5)
    store.close()
    store = Store(path)
    store.close()
    assert rows(path, "SELECT job_id FROM started") == [("new",)]


def test_without_a_path_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store = Store(None)
    store.memory().planned_start_s["1"] = 2
    store.took({"1": 1}, [("2", 2)], now_s=1)
    store.close()
    assert list(tmp_path.iterdir()) == []


def test_a_failing_write_is_logged_and_the_next_one_works(path, caplog):
    store = Store(path)
    store.took({"1": "no number at all".encode}, [], now_s=1)  # an object SQLite cannot take
    store.close()
    assert "something is forgotten" in caplog.text
