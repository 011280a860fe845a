# SPDX-License-Identifier: Apache-2.0
"""The decisions of a service that are in force at a simulated controller."""

from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bridge.model.decisions.resizes import Resizes
from bridge.model.parts import made
from bridge.model.plan import Plan
from bridge.model.reasons import Reason, ReasonCode
from bridge.model.snapshot import Reservation, Snapshot
from bridge.rpc.clients.plan_rows import NO_NODES, PlanRows
from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.rpc.reported.extension_wire import wires
from bridge.rpc.reported.hostlist import NodeIndex
from bridge.units import NEVER, UNPLANNED


@dataclass(frozen=True, slots=True)
class _Announced:
    """The service's last announcement for a waiting job."""

    start_s: int
    partition: str
    nodes: NDArray[np.int32]
    reason: Reason


@dataclass(frozen=True, slots=True)
class _Resizing:
    """A resize that the service decided, whose result must be reported."""

    decision_id: int
    by_s: int
    nodes: NDArray[np.int32]
    reason: str


@dataclass(frozen=True, slots=True)
class _Start:
    """A start that the service decided, whose result must be reported."""

    decision_id: int
    job_id: str
    version: int
    partition: str
    nodes: NDArray[np.int32]
    tasks: NDArray[np.int32]
    message: pb.Start


class ReservationMaker(Protocol):
    """A controller that can make reservations."""

    def reserve(self, reservation: Reservation) -> str:
        """Makes one; returns an empty text, or why not."""

    def unreserve(self, name: str) -> str:
        """Removes one; returns an empty text, or why not."""


class DecisionsInForce:
    """What a service decided: what is still to be reported, and what stays announced."""

    def __init__(self, reserving: ReservationMaker | None = None) -> None:
        """Begins without decisions.

        Args:
            reserving: carries out the reservations of operators; None: they are refused.
        """
        self._starts: list[_Start] = []
        self._resizes: dict[str, _Resizing] = {}
        self._reserving = reserving
        self._results: list[pb.Fate] = []
        self._licences: tuple[str, ...] = ()
        self._announced: dict[str, _Announced] = {}
        self._handlers: dict[str, Callable[[pb.Decision, NodeIndex], None]] = {
            "start": self._start,
            "planned_start": self._planned_start,
            "pending": self._pending,
            "resize": self._resize,
            "reserve": self._reserve,
            "unreserve": self._unreserve,
        }
        self._parts = {name: wire.obeyed() for name, wire in wires().items()}
        for name, wire in wires().items():
            for action in wire.actions:
                self._handlers[action] = partial(self._change_part, name)

    @property
    def features(self) -> list[str]:
        """The actions that can be carried out, as a hello names them."""
        own = ["start", "planned_start", "pending_reason", "resize"]
        own += [each.feature for wire in wires().values() for each in wire.actions.values()]
        return own if self._reserving is None else [*own, "reserve", "reserve_licences"]

    def forget(self) -> None:
        """Drops the announcements: the service will send all of them again."""
        self._announced = {}

    def keep_announced(self, waiting: Container[str]) -> None:
        """Drops the announcements of all other jobs."""
        self._announced = {job: one for job, one in self._announced.items() if job in waiting}

    # ------------------------------------------------------------ carried out

    def take(
        self, decisions: Iterable[pb.Decision], nodes: NodeIndex, licences: tuple[str, ...]
    ) -> None:
        """Takes the decisions of a reply; actions of later versions are passed over.

        Args:
            nodes: the numbers of the controller's nodes.
        """
        self._licences = licences
        for decision in decisions:
            handler = self._handlers.get(decision.WhichOneof("action") or "")
            if handler is not None:
                handler(decision, nodes)

    def _start(self, decision: pb.Decision, nodes: NodeIndex) -> None:
        start = decision.start
        self._starts.append(
            _Start(
                decision.id,
                decision.job_id,
                decision.job_version,
                start.partition,
                nodes.parse(start.nodes),
                np.array(start.tasks, dtype=np.int32),
                start,
            )
        )

    def _planned_start(self, decision: pb.Decision, nodes: NodeIndex) -> None:
        planned = decision.planned_start
        self._announced[decision.job_id] = _Announced(
            planned.start_s, planned.partition, nodes.parse(planned.nodes), _reason(planned.reason)
        )

    def _pending(self, decision: pb.Decision, _: NodeIndex) -> None:
        why = _reason(decision.pending)
        start_s = UNPLANNED if why.can_ever_run else NEVER
        self._announced[decision.job_id] = _Announced(start_s, "", NO_NODES, why)

    def _resize(self, decision: pb.Decision, nodes: NodeIndex) -> None:
        resize = decision.resize
        self._resizes[decision.job_id] = _Resizing(
            decision.id, resize.by_s, nodes.parse(resize.nodes), resize.reason
        )

    def _change_part(self, name: str, decision: pb.Decision, nodes: NodeIndex) -> None:
        self._parts[name].obey(decision, nodes)
        self._carried_out(decision)

    def _reserve(self, decision: pb.Decision, nodes: NodeIndex) -> None:
        why = _NO_RESERVATIONS
        if self._reserving is not None:
            requested = decision.reserve
            kept = dict(word.split(":") for word in requested.licences.split(",") if word)
            counts = [int(kept.get(name, 0)) for name in self._licences]
            licences = np.array(counts, dtype=np.int64)
            members = nodes.parse(requested.nodes)
            why = self._reserving.reserve(
                Reservation(requested.name, requested.start_s, requested.end_s, members, licences)
            )
        self._carried_out(decision, why)

    def _unreserve(self, decision: pb.Decision, _: NodeIndex) -> None:
        why = _NO_RESERVATIONS
        if self._reserving is not None:
            why = self._reserving.unreserve(decision.unreserve.name)
        self._carried_out(decision, why)

    def _carried_out(self, decision: pb.Decision, refusal: str = "") -> None:
        outcome = pb.OUTCOME_REFUSED if refusal else pb.OUTCOME_APPLIED
        self._results.append(
            pb.Fate(decision_id=decision.id, job_id=decision.job_id, outcome=outcome, text=refusal)
        )

    # ------------------------------------------------------------ reported

    def results(self, snapshot: Snapshot) -> list[pb.Fate]:
        """What became of the decisions since the last call, seen from the snapshot after them."""
        found = self._results
        found += self._resized(snapshot)
        versions = dict(zip(snapshot.jobs.id, snapshot.jobs.version.tolist(), strict=True))
        for start in self._starts:
            refused = versions.get(start.job_id) == start.version
            found.append(
                pb.Fate(
                    decision_id=start.decision_id,
                    job_id=start.job_id,
                    outcome=pb.OUTCOME_REFUSED if refused else pb.OUTCOME_APPLIED,
                    text="the controller did not start it" if refused else "",
                )
            )
        self._results, self._resizes, self._starts = [], {}, []
        return found

    def _resized(self, snapshot: Snapshot) -> list[pb.Fate]:
        running, found = snapshot.running, []
        for job_id, change in self._resizes.items():
            rows = np.flatnonzero((running.id == job_id) & ~running.releasing)
            done = len(rows) == 0 or np.array_equal(
                running.nodes[running.indptr[rows[0]] : running.indptr[rows[0] + 1]], change.nodes
            )
            found.append(
                pb.Fate(
                    decision_id=change.decision_id,
                    job_id=job_id,
                    outcome=pb.OUTCOME_APPLIED if done else pb.OUTCOME_REFUSED,
                    text="" if done else "the controller did not resize it",
                )
            )
        return found

    # ------------------------------------------------------------ as a plan

    def plan(self, snapshot: Snapshot) -> Plan:
        """The decisions in force as a plan: starts first, then the waiting jobs."""
        now_s, jobs = snapshot.now_s, snapshot.jobs
        row_of = {job_id: row for row, job_id in enumerate(jobs.id.tolist())}
        partition_of = {partition.name: at for at, partition in enumerate(snapshot.partitions)}
        rows = PlanRows(snapshot)
        for start in self._starts:
            row = row_of[start.job_id]
            tasks = start.tasks if len(start.tasks) else None
            rows.add(row, now_s, partition_of[start.partition], start.nodes, tasks=tasks)
        started = {start.job_id for start in self._starts}
        for job_id, row in row_of.items():
            known = self._announced.get(job_id)
            if known is None or (known.start_s <= now_s and known.start_s != UNPLANNED):
                if job_id not in started:
                    why = known.reason if known is not None else _UNKNOWN
                    rows.add(row, UNPLANNED, -1, NO_NODES, reason=why)
            elif job_id not in started or (
                jobs.array_tasks[row] > 1 and known.start_s not in (NEVER, UNPLANNED)
            ):
                at = partition_of.get(known.partition, -1)
                rows.add(row, known.start_s, at, known.nodes, reason=known.reason)
        starts = [start.message for start in self._starts]
        parts = {name: each.part(snapshot, starts) for name, each in self._parts.items()}
        there = made({name: part for name, part in parts.items() if part is not None})
        return replace(rows.plan(), resizes=self._resizing(snapshot), parts=there)

    def _resizing(self, snapshot: Snapshot) -> Resizes:
        """The running jobs that the service has just decided to resize."""
        running = snapshot.running
        row_of = {
            job_id: row
            for row, job_id in enumerate(running.id.tolist())
            if not running.releasing[row]
        }
        return Resizes.of(
            [
                (row_of[job_id], change.by_s, change.nodes, change.reason)
                for job_id, change in self._resizes.items()
                if job_id in row_of
            ]
        )


_NO_RESERVATIONS = "this controller cannot do that"
_UNKNOWN = Reason(ReasonCode.OTHER, "the service has not answered yet")


def _reason(message: pb.Pending) -> Reason:
    known = message.code in ReasonCode._value2member_map_
    return Reason(ReasonCode(message.code) if known else ReasonCode.OTHER, message.text)
