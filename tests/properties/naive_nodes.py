# SPDX-License-Identifier: Apache-2.0
"""An oracle for plan_nodes: plain Python, second by second, set by set, no cleverness.

Every second of every node is a list of who is there; every start is tried in turn; every node set
is found by trying them in order. Time runs from 0 (now) to a horizon at which all is over.
"""

from itertools import combinations
from typing import NamedTuple

import numpy as np

from bridge.core import NEVER, UNPLANNED, Blocked, Select, pack_nodes, plan_nodes

RULES = [
    lambda k: True,
    lambda k: k in (1, 2, 4, 8, 16, 32, 64),
    lambda k: k % 2 == 0,
    lambda k: k % 2 == 1,
    lambda k: k in (1, 8, 27, 64),
]


class Run(NamedTuple):
    end: int  # relative to now
    exclusive: bool
    uses: dict[int, tuple[int, ...]]  # node -> amounts
    counters: tuple[int, ...]


class Alternative(NamedTuple):
    cls: int
    limit: int
    least: int
    most: int
    latest: int = NEVER  # relative to now


class Job(NamedTuple):
    alternatives: list[Alternative]
    per_node: tuple[int, ...]
    tasks: int
    per_task: tuple[int, ...]
    max_tasks: int
    exclusive: bool
    not_before: int  # relative to now
    rule: int
    required: int
    counters: tuple[int, ...]
    beside: bool = False  # the depth


class Case(NamedTuple):
    now: int
    depth: int
    select: int
    capacity: list[tuple[int, ...]]
    rank: list[int]
    running: list[Run]
    classes: list[set[int]]
    blackouts: list[tuple[int, int, int, set[int]]]  # class, start, end relative to now, nodes
    counters: list[int]
    required: list[set[int]]
    jobs: list[Job]


class Answer(NamedTuple):
    start: int
    alternative: int
    nodes: dict[int, int]  # node -> tasks
    why: int
    counter: int
    fit: int
    missed: int = NEVER  # relative to now


def masks(sets: list[set[int]], n_nodes: int) -> np.ndarray:
    member = np.zeros((len(sets), n_nodes), dtype=bool)
    for row, nodes in enumerate(sets):
        member[row, sorted(nodes)] = True
    return pack_nodes(member)


def arguments(case: Case) -> dict:
    n_res = len(case.capacity[0])
    n_counters = len(case.counters)

    def ints(values, dtype=np.int64, columns=None):
        array = np.array(values, dtype=dtype)
        return array if columns is None else array.reshape(-1, columns)

    def absolute(time):
        return NEVER if time == NEVER else case.now + time

    alternatives = [a for job in case.jobs for a in job.alternatives]
    n_nodes = len(case.capacity)
    return {
        "now": case.now,
        "depth": case.depth,
        "select": case.select,
        "capacity": ints(case.capacity, columns=n_res),
        "node_rank": ints(case.rank, np.int32),
        "run_indptr": np.cumsum([0, *(len(run.uses) for run in case.running)], dtype=np.int64),
        "run_nodes": ints([node for run in case.running for node in run.uses], np.int32),
        "run_use": ints([use for run in case.running for use in run.uses.values()], columns=n_res),
        "run_end": ints([absolute(run.end) for run in case.running]),
        "run_exclusive": ints([run.exclusive for run in case.running], bool),
        "run_counter": np.array([run.counters for run in case.running], dtype=np.int64).reshape(
            len(case.running), n_counters
        ),
        "class_nodes": masks(case.classes, n_nodes),
        "blackout_class": ints([b[0] for b in case.blackouts], np.int32),
        "blackout_start": ints([absolute(b[1]) for b in case.blackouts]),
        "blackout_end": ints([absolute(b[2]) for b in case.blackouts]),
        "blackout_nodes": masks([b[3] for b in case.blackouts], n_nodes),
        "counter_capacity": ints(case.counters),
        "job_counter": np.array([job.counters for job in case.jobs], dtype=np.int64).reshape(
            len(case.jobs), n_counters
        ),
        "alt_indptr": np.cumsum([0, *(len(job.alternatives) for job in case.jobs)], dtype=np.int64),
        "alt_class": ints([a.cls for a in alternatives], np.int32),
        "alt_time_limit_s": ints([a.limit for a in alternatives]),
        "alt_min_nodes": ints([a.least for a in alternatives], np.int32),
        "alt_max_nodes": ints([a.most for a in alternatives], np.int32),
        "per_node": ints([job.per_node for job in case.jobs], columns=n_res),
        "tasks": ints([job.tasks for job in case.jobs], np.int32),
        "per_task": ints([job.per_task for job in case.jobs], columns=n_res),
        "max_tasks_per_node": ints([job.max_tasks for job in case.jobs], np.int32),
        "exclusive": ints([job.exclusive for job in case.jobs], bool),
        "not_before": ints([case.now + job.not_before for job in case.jobs]),
        "width_rule": ints([job.rule for job in case.jobs], np.int8),
        "required": ints([job.required for job in case.jobs], np.int32),
        "required_nodes": masks(case.required, n_nodes),
        "alt_latest": ints([absolute(a.latest) for a in alternatives]),
        "beside_depth": ints([job.beside for job in case.jobs], bool),
    }


def kernel(case: Case) -> list[Answer]:
    plan = plan_nodes(**arguments(case))
    answers = []
    for j in range(len(case.jobs)):
        mine = slice(plan.indptr[j], plan.indptr[j + 1])
        assert plan.nodes[mine].tolist() == sorted(plan.nodes[mine].tolist())
        start, missed = int(plan.start[j]), int(plan.missed_start[j])
        answers.append(
            Answer(
                start if start in (UNPLANNED, NEVER) else start - case.now,
                int(plan.alternative[j]),
                dict(zip(plan.nodes[mine].tolist(), plan.tasks[mine].tolist(), strict=True)),
                int(plan.blocked_by[j]),
                int(plan.blocked_counter[j]),
                int(plan.fit_now[j]),
                missed if missed == NEVER else missed - case.now,
            )
        )
    return answers


class Pool(NamedTuple):
    order: list[int]
    bookings: list[tuple[int, Alternative, int, int]]  # job, alternative, start, width


class Naive:
    def __init__(self, case: Case) -> None:
        self.case = case
        ends = [run.end for run in case.running if run.end != NEVER]
        ends += [end for _, _, end, _ in case.blackouts if end != NEVER]
        ends += [job.not_before for job in case.jobs]
        limits = [max(a.limit for a in job.alternatives) for job in case.jobs]
        self.last = max([0, *ends]) + sum(limits) + 2  # no sensible start is later
        self.horizon = self.last + max([1, *limits]) + 1
        self.nodes = range(len(case.capacity))
        # who is where: (exclusive, amounts) per node and second
        self.there = [[[] for _ in range(self.horizon)] for _ in self.nodes]
        self.counted = [[0] * self.horizon for _ in case.counters]
        for run in case.running:
            end = min(max(run.end, 1), self.horizon)
            for node, use in run.uses.items():
                self.hold(node, 0, end, run.exclusive, use)
            self.count(0, end, run.counters)
        self.pools: list[Pool] = []
        self.fixed: set[int] = set()
        self.answers: list[Answer] = [Answer(UNPLANNED, -1, {}, 0, -1, 0)] * len(case.jobs)
        self.reserved = 0

    def hold(self, node, start, end, exclusive, use):
        for second in range(start, end):
            self.there[node][second].append((exclusive, use))

    def count(self, start, end, amounts):
        for k, amount in enumerate(amounts):
            for second in range(start, end):
                self.counted[k][second] += amount

    # --- one node -------------------------------------------------------------------------------

    def room_in(self, job, free):
        """How many tasks (or 1 for none counted) fit into free amounts; 0 if it does not fit."""
        most = job.max_tasks or job.tasks
        for tasks in range(min(most, job.tasks) if job.tasks else 1, 0, -1):
            n = tasks if job.tasks else 0
            need = [a + n * b for a, b in zip(job.per_node, job.per_task, strict=True)]
            if all(a <= b for a, b in zip(need, free, strict=True)):
                return tasks
        return 0

    def room(self, job, node, start, end):
        capacity = self.case.capacity[node]
        least = list(capacity)
        for second in range(start, end):
            holders = self.there[node][second]
            if any(exclusive for exclusive, _ in holders) or (job.exclusive and holders):
                return 0
            for r in range(len(capacity)):
                least[r] = min(least[r], capacity[r] - sum(use[r] for _, use in holders))
        return self.room_in(job, least)

    def closed(self, cls, node, start, end):
        return start < end and any(
            c == cls and node in nodes and a < end and start < b
            for c, a, b, nodes in self.case.blackouts
        )

    # --- sets of nodes --------------------------------------------------------------------------

    def required(self, job):
        return self.case.required[job.required] if job.required >= 0 else set()

    def widths(self, job, alternative, rooms):
        """Allowed widths of valid sets out of ``rooms``, ascending."""
        required = self.required(job)
        if not required <= rooms.keys():
            return []
        found = []
        for k in range(alternative.least, min(alternative.most, len(rooms)) + 1):
            if not RULES[job.rule](k) or k < len(required):
                continue
            if job.tasks:
                others = sorted((rooms[n] for n in rooms if n not in required), reverse=True)
                held = sum(rooms[n] for n in required) + sum(others[: k - len(required)])
                if k > job.tasks or held < job.tasks:
                    continue
            found.append(k)
        return found

    def width_by_rank(self, job, a, start, widths):
        """All nodes of the lower ranks, the fewest of the last that is needed; if bounds allow."""
        if self.required(job):
            return widths[0]
        rooms = self.rooms(job, a, start, start + a.limit)
        taken = held = 0
        for rank in sorted({self.case.rank[node] for node in rooms}):
            own = sorted((rooms[n] for n in rooms if self.case.rank[n] == rank), reverse=True)
            if held + sum(own) >= job.tasks:
                taken += next(k for k in range(len(own) + 1) if held + sum(own[:k]) >= job.tasks)
                break
            taken, held = taken + len(own), held + sum(own)
        return next((k for k in widths if k >= taken), widths[0])

    def size_score(self, node):
        score = 0
        for r, amount in enumerate(self.case.capacity[node]):
            greatest = max(capacity[r] for capacity in self.case.capacity)
            score += amount * 2**20 // greatest if greatest else 0
        return score

    def fit_score(self, job, node, room, start, end):
        if job.exclusive:
            gap = NEVER
            for second in range(self.horizon - 1, end - 1, -1):
                if self.there[node][second]:
                    gap = second - end
            return (self.size_score(node), gap)
        capacity = self.case.capacity[node]
        score = 0
        for r in range(len(capacity)):
            used = max(sum(use[r] for _, use in self.there[node][s]) for s in range(start, end))
            want = job.per_node[r] + (room * job.per_task[r] if job.tasks else 0)
            score += (capacity[r] - used - want) * 2**20 // capacity[r] if capacity[r] else 0
        return (score, 0)

    def choose(self, job, k, rooms, start, end):
        def key(node):
            score = (0, 0)
            if self.case.select == Select.BEST_FIT:
                score = self.fit_score(job, node, rooms[node], start, end)
            return (self.case.rank[node], score, node)

        required = self.required(job)
        order = sorted(rooms, key=lambda node: (node not in required, key(node)))
        first, others = order[: len(required)], order[len(required) :]
        for more in combinations(others, k - len(first)):
            chosen = [*first, *more]
            if not job.tasks or sum(rooms[node] for node in chosen) >= job.tasks:
                return self.spread(job, chosen, rooms)
        raise AssertionError("no set")

    @staticmethod
    def spread(job, order, rooms):
        if not job.tasks:
            return dict.fromkeys(order, 0)
        tasks = dict.fromkeys(order, 1)
        for node in order:
            tasks[node] += min(rooms[node] - 1, job.tasks - sum(tasks.values()))
        return tasks

    # --- pools ----------------------------------------------------------------------------------

    def large_enough(self, job, alternative):
        rooms = {n: self.room_in(job, self.case.capacity[n]) for n in self.nodes}
        return {n: rooms[n] for n in self.case.classes[alternative.cls] if rooms[n]}

    def poolable(self, job, alternative):
        rooms = self.large_enough(job, alternative)
        return (
            job.exclusive
            and job.required < 0
            and not any(c == alternative.cls and end > 0 for c, _, end, _ in self.case.blackouts)
            and len(set(rooms.values())) == 1
            and not rooms.keys() & self.fixed
        )

    def pools_for(self, job, possible):
        """The pool of each possible alternative; or dissolves what the job touches, and None."""
        sets = [set(self.large_enough(job, a)) for a in possible]
        others = [set(pool.order) for pool in self.pools]
        apart = all(a == b or not a & b for a in sets for b in [*sets, *others])
        if apart and all(self.poolable(job, a) for a in possible):
            for nodes in sets:
                if nodes not in [set(pool.order) for pool in self.pools]:
                    best_fit = self.case.select == Select.BEST_FIT
                    order = sorted(
                        nodes,
                        key=lambda n: (self.case.rank[n], best_fit and self.size_score(n), n),
                    )
                    self.pools.append(Pool(order, []))
            return [next(p for p in self.pools if set(p.order) == nodes) for nodes in sets]
        for nodes in sets:
            for pool in [p for p in self.pools if set(p.order) & nodes]:
                self.pools.remove(pool)
                self.map_pool(pool)
                self.fixed |= set(pool.order)
            self.fixed |= nodes
        return None

    def pool_free(self, pool, start, end):
        def free(second):
            held = sum(bool(self.there[node][second]) for node in pool.order)
            booked = sum(k for _, a, s, k in pool.bookings if s <= second < s + a.limit)
            return len(pool.order) - held - booked

        return min(free(second) for second in range(start, end))

    def map_pool(self, pool):
        given = []
        for j, a, start, k in sorted(pool.bookings, key=lambda booking: booking[2]):
            taken = {n for s, e, nodes in given if s <= start < e for n in nodes}
            free = [n for n in pool.order if n not in taken and not self.there[n][start]]
            given.append((start, start + a.limit, free[:k]))
            job = self.case.jobs[j]
            rooms = self.large_enough(job, a)
            self.answers[j] = self.answers[j]._replace(nodes=self.spread(job, free[:k], rooms))
        for start, end, nodes in given:
            for node in nodes:
                self.hold(node, start, end, True, self.case.capacity[node])

    # --- one job --------------------------------------------------------------------------------

    def never(self, job, alternative):
        nodes = self.case.classes[alternative.cls]
        everything = dict.fromkeys(nodes, job.tasks or 1)
        if not self.widths(job, alternative, everything):
            return (Blocked.NEVER_NODES, -1)
        if not self.widths(job, alternative, self.large_enough(job, alternative)):
            return (Blocked.NEVER_SIZE, -1)
        for k, amount in enumerate(job.counters):
            if amount > self.case.counters[k]:
                return (Blocked.NEVER_COUNTER, k)
        return None

    def lacking(self, job, start, end):
        for k, amount in enumerate(job.counters):
            used = max(self.counted[k][start:end])
            if amount and amount > self.case.counters[k] - used:
                return k
        return -1

    def rooms(self, job, a, start, end, *, closed_until=None):
        """Rooms of the eligible nodes; blackouts are judged up to ``closed_until`` (0: not)."""
        until = end if closed_until is None else closed_until
        found = {n: self.room(job, n, start, end) for n in self.case.classes[a.cls]}
        return {
            n: room for n, room in found.items() if room and not self.closed(a.cls, n, start, until)
        }

    def pool_widths(self, job, a, pool, free):
        room = set(self.large_enough(job, a).values())
        assert len(room) == 1
        return self.widths(job, a, dict.fromkeys(range(free), room.pop()))

    def widths_at(self, job, a, pool, start):
        if pool:
            return self.pool_widths(job, a, pool, self.pool_free(pool, start, start + a.limit))
        return self.widths(job, a, self.rooms(job, a, start, start + a.limit))

    def look(self, job, a, pool):
        """How many nodes fit now, and why the job does not start."""
        if pool:
            fit = max(self.pool_free(pool, 0, a.limit), 0)
            free = open_now = self.pool_widths(job, a, pool, max(self.pool_free(pool, 0, 1), 0))
        else:
            fit = len(self.rooms(job, a, 0, a.limit))
            free = self.widths(job, a, self.rooms(job, a, 0, 1, closed_until=0))
            open_now = self.widths(job, a, self.rooms(job, a, 0, 1, closed_until=a.limit))
        if not free:
            return fit, Blocked.NODES_BUSY
        if not open_now:
            return fit, Blocked.BLACKOUT
        if self.lacking(job, 0, 1) >= 0:
            return fit, Blocked.COUNTER
        return fit, Blocked.PLANNED_START

    def possible_at(self, job, a, pool, start):
        return self.lacking(job, start, start + a.limit) < 0 and self.widths_at(job, a, pool, start)

    def commit(self, j, a, pool, start, k):
        job = self.case.jobs[j]
        self.count(start, start + a.limit, job.counters)
        self.answers[j] = self.answers[j]._replace(
            start=start, alternative=job.alternatives.index(a)
        )
        if pool:
            pool.bookings.append((j, a, start, k))
            return
        end = start + a.limit
        chosen = self.choose(job, k, self.rooms(job, a, start, end), start, end)
        self.answers[j] = self.answers[j]._replace(nodes=chosen)
        for node, tasks in chosen.items():
            use = [x + tasks * y for x, y in zip(job.per_node, job.per_task, strict=True)]
            self.hold(node, start, end, job.exclusive, use)

    def plan_job(self, j):
        job = self.case.jobs[j]
        verdicts = [self.never(job, a) for a in job.alternatives]
        possible = [a for a, verdict in zip(job.alternatives, verdicts, strict=True) if not verdict]
        if not possible:
            why, counter = verdicts[0]
            self.answers[j] = Answer(NEVER, -1, {}, why, counter, 0)
            return
        pools = self.pools_for(job, possible) or [None] * len(possible)
        options = list(zip(possible, pools, strict=True))
        looks = [self.look(job, a, pool) for a, pool in options]
        starts = [0] if job.not_before <= 0 else []
        within = job.beside or self.reserved < self.case.depth
        if within:
            starts = range(max(job.not_before, 0), self.last + 1)
        for start in starts:
            for (a, pool), (fit, why) in zip(options, looks, strict=True):
                widths = start <= a.latest and self.possible_at(job, a, pool, start)
                if not widths:
                    continue
                k = widths[-1] if start == 0 and not job.tasks else widths[0]
                if job.tasks and not pool:
                    k = self.width_by_rank(job, a, start, widths)
                self.explain(j, start, fit, why if start else Blocked.STARTS_NOW)
                self.commit(j, a, pool, start, k)
                self.reserved += start > 0 and not job.beside
                return
        in_time = [a.latest >= max(job.not_before, 0) for a in possible]
        if within or not any(in_time):
            self.miss(j, options, looks)
            return
        self.explain(j, UNPLANNED, *looks[in_time.index(True)])

    def miss(self, j, options, looks):
        job = self.case.jobs[j]
        self.answers[j] = Answer(NEVER, -1, {}, Blocked.NEVER_FREED, -1, 0)
        for start in range(max(job.not_before, 0), self.last + 1):
            for (a, pool), (_, why) in zip(options, looks, strict=True):
                if self.possible_at(job, a, pool, start):
                    which = job.alternatives.index(a)
                    counter = self.lacking(job, 0, 1) if why == Blocked.COUNTER else -1
                    self.answers[j] = Answer(NEVER, which, {}, Blocked.TOO_LATE, counter, 0, start)
                    return

    def explain(self, j, start, fit, why):
        job = self.case.jobs[j]
        if job.not_before > 0:
            why = Blocked.NOT_BEFORE
        counter = self.lacking(job, 0, 1) if why == Blocked.COUNTER else -1
        self.answers[j] = Answer(start, -1, {}, why, counter, fit)

    def plan(self) -> list[Answer]:
        for j in range(len(self.case.jobs)):
            self.plan_job(j)
        for pool in self.pools:
            self.map_pool(pool)
        return self.answers
