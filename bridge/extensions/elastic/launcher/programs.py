# SPDX-License-Identifier: Apache-2.0
"""The launcher's decisions for programs without MPI: task farms, Dask, pools of processes.

The program itself is the step `main` on the first node. `--worker` names a command that runs on
each node, in a step of its own.

Rules
    1. Grow: workers are started on the new nodes. A connected program is asked, like MPI programs,
       and may cancel the change; one that is not connected is not asked.
    2. Shrink: a connected program is asked first; when it is done, the workers of these nodes get
       SIGTERM, and are killed if they do not end. A program that is not connected is not asked: its
       workers get SIGTERM at once, and have the whole time to finish their work. A worker that
       does not end in time keeps its node; when it ends later, another one is started there.
    3. Each change of the nodes in use replaces the file of nodes and sends `--signal`, if one is
       given, to the program.
    4. The job ends with the program, with its exit code.
"""

from typing import ClassVar

from bridge.extensions.elastic.launcher.machine import MpiLauncher
from bridge.extensions.elastic.launcher.record import (
    Done,
    Hello,
    LauncherAction,
    LauncherStage,
    Notify,
    Step,
    StopStep,
)
from bridge.extensions.elastic.lines import Grow


class ProgramMachine(MpiLauncher):
    """The launcher's decisions, for programs without MPI."""

    def begin(self, now_s: float) -> list[LauncherAction]:
        """Starts the program and its workers."""
        self._now_s, self._out = now_s, []
        record = self.record
        self._to(LauncherStage.RUNNING)
        self._new("main", record.nodes[:1])
        self._work(record.nodes)
        return self._out

    def _hello(self, _: Hello) -> None:
        self.record.connected = True
        self._again()

    def _work(self, nodes: tuple[str, ...]) -> None:
        if self.workers:
            for node in nodes:
                self._new("worker", (node,))

    def _workers(self, nodes: set[str]) -> list[Step]:
        return [step for step in self.record.live("worker") if set(step.nodes) <= nodes]

    def _change(self) -> None:
        record, change = self.record, self.record.change
        assert change is not None
        self._say_begin(change)
        if isinstance(change, Grow):
            self._work(record.target[len(record.nodes) :])
        if record.connected:
            self._to(LauncherStage.REQUESTED, change.within_s)
            self._ask()
        elif isinstance(change, Grow):
            self._done(Done(str(record.serial)))
        else:
            self._leave(change.within_s)

    def _done(self, _: Done) -> None:
        record = self.record
        if not isinstance(record.change, Grow):
            self._leave(self.limits.leave_s)
            return
        record.nodes = record.target
        self._out.append(Notify(self._last_main().name))
        self._answer("done", "")

    def _leave(self, within_s: float) -> None:
        """Ends the workers of nodes that are removed."""
        record = self.record
        leaving = self._workers(set(record.nodes) - set(record.target))
        self._to(LauncherStage.LEAVING, within_s)
        for step in leaving:
            self._stop(step)
        if not leaving:
            self._gone()

    def _gone(self) -> None:
        self.record.nodes = self.record.target
        self._out.append(Notify(self._last_main().name))
        self._answer("done", "")

    def _leave_late(self) -> None:
        record = self.record
        leaving = self._workers(set(record.nodes) - set(record.target))
        if record.connected:  # which has done without them already
            self._to(LauncherStage.LEAVING, self.limits.stop_s)
            for step in leaving:
                self._stop(step, hard=True)
            return
        self._answer("refused", "Workers did not end in time.")
        idle = set(record.nodes) - {node for step in record.live("worker") for node in step.nodes}
        self._work(tuple(node for node in record.nodes if node in idle))

    def _call_off(self, why: str) -> None:
        record = self.record
        if record.stage is LauncherStage.REQUESTED:
            self._app(op="withdraw", id=str(record.serial))
        record.why = why
        added = set(record.target) - set(record.nodes)
        undone = self._workers(added)
        if not undone:
            self._answer("refused", why)
            return
        self._to(LauncherStage.UNDOING, self.limits.stop_s)
        for step in undone:
            self._stop(step)

    def _undo_late(self) -> None:
        for step in self._workers(set(self.record.target) - set(self.record.nodes)):
            self._out.append(StopStep(step.name, hard=True))
        self._to(LauncherStage.UNDOING, self.limits.stop_s)

    def _ended(self, step: Step) -> None:
        record, stage = self.record, self.record.stage
        if step.role == "main":
            for worker in record.live("worker"):
                worker.counts = False
                self._stop(worker)
            self._finish()
            return
        step.counts = False
        kept = set(record.nodes) & set(record.target or record.nodes)
        again = step.stopped and stage is not LauncherStage.FINISHING and set(step.nodes) <= kept
        if again:
            self._work(step.nodes)  # it had been asked to end, and its node stayed
        if stage is LauncherStage.FINISHING:
            if not record.live():
                self._over()
        elif stage is LauncherStage.LEAVING:
            if not self._workers(set(record.nodes) - set(record.target)):
                self._gone()
        elif stage is LauncherStage.UNDOING:
            if not self._workers(set(record.target) - set(record.nodes)):
                self._answer("refused", record.why)
        elif step.code and not again:
            self._say(f"a worker on {step.nodes[0]} ended with code {step.code}")

    TABLE: ClassVar[dict[tuple[LauncherStage, type], str]] = {
        **MpiLauncher.TABLE,
        (LauncherStage.RUNNING, Hello): "_hello",
        (LauncherStage.REQUESTED, Hello): "_hello",
        (LauncherStage.GOING, Hello): "_hello",
        (LauncherStage.LEAVING, Hello): "_hello",
        (LauncherStage.UNDOING, Hello): "_hello",
    }
