# SPDX-License-Identifier: Apache-2.0
"""What the signal file changes, in the log of operators' changes, however often it is written.

Rules
    1. A change is logged at once: who owns the file, from what to what.
    2. Those that follow within `PAUSE_S` are logged as one when that time is over, or the service
       ends: from what was in force before the first to what is after the last, and their number.
    3. They count as changes of others than administrators: they push out no administrator's.
    4. A file that is refused is logged as a refused change, at most once within `PAUSE_S`.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from bridge.rpc.operators.changes import DONE
from bridge.rpc.pb import operator_pb2 as pb
from bridge.rpc.transport.users import user_name
from bridge.units import format_instant

PAUSE_S: Final = 60.0
METHOD: Final = "SignalFile"


@dataclass(frozen=True)
class _Owed:
    before: str
    after: str
    uid: int
    count: int
    since_s: int


class SignalChanges:
    """Logs changes; thread-safe."""

    def __init__(
        self,
        log: Callable[[pb.OperatorChange], None],
        *,
        clock: Callable[[], float] = time.monotonic,
        now_s: Callable[[], float] = time.time,
    ) -> None:
        """Starts without changes.

        Args:
            log: takes an entry; returns at once.
        """
        self._log, self._clock, self._now_s = log, clock, now_s
        self._lock = threading.Lock()
        self._silent_until = self._refusals_from = 0.0
        self._owed: _Owed | None = None

    def changed(self, uid: int, before: str, after: str) -> None:
        """Logs a change, now or with the next ones.

        Args:
            uid: the owner of the file; -1: there is no file any more.
            before: the bounds that it had, as text.
            after: those that it has.
        """
        with self._lock:
            owed = self._owed or _Owed(before, after, uid, 0, int(self._now_s()))
            self._owed = _Owed(owed.before, after, uid, owed.count + 1, owed.since_s)
        self.settle()

    def refused(self, uid: int, problem: str) -> None:
        """Logs that the file was refused (rule 4).

        Args:
            uid: the owner of the file; -1: there is none.
        """
        with self._lock:
            now = self._clock()
            if now < self._refusals_from:
                return
            self._refusals_from = now + PAUSE_S
        self._log(
            pb.OperatorChange(
                at_s=int(self._now_s()), uid=uid, method=METHOD, result=f"refused: {problem}",
                user=user_name(uid) if uid >= 0 else "the signal file",
            )
        )  # fmt: skip

    def settle(self, *, ending: bool = False) -> None:
        """Logs what is owed if it is time (rule 2)."""
        with self._lock:
            owed, now = self._owed, self._clock()
            if owed is None or (now < self._silent_until and not ending):
                return
            self._owed, self._silent_until = None, now + PAUSE_S
        result = DONE
        if owed.count > 1:
            since = format_instant(owed.since_s, "%Y-%m-%d %H:%M:%S")
            result = f"{DONE}; the last of {owed.count} changes since {since}"
        self._log(
            pb.OperatorChange(
                at_s=int(self._now_s()), uid=owed.uid, method=METHOD, done=True, result=result,
                user=user_name(owed.uid) if owed.uid >= 0 else "the file was removed",
                before=owed.before, after=owed.after,
            )
        )  # fmt: skip
