# SPDX-License-Identifier: Apache-2.0
"""Determines which nodes a job may use, when, and for how long: its alternatives and classes.

Words
    alternative     one way to run a job: a partition and, for `[a|b]`, one of its constraints. Its
                    nodes belong to one fabric (`leaf_switches.py`), and to few leaf switches if
                    the job asks for that.
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

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bridge.core import pack_nodes
from bridge.dialect import dialect_of
from bridge.errors import RequestError
from bridge.model.job import Hold, WidthRule
from bridge.model.reasons import Reason, ReasonCode
from bridge.model.snapshot import Partition, Snapshot
from bridge.planning.eligibility.leaf_switches import (
    Leaves,
    Load,
    SwitchRequest,
    announced_until_s,
    pending,
    unions,
)
from bridge.planning.requests.features import Matches, parse_features
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
    """Collects the classes of one snapshot's jobs; jobs that ask alike share them."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        n_nodes = len(snapshot.nodes)
        self._in_partition = [_mask(n_nodes, part.nodes) for part in snapshot.partitions]
        self._tier = [part.priority_tier for part in snapshot.partitions]
        self._masks: list[NDArray[np.bool_]] = []
        self._reservation: list[int] = []
        self._opens: list[int] = []
        self._class_of: dict[tuple[bytes, int, int], int] = {}
        self._matching: dict[str, list[NDArray[np.bool_]]] = {}
        self._alternatives: dict[tuple[object, ...], tuple[Alternative, ...] | Reason] = {}
        self._leaves = None if snapshot.topology is None else Leaves.of(snapshot.topology)
        self._apart = self._leaves is not None and not self._leaves.whole
        jobs, self._cut, self._shorter = snapshot.jobs, False, False
        if jobs.least_time_s.any():
            self._left_s = _left_s(snapshot)
            self._cut = bool((self._left_s < NEVER).any())
            self._shorter = bool(((jobs.least_time_s > 0) & (jobs.deadline_s == 0)).any())
        self._pending = pending(snapshot)
        self._wishes = bool(self._pending.any())
        self._until = announced_until_s(snapshot) if self._wishes else None
        self._requests: dict[tuple[object, ...], SwitchRequest] = {}
        self._unions: dict[tuple[object, ...], list[int]] = {}

    def alternatives(self, rows: NDArray[np.int64]) -> list[tuple[Alternative, ...] | Reason]:
        """Returns each job's alternatives, or why there are none; jobs that ask alike share them.

        Args:
            rows: (n,) rows of `snapshot.jobs`.
        """
        jobs = self._snapshot.jobs
        asked = (
            jobs.partitions, jobs.features, jobs.excluded, jobs.required, jobs.reservation,
            jobs.time_limit_s, jobs.min_nodes, jobs.max_nodes, jobs.width_rule,
        )  # fmt: skip
        columns = [column[rows].tolist() for column in asked]
        if self._apart:
            columns.append(jobs.chunks[rows].astype(bool).tolist())
        if self._cut:
            columns.append(self._left_s[rows].tolist())
        if self._cut or self._shorter:
            columns.append(jobs.least_time_s[rows].tolist())
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
            matching = self.matching(jobs.features[row])
        except RequestError as error:
            return Reason(ReasonCode.BAD_REQUEST, f"constraint: {error}")
        parts: Iterable[int] = sorted(jobs.partitions[row], key=lambda p: -self._tier[p])
        found: list[Alternative] = []
        refusal: Reason | None = None
        for index in parts:
            outcome = self._in(row, index, matching)
            if isinstance(outcome, Reason):
                refusal = refusal or outcome
            else:
                found.extend(outcome)
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
        asked_s = int(jobs.least_time_s[row])
        least_s = min(asked_s, length_s) if asked_s > 0 else length_s
        if part.max_time_s and least_s > part.max_time_s:
            text = f"time limit exceeds that of {words.partition} {part.name}"
            if not limit_s:
                text = f"default {text}: state one ({words.time_option})"
            return Reason(ReasonCode.PARTITION, text)
        if width is None:
            return Reason(
                ReasonCode.PARTITION, f"node count is outside {words.partition} {part.name}'s"
            )
        rule = WidthRule(int(jobs.width_rule[row]))
        most = min(width[1], max(width[0], len(snapshot.nodes)))
        if rule.next_width(width[0]) > most:
            return Reason(
                ReasonCode.BAD_REQUEST,
                f"no node count from {width[0]} to {width[1]} is {rule.name.lower()}",
            )
        base = self._in_partition[index] & snapshot.nodes.usable
        excluded = jobs.excluded[row]
        if excluded:
            base[list(excluded)] = False
        reservation = int(jobs.reservation[row])
        if reservation >= 0 and not snapshot.reservations[reservation].anywhere:
            base &= _mask(len(base), snapshot.reservations[reservation].nodes)
        length_s = min(length_s, part.max_time_s or length_s)
        if self._cut:
            length_s = max(min(length_s, int(self._left_s[row])), least_s)
        lengths = [length_s] if jobs.deadline_s[row] else _shorter_and_shorter(length_s, least_s)
        if self._leaves is None or width[1] == 1:
            return [
                Alternative(self._class(base & nodes, reservation), index, length_s, *width)
                for length_s in lengths
                for nodes in matching
            ]
        return [
            Alternative(class_, index, length_s, *bounds)
            for length_s in lengths
            for nodes in matching
            for class_, bounds in self._on_switches(row, base & nodes, width, length_s)
        ]

    # ------------------------------------------------------------ leaf switches and fabrics

    def _wish(self, row: int) -> tuple[object, ...]:
        """What tells jobs with pending wishes apart; jobs without one have the same."""
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
                alone = [(self._class(lone, reservation), (1, 1))]
            elif not parts:  # there is no way, and that is to be said
                parts = [np.zeros_like(nodes)]
        if not self._pending[row] or self._until is None:
            return [(self._class(part, reservation), width) for part in parts] + alone
        few = self._unions_of(row, nodes, width[0], length_s)
        until = int(self._until[row])
        later = [part for part in parts if self._class(part, reservation) not in few]
        return [
            *((class_, width) for class_ in few),
            *alone,
            *((self._class(part, reservation, until), width) for part in later),
        ]

    def _unions_of(
        self, row: int, nodes: NDArray[np.bool_], least: int, length_s: int
    ) -> list[int]:
        """The classes of a job's unions; jobs that need alike share them."""
        jobs, snapshot, leaves = self._snapshot.jobs, self._snapshot, self._leaves
        assert leaves is not None
        most, required = int(jobs.switches[row]), jobs.required[row]
        needs = (least, *self._needs(row))
        reservation = int(jobs.reservation[row])
        class_ = self._class(nodes, reservation)
        closed = self.closed(class_)
        key = (class_, most, required, length_s if closed else 0, needs)
        found = self._unions.get(key)
        if found is None:
            asked = self._requests.get(needs)
            if asked is None:
                asked = self._requests[needs] = self._load.request(row, least)
            masks = unions(
                leaves, nodes, asked, most=most, required=required, load=self._load,
                now_s=snapshot.now_s, length_s=length_s, closed=closed,
            )  # fmt: skip
            found = self._unions[key] = [self._class(mask, reservation) for mask in masks]
        return found

    @cached_property
    def _load(self) -> Load:
        return Load(self._snapshot)

    # ------------------------------------------------------------ classes

    def _class(self, nodes: NDArray[np.bool_], reservation: int, opens_s: int = 0) -> int:
        key = (nodes.tobytes(), reservation, opens_s)
        found = self._class_of.get(key)
        if found is None:
            found = self._class_of[key] = len(self._masks)
            self._masks.append(nodes)
            self._reservation.append(reservation)
            self._opens.append(opens_s)
        return found

    def begin_with(self, classes: Iterable[tuple[NDArray[np.bool_], int]]) -> None:
        """Makes the first classes: their nodes, and the reservation of their jobs (-1: none)."""
        for nodes, reservation in classes:
            self._class(nodes, reservation)

    def reservation_of(self, class_: int) -> int:
        """The reservation of a class's jobs; -1: none."""
        return self._reservation[class_]

    def opens_s(self, class_: int) -> int:
        """From when on a job that waits for leaf switches may use a class; 0: from now."""
        return self._opens[class_]

    def matching(self, text: str) -> list[NDArray[np.bool_]]:
        """(n_nodes,) which nodes match, for each alternative of a constraint.

        Raises:
            RequestError: it is not one.
        """
        found = self._matching.get(text)
        if found is None:
            features = self._snapshot.nodes.features
            found = self._matching[text] = (
                [np.ones(len(features), dtype=bool)]
                if not text
                else [_evaluate(alternative, features) for alternative in parse_features(text)]
            )
        return found

    def choices(self, text: str) -> int:
        """How many alternatives a constraint has that was found valid before."""
        return len(self.matching(text))

    def narrowed(self, class_: int, text: str, choice: int) -> int:
        """The class of those nodes of a class that match one alternative of a constraint."""
        return self._class(self._masks[class_] & self.matching(text)[choice], *self._when(class_))

    def only(self, class_: int, nodes: Sequence[int]) -> int:
        """The class of those nodes of a class that are named."""
        named = np.zeros(len(self._snapshot.nodes), dtype=bool)
        named[list(nodes)] = True
        return self._class(self._masks[class_] & named, *self._when(class_))

    def without(self, class_: int, nodes: Sequence[int]) -> int:
        """The class of those nodes of a class that are not named."""
        left = self._masks[class_].copy()
        left[list(nodes)] = False
        return self._class(left, *self._when(class_))

    def _when(self, class_: int) -> tuple[int, int]:
        return self._reservation[class_], self._opens[class_]

    def class_mask(self, class_: int) -> NDArray[np.bool_]:
        """(n_nodes,) bool: the nodes of a class."""
        return self._masks[class_]

    def class_nodes(self) -> NDArray[np.uint64]:
        """(n_class, n_words) uint64 bitsets, as the kernels take them."""
        masks = np.array(self._masks, dtype=np.bool_)  # without a class, too
        return pack_nodes(masks.reshape(len(self._masks), len(self._snapshot.nodes)))

    def closed(self, class_: int) -> list[tuple[int, int, NDArray[np.bool_]]]:
        """When which nodes of a class are closed to it: start, end and (n_nodes,) bool."""
        snapshot, own = self._snapshot, self._reservation[class_]
        opens_s = self._opens[class_]
        if own >= 0:
            opens_s = max(opens_s, snapshot.reservations[own].start_s)
        found = []
        if opens_s > snapshot.now_s:
            found.append((snapshot.now_s, opens_s, self._masks[class_]))
        if own >= 0 and not snapshot.reservations[own].anywhere:
            return found
        for reservation in snapshot.reservations:
            start_s = max(reservation.start_s, snapshot.now_s)
            shut = self._masks[class_] & _mask(len(snapshot.nodes), reservation.nodes)
            if reservation.end_s > start_s and shut.any():
                found.append((start_s, min(reservation.end_s, NEVER), shut))
        return found

    def blackouts(
        self,
    ) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64], NDArray[np.uint64]]:
        """Class, start, end and nodes (bitsets) of all blackouts."""
        n_nodes = len(self._snapshot.nodes)
        rows = [
            (class_, *blackout)
            for class_ in range(len(self._masks))
            for blackout in self.closed(class_)
        ]
        return (
            np.array([row[0] for row in rows], dtype=np.int32),
            np.array([row[1] for row in rows], dtype=np.int64),
            np.array([row[2] for row in rows], dtype=np.int64),
            pack_nodes(np.array([row[3] for row in rows], dtype=bool).reshape(len(rows), n_nodes)),
        )


def _width(part: Partition, min_nodes: int, max_nodes: int) -> tuple[int, int] | None:
    """The job's node bounds within the partition's; None if they do not meet."""
    low = max(min_nodes, part.min_nodes, 1)
    high = min(max_nodes, part.max_nodes) if part.max_nodes else max_nodes
    return (low, high) if low <= high else None


def _shorter_and_shorter(length_s: int, least_s: int) -> list[int]:
    """The time limits that are tried: halves of halves, in whole minutes, down to the least."""
    found = [length_s]
    while (half_s := found[-1] // 120 * 60) > max(least_s, 0):
        found.append(half_s)
    return found if found[-1] == least_s else [*found, least_s]


def _left_s(snapshot: Snapshot) -> NDArray[np.int64]:
    """(n_jobs,) until the deadline, for jobs whose time limit may be cut; NEVER for others.

    A start later than the earliest leaves less: what is planned then ends at the deadline, too.
    """
    jobs = snapshot.jobs
    bound = (jobs.hold == Hold.BEGIN_TIME) | jobs.fixed
    first_s = np.maximum(np.where(bound, jobs.begin_s, 0), snapshot.now_s)
    cut = (jobs.deadline_s > 0) & (jobs.least_time_s > 0)
    return np.where(cut, jobs.deadline_s - first_s, NEVER)


def _mask(n_nodes: int, nodes: NDArray[np.int32]) -> NDArray[np.bool_]:
    mask = np.zeros(n_nodes, dtype=bool)
    mask[nodes] = True
    return mask


def _evaluate(matches: Matches, features: tuple[frozenset[str], ...]) -> NDArray[np.bool_]:
    """Evaluates a constraint once per distinct set of features."""
    verdict = {distinct: matches(distinct) for distinct in set(features)}
    return np.fromiter((verdict[f] for f in features), dtype=bool, count=len(features))
