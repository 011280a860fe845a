# SPDX-License-Identifier: Apache-2.0
"""What a launcher does about every event, for MPI programs: a table of stages and events.

`handle` changes the record and returns what is to be done; it touches nothing else, so that tests
play any order of events, deaths and delays. An event that the table does not list for a stage is
late or repeated, and is ignored.

Rules
    1. A change is refused unless it fits the nodes where the processes run; one at a time.
    2. Grow by join: start the new processes (STARTING), tell the program when they are ready
       (ASKED), let it begin (GOING). Until it begins, everything can be called off: the new
       processes are ended (UNDOING).
    3. Shrink by join: tell the program, let it begin, wait for those that leave (LEAVING).
    4. Relaunch: tell the program, let it begin; its processes park their data and end (PARKED), and
       it is started at the new width (RESTARTING). If it does not come back, it is started once
       more: at the old width after a grow, at the new one after a shrink, whose data has moved.
    5. A step that ends with a code other than 0 ends the job, unless its start was being undone.

Deadlines are in `Limits`. Each stage with a deadline has one way back, in `LATE`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from bridge.elastic.launcher.record import (
    Action,
    Begin,
    Bye,
    Cancelled,
    Done,
    Ended,
    Event,
    Finish,
    Hello,
    Left,
    Parked,
    Ready,
    Record,
    Say,
    Stage,
    Start,
    Step,
    Stop,
    TellAgent,
    TellApp,
    Tested,
    Tick,
)
from bridge.elastic.lines import VERSION, Attach, Bounds, Grow, Progress, Result, Shrink, Withdraw

KEPT: Final = 100
"""Results that are remembered, for agents that ask again."""
STARTS: Final = 4
"""How often new processes are started: Slurm refuses steps for a moment after it took a node."""


@dataclass(frozen=True)
class Limits:
    """How long each stage may last, s. STARTING and ASKED have the time that the agent gave."""

    test_s: float = 40.0
    leave_s: float = 15.0
    stop_s: float = 6.0
    """From the request to end until it is made to."""
    restart_s: float = 120.0
    finish_s: float = 30.0


class Machine:
    """The launcher's decisions."""

    def __init__(
        self, record: Record, tasks: int, park: str, limits: Limits | None = None,
        *, workers: bool = False,
    ) -> None:  # fmt: skip
        """Makes it of a record, new or old.

        Args:
            record: its memory, which it changes.
            tasks: processes per node.
            park: beginning of the names of folders in memory, e.g. /dev/shm/schedbridge-1000-41.
            limits: deadlines.
            workers: programs without MPI have a command to run on every node.
        """
        self.record, self.tasks, self.park = record, tasks, park
        self.limits, self.workers = limits or Limits(), workers
        self._now_s = 0.0
        self._out: list[Action] = []

    # ------------------------------------------------------------------ from outside

    def begin(self, now_s: float) -> list[Action]:
        """Starts the program."""
        self._now_s, self._out = now_s, []
        self._start_main(self.record.nodes)
        return self._out

    def resume(self, now_s: float) -> list[Action]:
        """Repeats what a launcher that was killed may not have done; none of it does harm twice."""
        record = self.record
        self._now_s, self._out = now_s, []
        for step in record.live():
            self._out.append(self._start(step))
            if step.stopped:
                self._out.append(Stop(step.name))
        if record.stage is Stage.LEAVING:  # who has gone meanwhile was not seen
            record.deadline_s = now_s + 1.0
        if record.stage is Stage.OVER:
            self._out.append(Finish(self._code()))
        return self._out

    def handle(self, event: Event, now_s: float) -> list[Action]:  # noqa: PLR0912 - one per event
        """Decides what to do about an event."""
        self._now_s, self._out = now_s, []
        record = self.record
        if isinstance(event, Tick):
            if record.deadline_s is not None and now_s >= record.deadline_s:
                record.deadline_s = None
                self.LATE[record.stage](self)
        elif isinstance(event, Ended):
            step = record.step(event.name)
            if step.code is None:
                step.code = event.code
                self._ended(step)
        elif isinstance(event, Grow | Shrink):
            self._asked(event)
        elif isinstance(event, Withdraw) and (
            record.change is None or record.change.id != event.id
        ):
            never = Result(event.id, "refused", "It was never asked for.", record.nodes)
            self._keep(record.results.get(event.id, never))
        elif found := self.TABLE.get((record.stage, type(event))):
            ours = str(record.serial)
            if isinstance(event, Withdraw) or getattr(event, "id", ours) == ours:
                found(self, event)
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
        if not record.engine or record.stage in (Stage.BOOT, Stage.TESTING, Stage.OVER):
            return None
        return Attach(VERSION, record.job, record.nodes, record.engine, record.change)

    # ------------------------------------------------------------------ the beginning

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
            self._to(Stage.TESTING, self.limits.test_s)
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
            self._to(Stage.BOOT)
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
        self._to(Stage.RUNNING)
        self._app(op="start", engine=self.record.engine)

    def _test_late(self) -> None:
        """The test hangs: the program, which waits inside it, is started anew without one."""
        record = self.record
        for step in record.live():
            step.counts = False
            self._stop(step, hard=True)
        self._say("engine relaunch: the self-test did not end")
        record.engine = "relaunch"
        self._to(Stage.BOOT)
        self._start_main(record.nodes)

    def _again(self) -> None:
        """The program has found a launcher that was restarted: it repeats what may be lost."""
        record = self.record
        if record.stage in (Stage.BOOT, Stage.TESTING, Stage.FINISHING, Stage.OVER):
            return
        self._app(op="start", engine=record.engine)
        if record.stage is Stage.ASKED:
            self._ask()

    # ------------------------------------------------------------------ a change

    def _asked(self, change: Grow | Shrink) -> None:
        record = self.record
        if change.id in record.results:
            self._out.append(TellAgent(record.results[change.id]))
            return
        if record.change is not None and record.change.id == change.id:
            return
        if record.stage is not Stage.RUNNING or record.bye:
            self._refuse(change, "The program ends." if record.bye else "Another change is made.")
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
        self._change()

    def _change(self) -> None:
        record, change = self.record, self.record.change
        assert change is not None
        grow = isinstance(change, Grow)
        self._say(
            f"change {record.serial}: {'grow' if grow else 'shrink'} from {len(record.nodes)} to "
            f"{len(record.target)} nodes within {change.within_s:g} s"
        )
        if isinstance(change, Grow) and record.engine == "join":
            self._to(Stage.STARTING, change.within_s)
            added = record.target[len(record.nodes) :]
            record.joiner = self._new("joiner", added)
            self._out.append(TellAgent(Progress(change.id, "starting")))
        else:
            self._to(Stage.ASKED, change.within_s)
            self._ask()

    def _ask(self) -> None:
        record, change = self.record, self.record.change
        assert change is not None
        self._app(
            op="adapt", id=str(record.serial), kind=change.op, nodes=record.target,
            park=f"{self.park}-{record.serial}",
            **({"add": change.add} if isinstance(change, Grow) else {"remove": change.remove}),
        )  # fmt: skip

    def _ready(self, _: Ready) -> None:
        self._to(Stage.ASKED, keep=True)
        self._ask()

    def _go(self, event: Begin) -> None:
        record = self.record
        if record.stage is Stage.ASKED and record.change is not None:
            self._out.append(TellAgent(Progress(record.change.id, "window")))
        self._to(Stage.GOING)
        self._app(op="go", id=event.id)

    def _done(self, event: Done) -> None:
        record = self.record
        failed = [step for step in record.steps if step.counts and step.code]
        record.nodes = record.target
        record.left += event.left
        if failed:
            self._finish()
        elif record.left > 0:
            self._to(Stage.LEAVING, self.limits.leave_s)
        else:
            self._answer("done", "")

    def _left(self, _: Left) -> None:
        record = self.record
        record.left -= 1
        if record.stage is Stage.LEAVING and record.left <= 0:
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
        """Nothing has changed yet: the new processes end, if there are any."""
        record = self.record
        if record.stage is Stage.ASKED:
            self._app(op="withdraw", id=str(record.serial))
        record.why = why
        joiner = record.step(record.joiner) if record.joiner else None
        if joiner is not None:
            joiner.counts = False
        if joiner is None or joiner.code is not None:
            self._answer("refused", why)
            return
        self._to(Stage.UNDOING, self.limits.stop_s)
        self._stop(joiner)

    def _undo_late(self) -> None:
        self._stop(self.record.step(self.record.joiner), hard=True)
        self._to(Stage.UNDOING, self.limits.stop_s)

    def _refuse(self, change: Grow | Shrink, why: str) -> None:
        self._keep(Result(change.id, "refused", why, self.record.nodes))

    def _answer(self, outcome: str, why: str) -> None:
        record = self.record
        if record.change is not None:
            what = {"done": "done", "refused": "not done", "failed": "failed"}[outcome]
            self._say(f"change {record.serial}: {what}" + (f" ({why.rstrip('.')})" if why else ""))
            self._keep(Result(record.change.id, outcome, why, record.nodes))
        record.change, record.target = None, ()
        self._to(Stage.RUNNING)

    def _keep(self, result: Result) -> None:
        results = self.record.results
        results[result.id] = result
        while len(results) > KEPT:
            del results[next(iter(results))]
        self._out.append(TellAgent(result))

    # ------------------------------------------------------------------ relaunch

    def _parked(self, _: Parked) -> None:
        self._to(Stage.PARKED, self.limits.finish_s)

    def _park_late(self) -> None:
        """Its data is safe, but it does not end: it is made to."""
        for step in self.record.live("main"):
            self._stop(step, hard=True)
        self._to(Stage.PARKED, self.limits.finish_s)

    def _restart(self, nodes: tuple[str, ...]) -> None:
        self.record.connected = False
        self._last_main().counts = False
        self._to(Stage.RESTARTING, self.limits.restart_s)
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
            self._restart(self._last_main().nodes)

    def _restart_late(self) -> None:
        record = self.record
        record.why = record.why or "The program did not come back at its new width."
        main = self._last_main()
        if main.code is None:
            self._stop(main, hard=True)
            self._to(Stage.CLEARING, self.limits.stop_s)
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
        self._to(Stage.CLEARING, self.limits.stop_s)

    # ------------------------------------------------------------------ the end

    def _ended(self, step: Step) -> None:  # noqa: PLR0912 - one line for each kind of step
        record, stage = self.record, self.record.stage
        if step.role == "test":
            if stage is Stage.TESTING:
                self._choose(joined=False)
        elif stage is Stage.UNDOING and step.name == record.joiner:
            self._answer("refused", record.why)
        elif not step.counts:
            pass
        elif step.name == record.joiner and stage is Stage.STARTING and record.tries < STARTS:
            step.counts = False
            record.joiner = self._new("joiner", step.nodes)
        elif step.name == record.joiner and stage in (Stage.STARTING, Stage.ASKED):
            self._call_off(f"The new processes ended with code {step.code}.")
        elif step.name == record.joiner and stage is Stage.GOING:
            pass  # accept fails, or `done` finds its code
        elif step.role == "main" and stage is Stage.PARKED:
            self._restart(record.target)
        elif step.role == "main" and stage is Stage.GOING and self._parks(step):
            self._restart(record.target)  # it said so to a launcher that was killed
        elif step.role == "main" and stage is Stage.RESTARTING:
            self._restart_ended()
        elif step.role == "main" and stage is Stage.CLEARING:
            self._restart_late()
        elif step.role == "main" and stage is Stage.TESTING and step.code:
            self._test_late()
        elif step.code:
            self._finish()
        elif not record.live():
            self._over()
        elif step.role == "main":
            self._finish()
        if record.stage is Stage.FINISHING and not record.live():
            self._over()

    def _parks(self, step: Step) -> bool:
        return self.record.engine == "relaunch" and step.code == 0

    def _finish(self) -> None:
        """The job ends: with all its processes, or because some of them failed."""
        record = self.record
        if record.change is not None:
            what = (record.change, "failed", "The program ended.")
            self._keep(Result(what[0].id, what[1], what[2], record.nodes))
            for step in record.live():
                if step.name == record.joiner:
                    step.counts = False
                    self._stop(step)
            if record.engine == "relaunch" and record.stage is not Stage.ASKED:
                self._new("clean", tuple(dict.fromkeys(record.nodes + record.target)), counts=False)
            record.change = None
        self._to(Stage.FINISHING, 1.0 if self._code() else self.limits.finish_s)
        if not record.live():
            self._over()

    def _finish_late(self) -> None:
        live = self.record.live()
        for step in live:
            self._stop(step, hard=step.stopped)
        self._to(Stage.FINISHING, self.limits.stop_s)

    def _over(self) -> None:
        self._to(Stage.OVER)
        self._out.append(Finish(self._code()))

    def _code(self) -> int:
        codes = [abs(step.code or 0) for step in self.record.steps if step.counts]
        return max(codes, default=0) or self.record.code

    # ------------------------------------------------------------------ words

    def _to(self, stage: Stage, within_s: float | None = None, *, keep: bool = False) -> None:
        self.record.stage = stage
        if not keep:
            self.record.deadline_s = None if within_s is None else self._now_s + within_s

    def _app(self, **said: Any) -> None:
        self._out.append(TellApp(tuple(said.items())))

    def _say(self, text: str) -> None:
        self._out.append(Say(text))

    def _last_main(self) -> Step:
        return [step for step in self.record.steps if step.role == "main"][-1]

    def _start_main(self, nodes: tuple[str, ...]) -> None:
        self._new("main", nodes)

    def _new(self, role: str, nodes: tuple[str, ...], *, counts: bool = True) -> str:
        record = self.record
        step = Step(f"{role}-{len(record.steps) + 1}", role, nodes, counts=counts)
        record.steps.append(step)
        record.tries += 1
        self._out.append(self._start(step))
        return step.name

    def _start(self, step: Step) -> Start:
        """What starts a step; made of the record alone, so that a restarted launcher repeats it."""
        record = self.record
        tasks = 2 if step.role == "test" else self.tasks * len(step.nodes)
        back = step.role == "clean" or (step.role == "main" and record.change is not None)
        env = {
            "ROLE": step.role,
            "SIZE": str(tasks),
            "PORT": record.port if step.role in ("test", "joiner") else "",
            "ID": str(record.serial),
            "ENGINE": record.engine,
            "PARKED": f"{self.park}-{record.serial}" if back else "",
        }
        again = record.change is not None and step.role in ("main", "joiner")
        pause_s = 0.4 * max(record.tries - 1, 0) if again else 0.0
        return Start(step.name, step.role, step.nodes, record.mpi, tuple(env.items()), pause_s)

    def _stop(self, step: Step, *, hard: bool = False) -> None:
        step.stopped = True
        self._out.append(Stop(step.name, hard))

    TABLE: ClassVar[dict[tuple[Stage, type], Callable[[Any, Any], None]]] = {
        (Stage.BOOT, Hello): _hello,
        (Stage.TESTING, Tested): _tested,
        (Stage.STARTING, Ready): _ready,
        (Stage.STARTING, Withdraw): _withdraw,
        (Stage.ASKED, Begin): _go,
        (Stage.ASKED, Withdraw): _withdraw,
        (Stage.ASKED, Cancelled): _cancelled,
        (Stage.GOING, Begin): _go,
        (Stage.GOING, Done): _done,
        (Stage.GOING, Cancelled): _cancelled,
        (Stage.GOING, Parked): _parked,
        (Stage.GOING, Left): _left,
        (Stage.LEAVING, Left): _left,
        (Stage.RESTARTING, Hello): _returned,
        (Stage.RESTARTING, Done): _back,
    }
    LATE: ClassVar[dict[Stage, Callable[[Any], None]]] = {
        Stage.TESTING: _test_late,
        Stage.STARTING: _start_late,
        Stage.ASKED: _ask_late,
        Stage.LEAVING: _leave_late,
        Stage.UNDOING: _undo_late,
        Stage.PARKED: _park_late,
        Stage.RESTARTING: _restart_late,
        Stage.CLEARING: _clear_late,
        Stage.FINISHING: _finish_late,
    }
