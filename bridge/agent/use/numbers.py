# SPDX-License-Identifier: Apache-2.0
"""Numbers in files of the kernel."""

from pathlib import Path


def whole_number(path: Path) -> int | None:
    """The number at the beginning of a file; None: there is none, or no file."""
    try:
        words = path.read_text(encoding="ascii").split(maxsplit=1)
        return int(words[0]) if words else None
    except (OSError, ValueError):
        return None
