# SPDX-License-Identifier: Apache-2.0
"""The progress of an experiment: a live table on a terminal, lines elsewhere."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from bridge.lab.experiments.cell import Cell
from bridge.lab.experiments.cost import Estimates
from bridge.lab.experiments.results import CellResult
from bridge.lab.experiments.run import RunStatus
from bridge.units import format_duration

_MAX_ROWS: Final = 24
_REDRAW_S: Final = 0.5
_BAR: Final = 30


class Board:
    """What is shown while cells are computed.

    Args:
        estimates: estimates of CPU times; learns from each result.
        console: where to; a terminal or not.
        quiet: nothing is shown.
    """

    def __init__(self, estimates: Estimates, console: Console, *, quiet: bool = False) -> None:
        self._estimates, self._console, self._quiet = estimates, console, quiet
        self._rows: dict[tuple[str, ...], _Row] = {}
        self._left: dict[str, Cell] = {}
        self._whole = 0
        self._drawn_s = -_REDRAW_S
        self._live: Live | None = None
        self._told: tuple[bool, bool] = False, False

    def add(self, cells: Sequence[Cell], kept: Sequence[CellResult]) -> None:
        """Takes cells, and those results of them that are kept."""
        for cell in cells:
            self._rows.setdefault(_kind(cell), _Row()).cells += 1
            self._left[cell.key] = cell
        self._whole += len(cells)
        for result in kept:
            self._take(result)

    def tell(self, text: str) -> None:
        """Shows a line, above the table."""
        if not self._quiet:
            self._console.print(text, markup=False)

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Shows the table while the block runs, on a terminal."""
        if self._quiet or not self._console.is_terminal:
            yield
            return
        with Live(console=self._console, auto_refresh=False) as self._live:
            yield
            self._live.update(self._drawn(None), refresh=True)
        self._live = None

    def observe(self, moment: RunStatus) -> None:
        """Takes the state of the run."""
        if moment.result is not None:
            self._take(moment.result)
            self._estimates.learn(moment.result)
        if self._quiet:
            return
        if self._live is None:
            self._line(moment)
        elif time.monotonic() - self._drawn_s >= _REDRAW_S:
            self._drawn_s = time.monotonic()
            self._live.update(self._drawn(moment), refresh=True)

    def left_s(self, workers: int) -> float | None:
        """Time until all cells are there, s; None: unknown."""
        if not self._left:
            return 0.0
        known = [self._estimates.of(cell) for cell in self._left.values()]
        sure = [found for found in known if found is not None]
        if not sure:
            return None
        mean_s = sum(sure) / len(sure)
        total_s = sum(sure) + mean_s * (len(known) - len(sure))
        return total_s / max(workers, 1)

    def _take(self, result: CellResult) -> None:
        if self._left.pop(result.cell.key, None) is None:
            return
        row = self._rows[_kind(result.cell)]
        if result.done:
            row.done += 1
            row.wait_s += float(result.results["wait_s_mean"])
            row.slowdown += float(result.results["bounded_slowdown_mean"])
        else:
            row.failed += 1

    def _line(self, moment: RunStatus) -> None:
        """One line for each result, and for a state that explains silence."""
        result = moment.result
        if result is not None:
            at = f"{self._whole - len(self._left):>{len(str(self._whole))}}/{self._whole}"
            self._console.print(f"{at}  {result.cell.label}: {words(result)}", markup=False)
        state = moment.stopping, moment.workers == 0
        if state != self._told:
            self._told = state
            if text := _silence(moment):
                self._console.print(text, markup=False)

    def _drawn(self, moment: RunStatus | None) -> Group:
        table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
        for heading in ("policy", "predictor", "trace", "perturbation"):
            table.add_column(heading)
        for heading in ("cells", "mean wait, s", "bounded slowdown"):
            table.add_column(heading, justify="right")
        rows = list(self._rows.items())
        for names, row in rows[:_MAX_ROWS]:
            failed = f", {row.failed} failed" if row.failed else ""
            table.add_row(
                *names,
                f"{row.done}/{row.cells}{failed}",
                f"{row.wait_s / row.done:,.0f}" if row.done else "",
                f"{row.slowdown / row.done:,.2f}" if row.done else "",
            )
        parts: list[Table | Text] = [table]
        if len(rows) > _MAX_ROWS:
            parts.append(Text(f"and {len(rows) - _MAX_ROWS} more"))
        done = self._whole - len(self._left)
        full = _BAR * done // max(self._whole, 1)
        line = f"{'━' * full}{'╌' * (_BAR - full)} {done}/{self._whole}"
        if moment is not None:
            left_s = self.left_s(moment.workers)
            line += f"  {moment.workers} workers"
            line += "" if left_s is None or not self._left else f", {format_duration(left_s)} left"
            if text := _silence(moment):
                line += f"; {text}"
        parts.append(Text(line))
        return Group(*parts)


class _Row:
    """Sums over the cells of one line of the table."""

    def __init__(self) -> None:
        self.cells = self.done = self.failed = 0
        self.wait_s = self.slowdown = 0.0


def _kind(cell: Cell) -> tuple[str, ...]:
    return cell.policy, cell.predictor, cell.trace, cell.perturbation


def _silence(moment: RunStatus) -> str:
    """Why nothing seems to happen; empty: it does."""
    if moment.stopping:
        return (
            f"stopping: {moment.running} cells are being computed; interrupt again to abandon them"
        )
    if moment.connecting:
        return "the connection to the Dask scheduler was lost: connecting again"
    return "" if moment.workers else "no worker is connected"


def words(result: CellResult) -> str:
    """A result in a few words."""
    if not result.done:
        return f"failed: {(result.error or '').splitlines()[0]:.200}"
    found = result.results
    return (
        f"mean wait {found['wait_s_mean']:,.0f} s, bounded slowdown"
        f" {found['bounded_slowdown_mean']:,.2f} ({found['engine']}, {result.cpu_s:.1f} s)"
        + "".join(f"; {doubt}" for doubt in result.doubts)
    )
