# SPDX-License-Identifier: Apache-2.0
"""Power of metered nodes by load, the input of `schedbridge power calibrate`.

Rules
    1. Only readings of meters count: the model's own values do not test the model.
    2. A reading counts if the load has stayed within `STEADY` for as long as its value may lag
       behind: `LAG_S` for the node's own counters, `REQUEST_LAG_S` for values read from a BMC.
    3. For each twentieth of the load a node keeps its last `KEPT` readings, `APART_S` apart, so
       that long runs at one load do not displace readings at others, and the memory is bounded.
    4. Readings are not compared with the bounds of the node's type, because a calibration is meant
       to find wrong ones.
"""

import math
from collections import deque
from typing import Final

from bridge.extensions.power.calibration import BINS, MODEL, NodeReports
from bridge.rpc.reported.safe_text import printable

STEADY: Final = 0.05
LAG_S: Final = 3.0
REQUEST_LAG_S: Final = 60.0
"""The resource manager may measure every half minute only, and the agent asks it every 15 s."""
COUNTERS: Final = frozenset({"rapl", "pm_counters"})
KEPT: Final = 32
APART_S: Final = 5.0


class LoadCurve:
    """The readings of one node."""

    __slots__ = ("_bins", "_last_s", "_load", "_since_s", "source")

    def __init__(self) -> None:
        self.source = ""
        self._load, self._since_s = -1.0, -math.inf
        self._last_s = [-math.inf] * BINS
        self._bins: dict[int, deque[tuple[float, float]]] = {}

    def add(self, at_s: float, load: float | None, watts: float, source: str) -> None:
        """Records a reading.

        Args:
            at_s: when it was measured; a reading before the last one is ignored.
            load: busy CPUs / CPUs; None: not known.
            watts: positive, finite.
        """
        if source != self.source:
            self.source = printable(source[:40])
        if load is None or not 0 <= load < math.inf or source == MODEL:
            self._load = -1.0
            return
        load = min(load, 1.0)
        if abs(load - self._load) > STEADY:
            self._load, self._since_s = load, at_s
        lag_s = LAG_S if source in COUNTERS else REQUEST_LAG_S
        at = min(int(load * BINS), BINS - 1)
        if at_s - self._since_s < lag_s or at_s - self._last_s[at] < APART_S:
            return
        self._last_s[at] = at_s
        self._bins.setdefault(at, deque(maxlen=KEPT)).append((load, watts))

    def curve(self) -> NodeReports:
        """All kept readings."""
        pairs = [pair for bin_ in self._bins.values() for pair in bin_]
        loads, watts = zip(*pairs, strict=True) if pairs else ((), ())
        return NodeReports(self.source, self.source != MODEL, loads, watts)
