# SPDX-License-Identifier: Apache-2.0
"""The thread of the agent that keeps shares; it starts the guardian with the first of them."""

import contextlib
import logging
import subprocess
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from bridge.agent.job_folders import FOLDER
from bridge.agent.processes import Processes
from bridge.agent.use.cgroups import ROOT
from bridge.extensions.sharing.on_nodes.keeper import LOOK_S, ShareInForce, ShareKeeper
from bridge.extensions.sharing.on_nodes.record import ShareRecord
from bridge.extensions.sharing.on_nodes.wanted import Share
from bridge.interpreter import python

_log = logging.getLogger(__name__)

OnApplied = Callable[[int, tuple[ShareInForce, ...]], object]


class ShareThread:
    """Shares of this machine, kept by a separate thread, which a busy event loop does not delay."""

    def __init__(
        self,
        nodes: Sequence[str],
        record: Path,
        processes: Processes,
        *,
        cpus: float = 0.0,
        root: Path = ROOT,
        folders: Path = FOLDER,
        changed: OnApplied | None = None,
    ) -> None:
        """Prepares it.

        Args:
            record: file of the shares in force, in a directory of root's.
            cpus: the CPUs of a node; 0: those that this process may use.
            folders: directory of the jobs' folders.
            changed: called by the thread when the shares in force have changed, with the number of
                the last order and what was done.
        """
        self._nodes, self._root, self._cpus = tuple(nodes), root, cpus
        self._folders = folders
        self._record = ShareRecord(record)
        self._processes, self._changed = processes, changed
        self._keeper: ShareKeeper | None = None
        self._guardian: subprocess.Popen[bytes] | None = None
        self._woken, self._stopped = threading.Event(), threading.Event()
        self._order: tuple[int, float, tuple[Share, ...]] | None = None
        self._sequence = 0
        self._guarded = False
        self._thread = threading.Thread(target=self._run, name="shares", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread; the guardian then puts the fallback shares in force."""
        self._stopped.set()
        self._woken.set()
        if self._thread.is_alive():
            self._thread.join(timeout=5)
        if self._guardian is not None and self._guardian.stdin is not None:
            with contextlib.suppress(OSError):
                self._guardian.stdin.close()

    def begin(self) -> None:
        """A new service numbers its orders from the start."""
        self._sequence = 0
        if self._keeper is not None:
            self._keeper.begin()

    def order(self, sequence: int, lease_s: float, shares: Iterable[Share]) -> None:
        """Takes an order (`ShareKeeper.order`)."""
        order = sequence, lease_s, tuple(shares)
        self._guarded |= bool(order[2])
        if self._keeper is None:
            self._order = order
        elif not self._keeper.order(*order):
            _log.warning("order %d of shares is ignored: it is old, or too long", sequence)
            return
        self._sequence = sequence
        self._woken.set()

    def _run(self) -> None:
        last: tuple[int, tuple[ShareInForce, ...]] = (0, ())
        while not self._stopped.is_set():
            try:
                if self._keeper is None and not self._take():
                    continue
                assert self._keeper is not None
                self._feed()  # before anything is in force that would have to be undone
                found = self._sequence, self._keeper.look()
                if found != last:
                    last = found
                    if self._changed is not None:
                        self._changed(*found)
                self._feed()
            except Exception:
                _log.exception("shares cannot be kept")
            finally:
                self._woken.wait(LOOK_S)
                self._woken.clear()

    def _take(self) -> bool:
        """Becomes the keeper, once the guardian of the previous agent has released the lock."""
        if not self._record.take():
            return False
        self._keeper = ShareKeeper(
            self._nodes, self._record, self._processes, root=self._root, cpus=self._cpus
        )
        if self._order is not None:
            self._keeper.order(*self._order)
        return True

    def _feed(self) -> None:
        """Signals the guardian that the agent runs; starts one when there is something to guard."""
        guardian = self._guardian
        if guardian is None or guardian.poll() is not None:
            if not self._guarded and (self._keeper is None or self._keeper.is_idle):
                return
            self._guardian = guardian = self._start_guardian()
        assert guardian.stdin is not None
        with contextlib.suppress(OSError):
            guardian.stdin.write(b".")
            guardian.stdin.flush()

    def _start_guardian(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            python(  # it runs as root: also without the paths and settings of PYTHON* and of a home
                "-I", "-m", "bridge.extensions.sharing.on_nodes.guardian",
                str(self._record.path), str(self._root), str(self._folders), str(self._cpus),
                *self._nodes,
            ),
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
