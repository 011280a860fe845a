# SPDX-License-Identifier: Apache-2.0
"""Backfilling with a reservation depth: EASY is depth 1, conservative is no bound.

Words
    depth       how many waiting jobs get a planned start (a reservation in the literature) that
                later jobs must not delay.
    row         one job, or one task of an array: tasks are planned as jobs of their own.

Rules, for the rows in the order given
    1. What fits now for its whole time limit, beside everything running and everything booked
       before it, starts now and is booked.
    2. Otherwise, while fewer than `depth` rows hold a planned start, it is booked at its earliest
       feasible start.
    3. Beyond the depth a row is not booked. It starts now or waits.
    4. Held jobs, and jobs with unfulfilled dependencies or spent limits, book nothing. A job that
       must not begin before a time is planned from that time on.
    5. Of an array as many tasks are planned as its own limit lets start, at most `array_depth`.

Source: Lifka, JSSPP 1995 (EASY); Mu'alem and Feitelson, TPDS 12(6), 2001 (conservative).
Deviates: the plan is made anew in every cycle ("compressed"), so an early end moves every later
start forward, not only the first one's.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridge.core import UNLIMITED, Blocked, NodePlan, pack_nodes, plan_nodes
from bridge.errors import ConfigError, PolicyError
from bridge.model.job import Hold, JobTable
from bridge.model.plan import Plan
from bridge.model.reasons import Reason, ReasonCode
from bridge.model.snapshot import Snapshot
from bridge.planning.eligibility import Alternative, Eligibility
from bridge.planning.explanation import blocked_reason, held_reason
from bridge.ports import Memory, Preference
from bridge.units import NEVER, UNPLANNED

_PLANNABLE = np.array(
    [hold in (Hold.NONE, Hold.BEGIN_TIME, Hold.RESERVATION) for hold in Hold], dtype=bool
)
# Verdicts whose words depend on the whole job; the others' on what `_explain` compares.
_JUDGED_ALONE = (Blocked.NEVER_NODES, Blocked.NEVER_SIZE, Blocked.NEVER_COUNTER)


@dataclass(frozen=True)
class Backfill:
    """Plans each job at its earliest start; the first `depth` of them may not be delayed.

    Attributes:
        depth: planned starts held at a time; None: all.
        array_depth: tasks of one array planned at a time.
    """

    depth: int | None = None
    array_depth: int = 1000

    def __post_init__(self) -> None:
        if self.depth is not None and self.depth < 0:
            raise ConfigError("depth", f"must be 0 or more, or null for no bound, not {self.depth}")
        if self.array_depth < 1:
            raise ConfigError("array_depth", f"must be 1 or more, not {self.array_depth}")

    def plan(
        self,
        snapshot: Snapshot,
        order: NDArray[np.int64],
        preference: Preference,
        memory: Memory,
        rng: np.random.Generator,
    ) -> Plan:
        """Plans all pending jobs; see `bridge.ports.PlanPolicy`."""
        del memory, rng  # greedy: nothing to remember, nothing left to chance
        rows = _Rows(snapshot, self._expand(snapshot.jobs, order))
        try:
            found = rows.solve(preference, UNLIMITED if self.depth is None else self.depth)
        except ValueError as error:
            raise PolicyError("backfill", str(error)) from error
        return rows.plan(found)

    def _expand(self, jobs: JobTable, order: NDArray[np.int64]) -> NDArray[np.int64]:
        """Repeats each array once per task to plan (rule 5); at least one row per job."""
        is_array = jobs.array_tasks[order] > 0
        if not is_array.any():
            return order
        startable = np.minimum(jobs.array_startable[order], jobs.array_tasks[order])
        times = np.where(is_array, np.clip(startable, 1, self.array_depth), 1)
        return np.repeat(order, times)


class _Rows:
    """The rows of one cycle: which go to the kernel, and what becomes of the others."""

    def __init__(self, snapshot: Snapshot, job: NDArray[np.int64]) -> None:
        self.snapshot, self.job = snapshot, job
        self.eligibility = Eligibility(snapshot)
        self.reasons: list[Reason | None] = [None] * len(job)
        jobs = snapshot.jobs
        startable = (jobs.array_tasks == 0) | (jobs.array_startable > 0)
        plannable = (_PLANNABLE[jobs.hold] & startable)[job]
        for row in np.flatnonzero(~plannable).tolist():
            self.reasons[row] = held_reason(snapshot, int(job[row]))
        candidates = np.flatnonzero(plannable)
        asked: list[int] = []
        given: list[tuple[Alternative, ...]] = []
        answers = self.eligibility.alternatives(job[candidates])
        for row, answer in zip(candidates.tolist(), answers, strict=True):
            if isinstance(answer, Reason):
                self.reasons[row] = answer
            else:
                asked.append(row)
                given.append(answer)
        self.asked = np.array(asked, dtype=np.int64)
        self.alternatives = _AlternativeColumns(given)

    def solve(self, preference: Preference, depth: int) -> NodePlan:
        """Calls the kernel."""
        snapshot, running, alternatives = self.snapshot, self.snapshot.running, self.alternatives
        jobs, take = snapshot.jobs, self.job[self.asked]
        required, required_nodes = _required(jobs, take, len(snapshot.nodes))
        b_class, b_start, b_end, b_nodes = self.eligibility.blackouts()
        return plan_nodes(
            now=snapshot.now_s,
            depth=depth,
            select=int(preference.selection),
            capacity=np.ascontiguousarray(snapshot.nodes.capacity),
            node_rank=preference.rank,
            run_indptr=running.indptr,
            run_nodes=running.nodes,
            run_use=np.ascontiguousarray(running.use),
            run_end=running.end_s,
            run_exclusive=running.exclusive,
            run_counter=np.ascontiguousarray(running.licences),
            class_nodes=self.eligibility.class_nodes(),
            blackout_class=b_class,
            blackout_start=b_start,
            blackout_end=b_end,
            blackout_nodes=b_nodes,
            counter_capacity=snapshot.licence_total,
            job_counter=np.ascontiguousarray(jobs.licences[take]),
            alt_indptr=alternatives.indptr,
            alt_class=alternatives.class_.astype(np.int32),
            alt_time_limit_s=alternatives.time_limit_s,
            alt_min_nodes=alternatives.min_nodes.astype(np.int32),
            alt_max_nodes=alternatives.max_nodes.astype(np.int32),
            per_node=np.ascontiguousarray(jobs.per_node[take]),
            tasks=jobs.tasks[take].astype(np.int32),
            per_task=np.ascontiguousarray(jobs.per_task[take]),
            max_tasks_per_node=jobs.max_tasks_per_node[take].astype(np.int32),
            exclusive=jobs.exclusive[take],
            not_before=np.where(jobs.hold[take] == Hold.BEGIN_TIME, jobs.begin_s[take], 0),
            width_rule=jobs.width_rule[take],
            required=required,
            required_nodes=required_nodes,
        )

    def plan(self, found: NodePlan) -> Plan:
        """Puts the kernel's answer and the rows it was not asked about together."""
        n_rows, asked, alternatives = len(self.job), self.asked, self.alternatives
        start_s = np.full(n_rows, UNPLANNED, dtype=np.int64)
        end_s = np.zeros(n_rows, dtype=np.int64)
        partition = np.full(n_rows, -1, dtype=np.int32)
        width = np.zeros(n_rows, dtype=np.int64)
        start_s[asked] = found.start
        width[asked] = np.diff(found.indptr)
        has_start = (found.start != NEVER) & (found.start != UNPLANNED)
        chosen = alternatives.indptr[:-1] + np.maximum(found.alternative, 0)
        at, rows = chosen[has_start], asked[has_start]
        partition[rows] = alternatives.partition[at]
        end_s[rows] = found.start[has_start] + alternatives.time_limit_s[at]
        self._explain(found, chosen)
        nodes, tasks = found.nodes, found.tasks
        late = self._after_reservation(start_s)
        if late.any():
            keep = np.repeat(~late, width)
            nodes, tasks = nodes[keep], tasks[keep]
            start_s[late], end_s[late], partition[late], width[late] = NEVER, 0, -1, 0
        return Plan(
            now_s=self.snapshot.now_s,
            policy="backfill",
            job=self.job.astype(np.int32),
            start_s=start_s,
            end_s=end_s,
            partition=partition,
            indptr=np.concatenate(([0], np.cumsum(width))).astype(np.int64),
            nodes=nodes,
            tasks=tasks,
            reasons=tuple(self.reasons),
        )

    def _explain(self, found: NodePlan, chosen: NDArray[np.int64]) -> None:
        """Gives every row that does not start now its reason; rows that wait alike share it."""
        blocked = np.flatnonzero(found.blocked_by != Blocked.STARTS_NOW)
        at, rows = chosen[blocked], self.asked[blocked]
        columns = (
            self.alternatives.partition[at], self.alternatives.min_nodes[at],
            found.blocked_by[blocked], found.fit_now[blocked], found.blocked_counter[blocked],
            self.snapshot.jobs.tasks[self.job[rows]],
        )  # fmt: skip
        known: dict[tuple[int, ...], Reason] = {}
        keys = zip(*(c.tolist() for c in columns), strict=True)
        for row, key in zip(rows.tolist(), keys, strict=True):
            reason = known.get(key)
            if reason is None:
                partition, min_nodes, code, fit_now, counter, _ = key
                reason = blocked_reason(
                    self.snapshot,
                    int(self.job[row]),
                    partition=partition,
                    min_nodes=min_nodes,
                    blocked=Blocked(code),
                    fit_now=fit_now,
                    counter=counter,
                )
                if code not in _JUDGED_ALONE:
                    known[key] = reason
            self.reasons[row] = reason

    def _after_reservation(self, start_s: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Rows that would start only after the reservation they must run in."""
        ends = np.array([r.end_s for r in self.snapshot.reservations] + [NEVER], dtype=np.int64)
        own_end: NDArray[np.int64] = ends[self.snapshot.jobs.reservation[self.job]]
        late: NDArray[np.bool_] = (start_s != NEVER) & (start_s >= own_end)
        for row in np.flatnonzero(late).tolist():
            name = self.snapshot.reservations[self.snapshot.jobs.reservation[self.job[row]]].name
            self.reasons[row] = Reason(
                ReasonCode.RESERVATION, f"reservation {name} ends before the job can start"
            )
        return late


class _AlternativeColumns:
    """The alternatives of all rows, as columns; row i has those in indptr[i]:indptr[i + 1]."""

    def __init__(self, given: list[tuple[Alternative, ...]]) -> None:
        distinct: dict[int, int] = {}  # jobs that ask alike share one tuple: tell them by identity
        tuples: list[tuple[Alternative, ...]] = []
        which = np.empty(len(given), dtype=np.int64)
        for position, several in enumerate(given):
            index = distinct.setdefault(id(several), len(tuples))
            if index == len(tuples):
                tuples.append(several)
            which[position] = index
        table = np.array(
            [
                (a.class_, a.partition, a.time_limit_s, a.min_nodes, a.max_nodes)
                for several in tuples
                for a in several
            ],
            dtype=np.int64,
        ).reshape(-1, 5)
        length = np.array([len(several) for several in tuples], dtype=np.int64)
        offset = np.concatenate(([0], np.cumsum(length)))[which]
        counts = length[which]
        self.indptr = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
        at = np.repeat(offset - self.indptr[:-1], counts) + np.arange(self.indptr[-1])
        columns = (np.ascontiguousarray(column) for column in table[at].T)
        self.class_, self.partition, self.time_limit_s, self.min_nodes, self.max_nodes = columns


def _required(
    jobs: JobTable, take: NDArray[np.int64], n_nodes: int
) -> tuple[NDArray[np.int32], NDArray[np.uint64]]:
    """Rows of the required-node bitsets per job (-1: none), and the bitsets."""
    index: dict[tuple[int, ...], int] = {}
    rows = np.fromiter(
        (index.setdefault(nodes, len(index)) if nodes else -1 for nodes in jobs.required[take]),
        dtype=np.int32,
        count=len(take),
    )
    masks = np.zeros((len(index), n_nodes), dtype=bool)
    for nodes, position in index.items():
        masks[position, list(nodes)] = True
    return rows, pack_nodes(masks)
