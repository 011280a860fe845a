# SPDX-License-Identifier: Apache-2.0
"""The launchers that are attached, whose jobs they speak for, and the results they report.

Rules
    1. A launcher belongs to one job and one user, and to the job of its process: on its nodes a
       task of an array has a number that only the controller knows. The newest attachment counts of
       those on nodes of the job; when it ends or its node has left the job, the previous one counts
       again.
    2. A controller without accounting knows users by their numbers only. A launcher is found by
       name and by number.
    3. A job's time in MPI is measured again when its processes run on other nodes.
"""

import itertools
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from bridge.extensions.elastic import lines
from bridge.extensions.elastic.resizing.launchers import ChangeResult, LauncherReport
from bridge.rpc.agents.job_placement import JobPlacement
from bridge.rpc.agents.mpi_times import MpiTimes
from bridge.rpc.pb import agent_pb2 as pb
from bridge.rpc.reported.safe_text import printable

MAX_RESULTS = 10_000
"""Results kept for the next cycle; the oldest are dropped, and their launchers get the order
again."""
MAX_LAUNCHERS = 256
"""Launchers of one agent."""

LauncherKey = tuple[str, str]
"""Job and user."""


@dataclass(eq=False)
class AgentStream:
    """One stream.

    Attributes:
        send: sends an order; never waits.
        launchers: by the number of their connections: the names of their jobs (`_names`).
        takes_shares: it keeps CPU shares.
    """

    nodes: tuple[str, ...]
    send: Callable[[pb.AgentOrder], None]
    takes_shares: bool = False
    launchers: dict[int, tuple[LauncherKey, ...]] = field(default_factory=dict)


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
        results: since they were taken last.
    """

    def __init__(self) -> None:
        self._launchers: dict[LauncherKey, list[Launcher]] = {}
        self.results: OrderedDict[tuple[LauncherKey, str], ChangeResult] = OrderedDict()
        self._jobs: OrderedDict[LauncherKey, tuple[str, int | None]] = OrderedDict()
        self._serials = itertools.count(1)
        self.placement = JobPlacement()
        self._mpi, self._guesses = MpiTimes(), MpiTimes()

    def __len__(self) -> int:
        return len({one for of_job in self._launchers.values() for one in map(id, of_job)})

    def gone(self, agent: AgentStream, connection: int) -> None:
        """A connection of an agent has ended."""
        for key in agent.launchers.pop(connection, ()):
            self._gone_from(key, agent, connection)

    def _gone_from(self, key: LauncherKey, agent: AgentStream, connection: int) -> None:
        known = self._launchers.pop(key, [])
        left = [one for one in known if (one.agent, one.connection) != (agent, connection)]
        if left:
            self._launchers[key] = left

    def newest(self, key: LauncherKey) -> Launcher | None:
        """The launcher that speaks for a job (rule 1)."""
        known = reversed(self._launchers.get(key, []))
        return next((one for one in known if not self._problem(one.agent, one.job, key)), None)

    def _problem(self, agent: AgentStream, number: str, key: LauncherKey) -> str:
        """Why a process of the job of this number is not accepted for a job (rule 1); or empty."""
        if self.placement.number(key[0]) not in (None, number):
            return f"this process belongs to job {printable(number)}, which is not {key[0]}"
        nodes = self.placement.nodes(key[0])
        if nodes is not None and nodes.isdisjoint(agent.nodes):
            return f"job {key[0]} is not placed on node {agent.nodes[0]}"
        return ""

    def attach(self, agent: AgentStream, message: pb.FromLauncher, event: lines.Attach) -> str:
        """Returns why the launcher cannot attach; empty: it has attached."""
        if event.version != lines.VERSION:
            return f"protocol version {event.version} is not supported, only {lines.VERSION}"
        key = (printable(event.job), printable(message.user))
        if len(agent.launchers) >= MAX_LAUNCHERS and message.connection not in agent.launchers:
            return f"there are {MAX_LAUNCHERS} launchers on this node already"
        if event.job.isdigit() and event.job != message.job:
            return f"this process belongs to job {printable(message.job)}, not to {key[0]}"
        if problem := self._problem(agent, message.job, key):
            return problem
        if self.placement.user(key[0]) not in (None, key[1], message.uid):
            return f"job {key[0]} is another user's"
        self.gone(agent, message.connection)
        attached = LauncherReport(
            serial=next(self._serials),
            nodes=event.nodes,
            engine=event.engine,
            pending=event.pending.id if event.pending else "",
            pending_nodes=event.pending.nodes if event.pending else (),
        )
        names = agent.launchers[message.connection] = _names(key, message.uid)
        uid = int(message.uid) if message.uid.isdigit() else None
        launcher = Launcher(agent, message.connection, message.job, uid, attached)
        for each in names:
            self._launchers[each] = [*self._launchers.get(each, []), launcher]
            self._jobs[each] = message.job, uid
            self._jobs.move_to_end(each)
        for times in (self._mpi, self._guesses):
            times.runs_on(message.job, event.nodes, time.monotonic())
        while len(self._jobs) > MAX_RESULTS:
            self._jobs.popitem(last=False)
        return ""

    def later(self, agent: AgentStream, connection: int, event: lines.FromLauncher) -> str:
        """Takes a result, or bounds; returns why it is not taken, or nothing."""
        names = agent.launchers.get(connection)
        launcher = self.newest(names[0]) if names else None
        if names is None or launcher is None:
            return "attach first"
        if (launcher.agent, launcher.connection) != (agent, connection):
            return "another launcher of this job has attached since"
        if isinstance(event, lines.Result):
            done = event.outcome == "done"
            for each in names:
                result = ChangeResult(*each, event.id, done, printable(event.reason), event.nodes)
                self.results[each, event.id] = result
            while len(self.results) > MAX_RESULTS:
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
        return self.placement.number(job_id) or job, uid

    def take_results(self) -> tuple[ChangeResult, ...]:
        """Results that came since the last call."""
        found, self.results = tuple(self.results.values()), OrderedDict()
        return found

    def times(self, *, estimated: bool) -> MpiTimes:
        """Times in MPI of the jobs: estimated, or measured."""
        return self._guesses if estimated else self._mpi


def _names(key: LauncherKey, uid: str) -> tuple[LauncherKey, ...]:
    """A job and user as controllers with and without accounting call them (rule 2)."""
    return (key, (key[0], uid)) if uid.isdigit() and uid != key[1] else (key,)
