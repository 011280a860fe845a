# SPDX-License-Identifier: Apache-2.0
"""Which users of this machine may call, by the numbers that the kernel tells."""

import contextlib
import os
import pwd
from collections.abc import Iterable

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


def default_controllers() -> frozenset[int]:
    """Root, the user of this process, and slurm where there is one."""
    found = {0, os.geteuid()}
    with contextlib.suppress(KeyError):
        found.add(pwd.getpwnam("slurm").pw_uid)
    return frozenset(found)
