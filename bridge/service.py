# SPDX-License-Identifier: Apache-2.0
"""The service, put together: sockets and gates outside, cycles inside, memory and metrics beside.

| socket | who | what |
|---|---|---|
| controller.socket | controller.users | Scheduler, health, reflection |
| controller.tls.address | certificates of controller.tls.subjects | Scheduler, health |
| operator.socket | every user | Operator without changes, health, reflection |
| operator.socket | operator.admins | all of Operator |

The gates listen at these; the gRPC servers behind them at sockets in a private directory.
"""

import gc
import importlib.metadata
import logging
import os
import signal
import socket
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from bridge.accuracy import Changes
from bridge.config import ServiceConfig
from bridge.errors import ConfigError
from bridge.loop import Decider
from bridge.model.answer import Dispatched
from bridge.model.policy import PolicySpec
from bridge.model.snapshot import Snapshot
from bridge.planning.kept_plan import KeptPlan
from bridge.registry import build, with_rules
from bridge.rpc.announcements import Announcements
from bridge.rpc.cycles import CycleReport, Cycles, Observer
from bridge.rpc.gate import Gate, default_controllers, prepare_directory, user_ids
from bridge.rpc.operators import Operator
from bridge.rpc.policy_switch import PolicySwitch
from bridge.rpc.server import OPERATOR, SCHEDULER, Server, add_operator, add_scheduler
from bridge.rpc.session import Session
from bridge.rpc.switches import Switches
from bridge.sim.recorder import Recorder, Tap
from bridge.sim.recordings import encode
from bridge.solving import ChildSolver
from bridge.starts import Kept
from bridge.store import Store
from bridge.telemetry import Metrics

_log = logging.getLogger(__name__)

GRACE_S = 10.0


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
    """

    def __init__(
        self, config: ServiceConfig, reread: Callable[[], ServiceConfig] | None = None
    ) -> None:
        """Prepares a service.

        Args:
            config: its configuration.
            reread: reads it again, on SIGHUP; None: SIGHUP is ignored.
        """
        self._config = config
        self._reread = reread
        self._stopped = False
        self._spec: PolicySpec = with_rules(config.policy_spec, config.planning.plain())
        self._name = f"schedbridge {version()}"
        self._servers: list[Server] = []
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
        inner = Path(self._private.name)
        controller, reader, admin = (str(inner / name) for name in ("c", "r", "a"))

        # The gates first: they find out whether another service lives here.
        limit = config.limits.connections_per_user
        for key, path, route in (
            (
                "controller.socket",
                config.controller.socket,
                lambda uid: controller if uid in controllers else None,
            ),
            (
                "operator.socket",
                config.operator.socket,
                lambda uid: admin if uid in admins else reader,
            ),
        ):
            gate = Gate(path, key, route, per_user=limit, refused=self._metrics.gate_refused)
            self._gates.append(gate)

        cycles = self._brain()
        size = config.limits.message_mib
        self._serve("controller", 8, size).start(
            add_scheduler(cycles), [SCHEDULER], socket=controller
        )
        if config.controller.tls is not None:
            self._serve("controller.tls", 8, size).start(
                add_scheduler(cycles), [SCHEDULER], tls=config.controller.tls
            )
        for name, at, may_change in (("reader", reader, False), ("admin", admin, True)):
            servicer = Operator(
                cycles,
                self._switch,
                service=self._name,
                failures=lambda: self._decider.failures,
                accuracy=self._store.accuracy if self._store is not None else Kept,
                admin=may_change,
                record=self._recorded,
            )
            self._serve(name, 4, 1).start(add_operator(servicer), [OPERATOR], socket=at)
        if config.metrics.address is not None:
            self._metrics.serve(config.metrics.address)
        for gate in self._gates:
            gate.start()

    def _brain(self) -> Cycles:
        config = self._config
        self._store = Store(
            config.memory.path, keep_days=config.memory.keep_days, told=self._promises_changed
        )
        self._decider = Decider(build(self._spec), self._store.memory())
        self._decider.memory.solver = self._solver
        self._switch = PolicySwitch(
            config.policy_spec,
            self._decider,
            changed=self._metrics.policy,
            rules=config.planning.plain(),
        )
        self._reader = _Reader(self._switch)
        observers: tuple[Observer, ...] = (
            _Meter(self._metrics, self._decider),
            _Keeper(self._store),
            self._reader,
        )
        recorder = Recorder(
            self._decider,
            lambda: self._switch.spec,
            wanted=self._tap.wanted,
            keep=self._tap.keep,
        )
        self.cycles = Cycles(
            recorder.decide,
            session=self._session(config),
            announcements=Announcements(config.limits.decisions),
            service=self._name,
            policy=self._switch.name,
            observers=observers,
        )
        return self.cycles

    @staticmethod
    def _session(config: ServiceConfig) -> Session:
        known = config.topology
        if known.file is None:
            return Session(config.controller.retry_s)
        switches = Switches(known.file)
        switches.warn()
        return Session(config.controller.retry_s, switches.above, switches_wait_s=known.wait_s)

    def _recorded(self, min_queue: int, wait_s: float) -> tuple[bytes, int] | None:
        """The next cycle with such a queue, as a file; written in the thread of whoever asked."""
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

    def _serve(self, name: str, workers: int, message_mib: int) -> Server:
        server = Server(name, workers=workers, message_mib=message_mib)
        self._servers.append(server)
        return server

    def stop(self, grace_s: float = GRACE_S) -> None:
        """Says NOT_SERVING, finishes the running cycle, removes the sockets, saves the memory."""
        if self._stopped:
            return
        self._stopped = True
        self._tap.close()
        for server in self._servers:
            server.stop(grace_s)
        for gate in self._gates:
            gate.close()
        self._metrics.stop()
        self._solver.close()
        if self._store is not None:
            self._store.close()
        if self._private is not None:
            self._private.cleanup()

    def run(self) -> None:
        """Serves until SIGTERM or SIGINT.

        Raises:
            ConfigError: see `start`.
        """
        # A signal may be delivered to any thread, and Python's handlers run in the main one, which
        # that does not wake. The descriptor is written to whichever thread it is.
        heard, told = socket.socketpair()
        told.setblocking(False)
        signal.set_wakeup_fd(told.fileno())
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: None)
        # Tables of 100 k jobs are many objects and no cycles: looking for garbage among them at
        # Python's default pace costs a tenth of the time and the slowest cycles.
        gc.set_threshold(50_000, 20, 50)
        self.start()
        _log.info(
            "%s serves policy %s; controllers at %s, operators at %s",
            self._name, self._spec.name, self._config.controller.socket,
            self._config.operator.socket,
        )  # fmt: skip
        notify("READY=1")
        while (ended_by := signal.Signals(heard.recv(1)[0])) is signal.SIGHUP:
            self.reload()
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a second Ctrl-C is heeded
        _log.info("stopping after %s", ended_by.name)
        notify("STOPPING=1")
        self.stop()

    def reload(self) -> None:
        """Reads the configuration again and puts its limits and FreePools in force.

        Everything else needs a restart. A wrong configuration changes nothing.
        """
        if self._reread is None or self.cycles is None:
            _log.warning("there is no configuration file to read again")
            return
        try:
            config = self._reread()
            told = self._switch.obey(config.planning.plain(), self.cycles)
        except ConfigError as error:
            _log.error("the configuration was not read again: %s", error)
            return
        for sentence in told:
            _log.warning("stranded by the new rules, planned anew: %s", sentence)
        _log.info("limits and FreePools read again; %d planned jobs stranded", len(told))
        if self.cycles.published is not None:
            self._reader.read(self.cycles.published.snapshot)
        if config.model_copy(update={"planning": self._config.planning}) != self._config:
            _log.warning("other settings have changed, too: they need a restart")


class _Meter:
    """Puts cycles into metrics."""

    def __init__(self, metrics: Metrics, decider: Decider) -> None:
        self._metrics = metrics
        self._decider = decider
        self._last: Dispatched | None = None

    def _dispatched(self, done: Dispatched | None) -> None:
        """Each dispatch is noted once: a policy that dispatches nothing leaves the last one."""
        if done is not None and done is not self._last:
            self._metrics.dispatched(done)
        self._last = done

    def cycle(self, report: CycleReport) -> None:
        metrics = self._metrics
        for (outcome, code), count in report.outcomes.items():
            metrics.fate(outcome, code, count)
        if report.status is not None:
            status = report.status
            metrics.set("controller_fallbacks", status.fallbacks)
            metrics.set("controller_fallback_seconds", status.fallback_s)
            metrics.set("controller_lock_ms", status.lock_ms_max)
            metrics.set("controller_round_trip_ms", status.round_trip_ms)
        if report.published is None or report.decisions is None:
            metrics.need_full()
            return
        metrics.cycle(wall_s=report.wall_s, plan_s=report.plan_s, failures=self._decider.failures)
        for kind, count in report.decisions.by_kind.items():
            metrics.decided(kind, count)
        snapshot = report.published.snapshot
        metrics.set("jobs_pending", len(snapshot.jobs))
        metrics.set("jobs_running", len(snapshot.running))
        metrics.set("nodes", len(snapshot.nodes))
        metrics.set("nodes_usable", int(snapshot.nodes.usable.sum()))
        self._dispatched(self._decider.memory.dispatched)
        if (arranged := self._decider.memory.arranged) is not None:
            metrics.arranged(arranged.before, arranged.after)
        for predictor, learnt in list(self._decider.memory.at_hand.items()):
            metrics.run_times(
                predictor, (learnt.judged, learnt.under, learnt.off_s, learnt.accuracy)
            )


class _Keeper:
    """Puts promises and starts into the store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        saved = store.memory().kept_plan
        self._saved = saved if isinstance(saved, KeptPlan) else None

    def cycle(self, report: CycleReport) -> None:
        if self._saved is not None and report.published is not None:
            if self._saved.names != report.published.snapshot.nodes.names:
                _log.warning(
                    "the saved plan is not used: it is of other nodes; announced starts are kept"
                )
            self._saved = None
        if report.happened is not None:
            self._store.took(report.happened)


class _Reader:
    """Says which resources in limits and FreePools the cluster does not have, once per change."""

    def __init__(self, switch: PolicySwitch) -> None:
        self._switch = switch
        self._told: tuple[str, ...] = ()

    def cycle(self, report: CycleReport) -> None:
        if report.published is not None:
            self.read(report.published.snapshot)

    def read(self, snapshot: Snapshot) -> None:
        """Compares the rules in force with what there is."""
        unknown = self._switch.unknown(snapshot)
        if unknown == self._told:
            return
        self._told = unknown
        if unknown:
            names = ", ".join(unknown)
            _log.warning("limits and FreePools name resources the cluster does not have: %s", names)
        else:
            _log.info("limits and FreePools name only resources the cluster has")


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
