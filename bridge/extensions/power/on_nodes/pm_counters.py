# SPDX-License-Identifier: Apache-2.0
"""The node's power as Cray's firmware writes it into files.

Rules
    1. `power` holds `92 W` and, on newer systems, a time stamp.
    2. If there is a counter `freshness`, values are used only while it advances: after `STILL_S`
       without a change the firmware counts as stopped.
    3. 0 W counts as no value, because a node that answers draws power.

Source: HPE Cray EX, PM counters (`/sys/cray/pm_counters`).
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from bridge.agent.use.numbers import whole_number

STILL_S: Final = 5.0


class PmCounters:
    """The file `power`; a `bridge.extensions.power.on_nodes.sensor.Sensor`."""

    name = "pm_counters"

    def __init__(
        self, sys: Path = Path("/sys"), clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Prepares the readings.

        Args:
            clock: monotonic, s.
        """
        self._folder, self._clock = sys / "cray" / "pm_counters", clock
        self._fresh: tuple[int | None, float] = (None, 0.0)

    @property
    def age_s(self) -> float:
        """Since the last change of the counter."""
        fresh, since = self._fresh
        return 0.0 if fresh is None else self._clock() - since

    def read(self) -> float | None:
        """The value in the file."""
        power_w = whole_number(self._folder / "power")
        if power_w is None or power_w <= 0:
            return None
        fresh, now = whole_number(self._folder / "freshness"), self._clock()
        if fresh != self._fresh[0]:
            self._fresh = fresh, now
        return None if fresh is not None and now - self._fresh[1] > STILL_S else float(power_w)
