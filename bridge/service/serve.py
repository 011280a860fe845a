# SPDX-License-Identifier: Apache-2.0
"""Assembles the service: sockets and gates, cycles, store and metrics.

| socket | who | what |
|---|---|---|
| controller.socket | controller.users | Scheduler, health, reflection |
| controller.tls.address | certificates of controller.tls.subjects | Scheduler, health |
| agents.address | certificates of agents.subjects | Agents |
| operator.socket | every user | Operator without changes, health, reflection |
| operator.socket | operator.admins | all of Operator |
| metrics.address | everyone who can reach it | the page /metrics |
| a page of an extension | as that says | |

The gates listen at these; the gRPC servers behind them at sockets in a private directory. Operators
and metrics are served by a separate process (`bridge.rpc.operators.process`).
"""

import gc
import importlib.metadata
import logging
import os
import signal
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NoReturn

from bridge.errors import BridgeError
from bridge.extensions.elastic.resizing.launchers import Absent, Launchers
from bridge.line_text import on_one_line
from bridge.planning.malleable.observing import NAME as SPEED_UPS
from bridge.registry import left_out
from bridge.rpc.agents.hub import Hub
from bridge.rpc.agents.server import AgentServer
from bridge.rpc.agents.speakers import Speakers
from bridge.rpc.controller.server import SCHEDULER, Server, add_scheduler
from bridge.rpc.operators.changes import DONE
from bridge.rpc.operators.process import (
    Answers,
    OperatorProcess,
    OperatorSettings,
    ServiceFunctions,
)
from bridge.rpc.transport.callers import Peers
from bridge.rpc.transport.descriptors import raise_descriptor_limit
from bridge.rpc.transport.directories import prepare_directory
from bridge.rpc.transport.introductions import Introductions
from bridge.rpc.transport.revoked import RevokedChange
from bridge.rpc.transport.tls import Certificates, RefusingServer
from bridge.rpc.transport.users import default_controllers, user_ids
from bridge.service.config import ServiceConfig, load
from bridge.service.config_changes import (
    ChangedKey,
    differences,
    in_force,
    reload_change,
    revoked_change,
    start_change,
)
from bridge.service.extension_parts import pages, stop
from bridge.service.gates import Gates
from bridge.service.observers import count_starts
from bridge.service.scheduling import Scheduling
from bridge.service.signals import Signals, StoppedEarly, leave, notify
from bridge.service.telemetry import Metrics
from bridge.solver_process import ChildSolver
from bridge.state.announced_starts import StartRecords
from bridge.state.change_files import NAME
from bridge.state.change_log import ChangeLog
from bridge.state.store import Store

_log = logging.getLogger(__name__)

GRACE_S = 5.0
READY_S = 60.0
"""Maximum time for which readiness is delayed until the operators' process has started, s."""


def version() -> str:
    """The installed version of this package."""
    try:
        return importlib.metadata.version("schedbridge")
    except importlib.metadata.PackageNotFoundError:
        return "0 (not installed)"


class Service:
    """A running service; `start` and `stop` in this order, once.

    Attributes:
        scheduling: the planning part; None: not started.
        hub: agents and launchers; None: none are served.
    """

    def __init__(
        self,
        config: ServiceConfig,
        file: Path | None = None,
        launchers: Launchers | None = None,
    ) -> None:
        """Prepares a service.

        Args:
            file: the configuration file, read again on SIGHUP; None: SIGHUP is ignored.
            launchers: launchers of simulated jobs; None: those that attach to the agents, if there
                are any.
        """
        self._config = self._last_read = config
        self._file = file
        self._stopped = False
        self._name = f"schedbridge {version()}"
        self._server: Server | None = None
        trusts = config.resizing.trust_launchers
        self.hub = Hub(trusts_launchers=trusts) if config.agents is not None else None
        self._launchers = launchers or self.hub or Absent()
        self._agents: AgentServer | None = None
        self._operators: OperatorProcess | None = None
        self._private: tempfile.TemporaryDirectory[str] | None = None
        self._metrics = Metrics(version(), config.policy_spec.name)
        self._gates = Gates(self._metrics.gate_refused)
        self._store: Store | None = None
        self._changes: ChangeLog | None = None
        self._solver = ChildSolver()
        self.scheduling: Scheduling | None = None

    def start(self) -> None:
        """Opens memory, sockets and metrics.

        Raises:
            ConfigError: something the configuration names is missing, taken or unsafe.
        """
        try:
            self._start()
        except BaseException:
            self.stop(grace_s=0)
            raise

    def _start(self) -> None:
        config = self._config
        for problem in left_out():
            _log.warning("left out: %s", on_one_line(problem))
        raise_descriptor_limit()
        controllers = (
            default_controllers()
            if config.controller.users is None
            else user_ids(config.controller.users, "controller.users") | {os.geteuid()}
        )
        admins = user_ids(config.operator.admins, "operator.admins") | {0, os.geteuid()}
        owners = sorted(controllers - {0}) or [0]
        prepare_directory(
            config.controller.socket.parent, "controller.socket", owners=owners, private=True
        )
        prepare_directory(
            config.operator.socket.parent, "operator.socket", owners=[os.geteuid()], private=False
        )
        self._private = tempfile.TemporaryDirectory(prefix="schedbridge-")  # mode 0700
        controller = str(Path(self._private.name) / "c")

        # The sockets first: they show whether another service runs here.
        at_controllers = self._gates.listen(config.controller.socket, "controller.socket")
        # The operators' process of a service that was killed ends a moment after it.
        at_operators = self._gates.listen(config.operator.socket, "operator.socket", patience_s=2.0)
        at_tls = at_metrics = certificates = None
        if config.controller.tls is not None:
            strangers = str(Path(self._private.name) / "strangers")
            certificates = Certificates(
                config.controller.tls, controller, strangers, log_revoked=self._log_revoked
            )
            self._gates.refuse(RefusingServer(strangers))
            at_tls = self._gates.listen_tcp(config.controller.tls.address, "controller.tls")
        if config.metrics.address is not None:
            at_metrics = self._gates.listen_tcp(config.metrics.address, "metrics.address")
        at_pages = {
            name: (self._gates.listen_tcp(page.address, page.key), page.settings)
            for name, page in pages(config).items()
        }

        scheduling = self._schedule()
        if self._changes is not None:
            self._log_start(self._changes)
        for part in scheduling.parts.values():
            part.start(admins)
        operators = OperatorProcess(
            Answers(self._functions(scheduling)),
            OperatorSettings(
                admins=tuple(sorted(admins)),
                per_user=config.limits.connections_per_user,
                private=self._private.name,
                log_level=config.log.level,
                log_format=config.log.format,
            ),
            operators=at_operators,
            metrics=at_metrics,
            pages=at_pages,
        )
        self._operators = operators
        operators.start()

        size = config.limits.message_mib
        self._server = Server("controller", workers=8, message_mib=size)
        self._server.start(add_scheduler(scheduling.cycles), [SCHEDULER], socket=controller)
        doors = 1 if at_tls is None else 2
        peers = Peers(lambda uid: controller if uid in controllers else None)
        self._gates.to_controllers(at_controllers, "controller.socket", peers, doors)
        if certificates is not None and at_tls is not None:
            self._gates.to_controllers(at_tls, "controller.tls", certificates, doors)
        self._open_to_agents()
        self._gates.start()
        if not operators.ready.wait(READY_S):
            _log.error("the controller is served, operators are not yet")

    def _open_to_agents(self) -> None:
        agents = self._config.agents
        if agents is None or self.hub is None or self._private is None:
            return
        private = Path(self._private.name)
        target, strangers = (str(private / name) for name in ("a", "a-strangers"))
        names = Introductions[frozenset[str]](private) if agents.each_node else None
        certificates = Certificates(
            agents, target, strangers, "agents", names, log_revoked=self._log_revoked
        )
        at_agents = self._gates.listen_tcp(agents.address, "agents.address")
        self._gates.refuse(RefusingServer(strangers, "agents"))
        self._agents = AgentServer(self.hub, Speakers(names, agents.subjects))
        self._agents.start(target)
        self._gates.to_agents(at_agents, certificates)

    def _functions(self, scheduling: Scheduling) -> ServiceFunctions:
        store, changes = self._store, self._changes
        return ServiceFunctions(
            cycles=scheduling.cycles,
            switch=scheduling.switch,
            service=self._name,
            failures=lambda: scheduling.decider.failures,
            accuracy=store.accuracy if store is not None else StartRecords,
            record=scheduling.record,
            metrics=self._metrics.page,
            refused=self._metrics.gate_refused,
            agents=lambda: self.hub.agent_count if self.hub is not None else 0,
            speed_ups=lambda: scheduling.decider.state.learnt_by(SPEED_UPS),
            parts=scheduling.parts,
            changes=ChangeLog(None) if changes is None else changes,
        )

    def _schedule(self) -> Scheduling:
        memory, metrics = self._config.memory, self._metrics
        self._store = Store(
            memory.path, keep_days=memory.keep_days, on_changes=partial(count_starts, metrics)
        )
        path = memory.path
        self._changes = ChangeLog(None if path is None else path.with_name(NAME))
        self.scheduling = Scheduling(
            self._config,
            self._name,
            store=self._store,
            solver=self._solver,
            metrics=metrics,
            launchers=self._launchers,
            hub=self.hub,
            changes=self._changes,
            policy_changed=self._policy_changed,
        )
        for name in ("agents", "launchers"):
            metrics.watch(name, partial(self._connected, name))
        return self.scheduling

    def _log_revoked(self, change: RevokedChange) -> None:
        if self._changes is not None:
            # However often the file is written, it pushes out no administrator's change.
            self._changes.add(revoked_change(change, int(time.time())), admin=False)

    def _policy_changed(self, name: str) -> None:
        self._metrics.policy(name)
        self._keep_in_force()

    def _keep_in_force(self) -> str:
        """Keeps what the service works with, for the next start, and returns it."""
        if self._changes is None or self.scheduling is None:
            return ""
        text = in_force(self._config, self.scheduling.switch.spec)
        self._changes.keep(text)
        return text

    def _log_start(self, changes: ChangeLog) -> None:
        """Lists what differs from what was in force before this start, if that is known."""
        former = changes.was_in_force
        present = self._keep_in_force()
        if former is None:
            _log.info("what was in force before this start is not known: no change is listed")
            return
        try:
            change = start_change(self._file, former, present, int(time.time()))
        except (ValueError, RecursionError) as error:
            _log.warning("what this start changes is not listed: what was in force: %s", error)
            return
        if change is not None:
            changes.add(change, admin=True)

    def _connected(self, what: str) -> float:
        """How many agents or launchers there are; for the metrics."""
        if self.hub is None:
            return 0.0
        return float(self.hub.agent_count if what == "agents" else self.hub.launcher_count)

    def stop(self, grace_s: float = GRACE_S) -> None:
        """Reports NOT_SERVING, finishes the running cycle, removes the sockets, saves the state."""
        if self._stopped:
            return
        self._stopped = True
        if self.scheduling is not None:
            self.scheduling.tap.close()
        if self._operators is not None:
            self._operators.stop()
        if self._server is not None:
            self._server.stop(grace_s)
        if self._agents is not None:
            self._agents.stop()
        self._gates.close()
        self._solver.close()
        if self.scheduling is not None:
            stop(self.scheduling.parts)
        if self._store is not None:
            self._store.close()
        if self._changes is not None:
            self._changes.close()
        if self._private is not None:
            self._private.cleanup()

    def run(self) -> None:
        """Serves until SIGTERM or SIGINT, and then ends the process.

        Raises:
            ConfigError: see `start`.
        """
        signals = Signals()
        # Tables of 100 k jobs are many objects without reference cycles. Scanning them at the
        # default rate takes a tenth of the time and causes the slowest scheduling cycles.
        gc.set_threshold(50_000, 20, 50)
        try:
            self.start()
            signals.starting = False
        except StoppedEarly as ended_by:
            _log.info("stopping after %s, before it had started", ended_by)
            self._leave()
        _log.info(
            "%s serves policy %s; controllers at %s, operators at %s",
            self._name, self._config.policy_spec.name, self._config.controller.socket,
            self._config.operator.socket,
        )  # fmt: skip
        notify("READY=1")
        while (came := signals.next()) is signal.SIGHUP:
            self.reload()
        _log.info("stopping after %s", came.name)
        notify("STOPPING=1")
        self.stop()
        self._leave()

    def _leave(self) -> NoReturn:
        if self.scheduling is not None and self.scheduling.cycles.lock.locked():
            _log.warning("a cycle that did not end is abandoned")
        leave(0)

    def reload(self) -> None:
        """Reads the configuration again and puts its section `planning` in force.

        Everything else needs a restart. A wrong configuration changes nothing.
        """
        file, scheduling = self._file, self.scheduling
        if file is None or scheduling is None:
            _log.warning("no configuration file to reload")
            return
        found: list[ChangedKey] = []
        try:
            config = load(file)
            found = differences(self._last_read, config)
            scheduling.reload(config)
        except BridgeError as error:
            _log.error("the configuration was not reloaded: %s", error)
            self._log_reload(file, found, f"refused: {error}")
        except Exception as error:  # a bug here must not end the service
            _log.exception("the configuration was not read again")
            self._log_reload(file, found, f"failed: {type(error).__name__}")
        else:
            self._last_read = config
            self._config = self._config.model_copy(update={"planning": config.planning})
            self._keep_in_force()
            if config != self._config:
                _log.warning("other settings have changed as well; they need a restart")
            if found:
                self._log_reload(file, found, DONE)

    def _log_reload(self, file: Path, found: Sequence[ChangedKey], result: str) -> None:
        if self._changes is not None:
            change = reload_change(file, found, result, int(time.time()))
            self._changes.add(change, admin=True)
