# SPDX-License-Identifier: Apache-2.0
"""One turn of the link after the other: look, report, carry out.

Terms
    registered   this link is the server's scheduler.
    aside pbs_sched is the scheduler instead, because the service is silent. The service is still
                 called, and its decisions are dropped, until it answers in time.

Rules
    1. Commands are only hints, and another thread answers them; each turn determines what has
       changed. When it was told of new jobs only, it reads those alone before it calls the service,
       and the rest while the service decides.
    2. Starts are checked against what was read while the service decided, if that was at most
       `FRESH_S` ago. Otherwise the jobs that have changed and the vnodes are read again, and
       everything else too unless it was read less than `BRIEF_S` ago.
    3. A start counts when the job is seen running (`starts.py`).
    4. That jobs run as the service has decided is reported with the next change, at the latest
       after `CONFIRM_S`: one call for a job that is submitted, and one when it ends.
    5. When the service has been silent for `silence_s`, the registration is given back at once. It
       is taken again after the service has answered a full report in time, and the supervisor has
       stopped pbs_sched.
    6. A lost connection to the server loses nothing: everything is read and reported again.
    7. The server answers a resume when the moms of the job have. Only the registered connection may
       send it, so that a mom that does not answer would block the link: after `RESUME_S` the
       connection is closed, the link registers again, and the job is not resumed for
       `RESUME_AGAIN_S`.
"""

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from bridge.errors import BridgeError, StaleSnapshot
from bridge.pbs.ifl.port import Code, Command, Ifl, IflError
from bridge.pbs.link.chores import Announcer
from bridge.pbs.link.deadline import within
from bridge.pbs.link.mirror import Mirror
from bridge.pbs.link.model import Checked, Model
from bridge.pbs.link.pace import Pace
from bridge.pbs.link.parent import ABSENT, ALIVE, ASIDE, READY, REGISTERED, Parent
from bridge.pbs.link.registration import Registration
from bridge.pbs.link.settings import Settings
from bridge.pbs.link.starts import Open, Starts
from bridge.pbs.link.stream import News, Reported, Stream
from bridge.pbs.orders import Confirmation, Refusal, Run
from bridge.pbs.tables import Attributes, Tables, text
from bridge.rpc.pb import scheduler_pb2 as pb

_log = logging.getLogger(__name__)

_RETRY_S, _ASIDE_RETRY_S, _FENCED_RETRY_S, _SERVER_RETRY_S = 0.25, 1.0, 5.0, 1.0
FRESH_S, BRIEF_S, CONFIRM_S = 0.02, 0.05, 0.5
RESUME_S, RESUME_AGAIN_S = 3.0, 300.0
_BUSY = {Code.UNAVAILABLE, Code.MOM_REJECTED, Code.NO_MOM}
_STALE = {Code.UNKNOWN_JOB, Code.BAD_STATE, Code.JOB_ALTERED}
_UNCONFIRMED, _DEGRADED = {"1", "11"}, {"10", "12"}
_ANSWER_S, _AGAIN_S = 5.0, 60.0
"""Time after which a reservation that still needs an answer gets another one."""
_SUSPENDED_BY_SCHEDULER = "45"


@dataclass
class Figures:
    """Statistics of a link since its start.

    Attributes:
        turns, calls, starts: how many.
        fallbacks: times the registration was given back because the service was silent.
        fallback_s: time spent so.
        look_ms, call_ms, send_ms: time of the last look at the tables, call and sending of starts.
    """

    turns: int = 0
    calls: int = 0
    starts: int = 0
    fallbacks: int = 0
    fallback_s: float = 0.0
    fallback_reason: str = ""
    look_ms: float = 0.0
    call_ms: float = 0.0
    send_ms: float = 0.0


@dataclass
class _Timing:
    """When the next call is due, monotonic, s."""

    tick: float = 0.0
    retry: float = 0.0
    wake: float = 0.0
    confirm: float = 0.0
    silent_since: float = 0.0
    aside_since: float = 0.0


@dataclass
class Link:
    """The scheduler of a server, for a service.

    Attributes:
        settings: of the link.
        ifl: the batch interface.
        stream: to the service.
        model: the pure half.
        parent: the supervisor.
        announcer: writes comments.
        wake: set when something may have changed.
        clock: monotonic, s.
        wall: Unix time, s.
        within: makes a call that may not return in time; None: it has not.
    """

    settings: Settings
    ifl: Ifl
    stream: Stream
    model: Model
    parent: Parent
    announcer: Announcer
    wake: threading.Event = field(default_factory=threading.Event)
    clock: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
    within: Callable[[float, Callable[[], int]], int | None] = within
    figures: Figures = field(default_factory=Figures)

    def __post_init__(self) -> None:
        """Prepares a link that is not registered."""
        settings = self.settings
        self.registration = Registration(self.ifl, settings.server, settings.scheduler, self.wake)
        self._mirror: Mirror | None = None
        self._starts = Starts()
        self._pace = Pace()
        self._times = _Timing()
        self._looked_s = 0.0
        self._heard: Counter[int] = Counter()
        self._brief = False
        self._fresh: Tables | None = None
        self._lost: IflError | None = None
        self._offered = False
        self._answered_s: dict[str, float] = {}
        self._not_resumed_s: dict[str, float] = {}
        self._is_going = False
        self._ended: list[pb.EndedJob] = []

    @property
    def is_registered(self) -> bool:
        """Whether this link is the server's scheduler."""
        return self.registration.commands is not None

    def run(self, ending: threading.Event) -> None:
        """Takes turns until it is stopped; then gives the registration back."""
        while not ending.is_set():
            self.wake.wait(self.turn())
            if self.is_registered:
                ending.wait(self._pace.rests_s(self.clock()))
            self.wake.clear()
        self.announcer.use(None)
        self.registration.drop()
        self.model.end()

    def turn(self) -> float:
        """Takes one turn; returns after how many seconds the next is due at the latest."""
        self.figures.turns += 1
        self.parent.tell(ALIVE)
        try:
            self._register()
            tables = self._look_briefly() or self._look()
            self._set_going(tables)
            self._decide(tables)
        except IflError as error:
            self._server_lost(error)
            return _SERVER_RETRY_S
        return self._rests_s()

    def _set_going(self, tables: Tables) -> None:
        """Makes pbs_sched start a cycle when it has taken over.

        The server has sent its command for the waiting jobs to this link, and does not repeat it:
        otherwise pbs_sched would begin with the next event, or after `scheduler_iteration`.
        """
        primary = self.registration.primary
        if self.is_registered or not self._times.aside_since or primary is None:
            self._is_going = False
            return
        state = text(self.ifl.stat_scheduler(primary, self.settings.scheduler), "state")
        if state in {"", "down"}:
            self._is_going = False
        elif not self._is_going and not self._is_off(tables):
            code = self.ifl.start_cycle(primary)
            self._is_going = not code
            _log.info("a cycle of pbs_sched is requested: %s", code or "done")

    # ------------------------------------------------------------ the server

    def _register(self) -> None:
        if self.registration.is_lost:
            raise IflError("registration", Code.LOST, "the connection has ended")
        if self.is_registered or not self._offered or not self.parent.may_register():
            self._connect()
            return
        self._offered = False
        self._mirror = None
        if self.registration.register():
            self._times.retry = self.clock() + _FENCED_RETRY_S
        else:
            times = self._times
            if times.aside_since:
                self.figures.fallback_s += self.clock() - times.aside_since
                times.aside_since = 0.0
            self.parent.tell(REGISTERED)
            self.announcer.use(self.registration.primary)
            self.stream.forget()
            times.tick = times.retry = 0.0
        self._connect()

    def _connect(self) -> None:
        connection = self.registration.connect()
        if self._mirror is None or self._mirror.connection != connection:
            self._mirror = Mirror(
                self.ifl, connection, self.settings.scheduler, self.wall, self.clock
            )
            self._mirror.settle(self.settings.poll_s)

    def _server_lost(self, error: IflError) -> None:
        _log.warning("the server does not answer: %s", error)
        self.announcer.use(None)
        self.registration.drop()
        self._mirror = None
        self._starts.clear()
        self._offered = False
        self.stream.forget()
        self.announcer.reset()
        self.parent.tell(ABSENT, str(error))

    def _look_briefly(self) -> Tables | None:
        """Reads new jobs only, if it was told of nothing else (rule 1); None: it was."""
        mirror, commands = self._mirror, self.registration.commands
        if mirror is None or commands is None or commands.restarted.is_set():
            return None
        told = commands.counts.copy()
        is_new = told.total() > self._heard.total() and all(
            count == self._heard[command] or command == Command.NEW
            for command, count in told.items()
        )
        if not is_new or self.clock() - mirror.read_s >= self.settings.poll_s:
            return None
        self._brief = True
        return self._starts.overlay(mirror.refresh_new())

    def _look(self, *, starting: bool = False) -> Tables:
        """Reads whatever may have changed."""
        self._brief = False
        mirror, commands = self._mirror, self.registration.commands
        assert mirror is not None  # made by _register
        if commands is not None and commands.restarted.is_set():
            commands.restarted.clear()
            mirror.read_all()
        if commands is not None and commands.definitions.is_set():
            commands.definitions.clear()
            mirror.expect_change()
        heard = commands.counts.copy() if commands is not None else Counter()
        told, self._heard = heard != self._heard or bool(self._starts), heard
        began = self.clock()
        tables = mirror.refresh(told=told or starting, starting=starting)
        self.figures.look_ms = (self.clock() - began) * 1e3
        self.stream.name_cluster(tables.server_name)
        self.stream.note(self._starts.resolve(tables.jobs, self.clock()))
        self._note_ended(mirror, tables)
        self.announcer.keep_only(tables.jobs)
        self._looked_s = began
        return self._starts.overlay(tables)

    def _look_meanwhile(self) -> None:
        """Reads everything while the service decides; an error is raised afterwards."""
        mirror = self._mirror
        if not self.is_registered or mirror is None:
            return
        before = mirror.tables
        try:
            self._fresh = self._look(starting=True)
        except IflError as error:
            self._lost = error
            return
        if not _are_alike(before, mirror.tables):
            self.wake.set()

    def _look_again(self) -> Tables:
        """Returns what is new enough to start jobs by: rule 2."""
        fresh, self._fresh = self._fresh, None
        if fresh is not None and self.clock() - self._looked_s < FRESH_S:
            return fresh
        mirror = self._mirror
        if mirror is None or self.clock() - self._looked_s >= BRIEF_S:
            return self._look(starting=True)
        return self._starts.overlay(mirror.refresh_jobs())

    def _note_ended(self, mirror: Mirror, tables: Tables) -> None:
        left, records = mirror.take_ended(), dict[str, Attributes]()
        if left and text(tables.server, "job_history_enable") == "True":
            records = self.ifl.stat_ended(mirror.connection, list(left))
        for job_id, attributes in left.items():
            known = {**attributes, **records.get(job_id, {})}
            run = self.model.ended(job_id, known, tables.now_s)
            if run is not None:
                self._ended.append(run)

    # ------------------------------------------------------------ the service

    def _rests_s(self) -> float:
        now, times = self.clock(), self._times
        due = [now + self.settings.poll_s, times.tick]
        if times.wake:
            due.append(times.wake)
        if times.confirm:
            due.append(times.confirm)
        if self._starts:
            due.append(now + self.settings.poll_s / 4)
        if times.silent_since:
            due = [max(times.retry, now + _RETRY_S / 2)]
        return max(min(due) - now, 0.01)

    def _decide(self, tables: Tables) -> None:
        now, times = self.clock(), self._times
        if now < times.retry:
            return
        report = self.model.report(tables)
        if self._brief and not self._is_due(now, report):
            tables = self._look()
            report = self.model.report(tables)
        wanted = self.registration.commands is not None and self.registration.commands.wanted
        if wanted or self.is_registered:
            self._obey(tables)
        if not self._is_due(now, report):
            return
        self._pace.pay(now)
        times.tick, times.wake, times.confirm = now + self.settings.tick_s, 0.0, 0.0
        ended, self._ended = self._ended, []
        self._fresh = self._lost = None
        try:
            reply = self.stream.ask(
                report, tables.now_s, timeout_s=self._patience_s(now), ended=ended,
                status=self._status(), meanwhile=self._look_meanwhile,
            )  # fmt: skip
        except BridgeError as error:
            self._silent(error, now)
            return
        self.figures.calls += 1
        self.figures.call_ms = (self.clock() - now) * 1e3
        self._pace.took(self.clock() - now)
        self._answered(reply)
        if self._lost is not None:
            raise self._lost
        if self.is_registered:
            self._carry_out(tables, reply)

    def _is_due(self, now: float, report: Reported) -> bool:
        """Whether the service is to be asked now."""
        times = self._times
        if now >= times.tick or (times.wake and now >= times.wake) or self._ended:
            return True
        news = self.stream.news(report)
        if news is News.RUNS:
            times.confirm = times.confirm or now + CONFIRM_S
        return news is News.CHANGES or (news is News.RUNS and now >= times.confirm)

    def _patience_s(self, now: float) -> float:
        silence_s, since = self.settings.silence_s, self._times.silent_since
        if not since or not self.is_registered:
            return silence_s
        return max(silence_s - (now - since), _RETRY_S)

    def _status(self) -> pb.ControllerStatus:
        figures, since = self.figures, self._times.aside_since
        return pb.ControllerStatus(
            fallbacks=figures.fallbacks,
            fallback_s=figures.fallback_s + (self.clock() - since if since else 0.0),
            fallback_reason=figures.fallback_reason,
            round_trip_ms=figures.call_ms,
        )

    def _silent(self, error: BridgeError, began: float) -> None:
        times, now = self._times, self.clock()
        if not times.silent_since:
            times.silent_since = began
            _log.warning("the service does not answer: %s", error)
        self._offered = False
        fenced = isinstance(error, StaleSnapshot)
        times.retry = now + (
            _FENCED_RETRY_S if fenced else _RETRY_S if self.is_registered else _ASIDE_RETRY_S
        )
        if now - times.silent_since < self.settings.silence_s - _RETRY_S:
            return
        if self.is_registered:
            self._step_aside(str(error))
        elif not times.aside_since:
            times.aside_since = now
            self.parent.tell(ASIDE, str(error))

    def _step_aside(self, why: str) -> None:
        _log.error("giving the registration back until the service answers: %s", why)
        self.announcer.use(None)
        self.registration.drop()
        self._mirror = None
        self._starts.clear()
        self.announcer.reset()
        self.figures.fallbacks += 1
        self.figures.fallback_reason = why
        self._times.aside_since = self.clock()
        self.parent.tell(ASIDE, why)

    def _answered(self, reply: pb.CycleReply) -> None:
        now, times = self.clock(), self._times
        if times.silent_since:
            _log.info("the service answers again after %.1f s", now - times.silent_since)
        times.silent_since = times.retry = 0.0
        if reply.wake_after_s:
            times.wake = now + reply.wake_after_s
        if reply.wake_after_ms:
            times.wake = min(times.wake or now + 3600, now + reply.wake_after_ms / 1e3)
        if not self.is_registered:
            self.stream.forget()  # its decisions are not carried out: all are needed again
            if not self._offered:
                self._offered = True
                self.parent.tell(READY)

    # ------------------------------------------------------------ decisions

    def _carry_out(self, tables: Tables, reply: pb.CycleReply) -> None:
        began, fates = self.clock(), []
        starts = [each for each in reply.decisions if each.WhichOneof("action") == "start"]
        if starts:
            tables = self._look_again()
            checked = self.model.checked(tables)
            for decision in starts:
                fate = self._start(tables, checked, decision)
                if fate is not None:
                    fates.append(fate)
            self.figures.send_ms = (self.clock() - began) * 1e3
        for decision in reply.decisions:
            match decision.WhichOneof("action"):
                case "start":
                    continue
                case "planned_start" | "pending":
                    if decision.job_id in tables.jobs:  # not what stands for a reservation
                        self.announcer.write(*self.model.announcement(tables, decision))
                case other:
                    fates.append(
                        _fate(decision, Refusal(pb.OUTCOME_INVALID, 0, f"no action '{other}' here"))
                    )
        self.stream.note(fates)
        if fates or any("[" in start.job_id for start in starts):
            self.wake.set()  # other vnodes, or further tasks, may be decided on

    def _is_off(self, tables: Tables) -> bool:
        """Whether an administrator has switched scheduling off; the server enforces nothing."""
        default = self.settings.scheduler == "default"
        return text(tables.server if default else tables.sched, "scheduling") == "False"

    def _start(self, tables: Tables, checked: Checked, decision: pb.Decision) -> pb.Fate | None:
        """Sends a start; None: it was accepted, and its result comes later."""
        if self._is_off(tables):
            return _fate(decision, Refusal(pb.OUTCOME_BUSY, 0, "scheduling is off (qmgr)"))
        found = checked.admit(decision)
        if isinstance(found, Refusal):
            return _fate(decision, found)
        refusal = self._send(tables, checked, found, decision.id, decision.job_id)
        return None if refusal is None else _fate(decision, refusal)

    def _send(
        self, tables: Tables, checked: Checked, run: Run, decision_id: int, wire_id: str
    ) -> Refusal | None:
        primary = self.registration.primary
        if primary is None or run.job_id in self._starts:
            return Refusal(pb.OUTCOME_BUSY, 0, "a start of it is under way")
        if run.walltime_s is not None:
            limit: Attributes = {"Resource_List": {"walltime": str(run.walltime_s)}}
            if code := self.ifl.alter_checked(primary, run.job_id, limit):
                checked.withdraw(run)
                return Refusal(pb.OUTCOME_REFUSED, code, f"its walltime cannot be set ({code})")
        code = self.ifl.run(primary, run.job_id, run.exec_vnode)
        if code:
            checked.withdraw(run)
            return _refusal(code)
        known = tables.jobs.get(run.job_id, {})
        ran = text(known, "run_count")
        self._starts.add(
            Open(
                decision_id, wire_id, run.job_id, run.exec_vnode, self.clock(),
                int(ran) if ran.isdecimal() else 0,
            )
        )  # fmt: skip
        if run.job_id == wire_id:
            self.announcer.forget(wire_id)
        self.figures.starts += 1
        return None

    def _obey(self, tables: Tables) -> None:
        """Runs jobs for operators, resumes suspended ones, and answers reservations."""
        commands, primary = self.registration.commands, self.registration.primary
        if commands is None or primary is None:
            return
        checked: Checked | None = None
        while commands.wanted:
            checked = checked or self.model.checked(tables)
            self._run_now(tables, checked, commands.wanted.popleft(), primary)
        for job_id, job in tables.jobs.items():
            if text(job, "substate") == _SUSPENDED_BY_SCHEDULER:
                checked = checked or self.model.checked(tables)
                if checked.resume(job_id) is None and not self._resume(primary, job_id):
                    return
        for name, reservation in tables.reservations.items():
            new = text(reservation, "reserve_state") in _UNCONFIRMED
            if (new or text(reservation, "reserve_substate") in _DEGRADED) and self._may_answer(
                name, _ANSWER_S if new else _AGAIN_S
            ):
                self._answer(primary, name, self.model.reservation(tables, name))

    def _resume(self, primary: int, job_id: str) -> bool:
        """Resumes a suspended job (rule 7); False: the registration had to be given back."""
        now = self.clock()
        if now < self._not_resumed_s.get(job_id, now):
            return True
        code = self.within(RESUME_S, lambda: self.ifl.signal(primary, job_id, "resume"))
        self.wake.set()
        if code is not None:
            _log.info("resume %s: %s", job_id, code or "accepted")
            return True
        _log.warning("resume %s: no answer of its moms within %g s: registering again", job_id,
                     RESUME_S)  # fmt: skip
        self._not_resumed_s[job_id] = now + RESUME_AGAIN_S
        self.announcer.use(None)
        self.registration.drop()
        self._offered = False
        return False

    def _may_answer(self, name: str, wait_s: float) -> bool:
        now = self.clock()
        if now < self._answered_s.get(name, now):
            return False
        self._answered_s = {n: at for n, at in self._answered_s.items() if at > now}
        self._answered_s[name] = now + wait_s
        return True

    def _run_now(self, tables: Tables, checked: Checked, job_id: str, primary: int) -> None:
        found = checked.run_now(job_id)
        if isinstance(found, Run):
            refused = self._send(tables, checked, found, 0, job_id)
            found = refused if refused is not None else found
        code = found.code or int(Code.UNAVAILABLE) if isinstance(found, Refusal) else 0
        said = found.text if isinstance(found, Refusal) else ""
        self.ifl.answer_run(primary, job_id, code, said)
        _log.info("qrun %s: %s", job_id, said or "started")

    def _answer(self, primary: int, name: str, answer: Confirmation | None) -> None:
        if answer is None:
            return
        code = self.ifl.confirm_reservation(
            primary, name, answer.location, answer.start_s, answer.extend
        )
        if code:
            _log.warning("reservation %s: the server refuses the answer (%d)", name, code)
        if self._mirror is not None:
            self._mirror.expect_change()
        self.wake.set()


def _are_alike(before: Tables | None, after: Tables | None) -> bool:
    """Whether nothing was read that the service does not know; unchanged objects are the same."""
    return before is not None and after is not None and all(
        getattr(before, name) is getattr(after, name)
        for name in ("server", "queues", "vnodes", "jobs", "reservations")
    )  # fmt: skip


def _fate(decision: pb.Decision, refusal: Refusal) -> pb.Fate:
    return pb.Fate(
        decision_id=decision.id,
        job_id=decision.job_id,
        outcome=refusal.outcome,
        code=refusal.code,
        text=refusal.text,
    )


def _refusal(code: int) -> Refusal:
    if code in _STALE:
        return Refusal(pb.OUTCOME_STALE, code, f"the server: not in a state to run ({code})")
    if code in _BUSY:
        return Refusal(pb.OUTCOME_BUSY, code, f"the server: its vnodes are not available ({code})")
    return Refusal(pb.OUTCOME_REFUSED, code, f"the server refuses to run it ({code})")
