# SPDX-License-Identifier: Apache-2.0
"""The door before the gRPC server: a Unix socket that lets in only whom it knows.

gRPC cannot tell who is at the other end of a Unix socket. So the gate listens at the public
socket, asks the kernel who connects (SO_PEERCRED), closes the connection of those who may not
enter, and passes the bytes of the others on to the server's private socket.

Rules
    1. A directory for the controller must be closed to group and others; an existing one that is
       not is refused, never changed.
    2. A socket file at which nobody answers is left over and replaced; one at which somebody
       answers belongs to a live service and is left alone.
    3. Every user has at most `per_user` connections: nobody can lock the others out.
"""

import contextlib
import logging
import os
import pwd
import socket
import stat
import struct
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from bridge.errors import ConfigError

_log = logging.getLogger(__name__)

_CREDENTIALS = struct.Struct("3i")  # pid, uid, gid
_CHUNK = 1 << 18
_BACKLOG = 64

Route = Callable[[int], str | None]
"""User id to the private socket that serves it; None: may not enter."""


def user_ids(users: Iterable[str | int], key: str) -> frozenset[int]:
    """Returns the ids of users given by name or number.

    Raises:
        ConfigError: there is no such user.
    """
    found = set()
    for user in users:
        text = str(user)
        if text.isdigit():
            found.add(int(text))
            continue
        try:
            found.add(pwd.getpwnam(text).pw_uid)
        except KeyError as error:
            raise ConfigError(key, f"there is no user '{text}' on this machine") from error
    return frozenset(found)


def default_controllers() -> frozenset[int]:
    """Root, the user of this process, and slurm where there is one."""
    found = {0, os.geteuid()}
    with contextlib.suppress(KeyError):
        found.add(pwd.getpwnam("slurm").pw_uid)
    return frozenset(found)


def prepare_directory(path: Path, key: str, *, owners: Sequence[int], private: bool) -> None:
    """Makes a socket's directory, or verifies the one there is.

    Args:
        path: the directory.
        key: names it in messages.
        owners: user ids that may own it; a new one is given to the first, if possible.
        private: closed to group and others.

    Raises:
        ConfigError: it cannot be made, or is open to others, or belongs to somebody else.
    """
    mode = 0o700 if private else 0o755
    try:
        made = not path.exists()
        path.mkdir(mode=mode, parents=True, exist_ok=True)
        if made:
            path.chmod(mode)  # whatever the umask says
            if os.geteuid() == 0 and owners[0] != 0:
                os.chown(path, owners[0], -1)
        found = path.stat()
    except OSError as error:
        raise ConfigError(key, f"cannot make directory {path}: {error.strerror}") from error
    if not stat.S_ISDIR(found.st_mode):
        raise ConfigError(key, f"{path} is no directory")
    if private and found.st_mode & 0o077:
        shown = stat.S_IMODE(found.st_mode)
        raise ConfigError(
            key, f"others can enter directory {path} (mode {shown:04o}): run 'chmod 700 {path}'"
        )
    if found.st_uid not in {*owners, 0, os.geteuid()}:
        raise ConfigError(key, f"directory {path} belongs to user {found.st_uid}: use another one")
    if not os.access(path, os.W_OK | os.X_OK):
        raise ConfigError(key, f"directory {path} is not writable for this user")


class Gate:
    """Listens at a Unix socket and lets in whom `route` knows.

    `refused` is told of every connection turned away: the gate's key, and "user" or
    "connections".
    """

    def __init__(
        self,
        path: Path,
        key: str,
        route: Route,
        *,
        per_user: int = 16,
        refused: Callable[[str, str], None] = lambda _key, _reason: None,
    ) -> None:
        self._refused = refused
        self._path = path
        self._key = key
        self._route = route
        self._per_user = per_user
        self._lock = threading.Lock()
        self._open: dict[socket.socket, int] = {}
        self._closing = False
        self._listener = self._bind()
        self._inode = path.stat().st_ino
        self._thread = threading.Thread(target=self._listen, name=f"gate {key}", daemon=True)

    def _bind(self) -> socket.socket:
        if self._path.exists() or self._path.is_symlink():
            if not stat.S_ISSOCK(self._path.lstat().st_mode):
                raise ConfigError(self._key, f"{self._path} is there and no socket: remove it")
            if answers(self._path):
                raise ConfigError(
                    self._key, f"another service listens at {self._path}: stop it first"
                )
            self._path.unlink()
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            listener.bind(str(self._path))
            # Everybody may knock; who enters, credentials and the directory decide.
            self._path.chmod(0o666)
            listener.listen(_BACKLOG)
        except OSError as error:
            listener.close()
            raise ConfigError(
                self._key, f"cannot listen at {self._path}: {error.strerror}"
            ) from error
        return listener

    def start(self) -> None:
        """Begins to let people in."""
        self._thread.start()

    def close(self) -> None:
        """Closes the door and all connections; removes the socket if it is still this one."""
        self._closing = True
        with contextlib.suppress(OSError):
            if self._path.stat().st_ino == self._inode:
                self._path.unlink()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            sockets = list(self._open)
        for one in sockets:
            _end(one)
        if self._thread.is_alive():
            self._thread.join(timeout=5)

    def _listen(self) -> None:
        while not self._closing:
            try:
                client, _ = self._listener.accept()
            except OSError as error:
                if self._closing:
                    return
                _log.warning("gate %s: cannot accept: %s", self._path, error)  # e.g. no files left
                threading.Event().wait(0.1)
                continue
            try:
                self._admit(client)
            except OSError as error:
                client.close()
                _log.warning("gate %s: %s", self._path, error)

    def _admit(self, client: socket.socket) -> None:
        raw = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        pid, uid, _ = _CREDENTIALS.unpack(raw)
        target = self._route(uid)
        with self._lock:
            crowded = sum(owner == uid for owner in self._open.values()) >= self._per_user
        if target is None or crowded:
            reason = "user" if target is None else "connections"
            self._refused(self._key, reason)
            _log.warning("%s: refused process %d of user %d (%s)", self._path, pid, uid, reason)
            client.close()
            return
        server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            server.connect(target)
        except OSError:
            server.close()
            raise
        with self._lock:
            self._open[client] = uid
        for source, sink in ((client, server), (server, client)):
            threading.Thread(
                target=self._relay, args=(source, sink, client, server), daemon=True
            ).start()

    def _relay(
        self,
        source: socket.socket,
        sink: socket.socket,
        client: socket.socket,
        server: socket.socket,
    ) -> None:
        buffer = memoryview(bytearray(_CHUNK))
        with contextlib.suppress(OSError):
            while size := source.recv_into(buffer):
                sink.sendall(buffer[:size])
        for one in (client, server):
            _end(one)
        with self._lock:
            both_done = self._open.pop(client, None) is None
        if both_done:  # nobody uses the sockets any more
            client.close()
            server.close()


def _end(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)


def answers(path: Path) -> bool:
    """Tells whether somebody listens at a Unix socket."""
    probe = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    probe.settimeout(2)
    try:
        probe.connect(str(path))
    except OSError:
        return False
    finally:
        probe.close()
    return True
