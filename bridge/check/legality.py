# SPDX-License-Identifier: Apache-2.0
"""Is this plan legal? Judged against the snapshot alone; shares no code with any planner.

Rules
    1. Every pending job has at least one row; no array starts more tasks than its limit lets.
    2. A start is not in the past, not of a job the controller holds back, not before its begin
       time (a fixed start: less than a minute after it), and lasts exactly as long as the job and
       its partition say, but for a limit that is cut to end at the job's deadline. Nothing ends
       after its deadline.
    3. The nodes are usable, distinct, of the right number, of a partition the job named, match
       its constraint, include the required and avoid the excluded ones.
    4. Nodes of a reservation serve only the jobs that run in it, during its time.
    5. At no second a node or a licence is used beyond its capacity, nor is an exclusively held
       node shared. What running jobs already oversubscribe is not the plan's fault, but nothing
       may be added to it.
    6. A job that asked for chunks of several kinds has exactly so many of each, on nodes that
       match the kind's constraint, all on one node (pack) or one on each (scatter).
    7. Several nodes of one job are on switches of one fabric. Until it has waited for as long as
       it wished, counted from when it became eligible, they are on as few leaf switches as it did.
    8. The rules of the site: limits, FreePools, protections, and licences that
       reservations keep (`bridge.check.site_rules`).
"""

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridge.check.site_rules import broken_rules
from bridge.errors import RequestError
from bridge.model.job import Hold, WidthRule
from bridge.model.plan import Plan
from bridge.model.resources import Arrangement
from bridge.model.site import Site
from bridge.model.snapshot import Snapshot
from bridge.planning.requests.features import parse_features
from bridge.units import NEVER, UNLIMITED_S, UNPLANNED

_WHOLE = 1 << 30  # seats of a node: an exclusive holder takes all of them, a shared one takes one
_MAY_PLAN = np.isin(np.arange(256), (Hold.NONE, Hold.BEGIN_TIME, Hold.RESERVATION))
_FIXED_GRACE_S = 60
_LARGEST_SPAN_S = 1 << 40


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule broken by one row of a plan (-1: by the plan as a whole)."""

    row: int
    job_id: str
    text: str

    def __str__(self) -> str:
        return f"job {self.job_id}: {self.text}" if self.job_id else self.text


def check(snapshot: Snapshot, site: Site, plan: Plan) -> tuple[Violation, ...]:
    """Returns what is illegal about a plan; empty if nothing is. O(n log n) in nodes planned."""
    if problem := _malformed(snapshot, plan):
        return (Violation(-1, "", problem),)
    judge = _Judge(snapshot, plan)
    judge.jobs_have_rows()
    judge.starts()
    judge.nodes()
    judge.chunks()
    judge.switches()
    judge.reservations()
    judge.usage()
    judge.licences()
    judge.rules(site)
    return tuple(judge.found)


def _malformed(snapshot: Snapshot, plan: Plan) -> str:
    """The columns do not even fit together."""
    n_rows = len(plan.job)
    columns = (plan.start_s, plan.end_s, plan.partition, plan.reasons)
    if any(len(column) != n_rows for column in columns) or len(plan.indptr) != n_rows + 1:
        return "columns of different length"
    if plan.indptr[0] != 0 or (np.diff(plan.indptr) < 0).any():
        return "node offsets do not ascend from 0"
    if plan.indptr[-1] != len(plan.nodes) or len(plan.tasks) != len(plan.nodes):
        return "node offsets do not match the nodes"
    if plan.groups is not None and (plan.groups.ndim != 2 or len(plan.groups) != len(plan.nodes)):
        return "chunks do not match the nodes"
    if n_rows and not (0 <= plan.job.min() <= plan.job.max() < len(snapshot.jobs)):
        return "a row of an unknown job"
    if len(plan.nodes) and not (0 <= plan.nodes.min() <= plan.nodes.max() < len(snapshot.nodes)):
        return "an unknown node"
    if n_rows and not (-1 <= plan.partition.min() <= plan.partition.max()):
        return "an unknown partition"
    if n_rows and plan.partition.max() >= len(snapshot.partitions):
        return "an unknown partition"
    if plan.now_s != snapshot.now_s:
        return f"made for second {plan.now_s}, not {snapshot.now_s}"
    return ""


class _Judge:
    def __init__(self, snapshot: Snapshot, plan: Plan) -> None:
        self.snapshot, self.plan = snapshot, plan
        self.found: list[Violation] = []
        self.has_start = (plan.start_s != NEVER) & (plan.start_s != UNPLANNED)
        self.rows = np.flatnonzero(self.has_start)
        self.width = np.diff(plan.indptr)
        self.row_of = np.repeat(np.arange(len(plan)), self.width)  # (nnz,) row of each node entry
        self.job = plan.job.astype(np.int64)
        asked = snapshot.jobs.chunks
        self._mixed = np.zeros(len(asked), dtype=bool)
        for at in np.flatnonzero(asked.astype(bool)).tolist():
            self._mixed[at] = len(asked[at].request.kinds) > 1
        none = np.zeros((len(plan.nodes), 0), dtype=np.int32)
        self._groups = plan.groups if plan.groups is not None else none

    def _of_several_kinds(self) -> list[int]:
        """Rows with a start whose jobs ask for chunks of several kinds."""
        if not self._mixed.any():
            return []
        rows: list[int] = self.rows[self._mixed[self.job[self.rows]]].tolist()
        return rows

    def blame(self, rows: NDArray[np.intp] | NDArray[np.int64], text: str) -> None:
        for row in np.unique(rows).tolist() if len(rows) else ():
            self.found.append(Violation(row, str(self.snapshot.jobs.id[self.job[row]]), text))

    def jobs_have_rows(self) -> None:
        jobs = self.snapshot.jobs
        now = self.plan.start_s == self.plan.now_s
        starts = np.bincount(self.job[now], minlength=len(jobs))
        rows = np.bincount(self.job, minlength=len(jobs))
        for job in np.flatnonzero(rows == 0).tolist():
            self.found.append(Violation(-1, str(jobs.id[job]), "has no row in the plan"))
        allowed = np.where(
            jobs.array_tasks > 0, np.minimum(jobs.array_startable, jobs.array_tasks), 1
        )
        for job in np.flatnonzero(starts > allowed).tolist():
            text = f"started {starts[job]} times, {allowed[job]} allowed"
            self.found.append(Violation(-1, str(jobs.id[job]), text))
        without = ~self.has_start
        self.blame(np.flatnonzero(without & (self.width > 0)), "has nodes but no start")
        for row, reason in enumerate(self.plan.reasons):
            if reason is None and not now[row]:
                self.blame(np.array([row]), "waits without a reason")

    def starts(self) -> None:
        snapshot, plan, jobs, rows = self.snapshot, self.plan, self.snapshot.jobs, self.rows
        job, start_s, end_s = self.job[rows], plan.start_s[rows], plan.end_s[rows]
        self.blame(rows[start_s < snapshot.now_s], "starts in the past")
        self.blame(rows[~_MAY_PLAN[jobs.hold[job]]], "is held back, yet planned")
        waits = (jobs.hold[job] == Hold.BEGIN_TIME) & (start_s < jobs.begin_s[job])
        self.blame(rows[waits], "starts before its begin time")
        part = plan.partition[rows]
        self.blame(rows[part < 0], "starts in no partition")
        default_s = np.array(
            [p.default_time_s or p.max_time_s or UNLIMITED_S for p in snapshot.partitions] + [0]
        )
        max_s = np.array([p.max_time_s or NEVER for p in snapshot.partitions] + [NEVER])
        asked_s = jobs.time_limit_s[job]
        length_s = np.where(asked_s > 0, asked_s, default_s[part])
        least_s = jobs.least_time_s[job]
        length_s = np.where(least_s > 0, np.minimum(length_s, max_s[part]), length_s)
        length_s = self._cut(rows, length_s)
        lasts_s = end_s - start_s
        # Where it may be cut without a deadline any limit from the least on will do.
        cut = (least_s > 0) & (jobs.deadline_s[job] == 0)
        cut &= (least_s <= lasts_s) & (lasts_s < length_s)
        length_s = np.where(cut, lasts_s, length_s)
        self.blame(rows[lasts_s != length_s], "is not planned for its time limit")
        self.blame(rows[length_s > max_s[part]], "exceeds the partition's time limit")

    def _cut(self, rows: NDArray[np.intp], length_s: NDArray[np.int64]) -> NDArray[np.int64]:
        """The lengths that deadlines leave; blames rows that miss theirs, or their fixed start."""
        jobs, job, start_s = self.snapshot.jobs, self.job[rows], self.plan.start_s[rows]
        fixed_s = np.where(jobs.begin_s[job] > 0, jobs.begin_s[job], jobs.eligible_s[job])
        fixed = jobs.fixed[job] & (fixed_s > 0)
        grace_s = np.where(fixed_s > self.snapshot.now_s, 0, _FIXED_GRACE_S)
        self.blame(rows[fixed & (start_s < fixed_s)], "starts before its fixed start")
        self.blame(rows[fixed & (start_s > fixed_s + grace_s)], "starts after its fixed start")
        deadline_s, least_s = jobs.deadline_s[job], jobs.least_time_s[job]
        bound = deadline_s > 0
        least_s = np.where(least_s > 0, np.minimum(least_s, length_s), length_s)
        self.blame(rows[bound & (start_s + least_s > deadline_s)], "would end after its deadline")
        return np.where(
            bound, np.maximum(np.minimum(length_s, deadline_s - start_s), least_s), length_s
        )

    def nodes(self) -> None:
        plan, jobs, rows = self.plan, self.snapshot.jobs, self.rows
        job, width = self.job[rows], self.width[rows]
        wrong = (width < jobs.min_nodes[job]) | (width > jobs.max_nodes[job]) | (width == 0)
        self.blame(rows[wrong], "has the wrong number of nodes")
        for row in rows[jobs.width_rule[job] != WidthRule.ANY].tolist():
            rule = WidthRule(int(jobs.width_rule[self.job[row]]))
            if not rule.allows(int(self.width[row])):
                self.blame(np.array([row]), f"has {self.width[row]} nodes, not {rule.name.lower()}")
        same_row = self.row_of[1:] == self.row_of[:-1]
        unsorted = same_row & (plan.nodes[1:] <= plan.nodes[:-1])
        self.blame(self.row_of[1:][unsorted], "names a node twice or out of order")
        unusable = ~self.snapshot.nodes.usable[plan.nodes]
        self.blame(self.row_of[unusable], "uses a node that is not usable")
        self._membership()
        self._tasks()

    def _membership(self) -> None:
        """Partition, constraint, required and excluded nodes: once per distinct combination."""
        plan, snapshot, jobs = self.plan, self.snapshot, self.snapshot.jobs
        groups: dict[tuple[int, str, tuple[int, ...], tuple[int, ...]], list[int]]
        groups = defaultdict(list)
        job = self.job[self.rows]
        columns = (plan.partition[self.rows], jobs.features[job], jobs.required[job],
                   jobs.excluded[job])  # fmt: skip
        keys = zip(*(column.tolist() for column in columns), strict=True)
        for row, key in zip(self.rows.tolist(), keys, strict=True):
            groups[key].append(row)
        for (part, text, required, excluded), rows in groups.items():
            if part < 0:
                continue
            partition = snapshot.partitions[part]
            bounds = partition.max_nodes or NEVER
            member = np.array(rows)
            if not partition.up:
                self.blame(member, f"starts in partition {partition.name}, which is down")
            outside = (self.width[member] < partition.min_nodes) | (self.width[member] > bounds)
            self.blame(member[outside], f"has a node count outside partition {partition.name}'s")
            named = jobs.partitions[self.job[member]].tolist()
            unnamed = np.array([part not in partitions for partitions in named])
            self.blame(member[unnamed], f"did not name partition {partition.name}")
            allowed = np.zeros(len(snapshot.nodes), dtype=bool)
            allowed[partition.nodes] = True
            allowed[list(excluded)] = False
            nodes, owner = self._nodes_of(member)
            # A job with an "or" of features fits if all its nodes match one alternative of it.
            misfit = np.ones(len(member), dtype=bool)
            for mask in self._matching(text):
                wrong = ~(allowed & mask)[nodes]
                misfit &= np.bincount(owner[wrong], minlength=len(member)) > 0
            self.blame(member[misfit], "uses a node outside partition or constraint")
            for node in required:
                has = np.bincount(owner[nodes == node], minlength=len(member)) > 0
                self.blame(member[~has], "misses a required node")

    def chunks(self) -> None:
        """Chunks of several kinds: rule 6."""
        plan, jobs = self.plan, self.snapshot.jobs
        for row in self._of_several_kinds():
            asked = jobs.chunks[self.job[row]]
            kinds, place = asked.request.kinds, asked.request.place
            own = slice(int(plan.indptr[row]), int(plan.indptr[row + 1]))
            placed = self._groups[own]
            counts = [kind.count for kind in kinds]
            problem = ""
            if (
                placed.shape[1] < len(kinds)
                or placed[:, : len(kinds)].sum(axis=0).tolist() != counts
            ):
                problem = "does not have its chunks"
            elif (
                placed[:, len(kinds) :].any() or (placed < 0).any() or not placed.any(axis=1).all()
            ):
                problem = "has a node without a chunk, or chunks of no kind"
            elif place.arrangement is Arrangement.PACK and len(placed) != 1:
                problem = "does not have all chunks on one node"
            elif place.arrangement is Arrangement.SCATTER and (placed.sum(axis=1) > 1).any():
                problem = "has several chunks on a node"
            elif not self._kinds_match(asked.features, plan.nodes[own], placed):
                problem = "has a chunk on a node that does not match its constraint"
            if problem:
                self.blame(np.array([row]), problem)

    def switches(self) -> None:
        """Fabrics and leaf switches: rule 7."""
        topology, plan, jobs = self.snapshot.topology, self.plan, self.snapshot.jobs
        several = self.rows[self.width[self.rows] > 1]
        if topology is None or not len(several):
            return
        parent = topology.parent.tolist()
        root = list(range(len(parent)))
        for switch in range(len(parent)):
            while parent[root[switch]] >= 0:
                root[switch] = parent[root[switch]]
        fabric = np.array([*root, -1], dtype=np.int64)[topology.leaf_of_node]  # -1: on none
        if (fabric < 0).any() or (fabric != fabric[0]).any():
            nodes, owner = self._nodes_of(several)
            first = fabric[plan.nodes[plan.indptr[several]]]
            alone = fabric[nodes] < 0
            self.blame(several[owner[alone]], "has several nodes, one on no switch")
            apart = ~alone & (first[owner] >= 0) & (fabric[nodes] != first[owner])
            self.blame(several[owner[apart]], "has nodes of two fabrics")
        job = self.job[several]
        since_s = np.maximum(jobs.eligible_s[job], jobs.begin_s[job])
        since_s = np.where(since_s > 0, since_s, jobs.submit_s[job])
        waits = plan.start_s[several] < since_s + jobs.switches_wait_s[job]
        for row in several[(jobs.switches[job] > 0) & waits].tolist():
            held = len(np.unique(topology.leaf_of_node[plan.nodes_of(row)]))
            most = int(jobs.switches[self.job[row]])
            if held > most:
                text = f"is on {held} leaf switches before it has waited for {most}"
                self.blame(np.array([row]), text)

    def _kinds_match(
        self, features: tuple[str, ...], nodes: NDArray[np.int32], placed: NDArray[np.int32]
    ) -> bool:
        """Whether one alternative of the kinds' constraints holds for all chunks."""
        masks = [self._matching(text) for text in features]
        return any(
            all(masks[k][choice][nodes[placed[:, k] > 0]].all() for k in range(len(features)))
            for choice in range(len(masks[0]))
        )

    def _wants(self) -> NDArray[np.int64]:
        """(nnz, R) what each row takes of each of its nodes."""
        plan, jobs = self.plan, self.snapshot.jobs
        job = self.job[self.row_of]
        want: NDArray[np.int64] = jobs.per_node[job] + jobs.per_task[job] * plan.tasks[:, None]
        for row in self._of_several_kinds():
            asked = jobs.chunks[self.job[row]]
            own = slice(int(plan.indptr[row]), int(plan.indptr[row + 1]))
            n_kinds = min(len(asked.wants), self._groups.shape[1])
            each = np.array(asked.wants[:n_kinds], dtype=np.int64)
            want[own] = self._groups[own, :n_kinds] @ each + np.array(asked.per_node)
        return want

    def _nodes_of(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int32], NDArray[np.intp]]:
        """The nodes of all these rows one after the other, and which of the rows each is of."""
        width = self.width[rows]
        owner = np.repeat(np.arange(len(rows)), width)
        first = self.plan.indptr[rows] - (np.cumsum(width) - width)
        return self.plan.nodes[first[owner] + np.arange(len(owner))], owner

    def _matching(self, text: str) -> list[NDArray[np.bool_]]:
        features = self.snapshot.nodes.features
        if not text:
            return [np.ones(len(features), dtype=bool)]
        try:
            return [np.array([match(f) for f in features]) for match in parse_features(text)]
        except RequestError:
            return []

    def _tasks(self) -> None:
        plan, jobs, rows = self.plan, self.snapshot.jobs, self.rows
        job = self.job[rows]
        total = np.bincount(self.row_of, weights=plan.tasks, minlength=len(plan))[rows]
        self.blame(rows[total != jobs.tasks[job]], "does not hold its tasks")
        per_node_job = self.job[self.row_of]
        bound = jobs.max_tasks_per_node[per_node_job]
        idle = (jobs.tasks[per_node_job] > 0) & (plan.tasks < 1)
        many = (bound > 0) & (plan.tasks > bound)
        self.blame(self.row_of[idle | many], "has too few or too many tasks on a node")

    def reservations(self) -> None:
        plan, snapshot, jobs = self.plan, self.snapshot, self.snapshot.jobs
        if not snapshot.reservations:
            return
        own = jobs.reservation[self.job[self.row_of]]
        elsewhere = [at for at, one in enumerate(snapshot.reservations) if one.anywhere]
        at_home = (own >= 0) & ~np.isin(own, elsewhere)
        start_s, end_s = plan.start_s[self.row_of], plan.end_s[self.row_of]
        for index, reservation in enumerate(snapshot.reservations):
            inside = np.zeros(len(snapshot.nodes), dtype=bool)
            inside[reservation.nodes] = True
            within = inside[plan.nodes]
            mine = own == index
            overlap = (start_s < reservation.end_s) & (end_s > reservation.start_s)
            self.blame(
                self.row_of[~at_home & within & overlap],
                f"uses nodes of reservation {reservation.name}",
            )
            within |= reservation.anywhere
            wrong = ~within | (start_s < reservation.start_s) | (start_s >= reservation.end_s)
            self.blame(self.row_of[mine & wrong], f"leaves its reservation {reservation.name}")

    def usage(self) -> None:
        """No node oversubscribed at any second: one sweep over all nodes and times."""
        plan, snapshot, jobs = self.plan, self.snapshot, self.snapshot.jobs
        if len(plan.nodes) == 0:
            return
        running = snapshot.running
        job = self.job[self.row_of]
        want = self._wants()
        self.blame(
            self.row_of[(want > snapshot.nodes.capacity[plan.nodes]).any(axis=1)],
            "wants more than a node has",
        )
        whole = jobs.exclusive[job]
        held = np.repeat(np.arange(len(running)), np.diff(running.indptr))
        key = np.concatenate((running.nodes, plan.nodes))
        start_s = np.concatenate((np.full(len(held), snapshot.now_s), plan.start_s[self.row_of]))
        end_s = np.concatenate((running.end_s[held], plan.end_s[self.row_of]))
        # Where everybody has nodes for himself it is enough, and quicker, that nobody meets.
        if whole.all() and _disjoint(snapshot.now_s, key, start_s, end_s):
            return
        capacity = _with_seats(snapshot.nodes.capacity, np.full(len(snapshot.nodes), _WHOLE))
        planned = _with_seats(want, np.where(whole, _WHOLE, 1))
        present = _with_seats(running.use, np.where(running.exclusive[held], _WHOLE, 1))
        over = _oversubscribed(
            snapshot.now_s,
            key=key,
            start_s=start_s,
            end_s=end_s,
            amount=np.concatenate((present, planned)),
            capacity=capacity,
            n_present=len(held),
        )
        self.blame(self.row_of[over], "oversubscribes a node")

    def licences(self) -> None:
        snapshot, plan, rows = self.snapshot, self.plan, self.rows
        running, n_licences = snapshot.running, len(snapshot.licences)
        if n_licences == 0 or len(rows) == 0:
            return
        users = rows[snapshot.jobs.licences[self.job[rows]].any(axis=1)]
        present = np.flatnonzero(running.licences.any(axis=1))
        over = _oversubscribed(
            snapshot.now_s,
            key=np.zeros(len(present) + len(users), dtype=np.int64),
            start_s=np.concatenate((np.full(len(present), snapshot.now_s), plan.start_s[users])),
            end_s=np.concatenate((running.end_s[present], plan.end_s[users])),
            amount=np.concatenate(
                (running.licences[present], snapshot.jobs.licences[self.job[users]])
            ),
            capacity=snapshot.licence_total.reshape(1, -1),
            n_present=len(present),
        )
        self.blame(users[over], "oversubscribes a licence")

    def rules(self, site: Site) -> None:
        """The rules of the site: rule 8."""
        for row, text in broken_rules(self.snapshot, site, self.plan):
            self.blame(np.array([row]), text)


def _with_seats(amount: NDArray[np.int64], seats: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate((amount, seats[:, None]), axis=1)


def _spans(
    now_s: int, start_s: NDArray[np.int64], end_s: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Begins and ends counted from now and bounded; an end in the past is the next second."""
    begin = np.clip(start_s - now_s, 0, _LARGEST_SPAN_S)
    return begin, np.clip(np.maximum(end_s - now_s, begin + 1), 0, _LARGEST_SPAN_S + 1)


def _disjoint(
    now_s: int, key: NDArray[np.int32], start_s: NDArray[np.int64], end_s: NDArray[np.int64]
) -> bool:
    """Whether no two intervals of one key overlap."""
    begin, end = _spans(now_s, start_s, end_s)
    order = np.argsort((key.astype(np.int64) << 41) | begin)
    key, begin, end = key[order], begin[order], end[order]
    return not ((key[1:] == key[:-1]) & (begin[1:] < end[:-1])).any()


def _oversubscribed(
    now_s: int,
    *,
    key: NDArray[np.int64] | NDArray[np.int32],
    start_s: NDArray[np.int64],
    end_s: NDArray[np.int64],
    amount: NDArray[np.int64],
    capacity: NDArray[np.int64],
    n_present: int,
) -> NDArray[np.intp]:
    """Which planned intervals start where a capacity is exceeded.

    Because every interval gives back what it takes, one running sum over all keys in order is
    each key's own usage.

    Args:
        now_s: the beginning of time.
        key: (n,) what is used, a row of `capacity`.
        start_s: (n,) begin of each half-open interval.
        end_s: (n,) its end; one in the past counts as the next second.
        amount: (n, R).
        capacity: (n_keys, R).
        n_present: the first intervals are of running jobs, the others are judged.

    Returns:
        Positions among the judged intervals.
    """
    n = len(key)
    begin, end = _spans(now_s, start_s, end_s)
    # At one second: ends, then running jobs, then the plan.
    rank = np.concatenate((np.where(np.arange(n) < n_present, 1, 2), np.zeros(n, dtype=np.int64)))
    when = np.concatenate((begin, end))
    where = np.concatenate((key, key)).astype(np.int64)
    order = np.argsort((where << 43) | (when << 2) | rank)
    change = np.concatenate((amount, -amount))[order]
    used = np.cumsum(change, axis=0)
    judged = (order >= n_present) & (order < n)
    # Who takes nothing of what running jobs oversubscribe adds nothing to it.
    over = judged & ((used > capacity[where[order]]) & (change > 0)).any(axis=1)
    result: NDArray[np.intp] = np.unique(order[over]) - n_present
    return result
