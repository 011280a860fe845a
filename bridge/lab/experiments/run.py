# SPDX-License-Identifier: Apache-2.0
"""Computes the cells that are missing, and keeps each result as soon as it is there.

Rules
    1. Only as many cells are with Dask as keep its workers busy.
    2. A cell that raises is tried again `retries` times, by Dask; one whose worker dies, too
       (Dask's `allowed-failures`). Then its result is that it failed, with the reason. A result
       that a dying worker held is computed again, and so is what was with Dask when the connection
       to its scheduler was lost, which Dask tries to make again.
    3. Asked to stop once: no further cell is begun, and those that are being computed are waited
       for, unless the connection is lost. Asked twice: they are abandoned. What is kept is whole in
       all cases.
"""

import contextlib
import queue
import signal
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from bridge.errors import Unreachable
from bridge.lab.experiments.cell import Cell
from bridge.lab.experiments.results import FAILED, CellResult, write_packed

Compute = Callable[[Any], tuple[CellResult, bytes | None]]
"""What a worker runs: an order in, the result and its packed columns out."""

_TICK_S: Final = 0.25
_COUNTING_S: Final = 2.0
_FETCHING_S: Final = 10.0
_ERROR_LINES: Final = 12


@dataclass
class Stop:
    """How often the user asked to stop."""

    requested: int = 0


@dataclass(frozen=True)
class RunStatus:
    """The state of a run, for display.

    Attributes:
        workers: threads that compute.
        running: cells with Dask.
        left: cells that are not finished.
        stopping: the user asked to stop.
        result: that has just been kept; None.
        connecting: the connection to the scheduler was lost and is being made again.
    """

    workers: int
    running: int
    left: int
    stopping: bool
    result: CellResult | None = None
    connecting: bool = False


Observe = Callable[[RunStatus], None]


@contextmanager
def interruptible() -> Iterator[Stop]:
    """While the block runs, SIGINT and SIGTERM ask to stop."""
    stop = Stop()

    def ask(*_: object) -> None:
        stop.requested += 1

    before = {each: signal.signal(each, ask) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def run(
    client: Any,
    orders: Sequence[tuple[Cell, Any]],
    compute: Compute,
    folder: Path,
    *,
    retries: int,
    observe: Observe,
    stop: Stop,
    provenance: Callable[[], dict[str, Any]] = dict,
) -> list[CellResult]:
    """Computes cells and keeps their results.

    Args:
        client: the client of Dask (`bridge.lab.experiments.workers`).
        orders: each cell, and what `compute` is given for it.
        compute: a function that workers can import.
        retries: rule 2.
        observe: called several times a second, and with every result.
        stop: rule 3.
        provenance: that of results of cells that failed without one.

    Returns:
        The results in order of completion.

    Raises:
        Unreachable: the scheduler is gone.
    """
    return _Run(client, orders, compute, folder, retries, observe, stop, provenance).to_the_end()


@dataclass
class _Run:
    client: Any
    orders: Sequence[tuple[Cell, Any]]
    compute: Compute
    folder: Path
    retries: int
    observe: Observe
    stop: Stop
    provenance: Callable[[], dict[str, Any]]
    flying: dict[str, tuple[Any, Cell]] = field(default_factory=dict)
    done: "queue.SimpleQueue[Any]" = field(default_factory=queue.SimpleQueue)
    workers: int = 0
    _counted_s: float = -_COUNTING_S
    _recalled: bool = False

    def to_the_end(self) -> list[CellResult]:
        waiting = list(reversed(self.orders))
        found: list[CellResult] = []
        while self.flying or (waiting and not self.stop.requested):
            self._count()
            if self.stop.requested > 1:
                self._drop(self.flying)
                break
            if self.stop.requested:
                self._recall()
            else:
                while waiting and len(self.flying) < 2 * max(self.workers, 1) + 2:
                    self._submit(*waiting.pop())
            for future in self._finished():
                result = self._taken(future)
                if result is not None:
                    found.append(result)
                    self._show(len(waiting), result)
            self._show(len(waiting))
        return found

    def _show(self, waiting: int, result: CellResult | None = None) -> None:
        running = len(self.flying)
        connecting = self.client.status == "connecting"
        self.observe(
            RunStatus(self.workers, running, waiting + running, self._recalled, result, connecting)
        )

    def _count(self) -> None:
        """Workers come and go.

        Raises:
            Unreachable: the scheduler is gone.
        """
        if self.client.status == "connecting":  # again; if it cannot, Dask closes the client
            self.workers = 0
            return
        if self.client.status not in ("running", "newly-created"):
            raise Unreachable(
                f"the Dask scheduler is gone ({self.client.status}): what was computed is kept; run"
                " the experiment again to continue"
            )
        if time.monotonic() - self._counted_s < _COUNTING_S and self.workers:
            return
        self._counted_s = time.monotonic()
        with contextlib.suppress(OSError, TimeoutError):
            self.workers = sum(self.client.nthreads().values())

    def _submit(self, cell: Cell, order: Any) -> None:
        future = self.client.submit(
            self.compute, order, key=f"cell-{cell.key[:24]}", retries=self.retries, pure=False
        )
        self.flying[future.key] = future, cell
        future.add_done_callback(self.done.put)

    def _finished(self) -> Iterable[Any]:
        """Futures that are done, after a tick at most."""
        with contextlib.suppress(queue.Empty):
            yield self.done.get(timeout=_TICK_S)
            while True:
                yield self.done.get_nowait()

    def _taken(self, future: Any) -> CellResult | None:
        """Keeps the result of a future; None: it has none (yet).

        Raises:
            OSError: it cannot be written.
        """
        held = self.flying.get(future.key)
        if held is None:
            return None
        cell = held[1]
        try:
            result, arrays = self._result(future, cell)
        except CancelledError:  # not by us: the scheduler was restarted, or its connection lost
            del self.flying[future.key]
            if not self.stop.requested:
                self._submit(*next(order for order in self.orders if order[0] is cell))
            return None
        except TimeoutError:  # its worker has died, and Dask computes it again; or see _result
            future.add_done_callback(self.done.put)
            return None
        del self.flying[future.key]
        future.release()
        write_packed(self.folder, result, arrays)
        return result

    def _result(self, future: Any, cell: Cell) -> tuple[CellResult, bytes | None]:
        """The result of a future that is done.

        Raises:
            CancelledError: it was cancelled.
            TimeoutError: it has got lost meanwhile, or the connection to the scheduler has.
        """
        if future.status == "cancelled":
            raise CancelledError
        if future.status == "error":
            told = _told(future, self.retries)
            return CellResult(cell, FAILED, provenance=self.provenance(), error=told), None
        if future.status != "finished":
            raise TimeoutError
        try:
            found: tuple[CellResult, bytes | None] = future.result(timeout=_FETCHING_S)
        except OSError:
            raise TimeoutError from None
        return found

    def _recall(self) -> None:
        """Takes back what no worker has begun."""
        if self._recalled or self.client.status == "connecting":
            return
        try:
            processing = self.client.processing()
        except OSError:  # the connection was lost: again later
            return
        self._recalled = True
        begun = {key for keys in processing.values() for key in keys}
        self._drop({key: held for key, held in self.flying.items() if key not in begun})

    def _drop(self, cells: dict[str, tuple[Any, Cell]]) -> None:
        for key, (future, _) in list(cells.items()):
            self.flying.pop(key, None)
            future.cancel(reason="the experiment was stopped")


def _told(future: Any, retries: int) -> str:
    """Why a cell failed, in words."""
    error = future.exception()
    if type(error).__name__ == "KilledWorker":
        return (
            f"the worker that computed it died, {retries + 1} times of {retries + 1}: killed from"
            " outside, out of memory, or by the cell itself"
        )
    lines = traceback.format_exception(type(error), error, future.traceback())
    tail = "".join(lines).rstrip().splitlines()[-_ERROR_LINES:]
    return "\n".join([f"{type(error).__name__}: {error}", *tail])
