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
    6. A row that could only start too late for its deadline or fixed start holds no place: it is
       left out, and all is planned again (at most `MOST_LEFT_OUT` times; then it just does not
       start).

Source: Lifka, JSSPP 1995 (EASY); Mu'alem and Feitelson, TPDS 12(6), 2001 (conservative).
Deviates: the plan is made anew in every cycle ("compressed"), so an early end moves every later
start forward, not only the first one's.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridge.core import UNLIMITED, Blocked, NodePlan, pack_nodes, plan_nodes
from bridge.errors import ConfigError, PolicyError
from bridge.model.job import JobTable
from bridge.model.plan import Plan
from bridge.model.reasons import Reason
from bridge.model.snapshot import Snapshot
from bridge.planning.explanation import blocked_reason
from bridge.planning.kinds import too_late
from bridge.planning.rows import Rows, expand_arrays
from bridge.ports import Memory, Preference

# Verdicts whose words depend on the whole job; the others' on what `_explain` compares.
_JUDGED_ALONE = (Blocked.NEVER_NODES, Blocked.NEVER_SIZE, Blocked.NEVER_COUNTER)


MOST_LEFT_OUT = 10


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
        rows = Rows(snapshot, expand_arrays(snapshot.jobs, order, self.array_depth))
        try:
            found = self._solved(rows, preference)
        except ValueError as error:
            raise PolicyError("backfill", str(error)) from error
        _explain(rows, found)
        return rows.plan(
            "backfill",
            start=found.start,
            alternative=found.alternative,
            indptr=found.indptr,
            nodes=found.nodes,
            tasks=found.tasks,
        )

    def _solved(self, rows: Rows, preference: Preference) -> NodePlan:
        depth = UNLIMITED if self.depth is None else self.depth
        jobs = rows.snapshot.jobs
        for _ in range(MOST_LEFT_OUT):
            found = _solve(rows, preference, depth)
            missed = rows.too_late(found.start, found.alternative)
            if not len(missed):
                return found
            # The first one only: those behind it may do without it.
            at = int(missed[0])
            limit_s = rows.alternatives.time_limit_s[rows.alternatives.chosen(found.alternative)]
            why = too_late(jobs, int(rows.job[rows.asked[at]]), int(found.start[at]), limit_s[at])
            assert why is not None
            rows.give_up(at, why)
        return _solve(rows, preference, depth)


def _solve(rows: Rows, preference: Preference, depth: int) -> NodePlan:
    """Calls the kernel."""
    snapshot, running, alternatives = rows.snapshot, rows.snapshot.running, rows.alternatives
    jobs, take = snapshot.jobs, rows.job[rows.asked]
    required, required_nodes = _required(jobs, take, len(snapshot.nodes))
    b_class, b_start, b_end, b_nodes = rows.eligibility.blackouts()
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
        class_nodes=rows.eligibility.class_nodes(),
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
        not_before=rows.not_before_s(),
        width_rule=jobs.width_rule[take],
        required=required,
        required_nodes=required_nodes,
    )


def _explain(rows: Rows, found: NodePlan) -> None:
    """Gives every row that does not start now its reason; rows that wait alike share it."""
    blocked = np.flatnonzero(found.blocked_by != Blocked.STARTS_NOW)
    at, which = rows.alternatives.chosen(found.alternative)[blocked], rows.asked[blocked]
    columns = (
        rows.alternatives.partition[at], rows.alternatives.min_nodes[at],
        found.blocked_by[blocked], found.fit_now[blocked], found.blocked_counter[blocked],
        rows.snapshot.jobs.tasks[rows.job[which]],
    )  # fmt: skip
    known: dict[tuple[int, ...], Reason] = {}
    keys = zip(*(c.tolist() for c in columns), strict=True)
    for row, key in zip(which.tolist(), keys, strict=True):
        reason = known.get(key)
        if reason is None:
            partition, min_nodes, code, fit_now, counter, _ = key
            reason = blocked_reason(
                rows.snapshot,
                int(rows.job[row]),
                partition=partition,
                min_nodes=min_nodes,
                blocked=Blocked(code),
                fit_now=fit_now,
                counter=counter,
            )
            if code not in _JUDGED_ALONE:
                known[key] = reason
        rows.reasons[row] = reason


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
