# SPDX-License-Identifier: Apache-2.0
"""Makes the directories of the sockets if they are missing, and verifies existing ones.

A user who can write to a directory could replace the socket in it, or a subdirectory, and
impersonate the service.

Rules
    1. Every directory of the path belongs to root, this user or a given owner, and no other user
       can write to it. A directory that all can write to, like /tmp, must be sticky, and the next
       component must belong to one of these users.
    2. A symbolic link is followed if it belongs to one of these users; its target is verified in
       the same way.
    3. The controller's directory is closed to group and others.
"""

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from bridge.errors import ConfigError

_MAX_LINKS = 40


def prepare_directory(path: Path, key: str, *, owners: Sequence[int], private: bool) -> None:
    """Makes a socket's directory, or verifies the one there is.

    Args:
        key: names it in messages.
        owners: user ids that may own it; a new one is given to the first, if possible.
        private: closed to group and others.

    Raises:
        ConfigError: it cannot be made, or others could enter or replace it.
    """
    trusted = frozenset({*owners, 0, os.geteuid()})
    try:
        found = _walk(path.absolute(), key, trusted, 0o700 if private else 0o755, owners[0])
    except OSError as error:
        raise ConfigError(key, f"cannot make directory {path}: {error.strerror}") from error
    if private and found.st_mode & 0o077:
        shown = stat.S_IMODE(found.st_mode)
        raise ConfigError(
            key, f"others can enter directory {path} (mode {shown:04o}): run 'chmod 700 {path}'"
        )
    if not os.access(path, os.W_OK | os.X_OK):
        raise ConfigError(key, f"directory {path} is not writable by this user")


def _walk(path: Path, key: str, trusted: frozenset[int], mode: int, owner: int) -> os.stat_result:
    """Goes from the root to a directory, making what is missing; returns what is at its end."""
    here, left, links = Path("/"), list(path.parts[1:]), 0
    found = os.lstat(here)
    while left:
        name = left.pop(0)
        if name == "..":  # of a followed link: the way to it has been verified
            here = here.parent
            found = os.lstat(here)
            continue
        here /= name
        try:
            found = os.lstat(here)
        except FileNotFoundError:
            found = _make(here, *((0o755, -1) if left else (mode, owner)))
        if stat.S_ISLNK(found.st_mode):
            _check_owner(here, "link", key, found.st_uid, trusted)
            links += 1
            if links > _MAX_LINKS:
                raise ConfigError(key, f"too many links on the way to {path}")
            target = here.readlink()
            left[:0] = [part for part in target.parts if part != "/"]
            here = Path("/") if target.is_absolute() else here.parent
            found = os.lstat(here)
            continue
        if not stat.S_ISDIR(found.st_mode):
            raise ConfigError(key, f"cannot make directory {path}: {here} is not a directory")
        _check_owner(here, "directory", key, found.st_uid, trusted)
        if left or mode & 0o077:  # the caller verifies the whole mode of a private directory
            _check_writable(here, key, found, last=not left)
    return found


def _make(path: Path, mode: int, owner: int) -> os.stat_result:
    path.mkdir(mode=0o700)
    if os.geteuid() == 0 and owner > 0:
        os.chown(path, owner, -1)
    path.chmod(mode)  # whatever the umask says
    return os.lstat(path)


def _check_owner(path: Path, kind: str, key: str, owner: int, trusted: frozenset[int]) -> None:
    if owner not in trusted:
        raise ConfigError(key, f"{kind} {path} belongs to user {owner}: use another one")


def _check_writable(path: Path, key: str, found: os.stat_result, *, last: bool) -> None:
    writable = found.st_mode & 0o002 or (found.st_mode & 0o020 and found.st_gid != 0)
    if writable and not found.st_mode & stat.S_ISVTX:
        shown = stat.S_IMODE(found.st_mode)
        what = "put another socket into" if last else "replace what lies in"
        raise ConfigError(
            key, f"others can {what} directory {path} (mode {shown:04o}): run 'chmod go-w {path}'"
        )
