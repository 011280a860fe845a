# SPDX-License-Identifier: Apache-2.0
"""Interrupts a stage that never returns: an exception is raised in its thread.

    dog = Watchdog(60.0)
    with dog:  # raises Overtime here after a minute
        plan = policy.plan.plan(...)

Python code is interrupted between two instructions; a call into C that does not return is not.
"""

import ctypes
import threading
from time import monotonic, sleep  # the real ones, whatever clock the service is given
from types import TracebackType
from typing import Self


class Overtime(Exception):
    """The code under a watchdog took longer than it may."""


class Watchdog:
    """Guards one thread at a time; used as a context manager.

    A thread of its own sleeps until the code that is guarded by then is due: short cycles one
    after the other share it.

    Attributes:
        limit_s: after this long the guarded code is interrupted.
    """

    def __init__(self, limit_s: float) -> None:
        self.limit_s = limit_s
        self._lock = threading.Lock()
        self._watched: int | None = None
        self._due_s = 0.0
        self._looking = False

    def __enter__(self) -> Self:
        with self._lock:
            self._due_s = monotonic() + self.limit_s
            looking, self._looking = self._looking, True
        if not looking:
            try:
                threading.Thread(target=self._look, name="watchdog", daemon=True).start()
            except RuntimeError:  # no more threads: the next guard tries again
                self._looking = False
                raise
        # Only now: a thread that is struck while it starts another one breaks its tables.
        with self._lock:
            if not self._looking:  # it was due before it began
                raise Overtime
            self._watched = threading.get_ident()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
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
            self._strike(thread)

    def _strike(self, thread: int | None) -> None:
        if thread is not None and self._watched == thread:
            self._watched = None
            _raise_in(thread, Overtime)

    def _look(self) -> None:
        """Strikes when it is time, and ends then."""
        while True:
            with self._lock:
                left_s = self._due_s - monotonic()
                if left_s <= 0:
                    self._strike(self._watched)
                    self._looking = False
                    return
            sleep(left_s)


def _raise_in(thread: int, error: type[BaseException]) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(error))
