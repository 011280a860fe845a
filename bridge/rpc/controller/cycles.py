# SPDX-License-Identifier: Apache-2.0
"""Answers a controller: takes its report, runs a cycle, returns what has changed.

Rules
    1. Cycles run one after the other. A call whose caller has given up waiting changes nothing.
    2. The last cycle is published as a whole; readers never wait for a running cycle.
    3. Results of earlier decisions are processed before the changes reported with them, since a
       change may be the reason to try again.
    4. A result counts once. The controller repeats it until a reply accepts its report, so it
       comes again after `need_full` and after a lost reply. The results in a report out of sequence
       are ignored: their decision numbers may be those of an earlier run of this service.
"""

import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from bridge.extensions.elastic.resizing.adjustments import Adjustments
from bridge.extensions.elastic.resizing.journal import JournalEntry
from bridge.extensions.elastic.resizing.launchers import Absent, Launchers
from bridge.extensions.elastic.resizing.runtime import Runtime
from bridge.extensions.elastic.resizing.states import Deadlines
from bridge.model.plan import Plan
from bridge.model.rules.site import Site
from bridge.model.snapshot import Snapshot
from bridge.planning.eligibility.controller_choice import Chooser
from bridge.ports import Decide, Telemetry
from bridge.rpc.controller.actions import decided
from bridge.rpc.controller.announcements import Announcements, Decisions, OpenStart, wake_after_s
from bridge.rpc.controller.offers import MAX, NodesToChoose, Offers
from bridge.rpc.controller.orders import PendingOrders
from bridge.rpc.controller.progress import ProgressMessages
from bridge.rpc.controller.refused_places import tried_again
from bridge.rpc.controller.rule_changes import listen_ms, rules_change_s
from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.rpc.reported.extension_wire import ExtensionRequests, sentences
from bridge.rpc.reported.features import Feature
from bridge.rpc.reported.hostlist import NodeIndex
from bridge.rpc.reported.safe_text import printable
from bridge.rpc.reported.session import WIRE_VERSION, Session
from bridge.state.accuracy import Began, Happened

_log = logging.getLogger(__name__)

MAX_HEARD = 100_000
"""Results remembered in order not to count them twice; those of several replies."""

LARGEST_STATUS = 1e12
"""Seconds or milliseconds; nothing larger is accepted."""

RESULTS = {
    pb.OUTCOME_APPLIED: "applied",
    pb.OUTCOME_STALE: "stale",
    pb.OUTCOME_REFUSED: "refused",
    pb.OUTCOME_INVALID: "invalid",
    pb.OUTCOME_BUSY: "busy",
    pb.OUTCOME_LIMITED: "limited",
}


@dataclass(frozen=True)
class Published:
    """The last cycle, for queries."""

    snapshot: Snapshot
    plan: Plan
    nodes: NodeIndex


@dataclass(frozen=True)
class CycleReport:
    """The outcome of one cycle, for metrics and the store.

    Attributes:
        wall_s: time from report to reply.
        results: (outcome, code) of the results that came in, counted.
        happened: starts, departures and promises; None: a full report was requested instead.
        published: the cycle itself; None: a full report was requested instead.
        telemetry: statistics of its stages.
        resizes: those that began or are over since the last cycle.
    """

    wall_s: float
    plan_s: float
    decisions: Decisions | None
    results: Counter[tuple[str, int]]
    happened: Happened | None
    status: pb.ControllerStatus | None
    published: Published | None
    telemetry: Telemetry = field(default_factory=Telemetry)
    resizes: tuple[JournalEntry, ...] = ()


class Observer(Protocol):
    """Receives the outcome of every cycle: metrics, store."""

    def cycle(self, report: CycleReport) -> None:
        """Receives a finished cycle; called after the lock has been released."""


@dataclass
class CycleCounts:
    """Figures since the service started."""

    cycles: int = 0
    decisions: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    wall_ms: deque[float] = field(default_factory=lambda: deque(maxlen=1000))
    last_call: float | None = None
    status: pb.ControllerStatus = field(default_factory=pb.ControllerStatus)

    def refuse(self, outcome: str, code: int) -> int:
        """Counts a decision that was not applied, by outcome and the controller's error number.

        Returns:
            The number it is counted under; 0 once there are very many of them.
        """
        key = f"{outcome} {code}" if code else outcome
        if key not in self.refusals and len(self.refusals) >= 100:
            key, code = outcome, 0
        self.refusals[key] += 1
        return code

    def wall_ms_p99(self) -> float:
        """The 99th percentile of the times of the last 1,000 cycles, ms."""
        values = list(self.wall_ms)
        return float(np.quantile(values, 0.99)) if values else 0.0


class Cycles:
    """The service's side of the wire, without the transport.

    Attributes:
        published: the last finished cycle; None before the first.
        counts: figures since start.
        resizing: carries resizes of running jobs out.
        patience_s: how long the controller waits for an answer; 0: not known.
    """

    def __init__(
        self,
        decide: Decide,
        *,
        session: Session,
        announcements: Announcements,
        service: str,
        policy: Callable[[], str],
        site: Callable[[], Site],
        places_by_size: Callable[[], bool] = lambda: False,
        telemetry: Callable[[], Telemetry] = Telemetry,
        observers: tuple[Observer, ...] = (),
        launchers: Launchers | None = None,
        deadlines: Deadlines | None = None,
        reported: Callable[[Snapshot], None] | None = None,
        overlay: Callable[[Snapshot], Snapshot] = lambda snapshot: snapshot,
    ) -> None:
        self.published: Published | None = None
        self.counts = CycleCounts()
        self.orders = PendingOrders()
        self.session = session
        self.patience_s = 0.0
        self.service_epoch = time.time_ns() // 1000
        self._resizes = 0
        self._decide = decide
        self._announcements = announcements
        self.resizing = Runtime(launchers or Absent(), self._new_change, deadlines)
        self._adjustments = Adjustments(announcements.take_id, self.resizing)
        self._adjusts = False
        self._progress = ProgressMessages(announcements.take_id)
        self._extensions = ExtensionRequests(announcements.take_id)
        self._service = service
        self._policy = policy
        self._site = site
        self._places_by_size = places_by_size
        self._offers = Offers(session.retry_s)
        self._telemetry = telemetry
        self._observers = observers
        self._reported = reported
        self._overlay = overlay
        self._heard: dict[int, None] = {}
        self._result_counts: Counter[tuple[str, int]] = Counter()
        self._applied: dict[str, OpenStart] = {}
        self.lock = threading.Lock()

    def _new_change(self, job_id: str) -> str:
        """An id of a resize that no other one has had or will have."""
        self._resizes += 1
        return f"{job_id}-{self.service_epoch}-{self._resizes}"

    def greet(self, hello: pb.HelloRequest) -> pb.HelloReply:
        """Answers a hello.

        Raises:
            UnsupportedVersion: the controller speaks another wire.
            StaleSnapshot: a newer controller has taken over.
            SnapshotError: the hello is invalid.
        """
        with self.lock:
            if self.session.greet(hello):
                self.patience_s = 0.0
                self._announcements.reset()
                self._adjustments.reset()
                self._progress.reset()
                self._extensions.reset()
                self.orders.reset()
                self._applied.clear()
        _log.info(
            "hello from %s, cluster %s, epoch %d", hello.controller, hello.cluster, hello.epoch
        )
        return pb.HelloReply(
            wire_version=WIRE_VERSION,
            service=self._service,
            service_epoch=self.service_epoch,
            features=decided(),
            policy=self._policy(),
        )

    def run(
        self,
        request: pb.CycleRequest,
        still_wanted: Callable[[], bool] = lambda: True,
        patience_s: float | None = None,
    ) -> pb.CycleReply:
        """Runs one cycle.

        Args:
            request: the controller's report.
            still_wanted: tells, when the cycle is about to begin, whether the caller still waits.
            patience_s: timeout of this call; None: none. After a failed call the controller uses
                a shorter timeout, so the longest seen counts.

        Raises:
            StaleSnapshot: a newer controller has taken over.
            SnapshotError: the report is inconsistent.
            PolicyError: even the conservative plan failed.
        """
        self.session.prepare(request)
        with self.lock:
            if not still_wanted():
                return pb.CycleReply()
            if request.epoch == self.session.epoch:
                self.patience_s = max(self.patience_s, patience_s or 0.0)
            began = time.perf_counter()
            reply, report = self._run(request, began)
            self.counts.last_call = time.monotonic()
        for observer in self._observers:
            observer.cycle(report)
        return reply

    @property
    def site(self) -> Site:
        return self._site()

    def _run(self, request: pb.CycleRequest, began: float) -> tuple[pb.CycleReply, CycleReport]:
        session, counts = self.session, self.counts
        if session.follows(request):
            self._take_results(request)
        status = None
        if request.HasField("status"):
            status = counts.status = _sound(request.status)
        taken = session.apply(request)
        if request.base_generation == 0:
            self._announcements.reset()
        reply = pb.CycleReply(generation=session.generation, service_epoch=self.service_epoch)
        if not taken:
            reply.need_full = True
            wall_s = time.perf_counter() - began
            return reply, CycleReport(wall_s, 0.0, None, self._results_so_far(), None, status, None)
        snapshot, serials = session.snapshot()
        snapshot = self._overlay(self._adjusting(snapshot))
        features = frozenset(session.hello.features)
        before = time.perf_counter()
        plan = self._decide(snapshot)
        plan_s = time.perf_counter() - before
        plan = tried_again(snapshot, plan, session) if session.avoiding else plan
        applied, self._applied = self._applied, {}
        telemetry = self._telemetry()  # of this very cycle: the next one waits for the lock
        chooser = None
        if Feature.CHOICE in features:
            chooser = Chooser(snapshot, self._site(), plan, by_size=self._places_by_size())
        decisions = self._announcements.decide(
            snapshot, serials, plan, session.nodes, chooser, reply=reply
        )
        # Orders first: the controller then refuses starts on nodes that it has just reserved.
        for at, order in enumerate(self.orders.take(self._announcements.take_id)):
            reply.decisions.insert(at, order)
        changes = self._changes(snapshot, plan, features)
        decisions.by_kind.update(Counter(change.WhichOneof("action") or "" for change in changes))
        reply.decisions.extend(changes)
        again_s = session.next_retry_s()
        if chooser is not None:
            offered = self._offered(snapshot, plan, chooser)
            reply.decisions.extend(offered)
            decisions.by_kind["start"] = decisions.by_kind.get("start", 0) + len(offered)
            again_s = min((at for at in (again_s, self._offers.next_s) if at), default=None)
        site = self._site()
        change_s = rules_change_s(site, snapshot.now_s)
        again_s = min((at for at in (again_s, change_s) if at), default=None)
        reply.wake_after_s = wake_after_s(snapshot, plan, again_s, decisions.again_s)
        resizing_ms = self.resizing.wake_ms() if self._adjusts else 0
        wakes_ms = resizing_ms, listen_ms(site, time.perf_counter() - began)
        if wake_ms := min((at for at in wakes_ms if at), default=0):
            reply.wake_after_s, reply.wake_after_ms = 1, wake_ms
        self.published = Published(snapshot, plan, session.nodes)
        wall_s = time.perf_counter() - began
        counts.cycles += 1
        counts.decisions.update(decisions.by_kind)
        counts.wall_ms.append(wall_s * 1e3)
        return reply, CycleReport(
            wall_s,
            plan_s,
            decisions,
            self._results_so_far(),
            self._happened(snapshot, decisions, applied),
            status,
            self.published,
            telemetry,
            self.resizing.journal.take() if self._adjusts else (),
        )

    def _adjusting(self, snapshot: Snapshot) -> Snapshot:
        """Returns a report with the resizes under way; decides whether this cycle has any."""
        if self._reported is not None:
            self._reported(snapshot)
        self._adjusts = bool(snapshot.running.max_nodes.any()) or (
            self._adjusts and not self.resizing.is_idle
        )
        if not self._adjusts:
            return snapshot
        return self._adjustments.overlay(snapshot, nodes_awaited=self.session.nodes_awaited())

    def _changes(
        self, snapshot: Snapshot, plan: Plan, features: frozenset[str]
    ) -> list[pb.Decision]:
        """Returns decisions on running jobs, and those of extensions."""
        found: list[pb.Decision] = []
        nodes = self.session.nodes
        if self._adjusts and Feature.RESIZE in features:
            found += self._adjustments.decide(snapshot, plan, self._site(), nodes)
        if Feature.PROGRESS in features:
            under_way = self._adjustments.sentences() if self._adjusts else {}
            found += self._progress.decide(snapshot, sentences(snapshot) | under_way)
        return found + self._extensions.decide(snapshot, plan, nodes, features)

    def _offered(self, snapshot: Snapshot, plan: Plan, chooser: Chooser) -> list[pb.Decision]:
        """Returns starts for which the controller chooses nodes, of jobs without a start now."""
        session, jobs = self.session, snapshot.jobs
        found: list[pb.Decision] = []
        rows = self._offers.candidates(snapshot, plan, session.changes)
        room = NodesToChoose(snapshot, plan) if rows else ()
        for row in rows:
            self._offers.note(
                jobs.id[row], int(jobs.version[row]), changes=session.changes, now_s=snapshot.now_s
            )
            choice = next(chooser.choices([row]), None) if row in room else None
            if choice is None:
                continue
            message = self._announcements.offer(snapshot, choice, session.nodes)
            if message is not None:
                found.append(message)
            if len(found) == MAX:
                break
        return found

    def _happened(
        self, snapshot: Snapshot, decisions: Decisions, applied: dict[str, OpenStart]
    ) -> Happened:
        """Returns what the records of promises need to know of this cycle.

        Args:
            applied: starts of earlier cycles that the controller has carried out. Such a job that
                was removed ran and ended between two reports.
        """
        session = self.session
        started, gone = session.started, session.gone
        waiting = [*snapshot.jobs.id.tolist(), *session.left_out_jobs] if session.whole else None
        if waiting is not None and applied:
            there = {*waiting, *snapshot.running.id.tolist()}
            there.update(began.job_id for began in started)
            gone = [*gone, *(job_id for job_id in applied if job_id not in there)]
        if gone and applied:
            brief = [applied[job_id] for job_id in gone if job_id in applied]
            started = started + [Began(at.job_id, at.sent_s, at.partition) for at in brief]
            gone = [job_id for job_id in gone if job_id not in applied]
        return Happened(
            snapshot.now_s,
            started,
            gone,
            waiting,
            decisions.starting,
            decisions.promised,
            snapshot.dialect,
        )

    def _results_so_far(self) -> Counter[tuple[str, int]]:
        """Returns the results received since the last call."""
        told, self._result_counts = self._result_counts, Counter()
        return told

    def _take_results(self, request: pb.CycleRequest) -> None:
        """Counts the results received, each once, and keeps the starts that were applied."""
        for result in request.fates:
            if result.decision_id in self._heard:
                continue
            while len(self._heard) >= MAX_HEARD:
                del self._heard[next(iter(self._heard))]
            self._heard[result.decision_id] = None
            name = RESULTS.get(result.outcome, "unknown")
            if self.orders.close(result):
                continue
            adjusts = self._adjusts and self._adjustments.close(result, request.now_s)
            if adjusts or self._extensions.close(result, request.now_s):
                self._result_counts[name, 0 if name == "applied" else result.code] += 1
                continue
            start = self._announcements.close(result.decision_id)
            if name == "applied":
                self._result_counts[name, 0] += 1
                if start is not None:
                    self._applied[start.job_id] = start
                    self._offers.forget(start.job_id)
                continue
            self._result_counts[name, self.counts.refuse(name, result.code)] += 1
            if start is not None:
                text = result.text or f"the start was {name}"
                if not start.is_choice:
                    # Planned nodes that are busy are idle soon; among these none may do.
                    where = name not in ("limited", "busy") or (name == "busy" and start.chooses)
                    self.session.refuse(
                        start.job_id, start.version, text, request.now_s, busy=name == "busy",
                        nodes=start.nodes if where else (),
                        partition=start.partition if where else "",
                        beyond_model=start.beyond_model,
                    )  # fmt: skip
                _log.info("start of job %s %s: %s", start.job_id, name, result.text or result.code)


def _sound(status: pb.ControllerStatus) -> pb.ControllerStatus:
    """Returns a copy that is safe to display: finite numbers, short texts."""
    return pb.ControllerStatus(
        fallbacks=status.fallbacks,
        fallback_s=_amount(status.fallback_s),
        fallback_reason=printable(status.fallback_reason),
        lock_ms_max=_amount(status.lock_ms_max),
        round_trip_ms=_amount(status.round_trip_ms),
    )


def _amount(value: float) -> float:
    return min(value, LARGEST_STATUS) if value > 0 else 0.0  # not a number: 0, too
