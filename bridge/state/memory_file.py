# SPDX-License-Identifier: Apache-2.0
"""Opens the store's SQLite file, and handles missing, unsafe and damaged ones.

| found | action |
|---|---|
| no file | created with mode 0600; its directory, if missing, with 0700 |
| a file that others can read | permissions of the file and its logs are restricted |
| SQLITE_CORRUPT, SQLITE_NOTADB, a failed integrity check | moved aside with its logs; new file |
| anything else | `NotOpened`; nothing is changed, and it may be retried |

Anything else: full disk, lock, permission, another owner, newer format, network file system.

Rules
    1. Nothing is deleted. -wal and -shm are moved with their file. A log without its file is moved
       aside, too, because SQLite would delete it.
    2. A readable file is opened even if it cannot be written at present: its contents are useful,
       and the writer retries.
"""

import contextlib
import logging
import os
import pwd
import re
import sqlite3
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from bridge.errors import BridgeError
from bridge.state.announced_starts import SCHEMA as STARTS
from bridge.state.announced_starts import upgrade
from bridge.state.predictor_store import SCHEMA as PREDICTORS

_log = logging.getLogger(__name__)

BUSY_S = 5.0
"""How long to wait for another process's lock."""

_VERSION: Final = 2
_MEMORY: Final = "CREATE TABLE IF NOT EXISTS memory (key TEXT PRIMARY KEY, value TEXT NOT NULL);"
_SCHEMA: Final = tuple(
    statement for statement in (_MEMORY + PREDICTORS + STARTS).split(";") if statement.strip()
)
_LOGS: Final = ("-wal", "-shm")
_DAMAGE: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
MOUNTS = Path("/proc/self/mountinfo")
_NETWORK: Final = frozenset(
    (
        "nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "ceph", "lustre", "gpfs", "beegfs",
        "glusterfs", "panfs", "pvfs2", "fuse.sshfs", "fuse.ceph", "fuse.ceph-fuse",
        "fuse.glusterfs", "fuse.beegfs",
    )
)  # fmt: skip
"""File systems whose locks and shared memory SQLite cannot rely on."""


class NotOpened(BridgeError):
    """The file cannot be used at present; it was not changed."""


class _Damaged(Exception):
    """The file was damaged, and has been moved aside."""


def open_nothing() -> sqlite3.Connection:
    """An empty store that ends with the process."""
    database = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
    _make_tables(database, 0)
    return database


def open_file(path: Path) -> sqlite3.Connection:
    """Opens a store; a damaged one is moved aside and replaced by an empty one.

    The connection is in autocommit mode; see `transaction`.

    Raises:
        NotOpened: it cannot be used at present; the message says why.
    """
    try:
        _refuse_network(path)
        _make_private(path)
        with contextlib.suppress(_Damaged):
            return _prepare(path)
        _make_private(path)
        return _prepare(path)
    except _Damaged as error:
        raise NotOpened(f"cannot use {path}: damaged again at once ({error})") from error
    except OSError as error:
        elsewhere = error.filename and not str(error.filename).startswith(str(path))
        at = error.filename if elsewhere else path
        raise NotOpened(f"cannot use {at}: {error.strerror or error}") from error
    except sqlite3.Error as error:
        raise NotOpened(f"cannot use {path}: {reason_of(error)}") from error


def is_damage(error: Exception) -> bool:
    """Tells whether SQLite found the file itself damaged, not its storage."""
    if isinstance(error, UnicodeDecodeError):  # the name of a table is not text
        return True
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGE


def is_passing(error: Exception) -> bool:
    """Tells whether writing may succeed later, once a lock or a full disk is gone."""
    passing = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL)
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in passing


def reason_of(error: Exception) -> str:
    """SQLite's error message, or a plainer one."""
    words = {
        sqlite3.SQLITE_BUSY: "another process has locked it",
        sqlite3.SQLITE_FULL: "the disk is full",
        sqlite3.SQLITE_READONLY: "it cannot be written",
    }
    code = getattr(error, "sqlite_errorcode", 0)
    known = words.get(code & 0xFF)
    name = getattr(error, "sqlite_errorname", "")
    return known if known else f"{error} ({name})" if name else str(error)


def identity(path: Path) -> tuple[int, int] | None:
    """Identifies the file; None: it does not exist or cannot be examined."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


@contextlib.contextmanager
def transaction(database: sqlite3.Connection) -> Iterator[None]:
    """A transaction: everything is written, or nothing."""
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
        database.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            database.execute("ROLLBACK")
        raise


def set_aside(path: Path, why: str) -> None:
    """Moves a file and its logs aside, and logs that.

    Its connection is closed afterwards: closing it first would write the log into the damaged
    file, and delete the log. SQLite does neither to a file that has moved.

    Raises:
        OSError: it cannot be moved.
    """
    stem = f"{path.name}.damaged-{int(time.time())}"
    name, count = stem, 1
    while any(os.path.lexists(path.with_name(name + end)) for end in ("", *_LOGS)):
        name, count = f"{stem}-{count}", count + 1
    for suffix in ("", *_LOGS):
        with contextlib.suppress(FileNotFoundError):
            path.with_name(path.name + suffix).rename(path.with_name(name + suffix))
    _log.warning("memory %s is damaged (%s): moved with its logs to %s", path, why, name)


# ---------------------------------------------------------------- before SQLite sees it


def _refuse_network(path: Path) -> None:
    kind = file_system(path, MOUNTS.read_text(errors="replace") if MOUNTS.exists() else "")
    if kind in _NETWORK:
        raise NotOpened(f"{path} lies on a network file system ({kind}): name a path on a disk")


def file_system(path: Path, mounts: str) -> str:
    """The type of file system a path lies on; "": unknown.

    Args:
        path: need not exist.
        mounts: as /proc/self/mountinfo.
    """
    wanted, best, kind = os.path.realpath(path), "", ""
    for line in mounts.splitlines():
        before, separator, after = line.partition(" - ")
        words = before.split(" ")
        if not separator or len(words) < 5:
            continue
        at = re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), words[4])
        inside = wanted == at or wanted.startswith(at.rstrip("/") + "/")
        if inside and len(at) >= len(best):  # a later mount hides an earlier one
            best, kind = at, after.split(" ")[0]
    return kind


def _make_private(path: Path) -> None:
    """Creates the file if it is missing, and denies access to others."""
    try:
        path.parent.mkdir(mode=0o700)
    except FileNotFoundError:
        path.parent.parent.mkdir(parents=True, exist_ok=True)
        path.parent.mkdir(mode=0o700, exist_ok=True)
    except FileExistsError:
        pass
    log = path.with_name(path.name + "-wal")
    if _size(log) and not _size(path):
        set_aside(path, "its log is there without the file")
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    for suffix in ("", *_LOGS):
        with contextlib.suppress(FileNotFoundError):
            _close_to_others(path.with_name(path.name + suffix))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _close_to_others(path: Path) -> None:
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise NotOpened(f"{path} is not a regular file")
    me, owner, link = os.geteuid(), found.st_uid, path.lstat().st_uid
    if owner != me or link not in (me, 0):
        owner = owner if owner != me else link
        raise NotOpened(
            f"{path} belongs to {_user(owner)}, the service runs as {_user(me)}: "
            f"run 'chown {_user(me)} {path}'"
        )
    if found.st_mode & 0o077:
        path.chmod(0o600)
        _log.warning(
            "memory %s could be read by others (mode %04o): now it is 0600",
            path, stat.S_IMODE(found.st_mode),
        )  # fmt: skip


def _user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


# ---------------------------------------------------------------- with SQLite


def _prepare(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(path, timeout=BUSY_S, check_same_thread=False, isolation_level=None)
    try:
        result = database.execute("PRAGMA quick_check(1)").fetchone()[0]
        if result != "ok":
            damage = sqlite3.DatabaseError(result)
            damage.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
            raise damage
        version = database.execute("PRAGMA user_version").fetchone()[0]
        if version > _VERSION:
            raise NotOpened(
                f"{path} was written by a newer schedbridge (format {version}, this one knows "
                f"{_VERSION}): name another file"
            )
        if version == 0 and database.execute("SELECT 1 FROM sqlite_master").fetchone():
            raise NotOpened(f"{path} is the database of another program: name another file")
        if version < _VERSION:
            database.execute("PRAGMA journal_mode = WAL")
            _make_tables(database, version)
        else:
            _keep_log(database)
        database.execute("PRAGMA synchronous = NORMAL")
        _look(database, path)
    except BaseException as error:
        try:
            if isinstance(error, Exception) and is_damage(error):
                set_aside(path, str(error))
                raise _Damaged(str(error)) from error
            raise
        finally:
            database.close()
    return database


def _keep_log(database: sqlite3.Connection) -> None:
    """Requests a write-ahead log; a file that already has one is not written."""
    if database.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        with contextlib.suppress(sqlite3.OperationalError):
            database.execute("PRAGMA journal_mode = WAL")


def _make_tables(database: sqlite3.Connection, version: int) -> None:
    with transaction(database):
        if version == 1:
            upgrade(database)
        for statement in _SCHEMA:
            database.execute(statement)
        database.execute(f"PRAGMA user_version = {_VERSION}")


def _look(database: sqlite3.Connection, path: Path) -> None:
    """Raises unless the tables are those of the file's version."""
    fresh = open_nothing()
    try:
        for (table,) in fresh.execute("SELECT name FROM sqlite_master WHERE type = 'table'"):
            wanted = {row[1] for row in fresh.execute(f"PRAGMA table_info({table})")}
            found = {row[1] for row in database.execute(f"PRAGMA table_info({table})")}
            if missing := sorted(wanted - found):
                raise NotOpened(
                    f"{path} has no column {missing[0]} in its table {table}: name another file"
                )
    finally:
        fresh.close()
