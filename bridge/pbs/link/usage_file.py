# SPDX-License-Identifier: Apache-2.0
"""Keeps the usage of fair share in a file beside pbs_sched's, over restarts of the link.

Rules
    1. It is read once, and written every `SAVE_S` while fair share is in use, and at the end. A
       crash loses the usage of that time, but for jobs that still run: their time since the last
       save is counted.
    2. If it is not there, usage begins with that of pbs_sched, which keeps it in the file `usage`
       beside it: as of when that was written, so that jobs that still run are counted from then on.
       That file is never written.
    3. A file that cannot be read or written is reported once; usage then begins at nothing.
"""

import json
import logging
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bridge import json_text
from bridge.errors import BadRequest
from bridge.pbs.objects.fair_share import MAX, MAX_MEMBERS, FairShare
from bridge.pbs.objects.sched_usage import MAX_B as MAX_SCHED_B
from bridge.pbs.objects.sched_usage import read_sched_usage

_log = logging.getLogger(__name__)

NAME, SCHED_NAME = "schedbridge_usage.json", "usage"
SAVE_S = 60.0
MAX_B = 16 << 20
_LATEST_S = 1 << 40


@dataclass
class UsageFile:
    """The file.

    Attributes:
        clock: monotonic, s.
    """

    clock: Callable[[], float] = time.monotonic
    _folder: Path | None = None
    _due_s: float = 0.0
    _saved: str = ""
    _failed: bool = False

    def open(self, folder: Path, share: FairShare) -> None:
        """Reads the file of a directory, unless it was read before."""
        if self._folder == folder:
            return
        self._folder = folder
        self._due_s = self.clock() + SAVE_S
        try:
            with (folder / NAME).open(encoding="utf-8") as file:
                self._take(json_text.load(file.read(MAX_B)), share)
        except FileNotFoundError:
            self._take_over(folder / SCHED_NAME, share)
        except (OSError, ValueError, TypeError, AttributeError, KeyError) as error:
            _log.warning("fair share begins at nothing: %s: %s", folder / NAME, str(error)[:160])

    @staticmethod
    def _take_over(path: Path, share: FairShare) -> None:
        try:
            with path.open("rb") as file:
                written_s = int(os.fstat(file.fileno()).st_mtime)
                usage, decayed_s = read_sched_usage(file.read(MAX_SCHED_B + 1))
        except FileNotFoundError:
            return
        except (OSError, BadRequest) as error:
            _log.warning("fair share begins at nothing: %s: %s", path, str(error)[:160])
            return
        share.restore(usage, written_s, decayed_s)
        _log.info("fair share begins with the usage of %d entities in %s", len(usage), path)

    @staticmethod
    def _take(values: dict[str, object], share: FairShare) -> None:
        usage, seen_s, decayed_s = values["usage"], values["seen_s"], values["decayed_s"]
        if not all(isinstance(at, int) and 0 <= at < _LATEST_S for at in (seen_s, decayed_s)):
            raise ValueError("a time is not in Unix seconds")
        if not isinstance(usage, dict) or len(usage) > MAX_MEMBERS:
            raise ValueError("usage is not a table of entities")
        read = {str(name): float(used) for name, used in usage.items()}
        if not all(0 <= used <= MAX for used in read.values()):
            raise ValueError("a usage is negative or impossibly large")
        share.restore(read, int(str(seen_s)), int(str(decayed_s)))

    def save(self, share: FairShare, *, now: bool = False) -> None:
        """Writes the file if it is time, or now."""
        if self._folder is None or (self.clock() < self._due_s and not now):
            return
        self._due_s = self.clock() + SAVE_S
        written = json.dumps(
            {"seen_s": share.seen_s, "decayed_s": share.decayed_s, "usage": share.usage}
        )
        if written == self._saved:
            return
        path = self._folder / NAME
        try:
            path.with_suffix(".new").write_text(written, encoding="utf-8")
            os.replace(path.with_suffix(".new"), path)  # noqa: PTH105 - atomic
        except OSError as error:
            if not self._failed:
                _log.warning("fair share will begin at nothing after a restart: %s", error)
            self._failed = True
            return
        self._saved, self._failed = written, False
