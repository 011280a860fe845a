# SPDX-License-Identifier: Apache-2.0
"""What an experiment will cost, estimated from cells that are kept.

The CPU time of a cell is the mean over the kept cells most like it: same policy, trace, setting and
perturbation; else without the perturbation; else of another version. Without any it is unknown, and
`calibrated` computes the first jobs of a trace.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from bridge.lab.experiments.cell import Cell, canonical
from bridge.lab.experiments.results import CellResult

FIRST_JOBS: Final = 250
ENOUGH_S: Final = 0.5
"""A calibration ends when that much CPU time was used, or all jobs were computed."""


class Estimates:
    """CPU times of cells, s, learnt from results."""

    def __init__(self, results: Iterable[CellResult] = ()) -> None:
        self._sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
        for result in results:
            self.learn(result)

    def learn(self, result: CellResult) -> None:
        """Takes a result into account."""
        if result.done:
            for kind in _kinds(result.cell):
                self._sums[kind][0] += result.cpu_s
                self._sums[kind][1] += 1

    def of(self, cell: Cell) -> float | None:
        """The CPU time that a cell will take, s; None: nothing is known."""
        for kind in _kinds(cell):
            if kind in self._sums:
                total, count = self._sums[kind]
                return total / count
        return None

    def add(self, cell: Cell, cpu_s: float) -> None:
        """Takes an estimate into account, for cells that differ in seed and perturbation."""
        self._sums[_kinds(cell)[-1]] = [cpu_s, 1.0]


def _kinds(cell: Cell) -> tuple[str, ...]:
    """What cells of equal cost share, the closest first."""
    base = [cell.policy_text, cell.trace_sha256, dict(cell.setting), cell.engine]
    closest = canonical([*base, dict(cell.parameters), cell.commit])
    return closest, canonical([*base, cell.commit]), canonical(base)


@dataclass(frozen=True)
class Cost:
    """What is to be computed.

    Attributes:
        failed: that are there and failed; they are computed again.
        cpu_s: estimated CPU time of those whose cost is known, s.
    """

    cells: int
    kept: int
    failed: int
    missing: tuple[Cell, ...]
    cpu_s: float
    unknown: int


def cost_of(cells: Sequence[Cell], kept: Iterable[CellResult], estimates: Estimates) -> Cost:
    """What the cells cost that are not kept."""
    status = {result.cell.key: result.done for result in kept}
    missing = tuple(cell for cell in cells if not status.get(cell.key, False))
    known = [found for cell in missing if (found := estimates.of(cell)) is not None]
    return Cost(
        cells=len(cells),
        kept=len(cells) - len(missing),
        failed=sum(cell.key in status for cell in missing),
        missing=missing,
        cpu_s=sum(known),
        unknown=len(missing) - len(known),
    )


def calibrate(
    cells: Sequence[Cell],
    estimates: Estimates,
    compute: Callable[[Cell], CellResult],
    jobs_of: Callable[[Cell], int],
) -> None:
    """Estimates cells of unknown cost from the first jobs of their trace, in proportion.

    A longer queue costs more: such an estimate is rather too low.
    """
    for cell in cells:
        if estimates.of(cell) is not None:
            continue
        whole, some = jobs_of(cell), FIRST_JOBS
        while True:
            few = min(some, whole)
            found = compute(replace(cell, setting={**cell.setting, "jobs": few}))
            if not found.done:
                break
            if few == whole or found.cpu_s >= ENOUGH_S:
                estimates.add(cell, found.cpu_s * whole / few)
                break
            some *= 4
