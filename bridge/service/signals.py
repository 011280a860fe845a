# SPDX-License-Identifier: Apache-2.0
"""Handles SIGTERM, SIGINT and SIGHUP, and tells systemd the state.

The first two signals end the service within seconds.

Rules
    1. A signal may be delivered to any thread, but Python's handlers run in the main thread, which
       it does not wake. So signals are written to a descriptor that a separate thread reads.
    2. During the start, SIGTERM and SIGINT interrupt the main thread.
    3. The process is killed `END_S` after SIGTERM or SIGINT if it has not ended, so that a cycle or
       a disk that hangs does not delay a restart. A second SIGINT kills it at once.
"""

import contextlib
import logging
import os
import queue
import signal
import socket
import sys
import threading
import time
from types import FrameType
from typing import NoReturn

_log = logging.getLogger(__name__)

END_S = 15.0
"""Less than TimeoutStopSec of the unit that is shipped."""


class StoppedEarly(BaseException):
    """SIGTERM or SIGINT came during the start."""


class Signals:
    """Listens for signals from its creation, which must be in the main thread.

    Attributes:
        starting: SIGTERM and SIGINT raise `StoppedEarly` in the main thread, once.
    """

    def __init__(self) -> None:
        self.starting = True
        self._came: queue.SimpleQueue[signal.Signals] = queue.SimpleQueue()
        self._heard, self._told = socket.socketpair()
        self._told.setblocking(False)
        signal.set_wakeup_fd(self._told.fileno())
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._handle)
        threading.Thread(target=self._listen, name="signals", daemon=True).start()

    def next(self) -> signal.Signals:
        return self._came.get()

    def _handle(self, number: int, frame: FrameType | None) -> None:
        del frame
        if self.starting and number != signal.SIGHUP:
            self.starting = False
            raise StoppedEarly(signal.Signals(number).name)

    def _listen(self) -> None:
        ending = False
        while True:
            for number in self._heard.recv(64):
                came = signal.Signals(number)
                if came is not signal.SIGHUP:
                    if ending and came is signal.SIGINT:
                        leave(1)
                    if not ending:
                        threading.Thread(target=_end_later, name="end", daemon=True).start()
                    ending = True
                self._came.put(came)


def _end_later() -> None:
    time.sleep(END_S)
    _log.error("the service has not ended within %.0f s: its process is killed", END_S)
    leave(1)


def leave(code: int) -> NoReturn:
    """Ends the process without waiting for its threads, as Python's exit would."""
    logging.shutdown()
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
    os._exit(code)


def notify(state: str) -> None:
    """Tells systemd about the service's state, if it asked (sd_notify)."""
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return
    if address.startswith("@"):
        address = "\0" + address[1:]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        try:
            channel.connect(address)
            channel.sendall(state.encode())
        except OSError as error:
            _log.warning("cannot tell systemd (%s): %s", state, error)
