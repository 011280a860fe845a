# SPDX-License-Identifier: Apache-2.0
"""Interrupts a stage that never returns: an exception is raised in its thread.

    dog = Watchdog(60.0)
    with dog:  # raises Overtime here after a minute
        plan = policy.plan.plan(...)

Python code is interrupted between two instructions; a call into C that does not return is not.
"""

import ctypes
import threading
from types import TracebackType
from typing import Self


class Overtime(Exception):
    """The code under a watchdog took longer than it may."""


class Watchdog:
    """Guards one thread at a time; used as a context manager.

    Attributes:
        limit_s: after this long the guarded code is interrupted.
    """

    def __init__(self, limit_s: float) -> None:
        self.limit_s = limit_s
        self._lock = threading.Lock()
        self._watched: int | None = None

    def __enter__(self) -> Self:
        thread = threading.get_ident()
        self._watched = thread
        self._timer = threading.Timer(self.limit_s, self.interrupt, (thread,))
        self._timer.daemon = True
        self._timer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._timer.cancel()
            with self._lock:
                self._watched = None
            # One that was sent and has not struck yet strikes here, and nobody else. (To take it
            # back would leave the interpreter looking for it for ever.)
            for _ in range(100):
                pass
        except Overtime:
            self._watched = None

    def interrupt(self, thread: int) -> None:
        """Interrupts a thread, if it is guarded still."""
        with self._lock:
            if self._watched == thread:
                self._watched = None
                _raise_in(thread, Overtime)


def _raise_in(thread: int, error: type[BaseException]) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(error))
