# SPDX-License-Identifier: Apache-2.0
"""The start of the program: the choice of --mpi, and the self-test that chooses the engine.

Rules
    1. The program is started under the first --mpi. If its processes do not see each other, it is
       told to end, and the next one is tried.
    2. A second step of two tasks of the same program is started on the first node (the library ends
       it). If these do not see each other, rule 1 applies, too.
    3. If it can connect to the first step, the engine is join, otherwise relaunch. If that hangs,
       the program is started again without a test, and the engine is relaunch.
"""

from bridge.extensions.elastic.launcher.core import Core
from bridge.extensions.elastic.launcher.record import (
    Hello,
    LauncherStage,
    Tested,
)


class Boot(Core):
    """From the first start to the choice of the engine."""

    def _hello(self, event: Hello) -> None:
        record = self.record
        record.connected = True
        if event.size != self.tasks * len(record.nodes):
            self._app(op="end")
            self._other_mpi(f"its {self.tasks * len(record.nodes)} processes do not see each other")
            return
        record.port = event.port
        if record.engine:
            self._run()
        elif not record.test_engine:
            self._choose(joined=False)
        else:
            self._to(LauncherStage.TESTING, self.limits.test_s)
            self._app(op="test") if event.port else None
            self._new("test", record.nodes[:1], counts=False)

    def _other_mpi(self, why: str) -> None:
        record = self.record
        for step in record.live():
            step.counts = False
            self._stop(step)
        if record.other_mpis:
            self._say(f"under --mpi={record.mpi} {why}: trying --mpi={record.other_mpis[0]}")
            record.mpi, *rest = record.other_mpis
            record.other_mpis = tuple(rest)
            self._to(LauncherStage.BOOT)
            self._start_main(record.nodes)
        else:
            self._say(f"under --mpi={record.mpi} {why}: is it the right --mpi for this program?")
            record.code = 1
            self._finish()

    def _tested(self, event: Tested) -> None:
        if event.size != 2:
            self._other_mpi("processes do not see each other")
        else:
            self._choose(event.joined)

    def _choose(self, joined: bool) -> None:
        record = self.record
        record.engine = "join" if joined else "relaunch"
        known = "can connect to running ones" if joined else "cannot connect to running ones"
        if record.test_engine:
            self._say(f"engine {record.engine}: by the self-test, new processes {known}")
        self._run()

    def _run(self) -> None:
        self._to(LauncherStage.RUNNING)
        self._app(op="start", engine=self.record.engine)

    def _test_late(self) -> None:
        """The test hangs: the program, which waits inside it, is started again without one."""
        record = self.record
        for step in record.live():
            step.counts = False
            self._stop(step, hard=True)
        self._say("engine relaunch: the self-test did not end")
        record.engine = "relaunch"
        self._to(LauncherStage.BOOT)
        self._start_main(record.nodes)

    def _again(self) -> None:
        """Handles a program that found a restarted launcher and repeats what may be lost."""
        record = self.record
        if record.stage in (
            LauncherStage.BOOT,
            LauncherStage.TESTING,
            LauncherStage.FINISHING,
            LauncherStage.OVER,
        ):
            return
        self._app(op="start", engine=record.engine)
        if record.stage is LauncherStage.REQUESTED:
            self._ask()
