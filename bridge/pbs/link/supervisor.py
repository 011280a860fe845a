# SPDX-License-Identifier: Apache-2.0
"""Starts the link, watches it, and starts pbs_sched in its place.

This process makes no call that can block: neither libpbs nor gRPC is in it.

Rules
    1. A link that has been silent for `watchdog_s` is killed: a frozen process keeps its
       registration, and no other scheduler could register. A link that has ended is started again.
    2. pbs_sched runs when the link has stepped aside, or has not been registered for `silence_s`;
       never beside a registered link, and never as a standby: one that was refused once does not
       recover. Without a server nothing is started.
    3. pbs_sched is ended before the link is told that it may register. One that ends by itself is
       started again, while it is needed.
    4. Both end with this process.
"""

import ctypes
import logging
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from bridge.interpreter import python
from bridge.pbs.link.parent import ABSENT, ALIVE, ASIDE, READY, REGISTERED, YOURS
from bridge.pbs.link.settings import LinkSettings

_log = logging.getLogger(__name__)

_LOOK_S = 0.2
_END_S = 2.0
_AGAIN_S = 1.0
_BEGIN_S = 60.0
"""Time for which a new link may be silent, as it loads its modules."""
_PR_SET_PDEATHSIG = 1


class Process(Protocol):
    def poll(self) -> int | None:
        """Its exit code; None: it runs."""

    def end(self) -> None:
        """Ends it, at once if it does not end by itself."""

    def kill(self) -> None:
        """Kills it, and waits for its end."""


class LinkProcess(Process, Protocol):
    def lines(self, timeout_s: float) -> Sequence[str]: ...

    def tell(self, word: str) -> None:
        """Sends it a line."""


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class Child:
    """A process of this one; a `Process`."""

    def __init__(self, command: Sequence[str], **options: object) -> None:
        # The child is one program more: no thread of this process holds a lock then.
        self._process: subprocess.Popen[bytes] = subprocess.Popen(
            command,
            preexec_fn=_die_with_parent,  # noqa: PLW1509
            **options,  # type: ignore[call-overload]
        )

    def poll(self) -> int | None:
        """Its exit code."""
        code: int | None = self._process.poll()
        return code

    def end(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """Kills it, and waits for its end."""
        self._process.kill()
        self._process.wait()


class LinkChild(Child):
    """A link with its pipe; a `LinkProcess`."""

    def __init__(self, settings: LinkSettings) -> None:
        to_child, self._write_to = os.pipe()
        self._read_from, from_child = os.pipe()
        os.set_blocking(self._read_from, False)
        os.set_blocking(self._write_to, False)
        self._rest = b""
        super().__init__(
            python(
                "-m", "bridge.pbs.link", str(to_child), str(from_child), settings.written()
            ),
            pass_fds=(to_child, from_child),
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(to_child)
        os.close(from_child)

    def lines(self, timeout_s: float) -> Sequence[str]:
        ready, _, _ = select.select([self._read_from], [], [], timeout_s)
        if not ready:
            return ()
        try:
            data = os.read(self._read_from, 1 << 16)
        except BlockingIOError:
            return ()
        if not data:
            time.sleep(timeout_s)  # it is about to end
            return ()
        *whole, self._rest = (self._rest + data).split(b"\n")
        return [line.decode("utf-8", "replace") for line in whole]

    def tell(self, word: str) -> None:
        """Sends it a line."""
        try:
            os.write(self._write_to, f"{word}\n".encode())
        except OSError as error:
            _log.warning("the link does not listen: %s", error)

    def kill(self) -> None:
        """Kills it, and waits for its end."""
        super().kill()
        self.close()

    def close(self) -> None:
        """Closes the pipe of one that has ended."""
        for descriptor in (self._read_from, self._write_to):
            if descriptor >= 0:
                os.close(descriptor)
        self._read_from = self._write_to = -1


@dataclass
class Supervisor:
    """One link, and the scheduler that takes over.

    Attributes:
        start_link, start_stock: start the processes; no `start_stock`: nothing takes over.
        clock: monotonic, s.
        notify: tells systemd that this process lives, and what it does.
    """

    settings: LinkSettings
    start_link: Callable[[], LinkProcess]
    start_stock: Callable[[], Process] | None
    clock: Callable[[], float] = time.monotonic
    notify: Callable[[str], None] = lambda _: None
    link: LinkProcess | None = None
    stock: Process | None = None
    kills: int = 0
    _heard: float = 0.0
    _link_retry: float = 0.0
    _stock_retry: float = 0.0
    _unregistered_since: float | None = None
    _absent: bool = False
    _words: dict[str, Callable[[str], None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Prepares it; nothing runs yet."""
        self._unregistered_since = self.clock()
        self._words = {
            ALIVE: lambda _: None,
            READY: self._ready,
            REGISTERED: self._registered,
            ASIDE: self._aside,
            ABSENT: self._no_server,
        }

    def run(self, is_ending: Callable[[], bool]) -> None:
        """Watches until it is to end, and ends both."""
        while not is_ending():
            self.step()
        if self.link is not None:
            self.link.end()
        if self.stock is not None:
            self.stock.end()

    def step(self) -> None:
        """Looks once at everything."""
        now = self.clock()
        self.notify("WATCHDOG=1")
        self._watch_link(now)
        if self.link is not None:
            for line in self.link.lines(_LOOK_S):
                self._heard = self.clock()
                word, _, text = line.partition(" ")
                if word in self._words:
                    self._words[word](text)
        else:
            time.sleep(_LOOK_S)
        self._watch_stock(self.clock())

    def _watch_link(self, now: float) -> None:
        link = self.link
        if link is not None and (code := link.poll()) is not None:
            _log.error("the link has ended (%d): it is started again", code)
            self._link_gone(now)
        elif link is not None and now - self._heard > self.settings.watchdog_s:
            _log.error("the link has been silent for %.1f s: it is killed", now - self._heard)
            self.kills += 1
            link.kill()
            self._link_gone(now)
        if self.link is None and now >= self._link_retry:
            self.link = self.start_link()
            self._heard = now + _BEGIN_S - self.settings.watchdog_s

    def _link_gone(self, now: float) -> None:
        self.link = None
        self._link_retry = now + _AGAIN_S
        self._absent = False
        if self._unregistered_since is None:
            self._unregistered_since = now

    def _watch_stock(self, now: float) -> None:
        if self.stock is not None and (code := self.stock.poll()) is not None:
            _log.error("pbs_sched has ended (%d)", code)
            self.stock, self._stock_retry = None, now + _AGAIN_S
        since = self._unregistered_since
        if (
            self.start_stock is not None
            and self.stock is None
            and since is not None
            and not self._absent
            and now - since >= self.settings.silence_s
            and now >= self._stock_retry
        ):
            _log.warning("pbs_sched takes over")
            self.notify("STATUS=pbs_sched schedules: the service does not answer")
            self.stock = self.start_stock()

    # ------------------------------------------------------------ words of the link

    def _ready(self, _: str) -> None:
        self._absent = False
        if self.stock is not None:
            _log.info("the service answers again: pbs_sched is ended")
            self.stock.end()
            self.stock = None
        if self._unregistered_since is not None:
            self._unregistered_since = self.clock()  # it is about to register
        if self.link is not None:
            self.link.tell(YOURS)

    def _registered(self, _: str) -> None:
        if self.stock is not None:
            self.stock.end()
            self.stock = None
        self._unregistered_since, self._absent = None, False
        self.notify("READY=1\nSTATUS=registered as the server's scheduler")

    def _aside(self, why: str) -> None:
        _log.warning("the link has stepped aside: %s", why)
        self._absent = False
        self._unregistered_since = self.clock() - self.settings.silence_s

    def _no_server(self, why: str) -> None:
        if not self._absent:
            _log.warning("no server: %s", why)
        self._absent = True
        if self._unregistered_since is None:
            self._unregistered_since = self.clock()
        if self.stock is not None:
            self.stock.end()
            self.stock = None
