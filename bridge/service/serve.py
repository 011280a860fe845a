# SPDX-License-Identifier: Apache-2.0
"""Assembles the service: sockets and gates, cycles, store and metrics.

| socket | who | what |
|---|---|---|
| controller.socket | controller.users | Scheduler, health, reflection |
| controller.tls.address | certificates of controller.tls.subjects | Scheduler, health |
| agents.address | certificates of agents.subjects | Agents |
| operator.socket | every user | Operator without changes, health, reflection |
| operator.socket | operator.admins | all of Operator |
| metrics.address | whoever can reach it | the page /metrics |

The gates listen at these; the gRPC servers behind them at sockets in a private directory. Operators
and metrics are answered by a process of their own (`bridge.rpc.operators.process`).
"""

import gc
import importlib.metadata
import logging
import os
import signal
import socket
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NoReturn

from bridge.errors import BridgeError
from bridge.model.plan import Plan
from bridge.model.policy import PolicySpec
from bridge.model.snapshot import Snapshot
from bridge.planning.malleable.observing import NAME as SPEED_UPS
from bridge.ports import Environment
from bridge.recording.recorder import Recorder, Tap
from bridge.recording.recordings import encode
from bridge.registry import build
from bridge.resizing.launchers import Absent, Launchers
from bridge.resizing.states import Deadlines
from bridge.rpc.agents.hub import Hub
from bridge.rpc.agents.server import AgentServer
from bridge.rpc.controller.announcements import Announcements
from bridge.rpc.controller.cycles import Cycles, Observer
from bridge.rpc.controller.policy_switch import PolicySwitch
from bridge.rpc.controller.server import SCHEDULER, Server, add_scheduler
from bridge.rpc.controller.switches import Switches
from bridge.rpc.operators.process import Answers, Desk, OperatorProcess, Settings
from bridge.rpc.reported.session import Session
from bridge.rpc.transport.callers import Peers, Policy
from bridge.rpc.transport.descriptors import affordable, raise_descriptor_limit
from bridge.rpc.transport.directories import prepare_directory
from bridge.rpc.transport.gate import Bounds, Gate
from bridge.rpc.transport.listening import UnixListener, listen_tcp
from bridge.rpc.transport.tls import Certificates, RefusingServer
from bridge.rpc.transport.users import default_controllers, user_ids
from bridge.safe_cycle.decider import Decider
from bridge.safe_cycle.watchdog import Watchdog
from bridge.service.config import ServiceConfig
from bridge.service.observers import Keeper, Meter, Reader
from bridge.service.power_memory import PowerMemory
from bridge.service.resize_memory import ResizeMemory
from bridge.service.signals import Ended, Signals, leave
from bridge.service.telemetry import Metrics
from bridge.solver_process import ChildSolver
from bridge.state.accuracy import Changes
from bridge.state.announced_starts import StartRecords
from bridge.state.store import Store

_log = logging.getLogger(__name__)

OVERTIME_S = 60.0
"""A policy that plans for longer is interrupted, s; the controller has fallen back by then."""

GRACE_S = 5.0

READY_S = 60.0
"""Time that readiness is delayed at most until the operators' process has started, s."""

_MOST_CONTROLLERS = 128
"""Connections to each of the controller's gates; far below the descriptors `select` can take."""
_MOST_AGENTS = 8192
"""Connections of agents; they may all have one certificate."""
_KEPT_DESCRIPTORS = 40
"""Descriptors reserved for the store, the solver, the log, the private channel etc."""


def version() -> str:
    """The installed version of this package."""
    try:
        return importlib.metadata.version("schedbridge")
    except importlib.metadata.PackageNotFoundError:
        return "0 (not installed)"


class Service:
    """A running service; `start` and `stop` in this order, once.

    Attributes:
        cycles: what answers the controller.
        hub: agents and launchers; None: none are served.
    """

    def __init__(
        self,
        config: ServiceConfig,
        reread: Callable[[], ServiceConfig] | None = None,
        launchers: Launchers | None = None,
    ) -> None:
        """Prepares a service.

        Args:
            config: its configuration.
            reread: reads it again, on SIGHUP; None: SIGHUP is ignored.
            launchers: of simulated jobs; None: those that attach to the agents, if there are any.
        """
        self._config = config
        self._reread = reread
        self._stopped = False
        self._spec: PolicySpec = config.policy_spec
        self._name = f"schedbridge {version()}"
        self._server: Server | None = None
        self._strangers: list[RefusingServer] = []
        trusts = config.resizing.trust_launchers
        self.hub = Hub(trusts_launchers=trusts) if config.agents is not None else None
        self._launchers = launchers or self.hub or Absent()
        self._agents: AgentServer | None = None
        self._operators: OperatorProcess | None = None
        self._listening: list[UnixListener | socket.socket] = []
        self._gates: list[Gate] = []
        self._private: tempfile.TemporaryDirectory[str] | None = None
        self._metrics = Metrics(version(), self._spec.name)
        self._store: Store | None = None
        self._solver = ChildSolver()
        self._tap = Tap()
        self.cycles: Cycles | None = None

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

        # The sockets first: that shows whether another service lives here.
        at_controllers = self._listen(config.controller.socket, "controller.socket")
        # The operators' process of a service that was killed ends a moment after it.
        at_operators = self._listen(config.operator.socket, "operator.socket", patience_s=2.0)
        at_tls = at_metrics = None
        certificates = None
        if config.controller.tls is not None:
            strangers = str(Path(self._private.name) / "strangers")
            certificates = Certificates(config.controller.tls, controller, strangers)
            self._strangers.append(RefusingServer(strangers))
            at_tls = self._listen_tcp(config.controller.tls.address, "controller.tls")
        if config.metrics.address is not None:
            at_metrics = self._listen_tcp(config.metrics.address, "metrics.address")

        cycles = self._brain()
        operators = OperatorProcess(
            Answers(self._desk(cycles)),
            Settings(
                admins=tuple(sorted(admins)),
                per_user=config.limits.connections_per_user,
                private=self._private.name,
                log_level=config.log.level,
                log_format=config.log.format,
            ),
            operators=at_operators.socket,
            metrics=at_metrics,
        )
        self._operators = operators
        operators.start()

        size = config.limits.message_mib
        self._server = Server("controller", workers=8, message_mib=size)
        self._server.start(add_scheduler(cycles), [SCHEDULER], socket=controller)
        self._open(
            at_controllers.socket,
            "controller.socket",
            Peers(lambda uid: controller if uid in controllers else None),
        )
        if certificates is not None and at_tls is not None:
            self._open(at_tls, "controller.tls", certificates)
        self._open_to_agents()
        for gate in self._gates:
            gate.start()
        if not operators.ready.wait(READY_S):
            _log.error("the controller is served, operators are not yet")

    def _open_to_agents(self) -> None:
        agents = self._config.agents
        if agents is None or self.hub is None or self._private is None:
            return
        target, strangers = (str(Path(self._private.name) / name) for name in ("a", "a-strangers"))
        certificates = Certificates(agents, target, strangers, "agents")
        at_agents = self._listen_tcp(agents.address, "agents.address")
        self._strangers.append(RefusingServer(strangers, "agents"))
        self._agents = AgentServer(self.hub)
        self._agents.start(target)
        most = affordable(_MOST_AGENTS, _KEPT_DESCRIPTORS + 3 * _MOST_CONTROLLERS)
        bounds = Bounds(per_owner=most, total=most)
        refused = self._metrics.gate_refused
        self._gates.append(Gate(at_agents, "agents", certificates, bounds=bounds, refused=refused))

    def _listen(self, path: Path, key: str, patience_s: float = 0.0) -> UnixListener:
        listener = UnixListener(path, key, patience_s=patience_s)
        self._listening.append(listener)
        return listener

    def _listen_tcp(self, address: str, key: str) -> socket.socket:
        listener = listen_tcp(address, key)
        self._listening.append(listener)
        return listener

    def _open(self, listener: socket.socket, key: str, policy: Policy) -> None:
        """A gate for controllers: each has its own share of the descriptors."""
        doors = 1 if self._config.controller.tls is None else 2
        bounds = Bounds(total=affordable(_MOST_CONTROLLERS, _KEPT_DESCRIPTORS, doors))
        refused = self._metrics.gate_refused
        self._gates.append(Gate(listener, key, policy, bounds=bounds, refused=refused))

    def _desk(self, cycles: Cycles) -> Desk:
        store = self._store
        return Desk(
            cycles=cycles,
            switch=self._switch,
            service=self._name,
            failures=lambda: self._decider.failures,
            accuracy=store.accuracy if store is not None else StartRecords,
            record=self._recorded,
            metrics=self._metrics.page,
            refused=self._metrics.gate_refused,
            agents=lambda: self.hub.agent_count if self.hub is not None else 0,
            speed_ups=lambda: self._decider.state.learnt_by(SPEED_UPS),
        )

    def _brain(self) -> Cycles:
        config = self._config
        self._store = Store(
            config.memory.path, keep_days=config.memory.keep_days, told=self._promises_changed
        )
        resizes = ResizeMemory(self._store.state())
        power = PowerMemory(self.hub, lambda: self._decider.site.rules.power)
        self._decider = Decider(
            build(self._spec),
            power.take(resizes.others),
            site=config.planning.site(),
            environment=Environment(solver=self._solver),
            clock=time.monotonic,
            guard=Watchdog(OVERTIME_S),
        )
        self._store.watch(lambda: power.put(resizes.put(self._decider.state)))
        self._switch = PolicySwitch(
            config.policy_spec,
            self._decider,
            changed=self._metrics.policy,
            planning=config.planning.plain(),
        )
        self._reader = Reader(self._switch)
        observers: tuple[Observer, ...] = (
            Meter(self._metrics, self._decider),
            Keeper(self._store),
            self._reader,
        )
        recorder = Recorder(
            self._decider,
            lambda: (self._switch.spec, self._switch.planning),
            wanted=self._tap.wanted,
            keep=self._tap.keep,
        )
        store = self._store
        self._metrics.watch("memory_up", lambda: float(not store.problem))

        def decide(snapshot: Snapshot) -> Plan:
            self._switch.bear(self.cycles.patience_s if self.cycles is not None else 0.0)
            self._decider.state = power.take(resizes.take(store.catch_up(self._decider.state)))
            return recorder.decide(snapshot)

        self.cycles = Cycles(
            decide,
            session=self._session(config),
            announcements=Announcements(config.limits.decisions),
            service=self._name,
            policy=self._switch.name,
            site=lambda: self._decider.site,
            telemetry=lambda: self._decider.telemetry,
            observers=observers,
            launchers=self._launchers,
            deadlines=Deadlines(**config.resizing.model_dump(exclude={"trust_launchers"})),
            overlay=power.overlay,
        )
        resizing = self.cycles.resizing
        resizes.of(resizing.lately)
        self._metrics.watch("jobs_adapting", lambda: float(len(resizing.changes)))
        if self.hub is not None:
            draws = self.hub.power
            draws.tell = self._metrics.power_refused
            self._metrics.watch("power_nodes", lambda: float(draws.counts()[0]))
            self._metrics.watch("power_nodes_stale", lambda: float(draws.counts()[1]))
        for name in ("agents", "launchers"):
            self._metrics.watch(name, partial(self._connected, name))
        return self.cycles

    def _connected(self, what: str) -> float:
        """How many agents or launchers there are; for the metrics."""
        if self.hub is None:
            return 0.0
        return float(self.hub.agent_count if what == "agents" else self.hub.launcher_count)

    @staticmethod
    def _session(config: ServiceConfig) -> Session:
        known = config.topology
        if known.file is None:
            return Session(config.controller.retry_s)
        switches = Switches(known.file)
        switches.warn()
        return Session(config.controller.retry_s, switches.above, switches_wait_s=known.wait_s)

    def _recorded(self, min_queue: int, wait_s: float) -> tuple[bytes, int] | None:
        """Records the next cycle with such a queue; encodes it in the caller's thread."""
        found = self._tap.next(min_queue, wait_s)
        if found is None:
            return None
        cluster = self.cycles.session.hello.cluster if self.cycles is not None else ""
        origin = {"cluster": cluster, "service": self._name, "policy": found.policy.name}
        return encode(replace(found, origin=origin)), found.snapshot.generation

    def _promises_changed(self, changes: Changes) -> None:
        """Puts promises and starts into metrics; called in the store's thread."""
        metrics = self._metrics
        metrics.announcements_changed(changes.later, changes.earlier)
        for record in changes.started:
            if record.promise is not None:
                metrics.started(record.partition, record.at_s - record.promise.last_start_s)

    def stop(self, grace_s: float = GRACE_S) -> None:
        """Reports NOT_SERVING, finishes the running cycle, removes the sockets, saves the state."""
        if self._stopped:
            return
        self._stopped = True
        self._tap.close()
        if self._operators is not None:
            self._operators.stop()
        if self._server is not None:
            self._server.stop(grace_s)
        if self._agents is not None:
            self._agents.stop()
        for strangers in self._strangers:
            strangers.stop()
        for gate in self._gates:
            gate.close()
        for listener in self._listening:
            listener.close()
        self._solver.close()
        if self._store is not None:
            self._store.close()
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
        except Ended as ended_by:
            _log.info("stopping after %s, before it had started", ended_by)
            self._leave()
        _log.info(
            "%s serves policy %s; controllers at %s, operators at %s",
            self._name, self._spec.name, self._config.controller.socket,
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
        if self.cycles is not None and self.cycles.lock.locked():
            _log.warning("a cycle that did not end is abandoned")
        leave(0)

    def reload(self) -> None:
        """Reads the configuration again and puts its section `planning` in force.

        Everything else needs a restart. A wrong configuration changes nothing.
        """
        if self._reread is None or self.cycles is None:
            _log.warning("no configuration file to reload")
            return
        try:
            config = self._reread()
            told = self._switch.obey(config.planning, self.cycles)
        except BridgeError as error:
            _log.error("the configuration was not reloaded: %s", error)
            return
        except Exception:  # a bug here must not end the service
            _log.exception("the configuration was not read again")
            return
        for sentence in told:
            _log.warning("stranded by the new rules, planned again: %s", sentence)
        _log.info("limits and FreePools reloaded; %d planned jobs stranded", len(told))
        if self.cycles.published is not None:
            self._reader.read(self.cycles.published.snapshot)
        if config.model_copy(update={"planning": self._config.planning}) != self._config:
            _log.warning("other settings have changed as well; they need a restart")


def notify(state: str) -> None:
    """Tells systemd about the service's state, if it asked (sd_notify)."""
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return
    if address.startswith("@"):
        address = "\0" + address[1:]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        try:
            channel.connect(address)
            channel.sendall(state.encode())
        except OSError as error:
            _log.warning("cannot tell systemd (%s): %s", state, error)
