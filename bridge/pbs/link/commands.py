# SPDX-License-Identifier: Apache-2.0
"""Receives the server's commands, and answers each at once.

Until a command is answered the server sends no other, and merges all events into one. So a command
only says that something has changed; the loop determines what.
"""

import logging
import select
import threading
from collections import Counter, deque

from bridge.pbs.ifl.port import Command, Ifl

_log = logging.getLogger(__name__)
_LOOK_S = 1.0


class Commands:
    """The commands of one registration, read by a thread of its own.

    Attributes:
        counts: number of each received.
        wanted: jobs that operators run now (qrun) and wait for.
        lost: the server has closed the connection.
        definitions: queues, resources or schedulers may have changed.
        restarted: the server has been restarted, or has lost its memory of this scheduler.
    """

    def __init__(self, ifl: Ifl, secondary: int, wake: threading.Event) -> None:
        """Begins to listen.

        Args:
            secondary: the connection that commands arrive on.
            wake: set with every command.
        """
        self.counts: Counter[int] = Counter()
        self.wanted: deque[str] = deque()
        self.lost = threading.Event()
        self.definitions = threading.Event()
        self.restarted = threading.Event()
        self._ifl, self._secondary, self._wake = ifl, secondary, wake
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._listen, name="commands", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Stops listening; the owner closes the connection."""
        self._ending.set()
        self._thread.join(2 * _LOOK_S)

    def _listen(self) -> None:
        try:
            while not self._ending.is_set():
                try:
                    ready, _, _ = select.select([self._secondary], [], [], _LOOK_S)
                except (OSError, ValueError):  # it was closed
                    break
                if ready and not self._take():
                    break
            if not self._ending.is_set():
                _log.warning("the server has closed the connection of its scheduler")
        finally:  # whatever went wrong, nobody reads the server's commands any more
            self.lost.set()
            self._wake.set()

    def _take(self) -> bool:
        received = self._ifl.read_command(self._secondary)
        if received is None:
            return False
        self.counts[received.command] += 1
        if received.command == Command.AJOB:
            self.wanted.append(received.job_id)
        if received.command in {Command.CONFIGURE, Command.RULESET, Command.CMD, Command.STARTQ}:
            self.definitions.set()
        if received.command in {Command.FIRST, Command.CONFIGURE}:
            self.restarted.set()
        good = self._ifl.end_cycle(self._secondary)
        self._wake.set()
        return good and received.command != Command.QUIT
