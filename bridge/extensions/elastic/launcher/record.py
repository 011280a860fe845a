# SPDX-License-Identifier: Apache-2.0
"""The launcher's record, the events that it handles, and its actions.

The record is its entire memory. It is written to a file before an event is acted on, so that a
restarted launcher continues where the killed one was (`MpiLauncher.resume`). Times are seconds of
the host's monotonic clock, which a restarted process shares.
"""

import enum
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final

from bridge.extensions.elastic.lines import (
    Bounds,
    Change,
    Message,
    Nodes,
    Result,
    as_json,
    change_of,
)


class LauncherStage(enum.Enum):
    """The stage of a launcher: what it waits for."""

    BOOT = "boot"
    """The program to introduce itself; it may never do so, and is rigid then."""
    TESTING = "testing"
    """The self-test, which chooses the engine."""
    RUNNING = "running"
    """A change to be asked for."""
    STARTING = "starting"
    """Join, grow: the new processes to be ready. The program computes."""
    REQUESTED = "asked"
    """The program to come to its next probe."""
    GOING = "going"
    """The program to have done it, or to have called it off. It cannot be called off from here."""
    LEAVING = "leaving"
    """Shrink: the processes that leave to be gone."""
    UNDOING = "undoing"
    """Join, grow given up: the new processes to be gone."""
    PARKED = "parked"
    """Relaunch: all processes to end, whose data lies in memory."""
    RESTARTING = "restarting"
    """Relaunch: the program to be back, with its data, at its new width."""
    CLEARING = "clearing"
    """Relaunch given up: what was started to be gone, before it is started once more."""
    FINISHING = "finishing"
    """The last processes to end."""
    OVER = "over"


@dataclass
class Step:
    """One srun, or what stands for it."""

    name: str
    role: str
    """main, joiner, test, worker; or clean, which removes what was left in memory."""
    nodes: Nodes
    code: int | None = None
    """Exit code, once it has ended."""
    counts: bool = True
    """Is its exit code the job's?"""
    stopped: bool = False


@dataclass
class LauncherState:
    job: str
    nodes: Nodes
    """Where its processes run."""
    mpi: str
    """Of the steps that are started: a name that `srun --mpi` knows."""
    other_mpis: tuple[str, ...] = ()
    """To be tried if processes do not see each other."""
    engine: str = ""
    """join, relaunch or program; empty until it is chosen."""
    test_engine: bool = True
    stage: LauncherStage = LauncherStage.BOOT
    deadline_s: float | None = None
    steps: list[Step] = field(default_factory=list)
    """Those that run or may still matter, in order of their starts."""
    begun: int = 0
    """How many steps were started."""
    serial: int = 0
    """The number that the program knows the change by."""
    change: Change | None = None
    target: Nodes = ()
    port: str = ""
    why: str = ""
    """Why a change is being undone."""
    retried: bool = False
    left: int = 0
    """Processes that leave and have not been seen to end."""
    results: dict[str, Result] = field(default_factory=dict)
    joiner: str = ""
    """The step that this change has started, if it has one."""
    tries: int = 0
    """Steps that this change has started."""
    since_s: float = 0.0
    """Begin of the stage."""
    spent_s: dict[str, float] = field(default_factory=dict)
    """How long this change was in each stage."""
    code: int = 0
    """Exit code of the job, where it is not that of a step."""
    bye: bool = False
    connected: bool = False
    """Has the main step that was started last introduced itself?"""

    def live(self, *roles: str) -> list[Step]:
        """The steps of these roles (of all, if none is given) that have not ended."""
        return [
            step for step in self.steps if step.code is None and (not roles or step.role in roles)
        ]

    def step(self, name: str) -> Step:
        return next(step for step in self.steps if step.name == name)


# ------------------------------------------------------------------ events


@dataclass(frozen=True)
class Hello(Message):
    """Rank 0 introduces the program.

    Attributes:
        size: number of its processes.
        port: where new processes can connect; empty: nowhere.
        again: to a launcher that was restarted.
        step: the step that it runs in; empty: it does not say.
    """

    op: ClassVar[str] = "hello"
    size: int
    port: str = ""
    again: bool = False
    step: str = ""


@dataclass(frozen=True)
class Tested(Message):
    """The self-test's second process: did its tasks see each other, did it reach the first?"""

    op: ClassVar[str] = "tested"
    size: int
    joined: bool


@dataclass(frozen=True)
class Begin(Message):
    """The program is at a probe and asks whether to begin."""

    op: ClassVar[str] = "begin"
    id: str


@dataclass(frozen=True)
class Done(Message):
    """The program has adapted; `left` processes are about to end."""

    op: ClassVar[str] = "done"
    id: str
    left: int = 0


@dataclass(frozen=True)
class Cancelled(Message):
    """The program could not adapt, and continues as before."""

    op: ClassVar[str] = "cancelled"
    id: str
    reason: str = ""


@dataclass(frozen=True)
class Parked(Message):
    """All data are parked in memory, and the processes end."""

    op: ClassVar[str] = "parked"
    id: str


@dataclass(frozen=True)
class Ready(Message):
    """The new processes are there, and connect as soon as the running ones accept."""

    op: ClassVar[str] = "ready"
    id: str
    token: str = ""


@dataclass(frozen=True)
class Leaving(Message):
    """A process leaves; its connection ends with it."""

    op: ClassVar[str] = "leaving"
    id: str
    token: str = ""


@dataclass(frozen=True)
class Bye(Message):
    """The program ends."""

    op: ClassVar[str] = "bye"


FROM_APPLICATION: Final[dict[str, type[Message]]] = {
    kind.op: kind
    for kind in (Hello, Tested, Begin, Done, Cancelled, Parked, Ready, Leaving, Bye, Bounds)
}


@dataclass(frozen=True)
class Left:
    """A process that said it leaves is gone."""

    id: str


@dataclass(frozen=True)
class StepEnded:
    name: str
    code: int


@dataclass(frozen=True)
class Tick:
    """Time has passed."""


Event = Message | Left | StepEnded | Tick

# ------------------------------------------------------------------ actions


@dataclass(frozen=True)
class StartStep:
    """Starts a step, unless that has been done: names are never used twice."""

    name: str
    role: str
    nodes: Nodes
    mpi: str
    env: tuple[tuple[str, str], ...] = ()
    """Names without SCHEDBRIDGE_ELASTIC_, and values."""
    pause_s: float = 0.0
    """Before it starts."""


@dataclass(frozen=True)
class StopStep:
    """Ends a step; `hard`: at once."""

    name: str
    hard: bool = False


@dataclass(frozen=True)
class TellApp:
    """Sends this to rank 0, if it is connected."""

    message: tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class TellAgent:
    """Sends this to the agent, if it is connected."""

    message: Message


@dataclass(frozen=True)
class Notify:
    """Sends the program the signal for changed nodes, if one was chosen."""

    name: str


@dataclass(frozen=True)
class Say:
    """Logs a line."""

    text: str


@dataclass(frozen=True)
class Finish:
    """The job has ended with this exit code."""

    code: int


LauncherAction = StartStep | StopStep | TellApp | TellAgent | Notify | Say | Finish

# ------------------------------------------------------------------ the file

VERSION: Final = 1


def to_text(record: LauncherState) -> str:
    """The record as a state file holds it."""
    stored = asdict(record)
    stored["version"], stored["stage"] = VERSION, record.stage.value
    stored["change"] = as_json(record.change)
    stored["results"] = {name: asdict(result) for name, result in record.results.items()}
    return json.dumps(stored)


def from_text(text: str) -> LauncherState:
    """The record that `to_text` wrote."""
    stored: dict[str, Any] = json.loads(text)
    stored.pop("version")
    stored["stage"] = LauncherStage(stored["stage"])
    stored["change"] = change_of(stored["change"])
    stored.setdefault("begun", len(stored["steps"]))
    stored["steps"] = [Step(**{**step, "nodes": tuple(step["nodes"])}) for step in stored["steps"]]
    stored["results"] = {
        name: Result(**{**result, "nodes": tuple(result["nodes"])})
        for name, result in stored["results"].items()
    }
    for name in ("nodes", "target", "other_mpis"):
        stored[name] = tuple(stored[name])
    return LauncherState(**stored)


def save(record: LauncherState, path: Path) -> None:
    """Replaces the state file; a reader finds the old one or the new one, whole."""
    beside = path.with_suffix(".new")
    beside.write_text(to_text(record))
    beside.replace(path)


def load(path: Path) -> LauncherState | None:
    """The record of a launcher that was killed, or none if there was none before this one."""
    try:
        return from_text(path.read_text())
    except FileNotFoundError:
        return None
