# SPDX-License-Identifier: Apache-2.0
"""The speed-up of jobs on more nodes.

| model | text | source |
|---|---|---|
| Amdahl | `amdahl:0.05` (serial fraction) | Amdahl, AFIPS 1967 |
| Downey | `downey:32:1.0` (average parallelism, variance) | Downey, UC Berkeley CSD-97-933 |
| table | `table:1=1,2=1.9,8=6` (width = speed-up, linear in between) | measurements |
| phases | `phases:0.3*amdahl:0.4,0.7*downey:32:1.0` (share of the work * model) | |

The speed-up on one node is 1. All time beyond perfect speed-up counts as communication: a job's
MTCT (time in MPI calls over computing time) is width / speed-up - 1.

A job with phases goes through them in their order. A share is that of the job's run time on one
node. Behind a model, `@0.5` says what MTCT is reported during this phase, whatever the width, and
`@unknown` that none is: `phases:0.1*amdahl:1@unknown,0.9*amdahl:0.05`.
"""

import math
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bridge.errors import ConfigError

UNKNOWN: Final = -1.0
"""An MTCT that is not measured."""
MAX_PHASES: Final = 100
_SUM_ERROR: Final = 1e-4


class Speedup(ABC):
    """Speed on a number of nodes, as a multiple of that on one."""

    @abstractmethod
    def at(self, nodes: int) -> float:
        """The speed-up on this many nodes, > 0."""

    def mtct(self, nodes: int) -> float:
        """Time in MPI calls over computing time, >= 0."""
        return max(nodes / self.at(nodes) - 1.0, 0.0)

    def reported(self, nodes: int, phase: int = 0) -> float:
        """The MTCT that is measured in a phase; -1: none is."""
        del phase
        return self.mtct(nodes)

    def parts(self) -> "tuple[Phase, ...]":
        """The phases of the job, at least one."""
        return (Phase(1.0, self),)


@dataclass(frozen=True)
class Phase:
    """A part of a job's work.

    Attributes:
        share: the share of the job's run time on one node, > 0.
        speedup: during this phase; one without phases.
        mtct: that is reported, on any number of nodes; -1: none is; None: that of the speed-up.
    """

    share: float
    speedup: Speedup
    mtct: float | None = None

    def __post_init__(self) -> None:
        if not (math.isfinite(self.share) and self.share > 0):
            raise ConfigError("speed-up", f"a phase's share must be more than 0, not {self.share}")
        if self.mtct is not None and not (
            math.isfinite(self.mtct) and (self.mtct >= 0 or self.mtct == UNKNOWN)
        ):
            raise ConfigError("speed-up", f"a phase's MTCT must be 0 or more, not {self.mtct}")
        if isinstance(self.speedup, Phases):
            raise ConfigError("speed-up", "a phase cannot have phases itself")

    def reported(self, nodes: int) -> float:
        """The MTCT that is measured on so many nodes; -1: none is."""
        return self.speedup.mtct(nodes) if self.mtct is None else self.mtct


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


@dataclass(frozen=True)
class Phases(Speedup):
    """Several phases, one after the other; the speed-up is that of all work together."""

    phases: tuple[Phase, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.phases) <= MAX_PHASES:
            raise ConfigError("speed-up", f"there must be 1 to {MAX_PHASES} phases")
        total = math.fsum(phase.share for phase in self.phases)
        if not abs(total - 1.0) <= _SUM_ERROR:
            raise ConfigError("speed-up", f"the shares of the phases add up to {total:g}, not to 1")

    def at(self, nodes: int) -> float:
        """Work on one node over run time on many."""
        return 1.0 / math.fsum(phase.share / phase.speedup.at(nodes) for phase in self.phases)

    def reported(self, nodes: int, phase: int = 0) -> float:
        """The MTCT that is measured in a phase; -1: none is."""
        return self.phases[phase].reported(nodes)

    def parts(self) -> tuple[Phase, ...]:
        return self.phases


def drawn(serial: NDArray[np.float64]) -> NDArray[np.object_]:
    """Amdahl's law for each job, by its serial fraction; (n_jobs,) of `Speedup`."""
    return np.array([Amdahl(float(part)) for part in serial], dtype=object)


_FORMS: Final = {
    "amdahl": "amdahl:FRACTION",
    "downey": "downey:PARALLELISM:VARIANCE",
    "table": "table:WIDTH=SPEEDUP,...",
    "phases": "phases:SHARE*MODEL,...",
}


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
        if name == "phases":
            return Phases(tuple(_parse_phase(part) for part in _BETWEEN_PHASES.split(rest)))
    except (ValueError, OverflowError) as error:
        raise ConfigError("speed-up", f"'{text:.60}' is not {_FORMS[name]}") from error
    raise ConfigError(
        "speed-up", f"there is no model '{name:.40}': give {', '.join(_FORMS.values())}"
    )


_BETWEEN_PHASES: Final = re.compile(r",(?=[^,]*\*)")
"""A comma within a table has no `*` before the next one."""


def _parse_phase(text: str) -> Phase:
    share, star, model = text.partition("*")
    if not star:
        raise ConfigError("speed-up", f"'{text:.60}' is not a phase: give SHARE*MODEL")
    if model.startswith("phases:"):
        raise ConfigError("speed-up", "a phase cannot have phases itself")
    model, at, mtct = model.partition("@")
    reported = None
    if at:
        reported = UNKNOWN if mtct == "unknown" else float(mtct)
        if mtct != "unknown" and reported < 0:
            raise ConfigError(
                "speed-up", f"'{text:.60}': the MTCT must be 0 or more, or 'unknown', not {mtct}"
            )
    return Phase(float(share), parse_speedup(model), reported)
