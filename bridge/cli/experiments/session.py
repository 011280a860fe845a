# SPDX-License-Identifier: Apache-2.0
"""One run of an experiment: its missing cells, and further seeds until the intervals are narrow."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import Any

from rich.console import Console

from bridge.cli.experiments.grid import Grid
from bridge.cli.experiments.progress import Board
from bridge.cli.experiments.running import Order, compute
from bridge.cli.invocation import given_arguments
from bridge.errors import ResultError
from bridge.lab.experiments.cell import Cell
from bridge.lab.experiments.cost import Estimates
from bridge.lab.experiments.provenance import provenance, sources
from bridge.lab.experiments.results import CellResult
from bridge.lab.experiments.run import interruptible, run
from bridge.lab.experiments.until_sure import MAX_SEEDS, until_sure


class RunSession:
    """A run.

    Attributes:
        grid: the experiment, with the seeds that were added.
        found: results that were computed, in order of completion.
        words: what is known of the intervals; empty: nobody asked.
    """

    def __init__(
        self,
        grid: Grid,
        kept: Sequence[CellResult],
        estimates: Estimates,
        *,
        width: float | None,
        quiet: bool,
    ) -> None:
        """Computes nothing yet.

        Args:
            kept: results in its folder; failed ones are computed again.
            width: the width of the intervals that are wanted, a share; None: no seeds are added.
            quiet: no progress is shown.
        """
        self.grid, self.found, self.stopped, self.words = grid, list[CellResult](), False, ""
        self._kept = {result.cell.key: result for result in kept if result.done}
        self._width, self._arguments = width, tuple(given_arguments())
        console = Console(stderr=True, highlight=False, soft_wrap=True)
        self._board = Board(estimates, console, quiet=quiet)
        self._show(grid.cells)

    def compute(self, where: AbstractContextManager[Any]) -> None:
        """Computes what is missing.

        Args:
            where: gives a Dask client; entered if there is anything to compute.

        Raises:
            BridgeError: there is no client, or it is gone.
            OSError: a result cannot be kept.
        """
        with ExitStack() as stack:
            stop = stack.enter_context(interruptible())
            client: Any = None
            while True:
                if missing := self._missing():
                    if client is None:
                        client = stack.enter_context(where)
                        stack.enter_context(self._board.shown())
                    self.found += run(
                        client, [(cell, self._order(cell)) for cell in missing], compute,
                        self.grid.folder, retries=self.grid.definition.retries,
                        observe=self._board.observe, stop=stop,
                        provenance=lambda: provenance(self._arguments),
                    )  # fmt: skip
                self.stopped = stop.requested > 0
                if self.stopped or not self._more():
                    return

    def _order(self, cell: Cell) -> Order:
        return Order(cell, self._arguments, sources())

    def _missing(self) -> list[Cell]:
        there = self._kept.keys() | {result.cell.key for result in self.found}
        return [cell for cell in self.grid.cells if cell.key not in there]

    def _more(self) -> bool:
        """Adds seeds; False: there are enough, or they would not help."""
        if self._width is None:
            return False
        keys = {cell.key for cell in self.grid.cells}
        try:
            progress = until_sure(
                self.grid.folder,
                self._width,
                baseline="/".join(self.grid.baseline),
                wanted=lambda cell: cell.key in keys,
            )
        except ResultError as error:
            self.words = str(error)
            return False
        self.words = progress.words
        if not progress.more_seeds:
            return False
        # Seeds whose cells failed count, too: otherwise failing cells would go on without end.
        more = min(progress.more_seeds, MAX_SEEDS - len(self.grid.definition.seeds))
        if more <= 0:
            self.words = f"{progress.words.partition(';')[0]}; {MAX_SEEDS} seeds were tried"
            return False
        self._board.tell(progress.words)
        self.grid = self.grid.with_more_seeds(more)
        self._show([cell for cell in self.grid.cells if cell.key not in keys])
        return True

    def _show(self, cells: Sequence[Cell]) -> None:
        kept = [self._kept[cell.key] for cell in cells if cell.key in self._kept]
        self._board.add(cells, kept)
