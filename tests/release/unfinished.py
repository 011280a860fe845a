# SPDX-License-Identifier: Apache-2.0
"""The time of a suite that was stopped and goes on at the same commit.

While it runs, a file beside its log names its commit and when it began; the log was last written
to when it was stopped.
"""

import json
from pathlib import Path


def begun(suite: Path, commit: str, now_s: float) -> float:
    """Notes that a suite begins; returns how long its earlier parts at this commit took, seconds.

    Args:
        suite: its log and its file of this module, without their endings.
        now_s: the present time, as that of files.
    """
    note, before_s = _note(suite), 0.0
    try:
        earlier = json.loads(note.read_text(encoding="utf-8"))
        if earlier["commit"] == commit:
            stopped_s = suite.with_suffix(".log").stat().st_mtime
            before_s = earlier["before_s"] + max(0.0, stopped_s - earlier["began_s"])
    except (OSError, ValueError, KeyError, TypeError):
        pass  # none was stopped, or a crash left half a file
    now = {"commit": commit, "before_s": before_s, "began_s": now_s}
    note.write_text(json.dumps(now) + "\n", encoding="utf-8")
    return before_s


def ended(suite: Path) -> None:
    """Notes that a suite has ended by itself, whatever its result."""
    _note(suite).unlink(missing_ok=True)


def _note(suite: Path) -> Path:
    return suite.with_suffix(".unfinished")
