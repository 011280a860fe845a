# SPDX-License-Identifier: Apache-2.0
"""Protects hosts when the agent dies: a small process that waits for that.

Rules
    1. The agent writes a byte after each pass. When its end of the pipe is closed, or it is silent
       for `SILENCE_S`, the guardian puts the fallback shares of the record in force (`wanted.py`).
    2. It continues, to clean up after the jobs, until nothing is left or another process (the next
       agent) keeps the shares.
    3. A silent agent still holds the record's lock. The guardian then works beside it, once each
       second. If the agent resumes, its lease has ended, too, so both write the same.
"""

import contextlib
import logging
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from bridge.agent.job_folders import JobFolders
from bridge.agent.processes import Processes
from bridge.extensions.sharing.on_nodes.keeper import ShareKeeper
from bridge.extensions.sharing.on_nodes.record import ShareRecord

_log = logging.getLogger("schedbridge.guardian")

SILENCE_S: Final = 3.0
LOOK_S: Final = 1.0
IDLE_LOOKS: Final = 3
"""It ends after this many passes without work, or in which another process kept the shares. One
pass is not enough: a dying agent may close the pipe before it releases the lock."""


def main(arguments: Sequence[str]) -> None:
    """Runs until the agent is gone and nothing is left to do.

    Args:
        arguments: path of the record, where cgroups are mounted, directory of the jobs' folders,
            CPUs of a node, names of nodes.
    """
    path, root, folders, cpus, *nodes = arguments
    logging.basicConfig(level=logging.INFO, format="%(levelname)s guardian: %(message)s")
    for number in (signal.SIGINT, signal.SIGTERM):  # it outlives the agent
        signal.signal(number, signal.SIG_IGN)
    record = ShareRecord(Path(path))

    def keeper() -> ShareKeeper:
        processes = Processes(folders=JobFolders(Path(folders)))
        return ShareKeeper(nodes, record, processes, root=Path(root), cpus=float(cpus))

    while wait_for_trouble(sys.stdin.fileno()):
        with contextlib.suppress(Exception):
            keeper().look()
    _log.warning("the agent is gone: guests of shared nodes get the least share")
    take_over(record, keeper())


def wait_for_trouble(pipe: int) -> bool:
    """Waits until the agent is silent (True) or gone (False)."""
    while True:
        ready, _, _ = select.select([pipe], [], [], SILENCE_S)
        if not ready:
            return True
        if not os.read(pipe, 1 << 16):
            return False


def take_over(
    record: ShareRecord, keeper: ShareKeeper, sleep: Callable[[float], object] = time.sleep
) -> None:
    """Keeps the fallback shares of the record in force until nothing is left (rule 2)."""
    idle = 0
    while idle < IDLE_LOOKS:
        if not record.take():
            idle += 1
        else:
            try:
                keeper.look()
            except Exception:
                _log.exception("shares cannot be kept")
            idle = idle + 1 if keeper.is_idle else 0
            record.give()
        sleep(LOOK_S)


if __name__ == "__main__":
    main(sys.argv[1:])
