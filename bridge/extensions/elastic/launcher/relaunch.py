# SPDX-License-Identifier: Apache-2.0
"""Engine relaunch: all processes end and begin again, while their data stays in memory.

Rules
    1. When the program has parked its data and ended, it is started on its new nodes. A start that
       fails before the program has introduced itself is repeated, because Slurm refuses steps for a
       moment after it took a node.
    2. If it does not come back, it is started once more: at the old width after a growth, whose
       data are still in place; at the new one after a shrink, whose data have moved.
    3. If that fails, too, the job fails.
"""

from typing import Final

from bridge.extensions.elastic.launcher.core import Core
from bridge.extensions.elastic.launcher.record import (
    Done,
    Hello,
    LauncherStage,
    Parked,
    Step,
)
from bridge.extensions.elastic.lines import Grow

STARTS: Final = 4
"""How often a step is started."""


class Relaunch(Core):
    """From parked data to the program at its new width."""

    def _parked(self, _: Parked) -> None:
        self._to(LauncherStage.PARKED, self.limits.finish_s)

    def _park_late(self) -> None:
        """Ends a program that has parked its data but does not end."""
        for step in self.record.live("main"):
            self._stop(step, hard=True)
        self._to(LauncherStage.PARKED, self.limits.finish_s)

    def _restart(self, nodes: tuple[str, ...]) -> None:
        self.record.connected = False
        self._last_main().counts = False
        self._to(LauncherStage.RESTARTING, self.limits.restart_s)
        self._start_main(nodes)

    def _returned(self, event: Hello) -> None:
        self.record.connected = True
        nodes = self._last_main().nodes
        if event.size != self.tasks * len(nodes):
            self._app(op="end")
            self._restart_late()
        else:
            self.record.port = event.port
            self._app(op="start", engine=self.record.engine)

    def _back(self, _: Done) -> None:
        record = self.record
        record.nodes = self._last_main().nodes
        whole = record.nodes == record.target
        self._answer("done" if whole else "failed", record.why)

    def _restart_ended(self) -> None:
        record = self.record
        if record.connected or record.tries >= STARTS or record.retried:
            self._restart_late()
        else:
            lost = self._last_main()
            self._stop(lost, hard=True)  # its srun has ended, its processes may not have
            self._restart(lost.nodes)

    def _restart_late(self) -> None:
        record = self.record
        record.why = record.why or "The program did not come back at its new width."
        main = self._last_main()
        if main.code is None:
            self._stop(main, hard=True)
            self._to(LauncherStage.CLEARING, self.limits.stop_s)
        elif record.retried:
            main.counts = True
            record.code = record.code or 1
            self._finish()
        else:
            record.retried = True
            self._say(f"change {record.serial}: {record.why} It is started once more.")
            self._restart(record.nodes if isinstance(record.change, Grow) else record.target)

    def _clear_late(self) -> None:
        self._stop(self._last_main(), hard=True)
        self._to(LauncherStage.CLEARING, self.limits.stop_s)

    def _parks(self, step: Step) -> bool:
        return self.record.engine == "relaunch" and step.code == 0
