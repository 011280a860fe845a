# SPDX-License-Identifier: Apache-2.0
"""How a share is put in force, as a port: the two versions of cgroups, or priorities only."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Protocol

from bridge.extensions.sharing.on_nodes.wanted import Share, ShareKey

PERIOD_US: Final = 100_000
"""Over which a quota counts; the kernel's own choice."""
MIN_QUOTA_US: Final = 1000
"""The kernel accepts none smaller."""


class Method(Protocol):
    """Puts shares in force. All methods may raise OSError."""

    @property
    def name(self) -> str:
        """Is shown to people and sent to the service."""

    @property
    def is_weaker(self) -> bool:
        """It has no quotas, and a job can evade it."""

    def apply(self, share: Share) -> bool:
        """Puts a share in force if it is not yet. False: the job has no process on the node."""

    def is_complete(self, key: ShareKey) -> bool:
        """Whether all processes of a job are known to have the share in force."""

    def restore(self, key: ShareKey) -> bool:
        """Restores a job's full share and undoes all changes. False: to be tried again."""

    def processes(self, key: ShareKey) -> Iterator[int]:
        """Process ids of a job."""

    def offers(self, key: ShareKey) -> bool:
        """Whether it can put shares of this job in force here."""


def quota_us(milli_cpus: int) -> int:
    """A quota in microseconds of CPU time in `PERIOD_US`."""
    return max(milli_cpus * PERIOD_US // 1000, MIN_QUOTA_US)


def put(path: Path, text: str) -> None:
    """Writes a file of a cgroup, which must exist, if its content differs.

    Raises:
        OSError: it cannot be written.
    """
    if path.read_text(encoding="ascii", errors="replace").strip() == text:
        return
    attach(text, path)


def attach(text: str, path: Path) -> None:
    """Writes a file of a cgroup, which must exist.

    Raises:
        OSError: it cannot be written.
    """
    file = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        os.write(file, text.encode())
    finally:
        os.close(file)


def pids_in(folder: Path) -> list[int]:
    """The processes directly in a cgroup; lines that are not process ids are left out."""
    try:
        lines = (folder / "cgroup.procs").read_text(encoding="ascii", errors="replace")
    except OSError:  # it is gone, or a threaded one
        return []
    return [
        int(line) for line in lines.split() if line.isascii() and line.isdecimal() and int(line)
    ]


def pids_below(folder: Path) -> Iterator[int]:
    """The processes in a cgroup and all below it; `folder` may vanish meanwhile."""
    for at, _, _ in os.walk(folder, followlinks=False):
        yield from pids_in(Path(at))
