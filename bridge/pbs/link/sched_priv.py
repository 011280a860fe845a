# SPDX-License-Identifier: Apache-2.0
"""Reads the files of pbs_sched's policy: sched_config, holidays, dedicated_time, resource_group.

They are in the directory that the scheduler object names, or in PBS_HOME/sched_priv. A scheduler
may register from its `sched_host` only, so that these are files of the link's own machine.
"""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from bridge.pbs.objects.sched_files import NAMES, NO_FILES, SchedFiles, read_sched_files

MAX_B = 1 << 20
_PAUSE_S = 1.0
_HOME = "/var/spool/pbs"


def default_sched_priv() -> Path:
    """Returns PBS_HOME/sched_priv of this machine."""
    conf = Path(os.environ.get("PBS_CONF_FILE", "/etc/pbs.conf"))
    home = os.environ.get("PBS_HOME", "")
    if not home:
        try:
            lines = conf.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            lines = []
        stated = [line.partition("=")[2].strip() for line in lines if line.startswith("PBS_HOME=")]
        home = stated[-1] if stated else _HOME
    return Path(home) / "sched_priv"


@dataclass
class SchedPriv:
    """The files, read again when one has changed.

    Attributes:
        default: the directory, unless the scheduler object names one.
        clock: monotonic, s.
    """

    default: Path
    clock: Callable[[], float] = time.monotonic
    _due_s: float = 0.0
    _stamps: dict[str, tuple[int, int]] = field(default_factory=dict)
    _files: SchedFiles = NO_FILES

    def files(self, named: str = "") -> SchedFiles:
        """Returns what the files say now; they are looked at once a second.

        Args:
            named: the directory that the scheduler object names; empty: none.
        """
        if self.clock() < self._due_s:
            return self._files
        self._due_s = self.clock() + _PAUSE_S
        paths = [Path(named or self.default) / name for name in NAMES]
        stamps = {str(path): stamp for path in paths if (stamp := _stamp(path)) is not None}
        if stamps != self._stamps:
            texts = {path.name: text for path in paths if (text := _read(path)) is not None}
            self._files = read_sched_files(texts)
            self._stamps = stamps
        return self._files


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _read(path: Path) -> str | None:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(MAX_B)
    except OSError:
        return None
