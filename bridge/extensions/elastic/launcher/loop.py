# SPDX-License-Identifier: Apache-2.0
"""The launcher as a process: sockets and steps around a `MpiLauncher`.

After each event the record is written before the event is acted on. If there is no space for it,
the run continues without it, and no change begins. A line that cannot be read ends its connection;
the program connects again at its next probe.
"""

import contextlib
import json
import os
import secrets
import selectors
import signal
import socket
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from bridge.errors import LineError
from bridge.extensions.elastic.launcher.machine import MpiLauncher
from bridge.extensions.elastic.launcher.options import Folder, Options
from bridge.extensions.elastic.launcher.peers import AgentLink, peer_is_us
from bridge.extensions.elastic.launcher.programs import ProgramMachine
from bridge.extensions.elastic.launcher.record import (
    FROM_APPLICATION,
    Event,
    Finish,
    Hello,
    LauncherAction,
    LauncherState,
    Leaving,
    Left,
    Notify,
    Ready,
    Say,
    StartStep,
    StopStep,
    TellAgent,
    TellApp,
    Tested,
    Tick,
    load,
    save,
)
from bridge.extensions.elastic.launcher.steps import Steps
from bridge.extensions.elastic.lines import Grow, Lines, Shrink, parse

WAIT_S: Final = 1.0
SOON_S: Final = 0.02
MAX_PEERS: Final = 900
"""Connections at a time, below the usual limit of open files. Of more processes that leave at once
the launcher does not see the end; the agents do. One that has not shown the token makes room."""
MAX_UNREAD: Final = 20
"""Unreadable lines that are reported in the job's output, at most."""
FORWARDED: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2)


@dataclass
class Peer:
    """A process of the program that is connected."""

    stream: socket.socket
    local: bool
    known: bool
    """It is on this node, or has shown the token."""
    lines: Lines = field(default_factory=Lines)
    leaving: str | None = None
    """The change with which it leaves."""


class Loop:
    """One life of a launcher."""

    def __init__(self, folder: Folder, listeners: list[socket.socket]) -> None:
        """Begins or continues a run.

        Args:
            folder: the run's directory.
            listeners: the socket for rank 0, and that for processes on other nodes.
        """
        self.folder, self.options = folder, folder.read()
        self.steps = Steps(folder, self.options)
        known = load(folder.state)
        kind = ProgramMachine if self.options.engine == "program" else MpiLauncher
        self.machine = kind(
            known or _first(self.options), self.options.tasks,
            _parked_at(folder, self.options),
            workers=bool(self.options.worker),
        )  # fmt: skip
        self.resumed = known is not None
        self.agent = AgentLink(self.options.agent)
        self.listeners, self.peers = listeners, dict[int, Peer]()
        self.app: Peer | None = None
        self.signals: list[int] = []
        self.finished = False
        self.unsaved, self.unread = False, 0

    def run(self) -> None:
        """Runs until the job ends."""
        wake, woken = socket.socketpair()
        for end in (wake, woken):
            end.setblocking(False)
        signal.set_wakeup_fd(woken.fileno(), warn_on_full_buffer=False)
        for number in FORWARDED:
            signal.signal(number, lambda got, _: self.signals.append(got))
        now_s = time.monotonic()
        self._carry_out(self.machine.resume(now_s) if self.resumed else self.machine.begin(now_s))
        while not self.finished:
            self._wait(wake)
            for event in self._events():
                if isinstance(event, Grow | Shrink):
                    saved = self._save()
                    self.machine.unfit = "" if saved else "Its launcher has no room for its record."
                self._carry_out(self.machine.handle(event, time.monotonic()))
        self.agent.close()

    # ------------------------------------------------------------------ what happens

    def _wait(self, wake: socket.socket) -> None:
        timeout_s = SOON_S if self.steps.waiting() else WAIT_S
        if self.machine.record.deadline_s is not None:
            left_s = self.machine.record.deadline_s - time.monotonic()
            timeout_s = min(timeout_s, max(left_s, 0.0))
        with selectors.DefaultSelector() as selector:
            for one in [wake, *self.listeners, *(peer.stream for peer in self.peers.values())]:
                selector.register(one, selectors.EVENT_READ)
            for fd in [*self.steps.pidfds(), *self.agent.fds()]:
                selector.register(fd, selectors.EVENT_READ)
            selector.select(timeout_s)
        with contextlib.suppress(BlockingIOError):
            wake.recv(4096)

    def _events(self) -> Iterator[Event]:
        while self.signals:
            number = self.signals.pop(0)
            for step in self.machine.record.live("main", "joiner"):
                self.steps.pass_on(step.name, number)
        # Steps before sockets, sockets first to be heard: what a program said before it ended is
        # in its socket by the time that its end is seen.
        ended = list(self.steps.ended())
        self._accept()
        for number in list(self.peers):
            yield from self._read(number)
        yield from ended
        first = self.machine.attach()
        yield from self.agent.events(first)
        yield Tick()
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass

    def _accept(self) -> None:
        for listener in self.listeners:
            with contextlib.suppress(OSError):
                while True:
                    stream, _ = listener.accept()
                    local = stream.family == socket.AF_UNIX
                    if not self._has_room() or (local and not peer_is_us(stream)):
                        stream.close()
                        continue
                    stream.setblocking(False)
                    self.peers[stream.fileno()] = Peer(stream, local, known=local)

    def _has_room(self) -> bool:
        """Whether another connection fits: any host of the network may open some."""
        if len(self.peers) < MAX_PEERS:
            return True
        stranger = next((number for number, peer in self.peers.items() if not peer.known), None)
        if stranger is not None:
            self.peers.pop(stranger).stream.close()
        return stranger is not None

    def _read(self, number: int) -> Iterator[Event]:
        peer = self.peers[number]
        data: bytes | None = None
        with contextlib.suppress(BlockingIOError):
            try:
                data = peer.stream.recv(65536)
            except BlockingIOError:
                raise
            except OSError:
                data = b""
            try:
                for line in peer.lines.feed(data):
                    yield from self._line(peer, line)
            except LineError as error:
                if peer.known and self.unread < MAX_UNREAD:
                    _say(f"a line of the program cannot be read: {error}")
                    self.unread += 1
                data = b""
        if data == b"":
            peer.stream.close()
            del self.peers[number]
            if self.app is peer:
                self.app = None
            if peer.leaving is not None:
                yield Left(peer.leaving)

    def _line(self, peer: Peer, line: bytes) -> Iterator[Event]:
        event = parse(FROM_APPLICATION, line)
        if isinstance(event, Ready | Leaving):
            if not secrets.compare_digest(event.token.encode(), self.options.token.encode()):
                raise LineError(event.op, "not a process of this job")
            peer.known = True
            if isinstance(event, Leaving):
                peer.leaving = event.id
                return
            yield event
            with contextlib.suppress(OSError):  # written down: it need not say it again
                peer.stream.sendall(b'{"op":"ok"}\n')
            return
        if not peer.local:
            raise LineError(event.op, "only from the first node")
        if isinstance(event, Hello):
            if not self.machine.is_current(event.step):
                with contextlib.suppress(OSError):
                    peer.stream.sendall(b'{"op":"end"}\n')
                return
            self.app = peer
        elif self.app is not peer and not isinstance(event, Tested):
            raise LineError(event.op, "hello must come first")
        yield event

    # ------------------------------------------------------------------ what is done about it

    def _carry_out(self, actions: list[LauncherAction]) -> None:
        if not actions:
            return
        self._save()
        with contextlib.suppress(OSError):
            self._show_nodes()
        for action in actions:
            match action:
                case StartStep():
                    self.steps.forget({step.name for step in self.machine.record.steps})
                    self.steps.start(action)
                case StopStep():
                    self.steps.stop(action)
                case TellApp():
                    self._tell_app(dict(action.message))
                case TellAgent():
                    self.agent.tell(action.message)
                case Notify():
                    if self.options.signal:
                        number = signal.Signals[f"SIG{self.options.signal}"]
                        self.steps.signal(action.name, number)
                case Say():
                    _say(action.text)
                case Finish():
                    self.folder.end(action.code)
                    self.finished = True

    def _save(self) -> bool:
        try:
            save(self.machine.record, self.folder.state)
        except OSError as error:
            if not self.unsaved:
                _say(f"{self.folder.state}: {error.strerror}: no change is begun")
            self.unsaved = True
            return False
        self.unsaved = False
        return True

    def _show_nodes(self) -> None:
        text = "".join(f"{node}\n" for node in self.machine.record.nodes)
        with contextlib.suppress(FileNotFoundError):
            if self.folder.nodes.read_text() == text:
                return
        beside = self.folder.nodes.with_suffix(".new")
        beside.write_text(text)
        beside.replace(self.folder.nodes)

    def _tell_app(self, message: dict[str, object]) -> None:
        if self.app is None:
            return
        line = json.dumps(message, separators=(",", ":")).encode() + b"\n"
        try:
            self.app.stream.setblocking(True)
            self.app.stream.settimeout(5.0)
            self.app.stream.sendall(line)
            self.app.stream.setblocking(False)
        except OSError:
            with contextlib.suppress(OSError):
                self.app.stream.shutdown(socket.SHUT_RDWR)  # it says hello again


def _parked_at(folder: Folder, options: Options) -> str:
    """Where data is parked, less the number of the change.

    No other run has this name: what one left behind, before its job was requeued, say, is never
    taken for another one's data.
    """
    return f"{options.park}/schedbridge-{os.getuid()}-{options.job}-{folder.run}"


def _first(options: Options) -> LauncherState:
    return LauncherState(
        job=options.name, nodes=options.nodes, mpi=options.mpis[0], other_mpis=options.mpis[1:],
        engine=options.engine, test_engine=not options.engine,
    )  # fmt: skip


def _say(text: str) -> None:
    with contextlib.suppress(OSError):
        print(f"schedbridge run: {text}", file=sys.stderr, flush=True)
