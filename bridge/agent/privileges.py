# SPDX-License-Identifier: Apache-2.0
"""The agent's own process: priority, capabilities, and permissions of its key."""

import ctypes
import logging
import os
import stat
from pathlib import Path
from typing import Final

from bridge.errors import ConfigError

_log = logging.getLogger(__name__)

NICE: Final = -10
"""With the priority of jobs, the agent would starve."""

CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_SYS_PTRACE, CAP_SYS_NICE = 1, 2, 19, 23
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


def needed(permitted: int) -> int:
    """The capabilities that the agent keeps, as bits.

    It reads environments of processes (`CAP_SYS_PTRACE`), and these, pages and counters whose
    permissions are for their owners only (`CAP_DAC_READ_SEARCH`). Containers often have
    `CAP_DAC_OVERRIDE` instead.
    Where there are no cgroups it changes priorities of jobs that share a node (`CAP_SYS_NICE`).
    """
    wanted = 1 << CAP_SYS_PTRACE | 1 << CAP_DAC_READ_SEARCH | 1 << CAP_SYS_NICE
    if not permitted & 1 << CAP_DAC_READ_SEARCH:
        wanted |= 1 << CAP_DAC_OVERRIDE
    return permitted & wanted


def drop_capabilities() -> None:
    """Gives up the capabilities that are not `needed`, for this thread and all that it starts.

    Also for commands that it starts as root. To be called before other threads exist.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    header, held = _Header(_VERSION_3, 0), (_Data * 2)()
    if libc.capget(ctypes.byref(header), held):
        _log.warning("capabilities stay as they are: %s", os.strerror(ctypes.get_errno()))
        return
    kept = needed(held[0].permitted)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        _log.warning("no_new_privs cannot be set: %s", os.strerror(ctypes.get_errno()))
    left = False
    for capability in range(64):
        there = libc.prctl(_PR_CAPBSET_READ, capability, 0, 0, 0) == 1
        if there and not kept & 1 << capability:
            left |= bool(libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0))
    for word, each in enumerate(held):
        each.permitted = each.effective = kept >> 32 * word & 0xFFFFFFFF
        each.inheritable = 0
    if libc.capset(ctypes.byref(header), held):
        _log.warning("capabilities stay as they are: %s", os.strerror(ctypes.get_errno()))
    elif left and os.geteuid() == 0:
        _log.warning("commands may regain capabilities: dropping them needs CAP_SETPCAP")


def check_secret(path: Path, option: str) -> None:
    """Ensures that a private key is private.

    Raises:
        ConfigError: other users can read or change the file.
    """
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise ConfigError(option, f"cannot read {path}: {error.strerror or error}") from error
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise ConfigError(option, f"{path} is open to other users: chmod 600 {path}")
