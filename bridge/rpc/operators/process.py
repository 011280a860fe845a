# SPDX-License-Identifier: Apache-2.0
"""Starts the operators' process, answers its requests, and restarts it when it dies.

Rules
    1. The operators' sockets belong to this process and are passed to the other one, so that
       callers wait in the kernel's queue during a restart.
    2. Its requests are answered by separate threads, which hold locks of the cycle only for the
       time of a few assignments.
    3. A process that has died is restarted after `MIN_PAUSE_S`, doubled after each further death
       up to `MAX_PAUSE_S`. A process that is silent for `SILENT_S` is killed.
"""

import contextlib
import json
import logging
import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from bridge.errors import BridgeError, ControllerError
from bridge.extensions.elastic.operators.answers import change_width, elastic_reply
from bridge.extensions.operators_port import ServicePart
from bridge.interpreter import python
from bridge.model.learnt import Learnt
from bridge.rpc.controller.cycles import Cycles, Published
from bridge.rpc.controller.policy_switch import PolicySwitch
from bridge.rpc.operators.changes import changes_reply
from bridge.rpc.operators.requester import requester
from bridge.rpc.operators.view import InForce, LiveState, pack
from bridge.rpc.pb import operator_pb2 as pb
from bridge.rpc.pb import scheduler_pb2
from bridge.rpc.transport.private_channel import Channel, Frame, MessageKind, Part
from bridge.rpc.transport.status_codes import code_of
from bridge.state.announced_starts import StartRecords
from bridge.state.change_log import ChangeLog
from bridge.state.store import Slow

_log = logging.getLogger(__name__)

MIN_PAUSE_S, MAX_PAUSE_S = 0.1, 30.0
STEADY_S = 60.0
"""A process that lived this long did not die because of its start."""
SILENT_S = 120.0
_PATIENCE_S = 0.3
"""Longest total time for which making a view yields to cycles."""

_PROGRAM = "from bridge.rpc.operators.program import main; main()"


@dataclass(frozen=True)
class ServiceFunctions:
    """The functions of the service's process for the other one.

    Attributes:
        cycles: answers the controller.
        switch: replaces policies.
        service: its name, for display.
        failures: cycles that fell back to the conservative plan.
        accuracy: records of starts.
        record: least queue and seconds to wait, to the next such cycle as a file and its
            generation. ControllerError: another caller waits.
        refused: called for rejected callers: where, why, how many.
        agents: how many nodes have an agent.
        speed_ups: learnt ones.
        parts: by the name of an extension: what it runs in this process.
        changes: the log of operators' changes.
    """

    cycles: Cycles
    switch: PolicySwitch
    service: str
    failures: Callable[[], int]
    accuracy: Callable[[], StartRecords]
    record: Callable[[int, float], tuple[bytes, int] | None]
    metrics: Callable[[], bytes]
    refused: Callable[[str, str, int], None]
    agents: Callable[[], int] = lambda: 0
    speed_ups: Callable[[], Learnt] = Learnt
    parts: Mapping[str, ServicePart] = field(default_factory=dict)
    changes: ChangeLog = field(default_factory=lambda: ChangeLog(None))


class Answers:
    """Answers the other process's requests."""

    def __init__(self, functions: ServiceFunctions) -> None:
        self._functions = functions
        self._began = time.monotonic()
        self._lock = threading.Lock()
        self._numbered: tuple[int, Published | None] = (0, None)

    def live_state(self) -> LiveState:
        """State that changes all the time."""
        functions, now = self._functions, time.monotonic()
        cycles = functions.cycles
        counts, hello = cycles.counts, cycles.session.hello
        status = pb.StatusReply(
            service=functions.service,
            policy=functions.switch.name(),
            uptime_s=now - self._began,
            since_last_cycle_s=-1 if counts.last_call is None else now - counts.last_call,
            controller=hello.controller,
            cluster=hello.cluster,
            cycles=counts.cycles,
            cycle_ms_last=counts.wall_ms[-1] if counts.wall_ms else 0,
            cycle_ms_p99=counts.wall_ms_p99(),
            decisions=dict(counts.decisions),
            refusals=dict(counts.refusals),
            controller_status=counts.status,
            policy_failures=functions.failures(),
        )
        problems = {
            name: self._status(name, part, status) for name, part in functions.parts.items()
        }
        return LiveState(status.SerializeToString(), tuple(hello.features), problems)

    @staticmethod
    def _status(name: str, part: ServicePart, reply: pb.StatusReply) -> tuple[str, ...]:
        try:
            return tuple(part.status(reply))
        except Exception:  # a stranger's code; the rest of the status is shown
            _log.exception("the status of the extension %s is unknown", name)
            return (f"the status of {name} is unknown: see the service's log",)

    def in_force(self) -> InForce:
        """State that changes only by orders of administrators."""
        switch, parts = self._functions.switch, {}
        for name, part in self._functions.parts.items():
            try:
                parts[name] = part.in_force()
            except Exception:  # a stranger's code; other methods are answered
                _log.exception("what is in force of the extension %s is unknown", name)
        return InForce(switch.yaml(), switch.conditions(), parts)

    def reply(self, kind: int, parts: list[bytearray]) -> tuple[MessageKind, list[Part]]:
        """The answer, or an error: gRPC's code, and a sentence."""
        try:
            is_of_log = kind in (MessageKind.CHANGED, MessageKind.CHANGES)
            answer = self._answer_of_log if is_of_log else self.answer
            return MessageKind.ANSWER, answer(kind, parts)
        except (Slow, ControllerError) as error:
            orders = (MessageKind.ORDER, MessageKind.WIDTH)
            code = "FAILED_PRECONDITION" if kind in orders else "RESOURCE_EXHAUSTED"
            return MessageKind.ERROR, [code.encode(), str(error).encode()]
        except BridgeError as error:
            _log.warning("an administrator's order is refused: %s", error)
            return MessageKind.ERROR, [code_of(error).name.encode(), str(error).encode()]
        except Exception as error:
            _log.exception("request %d of the operators' process failed", kind)
            text = f"{type(error).__name__}: see the service's log"
            return MessageKind.ERROR, [b"INTERNAL", text.encode()]

    def answer(self, kind: int, parts: list[bytearray]) -> list[Part]:
        """The answer's parts; raises ConfigError, ControllerError and others."""
        functions = self._functions
        match kind:
            case MessageKind.VIEW:
                return self._view(int(parts[0]), int(parts[1]))
            case MessageKind.METRICS:
                return [functions.metrics()]
            case MessageKind.ACCURACY:
                return list(pack(functions.accuracy()))
            case MessageKind.POLICY:
                functions.switch.replace(parts[0].decode(), functions.cycles)
                return []
            case MessageKind.ORDER:
                decision = scheduler_pb2.Decision.FromString(bytes(parts[0]))
                result = functions.cycles.orders.carry_out(decision, float(parts[1]))
                return [result.SerializeToString()]
            case MessageKind.RECORD:
                found = functions.record(int(parts[0]), float(parts[1]))
                return [] if found is None else [found[0], str(found[1]).encode()]
            case MessageKind.ELASTIC:
                reply = elastic_reply(functions.cycles, functions.agents(), functions.speed_ups())
                return [reply.SerializeToString()]
            case MessageKind.WIDTH:
                request = pb.ChangeWidthRequest.FromString(bytes(parts[0]))
                user, uid = (part.decode() for part in parts[1:])
                change_width(functions.cycles, request, user=user, uid=uid)
                return []
            case MessageKind.EXTENSION:
                return self._answer_of_extension(parts)
        raise ControllerError(f"unknown request {kind}")

    def _answer_of_extension(self, parts: list[bytearray]) -> list[Part]:
        part, method = self._functions.parts[parts[0].decode()], parts[1].decode()
        question, who = bytes(parts[2]), requester(parts)
        if who is None:
            return list(part.reads[method](question))
        return list(part.changes[method](question, who))

    def _answer_of_log(self, kind: int, parts: list[bytearray]) -> list[Part]:
        """Logs a change, or lists changes."""
        log, given = self._functions.changes, bytes(parts[0])
        if kind == MessageKind.CHANGES:
            return [changes_reply(log, given)]
        log.add(pb.OperatorChange.FromString(given), admin=bool(parts[1]))
        return []

    def _view(self, known: int, known_changes: int) -> list[Part]:
        """The live state; other parts only if they have changed.

        Args:
            known: number of the cycle that the other process has.
            known_changes: number of changes of policy and rules that it knows of.
        """
        changes = self._functions.switch.changes  # read first: an old number does no harm
        in_force = self.in_force() if changes != known_changes else None
        published = self._functions.cycles.published
        with self._lock:
            serial, last = self._numbered
            if last is not published:
                serial += 1
                self._numbered = (serial, published)
        began = time.thread_time()
        body = (
            pack(published, _yield_to_cycles(self._functions.cycles.lock))
            if serial != known
            else []
        )
        # The cost is the CPU time of this thread; it may have waited for cycles in between.
        cost_s = time.thread_time() - began
        return [*pack((serial, changes, cost_s, self.live_state(), in_force)), *body]

    def refused(self, parts: list[bytearray]) -> None:
        """Records callers that were turned away."""
        where, why, count = (part.decode() for part in parts)
        self._functions.refused(where, why, int(count))


def _yield_to_cycles(cycle: threading.Lock) -> Callable[[], None]:
    """Returns a function that waits while a cycle runs, for a limited time in total."""
    left_s = _PATIENCE_S

    def wait() -> None:
        nonlocal left_s
        if left_s <= 0 or not cycle.locked():
            return
        began = time.monotonic()
        if cycle.acquire(timeout=left_s):
            cycle.release()
        left_s -= time.monotonic() - began

    return wait


@dataclass(frozen=True)
class OperatorSettings:
    """Settings of the other process.

    Attributes:
        admins: user ids with administrator rights.
        private: directory for its own sockets.
    """

    admins: tuple[int, ...]
    per_user: int
    private: str
    log_level: str
    log_format: str


class OperatorProcess:
    """The operators' process, for as long as the service lives.

    Attributes:
        ready: set once it serves; cleared while there is none.
        pid: the pid of the present one; None: there is none.
    """

    def __init__(
        self,
        answers: Answers,
        settings: OperatorSettings,
        *,
        operators: socket.socket,
        metrics: socket.socket | None,
        pages: Mapping[str, tuple[socket.socket, Mapping[str, Any]]] | None = None,
    ) -> None:
        """Prepares it.

        Args:
            metrics: listens for readers of metrics; None: there are none.
            pages: by the name of an extension: listens for callers of its page; and its settings.
        """
        self._answers = answers
        self._settings = settings
        self._operators = operators
        self._metrics = metrics
        self._pages = pages or {}
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._channel: Channel | None = None
        self._pool = ThreadPoolExecutor(8, thread_name_prefix="operators")
        self._thread = threading.Thread(target=self._run, name="operators", daemon=True)
        self._heard = 0.0
        self.ready = threading.Event()
        self.pid: int | None = None

    def start(self) -> None:
        """Starts it, without waiting for it."""
        self._thread.start()

    def stop(self) -> None:
        with self._lock:
            self._stopping.set()
            if self._channel is not None:
                self._channel.close()
        if self._thread.is_alive():
            self._thread.join(timeout=15)
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _run(self) -> None:
        pause_s = MIN_PAUSE_S
        while not self._stopping.is_set():
            began = time.monotonic()
            try:
                code = self._one()
            except OSError as error:
                _log.error("the operators' process cannot be started: %s", error)
            else:
                if not self._stopping.is_set():
                    _log.error("the operators' process has ended (%s): it is started again", code)
            if time.monotonic() - began > STEADY_S:
                pause_s = MIN_PAUSE_S
            self._stopping.wait(pause_s)
            pause_s = min(2 * pause_s, MAX_PAUSE_S)

    def _one(self) -> int:
        """Runs one process until it ends; returns how it ended."""
        here, there = socket.socketpair()
        with there:
            channel = Channel(here)
            with self._lock:
                if self._stopping.is_set():
                    channel.close()
                    return 0
                self._channel = channel
            try:
                process = self._spawn(there)
            except OSError:
                channel.close()
                raise
        self.pid, self._heard = process.pid, time.monotonic()
        watch = threading.Thread(target=self._watch, args=(process,), daemon=True)
        watch.start()
        try:
            while (frame := channel.receive()) is not None:
                self._heard = time.monotonic()
                self._take(channel, frame)
        finally:
            self.ready.clear()
            channel.close()
            try:
                code = process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                code = process.wait()
            self.pid = None
        return code

    def _spawn(self, channel: socket.socket) -> "subprocess.Popen[bytes]":
        metrics = None if self._metrics is None else self._metrics.fileno()
        pages = {name: (page.fileno(), given) for name, (page, given) in self._pages.items()}
        given = [channel.fileno(), self._operators.fileno()]
        settings: dict[str, Any] = {
            "channel": given[0],
            "operators": given[1],
            "metrics": metrics,
            "pages": pages,
            "admins": self._settings.admins,
            "per_user": self._settings.per_user,
            "private": self._settings.private,
            "log_level": self._settings.log_level,
            "log_format": self._settings.log_format,
        }
        others = [page for page, _ in pages.values()] + ([] if metrics is None else [metrics])
        environment = {name: text for name, text in os.environ.items() if name != "NOTIFY_SOCKET"}
        return subprocess.Popen(
            python("-c", _PROGRAM, json.dumps(settings)),
            stdin=subprocess.DEVNULL,
            pass_fds=[*given, *others],
            env=environment,
            process_group=0,  # this process handles an interrupt at the terminal
        )

    def _watch(self, process: "subprocess.Popen[bytes]") -> None:
        """Kills a process that is silent."""
        while not self._stopping.wait(SILENT_S / 10) and process.poll() is None:
            if time.monotonic() - self._heard > SILENT_S:
                _log.error("the operators' process does not answer: it is killed")
                process.kill()

    def _take(self, channel: Channel, frame: Frame) -> None:
        number, kind, parts = frame
        if kind == MessageKind.READY:
            self.ready.set()
        elif kind == MessageKind.REFUSED:
            self._answers.refused(parts)
        elif kind != MessageKind.ALIVE:
            with contextlib.suppress(RuntimeError):  # the service stops
                self._pool.submit(self._reply, channel, number, kind, parts)

    def _reply(self, channel: Channel, number: int, kind: int, parts: list[bytearray]) -> None:
        status, answer = self._answers.reply(kind, parts)
        with contextlib.suppress(OSError):
            channel.send(number, status, answer)
