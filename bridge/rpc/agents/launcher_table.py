# SPDX-License-Identifier: Apache-2.0
"""The launchers that are attached, whose jobs they speak for, and the results they report.

Rules
    1. A launcher belongs to one job and one user, and to the job of its process: on its nodes a
       task of an array has a number that only the controller knows. The newest attachment counts;
       when it ends, the previous one counts again.
    2. A controller without accounting knows users by their numbers only. A launcher is found by
       name and by number.
    3. A job's time in MPI is measured again when its processes run on other nodes.
"""

import itertools
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from bridge.elastic import lines
from bridge.resizing.launchers import ChangeResult, LauncherReport
from bridge.rpc.agents.mpi_times import MpiTimes
from bridge.rpc.pb import agent_pb2 as pb
from bridge.rpc.reported.safe_text import printable

MOST_RESULTS = 10_000
"""Results kept for the next cycle; the oldest are dropped, and their launchers get the order
again."""
MOST_LAUNCHERS = 256
"""Launchers of one agent."""

LauncherKey = tuple[str, str]
"""Job and user."""


@dataclass(eq=False)
class AgentStream:
    """One stream.

    Attributes:
        nodes: that it reports for.
        send: sends an order; never waits.
        launchers: by the number of their connections.
        takes_shares: it keeps CPU shares.
    """

    nodes: tuple[str, ...]
    send: Callable[[pb.AgentOrder], None]
    takes_shares: bool = False
    launchers: dict[int, LauncherKey] = field(default_factory=dict)


@dataclass
class Launcher:
    """An attachment: `job` and `uid` are those of its process."""

    agent: AgentStream
    connection: int
    job: str
    uid: int | None
    attached: LauncherReport


class LauncherTable:
    """All that are attached. Its owner's lock protects it.

    Attributes:
        numbers: by the controller's id of an array's task: its number on the nodes.
        results: since they were taken last.
    """

    def __init__(self) -> None:
        self._launchers: dict[LauncherKey, list[Launcher]] = {}
        self.results: OrderedDict[tuple[LauncherKey, str], ChangeResult] = OrderedDict()
        self._jobs: OrderedDict[LauncherKey, tuple[str, int | None]] = OrderedDict()
        self._uid_of: dict[str, str] = {}
        self._serials = itertools.count(1)
        self.numbers: Mapping[str, str] = {}
        self._mpi, self._guesses = MpiTimes(), MpiTimes()

    def __len__(self) -> int:
        return len({one for of_job in self._launchers.values() for one in map(id, of_job)})

    def _names_of(self, key: LauncherKey) -> tuple[LauncherKey, ...]:
        """A job and user as controllers with and without accounting call them (rule 2)."""
        uid = self._uid_of.get(key[1], key[1])
        return (key,) if uid == key[1] else (key, (key[0], uid))

    def gone(self, agent: AgentStream, connection: int) -> None:
        """A connection of an agent has ended."""
        primary = agent.launchers.pop(connection, None)
        for key in self._names_of(primary) if primary is not None else ():
            self._gone_from(key, agent, connection)

    def _gone_from(self, key: LauncherKey, agent: AgentStream, connection: int) -> None:
        known = self._launchers.pop(key, [])
        left = [one for one in known if (one.agent, one.connection) != (agent, connection)]
        if left:
            self._launchers[key] = left

    def newest(self, key: LauncherKey | None) -> Launcher | None:
        """The launcher that speaks for a job (rule 1)."""
        known = self._launchers.get(key, []) if key is not None else []
        return next((one for one in reversed(known) if self._is_of(one.job, key)), None)

    def _is_of(self, number: str, key: LauncherKey | None) -> bool:
        """Whether a process of the job of this number is accepted for a job (rule 1)."""
        return key is not None and self.numbers.get(key[0], number) == number

    def attach(self, agent: AgentStream, message: pb.FromLauncher, event: lines.Attach) -> str:
        """Returns why the launcher cannot attach; empty: it has attached."""
        if event.version != lines.VERSION:
            return f"protocol version {event.version} is not supported, only {lines.VERSION}"
        key = (printable(event.job), printable(message.user))
        if len(agent.launchers) >= MOST_LAUNCHERS and message.connection not in agent.launchers:
            return f"there are {MOST_LAUNCHERS} launchers on this node already"
        if event.job.isdigit() and event.job != message.job:
            return f"this process belongs to job {printable(message.job)}, not to {key[0]}"
        if not self._is_of(message.job, key):
            return f"this process belongs to job {printable(message.job)}, which is not {key[0]}"
        self.gone(agent, message.connection)
        attached = LauncherReport(
            serial=next(self._serials),
            nodes=event.nodes,
            engine=event.engine,
            pending=event.pending.id if event.pending else "",
            pending_nodes=event.pending.nodes if event.pending else (),
        )
        agent.launchers[message.connection] = key
        uid = int(message.uid) if message.uid.isdigit() else None
        launcher = Launcher(agent, message.connection, message.job, uid, attached)
        if uid is not None:
            self._uid_of[key[1]] = message.uid
        for each in self._names_of(key):
            self._launchers[each] = [*self._launchers.get(each, []), launcher]
            self._jobs[each] = message.job, uid
            self._jobs.move_to_end(each)
        for times in (self._mpi, self._guesses):
            times.runs_on(message.job, event.nodes, time.monotonic())
        while len(self._jobs) > MOST_RESULTS:
            self._jobs.popitem(last=False)
        return ""

    def later(self, agent: AgentStream, connection: int, event: lines.FromLauncher) -> str:
        """Takes a result, or bounds; returns why it is not taken, or nothing."""
        key = agent.launchers.get(connection)
        launcher = self.newest(key)
        if key is None or launcher is None:
            return "attach first"
        if (launcher.agent, launcher.connection) != (agent, connection):
            return "another launcher of this job has attached since"
        if isinstance(event, lines.Result):
            done = event.outcome == "done"
            for each in self._names_of(key):
                result = ChangeResult(*each, event.id, done, printable(event.reason), event.nodes)
                self.results[each, event.id] = result
            while len(self.results) > MOST_RESULTS:
                self.results.popitem(last=False)
            now = replace(launcher.attached, nodes=event.nodes)
            if now.pending == event.id:
                now = replace(now, pending="", pending_nodes=())
            launcher.attached = now
            for times in (self._mpi, self._guesses):
                times.runs_on(launcher.job, now.nodes, time.monotonic())
        elif isinstance(event, lines.Bounds):
            launcher.attached = replace(launcher.attached, min_nodes=event.min, max_nodes=event.max)
        return ""

    def number_of(self, job_id: str, user: str) -> tuple[str, int | None]:
        """A job's id on its nodes, and the number of its user if a launcher has reported it."""
        job, uid = self._jobs.get((job_id, user), (job_id, None))
        return self.numbers.get(job_id, job), uid

    def take_results(self) -> tuple[ChangeResult, ...]:
        """Results that came since the last call."""
        found, self.results = tuple(self.results.values()), OrderedDict()
        return found

    def times(self, *, estimated: bool) -> MpiTimes:
        """Times in MPI of the jobs: estimated, or measured."""
        return self._guesses if estimated else self._mpi
