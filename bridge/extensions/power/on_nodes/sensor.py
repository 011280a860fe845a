# SPDX-License-Identifier: Apache-2.0
"""The port of sensors that measure the power of a node."""

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
