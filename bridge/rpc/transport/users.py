# SPDX-License-Identifier: Apache-2.0
"""The users of this machine who may call, by user id."""

import contextlib
import os
import pwd
from collections.abc import Iterable

from bridge.dialect import DIALECTS, dialect_named
from bridge.errors import ConfigError


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


def user_name(uid: int) -> str:
    """The name of a user; the number where there is none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def default_controllers() -> frozenset[int]:
    """Returns root, the user of this process, and those that controllers run as on this machine."""
    found = {0, os.geteuid()}
    for name in DIALECTS:
        with contextlib.suppress(KeyError):
            found.add(pwd.getpwnam(dialect_named(name).words.daemon_user).pw_uid)
    return frozenset(found)
