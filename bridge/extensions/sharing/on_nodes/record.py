# SPDX-License-Identifier: Apache-2.0
"""The shares that are in force, in a file: for the guardian, and for the agent's next start.

It is written before anything is changed, so that no change is forgotten. Only root can write it.
The process that holds the lock is the keeper of the shares.
"""

import contextlib
import fcntl
import json
import logging
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from bridge.extensions.sharing.on_nodes.wanted import MAX_SHARES, Share, ShareKey, is_job

_log = logging.getLogger(__name__)

_MAX_BYTES: Final = 1 << 20


@dataclass(frozen=True)
class Recorded:
    """What is in force.

    Attributes:
        changed: jobs, and by which method each was changed; empty: not known.
        own: cgroups that were made for jobs.
        frozen: jobs that are frozen while they are moved.
    """

    shares: tuple[Share, ...] = ()
    changed: tuple[tuple[ShareKey, str], ...] = ()
    own: Mapping[ShareKey, Path] = field(default_factory=dict)
    frozen: frozenset[ShareKey] = frozenset()


class ShareRecord:
    """The file, and its lock beside it."""

    def __init__(self, path: Path) -> None:
        """Stores the path; nothing is opened."""
        self._path = path
        self._lock: int | None = None
        self._written = b""

    @property
    def path(self) -> Path:
        return self._path

    def take(self) -> bool:
        """Becomes the keeper of the shares, unless another process is.

        Raises:
            OSError: the lock's file cannot be opened.
        """
        if self._lock is None:
            lock = os.open(f"{self._path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(lock)
                return False
            self._lock = lock
        return True

    def give(self) -> None:
        """Releases the lock."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def put(self, recorded: "Recorded") -> None:
        """Writes it, if it differs from what was written last.

        Raises:
            OSError: it cannot be written.
        """
        content = json.dumps({
            "shares": [asdict(share) for share in recorded.shares],
            "changed": [[*key, method] for key, method in recorded.changed],
            "own": [[*key, str(path)] for key, path in recorded.own.items()],
            "frozen": [[*key, ""] for key in recorded.frozen],
        }).encode()  # fmt: skip
        if content == self._written:
            return
        beside = self._path.with_suffix(".new")
        with contextlib.suppress(FileNotFoundError):
            beside.unlink()
        file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(file, "wb") as stream:
            stream.write(content)
        beside.replace(self._path)
        self._written = content

    def read(self) -> "Recorded":
        """Its content; unreadable parts are left out."""
        try:
            with self._path.open("rb") as file:
                found = json.loads(file.read(_MAX_BYTES))
        except FileNotFoundError:
            return Recorded()
        except (OSError, ValueError, RecursionError) as error:
            _log.warning("%s cannot be read: %s", self._path, error)
            return Recorded()
        if not isinstance(found, dict):
            return Recorded()
        own = {key: Path(path) for key, path in _texts(found.get("own"))}
        changed = tuple(_texts(found.get("changed")))
        frozen = frozenset(key for key, _ in _texts(found.get("frozen")))
        return Recorded(tuple(_shares(found.get("shares"))), changed, own, frozen)


def _shares(found: Any) -> Iterable[Share]:
    for each in found[:MAX_SHARES] if isinstance(found, list) else ():
        try:
            share = Share(**each)
        except TypeError:
            continue
        numbers, names = (share.milli_cpus, share.weight), (share.node, share.job)
        if not all(isinstance(each, str) for each in names) or not isinstance(share.guest, bool):
            continue
        if is_job(share.job) and all(isinstance(each, int) for each in numbers):
            yield share


def _texts(found: Any) -> Iterable[tuple[ShareKey, str]]:
    for each in found[:MAX_SHARES] if isinstance(found, list) else ():
        if isinstance(each, list) and len(each) == 3 and all(isinstance(it, str) for it in each):
            yield (each[0], each[1]), each[2]
