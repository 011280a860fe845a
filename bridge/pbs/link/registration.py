# SPDX-License-Identifier: Apache-2.0
"""The two connections of a link, and its registration as a scheduler: the lock.

Without the registration the first connection is an ordinary one: the tables can be read, nothing is
started.
"""

import logging
import threading

from bridge.pbs.ifl.port import Code, Ifl, IflError
from bridge.pbs.link.commands import Commands

_log = logging.getLogger(__name__)


class Registration:
    """Connections to one server.

    Attributes:
        commands: commands of the registration; None: not registered.
    """

    def __init__(self, ifl: Ifl, server: str, scheduler: str, wake: threading.Event) -> None:
        self.commands: Commands | None = None
        self._ifl, self._server, self._scheduler, self._wake = ifl, server, scheduler, wake
        self._primary: int | None = None
        self._secondary: int | None = None

    @property
    def primary(self) -> int | None:
        """The connection for requests; None: there is none."""
        return self._primary

    def connect(self) -> int:
        """Opens the first connection.

        Raises:
            IflError: there is no server.
        """
        if self._primary is None:
            self._primary = self._ifl.connect(self._server)
        return self._primary

    def register(self) -> int:
        """Takes the lock; returns the server's code, 0 for success.

        Raises:
            IflError: there is no server.
        """
        self.drop()
        primary = self.connect()
        self._secondary = self._ifl.connect(self._server)
        code = self._ifl.register(self._scheduler, primary, self._secondary)
        if code:
            self.drop()
            _log.error("%s", _refused(code, self._scheduler))
            return code
        self.commands = Commands(self._ifl, self._secondary, self._wake)
        _log.info("registered as scheduler '%s'", self._scheduler)
        return Code.NONE

    def drop(self) -> None:
        """Closes both connections, and so gives the lock back."""
        commands, self.commands = self.commands, None
        secondary, self._secondary = self._secondary, None
        primary, self._primary = self._primary, None
        if commands is not None:
            commands.end()
        for connection in (secondary, primary):
            if connection is not None:
                self._ifl.disconnect(connection)

    @property
    def is_lost(self) -> bool:
        """Whether the server has closed a registered connection."""
        return self.commands is not None and self.commands.lost.is_set()


def _refused(code: int, scheduler: str) -> str:
    match code:
        case Code.SCHEDULER_CONNECTED:
            return f"another scheduler is registered as '{scheduler}': stop pbs_sched (15230)"
        case Code.NO_PERMISSION:
            return "the server refuses this user as its scheduler (15007): see docs/PBS.md"
        case Code.BAD_HOST:
            return "the server refuses this host as its scheduler (15008): set sched_host"
    return f"the server refuses the registration as '{scheduler}' ({code})"


def lost(error: IflError) -> bool:
    """Tells whether a failed query means that the connection is no longer usable."""
    return error.code in {Code.LOST, Code.PROTOCOL, Code.NO_SERVER, Code.SYSTEM}
