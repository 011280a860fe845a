# SPDX-License-Identifier: Apache-2.0
"""The state of agents and launchers as they report it, and the orders sent to them.

Rules
    1. A launcher is attached as long as its agent reports it. When an agent is lost, so are its
       launchers, until they attach again (`launcher_table.py`).
    2. A node is vacant when its agent has answered a request with a count of no processes of the
       job (`process_counts.py`). A node without an agent is not vacant. If launchers are trusted,
       it is vacant `RETURN_S` after its agent was lost, as an agent normally returns within that
       time.
    3. A line that cannot be read is answered, and affects no other launcher.
    4. Every report on a job is held against its placement first (`placed_reports.py`).
    5. Methods may be called by any thread, and none waits.
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from bridge.errors import LineError
from bridge.extensions.elastic import lines
from bridge.extensions.elastic.resizing.launchers import (
    ChangeResult,
    GrowOrder,
    LauncherOrder,
    LauncherReport,
    Names,
    WithdrawOrder,
)
from bridge.model.snapshot import Snapshot
from bridge.rpc.agents.extension_readers import ExtensionReaders
from bridge.rpc.agents.job_placement import JobPlacement
from bridge.rpc.agents.launcher_table import AgentStream, LauncherTable
from bridge.rpc.agents.placed_reports import PlacedReports
from bridge.rpc.agents.process_counts import ProcessCounts
from bridge.rpc.pb import agent_pb2 as pb
from bridge.rpc.reported.safe_text import printable

_log = logging.getLogger(__name__)

RETURN_S = 20.0
"""An agent pauses at most 15 s before it tries to reach the service again."""


class Hub:
    """All agents and launchers; a `bridge.extensions.elastic.resizing.launchers.Launchers`.

    Attributes:
        extensions: what these read in reports, and order.
        reports: lets reports in that agree with the placement of jobs.
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
        self._agents: dict[str, AgentStream] = {}
        self._lost: dict[str, float] = {}
        self._launchers = LauncherTable()
        self._counts = ProcessCounts()
        self.extensions = ExtensionReaders(clock)
        self.reports = PlacedReports(clock)

    # ------------------------------------------------------------ agents

    def arrived(
        self,
        nodes: Sequence[str],
        send: Callable[[pb.AgentOrder], None],
        *,
        takes_shares: bool = False,
    ) -> AgentStream:
        """Adds an agent that has opened its stream. It replaces an older one of the same node."""
        agent = AgentStream(tuple(nodes), send, takes_shares)
        with self._lock:
            for node in agent.nodes:
                self._agents[node] = agent
                self._lost.pop(node, None)
            self._counts.forget(lambda key: key[1] in agent.nodes)
        self.extensions.arrived(agent)
        return agent

    def agents(self) -> list[AgentStream]:
        """The newest agents of all nodes, each once."""
        with self._lock:
            return list({id(agent): agent for agent in self._agents.values()}.values())

    def left(self, agent: AgentStream) -> None:
        """Its stream has ended."""
        now = self._clock()
        with self._lock:
            self._lost = {node: at for node, at in self._lost.items() if now - at <= RETURN_S}
            lost = self._spoken_for(agent)
            for node in lost:
                del self._agents[node]
                self._lost[node] = now
            self.extensions.left(agent, lost)
            self._counts.forget(lambda key: key[1] in self._lost)
            for connection in list(agent.launchers):
                self._launchers.gone(agent, connection)

    def report(self, agent: AgentStream, report: pb.AgentReport) -> None:
        """Processes a report; takes statements out of it that do not count."""
        if not self.reports.admit(agent.nodes, partial(self._speaks, agent), report):
            if report.HasField("launcher"):
                job = printable(report.launcher.job[:40])
                problem = f"job {job} is not placed on node {agent.nodes[0]}"
                self._tell(agent, report.launcher.connection, lines.Error(problem))
            return
        match report.WhichOneof("report"):
            case "launcher":
                self._said(agent, report.launcher)
            case "gone":
                with self._lock:
                    self._launchers.gone(agent, report.gone.connection)
            case "processes":
                with self._lock:
                    self._counts.took(report.processes)
            case "uses":
                self.extensions.took(agent.nodes[0], self._spoken_for(agent), report.uses)
            case "shares":
                self.extensions.kept(self._spoken_for(agent), report.shares)
            case "mpi":
                spent = report.mpi
                with self._lock:
                    times = self._launchers.times(estimated=spent.estimated)
                    times.add(spent.job, spent.mpi_s, spent.wall_s, time.monotonic())

    def _speaks(self, agent: AgentStream, node: str) -> bool:
        """Whether an agent is the newest one of a node."""
        return self._agents.get(node) is agent

    def _spoken_for(self, agent: AgentStream) -> frozenset[str]:
        """The nodes of which an agent is the newest one."""
        return frozenset(node for node in agent.nodes if self._speaks(agent, node))

    @property
    def agent_count(self) -> int:
        """Nodes that have an agent."""
        return len(self._agents)

    @property
    def launcher_count(self) -> int:
        """Jobs whose launcher is connected."""
        with self._lock:
            return len(self._launchers)

    # ------------------------------------------------------------ launchers

    def _said(self, agent: AgentStream, message: pb.FromLauncher) -> None:
        try:
            event = lines.from_launcher(message.line.encode())
        except LineError as error:
            self._tell(agent, message.connection, lines.Error(str(error)[:400]))
            return
        with self._lock:
            if isinstance(event, lines.Attach):
                problem = self._launchers.attach(agent, message, event)
            else:
                problem = self._launchers.later(agent, message.connection, event)
        answer: lines.Message | None = lines.Error(problem) if problem else None
        if answer is None and isinstance(event, lines.Attach):
            answer = lines.Attached()
        if answer is not None:
            self._tell(agent, message.connection, answer)

    def _tell(self, agent: AgentStream, connection: int, message: lines.Message) -> None:
        line = lines.encode(message).decode().rstrip("\n")
        agent.send(pb.AgentOrder(launcher=pb.ToLauncher(connection=connection, line=line)))

    # ------------------------------------------------------------ the port

    def placed(self, placement: JobPlacement) -> None:
        """From now on reports on jobs are held against this placement.

        Only launchers and agents on a job's nodes are heard about it. A launcher that claims a task
        of an array is accepted only if it runs within the job of the task's number.
        """
        self.reports.placement = self._launchers.placement = placement

    def reported(self, snapshot: Snapshot) -> None:
        """Takes the placement of jobs from the controller's report."""
        self.placed(JobPlacement(snapshot.running, snapshot.nodes.names))

    def attached(self, job_id: str, user: str) -> LauncherReport | None:
        found = self._launchers.newest((job_id, user))
        return found.attached if found is not None else None

    def results(self) -> Sequence[ChangeResult]:
        """Results that came since the last call."""
        with self._lock:
            return self._launchers.take_results()

    def order(self, job_id: str, user: str, order: LauncherOrder) -> None:
        """Sends an order if the launcher is connected. One that no line can hold is refused."""
        key = (job_id, user)
        with self._lock:
            found = self._launchers.newest(key)
            if found is None:
                return
            if not isinstance(order, WithdrawOrder):
                now = replace(found.attached, pending=order.id, pending_nodes=order.nodes)
                found.attached = now
                self._counts.forget(lambda count: count[0] == found.job)
        try:
            self._tell(found.agent, found.connection, _line(order))
        except LineError as error:
            _log.warning("an order cannot be sent to the launcher of job %s: %s", job_id, error)
            with self._lock:
                refused = ChangeResult(job_id, user, order.id, False, str(error))
                self._launchers.results[key, order.id] = refused
                found.attached = replace(found.attached, pending="", pending_nodes=())

    def vacant(self, job_id: str, user: str, nodes: Names, *, unused: bool = False) -> bool:
        """Whether the agents there have answered the last request with a count of no processes."""
        with self._lock:
            launcher = self._launchers.newest((job_id, user))
            job, uid = self._launchers.number_of(job_id, user)
            if launcher is not None:
                job, uid = launcher.job, launcher.uid
            if not job.isdigit():
                return False  # a task of an array, whose nodes call it otherwise
            now = self._clock()
            with_agent = [node for node in nodes if node in self._agents]
            requested = [
                (
                    self._agents[node],
                    pb.CountProcesses(job=job, node=node, uid=uid, request=request),
                )
                for node, request in self._counts.due(job, with_agent, now)
            ]
            away = (self._lost.get(node, self._began) for node in set(nodes).difference(with_agent))
            over = len(with_agent) == len(nodes) or (
                (self._trusts or unused) and not any(now - since <= RETURN_S for since in away)
            )
            over = over and self._counts.none_on(job, with_agent)
        for agent, count in requested:
            agent.send(pb.AgentOrder(count=count))
        return over

    def unattended(self, nodes: Names) -> Names:
        """The nodes without an agent, unless the site trusts launchers."""
        if self._trusts:
            return ()
        return tuple(node for node in nodes if node not in self._agents)

    def mtct(self, job_id: str, user: str, *, estimate: bool = False) -> float:
        """From what the agents of its nodes have read."""
        with self._lock:
            job, _ = self._launchers.number_of(job_id, user)
            times = self._launchers.times(estimated=estimate)
            return times.mtct(job, time.monotonic())


def _line(order: LauncherOrder) -> lines.Message:
    if isinstance(order, WithdrawOrder):
        return lines.Withdraw(order.id)
    if isinstance(order, GrowOrder):
        return lines.Grow(order.id, order.nodes, order.added, order.within_s)
    return lines.Shrink(order.id, order.nodes, order.removed, order.within_s)
