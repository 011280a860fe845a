# SPDX-License-Identifier: Apache-2.0
"""The common part of the launcher's decisions: steps, answers, the end."""

from dataclasses import dataclass
from typing import Any, Final

from bridge.extensions.elastic.launcher.record import (
    Finish,
    LauncherAction,
    LauncherStage,
    LauncherState,
    Say,
    StartStep,
    Step,
    StopStep,
    TellAgent,
    TellApp,
)
from bridge.extensions.elastic.lines import Change, Grow, Result

KEPT: Final = 100
"""Results that are remembered, for agents that ask again."""


@dataclass(frozen=True)
class StageLimits:
    """Time limits of the stages, s. STARTING and REQUESTED have the time that the agent gave."""

    test_s: float = 40.0
    leave_s: float = 15.0
    stop_s: float = 6.0
    """From the request to end until it is made to."""
    restart_s: float = 120.0
    finish_s: float = 30.0


class Core:
    """A record, and the actions that an event leads to."""

    def __init__(
        self, record: LauncherState, tasks: int, park: str, limits: StageLimits | None = None,
        *, workers: bool = False,
    ) -> None:  # fmt: skip
        """Creates it from a record, new or old.

        Args:
            record: its memory, which it changes.
            tasks: processes per node.
            park: beginning of the names of folders in memory, e.g. /dev/shm/schedbridge-1000-41.
            workers: programs without MPI have a command to run on every node.
        """
        self.record, self.tasks, self.park = record, tasks, park
        self.limits, self.workers = limits or StageLimits(), workers
        self.unfit = ""
        """Why no change can begin now; empty: one can."""
        self._now_s = 0.0
        self._out: list[LauncherAction] = []

    def _to(
        self, stage: LauncherStage, within_s: float | None = None, *, keep: bool = False
    ) -> None:
        record, now_s = self.record, self._now_s
        spent_s = record.spent_s
        spent_s[record.stage.value] = spent_s.get(record.stage.value, 0.0) + now_s - record.since_s
        record.stage, record.since_s = stage, now_s
        if not keep:
            record.deadline_s = None if within_s is None else now_s + within_s

    def _app(self, **message: Any) -> None:
        self._out.append(TellApp(tuple(message.items())))

    def _say(self, text: str) -> None:
        self._out.append(Say(text))

    def _say_begin(self, change: Change) -> None:
        record = self.record
        self._say(
            f"change {record.serial}: {change.op} from {len(record.nodes)} to "
            f"{len(record.target)} nodes within {change.within_s:g} s"
        )

    def is_current(self, step: str) -> bool:
        """Whether a program in this step is accepted; one that does not name its step is.

        A step whose srun was killed can outlive its successor's start.
        """
        return not step or step == self._last_main().name

    def _last_main(self) -> Step:
        return [step for step in self.record.steps if step.role == "main"][-1]

    def _start_main(self, nodes: tuple[str, ...]) -> None:
        self._new("main", nodes)

    def _new(self, role: str, nodes: tuple[str, ...], *, counts: bool = True) -> str:
        record = self.record
        record.begun += 1
        step = Step(f"{role}-{record.begun}", role, nodes, counts=counts)
        record.steps.append(step)
        record.tries += 1
        self._out.append(self._start(step))
        return step.name

    def _start(self, step: Step) -> StartStep:
        """The action that starts a step; from the record alone, so that it can be repeated."""
        record = self.record
        tasks = 2 if step.role == "test" else self.tasks * len(step.nodes)
        back = step.role == "clean" or (step.role == "main" and record.change is not None)
        env = {
            "STEP": step.name,
            "ROLE": step.role,
            "SIZE": str(tasks),
            "PORT": record.port if step.role in ("test", "joiner") else "",
            "ID": str(record.serial),
            "ENGINE": record.engine,
            "PARKED": f"{self.park}-{record.serial}" if back else "",
        }
        again = record.change is not None and step.role in ("main", "joiner")
        pause_s = 0.4 * max(record.tries - 1, 0) if again else 0.0
        return StartStep(step.name, step.role, step.nodes, record.mpi, tuple(env.items()), pause_s)

    def _stop(self, step: Step, *, hard: bool = False) -> None:
        step.stopped = True
        self._out.append(StopStep(step.name, hard))

    def _ask(self) -> None:
        record, change = self.record, self.record.change
        assert change is not None
        self._app(
            op="adapt", id=str(record.serial), kind=change.op, nodes=record.target,
            park=f"{self.park}-{record.serial}",
            **({"add": change.add} if isinstance(change, Grow) else {"remove": change.remove}),
        )  # fmt: skip

    def _answer(self, outcome: str, why: str) -> None:
        record = self.record
        if record.change is not None:
            self._to(LauncherStage.RUNNING)
            what = {"done": "done", "refused": "not done", "failed": "failed"}[outcome]
            text = f"change {record.serial}: {what}" + (f" ({why.rstrip('.')})" if why else "")
            self._say(f"{text} in {self._spent()}")
            self._keep(Result(record.change.id, outcome, why, record.nodes))
        record.change, record.target = None, ()
        self._forget()
        self._to(LauncherStage.RUNNING)

    def _forget(self) -> None:
        """Drops steps that have ended well, so that the record does not grow with every change."""
        last = self._last_main()
        self.record.steps = [
            step for step in self.record.steps
            if step is last or step.code is None or (step.code and step.counts)
        ]  # fmt: skip

    def _spent(self) -> str:
        """The duration of the change, and of each of its stages."""
        spent_s = {stage: s for stage, s in self.record.spent_s.items() if stage != "running"}
        each = ", ".join(f"{stage} {s:.3f}" for stage, s in spent_s.items())
        return f"{sum(spent_s.values()):.3f} s: {each}"

    def _keep(self, result: Result) -> None:
        results = self.record.results
        results[result.id] = result
        while len(results) > KEPT:
            del results[next(iter(results))]
        self._out.append(TellAgent(result))

    # ------------------------------------------------------------------ the end

    def _finish(self) -> None:
        """Ends the job: with all its processes, or because some of them failed."""
        record = self.record
        if record.change is not None:
            what = (record.change, "failed", "The program ended.")
            self._keep(Result(what[0].id, what[1], what[2], record.nodes))
            for step in record.live():
                if step.name == record.joiner:
                    step.counts = False
                    self._stop(step)
            if record.engine == "relaunch" and record.stage is not LauncherStage.REQUESTED:
                self._new("clean", tuple(dict.fromkeys(record.nodes + record.target)), counts=False)
            record.change = None
        self._to(LauncherStage.FINISHING, 1.0 if self._code() else self.limits.finish_s)
        if not record.live():
            self._over()

    def _finish_late(self) -> None:
        for step in self.record.live():
            # A part of the program that came later may have its own work to end, as under srun.
            if self._code() or not step.counts:
                self._stop(step, hard=step.stopped)
        self._to(LauncherStage.FINISHING, self.limits.stop_s)

    def _over(self) -> None:
        self._to(LauncherStage.OVER)
        self._out.append(Finish(self._code()))

    def _code(self) -> int:
        codes = [abs(step.code or 0) for step in self.record.steps if step.counts]
        return max(codes, default=0) or self.record.code
