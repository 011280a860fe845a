# SPDX-License-Identifier: Apache-2.0
"""Turns the verdict of a kernel, or the controller's reason, into text for users.

Rules
    1. One sentence, with the numbers that matter: how many are needed, how many exist. It names
       the nodes that the job requires, its constraint, and the reservation in its way.
    2. NEVER is used only if the return of nodes would not help; the reason of a job that waits for
       down or drained nodes says so.
    3. An exhausted licence takes precedence over busy nodes, as in Slurm.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bridge.core import Blocked, HostlistFolder
from bridge.dialect import dialect_of
from bridge.model.job import Hold
from bridge.model.node import state_flags
from bridge.model.reasons import Reason, ReasonCode
from bridge.model.snapshot import Reservation, Snapshot
from bridge.units import UNLIMITED_S, format_clock
from bridge.words import Words

_HELD = {
    Hold.HELD: ReasonCode.HELD,
    Hold.DEPENDENCY: ReasonCode.DEPENDENCY,
    Hold.LIMIT: ReasonCode.LIMIT,
    Hold.ARRAY_LIMIT: ReasonCode.ARRAY_LIMIT,
    Hold.PARTITION: ReasonCode.PARTITION,
    Hold.OTHER: ReasonCode.OTHER,
    Hold.REFUSED: ReasonCode.REFUSED,
    Hold.BAD_REQUEST: ReasonCode.BAD_REQUEST,
}
_HELD_TEXT = {
    Hold.HELD: "held by user or administrator",
    Hold.DEPENDENCY: "waits for a job it depends on",
    Hold.LIMIT: "a limit of its user, {words.account} or QOS is reached",
    Hold.ARRAY_LIMIT: "as many tasks of the array run as it allows",
    Hold.PARTITION: "its {words.partition} is not available",
    Hold.OTHER: "the controller holds it",
    Hold.REFUSED: "the controller refused to start it",
    Hold.BAD_REQUEST: "its request is invalid",
}
"""Text for each hold of the controller, with places for words of the dialect."""

_STATES = {
    "DOWN": "down",
    "NOT_RESPONDING": "not responding",
    "DRAIN": "drained",
    "FAIL": "failing",
    "POWERED_DOWN": "powered off",
    "POWERING_DOWN": "powered off",
}
"""States of a node that keep jobs from it, most specific first."""

_MAX_TEXT = 60
"""Characters of a constraint or a list of nodes."""


def held_text(words: Words, hold: Hold) -> str:
    """The text for a hold of the controller; empty: the job is not held."""
    return _HELD_TEXT[hold].format(words=words) if hold in _HELD_TEXT else ""


def held_reason(snapshot: Snapshot, row: int) -> Reason:
    """The reason why a job that the controller would not start is not planned."""
    jobs = snapshot.jobs
    hold, words = Hold(int(jobs.hold[row])), dialect_of(snapshot).words
    if hold not in _HELD:  # plannable, but the array's own limit is reached
        hold = Hold.ARRAY_LIMIT
        return Reason(_HELD[hold], held_text(words, hold))
    return Reason(_HELD[hold], jobs.hold_text[row] or held_text(words, hold))


class Explainer:
    """Reasons in one snapshot; free resources are computed when first needed."""

    def __init__(
        self, snapshot: Snapshot, matching: Callable[[str], list[NDArray[np.bool_]]]
    ) -> None:
        """Prepares reasons for one snapshot.

        Args:
            matching: (n_nodes,) which nodes match, for each alternative of a constraint.
        """
        self._snapshot, self._matching = snapshot, matching
        self._words = dialect_of(snapshot).words

    def blocked(
        self,
        row: int,
        *,
        partition: int,
        min_nodes: int,
        blocked: Blocked,
        fit_now: int | None,
        counter: int,
    ) -> Reason:
        """The reason why a job starts later, or never.

        Args:
            row: in `Snapshot.jobs`.
            partition: the partition of the alternative that the verdict is about.
            blocked: the kernel's verdict.
            fit_now: nodes that could hold the job now; None: not counted.
            counter: the licence for the counter verdicts.
        """
        snapshot, jobs = self._snapshot, self._snapshot.jobs
        match blocked:
            case Blocked.NODES_BUSY:
                return self._nodes_busy(row, partition, min_nodes, fit_now)
            case Blocked.PLANNED_START:
                return Reason(
                    ReasonCode.PRIORITY, "would delay the planned start of a job before it"
                )
            case Blocked.COUNTER:
                return self.licence_in_use(counter)
            case Blocked.BLACKOUT:
                return self._reserved(row, partition)
            case Blocked.NOT_BEFORE:
                return Reason(ReasonCode.BEGIN_TIME, "its begin time has not come")
            case Blocked.NEVER_FREED:
                return Reason(ReasonCode.RESOURCES, "waits for a job without an end")
            case Blocked.NEVER_COUNTER:
                name, total = snapshot.licences[counter], snapshot.licence_total[counter]
                requested = jobs.licences[row][counter]
                there = f"there are {total}"
                if requested <= total:
                    there = f"reservations keep too many of the {total}"
                return Reason(ReasonCode.NEVER, f"requests {requested} of licence {name}, {there}")
        return self._too_large(row, partition, min_nodes)

    def alike(self, rows: NDArray[np.int64]) -> Iterator[tuple[object, ...]]:
        """What the reason of each job depends on besides the kernel's verdict."""
        jobs = self._snapshot.jobs
        columns = [
            jobs.required[rows].tolist(), jobs.features[rows].tolist(),
            self._short_licences(rows).tolist(),
        ]  # fmt: skip
        if self._snapshot.reservations:
            columns += [jobs.reservation[rows].tolist(), jobs.time_limit_s[rows].tolist()]
        return zip(*columns, strict=True)

    def licence_in_use(self, licence: int) -> Reason:
        """The reason that all items of a licence are in use or reserved."""
        snapshot = self._snapshot
        kept = any(len(one.licences) and one.licences[licence] for one in snapshot.reservations)
        kept_too = " or kept by a reservation" if kept else ""
        return Reason(
            ReasonCode.LICENCES, f"licence {snapshot.licences[licence]} is in use{kept_too}"
        )

    # ------------------------------------------------------------ free resources

    @cached_property
    def _left(self) -> NDArray[np.int64]:
        """(n_nodes, R) free resources; none on nodes that a job holds whole."""
        snapshot, running = self._snapshot, self._snapshot.running
        left = snapshot.nodes.capacity.copy()
        np.subtract.at(left, running.nodes, running.use)
        left[running.nodes[np.repeat(running.exclusive, np.diff(running.indptr))]] = 0
        return left

    @cached_property
    def _in_use(self) -> NDArray[np.bool_]:
        in_use = np.zeros(len(self._snapshot.nodes), dtype=bool)
        in_use[self._snapshot.running.nodes] = True
        return in_use

    @cached_property
    def _licences_left(self) -> NDArray[np.int64]:
        """(L,) licences that running jobs and active reservations leave to jobs without one."""
        snapshot = self._snapshot
        used = snapshot.running.licences.sum(axis=0, dtype=np.int64)
        left: NDArray[np.int64] = snapshot.licence_total - used
        for one in snapshot.reservations:
            if len(one.licences) and one.start_s <= snapshot.now_s < one.end_s:
                left = left - one.licences
        return left

    def _short_licences(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """(n,) the first licence of which each job requests more than is free now; -1: none."""
        jobs = self._snapshot.jobs
        if not self._snapshot.licences:
            return np.full(len(rows), -1, dtype=np.int64)
        wanted = jobs.licences[rows]
        short = (wanted > 0) & (wanted > self._licences_left)
        short &= (jobs.reservation[rows] < 0)[:, np.newaxis]
        return np.where(short.any(axis=1), short.argmax(axis=1), -1)

    # ------------------------------------------------------------ sentences

    def _nodes_busy(self, row: int, partition: int, min_nodes: int, fit_now: int | None) -> Reason:
        jobs = self._snapshot.jobs
        where = self._where(row, partition)
        if jobs.required[row]:
            text = self._named_busy(row, where, min_nodes)
        elif fit_now is None:
            text = f"waits for room on {self._words.nodes(min_nodes)} of {where}"
        elif jobs.tasks[row]:
            text = f"needs room for {jobs.tasks[row]} tasks in {where}"
        else:
            text = f"needs {self._words.nodes(min_nodes)} of {where}, {fit_now} free now"
        short = int(self._short_licences(np.array([row]))[0])
        if short >= 0:
            return Reason(ReasonCode.LICENCES, f"{self.licence_in_use(short).text}; {text}")
        return Reason(ReasonCode.RESOURCES, text)

    def _named_busy(self, row: int, where: str, min_nodes: int) -> str:
        jobs = self._snapshot.jobs
        named = list(jobs.required[row])
        if jobs.exclusive[row]:
            busy = [node for node in named if self._in_use[node]]
        else:
            need = self._need(row)
            busy = [node for node in named if (self._left[node] < need).any()]
        if busy:
            return self._of_nodes(named, {"in use": busy})
        if len(named) < min_nodes:
            return f"needs {self._words.nodes(min_nodes)} of {where} with {self._fold(named)}"
        be = "goes" if len(named) == 1 else "go"
        return f"needs {self._fold(named)}, which {be} to a job before it"

    def _reserved(self, row: int, partition: int) -> Reason:
        """The reservation that closes nodes to a job: one that has begun, else the next."""
        snapshot, jobs = self._snapshot, self._snapshot.jobs
        now_s, own = snapshot.now_s, int(jobs.reservation[row])
        if own >= 0 and snapshot.reservations[own].start_s > now_s:
            mine = snapshot.reservations[own]
            begins = format_clock(mine.start_s, now_s)
            return Reason(ReasonCode.RESERVATION, f"its reservation {mine.name} begins {begins}")
        members = np.array(jobs.required[row] or snapshot.partitions[partition].nodes)
        until_s = now_s + self._length_s(row, partition)
        found: list[tuple[Reservation, NDArray[np.int32]]] = []
        for one in sorted(snapshot.reservations, key=lambda one: one.start_s):
            shut = np.intersect1d(members, one.nodes)
            if len(shut) and one.start_s < until_s and one.end_s > now_s:
                found.append((one, shut))
        if not found:
            text = f"{self._words.node}s are closed to it before it would end"
            return Reason(ReasonCode.RESERVATION, text)
        (first, shut), more = found[0], len(found) - 1
        code = ReasonCode.MAINTENANCE if first.maintenance else ReasonCode.RESERVATION
        nodes = self._fold(shut.tolist())
        if first.own:
            are = "is" if len(shut) == 1 else "are"
            when = format_clock(first.end_s, now_s)
            return Reason(ReasonCode.RESOURCES, f"{nodes} {are} {first.name}, available at {when}")
        if first.start_s <= now_s:
            text = (
                f"reservation {first.name} keeps {nodes} until {format_clock(first.end_s, now_s)}"
            )
        else:
            begins = format_clock(first.start_s, now_s)
            text = f"reservation {first.name} of {nodes} begins {begins}, before it would end"
        return Reason(code, f"{text}; {more} more like it" if more else text)

    def _too_large(self, row: int, partition: int, min_nodes: int) -> Reason:
        """The reason if no set of usable nodes can hold it; down and drained ones might."""
        jobs, nodes = self._snapshot.jobs, self._snapshot.nodes
        where = self._where(row, partition)
        gone: dict[str, list[int]] = {}
        for node in jobs.required[row]:
            if not nodes.usable[node]:
                gone.setdefault(_state(nodes.state[node]), []).append(node)
        if gone:
            return Reason(ReasonCode.NODES_DOWN, self._of_nodes(jobs.required[row], gone))
        if jobs.tasks[row]:  # its nodes may be fewer than the alternative that was judged has
            minimum = self._snapshot.partitions[partition].min_nodes
            min_nodes = max(int(jobs.min_nodes[row]), minimum)
        members = self._members(row, partition)
        large = members[(nodes.capacity[members] >= self._need(row)).all(axis=1)]
        up = large[nodes.usable[large]]
        if self._hold(row, large, min_nodes) and not self._hold(row, up, min_nodes):
            be = "is" if len(up) == 1 else "are"
            only = f"only {len(up)} {be} up" if len(up) else "none is up"
            need = f"needs {self._words.nodes(min_nodes)} of {where}"
            if jobs.tasks[row] and len(up) >= min_nodes:
                need = f"needs room for {jobs.tasks[row]} tasks in {where}"
                only = f"only {len(up)} of {self._words.nodes(len(large))} {be} up"
            return Reason(ReasonCode.RESOURCES, f"{need}, {only}")
        if jobs.features[row] and not len(members):
            return Reason(ReasonCode.NEVER, f"no {self._words.node} it may use is of {where}")
        few = self._words.node if min_nodes == 1 else self._words.nodes(min_nodes)
        return Reason(ReasonCode.NEVER, f"no {few} of {where} can hold it with its constraints")

    # ------------------------------------------------------------ the job's nodes

    def _need(self, row: int) -> NDArray[np.int64]:
        """(R,) the least amounts of the job on a node."""
        jobs = self._snapshot.jobs
        need: NDArray[np.int64] = jobs.per_node[row] + (
            jobs.per_task[row] if jobs.tasks[row] else 0
        )
        return need

    def _members(self, row: int, partition: int) -> NDArray[np.int64]:
        """The nodes it may use, whatever their state."""
        snapshot, jobs = self._snapshot, self._snapshot.jobs
        mask = np.zeros(len(snapshot.nodes), dtype=bool)
        mask[snapshot.partitions[partition].nodes] = True
        mask &= np.logical_or.reduce(self._matching(jobs.features[row]))
        if int(jobs.reservation[row]) >= 0:
            own = np.zeros_like(mask)
            own[snapshot.reservations[int(jobs.reservation[row])].nodes] = True
            mask &= own
        mask[list(jobs.excluded[row])] = False
        return np.flatnonzero(mask)

    def _hold(self, row: int, nodes: NDArray[np.int64], min_nodes: int) -> bool:
        """Whether the nodes, each of which can hold a part of a job, can hold all of it."""
        jobs = self._snapshot.jobs
        tasks = int(jobs.tasks[row])
        if len(nodes) < min_nodes:
            return False
        if not tasks:
            return True
        room = self._snapshot.nodes.capacity[nodes] - jobs.per_node[row]
        wanted = jobs.per_task[row] > 0
        fit = np.full(len(nodes), tasks, dtype=np.int64)
        if wanted.any():
            fit = (room[:, wanted] // jobs.per_task[row][wanted]).min(axis=1)
        if jobs.max_tasks_per_node[row]:
            fit = np.minimum(fit, jobs.max_tasks_per_node[row])
        return int(np.sort(fit)[::-1][: int(jobs.max_nodes[row])].sum()) >= tasks

    def _length_s(self, row: int, partition: int) -> int:
        part = self._snapshot.partitions[partition]
        limit_s = int(self._snapshot.jobs.time_limit_s[row])
        return limit_s or part.default_time_s or part.max_time_s or UNLIMITED_S

    # ------------------------------------------------------------ names

    @cached_property
    def _folder(self) -> HostlistFolder:
        return HostlistFolder(list(self._snapshot.nodes.names))

    def _fold(self, nodes: Sequence[int]) -> str:
        return _short(self._folder.fold(np.array(nodes, dtype=np.int32)))

    def _where(self, row: int, partition: int) -> str:
        features = self._snapshot.jobs.features[row]
        name = self._snapshot.partitions[partition].name
        return f"{name} with {_short(features)}" if features else name

    def _of_nodes(self, named: Sequence[int], groups: dict[str, list[int]]) -> str:
        """The states of the nodes that a job requires."""
        if len(groups) == 1:
            ((state, some),) = groups.items()
            be = "is" if len(some) == 1 else "are"
            if len(some) == len(named):
                return f"needs {self._fold(named)}, which {be} {state}"
            return f"needs {self._fold(named)}, of which {self._fold(some)} {be} {state}"
        parts = [
            f"{self._fold(some)} {'is' if len(some) == 1 else 'are'} {state}"
            for state, some in groups.items()
        ]
        return f"needs {self._fold(named)}, of which {', '.join(parts)}"


def _state(words: str) -> str:
    """Why a node is not usable, from the controller's text for its state ("UP+DRAIN")."""
    flags = state_flags(words)
    return next((word for flag, word in _STATES.items() if flag in flags), "not available")


def _short(text: str) -> str:
    return text if len(text) <= _MAX_TEXT else text[: _MAX_TEXT - 3] + "..."
