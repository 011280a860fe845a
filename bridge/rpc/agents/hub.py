# SPDX-License-Identifier: Apache-2.0
"""The state of agents and launchers as they report it, and the orders sent to them.

Rules
    1. A launcher belongs to one job and one user, and to the job that its process belongs to: on
       its nodes a task of an array has a number that only the controller knows. The newest
       attachment counts; when it ends, the previous one counts again.
    2. A launcher is attached as long as its agent reports it. When an agent is lost, so are its
       launchers, until they attach again.
    3. Only counts of processes that answer the last request are used, because older ones prove
       nothing. All agents are asked again after `ASK_AGAIN_S`, and whenever the job's launcher gets
       another order. A node without an agent is not vacant. If launchers are trusted, it is vacant
       `RETURN_S` after its agent was lost; within this time the agent comes back.
    4. A line that cannot be read is answered, and affects no other launcher.
    5. A controller without accounting knows users by their numbers only. A launcher is found by
       name and by number.
    6. Methods may be called by any thread, and none waits.
    7. A job's time in MPI is measured again when its processes run on other nodes.
"""

import itertools
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from bridge.elastic import lines
from bridge.errors import LineError
from bridge.resizing.launchers import Attached, Grow, Names, Order, Result, Withdraw
from bridge.rpc.agents.job_readings import JobReadings
from bridge.rpc.agents.mpi_times import MpiTimes
from bridge.rpc.agents.power_use import PowerUse, Watts
from bridge.rpc.agents.share_orders import ShareOrders
from bridge.rpc.pb import agent_pb2 as pb
from bridge.rpc.reported.safe_text import printable

_log = logging.getLogger(__name__)

MOST_RESULTS = 10_000
"""Results kept for the next cycle; the oldest are dropped, their launchers are asked again."""
ASK_AGAIN_S = 20.0
RETURN_S = 20.0
"""An agent pauses at most 15 s before it tries to reach the service again."""
MOST_LAUNCHERS = 256
"""Launchers of one agent."""

Key = tuple[str, str]
"""Job and user."""


@dataclass(eq=False)
class Agent:
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
    launchers: dict[int, Key] = field(default_factory=dict)


@dataclass
class _Launcher:
    agent: Agent
    connection: int
    job: str
    uid: int | None
    attached: Attached


@dataclass
class _Count:
    asked: float
    request: int
    processes: int = -1


class Hub:
    """All agents and launchers; a `bridge.resizing.launchers.Launchers`.

    Attributes:
        power: power of nodes and jobs.
        readings: resource use of jobs.
        shares: orders of CPU shares for agents.
    """

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, *, trusts_launchers: bool = False
    ) -> None:
        """Starts without any.

        Args:
            clock: monotonic, s.
            trusts_launchers: launchers are trusted for nodes without an agent.
        """
        self._trusts = trusts_launchers
        self._lock = threading.Lock()
        self._clock = clock
        self._began = clock()
        self._agents: dict[str, Agent] = {}
        self._lost: dict[str, float] = {}
        self._launchers: dict[Key, list[_Launcher]] = {}
        self._results: OrderedDict[tuple[Key, str], Result] = OrderedDict()
        self._jobs: OrderedDict[Key, tuple[str, int | None]] = OrderedDict()
        self._counts: dict[tuple[str, str], _Count] = {}
        self._uid_of: dict[str, str] = {}
        self._numbers: Mapping[str, str] = {}
        self._serials = itertools.count(1)
        self._requests = itertools.count(1)
        self._mpi, self._guesses = MpiTimes(), MpiTimes()
        self.power = PowerUse(clock)
        self.readings = JobReadings(clock)
        self.shares = ShareOrders(clock)

    # ------------------------------------------------------------ agents

    def arrived(
        self,
        nodes: Sequence[str],
        send: Callable[[pb.AgentOrder], None],
        *,
        takes_shares: bool = False,
    ) -> Agent:
        """An agent has opened its stream. It takes the place of an older one of the same node."""
        agent = Agent(tuple(nodes), send, takes_shares)
        with self._lock:
            for node in agent.nodes:
                self._agents[node] = agent
                self._lost.pop(node, None)
            self._forget_counts(lambda key: key[1] in agent.nodes)
        self._state_models(agent, self.power.types)
        if takes_shares:
            self.shares.arrived(agent)
        return agent

    def state_types(self, types: Mapping[str, Watts]) -> None:
        """Idle and maximum power of nodes, W: for their models, and to judge what they report."""
        before = self.power.types
        if types == before:
            return
        self.power.state_types(types)
        self.power.forget(set(before) - set(types))
        changed = {node: its for node, its in types.items() if before.get(node) != its}
        with self._lock:
            agents = {id(agent): agent for agent in self._agents.values()}
        for agent in agents.values():
            self._state_models(agent, changed)

    @staticmethod
    def _state_models(agent: Agent, types: Mapping[str, Watts]) -> None:
        for node in agent.nodes:
            if node in types:
                idle_w, max_w = types[node]
                model = pb.PowerModel(node=node, idle_w=idle_w, max_w=max_w)
                agent.send(pb.AgentOrder(model=model))

    def left(self, agent: Agent) -> None:
        """Its stream has ended."""
        now = self._clock()
        self.shares.left(agent)
        with self._lock:
            self._lost = {node: at for node, at in self._lost.items() if now - at <= RETURN_S}
            for node in agent.nodes:
                if self._agents.get(node) is agent:
                    del self._agents[node]
                    self._lost[node] = now
                    self.readings.forget(node)
            self._forget_counts(lambda key: key[1] in self._lost)
            for connection in list(agent.launchers):
                self._gone(agent, connection)

    def _forget_counts(self, which: Callable[[tuple[str, str]], bool]) -> None:
        for key in [key for key in self._counts if which(key)]:
            del self._counts[key]

    def _names_of(self, key: Key) -> tuple[Key, ...]:
        """A job and user as controllers with and without accounting call them (rule 5)."""
        uid = self._uid_of.get(key[1], key[1])
        return (key,) if uid == key[1] else (key, (key[0], uid))

    def _gone(self, agent: Agent, connection: int) -> None:
        primary = agent.launchers.pop(connection, None)
        for key in self._names_of(primary) if primary is not None else ():
            self._gone_from(key, agent, connection)

    def _gone_from(self, key: Key, agent: Agent, connection: int) -> None:
        known = self._launchers.pop(key, [])
        left = [one for one in known if (one.agent, one.connection) != (agent, connection)]
        if left:
            self._launchers[key] = left

    def _newest(self, key: Key | None) -> _Launcher | None:
        known = self._launchers.get(key, []) if key is not None else []
        return next((one for one in reversed(known) if self._is_of(one.job, key)), None)

    def _is_of(self, number: str, key: Key | None) -> bool:
        """Whether a process of the job of this number is accepted for a job (rule 1)."""
        return key is not None and self._numbers.get(key[0], number) == number

    def report(self, agent: Agent, report: pb.AgentReport) -> None:
        """Processes a report."""
        match report.WhichOneof("report"):
            case "launcher":
                self._said(agent, report.launcher)
            case "gone":
                with self._lock:
                    self._gone(agent, report.gone.connection)
            case "processes":
                count = report.processes
                with self._lock:
                    asked = self._counts.get((count.job, count.node))
                    answers = asked is not None and count.request in (0, asked.request)
                    if asked is not None and answers and self._agents.get(count.node) is agent:
                        asked.processes = count.count
            case "uses":
                mine = self._spoken_for(agent)
                self.power.took(agent.nodes[0], mine, report.uses)
                self.readings.took(mine, report.uses)
            case "shares":
                self.readings.kept(self._spoken_for(agent), report.shares)
            case "mpi":
                spent = report.mpi
                if self._agents.get(spent.node) is agent:
                    with self._lock:
                        times = self._guesses if spent.estimated else self._mpi
                        times.add(spent.job, spent.mpi_s, spent.wall_s, time.monotonic())

    def _spoken_for(self, agent: Agent) -> frozenset[str]:
        """The nodes of which an agent is the newest one."""
        agents = self._agents
        return frozenset(node for node in agent.nodes if agents.get(node) is agent)

    @property
    def agent_count(self) -> int:
        """Nodes that have an agent."""
        return len(self._agents)

    @property
    def launcher_count(self) -> int:
        """Jobs whose launcher is connected."""
        with self._lock:
            return len({one for of_job in self._launchers.values() for one in map(id, of_job)})

    # ------------------------------------------------------------ launchers

    def _said(self, agent: Agent, message: pb.FromLauncher) -> None:
        try:
            event = lines.from_launcher(message.line.encode())
        except LineError as error:
            self._tell(agent, message.connection, lines.Error(str(error)[:400]))
            return
        with self._lock:
            if isinstance(event, lines.Attach):
                problem = self._attach(agent, message, event)
            else:
                problem = self._later(agent, message.connection, event)
        answer: lines.Message | None = lines.Error(problem) if problem else None
        if answer is None and isinstance(event, lines.Attach):
            answer = lines.Attached()
        if answer is not None:
            self._tell(agent, message.connection, answer)

    def _attach(self, agent: Agent, message: pb.FromLauncher, event: lines.Attach) -> str:
        if event.version != lines.VERSION:
            return f"protocol version {event.version} is not supported, only {lines.VERSION}"
        key = (printable(event.job), printable(message.user))
        if len(agent.launchers) >= MOST_LAUNCHERS and message.connection not in agent.launchers:
            return f"there are {MOST_LAUNCHERS} launchers on this node already"
        if event.job.isdigit() and event.job != message.job:
            return f"this process belongs to job {printable(message.job)}, not to {key[0]}"
        if not self._is_of(message.job, key):
            return f"this process belongs to job {printable(message.job)}, which is not {key[0]}"
        self._gone(agent, message.connection)
        attached = Attached(
            serial=next(self._serials),
            nodes=event.nodes,
            engine=event.engine,
            pending=event.pending.id if event.pending else "",
            pending_nodes=event.pending.nodes if event.pending else (),
        )
        agent.launchers[message.connection] = key
        uid = int(message.uid) if message.uid.isdigit() else None
        launcher = _Launcher(agent, message.connection, message.job, uid, attached)
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

    def _later(self, agent: Agent, connection: int, event: lines.FromLauncher) -> str:
        key = agent.launchers.get(connection)
        launcher = self._newest(key)
        if key is None or launcher is None:
            return "attach first"
        if (launcher.agent, launcher.connection) != (agent, connection):
            return "another launcher of this job has attached since"
        if isinstance(event, lines.Result):
            done = event.outcome == "done"
            for each in self._names_of(key):
                result = Result(*each, event.id, done, printable(event.reason), event.nodes)
                self._results[each, event.id] = result
            while len(self._results) > MOST_RESULTS:
                self._results.popitem(last=False)
            now = replace(launcher.attached, nodes=event.nodes)
            if now.pending == event.id:
                now = replace(now, pending="", pending_nodes=())
            launcher.attached = now
            for times in (self._mpi, self._guesses):
                times.runs_on(launcher.job, now.nodes, time.monotonic())
        elif isinstance(event, lines.Bounds):
            launcher.attached = replace(launcher.attached, min_nodes=event.min, max_nodes=event.max)
        return ""

    def _tell(self, agent: Agent, connection: int, message: lines.Message) -> None:
        line = lines.encode(message).decode().rstrip("\n")
        agent.send(pb.AgentOrder(launcher=pb.ToLauncher(connection=connection, line=line)))

    # ------------------------------------------------------------ the port

    def numbered(self, numbers: Mapping[str, str]) -> None:
        """From now on only launchers within these jobs are accepted for tasks of arrays."""
        self._numbers = numbers

    def attached(self, job_id: str, user: str) -> Attached | None:
        """The launcher of a user's job."""
        found = self._newest((job_id, user))
        return found.attached if found is not None else None

    def results(self) -> Sequence[Result]:
        """Results that came since the last call."""
        if not self._results:
            return ()
        with self._lock:
            found, self._results = tuple(self._results.values()), OrderedDict()
        return found

    def order(self, job_id: str, user: str, order: Order) -> None:
        """Sends an order if the launcher is connected. One that no line can hold is refused."""
        key = (job_id, user)
        with self._lock:
            found = self._newest(key)
            if found is None:
                return
            if not isinstance(order, Withdraw):
                now = replace(found.attached, pending=order.id, pending_nodes=order.nodes)
                found.attached = now
                self._forget_counts(lambda count: count[0] == found.job)
        try:
            self._tell(found.agent, found.connection, _line(order))
        except LineError as error:
            _log.warning("an order cannot be sent to the launcher of job %s: %s", job_id, error)
            with self._lock:
                self._results[key, order.id] = Result(job_id, user, order.id, False, str(error))
                found.attached = replace(found.attached, pending="", pending_nodes=())

    def vacant(self, job_id: str, user: str, nodes: Names, *, unused: bool = False) -> bool:
        """Whether the agents there, since they were asked, have counted no process of the job."""
        with self._lock:
            launcher = self._newest((job_id, user))
            job, uid = self._number_of(job_id, user)
            if launcher is not None:
                job, uid = launcher.job, launcher.uid
            if not job.isdigit():
                return False  # a task of an array, whose nodes call it otherwise
            now, asked = self._clock(), []
            with_agent = [node for node in nodes if node in self._agents]
            for node in with_agent:
                count = self._counts.get((job, node))
                if count is None or now - count.asked > ASK_AGAIN_S:
                    request = next(self._requests)
                    self._counts[job, node] = _Count(now, request)
                    asked.append((self._agents[node], node, request))
            away = (self._lost.get(node, self._began) for node in set(nodes).difference(with_agent))
            over = len(with_agent) == len(nodes) or (
                (self._trusts or unused) and not any(now - since <= RETURN_S for since in away)
            )
            over = over and all(self._counts[job, node].processes == 0 for node in with_agent)
            if over:
                for node in with_agent:
                    self._counts.pop((job, node), None)
        for agent, node, request in asked:
            order = pb.CountProcesses(job=job, node=node, uid=uid, request=request)
            agent.send(pb.AgentOrder(count=order))
        return over

    def _number_of(self, job_id: str, user: str) -> tuple[str, int | None]:
        """A job's id on its nodes, and the number of its user if a launcher has reported it."""
        job, uid = self._jobs.get((job_id, user), (job_id, None))
        return self._numbers.get(job_id, job), uid

    def unattended(self, nodes: Names) -> Names:
        """Those without an agent, unless the site trusts launchers."""
        if self._trusts:
            return ()
        return tuple(node for node in nodes if node not in self._agents)

    def mtct(self, job_id: str, user: str, *, estimate: bool = False) -> float:
        """From what the agents of its nodes have read."""
        with self._lock:
            job, _ = self._number_of(job_id, user)
            times = self._guesses if estimate else self._mpi
            return times.mtct(job, time.monotonic())


def _line(order: Order) -> lines.Message:
    if isinstance(order, Withdraw):
        return lines.Withdraw(order.id)
    if isinstance(order, Grow):
        return lines.Grow(order.id, order.nodes, order.added, order.within_s)
    return lines.Shrink(order.id, order.nodes, order.removed, order.within_s)
