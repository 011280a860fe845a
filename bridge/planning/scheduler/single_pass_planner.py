# SPDX-License-Identifier: Apache-2.0
"""Plans the rows of a cycle with the kernel `plan_nodes`: the fast path where no rule binds.

It is exact and supports all requests but chunks of several kinds. Interchangeable whole nodes are
planned as counts (docs/design/0005-kernels.md). Limits, FreePools and protections are left to
`bridge.planning.scheduler.book_planner`.
"""

from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridge.core import UNLIMITED, Blocked, NodePlan, NodeProblem, pack_nodes, plan_nodes
from bridge.model.job import JobTable
from bridge.model.plan import Plan
from bridge.model.reasons import Reason, ReasonCode
from bridge.planning.queue.columns import gather
from bridge.planning.queue.readable_reasons import Explainer
from bridge.planning.queue.rows import Rows
from bridge.ports import Preference
from bridge.units import NEVER, UNPLANNED

# Verdicts whose text depends on the whole job; that of others depends on what `_explain` compares.
_JUDGED_ALONE = (Blocked.NEVER_NODES, Blocked.NEVER_SIZE, Blocked.NEVER_COUNTER, Blocked.TOO_LATE)

_NO_CLASS, _NO_INSTANT = np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.int64)


class SinglePassPlanner:
    """The rows of one cycle, planned in any order, any number of times."""

    def __init__(self, rows: Rows, preference: Preference) -> None:
        self._rows, self._preference = rows, preference
        self._order: NDArray[np.int64] | None = None
        self._found: NodePlan | None = None

    def solve(
        self, order: NDArray[np.int64] | None, depth: int | None
    ) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Plans plannable rows from scratch.

        Args:
            order: all positions in `Rows.plannable`, first planned first; None: in that order.
            depth: how many of them may hold a planned start; None: all.

        Returns:
            (n_plannable,) starts, and indexes among each row's own alternatives (-1: none), by
            position.
        """
        self.decode(order, depth)
        found = self._found
        assert found is not None
        start, alternative = found.start, found.alternative.copy()
        if order is not None:
            start, alternative = np.empty_like(start), np.empty_like(alternative)
            start[order], alternative[order] = found.start, found.alternative
        alternative[(start == NEVER) | (start == UNPLANNED)] = -1
        return start, alternative

    def decode(self, order: NDArray[np.int64] | None, depth: int | None) -> None:
        """The same, for callers that only need the plan."""
        self._order = order
        rows, lowered = self._rows, self._rows.lowered
        maximum = UNLIMITED if depth is None else depth
        if order is not None or lowered is None or not rows.plain:
            self._found = plan_nodes(self.problem(order, maximum))
            return
        assert rows.kept is not None
        class_nodes = rows.kept.class_nodes(lowered.classes)
        self._found = lowered.plan(
            snapshot=rows.snapshot,
            depth=maximum,
            select=int(self._preference.selection),
            rank=self._preference.rank,
            class_nodes=class_nodes,
            blackouts=_none_closed(class_nodes.shape[1]),
        )

    def plan(self, policy: str) -> Plan:
        """The plan found by `solve`, with reasons."""
        found = self._found
        assert found is not None
        if self._rows.plain:
            self._explain_plain(found)
        else:
            self._explain(found)
        if self._order is None:
            return self._rows.plan_in_order(policy, found)
        back = np.argsort(self._order)
        indptr, take = gather(found.indptr, back)
        return self._rows.plan(
            policy,
            start=found.start[back],
            alternative=found.alternative[back],
            indptr=indptr,
            nodes=found.nodes[take],
            tasks=found.tasks[take],
        )

    def problem(self, order: NDArray[np.int64] | None, depth: int = UNLIMITED) -> NodeProblem:
        """What `plan_nodes` plans for some positions in `Rows.plannable`, in this order.

        None: for all, in that order.
        """
        return NodeProblem(**self._world, **self._jobs(order), depth=depth)

    @cached_property
    def _world(self) -> dict[str, Any]:
        """The columns that do not depend on the order of the jobs."""
        rows, snapshot, running = self._rows, self._rows.snapshot, self._rows.snapshot.running
        if rows.kept is not None and rows.lowered is not None and not snapshot.reservations:
            class_nodes = rows.kept.class_nodes(rows.lowered.classes)
            b_class, b_start, b_end, b_nodes = _none_closed(class_nodes.shape[1])
        else:
            class_nodes = rows.eligibility.classes.bitsets()
            b_class, b_start, b_end, b_nodes = rows.eligibility.classes.blackouts()
        return {
            "now": snapshot.now_s,
            "select": int(self._preference.selection),
            "capacity": np.ascontiguousarray(snapshot.nodes.capacity),
            "node_rank": self._preference.rank,
            "run_indptr": running.indptr,
            "run_nodes": running.nodes,
            "run_use": np.ascontiguousarray(running.use),
            "run_end": running.end_s,
            "run_exclusive": running.exclusive,
            "run_counter": np.ascontiguousarray(running.licences),
            "class_nodes": class_nodes,
            "blackout_class": b_class,
            "blackout_start": b_start,
            "blackout_end": b_end,
            "blackout_nodes": b_nodes,
            "counter_capacity": snapshot.licence_total,
        }

    @cached_property
    def _required(self) -> tuple[NDArray[np.int32], NDArray[np.uint64]]:
        jobs, take = self._rows.snapshot.jobs, self._rows.job[self._rows.plannable]
        return _required(jobs, take, len(self._rows.snapshot.nodes))

    @cached_property
    def _bounds(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
        """Earliest starts, latest starts by alternative, and which rows hold a fixed start."""
        rows = self._rows
        fixed = rows.snapshot.jobs.fixed[rows.job[rows.plannable]]
        return rows.not_before_s(), rows.latest_s(), fixed

    def _jobs(self, order: NDArray[np.int64] | None) -> dict[str, Any]:
        """The other columns, for rows in this order."""
        rows, alternatives = self._rows, self._rows.alternatives
        jobs, take = rows.snapshot.jobs, rows.job[rows.plannable]
        not_before, latest, fixed = self._bounds
        required = self._required[0]
        indptr = alternatives.indptr
        at: NDArray[np.int64] | slice = slice(None)
        if order is not None:
            indptr, at = gather(indptr, order)
            take, not_before, fixed = take[order], not_before[order], fixed[order]
            required = required[order]
        return {
            "job_counter": np.ascontiguousarray(jobs.licences[take]),
            "alt_indptr": indptr,
            "alt_class": alternatives.class_[at].astype(np.int32),
            "alt_time_limit_s": alternatives.time_limit_s[at],
            "alt_min_nodes": alternatives.min_nodes[at].astype(np.int32),
            "alt_max_nodes": alternatives.max_nodes[at].astype(np.int32),
            "alt_latest": latest[at],
            "per_node": np.ascontiguousarray(jobs.per_node[take]),
            "tasks": jobs.tasks[take].astype(np.int32),
            "per_task": np.ascontiguousarray(jobs.per_task[take]),
            "max_tasks_per_node": jobs.max_tasks_per_node[take].astype(np.int32),
            "exclusive": jobs.exclusive[take],
            "not_before": not_before,
            "beside_depth": fixed,
            "width_rule": jobs.width_rule[take],
            "required": required,
            "required_nodes": self._required[1],
        }

    def _explain_plain(self, found: NodePlan) -> None:
        """The same, where most reasons follow from the request and the verdict."""
        rows = self._rows
        assert rows.kept is not None
        assert rows.lowered is not None
        rows.kept.table.tell(rows.lowered, found, self._order, rows.reasons, self._waits_for)

    def _waits_for(self, one: int, at: int, code: int, fit_now: int) -> Reason:
        """Why one of the plannable rows waits; `at`: the alternative that the verdict is about."""
        rows, alternatives = self._rows, self._rows.alternatives
        return self._explainer.blocked(
            int(rows.job[rows.plannable[one]]),
            partition=int(alternatives.partition[at]),
            min_nodes=int(alternatives.min_nodes[at]),
            blocked=Blocked(code),
            fit_now=fit_now,
            counter=-1,
        )

    @cached_property
    def _explainer(self) -> Explainer:
        return Explainer(self._rows.snapshot, self._rows.matching)

    def _explain(self, found: NodePlan) -> None:
        """Sets the reason of every row that does not start now; equal reasons are shared."""
        rows, alternatives = self._rows, self._rows.alternatives
        blocked = np.flatnonzero(found.blocked_by != Blocked.STARTS_NOW)
        position = blocked if self._order is None else self._order[blocked]
        at = alternatives.indptr[position] + np.maximum(found.alternative[blocked], 0)
        columns = (
            alternatives.partition[at], alternatives.min_nodes[at],
            found.blocked_by[blocked], found.fit_now[blocked], found.blocked_counter[blocked],
            rows.snapshot.jobs.tasks[rows.job[rows.plannable[position]]],
        )  # fmt: skip
        known: dict[tuple[object, ...], Reason] = {}
        explainer = self._explainer
        jobs = rows.job[rows.plannable[position]]
        results = zip(*(c.tolist() for c in columns), strict=True)
        told = zip(position.tolist(), jobs.tolist(), results, explainer.alike(jobs), strict=True)
        for n, (one, job, result, alike) in enumerate(told):
            key = (result, alike)
            reason = known.get(key)
            if reason is None:
                partition, min_nodes, code, fit_now, counter, _ = result
                if code == Blocked.TOO_LATE:
                    reason = rows.missed(
                        one,
                        int(found.missed_start[blocked[n]]),
                        int(alternatives.time_limit_s[at[n]]),
                        ReasonCode.RESOURCES if counter < 0 else ReasonCode.LICENCES,
                    )
                    assert reason is not None
                else:
                    reason = explainer.blocked(
                        job,
                        partition=partition,
                        min_nodes=min_nodes,
                        blocked=Blocked(code),
                        fit_now=fit_now,
                        counter=counter,
                    )
                if code not in _JUDGED_ALONE:
                    known[key] = reason
            rows.reasons[rows.plannable[one]] = reason


@cache
def _no_sets(n_words: int) -> NDArray[np.uint64]:
    return np.zeros((0, n_words), dtype=np.uint64)


@cache
def _none_closed(
    n_words: int,
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64], NDArray[np.uint64]]:
    return _NO_CLASS, _NO_INSTANT, _NO_INSTANT, _no_sets(n_words)


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
