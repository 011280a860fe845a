# SPDX-License-Identifier: Apache-2.0
"""When, and at which commit, something was run: for tables of results that are made in parts."""

import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).parents[1]


@cache
def version() -> str:
    """The day and the commit, of the first time that this process asks."""
    git = ("git", "-C", str(_ROOT), "describe", "--always", "--dirty", "--exclude=*")
    done = subprocess.run(git, capture_output=True, text=True, check=False)
    day = datetime.now(UTC).date().isoformat()
    return f"{day} at commit {done.stdout.strip() or 'unknown'}"


def told(rows: Sequence[Mapping[str, Any]], what: str) -> str:
    """A sentence on when these rows were run, by their key `run`."""
    runs = Counter(row.get("run", "at a time not kept") for row in rows)
    return "Run: " + "; ".join(f"{n} {what} {run}" for run, n in sorted(runs.items())) + "."
