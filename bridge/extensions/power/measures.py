# SPDX-License-Identifier: Apache-2.0
"""The measures of electric power, each defined once.

| measure | formula | unit |
|---|---|---|
| energy | integral of system power from the first submission to the last end | J, kWh |
| energy-delay product | energy * makespan | J s |
| mean power, peak power | energy / makespan; the largest system power | W |
| violation | a longest interval outside of one bound within one step of the corridor | 1 |
| its seconds | its length | s |
| its watt-seconds | integral of the distance from the bound | W s |
| late | the part of violations after their grace | 1, s, W s |
| avoidable | the part of that for which a configuration within the corridor existed | 1, s, W s |

Rules
    1. Power is a step function: from each instant to the next, exact. So is the corridor. Nothing
       is sampled.
    2. A step of the corridor ends every violation; if the system is outside of the new bounds, too,
       another one begins.
    3. A violation that begins at an announced step has no grace. Of every other one the first
       `grace_s` seconds do not count, because the system can react only afterwards: to a bound that
       changes unannounced, a job that draws more than was assumed, or one that ends.
    4. The number of late violations is the count of Chadha, John and Gerndt (HiPC 2020, Table II):
       those in which the system could not restore the corridor.
    5. Whether a configuration existed is asked for each interval of constant power, bounds and
       jobs.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from bridge.extensions.power.rules import Corridor

KWH_J = 3_600_000


@dataclass(frozen=True)
class SystemPower:
    """System power over a run.

    Attributes:
        at_s: (n,) int64, ascending; the first is where the run begins.
        power_w: (n,) int64: from each instant to the next, or to the end.
    """

    at_s: NDArray[np.int64]
    power_w: NDArray[np.int64]
    end_s: int

    @property
    def lasts_s(self) -> NDArray[np.int64]:
        """(n,) int64: how long each step lasts."""
        return np.diff(self.at_s, append=self.end_s)


@dataclass(frozen=True)
class PowerBounds:
    """The corridor of a run, and its grace.

    Attributes:
        corridor: the bounds that were in force, whether or not a policy knew them.
        grace_s: see rule 3.
    """

    corridor: Corridor
    announced_s: frozenset[int] = frozenset()
    grace_s: int = 10


@dataclass(frozen=True)
class Amount:
    """How many violations, s and W s."""

    number: int = 0
    seconds: int = 0
    watt_seconds: int = 0


@dataclass(frozen=True)
class Violations:
    """The violations of one bound.

    Attributes:
        all: without grace.
        late: after the grace.
        avoidable: None: not judged.
    """

    all: Amount
    late: Amount
    avoidable: Amount | None


@dataclass(frozen=True)
class PowerMeasures:
    """All measures of one run; None where there is no corridor."""

    energy_j: int
    energy_kwh: float
    energy_delay_js: int
    mean_w: float
    peak_w: int
    upper: Violations | None = None
    lower: Violations | None = None


Avoidable = Callable[[int, int, int], bool]
"""Whether at an instant a configuration existed within a lower and an upper bound, W."""


def power_measures(
    power: SystemPower,
    bounds: PowerBounds | None = None,
    avoidable: Avoidable | None = None,
    renewed_s: Sequence[int] = (),
) -> PowerMeasures:
    """Judges a run.

    Args:
        bounds: None: there were none.
        avoidable: None: not judged.
        renewed_s: instants at which its answer may change although system power has not.
    """
    lasts_s = power.lasts_s
    energy_j = int((power.power_w * lasts_s).sum())
    makespan_s = int(lasts_s.sum())
    on = lasts_s > 0
    found = PowerMeasures(
        energy_j=energy_j,
        energy_kwh=energy_j / KWH_J,
        energy_delay_js=energy_j * makespan_s,
        mean_w=energy_j / makespan_s if makespan_s else 0.0,
        peak_w=int(power.power_w[on].max()) if on.any() else 0,
    )
    if bounds is None:
        return found
    pieces = _pieces(power, bounds.corridor, renewed_s)
    return replace(
        found,
        upper=_violations(pieces, bounds, avoidable, lambda piece: piece.power_w - piece.upper_w),
        lower=_violations(pieces, bounds, avoidable, lambda piece: piece.lower_w - piece.power_w),
    )


@dataclass(frozen=True, slots=True)
class _Piece:
    """An interval in which nothing changes; `step` is that of the corridor."""

    from_s: int
    to_s: int
    power_w: int
    lower_w: int
    upper_w: int
    step: int


def _pieces(power: SystemPower, corridor: Corridor, also_s: Sequence[int]) -> list[_Piece]:
    begin_s = int(power.at_s[0]) if len(power.at_s) else power.end_s
    inside = [at_s for at_s in (*corridor.starts_s, *also_s) if begin_s < at_s < power.end_s]
    cuts = sorted({*power.at_s.tolist(), *inside, power.end_s})
    found = []
    for from_s, to_s in pairwise(cuts):
        at = int(np.searchsorted(power.at_s, from_s, side="right")) - 1
        step = bisect_right(corridor.starts_s, from_s) - 1
        bounds = corridor.lower_w[step], corridor.upper_w[step]
        found.append(_Piece(from_s, to_s, int(power.power_w[at]), *bounds, step))
    return found


def _violations(
    pieces: Sequence[_Piece],
    bounds: PowerBounds,
    avoidable: Avoidable | None,
    outside_w: Callable[[_Piece], int],
) -> Violations:
    whole, late, blamed = _Sum(), _Sum(), _Sum()
    before, forgiven_s = -2, 0  # the last piece outside; the end of its grace
    for at, piece in enumerate(pieces):
        if (off_w := outside_w(piece)) <= 0:
            continue
        if before != at - 1 or pieces[before].step != piece.step:
            whole.new, late.new, blamed.new = True, True, True
            grace_s = 0 if piece.from_s in bounds.announced_s else bounds.grace_s
            forgiven_s = piece.from_s + grace_s
        before = at
        whole.add(piece.to_s - piece.from_s, off_w)
        if (late_s := piece.to_s - max(piece.from_s, forgiven_s)) <= 0:
            continue
        late.add(late_s, off_w)
        if avoidable is not None and avoidable(piece.from_s, piece.lower_w, piece.upper_w):
            blamed.add(late_s, off_w)
    return Violations(whole.amount, late.amount, None if avoidable is None else blamed.amount)


class _Sum:
    """An amount that grows; the first addition after `new` is another violation."""

    def __init__(self) -> None:
        self.amount, self.new = Amount(), True

    def add(self, seconds: int, off_w: int) -> None:
        self.amount = Amount(
            self.amount.number + self.new,
            self.amount.seconds + seconds,
            self.amount.watt_seconds + seconds * off_w,
        )
        self.new = False
