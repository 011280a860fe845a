# SPDX-License-Identifier: Apache-2.0
"""Determines which nodes a job may use, when, and for how long: its alternatives and classes.

Terms
    alternative     one way to run a job: a partition and, for `[a|b]`, one of its constraints. Its
                    nodes belong to one fabric (`leaf_switches.py`), and to few leaf switches if
                    the job requests that.
    class           jobs with the same eligible nodes and the same blackouts share one.
    blackout        nodes closed to a class over [start, end): by another reservation, by announced
                    downtime, until the job's own reservation begins, or until the job has waited
                    long enough for its leaf switches.

Rules
    1. Unusable nodes, nodes outside the partition, excluded nodes, and nodes that do not match
       the constraint belong to no class of the job.
    2. A job without a reservation cannot use the nodes of a reservation while that is in force.
    3. A job with a reservation uses that reservation's nodes only, from its start on. Overlapping
       reservations do not close its nodes, as the administrator allowed the overlap. For jobs of a
       reservation of licences alone rule 2 applies.
    4. A partition that is down, or whose bounds the job exceeds, gives no alternative.
    5. A job without a time limit gets the partition's default, or its maximum, or a year. If the
       default exceeds the maximum (which Slurm permits), the job cannot run; Slurm holds it, too.
    6. Alternatives of a higher partition tier come first, then in the order the user named them.
    7. A job that may have several nodes has an alternative for each fabric, the smallest first. A
       node without a switch is for jobs that need one node only, except jobs in chunks.
    8. A job with a pending wish for leaf switches has an alternative for each of its unions, and
       after them its other alternatives, from the end of the wait on.
    9. If a job's limit may be cut for its deadline, it is never longer than the time left until
       then. If it may be cut and there is no deadline, the job has alternatives with several time
       limits, the longest first; the earliest start wins.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bridge.dialect import dialect_of
from bridge.errors import RequestError
from bridge.model.job import Hold, WidthRule
from bridge.model.reasons import Reason, ReasonCode
from bridge.model.snapshot import Partition, Snapshot
from bridge.planning.eligibility.leaf_switches import (
    Leaves,
    SwitchLoad,
    SwitchRequest,
    announced_until_s,
    pending,
    unions,
)
from bridge.planning.eligibility.node_classes import NodeClasses, mask_of
from bridge.units import NEVER, UNLIMITED_S


@dataclass(frozen=True)
class Alternative:
    """One way to run a job: where (a class and its partition), how long, how wide."""

    class_: int
    partition: int
    time_limit_s: int
    min_nodes: int
    max_nodes: int


class Eligibility:
    """Finds the alternatives of one snapshot's jobs, and collects their classes.

    Attributes:
        classes: classes of all alternatives found so far.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot, self.classes = snapshot, NodeClasses(snapshot)
        n_nodes = len(snapshot.nodes)
        self._in_partition = [mask_of(n_nodes, part.nodes) for part in snapshot.partitions]
        self._tier = [part.priority_tier for part in snapshot.partitions]
        self._alternatives: dict[tuple[object, ...], tuple[Alternative, ...] | Reason] = {}
        self._leaves = None if snapshot.topology is None else Leaves.of(snapshot.topology)
        self._apart = self._leaves is not None and not self._leaves.whole
        jobs, self._cut, self._shorter = snapshot.jobs, False, False
        if jobs.min_time_s.any():
            self._left_s = _left_s(snapshot)
            self._cut = bool((self._left_s < NEVER).any())
            self._shorter = bool(((jobs.min_time_s > 0) & (jobs.deadline_s == 0)).any())
        self._pending = pending(snapshot)
        self._wishes = bool(self._pending.any())
        self._until = announced_until_s(snapshot) if self._wishes else None
        self._requests: dict[tuple[object, ...], SwitchRequest] = {}
        self._unions: dict[tuple[object, ...], list[int]] = {}

    def alternatives(self, rows: NDArray[np.int64]) -> list[tuple[Alternative, ...] | Reason]:
        """Returns each job's alternatives, or why there are none; equal requests share them.

        Args:
            rows: (n,) rows of `snapshot.jobs`.
        """
        jobs = self._snapshot.jobs
        requested = (
            jobs.partitions, jobs.features, jobs.excluded, jobs.required, jobs.reservation,
            jobs.time_limit_s, jobs.min_nodes, jobs.max_nodes, jobs.width_rule,
        )  # fmt: skip
        columns = [column[rows].tolist() for column in requested]
        if self._apart:
            columns.append(jobs.chunks[rows].astype(bool).tolist())
        if self._cut:
            columns.append(self._left_s[rows].tolist())
        if self._cut or self._shorter:
            columns.append(jobs.min_time_s[rows].tolist())
        if self._wishes:
            columns.append([self._wish(row) for row in rows.tolist()])
        keys = zip(*columns, strict=True)
        known = self._alternatives
        answers = []
        for key, row in zip(keys, rows.tolist(), strict=True):
            answer = known.get(key)
            if answer is None:
                answer = known[key] = self._find(row)
            answers.append(answer)
        return answers

    def _find(self, row: int) -> tuple[Alternative, ...] | Reason:
        jobs = self._snapshot.jobs
        try:
            matching = self.classes.matching(jobs.features[row])
        except RequestError as error:
            return Reason(ReasonCode.BAD_REQUEST, f"constraint: {error}")
        parts: Iterable[int] = sorted(jobs.partitions[row], key=lambda p: -self._tier[p])
        found: list[Alternative] = []
        refusal: Reason | None = None
        for index in parts:
            result = self._in(row, index, matching)
            if isinstance(result, Reason):
                refusal = refusal or result
            else:
                found.extend(result)
        if found:
            return tuple(found)
        word = dialect_of(self._snapshot).words.partition
        return refusal or Reason(ReasonCode.BAD_REQUEST, f"names no {word} of this cluster")

    def _in(
        self, row: int, index: int, matching: list[NDArray[np.bool_]]
    ) -> list[Alternative] | Reason:
        """Alternatives within one partition, or why it has none."""
        snapshot, jobs = self._snapshot, self._snapshot.jobs
        part, words = snapshot.partitions[index], dialect_of(snapshot).words
        limit_s = int(jobs.time_limit_s[row])
        width = _width(part, int(jobs.min_nodes[row]), int(jobs.max_nodes[row]))
        if not part.up:
            return Reason(ReasonCode.PARTITION, f"{words.partition} {part.name} is down")
        length_s = limit_s or part.default_time_s or part.max_time_s or UNLIMITED_S
        requested_s = int(jobs.min_time_s[row])
        min_s = min(requested_s, length_s) if requested_s > 0 else length_s
        if part.max_time_s and min_s > part.max_time_s:
            text = f"{words.time_limit} exceeds that of {words.partition} {part.name}"
            if not limit_s:
                text = f"default {text}: state one ({words.time_option})"
            return Reason(ReasonCode.PARTITION, text)
        if width is None:
            return Reason(
                ReasonCode.PARTITION,
                f"{words.node} count is outside {words.partition} {part.name}'s",
            )
        rule = WidthRule(int(jobs.width_rule[row]))
        maximum = min(width[1], max(width[0], len(snapshot.nodes)))
        if rule.next_width(width[0]) > maximum:
            return Reason(
                ReasonCode.BAD_REQUEST,
                f"no {words.node} count from {width[0]} to {width[1]} is {rule.name.lower()}",
            )
        base = self._in_partition[index] & snapshot.nodes.usable
        excluded = jobs.excluded[row]
        if excluded:
            base[list(excluded)] = False
        reservation = int(jobs.reservation[row])
        if reservation >= 0 and not snapshot.reservations[reservation].anywhere:
            base &= mask_of(len(base), snapshot.reservations[reservation].nodes)
        length_s = min(length_s, part.max_time_s or length_s)
        if self._cut:
            length_s = max(min(length_s, int(self._left_s[row])), min_s)
        lengths = [length_s] if jobs.deadline_s[row] else limits_to_try(length_s, min_s)
        if self._leaves is None or width[1] == 1:
            return [
                Alternative(self.classes.of(base & nodes, reservation), index, length_s, *width)
                for length_s in lengths
                for nodes in matching
            ]
        return [
            Alternative(class_, index, length_s, *bounds)
            for length_s in lengths
            for nodes in matching
            for class_, bounds in self._on_switches(row, base & nodes, width, length_s)
        ]

    def _wish(self, row: int) -> tuple[object, ...]:
        """What distinguishes jobs with pending wishes; equal for jobs without one."""
        if not self._pending[row] or self._until is None:
            return ()
        jobs = self._snapshot.jobs
        return (int(jobs.switches[row]), int(self._until[row]), *self._needs(row))

    def _needs(self, row: int) -> tuple[object, ...]:
        jobs = self._snapshot.jobs
        return (
            int(jobs.tasks[row]), int(jobs.max_tasks_per_node[row]), bool(jobs.exclusive[row]),
            jobs.per_node[row].tobytes(), jobs.per_task[row].tobytes(),
        )  # fmt: skip

    def _on_switches(
        self, row: int, nodes: NDArray[np.bool_], width: tuple[int, int], length_s: int
    ) -> list[tuple[int, tuple[int, int]]]:
        """The class and the width of each way to have several nodes (7, 8)."""
        leaves, jobs = self._leaves, self._snapshot.jobs
        assert leaves is not None
        reservation = int(jobs.reservation[row])
        parts, alone = [nodes], []
        if self._apart:
            parts = leaves.apart(nodes)
            lone = nodes & (leaves.of_node < 0)
            rule = WidthRule(int(jobs.width_rule[row]))
            if width[0] == 1 and rule.allows(1) and jobs.chunks[row] is None and lone.any():
                alone = [(self.classes.of(lone, reservation), (1, 1))]
            elif not parts:  # there is no way, and that is to be said
                parts = [np.zeros_like(nodes)]
        if not self._pending[row] or self._until is None:
            return [(self.classes.of(part, reservation), width) for part in parts] + alone
        few = self._unions_of(row, nodes, width[0], length_s)
        until = int(self._until[row])
        later = [part for part in parts if self.classes.of(part, reservation) not in few]
        return [
            *((class_, width) for class_ in few),
            *alone,
            *((self.classes.of(part, reservation, until), width) for part in later),
        ]

    def _unions_of(
        self, row: int, nodes: NDArray[np.bool_], minimum: int, length_s: int
    ) -> list[int]:
        """The classes of a job's unions; equal requests share them."""
        jobs, snapshot, leaves = self._snapshot.jobs, self._snapshot, self._leaves
        assert leaves is not None
        maximum, required = int(jobs.switches[row]), jobs.required[row]
        needs = (minimum, *self._needs(row))
        reservation = int(jobs.reservation[row])
        class_ = self.classes.of(nodes, reservation)
        closed = self.classes.closed(class_)
        key = (class_, maximum, required, length_s if closed else 0, needs)
        found = self._unions.get(key)
        if found is None:
            requested = self._requests.get(needs)
            if requested is None:
                requested = self._requests[needs] = self._load.request(row, minimum)
            masks = unions(
                leaves, nodes, requested, maximum=maximum, required=required, load=self._load,
                now_s=snapshot.now_s, length_s=length_s, closed=closed,
            )  # fmt: skip
            found = self._unions[key] = [self.classes.of(mask, reservation) for mask in masks]
        return found

    @cached_property
    def _load(self) -> SwitchLoad:
        return SwitchLoad(self._snapshot)


def _width(part: Partition, min_nodes: int, max_nodes: int) -> tuple[int, int] | None:
    """The job's node bounds within the partition's; None if they do not meet."""
    low = max(min_nodes, part.min_nodes, 1)
    high = min(max_nodes, part.max_nodes) if part.max_nodes else max_nodes
    return (low, high) if low <= high else None


def limits_to_try(length_s: int, min_s: int) -> list[int]:
    """The time limits that are tried: repeated halves, in whole minutes, down to the minimum."""
    found = [length_s]
    while (half_s := found[-1] // 120 * 60) > max(min_s, 0):
        found.append(half_s)
    return found if found[-1] == min_s else [*found, min_s]


def _left_s(snapshot: Snapshot) -> NDArray[np.int64]:
    """(n_jobs,) until the deadline, for jobs whose time limit may be cut; NEVER for others.

    A start later than the earliest leaves less: what is planned then ends at the deadline, too.
    """
    jobs = snapshot.jobs
    bound = (jobs.hold == Hold.BEGIN_TIME) | jobs.fixed
    first_s = np.maximum(np.where(bound, jobs.begin_s, 0), snapshot.now_s)
    cut = (jobs.deadline_s > 0) & (jobs.min_time_s > 0)
    return np.where(cut, jobs.deadline_s - first_s, NEVER)
