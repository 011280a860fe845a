# SPDX-License-Identifier: Apache-2.0
"""The launcher's reactions to events, for MPI programs: a table of stages and events.

`handle` changes the record and returns the actions; it has no other effects, so that tests can play
any order of events, deaths and delays. An event that the table does not list for a stage is late or
repeated, and is ignored.

Rules
    1. A change is refused unless it fits the nodes where the processes run; one at a time.
    2. Grow by join: start the new processes (STARTING), tell the program when they are ready
       (REQUESTED), let it begin (GOING). Until it begins, the change can be cancelled: the new
       processes are ended (UNDOING).
    3. Shrink by join: tell the program, let it begin, wait for those that leave (LEAVING).
    4. Relaunch: tell the program, let it begin; its processes park their data and end (PARKED), and
       it is started at the new width (RESTARTING). If it does not come back, it is started once
       more: at the old width after a grow, at the new one after a shrink, whose data has moved.
    5. A step that ends with a code other than 0 ends the job, unless its start was being undone.

Deadlines are in `StageLimits` (core.py). Each stage with a deadline has one way back, in `LATE`.
The beginning is in boot.py, rule 4 in relaunch.py.
"""

from typing import ClassVar

from bridge.extensions.elastic.launcher.boot import Boot
from bridge.extensions.elastic.launcher.core import StageLimits
from bridge.extensions.elastic.launcher.record import (
    Begin,
    Bye,
    Cancelled,
    Done,
    Event,
    Finish,
    Hello,
    LauncherAction,
    LauncherStage,
    Left,
    Parked,
    Ready,
    Step,
    StepEnded,
    StopStep,
    TellAgent,
    Tested,
    Tick,
)
from bridge.extensions.elastic.launcher.relaunch import STARTS, Relaunch
from bridge.extensions.elastic.lines import (
    VERSION,
    Attach,
    Bounds,
    Grow,
    Progress,
    Result,
    Shrink,
    Withdraw,
)

__all__ = ["MpiLauncher", "StageLimits"]


class MpiLauncher(Boot, Relaunch):
    """The launcher's decisions for MPI programs."""

    # ------------------------------------------------------------------ from outside

    def begin(self, now_s: float) -> list[LauncherAction]:
        """Starts the program."""
        self._now_s, self._out = now_s, []
        self._start_main(self.record.nodes)
        return self._out

    def resume(self, now_s: float) -> list[LauncherAction]:
        """Repeats actions that a killed launcher may not have done; all of them may be repeated."""
        record = self.record
        self._now_s, self._out = now_s, []
        for step in record.live():
            self._out.append(self._start(step))
            if step.stopped:
                self._out.append(StopStep(step.name))
        if record.stage is LauncherStage.LEAVING:  # who has gone meanwhile was not seen
            record.deadline_s = now_s + 1.0
        if record.stage is LauncherStage.OVER:
            self._out.append(Finish(self._code()))
        return self._out

    def handle(self, event: Event, now_s: float) -> list[LauncherAction]:  # noqa: PLR0912 - one per event
        """Decides what to do about an event."""
        self._now_s, self._out = now_s, []
        record = self.record
        if isinstance(event, Tick):
            if record.deadline_s is not None and now_s >= record.deadline_s:
                record.deadline_s = None
                getattr(self, self.LATE[record.stage])()
        elif isinstance(event, StepEnded):
            step = record.step(event.name)
            if step.code is None:
                step.code = event.code
                self._ended(step)
        elif isinstance(event, Grow | Shrink):
            self._requested(event)
        elif isinstance(event, Withdraw) and (
            record.change is None or record.change.id != event.id
        ):
            never = Result(event.id, "refused", "It was never requested.", record.nodes)
            self._keep(record.results.get(event.id, never))
        elif found := self.TABLE.get((record.stage, type(event))):
            ours = str(record.serial)
            if isinstance(event, Withdraw) or getattr(event, "id", ours) == ours:
                getattr(self, found)(event)
            elif isinstance(event, Begin):
                self._app(op="no", id=event.id)
        elif isinstance(event, Begin):
            self._app(op="no", id=event.id)
        elif isinstance(event, Hello):
            self._again()
        elif isinstance(event, Bye):
            record.bye = True
        elif isinstance(event, Bounds):
            self._out.append(TellAgent(event))
        return self._out

    def attach(self) -> Attach | None:
        """The first line to an agent; none while the program has no engine."""
        record = self.record
        if not record.engine or record.stage in (
            LauncherStage.BOOT,
            LauncherStage.TESTING,
            LauncherStage.OVER,
        ):
            return None
        return Attach(VERSION, record.job, record.nodes, record.engine, record.change)

    # ------------------------------------------------------------------ a change

    def _requested(self, change: Grow | Shrink) -> None:
        record = self.record
        if change.id in record.results:
            self._out.append(TellAgent(record.results[change.id]))
            return
        if record.change is not None and record.change.id == change.id:
            return
        if record.stage is not LauncherStage.RUNNING or record.bye:
            self._refuse(
                change, "The program ends." if record.bye else "Another change is under way."
            )
            return
        if self.unfit:
            self._refuse(change, self.unfit)
            return
        held = set(record.nodes)
        fits = change.nodes[0] == record.nodes[0]
        if isinstance(change, Grow):
            fits = fits and set(change.nodes) - set(change.add) == held
            record_target = record.nodes + tuple(n for n in change.nodes if n in change.add)
        else:
            fits = fits and set(change.nodes) | set(change.remove) == held
            record_target = tuple(node for node in record.nodes if node not in change.remove)
        if not fits:
            self._refuse(change, "It does not fit the nodes where the processes run.")
            return
        record.change, record.target = change, record_target
        record.serial += 1
        record.why, record.retried, record.left = "", False, 0
        record.joiner, record.tries = "", 0
        record.since_s, record.spent_s = self._now_s, {}
        self._change()

    def _change(self) -> None:
        record, change = self.record, self.record.change
        assert change is not None
        self._say_begin(change)
        if isinstance(change, Grow) and record.engine == "join":
            self._to(LauncherStage.STARTING, change.within_s)
            added = record.target[len(record.nodes) :]
            record.joiner = self._new("joiner", added)
            self._out.append(TellAgent(Progress(change.id, "starting")))
        else:
            self._to(LauncherStage.REQUESTED, change.within_s)
            self._ask()

    def _ready(self, _: Ready) -> None:
        self._to(LauncherStage.REQUESTED, keep=True)
        self._ask()

    def _go(self, event: Begin) -> None:
        record = self.record
        if record.stage is LauncherStage.REQUESTED and record.change is not None:
            self._out.append(TellAgent(Progress(record.change.id, "window")))
        self._to(LauncherStage.GOING)
        self._app(op="go", id=event.id)

    def _done(self, event: Done) -> None:
        record = self.record
        failed = [step for step in record.steps if step.counts and step.code]
        record.nodes = record.target
        record.left += event.left
        if failed:
            self._finish()
        elif record.left > 0:
            self._to(LauncherStage.LEAVING, self.limits.leave_s)
        else:
            self._answer("done", "")

    def _left(self, _: Left) -> None:
        record = self.record
        record.left -= 1
        if record.stage is LauncherStage.LEAVING and record.left <= 0:
            self._answer("done", "")

    def _leave_late(self) -> None:
        self._answer("done", "Processes that left were not seen to end.")

    def _cancelled(self, event: Cancelled) -> None:
        self._call_off(event.reason)

    def _withdraw(self, _: Withdraw) -> None:
        self._call_off("It was withdrawn.")

    def _ask_late(self) -> None:
        self._call_off("The program did not come to a probe in time.")

    def _start_late(self) -> None:
        self._call_off("The new processes were not ready in time.")

    def _call_off(self, why: str) -> None:
        """Cancels a change before it has begun: new processes, if any, are ended."""
        record = self.record
        if record.stage is LauncherStage.REQUESTED:
            self._app(op="withdraw", id=str(record.serial))
        record.why = why
        joiner = record.step(record.joiner) if record.joiner else None
        if joiner is not None:
            joiner.counts = False
        if joiner is None or joiner.code is not None:
            self._answer("refused", why)
            return
        self._to(LauncherStage.UNDOING, self.limits.stop_s)
        self._stop(joiner)

    def _undo_late(self) -> None:
        self._stop(self.record.step(self.record.joiner), hard=True)
        self._to(LauncherStage.UNDOING, self.limits.stop_s)

    def _refuse(self, change: Grow | Shrink, why: str) -> None:
        self._keep(Result(change.id, "refused", why, self.record.nodes))

    # ------------------------------------------------------------------ the end of a step

    def _ended(self, step: Step) -> None:
        record, joins = self.record, step.name == self.record.joiner
        if step.role == "test":
            if record.stage is LauncherStage.TESTING:
                self._choose(joined=False)
        elif joins and record.stage is LauncherStage.UNDOING:
            self._answer("refused", record.why)
        elif step.counts:
            expected = self._joiner_ended(step) if joins else self._main_ended(step)
            if not expected:
                self._program_ended(step)
        if record.stage is LauncherStage.FINISHING and not record.live():
            self._over()

    def _joiner_ended(self, step: Step) -> bool:
        """New processes have ended; returns whether a change was under way that wanted them."""
        record, stage = self.record, self.record.stage
        if stage is LauncherStage.STARTING and record.tries < STARTS:
            step.counts = False
            self._stop(step, hard=True)  # its srun has ended, its processes may not have
            record.joiner = self._new("joiner", step.nodes)
        elif stage in (LauncherStage.STARTING, LauncherStage.REQUESTED):
            self._call_off(f"The new processes ended with code {step.code}.")
        # While the change goes on, accept fails, or `done` finds the code.
        return stage in (LauncherStage.STARTING, LauncherStage.REQUESTED, LauncherStage.GOING)

    def _main_ended(self, step: Step) -> bool:
        """Processes have ended; returns whether those of the program, for a restart or a test."""
        record, stage = self.record, self.record.stage
        if step.role != "main":
            return False
        if stage is LauncherStage.PARKED or (stage is LauncherStage.GOING and self._parks(step)):
            self._restart(record.target)  # if it goes on, it said so to a launcher that was killed
        elif stage is LauncherStage.RESTARTING:
            self._restart_ended()
        elif stage is LauncherStage.CLEARING:
            self._restart_late()
        elif stage is LauncherStage.TESTING and step.code:
            self._test_late()
        else:
            return False
        return True

    def _program_ended(self, step: Step) -> None:
        """A step has ended for good: the program does, with the first or with a failure."""
        if not step.code and not self.record.live():
            self._over()
        elif step.code or step.role == "main":
            self._finish()

    TABLE: ClassVar[dict[tuple[LauncherStage, type], str]] = {
        (LauncherStage.BOOT, Hello): "_hello",
        (LauncherStage.TESTING, Tested): "_tested",
        (LauncherStage.STARTING, Ready): "_ready",
        (LauncherStage.STARTING, Withdraw): "_withdraw",
        (LauncherStage.REQUESTED, Begin): "_go",
        (LauncherStage.REQUESTED, Withdraw): "_withdraw",
        (LauncherStage.REQUESTED, Cancelled): "_cancelled",
        (LauncherStage.GOING, Begin): "_go",
        (LauncherStage.GOING, Done): "_done",
        (LauncherStage.GOING, Cancelled): "_cancelled",
        (LauncherStage.GOING, Parked): "_parked",
        (LauncherStage.GOING, Left): "_left",
        (LauncherStage.LEAVING, Left): "_left",
        (LauncherStage.RESTARTING, Hello): "_returned",
        (LauncherStage.RESTARTING, Done): "_back",
    }
    LATE: ClassVar[dict[LauncherStage, str]] = {
        LauncherStage.TESTING: "_test_late",
        LauncherStage.STARTING: "_start_late",
        LauncherStage.REQUESTED: "_ask_late",
        LauncherStage.LEAVING: "_leave_late",
        LauncherStage.UNDOING: "_undo_late",
        LauncherStage.PARKED: "_park_late",
        LauncherStage.RESTARTING: "_restart_late",
        LauncherStage.CLEARING: "_clear_late",
        LauncherStage.FINISHING: "_finish_late",
    }
