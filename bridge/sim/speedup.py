# SPDX-License-Identifier: Apache-2.0
"""The speed-up of jobs on more nodes.

| model | text | source |
|---|---|---|
| Amdahl | `amdahl:0.05` (serial fraction) | Amdahl, AFIPS 1967 |
| Downey | `downey:32:1.0` (average parallelism, variance) | Downey, UC Berkeley CSD-97-933 |
| table | `table:1=1,2=1.9,8=6` (width = speed-up, linear in between) | measurements |

The speed-up on one node is 1. All time beyond perfect speed-up counts as communication: a job's
MTCT (time in MPI calls over computing time) is width / speed-up - 1.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridge.errors import ConfigError


class Speedup(ABC):
    """Speed on a number of nodes, as a multiple of that on one."""

    @abstractmethod
    def at(self, nodes: int) -> float:
        """The speed-up on this many nodes, > 0."""

    def mtct(self, nodes: int) -> float:
        """Time in MPI calls over computing time, >= 0."""
        return max(nodes / self.at(nodes) - 1.0, 0.0)


@dataclass(frozen=True)
class Amdahl(Speedup):
    """A part of the work that runs on one node only, whatever their number."""

    serial: float

    def __post_init__(self) -> None:
        if not 0.0 <= self.serial <= 1.0:
            raise ConfigError("speed-up", f"serial fraction must lie in [0, 1], not {self.serial}")

    def at(self, nodes: int) -> float:
        """1 / (serial + (1 - serial) / nodes)."""
        return 1.0 / (self.serial + (1.0 - self.serial) / nodes)


@dataclass(frozen=True)
class Downey(Speedup):
    """Downey's model of parallel programs, by average parallelism A and its variance sigma."""

    average: float
    sigma: float

    def __post_init__(self) -> None:
        finite = math.isfinite(self.average) and math.isfinite(self.sigma)
        if not finite or self.average < 1.0 or self.sigma < 0.0:
            raise ConfigError(
                "speed-up", "average parallelism must be 1 or more and its variance 0 or more"
            )

    def at(self, nodes: int) -> float:
        """Equations for low (sigma <= 1) and for high variance."""
        a, s, n = self.average, self.sigma, float(nodes)
        if s <= 1.0:
            if n <= a:
                return a * n / (a + s * (n - 1) / 2)
            if n < 2 * a - 1:
                return a * n / (s * (a - 0.5) + n * (1 - s / 2))
            return a
        if n < a + a * s - s:
            return n * a * (s + 1) / (s * (n + a - 1) + a)
        return a


@dataclass(frozen=True)
class Table(Speedup):
    """Measured speed-ups; linear between two widths, constant beyond the largest."""

    widths: tuple[int, ...]
    speedups: tuple[float, ...]

    def __post_init__(self) -> None:
        rising = all(a < b for a, b in zip(self.widths, self.widths[1:], strict=False))
        positive = all(math.isfinite(each) and each > 0 for each in self.speedups)
        if not self.widths or not rising or min(self.widths) < 1 or not positive:
            raise ConfigError("speed-up", "a table needs rising widths and positive speed-ups")

    def at(self, nodes: int) -> float:
        """Interpolated; below the first width in proportion."""
        if nodes < self.widths[0]:
            return self.speedups[0] * nodes / self.widths[0]
        return float(np.interp(nodes, self.widths, self.speedups))


def drawn(serial: NDArray[np.float64]) -> NDArray[np.object_]:
    """Amdahl's law for each job, by its serial fraction; (n_jobs,) of `Speedup`."""
    return np.array([Amdahl(float(part)) for part in serial], dtype=object)


def parse_speedup(text: str) -> Speedup:
    """Reads a model as written in the table above.

    Raises:
        ConfigError: no such model, or impossible numbers.
    """
    name, _, rest = text.partition(":")
    try:
        if name == "amdahl":
            return Amdahl(float(rest))
        if name == "downey":
            average, sigma = rest.split(":")
            return Downey(float(average), float(sigma))
        if name == "table":
            pairs = [pair.split("=") for pair in rest.split(",")]
            widths, speedups = tuple(int(w) for w, _ in pairs), tuple(float(s) for _, s in pairs)
            return Table(widths, speedups)
    except ValueError as error:
        raise ConfigError("speed-up", f"'{text:.60}': {error}") from error
    raise ConfigError(
        "speed-up",
        f"there is no model '{name:.40}': give amdahl:FRACTION, downey:PARALLELISM:VARIANCE or"
        " table:WIDTH=SPEEDUP,...",
    )
