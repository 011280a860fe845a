# SPDX-License-Identifier: Apache-2.0
"""Turns a plan into decisions: only what has changed since the last announcement.

Terms
    announcement    a planned start or a reason, as sent to the controller for a waiting job.
    open start      a start that was sent and whose result is not known yet.

Rules
    1. Every waiting job has one announcement; that of an array is for the earliest task that does
       not start now.
    2. An announcement is sent again when the job's version, the start, the nodes, the partition or
       the reason's code has changed. A change of the reason's text alone is sent once in `WORDS_S`:
       texts contain node counts, which change for all jobs whenever a job ends.
    3. One event can move every later start. An announcement that has only moved is sent at most
       once in each interval of a second. Beyond the first `PROMPT` such jobs in the plan's order,
       the interval is a hundredth of the time until the start, at most `CALM_S`. Intervals of
       different jobs begin in different seconds, so that a busy queue renews a share of them in
       each reply, not all in one.
    4. A start is not repeated for the same version while it is open, for at most `OPEN_S`.
    5. Starts come first, then announcements in the plan's order; at most `maximum` decisions in one
       reply. The rest is sent with the next reply.
    6. After `reset` everything is sent again.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from bridge.core import due_announcements, group_objects, write_announcements
from bridge.dialect import dialect_of
from bridge.model.plan import Plan
from bridge.model.reasons import Reason, ReasonCode
from bridge.model.snapshot import Snapshot
from bridge.planning.eligibility.controller_choice import Chooser, ControllerChoice, beyond_model
from bridge.planning.eligibility.leaf_switches import next_change_s
from bridge.planning.queue.columns import by_appearance
from bridge.rpc.controller.chunk_allocation import chunk_uses
from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.rpc.reported.extension_wire import start_fields
from bridge.rpc.reported.hostlist import NodeIndex
from bridge.rpc.reported.safe_text import plain
from bridge.state.accuracy import Announced
from bridge.units import NEVER, UNPLANNED

WORDS_S = 60
OPEN_S = 10
PROMPT = 500
CALM_S = 10

_COLUMNS = 8
"""Rows of a table of announcements, with one column for each job (`bridge/core/wire`)."""

_announced: Callable[[tuple[int, str]], Announced] = partial(tuple.__new__, Announced)


@dataclass(frozen=True, slots=True)
class OpenStart:
    """A start with a result still unknown.

    Attributes:
        nodes: the first of its nodes, if others may do; none: it may take any.
        is_choice: it was not planned; the controller was asked to find nodes.
        chooses: the controller chooses among some nodes.
        beyond_model: the model lacks a part of the request.
    """

    job_id: str
    version: int
    sent_s: int
    partition: str
    nodes: tuple[str, ...] = ()
    is_choice: bool = False
    chooses: bool = False
    beyond_model: bool = False


@dataclass(frozen=True)
class Decisions:
    """The decisions of one reply.

    Attributes:
        messages: the decisions, in the reply that they were written into.
        again_s: seconds until postponed announcements are due; 0: there are none.
        promised: from job id to the announced start, for the planned starts among them.
        starting: jobs that start among them.
    """

    messages: Sequence[pb.Decision]
    by_kind: dict[str, int]
    again_s: int
    promised: dict[str, Announced]
    starting: frozenset[str] = frozenset()


class Announcements:
    """The announcements sent to one controller."""

    def __init__(self, maximum: int = 20_000) -> None:
        self._maximum = maximum
        self._next_id = 1
        self._open: dict[int, OpenStart] = {}
        self._serials: NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self._announced: NDArray[np.int64] = np.empty((_COLUMNS, 0), dtype=np.int64)
        self._mix: NDArray[np.int64] = np.empty(0, dtype=np.int64)

    def reset(self) -> None:
        """Drops all announcements, because the controller has lost them."""
        self._open.clear()
        self._serials = np.empty(0, dtype=np.int64)
        self._announced = np.empty((_COLUMNS, 0), dtype=np.int64)

    def close(self, decision_id: int) -> OpenStart | None:
        """Removes and returns the open start that a result belongs to; None: it belongs to none."""
        return self._open.pop(decision_id, None)

    def decide(
        self,
        snapshot: Snapshot,
        serials: NDArray[np.int64],
        plan: Plan,
        nodes: NodeIndex,
        chooser: Chooser | None = None,
        *,
        reply: pb.CycleReply | None = None,
    ) -> Decisions:
        """Compares a plan with the announcements. O(rows + nodes planned), in columns.

        Args:
            serials: (n_jobs,) ascending, names the same job in successive snapshots.
            nodes: writes the hostlists.
            chooser: for starts whose nodes the controller chooses; None: it cannot.
            reply: takes the decisions; None: a new one.
        """
        reply = pb.CycleReply() if reply is None else reply
        starts, counted = self._starts(snapshot, plan, nodes, chooser)
        reply.decisions.extend(starts)
        row_of, in_order = _announced_rows(plan, len(snapshot.jobs))
        reasons = _Reasons(plan.reasons)
        announced = self._carried(serials)
        current, jobs, again_s = self._due(
            snapshot,
            plan,
            reasons,
            serials=serials,
            announced=announced,
            row_of=row_of,
            in_order=in_order,
        )
        room = max(self._maximum - len(starts), 0)
        if len(jobs) > room:
            again_s, jobs = 1, jobs[:room]
        promised = self._announce(
            snapshot, plan, nodes, reasons, jobs=jobs, row_of=row_of, reply=reply
        )
        counted["planned_start"] = len(promised)
        counted["pending"] = len(jobs) - len(promised)
        announced[:, jobs] = current[:, jobs]
        self._serials, self._announced = serials, announced
        starting = frozenset(start.job_id for start in starts)
        return Decisions(reply.decisions, counted, again_s, promised, starting)

    def _starts(
        self, snapshot: Snapshot, plan: Plan, nodes: NodeIndex, chooser: Chooser | None
    ) -> tuple[list[pb.Decision], dict[str, int]]:
        now_s = snapshot.now_s
        self._open = {
            key: start for key, start in self._open.items() if abs(now_s - start.sent_s) < OPEN_S
        }
        waiting: dict[tuple[str, int], int] = {}
        for start in self._open.values():
            key = (start.job_id, start.version)
            waiting[key] = waiting.get(key, 0) + 1
        messages: list[pb.Decision] = []
        jobs, beyond = snapshot.jobs, beyond_model(snapshot)
        for row in plan.starts_now.tolist():
            job = int(plan.job[row])
            job_id, version = jobs.id[job], int(jobs.version[job])
            if waiting.get((job_id, version), 0) > 0:
                waiting[job_id, version] -= 1
                continue
            if chooser is not None:
                choice = chooser.start(row) if beyond[job] else chooser.instead(row)
                if choice is not None:
                    messages.append(self._choice(snapshot, choice, nodes, is_choice=False))
                    continue
            held = slice(int(plan.indptr[row]), int(plan.indptr[row + 1]))
            tasks = plan.tasks[held] if jobs.tasks[job] else plan.tasks[:0]
            partition = snapshot.partitions[plan.partition[row]].name
            first = (nodes.names[int(plan.nodes[held.start])],)
            self._open[self._next_id] = OpenStart(
                job_id, version, now_s, partition, first, beyond_model=bool(beyond[job])
            )
            messages.append(
                pb.Decision(
                    id=self.take_id(),
                    job_id=job_id,
                    job_version=version,
                    start=pb.Start(
                        nodes=nodes.fold(plan.nodes[held]),
                        partition=partition,
                        tasks=tasks.tolist(),
                        uses=chunk_uses(snapshot, plan, row, nodes),
                        time_limit_s=_limit_s(snapshot, plan, row),
                        **start_fields(plan, row),
                    ),
                )
            )
        return messages, {"start": len(messages)}

    def offer(
        self, snapshot: Snapshot, choice: ControllerChoice, nodes: NodeIndex
    ) -> pb.Decision | None:
        """Returns a start for which the controller chooses nodes; None: one is open already."""
        key = snapshot.jobs.id[choice.job], int(snapshot.jobs.version[choice.job])
        if any((start.job_id, start.version) == key for start in self._open.values()):
            return None
        return self._choice(snapshot, choice, nodes, is_choice=True)

    def _choice(
        self, snapshot: Snapshot, choice: ControllerChoice, nodes: NodeIndex, *, is_choice: bool
    ) -> pb.Decision:
        jobs, partition = snapshot.jobs, snapshot.partitions[choice.partition].name
        job_id, version = jobs.id[choice.job], int(jobs.version[choice.job])
        first = (snapshot.nodes.names[choice.avoidable],) if choice.avoidable >= 0 else ()
        self._open[self._next_id] = OpenStart(
            job_id, version, snapshot.now_s, partition, first, is_choice, chooses=True,
            beyond_model=bool(beyond_model(snapshot)[choice.job]),
        )  # fmt: skip
        start = pb.Start(
            choice=nodes.fold(choice.nodes), partition=partition, time_limit_s=choice.time_limit_s
        )
        return pb.Decision(id=self.take_id(), job_id=job_id, job_version=version, start=start)

    def take_id(self) -> int:
        """The number of the next decision."""
        self._next_id += 1
        return self._next_id - 1

    def _announce(
        self,
        snapshot: Snapshot,
        plan: Plan,
        nodes: NodeIndex,
        reasons: "_Reasons",
        *,
        jobs: NDArray[np.int64],
        row_of: NDArray[np.int64],
        reply: pb.CycleReply,
    ) -> dict[str, Announced]:
        """Writes the announcements of some jobs; returns the promised starts."""
        if not len(jobs):
            return {}
        ids = snapshot.jobs.id[jobs]
        partitions = [partition.name for partition in snapshot.partitions]
        rows = row_of[jobs]
        start_s, partition = plan.start_s[rows], plan.partition[rows]
        told, reason = reasons.encoded(rows)
        indptr, flat = _rows_of(plan, rows)
        reply.MergeFromString(
            write_announcements(
                nodes.folder,
                first_id=self._next_id,
                job_id=ids.tolist(),
                version=snapshot.jobs.version[jobs],
                start_s=start_s,
                partition=partition,
                partitions=partitions,
                reason=reason,
                reasons=told,
                indptr=indptr,
                nodes=flat,
            )
        )
        self._next_id += len(ids)
        planned = (start_s != NEVER) & (start_s != UNPLANNED)
        where = map(partitions.__getitem__, partition[planned].tolist())
        starts = map(_announced, zip(start_s[planned].tolist(), where, strict=True))
        return dict(zip(ids[planned].tolist(), starts, strict=True))

    def _due(
        self,
        snapshot: Snapshot,
        plan: Plan,
        reasons: "_Reasons",
        *,
        serials: NDArray[np.int64],
        announced: NDArray[np.int64],
        row_of: NDArray[np.int64],
        in_order: NDArray[np.int64],
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
        """The current announcements, and which of them are sent now (rules 2 and 3).

        Returns:
            (_COLUMNS, n_jobs) the announcements; the jobs; seconds until others are due, or 0.
        """
        if len(self._mix) < len(snapshot.nodes):
            rng = np.random.default_rng(len(snapshot.nodes))
            self._mix = rng.integers(-(2**62), 2**62, len(snapshot.nodes), dtype=np.int64)
        which, codes, words = reasons.codes_and_words()
        current, jobs, again_s = due_announcements(
            now_s=snapshot.now_s,
            start_s=plan.start_s,
            partition=plan.partition,
            indptr=plan.indptr,
            nodes=plan.nodes,
            reason=which,
            code=codes,
            words=words,
            mix=self._mix,
            row_of=row_of,
            version=snapshot.jobs.version,
            serial=serials,
            said=announced,
            in_order=in_order,
            words_s=WORDS_S,
            prompt=PROMPT,
            calm_s=CALM_S,
        )
        return current.reshape(_COLUMNS, len(row_of)), jobs, again_s

    def _carried(self, serials: NDArray[np.int64]) -> NDArray[np.int64]:
        """The last announcements, aligned with the present jobs; zeros for new ones."""
        before = self._serials
        if len(before) == len(serials) and (before == serials).all():
            return self._announced
        announced = np.zeros((_COLUMNS, len(serials)), dtype=np.int64)
        if len(before):
            at = before.searchsorted(serials)
            at[at == len(before)] = 0
            known = before[at] == serials
            announced[:, known] = self._announced[:, at[known]]
        return announced


class _Reasons:
    """The reasons of a plan's rows; rows with the same reason share one."""

    def __init__(self, reasons: Sequence[Reason | None]) -> None:
        first, self._which = group_objects(list(reasons))
        self._told = [reasons[at] for at in first.tolist()]

    def codes_and_words(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """(n_rows,) which reason each has; the code of each reason, and a number for its words."""
        codes = [0 if reason is None else int(reason.code) for reason in self._told]
        words = [0 if reason is None else hash(reason.text) for reason in self._told]
        return self._which, np.array(codes, dtype=np.int64), np.array(words, dtype=np.int64)

    def encoded(self, rows: NDArray[np.int64]) -> tuple[list[bytes], NDArray[np.int64]]:
        """The reasons of some rows as the wire has them, and (n,) which of them each has."""
        own = self._which[rows]
        first, which = by_appearance(own)
        told = [pending(self._told[at]).SerializeToString() for at in own[first].tolist()]
        return told, which


def _limit_s(snapshot: Snapshot, plan: Plan, row: int) -> int:
    """The time limit to start with, if it differs from the job's own; else 0.

    On fewer nodes than requested a moldable job gets the requested node-seconds, whatever its
    predicted run time, so that it is not killed because of a policy's decision.
    """
    jobs, job = snapshot.jobs, int(plan.job[row])
    requested, width = int(jobs.min_nodes[job]), int(plan.indptr[row + 1] - plan.indptr[row])
    limit_s = int(jobs.kill_limit_s[job] or jobs.time_limit_s[job])
    if not jobs.max_start[job] or not limit_s or not 0 < width < requested:
        return _cut_s(snapshot, plan, row)
    step_s = dialect_of(snapshot).words.time_step_s
    max_s = snapshot.partitions[plan.partition[row]].max_time_s
    wanted_s = -(-limit_s * requested // (width * step_s)) * step_s
    return min(wanted_s, max(max_s // step_s * step_s, limit_s)) if max_s else wanted_s


def _cut_s(snapshot: Snapshot, plan: Plan, row: int) -> int:
    """The time limit that a start is planned with, if it is shorter than the job's own; else 0.

    The controller itself shortens limits for deadlines, when it starts the job.
    """
    jobs, job = snapshot.jobs, int(plan.job[row])
    if not jobs.min_time_s[job] or jobs.deadline_s[job] or jobs.kill_limit_s[job]:
        return 0
    lasts_s, limit_s = int(plan.end_s[row] - plan.start_s[row]), int(jobs.time_limit_s[job])
    return lasts_s if lasts_s < (limit_s or NEVER) else 0


def _announced_rows(plan: Plan, n_jobs: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each job the plan's row that is announced (rule 1); -1 if all of it starts now.

    Second, the jobs that have one, in the order of these rows.
    """
    rows = np.flatnonzero(plan.start_s != plan.now_s)
    job = plan.job[rows]
    if len(job) and np.bincount(job).max() > 1:
        start_s = plan.start_s[rows]
        key = np.where(start_s == UNPLANNED, NEVER, start_s)
        order = np.lexsort((rows, key, job))
        rows, job = rows[order], job[order]
        first = np.concatenate(([True], job[1:] != job[:-1]))
        rows = np.sort(rows[first])
        job = plan.job[rows]
    row_of = np.full(n_jobs, -1, dtype=np.int64)
    row_of[job] = rows
    return row_of, job.astype(np.int64)


def _rows_of(plan: Plan, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The nodes of some rows, packed: offsets and nodes."""
    begin, width = plan.indptr[rows], np.diff(plan.indptr)[rows]
    indptr = np.concatenate(([0], np.cumsum(width))).astype(np.int64)
    at = np.arange(indptr[-1]) + np.repeat(begin - indptr[:-1], width)
    return indptr, plan.nodes[at]


def pending(reason: Reason | None) -> pb.Pending:
    """A reason as the wire has it: printable ASCII, at most 160 characters."""
    if reason is None:
        return pb.Pending(code=pb.REASON_OTHER)
    code = reason.code if reason.code != ReasonCode.NONE else ReasonCode.OTHER
    return pb.Pending(code=int(code), text=plain(reason.text))  # type: ignore[arg-type]


def wake_after_s(snapshot: Snapshot, plan: Plan, retry_s: int | None, again_s: int) -> int:
    """Returns when the controller should call again even if nothing changes; 0: at any time.

    That is at the next planned start, begin time, edge of a reservation, end of a wait for leaf
    switches or retry of a refused start, when postponed announcements are due, and when the policy
    requests another cycle.
    """
    now_s = snapshot.now_s
    instants: list[int] = [] if retry_s is None else [retry_s]
    if again_s:
        instants.append(now_s + again_s)
    if plan.again_s < NEVER:
        instants.append(plan.again_s)
    later = plan.start_s[plan.planned]
    if len(later):
        instants.append(int(later.min()))
    begin = snapshot.jobs.begin_s[snapshot.jobs.begin_s > now_s]
    if len(begin):
        instants.append(int(begin.min()))
    edges: Sequence[int] = [
        edge for item in snapshot.reservations for edge in (item.start_s, item.end_s)
    ]
    instants += [edge for edge in edges if edge > now_s]
    if (waited_s := next_change_s(snapshot)) is not None:
        instants.append(waited_s)
    return min(max(min(instants) - now_s, 1), 86_400) if instants else 0
