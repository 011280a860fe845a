# SPDX-License-Identifier: Apache-2.0
"""What can happen to the memory's file: none of it may lose records or delay a cycle."""

import contextlib
import os
import random
import shutil
import sqlite3
import subprocess
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from bridge.state import memory_file, memory_writer
from bridge.state import store as store_module
from bridge.state.memory_file import NotOpened, file_system, open_file
from tests.memory_files import (
    LOCK,
    PATIENCE_S,
    PROMISED,
    aside,
    fill,
    kill,
    mode,
    needs_root,
    opened,
    promises,
    script,
    took,
    wait_for,
)
from tests.remembering import Store

# ------------------------------------------------------------------ what cannot be opened


def test_a_file_that_another_process_has_locked_is_no_damaged_one(path, caplog):
    fill(path)
    before = path.read_bytes()
    with script(LOCK, path) as backup:
        assert backup.stdout.readline() == "locked\n"
        store = Store(path)
        assert store.memory().planned_start_s == {}
        assert "another process has locked it" in store.problem
        wait_for(lambda: store._retry_s == store_module.RETRY_S[1])  # it is tried several times
        assert caplog.text.count("another process has locked it") == 1
        assert path.read_bytes() == before
        backup.stdin.write("\n")
        backup.stdin.flush()
        assert backup.stdout.readline() == "free\n"
    opened(store)
    store.catch_up()  # no cycle was planned yet: all of it counts
    assert store.memory().planned_start_s == PROMISED
    assert store.accuracy().waiting_promised == 47
    store.close()
    assert promises(path) == PROMISED
    assert aside(path) == []


def test_a_service_that_ends_before_it_could_open_the_file_leaves_it_as_it_is(path):
    fill(path)
    with script(LOCK, path) as backup:
        assert backup.stdout.readline() == "locked\n"
        store = Store(path)
        store.memory()
        store.close()
    again = Store(path)
    assert again.memory().planned_start_s == PROMISED
    again.close()


FULL = """
import os, resource, sys
from pathlib import Path
from bridge.state.accuracy import Announced, Happened
from bridge.state import store as store_module, memory_file
from tests.remembering import Store
store_module.RETRY_S = (0.02, 0.1)
store_module.LINGER_S = 0.01
path = Path(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
store = Store(path)
early = len(store.memory().planned_start_s)
store.took(Happened(5, promised={"new": Announced(9, "batch")}))
print(early, flush=True)
sys.stdin.readline()
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
store.took(Happened(6, promised={"newer": Announced(9, "batch")}))
while store.problem:
    pass
store.catch_up()
print(len(store.memory().planned_start_s), store.accuracy().waiting_promised, flush=True)
store.close()
"""


@pytest.mark.parametrize("killed", [False, True])
def test_a_start_where_nothing_can_be_written(path, tmp_path, killed):
    if killed:
        path = kill(tmp_path / "first.sqlite", path)
    else:
        fill(path)
    names = sorted(found.name for found in tmp_path.iterdir())
    before = {name: (tmp_path / name).read_bytes() for name in names if not name.endswith("-shm")}
    with script(FULL, path) as service:
        assert service.stdout.readline() == "0\n"
        for name, content in before.items():
            assert (tmp_path / name).read_bytes() == content
        service.stdin.write("\n")
        service.stdin.flush()
        assert service.stdout.readline() == "47 49\n"
        assert service.wait(PATIENCE_S) == 0
    moved = 5 if killed else 0
    expected = {job_id: at_s + moved for job_id, at_s in PROMISED.items()}
    assert promises(path) == expected | {"new": 9, "newer": 9}
    assert aside(path) == []


@contextmanager
def tmpfs(at, size):
    at.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(at)], check=False
    )
    if done.returncode:
        pytest.skip("needs the right to mount a file system")
    try:
        yield at
    finally:
        subprocess.run(["umount", "-l", str(at)], check=True)


def fill_up(ballast):
    with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"x" * 4096)


@needs_root
def test_a_full_disk(tmp_path, caplog):
    with tmpfs(tmp_path / "disk", "1m") as disk:
        path = disk / "memory.sqlite"
        fill(path)
        fill_up(disk / "ballast")
        store = Store(path)
        assert store.problem
        assert "is damaged" not in caplog.text
        took(store, {"new": 9}, now_s=3)
        store.memory()
        (disk / "ballast").unlink()
        opened(store)
        store.catch_up()
        assert store.memory().planned_start_s == PROMISED
        store.close()
        assert promises(path) == PROMISED | {"new": 9}

        # And one that fills up in the middle of the work.
        store = Store(path)
        fill_up(disk / "ballast")
        took(store, {f"more-{job}": 9 for job in range(9000)}, now_s=4)
        wait_for(lambda: "the service continues" in caplog.text.rpartition("is open now")[2])
        assert store.accuracy().waiting_promised == 48 + 9000
        (disk / "ballast").unlink()
        wait_for(lambda: "more-8999" in promises(path))  # by itself: nothing new has happened
        took(store, {"last": 9}, now_s=5)
        store.close()
        assert {"new", "last"} < set(promises(path))
        assert aside(path) == []


@needs_root
def test_a_disk_that_can_only_be_read(tmp_path):
    with tmpfs(tmp_path / "disk", "4m") as disk:
        path = disk / "memory.sqlite"
        fill(path)
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        store = Store(path)
        took(store, {"new": 9}, now_s=3)
        store.memory()
        subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)
        opened(store)
        store.catch_up()
        assert store.memory().planned_start_s == PROMISED
        took(store, {"newer": 9}, now_s=4)
        wait_for(lambda: {"new", "newer"} < set(promises(path)))
        store.close()
        assert aside(path) == []


@needs_root
def test_somebody_elses_file_is_refused_in_words(path, caplog):
    fill(path)
    os.chown(path, 65534, -1)
    store = Store(path)
    assert "belongs to nobody, the service runs as root: run 'chown root " in store.problem
    os.chown(path, 0, -1)
    opened(store)
    wait_for(lambda: "is open now" in caplog.text)
    assert len(caplog.text.splitlines()) == 2  # one when it fails, one when it works
    store.close()


def newer(path):
    fill(path)
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA user_version = 99")


def foreign(path):
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE recipes (name TEXT)")


def other_columns(path):
    fill(path)
    with closing(sqlite3.connect(path)) as database:
        database.execute("ALTER TABLE promise RENAME COLUMN changes TO moves")


REFUSED = {
    "newer": (newer, "was written by a newer schedbridge"),
    "foreign": (foreign, "is the database of another program"),
    "other columns": (other_columns, "has no column changes in its table promise"),
    "directory": (Path.mkdir, "is not a regular file"),
    "pipe": (os.mkfifo, "is not a regular file"),
    "device": (lambda path: path.symlink_to("/dev/zero"), "is not a regular file"),
    "nowhere": (lambda path: path.symlink_to("/proc/nowhere/m"), "cannot use"),
    "loop": (lambda path: path.symlink_to(path), "Too many levels of symbolic links"),
}


@pytest.mark.parametrize(("make", "words"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_memory_is_left_alone_in_one_line(path, caplog, make, words):
    make(path)
    before = path.read_bytes() if path.is_file() else None
    store = Store(path)
    took(store, {"1": 100}, now_s=1)
    assert store.accuracy().waiting_promised == 1
    assert words in store.problem
    store.close()
    assert before is None or path.read_bytes() == before
    assert len([line for line in caplog.text.splitlines() if words in line]) == 1
    assert "Traceback" not in caplog.text
    assert aside(path) == []


@pytest.mark.parametrize("name", ["file/memory.sqlite", "x" * 300])
def test_a_place_that_cannot_be(tmp_path, name):
    (tmp_path / "file").write_text("")
    store = Store(tmp_path / name)
    assert store.problem.startswith("cannot use ")
    store.close()


def test_a_directory_that_comes_later(tmp_path):
    """As when a disk is mounted after the service has started."""
    (tmp_path / "disk").write_text("not mounted")
    store = Store(tmp_path / "disk" / "memory.sqlite")
    took(store, {"1": 100}, now_s=1)
    assert store.problem
    (tmp_path / "disk").unlink()
    opened(store)
    store.close()
    assert promises(tmp_path / "disk" / "memory.sqlite") == {"1": 100}


def test_a_network_file_system_is_told(path, monkeypatch):
    mounts = (
        "21 1 8:1 / / rw - ext4 /dev/sda rw\n"
        "22 21 0:5 / /net rw,nosuid shared:7 master:1 - nfs4 server:/x rw\n"
        "23 22 8:2 / /net/local\\040disk rw - xfs /dev/sdb rw\n"
        "a line that nobody understands\n"
    )
    assert file_system(Path("/net/a/memory.sqlite"), mounts) == "nfs4"
    assert file_system(Path("/net/local disk/memory.sqlite"), mounts) == "xfs"
    assert file_system(Path("/network/memory.sqlite"), mounts) == "ext4"
    assert file_system(Path("/x"), "") == ""
    table = path.with_name("mounts")
    table.write_text(f"1 0 0:5 / {path.parent} rw - nfs4 server:/x rw\n")
    monkeypatch.setattr(memory_file, "MOUNTS", table)
    with pytest.raises(NotOpened, match=r"network file system \(nfs4\): name a path on a disk"):
        open_file(path)
    assert not path.exists()


# ------------------------------------------------------------------ who may read it


def test_nobody_else_may_read_it(tmp_path):
    old = os.umask(0)
    try:
        path = tmp_path / "deep" / "own" / "memory.sqlite"
        store = Store(path)
        took(store, {"1": 100})
        store.accuracy()
        assert mode(path.parent) == 0o700
        names = ("", "-wal", "-shm")
        assert {mode(path.with_name(path.name + suffix)) for suffix in names} == {0o600}
        store.close()
    finally:
        os.umask(old)


def test_a_file_that_others_can_read_is_closed_to_them(path, tmp_path, caplog):
    path = kill(tmp_path / "first.sqlite", path)
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).chmod(0o644)
    store = Store(path)
    assert {mode(path.with_name(path.name + suffix)) for suffix in ("", "-wal")} == {0o600}
    assert store.accuracy().waiting_promised == 47
    store.close()
    assert "could be read by others (mode 0644): now it is 0600" in caplog.text


# ------------------------------------------------------------------ damage


def test_a_damaged_file_is_moved_with_its_log(path, tmp_path, caplog):
    path = kill(tmp_path / "first.sqlite", path)
    log = path.with_name(path.name + "-wal").read_bytes()
    garbage = b"\xee" * path.stat().st_size
    path.write_bytes(garbage)
    path.with_name(path.name + "-wal").write_bytes(log[:32] + b"\xaa" * (len(log) - 32))
    bent = path.with_name(path.name + "-wal").read_bytes()
    store = Store(path)
    took(store, {"1": 100}, now_s=1)
    store.close()
    assert promises(path) == {"1": 100}
    found = aside(path)
    assert [name.rpartition("-")[2] for name in found if name.endswith(("wal", "shm"))] == [
        "shm",
        "wal",
    ]
    kept = {name[-4:]: (tmp_path / name).read_bytes() for name in found}
    assert kept["-wal"] == bent
    assert garbage in kept.values()
    assert caplog.text.count("is damaged") == 1


def test_a_log_without_its_file_is_kept(path, tmp_path):
    path = kill(tmp_path / "first.sqlite", path)
    log = path.with_name(path.name + "-wal").read_bytes()
    path.unlink()
    store = Store(path)
    store.close()
    (found,) = [name for name in aside(path) if name.endswith("-wal")]
    assert (tmp_path / found).read_bytes() == log


@pytest.mark.parametrize("seed", range(40))
def test_torn_writes(path, tmp_path, seed, caplog):
    """Whatever is torn, the service goes on, and what was there is kept, in place or aside."""
    chance = random.Random(seed)
    path = kill(tmp_path / "first.sqlite", path)
    for suffix in chance.choice((("",), ("-wal",), ("-shm",), ("", "-wal", "-shm"))):
        file = path.with_name(path.name + suffix)
        raw = bytearray(file.read_bytes())
        kind = chance.choice(("cut", "bits", "page", "zeros"))
        at = chance.randrange(len(raw))
        if kind == "cut":
            del raw[at:]
        elif kind == "bits":
            for _ in range(chance.choice((1, 20))):
                raw[chance.randrange(len(raw))] ^= 1 << chance.randrange(8)
        else:
            at -= at % 4096
            end = min(at + 4096 * chance.choice((1, 1, 4)), len(raw))
            raw[at:end] = bytes(end - at) if kind == "zeros" else chance.randbytes(end - at)
        file.write_bytes(raw)
    store = Store(path)
    assert store.problem == ""
    for value in store.memory().planned_start_s.values():
        assert isinstance(value, int)
    store.catch_up()
    took(store, {"new": 77}, now_s=9)
    took(store, started=[("other", 9)], waiting=["new"], now_s=10)
    assert store.accuracy().waiting_promised == 1
    store.memory().planned_start_s["new"] = 77
    store.close()
    assert "Traceback" not in caplog.text
    again = Store(path)
    assert again.memory().planned_start_s["new"] == 77
    again.close()
    assert promises(path)["new"] == 77


@pytest.mark.parametrize(
    ("statement", "value"),
    [
        ("UPDATE started SET start_s = ?", "soon"),
        ("UPDATE started SET partition = CAST(? AS TEXT)", b"\xff\xfe"),
        ("UPDATE started SET first_start_s = ?", b"\x00"),
        ("UPDATE promise SET first_start_s = ?", "never"),
        ("UPDATE promise SET last_start_s = ?", 2**62),
        ("UPDATE promise SET partition = CAST(? AS TEXT)", b"\xff\xfe"),
        ("UPDATE gone SET partition = CAST(? AS TEXT)", b"\xff\xfe"),
        ("UPDATE memory SET value = CAST(? AS TEXT)", b"\xff\xfe"),
        ("UPDATE memory SET value = ?", '{"planned_start_s": {"1": 1e999}}'),
        ("UPDATE memory SET value = ?", '{"planned_start_s": {"1": 1' + "0" * 40 + "}}"),
        ("UPDATE memory SET value = ?", "[" * 100_000),
        ("UPDATE learnt SET value = ?", "[1e999]"),
        ("UPDATE learnt SET value = ?", "[" + "9" * 30 + "]"),
        ("UPDATE learnt SET value = ?", "[" * 100_000),
        ("UPDATE learnt SET key = CAST(? AS TEXT)", b"\xff\xfe"),
    ],
)
def test_one_poisonous_row_costs_no_other(path, statement, value, caplog):
    fill(path)
    store = Store(path)
    took(store, {"a": 5, "b": 7}, now_s=5)
    took(store, started=[("a", 5), ("c", 6)], gone=["b"], now_s=6)
    store.close()
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(f"{statement} WHERE rowid = (SELECT max(rowid) FROM {_table(statement)})",
                         (value,))  # fmt: skip
    store = Store(path)
    store.memory()
    assert store.problem == ""
    lines = [
        line for line in store.accuracy().lines if (line.period, line.partition) == ("all", "")
    ]
    left_out = "started SET start_s" in statement  # nobody knows when it was
    assert lines[0].accuracy.promised + lines[0].accuracy.unpromised == 2 - left_out
    assert store.accuracy().waiting_promised >= 46
    store.close()
    assert "Traceback" not in caplog.text


def _table(statement):
    return statement.split()[1]


def test_a_file_that_is_damaged_while_it_is_in_use_is_written_anew(path, monkeypatch, caplog):
    fill(path)
    store = Store(path)
    assert store.memory().planned_start_s == PROMISED
    store.memory().learnt_by("last-two").learn("eve", [4])
    store.catch_up()
    took(store, {"1": 5000}, now_s=3)
    store.accuracy()
    write = memory_writer.keep_promises

    def fails(*_):
        monkeypatch.setattr(memory_writer, "keep_promises", write)
        damage = sqlite3.DatabaseError("database disk image is malformed")
        damage.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
        raise damage

    monkeypatch.setattr(memory_writer, "keep_promises", fails)
    took(store, {"2": 5000}, now_s=4)
    store.accuracy()
    wait_for(lambda: aside(path))
    wait_for(lambda: path.exists() and store._is_open)
    took(store, now_s=5, waiting=[*PROMISED])
    store.close()
    assert promises(path) == PROMISED | {"1": 5000, "2": 5000}
    again = Store(path)
    assert again.memory().planned_start_s == PROMISED
    assert again.memory().learnt["last-two"] == {"ann": [1, 2], "bob": [3], "eve": [4]}
    again.close()
    assert "is written again" in caplog.text


def test_a_file_that_is_removed_or_replaced_while_it_is_in_use(path, tmp_path):
    fill(path)
    shutil.copy(path, tmp_path / "backup")
    store = Store(path)
    store.memory()
    store.catch_up()
    took(store, {"new": 9}, now_s=3)
    store.accuracy()
    path.unlink()
    took(store, {"newer": 9}, now_s=4)
    store.accuracy()
    wait_for(path.exists)
    wait_for(lambda: promises(path) == PROMISED | {"new": 9, "newer": 9})
    (tmp_path / "backup").replace(path)  # from a backup: 0 and 46 started or left since
    took(store, gone=["0", "46"], now_s=5)
    store.close()
    assert promises(path) == {
        job_id: at_s for job_id, at_s in PROMISED.items() if job_id not in ("0", "46")
    } | {"new": 9, "newer": 9}
