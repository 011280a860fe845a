# SPDX-License-Identifier: Apache-2.0
"""Follows the file in which another program states bounds of system power (`power.signal_file`).

Rules
    1. The file is examined once a second and read when it has changed. Its entries replace all that
       it had before; a missing file has none.
    2. It must be a regular file that belongs to root, the service's user or an administrator, and
       that nobody else may write.
    3. A file that cannot be read or is invalid changes nothing: the last good entries stay in
       force, and the problem is reported in the log, in `power show` and by a metric.
    4. What it changes is in the log of operators' changes (`signal_changes.py`).
"""

import contextlib
import errno
import logging
import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

from bridge.errors import ConfigError
from bridge.extensions.power.corridor.corridor_switch import CorridorSwitch
from bridge.extensions.power.corridor.entry_log import Author
from bridge.extensions.power.corridor.sentences import bounds_text, span_text
from bridge.extensions.power.corridor.signal_changes import SignalChanges
from bridge.extensions.power.corridor.signal_text import read_signal
from bridge.rpc.transport.users import user_name

_log = logging.getLogger(__name__)

LOOK_S = 1.0
MAX_BYTES = 64 << 10
GROUP: Final = "signal"

_Seen = tuple[int, ...] | None


class SignalFile:
    """The entries of one file, kept up to date.

    Attributes:
        problem: why the last good entries are in force, not those of the file; empty: they are.
    """

    def __init__(
        self,
        path: Path,
        corridor: CorridorSwitch,
        *,
        owners: frozenset[int],
        timezone: Callable[[], str],
        changes: SignalChanges,
    ) -> None:
        """Prepares it.

        Args:
            owners: user ids that the file may belong to.
            timezone: the timezone of instants that name none.
            changes: logs what it changes.
        """
        self.problem = ""
        self._path = path
        self._corridor = corridor
        self._owners = owners
        self._timezone = timezone
        self._changes = changes
        self._seen: _Seen = ()
        self._looking = threading.Lock()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="signal file", daemon=True)

    def start(self) -> None:
        """Reads the file, and follows it."""
        self.look()
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(5)
        self._changes.settle(ending=True)

    def look(self) -> None:
        """Reads the file if it has changed since it was last read without a problem."""
        with self._looking:
            self._look()

    def _look(self) -> None:
        try:
            text, seen, owner = self._read()
            if text is None and seen == self._seen:
                return
            zone = ZoneInfo(self._timezone())
            wishes = () if text is None else read_signal(text, zone, str(self._path))
            origin = "removed" if owner is None else f"owner {user_name(owner)}"
            author = Author(f"signal file {self._path}", origin)
            if wishes or self._corridor.bounded:
                before = self._bounds()
                self._corridor.enter(wishes, author, group=GROUP)
                if (after := self._bounds()) != before:
                    self._changes.changed(-1 if owner is None else owner, before, after)
            self._seen = seen
        except ConfigError as error:
            self._tell(str(error))
        except OSError as error:
            self._tell(f"{self._path}: {error.strerror or error}")
        except UnicodeDecodeError:
            self._tell(f"{self._path}: is not a text file (UTF-8)")
        else:
            self._tell("")

    def _bounds(self) -> str:
        """The bounds of the file that are in force or will be, as text."""
        corridor = self._corridor
        return "; ".join(
            f"{bounds_text(entry.lower_w, entry.upper_w)}, {span_text(entry.start_s, entry.end_s)}"
            + (f" ({entry.reason})" if entry.reason else "")
            for entry in corridor.entry_log().of_group(GROUP, corridor.now_s)
        )

    def _follow(self) -> None:
        while not self._stopping.wait(LOOK_S):
            try:
                self.look()
                self._changes.settle()
            except Exception:  # a bug here must not end it for good
                _log.exception("the signal file cannot be followed")

    def _tell(self, problem: str) -> None:
        if problem == self.problem:
            return
        self.problem = problem
        self._corridor.report("signal", f"signal file: {problem}" if problem else "")
        if problem:
            _log.error("power signal: %s; the last good entries stay in force", problem)
            self._changes.refused(self._owner(), problem)
        else:
            _log.info("power signal: %s is read again", self._path)

    def _owner(self) -> int:
        try:
            return self._path.stat().st_uid
        except OSError:
            return -1

    def _read(self) -> tuple[str | None, _Seen, int | None]:
        """The text (None: no file, or it has not changed), what identifies it, and whose it is."""
        try:
            handle = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            return None, None, None
        with contextlib.ExitStack() as ending:
            ending.callback(os.close, handle)
            found = os.fstat(handle)
            seen = (found.st_dev, found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size)
            if seen == self._seen:
                return None, seen, None
            self._check(found)
            content = b""
            while len(content) <= MAX_BYTES and (piece := os.read(handle, MAX_BYTES + 1)):
                content += piece
        if len(content) > MAX_BYTES:
            raise OSError(errno.EFBIG, f"Is longer than {MAX_BYTES} bytes", str(self._path))
        text = content.decode()
        if not text.strip():  # another program may be writing it
            raise ConfigError("", "is empty: write [] for no entry", file=str(self._path))
        return text, seen, found.st_uid

    def _check(self, found: os.stat_result) -> None:
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "Is not a regular file", str(self._path))
        if found.st_uid not in self._owners:
            raise ConfigError(
                "",
                f"belongs to {user_name(found.st_uid)}, who is not an administrator"
                " (operator.admins): change its owner",
                file=str(self._path),
            )
        if found.st_mode & 0o022:
            mode = stat.S_IMODE(found.st_mode)
            raise ConfigError(
                "",
                f"may be written by others (mode {mode:04o}): run 'chmod go-w {self._path}'",
                file=str(self._path),
            )
