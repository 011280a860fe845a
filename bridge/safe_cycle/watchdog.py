# SPDX-License-Identifier: Apache-2.0
"""Interrupts a stage that does not return, by raising an exception in its thread.

    dog = Watchdog(60.0)
    with dog:  # raises Overtime here after a minute
        plan = policy.plan.plan(...)

Python code is interrupted between two instructions. A call into C is not interrupted.
"""

import ctypes
import threading
from time import monotonic, sleep  # the real ones, whatever clock the service is given
from types import TracebackType
from typing import Self

from bridge.errors import Overtime


class Watchdog:
    """Guards one thread at a time; used as a context manager.

    A separate thread sleeps until the limit of the code guarded last; successive short cycles
    share it.

    Attributes:
        limit_s: time after which the guarded code is interrupted, s.
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
        # Only now: an exception raised while `Thread.start` runs would corrupt its state.
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
            # An exception that was set but not yet raised is raised here, and nowhere else.
            # (Withdrawing it would leave the interpreter checking for it for ever.)
            for _ in range(100):
                pass
        except Overtime:
            self._watched = None

    def interrupt(self, thread: int) -> None:
        """Interrupts a thread if it is still guarded."""
        with self._lock:
            self._interrupt_if_watched(thread)

    def _interrupt_if_watched(self, thread: int | None) -> None:
        if thread is not None and self._watched == thread:
            self._watched = None
            _raise_in(thread, Overtime)

    def _look(self) -> None:
        """Interrupts the guarded thread at its limit, and ends."""
        while True:
            with self._lock:
                left_s = self._due_s - monotonic()
                if left_s <= 0:
                    self._interrupt_if_watched(self._watched)
                    self._looking = False
                    return
            sleep(left_s)


def _raise_in(thread: int, error: type[BaseException]) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(error))
