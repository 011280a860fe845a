# SPDX-License-Identifier: Apache-2.0
"""The log of operators' changes: who, when, what, from what to what, and with which result.

Rules
    1. The last `MAX_HELD` changes of administrators are held, and apart from them the last
       `MAX_PER_AUTHOR` of each of the last `MAX_AUTHORS` others: nobody pushes out another's.
       Numbers without a user (of containers, say) count as one author: anyone may have many.
    2. A text of an administrator's entry has `MAX_TEXT` characters at most, of another's `SHORT`.
    3. Nobody waits for the disk: a thread writes the files. Where it cannot, or `MAX_OWED`
       entries wait for it, entries are only held.
    4. The others' file is written once in `SAVE_EVERY_S` at most, and at the end.
    5. What is in force is kept beside them, so that the next start can list what it changes.
"""

import logging
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

from bridge.rpc.pb import operator_pb2 as pb
from bridge.state import change_files
from bridge.state.change_files import MAX_TEXT, TEXTS, others_file

_log = logging.getLogger(__name__)

MAX_HELD: Final = 1000
MAX_AUTHORS: Final = 200
MAX_PER_AUTHOR: Final = 50
SHORT: Final = 200
MAX_OWED: Final = 1000
SAVE_EVERY_S: Final = 5.0
OPEN_S: Final = 2.0
"""The service's start waits so long for the files."""
CLOSE_S: Final = 5.0


class OthersChanges:
    """The last changes of those who are no administrators."""

    def __init__(self) -> None:
        self._by_author: OrderedDict[int | None, deque[pb.OperatorChange]] = OrderedDict()

    def __iter__(self) -> Iterator[pb.OperatorChange]:
        for changes in self._by_author.values():
            yield from changes

    def add(self, change: pb.OperatorChange) -> None:
        """Adds a change, and drops the author's oldest beyond the bound (rule 1)."""
        author = None if change.user == str(change.uid) else change.uid
        self._by_author.setdefault(author, deque(maxlen=MAX_PER_AUTHOR)).append(change)
        self._by_author.move_to_end(author)
        if len(self._by_author) > MAX_AUTHORS:
            self._by_author.popitem(last=False)


class ChangeLog:
    """The last entries, and the thread that writes them.

    Attributes:
        was_in_force: the text that was kept last before this start; None: it is not known.
    """

    def __init__(self, path: Path | None) -> None:
        """Reads the files, unless the disk does not answer: then they follow.

        Args:
            path: the path of the administrators' file; None: entries are only held.
        """
        self.was_in_force: str | None = None
        self._in_force: str | None = None
        self._keeps_now = False
        self._path = path
        self._woken = threading.Condition()
        self._admins: deque[pb.OperatorChange] = deque(maxlen=MAX_HELD)
        self._others = OthersChanges()
        self._owed: deque[pb.OperatorChange] = deque()
        self._owes_others = self._closing = False
        self._failing: set[Path] = set()
        self._thread: threading.Thread | None = None
        if path is not None:
            loaded = threading.Event()
            self._thread = threading.Thread(
                target=self._write, args=(path, loaded), name="change log", daemon=True
            )
            self._thread.start()
            if not loaded.wait(OPEN_S):
                _log.error("%s does not answer: former changes are not listed yet", path)

    def add(self, change: pb.OperatorChange, *, admin: bool) -> None:
        """Logs a change of an administrator or of somebody else; returns at once."""
        change = _bounded(change, MAX_TEXT if admin else SHORT)
        _log.log(
            logging.INFO if admin or change.done else logging.DEBUG,
            "change: %s by %s (uid %d): %s -> %s: %s",
            change.method, change.user, change.uid, change.before, change.after, change.result,
        )  # fmt: skip
        with self._woken:
            if not admin:
                self._others.add(change)
                self._owes_others = True
                return
            self._admins.append(change)
            if self._path is None:
                return
            if len(self._owed) < MAX_OWED:
                self._owed.append(change)
                self._woken.notify()
            else:
                self._complain(self._path, "the disk does not answer")

    def keep(self, in_force: str) -> None:
        """Keeps what is in force for the next start; returns at once (rule 5)."""
        with self._woken:
            self._in_force, self._keeps_now = in_force, True
            self._woken.notify()

    def last(self, count: int, since_s: int = 0) -> list[pb.OperatorChange]:
        """The last changes, oldest first, none before `since_s`.

        Args:
            count: the count of administrators, and as many of others.
            since_s: Unix seconds.
        """
        with self._woken:
            admins, others = list(self._admins), list(self._others)
        others.sort(key=_instant)
        found = [
            change
            for changes in (admins, others)
            for change in [each for each in changes if each.at_s >= since_s][-count:]
        ]
        return sorted(found, key=_instant)

    def close(self) -> None:
        """Writes what is owed."""
        if self._thread is None:
            return
        with self._woken:
            self._closing = True
            self._woken.notify()
        self._thread.join(CLOSE_S)
        if self._thread.is_alive():
            _log.error("%s does not answer: the last changes are not written", self._path)

    def _complain(self, path: Path, why: str) -> None:
        """Once, until the file is written again."""
        if path not in self._failing:
            _log.error("changes are not written to %s: %s", path, why)
        self._failing.add(path)

    # ------------------------------------------------------------ the writer's thread

    def _write(self, path: Path, loaded: threading.Event) -> None:
        self._load(path)
        loaded.set()
        closing = False
        while not closing:
            with self._woken:
                self._woken.wait_for(self._is_owed, SAVE_EVERY_S)
                closing = self._closing
                owed, self._owed = self._owed, deque()
                others = list(self._others) if self._owes_others else None
                self._owes_others = False
                in_force, self._in_force, self._keeps_now = self._in_force, None, False
            for change in owed:
                self._try(path, partial(change_files.append, path, change))
            if others is not None:
                beside = others_file(path)
                if not self._try(beside, partial(change_files.replace, beside, others)):
                    self._owes_others = True
            if in_force is not None:
                self._write_in_force(path, in_force)

    def _is_owed(self) -> bool:
        return bool(self._owed) or self._keeps_now or self._closing

    def _write_in_force(self, path: Path, text: str) -> None:
        """Writes it, now or with the next attempt."""
        file = path.with_name(change_files.IN_FORCE)
        if not self._try(file, partial(change_files.replace_in_force, path, text)):
            with self._woken:
                self._in_force = text if self._in_force is None else self._in_force

    def _try(self, path: Path, write: Callable[[], None]) -> bool:
        try:
            write()
        except OSError as error:
            with self._woken:
                self._complain(path, error.strerror or str(error))
            return False
        with self._woken:
            self._failing.discard(path)
        return True

    def _load(self, path: Path) -> None:
        """What is in the files comes before what was added meanwhile."""
        self.was_in_force = change_files.read_in_force(path)
        admins = deque(change_files.read(path), maxlen=MAX_HELD)
        others = OthersChanges()
        for change in change_files.read(others_file(path)):
            others.add(change)
        with self._woken:
            admins.extend(self._admins)
            for change in self._others:
                others.add(change)
            self._admins, self._others = admins, others


def _instant(change: pb.OperatorChange) -> int:
    return change.at_s


def _bounded(change: pb.OperatorChange, max_length: int) -> pb.OperatorChange:
    short = pb.OperatorChange()
    short.CopyFrom(change)
    for name in TEXTS:
        text = getattr(change, name)
        if len(text) > max_length:
            setattr(short, name, f"{text[: max_length - 3]}...")
    return short
