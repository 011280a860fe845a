# SPDX-License-Identifier: Apache-2.0
"""What measures the power of a node, as a port."""

from pathlib import Path
from typing import Protocol


class Sensor(Protocol):
    """Something that can say what the node draws at present."""

    @property
    def name(self) -> str:
        """Goes with every value, so that people see where it is from."""

    @property
    def age_s(self) -> float:
        """How long ago the last value that `read` returned was measured."""

    def read(self) -> float | None:
        """Power, W; None: it cannot be told now. Never waits."""


def whole_number(path: Path) -> int | None:
    """The number that a file begins with; None: there is none, or no file."""
    try:
        words = path.read_text(encoding="ascii").split(maxsplit=1)
        return int(words[0]) if words else None
    except (OSError, ValueError):
        return None
