# SPDX-License-Identifier: Apache-2.0
"""Jobs for which the controller is asked to choose nodes itself, and how often.

Rules
    1. A job is offered if the planner has no start for it now but the controller might have one:
       its start was refused, or in the planner's model it does not fit, never will, or is outside
       the bounds of its partitions (which a QOS may lift). So every job starts that the controller
       itself would start on free nodes.
    2. Jobs that wait for something other than nodes are not offered: held, limited, before their
       begin time, or behind the planned start of an earlier job.
    3. After a refusal a job is offered again when its version has changed; or, if the cluster has
       changed, after 1 s, then twice as long each time up to `retry_s`; and after `ANYWAY_S` in any
       case. A start resets this: it was one task of an array, and the next may start, too.
    4. Full nodes, and nodes on which a job starts now, are not offered (`NodesToChoose`).
    5. The first `FIRST` such rows of the plan are considered; at most `MAX` jobs are offered in
       one cycle.
"""

from dataclasses import dataclass

import numpy as np

from bridge.model.job import Hold
from bridge.model.node import CPUS
from bridge.model.plan import Plan
from bridge.model.reasons import ReasonCode
from bridge.model.snapshot import Snapshot
from bridge.planning.eligibility.controller_choice import beyond_model

MAX = 16
"""For each offer the controller searches nodes under its locks."""

FIRST = 1000
ANYWAY_S = 600

_REASONS = np.array(
    (
        ReasonCode.RESOURCES, ReasonCode.RESERVATION, ReasonCode.MAINTENANCE,
        ReasonCode.NODES_DOWN, ReasonCode.NEVER, ReasonCode.BAD_REQUEST, ReasonCode.REFUSED,
        ReasonCode.PARTITION,
    )
)  # fmt: skip
_HOLDS = np.isin(np.arange(256), (Hold.NONE, Hold.REFUSED, Hold.BAD_REQUEST))


class NodesToChoose:
    """Maximum number of nodes to choose from, for any job."""

    def __init__(self, snapshot: Snapshot, plan: Plan) -> None:
        nodes, running, size = snapshot.nodes, snapshot.running, len(snapshot.nodes)
        usable = nodes.usable.copy()
        now = np.repeat(plan.start_s == plan.now_s, np.diff(plan.indptr))
        usable[plan.nodes[now]] = False
        used = np.bincount(running.nodes, weights=running.use[:, CPUS], minlength=size)
        free = usable & (used < nodes.capacity[:, CPUS])
        free[running.nodes[np.repeat(running.exclusive, np.diff(running.indptr))]] = False
        self._minimum = snapshot.jobs.min_nodes
        self._beyond = beyond_model(snapshot)
        self._usable, self._free = int(usable.sum()), int(free.sum())

    def __contains__(self, job: int) -> bool:
        """Whether a job that does not start now may find enough nodes."""
        there = self._usable if self._beyond[job] else self._free
        return there >= max(int(self._minimum[job]), 1)


@dataclass(frozen=True, slots=True)
class _Offer:
    version: int
    changes: int
    again_from_s: int
    again_at_s: int
    times: int

    def waits(self, changes: int, now_s: int) -> bool:
        if not 0 < self.again_at_s - now_s <= ANYWAY_S:  # or the clock was set
            return False
        return self.changes == changes or now_s < self.again_from_s


class Offers:
    """The offered jobs, by id.

    Attributes:
        next_s: when the next of the last candidates may be offered again; None: there is none.
    """

    def __init__(self, retry_s: int) -> None:
        self._retry_s = retry_s
        self._offers: dict[str, _Offer] = {}
        self.next_s: int | None = None

    def candidates(self, snapshot: Snapshot, plan: Plan, changes: int) -> list[int]:
        """Rows of the jobs to offer now, first those that the plan considered first."""
        self.next_s = None
        if not len(plan):
            return []
        jobs, now_s = snapshot.jobs, snapshot.now_s
        codes = np.fromiter(
            (0 if reason is None else int(reason.code) for reason in plan.reasons), np.int64
        )
        later = plan.start_s != plan.now_s
        waits = later & np.isin(codes, _REASONS) & _HOLDS[jobs.hold[plan.job]]
        starting = np.zeros(len(jobs), dtype=bool)
        starting[plan.job[~later]] = True
        found: dict[int, None] = {}
        for row in plan.job[waits & ~starting[plan.job]][:FIRST].tolist():
            if row in found or (jobs.array_tasks[row] and not jobs.array_startable[row]):
                continue
            offer = self._offers.get(jobs.id[row])
            known = offer is not None and offer.version == int(jobs.version[row])
            if offer is not None and known and offer.waits(changes, now_s):
                at_s = offer.again_at_s if offer.changes == changes else offer.again_from_s
                self.next_s = at_s if self.next_s is None else min(self.next_s, at_s)
                continue
            found[row] = None
            if len(found) >= 4 * MAX:
                break
        return list(found)

    def note(self, job_id: str, version: int, *, changes: int, now_s: int) -> None:
        """Records that a job was offered, or has no nodes to choose from."""
        before = self._offers.get(job_id)
        times = before.times + 1 if before is not None and before.version == version else 1
        wait_s = min(1 << min(times - 1, 20), self._retry_s)
        self._offers[job_id] = _Offer(version, changes, now_s + wait_s, now_s + ANYWAY_S, times)
        if len(self._offers) > 100_000:
            del self._offers[next(iter(self._offers))]

    def forget(self, job_id: str) -> None:
        """Records that an offered job has started."""
        self._offers.pop(job_id, None)
