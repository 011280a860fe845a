# SPDX-License-Identifier: Apache-2.0
"""Answers a controller: takes its report in, has it planned, says what changed.

Rules
    1. Cycles run one after the other. Who gave up waiting for its turn changes nothing.
    2. What was planned last is published as a whole; readers never wait for a running cycle.
    3. Fates of earlier decisions count before the changes that came with them: what changed
       since may be the reason to try again.
"""

import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from bridge.accuracy import Began, Happened
from bridge.model.plan import Plan
from bridge.model.snapshot import Snapshot
from bridge.ports import Decide
from bridge.rpc.announcements import Announcements, Decisions, OpenStart, wake_after_s
from bridge.rpc.hostlist import NodeIndex
from bridge.rpc.orders import Orders
from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.rpc.session import WIRE_VERSION, Session

_log = logging.getLogger(__name__)

FEATURES = ("start", "planned_start", "pending_reason", "reserve")
OUTCOMES = {
    pb.OUTCOME_APPLIED: "applied",
    pb.OUTCOME_STALE: "stale",
    pb.OUTCOME_REFUSED: "refused",
    pb.OUTCOME_INVALID: "invalid",
}


@dataclass(frozen=True)
class Published:
    """The last cycle, for those who ask about it."""

    snapshot: Snapshot
    plan: Plan
    nodes: NodeIndex


@dataclass(frozen=True)
class CycleReport:
    """What one cycle did, for metrics and memory.

    Attributes:
        wall_s: time from report to reply.
        plan_s: of it, time to plan.
        decisions: what was said.
        outcomes: (outcome, code) of the fates that came in, counted.
        happened: starts, departures and promises; None if everything was asked for instead.
        published: the cycle itself; None if everything was asked for instead.
    """

    wall_s: float
    plan_s: float
    decisions: Decisions | None
    outcomes: Counter[tuple[str, int]]
    happened: Happened | None
    status: pb.ControllerStatus | None
    published: Published | None


class Observer(Protocol):
    """Who is told of every cycle: metrics, memory."""

    def cycle(self, report: CycleReport) -> None:
        """Takes note of a finished cycle; called after the lock is free."""


@dataclass
class Counts:
    """Figures since the service started."""

    cycles: int = 0
    decisions: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    wall_ms: deque[float] = field(default_factory=lambda: deque(maxlen=1000))
    last_call: float | None = None
    status: pb.ControllerStatus = field(default_factory=pb.ControllerStatus)

    def refuse(self, outcome: str, code: int) -> None:
        """Counts a decision that was not applied, by outcome and the controller's error number."""
        key = f"{outcome} {code}" if code else outcome
        self.refusals[key if key in self.refusals or len(self.refusals) < 100 else outcome] += 1

    def wall_ms_p99(self) -> float:
        """Time that all but the slowest percent of the last 1,000 cycles took, ms."""
        values = list(self.wall_ms)
        return float(np.quantile(values, 0.99)) if values else 0.0


class Cycles:
    """The service's side of the wire, without the transport.

    Attributes:
        published: the last finished cycle; None before the first.
        counts: figures since start.
        orders: what operators have the controller do.
    """

    def __init__(
        self,
        decide: Decide,
        *,
        session: Session,
        announcements: Announcements,
        service: str,
        policy: Callable[[], str],
        observers: tuple[Observer, ...] = (),
    ) -> None:
        self.published: Published | None = None
        self.counts = Counts()
        self.orders = Orders()
        self.session = session
        self.service_epoch = time.time_ns() // 1000
        self._decide = decide
        self._announcements = announcements
        self._service = service
        self._policy = policy
        self._observers = observers
        self.lock = threading.Lock()

    def greet(self, hello: pb.HelloRequest) -> pb.HelloReply:
        """Answers a hello.

        Raises:
            UnsupportedVersion: the controller speaks another wire.
            StaleSnapshot: a newer controller has taken over.
            SnapshotError: the hello makes no sense.
        """
        with self.lock:
            self.session.greet(hello)
            self._announcements.reset()
            self.orders.reset()
        _log.info(
            "hello from %s, cluster %s, epoch %d", hello.controller, hello.cluster, hello.epoch
        )
        return pb.HelloReply(
            wire_version=WIRE_VERSION,
            service=self._service,
            service_epoch=self.service_epoch,
            features=FEATURES,
            policy=self._policy(),
        )

    def run(
        self, request: pb.CycleRequest, still_wanted: Callable[[], bool] = lambda: True
    ) -> pb.CycleReply:
        """Runs one cycle.

        Args:
            request: the controller's report.
            still_wanted: tells, once it is its turn, whether anybody waits for the answer.

        Raises:
            StaleSnapshot: a newer controller has taken over.
            SnapshotError: the report contradicts itself.
            PolicyError: not even the conservative plan is possible.
        """
        with self.lock:
            if not still_wanted():
                return pb.CycleReply()
            began = time.perf_counter()
            reply, report = self._run(request, began)
            self.counts.last_call = time.monotonic()
        for observer in self._observers:
            observer.cycle(report)
        return reply

    def _run(self, request: pb.CycleRequest, began: float) -> tuple[pb.CycleReply, CycleReport]:
        session, counts = self.session, self.counts
        applied: dict[str, OpenStart] = {}
        outcomes = self._fates(request, applied) if request.epoch == session.epoch else Counter()
        status = None
        if request.HasField("status"):
            status = pb.ControllerStatus()
            status.CopyFrom(request.status)  # the original would keep the whole report in memory
            counts.status = status
        taken = session.apply(request)
        if request.base_generation == 0 or not taken:
            self._announcements.reset()
        reply = pb.CycleReply(generation=session.generation, service_epoch=self.service_epoch)
        if not taken:
            reply.need_full = True
            wall_s = time.perf_counter() - began
            return reply, CycleReport(wall_s, 0.0, None, outcomes, None, status, None)
        snapshot, serials = session.snapshot()
        before = time.perf_counter()
        plan = self._decide(snapshot)
        plan_s = time.perf_counter() - before
        decisions = self._announcements.decide(snapshot, serials, plan, session.nodes)
        # Orders first: starts on nodes that are reserved now are for Slurm to refuse.
        reply.decisions.extend(self.orders.take(self._announcements.take_id))
        reply.decisions.extend(decisions.messages)
        reply.wake_after_s = wake_after_s(snapshot, plan, session.next_retry_s(), decisions.again_s)
        self.published = Published(snapshot, plan, session.nodes)
        wall_s = time.perf_counter() - began
        counts.cycles += 1
        counts.decisions.update(decisions.by_kind)
        counts.wall_ms.append(wall_s * 1e3)
        return reply, CycleReport(
            wall_s,
            plan_s,
            decisions,
            outcomes,
            self._happened(snapshot, decisions, applied),
            status,
            self.published,
        )

    def _happened(
        self, snapshot: Snapshot, decisions: Decisions, applied: dict[str, OpenStart]
    ) -> Happened:
        """What the records of promises must know of this cycle.

        Args:
            snapshot: what was reported.
            decisions: what was answered.
            applied: starts of earlier cycles that the controller has carried out. Such a job that
                was removed ran and ended between two reports.
        """
        session = self.session
        started, gone = session.started, session.gone
        if gone and applied:
            brief = [applied[job_id] for job_id in gone if job_id in applied]
            started = started + [Began(at.job_id, at.sent_s, at.partition) for at in brief]
            gone = [job_id for job_id in gone if job_id not in applied]
        return Happened(
            snapshot.now_s,
            started,
            gone,
            snapshot.jobs.id if session.whole else None,
            decisions.starting,
            decisions.promised,
        )

    def _fates(
        self, request: pb.CycleRequest, applied: dict[str, OpenStart]
    ) -> Counter[tuple[str, int]]:
        """Counts the fates that came in; those of starts that were carried out go to `applied`."""
        outcomes: Counter[tuple[str, int]] = Counter()
        for fate in request.fates:
            name = OUTCOMES.get(fate.outcome, "unknown")
            if self.orders.close(fate):
                continue
            outcomes[name, fate.code] += 1
            start = self._announcements.close(fate.decision_id)
            if name == "applied":
                if start is not None:
                    applied[start.job_id] = start
                continue
            self.counts.refuse(name, fate.code)
            if start is not None:
                text = fate.text or f"the start was {name}"
                self.session.refuse(start.job_id, start.version, text, request.now_s)
                _log.info("start of job %s %s: %s", start.job_id, name, fate.text or fate.code)
        return outcomes
