# SPDX-License-Identifier: Apache-2.0
"""What the agent does about its own process: priority, capabilities, and who may read its key."""

import ctypes
import logging
import os
import stat
from pathlib import Path
from typing import Final

from bridge.errors import ConfigError

_log = logging.getLogger(__name__)

NICE: Final = -10
"""At the priority of jobs it starves beside them."""

CAP_DAC_READ_SEARCH, CAP_SYS_PTRACE = 2, 19
KEPT: Final = frozenset({CAP_DAC_READ_SEARCH, CAP_SYS_PTRACE})
"""Pages and counters that only their owners may read; environments of processes."""
_PR_CAPBSET_READ, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 23, 24, 38
_VERSION_3 = 0x20080522


def raise_priority() -> None:
    """Raises the priority of this thread and of those that it starts, if that is allowed."""
    try:
        if os.getpriority(os.PRIO_PROCESS, 0) > NICE:
            os.setpriority(os.PRIO_PROCESS, 0, NICE)
    except OSError as error:
        _log.info("priority stays as it is (%s): this needs CAP_SYS_NICE", error.strerror)


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Data(ctypes.Structure):
    _fields_ = (
        ("effective", ctypes.c_uint32),
        ("permitted", ctypes.c_uint32),
        ("inheritable", ctypes.c_uint32),
    )


def drop_capabilities() -> None:
    """Gives up all capabilities but `KEPT`, for this thread and all that it starts, for ever.

    Also for commands that it starts as root. To be called before other threads exist.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        _log.warning("no_new_privs cannot be set: %s", os.strerror(ctypes.get_errno()))
    left = False
    for capability in range(64):
        if capability not in KEPT and libc.prctl(_PR_CAPBSET_READ, capability, 0, 0, 0) == 1:
            left |= bool(libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0))
    header, held = _Header(_VERSION_3, 0), (_Data * 2)()
    failed = libc.capget(ctypes.byref(header), held)
    for word, each in enumerate(held):
        kept = sum(1 << bit % 32 for bit in KEPT if bit // 32 == word)
        each.permitted &= kept
        each.effective = each.permitted
        each.inheritable = 0
    if failed or libc.capset(ctypes.byref(header), held):
        _log.warning("capabilities stay as they are: %s", os.strerror(ctypes.get_errno()))
    elif left and os.geteuid() == 0:
        _log.warning("commands may regain capabilities: dropping them needs CAP_SETPCAP")


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
