# SPDX-License-Identifier: Apache-2.0
"""Sockets that listen: Unix sockets in the file system, and TCP."""

import contextlib
import socket
import stat
import time
from pathlib import Path

from bridge.errors import ConfigError

_BACKLOG = 1024
"""The kernel reduces it to net.core.somaxconn."""


class UnixListener:
    """A Unix socket in the file system at which this process listens.

    A socket file at which nobody answers is stale and replaced; one at which a service answers
    belongs to a live service and is left alone.
    """

    def __init__(self, path: Path, key: str, *, patience_s: float = 0.0) -> None:
        """Begins to listen.

        Args:
            key: names it in messages.
            patience_s: how long a service that still answers there may take to end.

        Raises:
            ConfigError: another service listens there, or listening failed.
        """
        self.path = path
        self.socket = self._bind(key, time.monotonic() + patience_s)
        self._inode = path.stat().st_ino

    def _bind(self, key: str, until: float) -> socket.socket:
        path = self.path
        if path.exists() or path.is_symlink():
            if not stat.S_ISSOCK(path.lstat().st_mode):
                raise ConfigError(key, f"{path} exists and is not a socket: remove it")
            while answers(path):
                if time.monotonic() >= until:
                    raise ConfigError(key, f"another service listens at {path}: stop it first")
                time.sleep(0.05)
            path.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            listener.bind(str(path))
            # Every user may connect; credentials and the directory decide who is admitted.
            path.chmod(0o666)
            listener.listen(_BACKLOG)
        except OSError as error:
            listener.close()
            raise ConfigError(key, f"cannot listen at {path}: {error.strerror}") from error
        return listener

    def close(self) -> None:
        """Stops; removes the file if it is still this one."""
        with contextlib.suppress(OSError):
            if self.path.stat().st_ino == self._inode:
                self.path.unlink()
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


def listen_tcp(address: str, key: str) -> socket.socket:
    """Listens at HOST:PORT.

    Raises:
        ConfigError: the address cannot be listened at.
    """
    host, _, port = address.rpartition(":")
    try:
        found = socket.getaddrinfo(
            host.strip("[]") or None, int(port), type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        family, kind, protocol, _, where = found[0]
        listener = socket.socket(family, kind, protocol)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(where)
            listener.listen(_BACKLOG)
        except OSError:
            listener.close()
            raise
    except OSError as error:
        reason = error.strerror or str(error)
        raise ConfigError(key, f"cannot listen at {address}: {reason}") from error
    return listener


def answers(path: Path) -> bool:
    """Tells whether a process listens at a Unix socket."""
    probe = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    probe.settimeout(2)
    try:
        probe.connect(str(path))
    except OSError:
        return False
    finally:
        probe.close()
    return True
