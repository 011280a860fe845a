# SPDX-License-Identifier: Apache-2.0
"""What the kernels compute: backfilling in one pass, as a program to read.

    results = ReferencePlanner(problem).plan()

`bridge.core.plan_nodes` gives the same results, faster (`tests/properties/test_core_nodes.py`).

Rules
    1. Jobs are planned in their order, around what runs and what is booked; no booking is moved.
    2. A job that fits for its whole time limit from now on starts now.
    3. Otherwise, while fewer than `depth` jobs have a later start, it is booked at its earliest
       start (the shadow time). Depth 1 is EASY, unlimited depth is conservative backfilling.
    4. Something becomes free only where something ends; so no other starts are tried.
    5. Of its alternatives, e.g. partitions, a job takes the one with the earliest start.
    6. A job without tasks takes as many nodes as it may if it starts now, and as few as it may
       later. A job with tasks takes all nodes of the lower ranks and the fewest of the last one
       that hold it, within its bounds.
    7. Required nodes come first, then those of lower rank, with less left (best fit), of lower
       number; for tasks no more nodes of a high rank are taken than necessary. Each node gets one
       task; the others fill the nodes in that order.
    8. Whole nodes that no job so far tells apart are a pool, of which jobs book a number. They
       become concrete, in the order of starts, at the end or when a job tells them apart.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

from bridge.core import NEVER, UNPLANNED, Blocked, Select
from schedbridge_contracts.reference_problem import (
    Amounts,
    Holder,
    Job,
    Option,
    Pool,
    Problem,
    Result,
    Tasks,
    peak,
)


class ReferencePlanner:
    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.holders: list[list[Holder]] = [[] for _ in problem.capacity]
        self.counted: list[tuple[int, int, Amounts]] = []
        for run in problem.running:
            end = max(run.end, 1)
            self.counted.append((0, end, run.counters))
            for node, use in run.uses.items():
                self.holders[node].append(Holder(0, end, run.exclusive, use))
        self.pools: list[Pool] = []
        self.told_apart: set[int] = set()  # nodes
        self.results: list[Result] = []
        self.reserved = 0

    def plan(self) -> list[Result]:
        for at, job in enumerate(self.problem.jobs):
            self.results.append(self.plan_job(at, job))
        for pool in self.pools:
            self.make_concrete(pool)
        return self.results

    def plan_job(self, at: int, job: Job) -> Result:
        """Rules 2, 3 and 5."""
        options = [Option(at, job, alternative) for alternative in job.alternatives]
        results = [self.never(option) for option in options]
        options = [o for o, result in zip(options, results, strict=True) if result is None]
        if not options:
            return Result(NEVER, -1, {}, *results[0], 0)
        options = self.with_pools(options)
        looks = {option.alternative: self.look_now(option) for option in options}
        may_wait = job.beside_depth or self.reserved < self.problem.depth
        first = max(job.not_before, 0)
        for start, option in self.starts(options, first):
            if not may_wait and start > 0:
                break
            if start <= option.alternative.latest:
                self.reserved += start > 0 and not job.beside_depth
                look = looks[option.alternative]
                look = look if start else (look[0], Blocked.STARTS_NOW, -1)
                return self.book(option, self.result(job, start, *look))
        in_time = [looks[o.alternative] for o in options if o.alternative.latest >= first]
        if not may_wait and in_time:
            return self.result(job, UNPLANNED, *in_time[0])
        for start, (_, _, alternative, _) in self.starts(options, first):
            which, counter = job.alternatives.index(alternative), looks[alternative][2]
            return Result(NEVER, which, {}, Blocked.TOO_LATE, counter, 0, start)
        return Result(NEVER, -1, {}, Blocked.NEVER_FREED, -1, 0)

    def starts(self, options: list[Option], first: int) -> Iterator[tuple[int, Option]]:
        """Possible starts from `first` on (rule 4), the earliest first."""
        ends = {end for _, end, _ in self.counted} | {b for _, _, b, _ in self.problem.blackouts}
        for start in [first, *sorted(end for end in ends if first < end < NEVER)]:
            for option in options:
                end = start + option.alternative.time_limit
                rooms = self.rooms(option, start, end)
                if self.widths(option, rooms) and self.lacking(option.job, start, end) < 0:
                    yield start, option

    def book(self, option: Option, result: Result) -> Result:
        """Rule 6."""
        job, start, end = option.job, result.start, result.start + option.alternative.time_limit
        rooms = self.rooms(option, start, end)
        widths = self.widths(option, rooms)
        width = widths[-1] if start == 0 and not job.tasks else widths[0]
        self.counted.append((start, end, job.counters))
        result = result._replace(alternative=job.alternatives.index(option.alternative))
        if option.pool:
            option.pool.booked.append((start, end, width, option))
            return result
        if job.tasks and not self.required(job):
            width = self.width_by_rank(job, rooms, widths)
        tasks = self.choose(job, width, rooms, start, end)
        for node, n in tasks.items():
            use = tuple(a + n * b for a, b in zip(job.per_node, job.per_task, strict=True))
            self.holders[node].append(Holder(start, end, job.exclusive, use))
        return result._replace(nodes=tasks)

    def never(self, option: Option) -> tuple[Blocked, int] | None:
        """Why the job could not start on an empty cluster."""
        job, nodes = option.job, self.problem.classes[option.alternative.node_class]
        if not self.widths(option, dict.fromkeys(nodes, job.tasks or 1)):
            return Blocked.NEVER_NODES, -1
        if not self.widths(option, self.large_enough(option)):
            return Blocked.NEVER_SIZE, -1
        over = [k for k, total in enumerate(self.problem.counters) if job.counters[k] > total]
        return (Blocked.NEVER_COUNTER, over[0]) if over else None

    def look_now(self, option: Option) -> tuple[int, Blocked, int]:
        """How many nodes fit from now on, what is first in the way, and which counter that is."""
        limit, counter = option.alternative.time_limit, self.lacking(option.job, 0, 1)
        fit_now = len(self.rooms(option, 0, limit))
        if not self.widths(option, self.rooms(option, 0, 1, open_until=0)):
            return fit_now, Blocked.NODES_BUSY, -1
        if not self.widths(option, self.rooms(option, 0, 1, open_until=limit)):
            return fit_now, Blocked.BLACKOUT, -1
        return fit_now, Blocked.PLANNED_START if counter < 0 else Blocked.COUNTER, counter

    @staticmethod
    def result(job: Job, start: int, fit_now: int, why: Blocked, counter: int) -> Result:
        if job.not_before > 0:
            why, counter = Blocked.NOT_BEFORE, -1
        return Result(start, -1, {}, why, counter, fit_now)

    def lacking(self, job: Job, start: int, end: int) -> int:
        """The first counter of which too little is free in [start, end); -1: none."""
        for k, requested in enumerate(job.counters):
            used = peak(((a, b, amounts[k]) for a, b, amounts in self.counted), start, end)
            if requested and requested > self.problem.counters[k] - used:
                return k
        return -1

    @staticmethod
    def room_in(job: Job, free: Sequence[int]) -> int:
        """How many tasks fit into free amounts; of a job without tasks, 1 if it fits."""
        for room in range(min(job.max_tasks or job.tasks, job.tasks) or 1, 0, -1):
            needs = zip(job.per_node, job.per_task, free, strict=True)
            if all(a + min(room, job.tasks) * b <= left for a, b, left in needs):
                return room
        return 0

    def used(self, node: int, r: int, start: int, end: int) -> int:
        return peak(((h.start, h.end, h.use[r]) for h in self.holders[node]), start, end)

    def rooms(self, option: Option, start: int, end: int, open_until: int | None = None) -> Tasks:
        """The tasks that fit on each node that is open until then; of a pool, on any free ones."""
        _, job, alternative, pool = option
        if pool:
            return dict(list(self.large_enough(option).items())[: self.free_in(pool, start, end)])
        until, found = end if open_until is None else open_until, {}
        own, closed = alternative.node_class, []
        for node_class, a, b, nodes in self.problem.blackouts:
            closed += [nodes] * (node_class == own and start < min(b, until) and a < until)
        for node in self.problem.classes[own].difference(*closed):
            there = [h for h in self.holders[node] if h.start < end and start < h.end]
            if not any(holder.exclusive or job.exclusive for holder in there):
                capacity = self.problem.capacity[node]
                free = [has - self.used(node, r, start, end) for r, has in enumerate(capacity)]
                found[node] = self.room_in(job, free)
        return {node: room for node, room in found.items() if room}

    def required(self, job: Job) -> set[int]:
        return self.problem.required[job.required] if job.required >= 0 else set()

    def widths(self, option: Option, rooms: Tasks) -> list[int]:
        """The allowed sizes of sets out of these nodes that hold the job, ascending."""
        _, job, alternative, _ = option
        required = self.required(job)
        if not required <= rooms.keys():
            return []
        best = [rooms[n] for n in sorted(rooms, key=lambda n: (n not in required, -rooms[n]))]
        bounds = range(alternative.min_nodes, min(alternative.max_nodes, len(rooms)) + 1)
        found = [k for k in bounds if k >= len(required) and job.allows_width(k)]
        return [k for k in found if not job.tasks or k <= job.tasks <= sum(best[:k])]

    def width_by_rank(self, job: Job, rooms: Tasks, widths: list[int]) -> int:
        """Rule 6, for tasks."""
        taken = held = 0
        for _, room in sorted((self.problem.rank[node], -room) for node, room in rooms.items()):
            if held < job.tasks:
                taken, held = taken + 1, held - room
        return next((k for k in widths if k >= taken), widths[0])

    def choose(self, job: Job, width: int, rooms: Tasks, start: int, end: int) -> Tasks:
        """Rule 7: the tasks on each node of the first of the sets with the lowest ranks."""
        required, best_fit = self.required(job), self.problem.select == Select.BEST_FIT

        def place(node: int) -> tuple[bool, int, tuple[int, int], int]:
            rest = self.rest(job, node, rooms[node], start, end) if best_fit else (0, 0)
            return node not in required, self.problem.rank[node], rest, node

        order = sorted(rooms, key=place)
        first, others = order[: len(required)], order[len(required) :]
        sets = ([*first, *more] for more in combinations(others, width - len(first)))
        holding = (nodes for nodes in sets if sum(rooms[n] for n in nodes) >= job.tasks)
        if len({self.problem.rank[n] for n in others}) < 2:
            return self.spread(job, next(holding), rooms)
        nodes = min(
            holding, key=lambda nodes: sorted((self.problem.rank[n] for n in nodes), reverse=True)
        )
        return self.spread(job, nodes, rooms)

    def rest(self, job: Job, node: int, room: int, start: int, end: int) -> tuple[int, int]:
        """What remains free, as shares of the node; of a whole one its size, and for how long."""
        if job.exclusive:
            later = (h.start - end for h in self.holders[node] if h.start >= end)
            return self.size(node), min(later, default=NEVER)
        score = 0
        for r, has in enumerate(self.problem.capacity[node]):
            taken = job.per_node[r] + min(room, job.tasks) * job.per_task[r]
            score += (has - self.used(node, r, start, end) - taken) * 2**20 // max(has, 1)
        return score, 0

    def size(self, node: int) -> int:
        sizes = [(has[node], max(has)) for has in zip(*self.problem.capacity, strict=True)]
        return sum(has * 2**20 // largest for has, largest in sizes if largest)

    @staticmethod
    def spread(job: Job, nodes: Iterable[int], rooms: Tasks) -> Tasks:
        tasks = dict.fromkeys(nodes, min(job.tasks, 1))
        for node in tasks:
            tasks[node] += min(rooms[node] - 1, job.tasks - sum(tasks.values()))
        return tasks

    def large_enough(self, option: Option) -> Tasks:
        """The tasks that each node of the class would hold if it were empty."""
        nodes = self.problem.classes[option.alternative.node_class]
        rooms = {node: self.room_in(option.job, self.problem.capacity[node]) for node in nodes}
        return {node: room for node, room in rooms.items() if room}

    def tells_apart(self, option: Option) -> bool:
        """Whether the job, or one before it, tells the nodes of the alternative apart."""
        rooms, own = self.large_enough(option), option.alternative.node_class
        closed = any(c == own and end > 0 for c, _, end, _ in self.problem.blackouts)
        differ = len(set(rooms.values())) > 1 or rooms.keys() & self.told_apart
        return closed or bool(differ) or not option.job.exclusive or option.job.required >= 0

    def with_pools(self, options: list[Option]) -> list[Option]:
        """The options with their pools; or none, and the pools that the job tells apart end."""
        sets = [set(self.large_enough(option)) for option in options]
        others = [set(pool.nodes) for pool in self.pools]
        apart = all(one == other or not one & other for one in sets for other in [*sets, *others])
        if apart and not any(self.tells_apart(option) for option in options):
            return [o._replace(pool=self.pool_of(set(self.large_enough(o)))) for o in options]
        for nodes in sets:
            for pool in [pool for pool in self.pools if nodes & set(pool.nodes)]:
                self.pools.remove(pool)
                self.make_concrete(pool)
                self.told_apart |= set(pool.nodes)
            self.told_apart |= nodes
        return options

    def pool_of(self, nodes: set[int]) -> Pool:
        best_fit, rank = self.problem.select == Select.BEST_FIT, self.problem.rank
        order = sorted(nodes, key=lambda n: (rank[n], self.size(n) if best_fit else 0, n))
        if order not in [pool.nodes for pool in self.pools]:
            self.pools.append(Pool(order, []))
        return next(pool for pool in self.pools if pool.nodes == order)

    def free_in(self, pool: Pool, start: int, end: int) -> int:
        """How many nodes of a pool are free at every second of [start, end)."""
        begins = [a for a, *_ in pool.booked]
        begins += [holder.start for node in pool.nodes for holder in self.holders[node]]
        free = []
        for at in [start, *(at for at in begins if start < at < end)]:
            booked = sum(width for a, b, width, _ in pool.booked if a <= at < b)
            free.append(len(self.free_nodes(pool, at)) - booked)
        return max(min(free), 0)

    def free_nodes(self, pool: Pool, at: int) -> list[int]:
        return [n for n in pool.nodes if not any(h.start <= at < h.end for h in self.holders[n])]

    def make_concrete(self, pool: Pool) -> None:
        for start, end, width, option in sorted(pool.booked, key=lambda one: one[0]):
            nodes = self.free_nodes(pool, start)[:width]
            tasks = self.spread(option.job, nodes, self.large_enough(option))
            self.results[option.at] = self.results[option.at]._replace(nodes=tasks)
            for node in nodes:
                self.holders[node].append(Holder(start, end, True, self.problem.capacity[node]))
