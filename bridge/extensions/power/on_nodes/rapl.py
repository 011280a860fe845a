# SPDX-License-Identifier: Apache-2.0
"""The processors' own energy counters, by the kernel's powercap interface (Intel and AMD).

Rules
    1. Zones named `package...` count, and `dram` wherever it is. A package contains its other
       subzones (`core`, `uncore`), and `psys` contains packages: those would count twice.
    2. A counter that is less than before has wrapped around once, at `max_energy_range_uj`. After
       `LONGEST_S` it may have done so more often: the reading is a new baseline, like the first.
    3. All counters or none: a sum without a package is not the node's.
    4. They measure processors and memory only. `rest_w` is the site's value for everything else.

Source: Linux, Documentation/power/powercap/powercap.rst.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from bridge.agent.use.numbers import whole_number

LONGEST_S: Final = 60.0
"""A counter of 65 kJ, the smallest known, wraps around after this time at 1 kW."""


class Rapl:
    """The sum of packages and memory; a `bridge.extensions.power.on_nodes.sensor.Sensor`."""

    name = "rapl"
    age_s = 0.0

    def __init__(
        self,
        sys: Path = Path("/sys"),
        rest_w: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Finds the zones.

        Args:
            rest_w: power of parts without a counter, W.
            clock: monotonic, s.
        """
        self._zones = _zones(sys / "class" / "powercap")
        self._rest_w, self._clock = rest_w, clock
        self._before: tuple[float, list[int]] | None = None

    def read(self) -> float | None:
        """The mean power since the last reading."""
        now, before = self._clock(), self._before
        counters = [whole_number(zone / "energy_uj") for zone, _ in self._zones]
        energies = [energy for energy in counters if energy is not None]
        if not energies or len(energies) < len(counters):
            self._before = None
            return None
        self._before = now, energies
        if before is None or not 0 < now - before[0] <= LONGEST_S:
            return None
        used_uj = 0
        for (_, max_uj), then, energy in zip(self._zones, before[1], energies, strict=True):
            used_uj += energy - then if energy >= then else energy - then + max_uj
        return used_uj / 1e6 / (now - before[0]) + self._rest_w


def _zones(folder: Path) -> list[tuple[Path, int]]:
    """The zones that count, with the value at which their counters wrap around."""
    found = []
    for zone in sorted(folder.glob("intel-rapl:*")):
        try:
            name = (zone / "name").read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError):
            continue
        max_uj = whole_number(zone / "max_energy_range_uj")
        if (name.startswith("package") or name == "dram") and max_uj is not None:
            found.append((zone, max_uj))
    return found
