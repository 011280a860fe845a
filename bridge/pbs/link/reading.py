# SPDX-License-Identifier: Apache-2.0
"""Reads of the server what decisions are made and checked by, and no more.

Rules
    1. Commands are only hints; each turn determines what has changed. When the server announced new
       jobs only, it reads those alone before it calls the service, and the rest while the service
       decides.
    2. Starts are checked against what was read while the service decided, if that was at most
       `FRESH_S` ago. Otherwise the jobs that have changed and the vnodes are read again, and
       everything else too unless it was read less than `BRIEF_S` ago.
    3. The tables show starts under way as `starts.py` says.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from bridge.pbs.ifl.port import Command, Ifl, IflError
from bridge.pbs.link.figures import Figures
from bridge.pbs.link.mirror import Mirror
from bridge.pbs.link.model import Model
from bridge.pbs.link.registration import Registration
from bridge.pbs.link.settings import LinkSettings
from bridge.pbs.link.starts import OpenStarts
from bridge.pbs.tables import Attributes, Tables, text
from bridge.rpc.pb import scheduler_pb2 as pb

FRESH_S, BRIEF_S = 0.02, 0.05


@dataclass
class ServerReading:
    """The tables of the server that a link is connected to.

    Attributes:
        wake: set when something has changed that the service does not know.
        clock, wall: monotonic and Unix time, s.
        is_brief: the last reading was of new jobs only.
        results: results of starts, since they were taken.
        ended: runs that ended, since they were taken.
        lost: why the last reading while the service decided failed.
    """

    settings: LinkSettings
    ifl: Ifl
    registration: Registration
    model: Model
    starts: OpenStarts
    figures: Figures
    wake: threading.Event
    clock: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
    is_brief: bool = False
    results: list[pb.Fate] = field(default_factory=list)
    ended: list[pb.EndedJob] = field(default_factory=list)
    lost: IflError | None = None
    _mirror: Mirror | None = None
    _read_s: float = 0.0
    _commands: Counter[int] = field(default_factory=Counter)
    _fresh: Tables | None = None

    def connect(self) -> None:
        """Connects to the server, if that is necessary.

        Raises:
            IflError: there is no server.
        """
        connection = self.registration.connect()
        if self._mirror is None or self._mirror.connection != connection:
            self._mirror = Mirror(
                self.ifl, connection, self.settings.scheduler, self.wall, self.clock
            )
            self._mirror.settle(self.settings.poll_s)

    def forget(self) -> None:
        """Reads everything again next time: the connection was closed."""
        self._mirror = None

    def expect_change(self) -> None:
        """Reads definitions, queues, vnodes and reservations again next time."""
        if self._mirror is not None:
            self._mirror.expect_change()

    def take_results(self) -> list[pb.Fate]:
        """Returns results of starts that have not been taken."""
        results, self.results = self.results, []
        return results

    def take_ended(self) -> list[pb.EndedJob]:
        """Returns runs that have ended, and have not been taken."""
        ended, self.ended = self.ended, []
        return ended

    def read(self) -> Tables:
        """Reads at the begin of a turn (rule 1).

        Raises:
            IflError: the server does not answer, or refuses.
        """
        return self._read_new() or self.read_changed()

    def read_changed(self, *, starting: bool = False) -> Tables:
        """Reads whatever may have changed.

        Args:
            starting: starts are about to be sent.

        Raises:
            IflError: the server does not answer, or refuses.
        """
        self.is_brief = False
        mirror, commands = self._mirror, self.registration.commands
        assert mirror is not None  # made by connect
        if commands is not None and commands.restarted.is_set():
            commands.restarted.clear()
            mirror.read_all()
        if commands is not None and commands.definitions.is_set():
            commands.definitions.clear()
            mirror.expect_change()
        received = commands.counts.copy() if commands is not None else Counter()
        is_new = received != self._commands or bool(self.starts)
        self._commands = received
        began = self.clock()
        tables = mirror.refresh(notified=is_new or starting, starting=starting)
        self.figures.read_ms = (self.clock() - began) * 1e3
        self.results += self.starts.resolve(tables.jobs, self.clock())
        self._note_ended(mirror, tables)
        self._read_s = began
        return self.starts.overlay(tables)

    def _read_new(self) -> Tables | None:
        """Reads new jobs only; None: there may be other changes."""
        mirror, commands = self._mirror, self.registration.commands
        if mirror is None or commands is None or commands.restarted.is_set():
            return None
        received = commands.counts.copy()
        is_new = received.total() > self._commands.total() and all(
            count == self._commands[command] or command == Command.NEW
            for command, count in received.items()
        )
        if not is_new or self.clock() - mirror.read_s >= self.settings.poll_s:
            return None
        self.is_brief = True
        return self.starts.overlay(mirror.refresh_new())

    def read_meanwhile(self) -> None:
        """Reads everything while the service decides; an error is kept in `lost`."""
        mirror = self._mirror
        self._fresh = self.lost = None
        if self.registration.commands is None or mirror is None:
            return
        before = mirror.tables
        try:
            self._fresh = self.read_changed(starting=True)
        except IflError as error:
            self.lost = error
            return
        if not _are_alike(before, mirror.tables):
            self.wake.set()

    def read_before_starts(self) -> Tables:
        """Returns what is new enough to start jobs by (rule 2).

        Raises:
            IflError: the server does not answer, or refuses.
        """
        fresh, self._fresh = self._fresh, None
        if fresh is not None and self.clock() - self._read_s < FRESH_S:
            return fresh
        mirror = self._mirror
        if mirror is None or self.clock() - self._read_s >= BRIEF_S:
            return self.read_changed(starting=True)
        return self.starts.overlay(mirror.refresh_jobs())

    def _note_ended(self, mirror: Mirror, tables: Tables) -> None:
        left, records = mirror.take_ended(), dict[str, Attributes]()
        if left and text(tables.server, "job_history_enable") == "True":
            records = self.ifl.stat_ended(mirror.connection, list(left))
        for job_id, attributes in left.items():
            known = {**attributes, **records.get(job_id, {})}
            run = self.model.ended(job_id, known, tables.now_s)
            if run is not None:
                self.ended.append(run)


def _are_alike(before: Tables | None, after: Tables | None) -> bool:
    """Whether nothing was read that the service does not know; unchanged objects are the same."""
    return before is not None and after is not None and all(
        getattr(before, name) is getattr(after, name)
        for name in ("server", "queues", "vnodes", "jobs", "reservations")
    )  # fmt: skip
