# SPDX-License-Identifier: Apache-2.0
"""The disk under the service's memory: it can be full, and a loss of power can cut its log short.

Stands in for the module `sqlite3` in the service's modules; the database is a real one.
"""

import contextlib
import shutil
import sqlite3
from pathlib import Path
from typing import Any

FULL = 13
"""SQLITE_FULL."""

SUFFIXES = ("", "-wal", "-shm")


class Disk:
    """A directory with the files of one database, and a way to break it.

    Attributes:
        full: nothing can be written.
        freed_ms: when it was full last.
        path: where the database of the present life of the machine is.
    """

    def __init__(self, home: Path) -> None:
        self._home = home
        self._lives = 0
        self.full = False
        self.freed_ms = -1_000_000
        self._open: list[sqlite3.Connection] = []
        self._looked_at: dict[str, bytes] = {}
        self._seen: dict[str, Any] = {}
        self.path = self._new()

    def _new(self) -> Path:
        self._lives += 1
        directory = self._home / f"disk-{self._lives}"
        directory.mkdir()
        return directory / "memory.sqlite"

    def __getattr__(self, name: str) -> Any:
        return getattr(sqlite3, name)

    def connect(self, path: Any, *args: Any, **settings: Any) -> sqlite3.Connection:
        disk = self

        class Connection(sqlite3.Connection):
            """Fails where the disk is full."""

            def _guard(self, statement: str) -> None:
                words = statement.split()
                reads = not words or words[0].upper() in ("SELECT", "BEGIN", "ROLLBACK", "EXPLAIN")
                if words and words[0].upper() == "PRAGMA":
                    reads = True
                if disk.full and not reads and path != ":memory:":
                    self._fail()

            def _fail(self) -> None:
                error = sqlite3.OperationalError("database or disk is full")
                error.sqlite_errorcode = FULL  # type: ignore[misc]
                error.sqlite_errorname = "SQLITE_FULL"  # type: ignore[misc]
                raise error

            def execute(self, statement: str, *rest: Any) -> sqlite3.Cursor:  # type: ignore[override]
                self._guard(statement)
                return super().execute(statement, *rest)

            def executemany(self, statement: str, *rest: Any) -> sqlite3.Cursor:  # type: ignore[override]
                self._guard(statement)
                return super().executemany(statement, *rest)

            def commit(self) -> None:
                if disk.full and self.in_transaction and path != ":memory:":
                    self.rollback()
                    self._fail()
                super().commit()

        connection = sqlite3.connect(path, *args, factory=Connection, **settings)
        self._open.append(connection)
        return connection

    def crash(self, cut: float | None) -> str:
        """The machine, or only the process, is gone: what is on disk goes on in a new place.

        Args:
            cut: None: the process was killed, all that was written stays. Otherwise power failed:
                this part of the log, which nothing forces to the disk, is left.

        Returns:
            What happened to the files.
        """
        before, self.path = self.path, self._new()
        said = "kept"
        for suffix in SUFFIXES:
            source = before.with_name(before.name + suffix)
            if source.exists():
                shutil.copyfile(source, self.path.with_name(self.path.name + suffix))
        log = self.path.with_name(self.path.name + "-wal")
        if cut is not None:
            self.path.with_name(self.path.name + "-shm").unlink(missing_ok=True)
            if log.exists():
                left = int(log.stat().st_size * cut)
                with log.open("r+b") as file:
                    file.truncate(left)
                said = f"log cut to {left} bytes"
        self.release()
        shutil.rmtree(before.parent)
        return said

    def release(self) -> None:
        """Closes what a dead process had open."""
        for connection in self._open:
            connection.close()
        self._open.clear()

    def written(self) -> dict[str, Any]:
        """What is on disk now, read by another connection from a copy."""
        files = {}
        for suffix in SUFFIXES[:2]:
            source = self.path.with_name(self.path.name + suffix)
            if source.exists():
                files[suffix] = source.read_bytes()
        if files != self._looked_at:  # three times of four they are the same
            self._looked_at, self._seen = files, self._look(files)
        return self._seen

    def _look(self, files: dict[str, bytes]) -> dict[str, Any]:
        there = self._home / "look"
        shutil.rmtree(there, ignore_errors=True)
        there.mkdir()
        for suffix, content in files.items():
            (there / f"m{suffix}").write_bytes(content)
        if not files.get(""):
            return {}
        with contextlib.closing(sqlite3.connect(there / "m")) as database:
            try:
                database.execute("PRAGMA synchronous = OFF")
                rows = database.execute(
                    "SELECT job_id, first_start_s, last_start_s, changes FROM promise"
                    " ORDER BY job_id"
                ).fetchall()
                starts = database.execute(
                    "SELECT job_id, start_s FROM started ORDER BY job_id, start_s"
                ).fetchall()
            except sqlite3.DatabaseError as error:
                return {"unreadable": str(error)}
        return {"promises": [list(row) for row in rows], "starts": [list(row) for row in starts]}
