# SPDX-License-Identifier: Apache-2.0
"""Finds the blocking chain of a planned job: what it waits for, what that waits for, and so on.

Terms
    link    something that ends in the second in which the job before it in the chain may start: a
            running job, a waiting job with a planned start, a reservation, or a begin time.

Rules
    1. A planned start coincides with the end of a job that has one of its nodes or licences, with
       the end of a reservation of its nodes or licences, or with its own begin time.
    2. If several end in that second, running jobs are preferred to waiting ones, then the job with
       most of the nodes, then the first by id.
    3. A job that waits for a limit waits for jobs of its user, account or partition on any nodes;
       those of its user are preferred, then those of its account. A job that waits for power waits
       for any job.
    4. The chain continues from a waiting job with what that job waits for. It ends with a running
       job, a reservation, a begin time, or if nothing in the plan explains the start.
"""

from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from bridge.model.plan import Plan
from bridge.model.reasons import ReasonCode
from bridge.model.snapshot import Snapshot
from bridge.planning.prediction.apply_predictions import as_planned
from bridge.units import NEVER, UNPLANNED


class LinkKind(Enum):
    RUNNING = "running job"
    WAITING = "waiting job"
    RESERVATION = "reservation"
    BEGIN_TIME = "begin time"


@dataclass(frozen=True, slots=True)
class ChainLink:
    """One link of a chain.

    Attributes:
        kind: the kind of blocker.
        row: in `Snapshot.running`, in the plan, or in `Snapshot.reservations`; -1: a begin time.
        shared_nodes: how many of the waiting job's nodes it holds until then.
        licence: the licence it holds, if that is what is waited for; empty otherwise.
    """

    kind: LinkKind
    row: int
    until_s: int
    shared_nodes: int = 0
    licence: str = ""


class BlockingChains:
    def __init__(self, snapshot: Snapshot, plan: Plan) -> None:
        snapshot = as_planned(snapshot, plan)
        self._snapshot, self._plan = snapshot, plan
        running = snapshot.running
        self._running_owner = np.repeat(np.arange(len(running)), np.diff(running.indptr))
        self._running_end_s = np.maximum(running.end_s, snapshot.now_s + 1)
        self._plan_owner = np.repeat(np.arange(len(plan)), np.diff(plan.indptr))

    def of(self, row: int, longest: int = 10) -> tuple[ChainLink, ...]:
        """The chain of a row of the plan, nearest first; at most `longest` links.

        Empty for a row that starts now or has no planned start.
        """
        links: list[ChainLink] = []
        seen = {row}
        while len(links) < longest:
            link = self._before(row)
            if link is None or (link.kind is LinkKind.WAITING and link.row in seen):
                break
            links.append(link)
            if link.kind is not LinkKind.WAITING:
                break
            row = link.row
            seen.add(row)
        return tuple(links)

    def _before(self, row: int) -> ChainLink | None:
        snapshot, plan = self._snapshot, self._plan
        start_s = int(plan.start_s[row])
        if start_s in (NEVER, UNPLANNED) or start_s <= snapshot.now_s:
            return None
        job = int(plan.job[row])
        reason = plan.reasons[row]
        if reason is not None and reason.code is ReasonCode.LIMIT:
            everywhere = np.ones(len(snapshot.nodes), dtype=bool)
            for consumer in ("user", "account"):
                if link := self._holder(everywhere, start_s, row, consumer):
                    return replace(link, shared_nodes=0)
        if reason is not None and reason.code is ReasonCode.POWER:
            everywhere = np.ones(len(snapshot.nodes), dtype=bool)
            if link := self._holder(everywhere, start_s, row):
                return replace(link, shared_nodes=0)
        mine = np.zeros(len(snapshot.nodes), dtype=bool)
        mine[plan.nodes_of(row)] = True
        if link := self._holder(mine, start_s, row):
            return link
        if link := self._licence_holder(job, start_s, row):
            return link
        for index, reservation in enumerate(snapshot.reservations):
            closed = mine[reservation.nodes].any() and snapshot.jobs.reservation[job] != index
            if reservation.end_s == start_s and (closed or self._keeps(index, job)):
                return ChainLink(LinkKind.RESERVATION, index, start_s)
            if snapshot.jobs.reservation[job] == index and reservation.start_s == start_s:
                return ChainLink(LinkKind.RESERVATION, index, start_s)
        if int(snapshot.jobs.begin_s[job]) == start_s:
            return ChainLink(LinkKind.BEGIN_TIME, -1, start_s)
        # It got nodes other than those that became free: any end in its partition explains the
        # start.
        mine[snapshot.partitions[int(plan.partition[row])].nodes] = True
        link = self._holder(mine, start_s, row)
        return replace(link, shared_nodes=0) if link is not None else None

    def _holder(
        self, nodes: NDArray[np.bool_], at_s: int, row: int, consumer: str = ""
    ) -> ChainLink | None:
        """The job that holds most of these nodes until exactly `at_s`.

        Args:
            nodes: (n_nodes,).
            row: the row of the plan; not itself.
            consumer: only jobs of the same "user" or "account"; empty: any.
        """
        running, plan, jobs = self._snapshot.running, self._plan, self._snapshot.jobs
        wanted = self._running_end_s == at_s
        if consumer:
            wanted &= getattr(running, consumer) == getattr(jobs, consumer)[plan.job[row]]
        on = self._running_owner[nodes[running.nodes]]
        held = np.bincount(on[wanted[on]], minlength=len(running))
        if held.any():
            best = int(np.argmax(held))
            return ChainLink(LinkKind.RUNNING, best, at_s, int(held[best]))
        wanted = plan.end_s == at_s
        wanted[row] = False
        if consumer:
            column = getattr(jobs, consumer)
            wanted &= column[plan.job] == column[plan.job[row]]
        on = self._plan_owner[nodes[plan.nodes]]
        held = np.bincount(on[wanted[on]], minlength=len(plan))
        if held.any():
            best = int(np.argmax(held))
            return ChainLink(LinkKind.WAITING, best, at_s, int(held[best]))
        return None

    def _keeps(self, index: int, job: int) -> bool:
        """Whether a reservation keeps a licence that a job requests."""
        kept, wanted = self._snapshot.reservations[index].licences, self._snapshot.jobs.licences
        outside = self._snapshot.jobs.reservation[job] != index
        return bool(outside and len(kept) and (kept[wanted[job] > 0] > 0).any())

    def _licence_holder(self, job: int, at_s: int, row: int) -> ChainLink | None:
        snapshot, plan = self._snapshot, self._plan
        for index in np.flatnonzero(snapshot.jobs.licences[job]).tolist():
            name = snapshot.licences[index]
            held = (snapshot.running.licences[:, index] > 0) & (self._running_end_s == at_s)
            if held.any():
                return ChainLink(LinkKind.RUNNING, int(np.argmax(held)), at_s, licence=name)
            waiting = (snapshot.jobs.licences[plan.job, index] > 0) & (plan.end_s == at_s)
            waiting[row] = False
            if waiting.any():
                return ChainLink(LinkKind.WAITING, int(np.argmax(waiting)), at_s, licence=name)
        return None
