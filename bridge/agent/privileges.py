# SPDX-License-Identifier: Apache-2.0
"""What the agent does about its own process: its priority, and who may read its key."""

import logging
import os
import stat
from pathlib import Path
from typing import Final

from bridge.errors import ConfigError

_log = logging.getLogger(__name__)

NICE: Final = -10
"""At the priority of jobs it starves beside them."""


def raise_priority() -> None:
    """Raises the priority of this thread and of those that it starts, if that is allowed."""
    try:
        if os.getpriority(os.PRIO_PROCESS, 0) > NICE:
            os.setpriority(os.PRIO_PROCESS, 0, NICE)
    except OSError as error:
        _log.info("priority stays as it is (%s): this needs CAP_SYS_NICE", error.strerror)


def check_secret(path: Path, option: str) -> None:
    """Makes sure that a private key is one.

    Raises:
        ConfigError: other users can read or change the file.
    """
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise ConfigError(option, f"cannot read {path}: {error.strerror or error}") from error
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise ConfigError(option, f"{path} is open to other users: chmod 600 {path}")
