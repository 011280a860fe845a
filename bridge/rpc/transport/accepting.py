# SPDX-License-Identifier: Apache-2.0
"""Accepts connections at a listening socket, even when descriptors run out."""

import contextlib
import errno
import os
import socket
from collections.abc import Callable, Iterator

_AT_ONCE = 32
"""Connections accepted at a time, before existing ones are served."""


class Accepting:
    """A listening socket with a spare descriptor for refusals."""

    def __init__(self, listener: socket.socket, refused: Callable[[], None]) -> None:
        """Makes the socket non-blocking.

        Args:
            listener: a socket that listens; closed by the caller.
            refused: called for each connection that is closed for lack of descriptors.
        """
        listener.setblocking(False)
        self.socket = listener
        self._refused = refused
        self._spare: int | None = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)

    def waiting(self, room: Callable[[], bool]) -> Iterator[socket.socket]:
        """Accepts connections that are waiting, a limited number of them, while there is room."""
        for _ in range(_AT_ONCE):
            if not room():
                return
            try:
                client, _address = self.socket.accept()
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                if error.errno not in (errno.EMFILE, errno.ENFILE):
                    return  # e.g. the caller has gone again
                if not self._refuse():
                    return
                continue
            yield client

    def close(self) -> None:
        """Releases the spare descriptor."""
        if self._spare is not None:
            os.close(self._spare)
            self._spare = None

    def _refuse(self) -> bool:
        """Accepts a waiting connection with the spare descriptor, and closes it."""
        self.close()
        try:
            client, _ = self.socket.accept()
        except OSError:
            return False
        else:
            self._refused()
            client.close()
        finally:
            with contextlib.suppress(OSError):
                self._spare = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
        return True
