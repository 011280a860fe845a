# SPDX-License-Identifier: Apache-2.0
"""The port of sensors that measure the power of a node."""

from pathlib import Path
from typing import Protocol


class Sensor(Protocol):
    """Measures the present power of a node."""

    @property
    def name(self) -> str:
        """The source that is shown with every value."""

    @property
    def age_s(self) -> float:
        """The age of the last value that `read` returned."""

    def read(self) -> float | None:
        """Power, W; None: not available now. Never waits."""


def whole_number(path: Path) -> int | None:
    """The number at the beginning of a file; None: there is none, or no file."""
    try:
        words = path.read_text(encoding="ascii").split(maxsplit=1)
        return int(words[0]) if words else None
    except (OSError, ValueError):
        return None
