# SPDX-License-Identifier: Apache-2.0
"""Files of a memory, and what tests do to them: filled, killed, locked by another process."""

import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import time
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from bridge.state.accuracy import Announced, Began, Happened
from tests.remembering import Store

ROOT = Path(__file__).parents[1]
PROMISED = {str(job): 1000 + job for job in range(47)}
PATIENCE_S = 60

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount, or to chown")


def took(store, promised=(), started=(), now_s=1, **more):
    said = {job_id: Announced(at_s, "batch") for job_id, at_s in dict(promised).items()}
    begun = [Began(job_id, start_s, "batch") for job_id, start_s in started]
    store.took(Happened(now_s, begun, promised=said, **more))


def rows(path, query):
    with closing(sqlite3.connect(path)) as database:
        return database.execute(query).fetchall()


def promises(path):
    return dict(rows(path, "SELECT job_id, last_start_s FROM promise"))


def fill(path):
    """A memory that was closed, with 47 promises in each of its places."""
    store = Store(path)
    store.memory().planned_start_s.update(PROMISED)
    learnt = store.memory().learnt_by("last-two")
    for user, value in (("ann", [1, 2]), ("bob", [3])):
        learnt.learn(user, value)
    store.catch_up()
    took(store, PROMISED)
    store.close()


def kill(path, to):
    """A memory whose service was killed: 46 promises of it are in the log only."""
    fill(path)
    store = Store(path)
    with closing(sqlite3.connect(path)) as other:
        other.execute("BEGIN")
        other.execute("SELECT count(*) FROM promise").fetchone()  # nobody empties the log now
        took(store, {job_id: at_s + 5 for job_id, at_s in PROMISED.items()}, now_s=2)
        store.accuracy()
        assert path.with_name(path.name + "-wal").stat().st_size
        for suffix in ("", "-wal", "-shm"):
            shutil.copy(path.with_name(path.name + suffix), to.with_name(to.name + suffix))
    store.close()
    return to


def wait_for(condition):
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def opened(store):
    wait_for(lambda: not store.problem)


def aside(path):
    return sorted(found.name for found in path.parent.iterdir() if ".damaged-" in found.name)


@contextmanager
def script(text, *arguments, **settings):
    """Python in another process that says a line when it is ready."""
    with subprocess.Popen(
        [sys.executable, "-c", text, *map(str, arguments)],
        stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)}, **settings,
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            process.kill()


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


LOCK = """
import sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("PRAGMA locking_mode = EXCLUSIVE")
database.execute("BEGIN EXCLUSIVE")
print("locked", flush=True)
sys.stdin.readline()
database.execute("ROLLBACK")
database.close()
print("free", flush=True)
"""
