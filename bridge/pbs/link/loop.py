# SPDX-License-Identifier: Apache-2.0
"""One turn of the link after the other: read, report, carry out.

Terms
    registered   this link is the server's scheduler.
    fallback     pbs_sched is the scheduler instead, because the service is silent. The service is
                 still called, and its decisions are dropped, until it answers in time.

Rules
    1. When the service has been silent for `silence_s`, the registration is given back at once. It
       is taken again after the service has answered a full report in time, and the supervisor has
       stopped pbs_sched.
    2. A lost connection to the server loses nothing: everything is read and reported again.
    3. Every step that may take long is followed by a sign of life to the supervisor.

Parts: `reading.py`, `call_times.py`, `execution.py`, `requests.py`.
"""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from bridge.errors import BridgeError
from bridge.pbs.ifl.port import Code, Ifl, IflError
from bridge.pbs.link.announcer import Announcer
from bridge.pbs.link.call_times import FENCED_RETRY_S, CallTimes
from bridge.pbs.link.execution import DecisionExecution
from bridge.pbs.link.figures import Figures
from bridge.pbs.link.model import Model
from bridge.pbs.link.parent import ABSENT, ASIDE, READY, REGISTERED, Heartbeat, Parent
from bridge.pbs.link.reading import ServerReading
from bridge.pbs.link.registration import Registration
from bridge.pbs.link.requests import ServerRequests
from bridge.pbs.link.settings import LinkSettings
from bridge.pbs.link.starts import OpenStarts
from bridge.pbs.link.stream import Stream
from bridge.pbs.tables import Tables, text
from bridge.rpc.pb import scheduler_pb2 as pb

_log = logging.getLogger(__name__)

_SERVER_RETRY_S = 1.0


@dataclass
class Link:
    """The scheduler of a server, for a service.

    Attributes:
        ifl: the batch interface.
        model: the pure half.
        announcer: writes comments.
        wake: set when something may have changed.
        clock: monotonic, s.
        wall: Unix time, s.
    """

    settings: LinkSettings
    ifl: Ifl
    stream: Stream
    model: Model
    parent: Parent
    announcer: Announcer
    wake: threading.Event = field(default_factory=threading.Event)
    clock: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
    figures: Figures = field(default_factory=Figures)

    def __post_init__(self) -> None:
        """Prepares a link that is not registered."""
        settings = self.settings
        self.registration = Registration(self.ifl, settings.server, settings.scheduler, self.wake)
        self._heartbeat = Heartbeat(self.parent, self.clock)
        self._starts = OpenStarts()
        self._times = CallTimes(settings)
        self._reading = ServerReading(
            settings, self.ifl, self.registration, self.model, self._starts, self.figures,
            self.wake, self.clock, self.wall,
        )  # fmt: skip
        self._execution = DecisionExecution(
            settings.scheduler, self.ifl, self.registration, self.model, self._reading,
            self._starts, self.announcer, self._heartbeat, self.figures, self.clock,
        )  # fmt: skip
        self.requests = ServerRequests(
            self.ifl, self.registration, self.model, self._reading, self._execution, self.wake,
            self.clock,
        )  # fmt: skip
        self._offered = False
        self._requested_cycle = False

    @property
    def is_registered(self) -> bool:
        """Whether this link is the server's scheduler."""
        return self.registration.commands is not None

    def run(self, ending: threading.Event) -> None:
        """Takes turns until it is stopped; then gives the registration back."""
        while not ending.is_set():
            self.wake.wait(self.turn())
            if self.is_registered:
                ending.wait(self._times.pace.rests_s(self.clock()))
            self.wake.clear()
        self._give_back()
        self.model.end()

    def turn(self) -> float:
        """Takes one turn; returns after how many seconds the next is due at the latest."""
        self.figures.turns += 1
        self._heartbeat.beat()
        try:
            self._register()
            tables = self._note(self._reading.read())
            self._request_cycle_of_fallback(tables)
            self._decide(tables)
        except IflError as error:
            self._server_lost(error)
            return _SERVER_RETRY_S
        return self._times.next_turn_s(self.clock(), starting=bool(self._starts))

    # ------------------------------------------------------------ the registration

    def _register(self) -> None:
        if self.registration.is_lost:
            raise IflError("registration", Code.LOST, "the connection has ended")
        if not self.is_registered and self._offered and self.parent.may_register():
            self._offered = False
            self._reading.forget()
            if self.registration.register():
                self._times.wait(self.clock(), FENCED_RETRY_S)
            else:
                self.figures.registered(self.clock())
                self.parent.tell(REGISTERED)
                self.announcer.use(self.registration.primary)
                self.stream.forget()
                self._times.call_soon()
        self._reading.connect()

    def _give_back(self) -> None:
        self.announcer.use(None)
        self.registration.drop()

    def _server_lost(self, error: IflError) -> None:
        _log.warning("the server does not answer: %s", error)
        self._give_back()
        self._reading.forget()
        self._starts.clear()
        self._offered = False
        self.stream.forget()
        self.announcer.reset()
        self.parent.tell(ABSENT, str(error))

    def _fall_back(self, why: str) -> None:
        _log.error("giving the registration back until the service answers: %s", why)
        self._give_back()
        self._reading.forget()
        self._starts.clear()
        self.announcer.reset()
        self.figures.fell_back(why, self.clock())
        self.parent.tell(ASIDE, why)

    def _request_cycle_of_fallback(self, tables: Tables) -> None:
        """Makes pbs_sched start a cycle when it has taken over.

        The server has sent its command for the waiting jobs to this link, and does not repeat it:
        otherwise pbs_sched would begin with the next event, or after `scheduler_iteration`.
        """
        primary = self.registration.primary
        if self.is_registered or not self.figures.fallback_since or primary is None:
            self._requested_cycle = False
            return
        state = text(self.ifl.stat_scheduler(primary, self.settings.scheduler), "state")
        if state in {"", "down"}:
            self._requested_cycle = False
        elif not self._requested_cycle and not self._execution.is_off(tables):
            code = self.ifl.start_cycle(primary)
            self._requested_cycle = not code
            _log.info("a cycle of pbs_sched is requested: %s", code or "done")

    # ------------------------------------------------------------ the service

    def _note(self, tables: Tables) -> Tables:
        """Takes note of what was read, and of results of starts."""
        self._heartbeat.beat()
        self.stream.name_cluster(tables.server_name)
        self.stream.note(self._reading.take_results())
        if not self._reading.is_brief:
            self.announcer.keep_only(tables.jobs)
        return tables

    def _decide(self, tables: Tables) -> None:
        now, times = self.clock(), self._times
        if not times.may_call(now):
            return
        report = self.model.report(tables)
        if self._reading.is_brief and not times.is_due(
            now, self.stream, report, self._reading.ended
        ):
            tables = self._note(self._reading.read_changed())
            report = self.model.report(tables)
        self._heartbeat.beat()
        if self.is_registered and not self.requests.answer(tables):
            self._give_back()
            self._offered = False
        if not times.is_due(now, self.stream, report, self._reading.ended):
            return
        times.called(now)
        ended = self._reading.take_ended()
        try:
            reply = self.stream.ask(
                report, tables.now_s,
                timeout_s=times.timeout_s(now, registered=self.is_registered), ended=ended,
                status=self.figures.status(self.clock()),
                meanwhile=self._reading.read_meanwhile,
            )  # fmt: skip
        except BridgeError as error:
            self._silent(error, now)
            return
        self.figures.calls += 1
        self.figures.call_ms = (self.clock() - now) * 1e3
        times.pace.took(self.clock() - now)
        self._answered(reply)
        self.stream.note(self._reading.take_results())
        if self._reading.lost is not None:
            raise self._reading.lost
        if self.is_registered:
            self._carry_out(tables, reply)

    def _silent(self, error: BridgeError, began: float) -> None:
        times, now = self._times, self.clock()
        if not times.silent_since:
            _log.warning("the service does not answer: %s", error)
        self._offered = False
        if not times.failed(began, now, error, registered=self.is_registered):
            return
        if self.is_registered:
            self._fall_back(str(error))
        elif not self.figures.fallback_since:
            self.figures.fallback_since = now
            self.parent.tell(ASIDE, str(error))

    def _answered(self, reply: pb.CycleReply) -> None:
        now, times = self.clock(), self._times
        if times.silent_since:
            _log.info("the service answers again after %.1f s", now - times.silent_since)
        times.answered(now, reply)
        if not self.is_registered:
            self.stream.forget()  # its decisions are not carried out: all are needed again
            if not self._offered:
                self._offered = True
                self.parent.tell(READY)

    def _carry_out(self, tables: Tables, reply: pb.CycleReply) -> None:
        results = self._execution.carry_out(tables, reply)
        self.stream.note(self._reading.take_results())
        self.stream.note(results)
        is_task = any(
            "[" in each.job_id for each in reply.decisions if each.WhichOneof("action") == "start"
        )
        if results or is_task:
            self.wake.set()  # other vnodes, or further tasks, may be decided on
