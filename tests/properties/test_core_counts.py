# SPDX-License-Identifier: Apache-2.0
"""plan_counts, map_counts and replay_counts equal their oracles, exactly.

The oracle of plan_counts is the reference planner; that of replay_counts is a Python event loop
that calls plan_counts.
"""

import heapq
import random
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from bridge.core import NEVER, UNLIMITED, UNPLANNED, map_counts, plan_counts, replay_counts
from schedbridge_contracts import reference_problem
from schedbridge_contracts.crosses import each
from schedbridge_contracts.reference_planner import ReferencePlanner
from schedbridge_contracts.reference_problem import Alternative, Problem, Running


class Job(NamedTuple):
    count: int
    limit: int
    not_before: int


class Case(NamedTuple):
    now: int
    capacity: int
    running: list[tuple[int, int]]  # (end, count)
    jobs: list[Job]
    depth: int


def column(values: list[int]) -> NDArray[np.int64]:
    return np.array(values, dtype=np.int64)


def planned(case: Case) -> list[int]:
    return plan_counts(
        case.now,
        case.capacity,
        column([end for end, _ in case.running]),
        column([count for _, count in case.running]),
        column([job.count for job in case.jobs]),
        column([job.limit for job in case.jobs]),
        column([job.not_before for job in case.jobs]),
        case.depth,
    ).tolist()


def reference(case: Case) -> list[int]:
    """The starts of the reference planner, with all items on one node."""

    def from_now(time: int) -> int:
        return NEVER if time == NEVER else time - case.now

    def shared(job: Job) -> reference_problem.Job:
        return reference_problem.Job(
            alternatives=[Alternative(0, job.limit, 1, 1)], per_node=(job.count,), tasks=0,
            per_task=(0,), max_tasks=0, exclusive=False, not_before=job.not_before - case.now,
            width_rule=0, required=-1, counters=(),
        )  # fmt: skip

    problem = Problem(
        now=case.now, depth=case.depth, select=0, capacity=[(case.capacity,)], rank=[0],
        running=[Running(from_now(end), False, {0: (n,)}, ()) for end, n in case.running],
        classes=[{0}], blackouts=[], counters=[], required=[],
        jobs=[shared(job) for job in case.jobs],
    )  # fmt: skip
    starts = [result.start for result in ReferencePlanner(problem).plan()]
    return [at if at in (NEVER, UNPLANNED) else case.now + at for at in starts]


def random_case(rng: random.Random) -> Case:
    now = rng.choice([0, 1, 1000])
    capacity = rng.randint(1, 12)
    few_values = rng.random() < 0.5  # ties of starts, ends, counts
    lengths = [rng.randint(1, 30) for _ in range(3)] if few_values else range(1, 31)
    running = []
    held = 0
    while held < capacity and rng.random() < 0.8:
        count = rng.randint(0, max(1, (capacity - held) // 2 if rng.random() < 0.9 else capacity))
        held += count
        end = now + rng.choice([-5, 0, 1, *lengths])
        running.append((NEVER if rng.random() < 0.03 else end, count))
    jobs = [
        Job(
            rng.randint(1, max(1, capacity // rng.choice([1, 2, 4]) + (rng.random() < 0.05))),
            rng.choice(lengths),
            now + rng.randint(-3, 40) if rng.random() < 0.1 else rng.choice([0, now]),
        )
        for _ in range(rng.randint(0, 25))
    ]
    return Case(now, capacity, running, jobs, rng.choice([0, 1, 1, 2, 5, UNLIMITED, UNLIMITED]))


@each(seed=range(20))
def test_plan_counts_equals_the_oracle_on_random_cases(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(20):
        case = random_case(rng)
        assert planned(case) == reference(case), case


cases = st.builds(
    Case,
    now=st.sampled_from([0, 7]),
    capacity=st.integers(1, 6),
    running=st.lists(st.tuples(st.integers(0, 20) | st.just(NEVER), st.integers(0, 3)), max_size=4),
    jobs=st.lists(
        st.builds(
            Job,
            count=st.integers(1, 7),
            limit=st.integers(1, 12),
            not_before=st.integers(0, 3) | st.integers(0, 40),
        ),
        max_size=12,
    ),
    depth=st.sampled_from([0, 1, 2, UNLIMITED]),
)


@settings(max_examples=200, deadline=None)
@given(cases)
def test_plan_counts_equals_the_oracle(case: Case) -> None:
    assert planned(case) == reference(case)


def naive_by_slots(case: Case) -> list[int]:
    """As ``naive``, for long plans: a list of [begin, free] slots, searched from the front."""
    slots = [[case.now, case.capacity]]

    def cut(time: int) -> None:
        for i, (begin, _) in enumerate(slots):
            if begin == time:
                return
            if begin > time:
                slots.insert(i, [time, slots[i - 1][1]])
                return
        slots.append([time, slots[-1][1]])

    def book(start: int, end: int, count: int) -> None:
        cut(start)
        cut(end)
        for slot in slots:
            if start <= slot[0] < end:
                slot[1] -= count

    for end, count in case.running:
        book(case.now, max(end, case.now + 1), count)
    starts = []
    for job in case.jobs:
        start = case.now
        for i, (begin, free) in enumerate(slots):
            if begin >= start + job.limit:
                break
            if free < job.count:
                start = slots[i + 1][0]
        book(start, start + job.limit, job.count)
        starts.append(start)
    return starts


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("capacity", [50, 1000, 5000])
@pytest.mark.parametrize(("shortest", "spread"), [(0, 100), (0, 100_000), (1000, 2000)])
def test_long_plans_equal_the_oracle(capacity: int, shortest: int, spread: int, seed: int) -> None:
    """Thousands of slots: blocks split, merge and empty; sizes and lengths are rounded to marks."""
    rng = random.Random(seed)
    running = [(rng.randint(1, spread), 1) for _ in range(capacity // 2)]

    def amount() -> int:  # large and small ones, nearly all different
        return rng.choice([int(capacity ** rng.random()), rng.randint(1, capacity // 3)])

    def length() -> int:
        return shortest + rng.choice([1 + int(spread ** rng.random()), rng.randint(1, spread)])

    jobs = [Job(amount(), length(), 0) for _ in range(1200)]
    case = Case(0, capacity, running, jobs, UNLIMITED)
    assert planned(case) == naive_by_slots(case)


@each(seed=range(10))
def test_a_later_job_never_changes_an_earlier_start(seed: int) -> None:
    rng = random.Random(100 + seed)
    for _ in range(50):
        case = random_case(rng)
        starts = planned(case)
        for n in range(len(case.jobs)):
            assert planned(case._replace(jobs=case.jobs[:n])) == starts[:n]


def test_lengths_without_end_saturate() -> None:
    forever = 2**63 - 1
    jobs = [Job(2, forever, 0), Job(1, 5, 0), Job(1, forever, 0), Job(1, 1, 0)]
    case = Case(10, 3, [], jobs, UNLIMITED)
    assert planned(case) == [10, 10, 15, NEVER]


# --- concrete nodes -------------------------------------------------------------------------------


@each(seed=range(10))
def test_map_counts_takes_the_lowest_free_nodes_in_time_order(seed: int) -> None:
    rng = random.Random(200 + seed)
    for _ in range(60):
        n_nodes = rng.randint(1, 140)
        nodes = rng.sample(range(n_nodes), n_nodes)
        running = []  # (end, nodes); a node may be held twice
        while nodes and rng.random() < 0.7:
            taken = [nodes.pop() for _ in range(rng.randint(1, min(len(nodes), 20)))]
            running.append((rng.randint(1, 30), taken))
            if rng.random() < 0.2:
                running.append((rng.randint(1, 30), taken[:1]))
        until = dict.fromkeys(range(n_nodes), 0)
        for end, held in running:
            for node in held:
                until[node] = max(until[node], end)
        jobs = [
            Job(rng.randint(1, n_nodes + 1), rng.randint(1, 20), 0)
            for _ in range(rng.randint(0, 30))
        ]
        holders = [(end, 1) for end in until.values() if end > 0]
        starts = planned(Case(0, n_nodes, holders, jobs, rng.choice([1, UNLIMITED])))
        assert_lowest_free(until, running, jobs, starts)


def assert_lowest_free(
    until: dict[int, int], running: list[tuple[int, list[int]]], jobs: list[Job], starts: list[int]
) -> None:
    """Every job has the lowest nodes that are free when it starts; `until`: when each is free."""
    ends = [
        min(start + job.limit, NEVER) if start < NEVER else 0
        for start, job in zip(starts, jobs, strict=True)
    ]
    indptr, got = map_counts(
        len(until),
        column(starts),
        column(ends),
        column([job.count for job in jobs]),
        column([end for end, _ in running]),
        column(np.cumsum([0, *(len(held) for _, held in running)]).tolist()),
        np.array([node for _, held in running for node in held], dtype=np.int32),
    )
    for j in sorted(range(len(jobs)), key=lambda j: starts[j]):
        mine = got[indptr[j] : indptr[j + 1]].tolist()
        if starts[j] in (UNPLANNED, NEVER):
            assert mine == []
            continue
        free = [node for node in until if until[node] <= starts[j]]
        assert mine == free[: jobs[j].count]
        for node in mine:
            until[node] = ends[j]


@pytest.mark.parametrize("longest", [40, 3_000, 10_000_000])
def test_hundreds_of_jobs_are_mapped_in_time_order(longest: int) -> None:
    """Enough of them to be sorted by the digits of their times, one of which is without end."""
    rng = random.Random(longest)
    jobs = [Job(rng.randint(1, 20), rng.randint(1, longest), 0) for _ in range(600)]
    jobs[100] = Job(3, NEVER, 0)
    starts = planned(Case(0, 64, [], jobs, UNLIMITED))
    assert_lowest_free(dict.fromkeys(range(64), 0), [], jobs, starts)


def test_map_counts_refuses_what_does_not_fit() -> None:
    with pytest.raises(ValueError, match=r"count: job 1 requests 2 nodes at 5 s, when 1 are free"):
        map_counts(
            3,
            column([0, 5]),
            column([9, 9]),
            column([2, 2]),
            column([]),
            column([0]),
            np.zeros(0, np.int32),
        )


# --- whole traces ---------------------------------------------------------------------------------


class TraceJob(NamedTuple):
    submit: int
    runtime: int
    limit: int
    count: int


def replayed_in_python(
    jobs: list[TraceJob], capacity: int, depth: int, order: list[int]
) -> tuple[list[int], int]:
    starts = [NEVER] * len(jobs)
    arrivals = sorted(
        (j for j in range(len(jobs)) if jobs[j].count <= capacity),
        key=lambda j: (jobs[j].submit, j),
        reverse=True,
    )
    ends: list[tuple[int, int]] = []
    queue: list[int] = []
    running: set[int] = set()
    decisions = 0
    while arrivals or ends:
        now = min(ends[0][0] if ends else NEVER, jobs[arrivals[-1]].submit if arrivals else NEVER)
        while ends and ends[0][0] == now:
            running.remove(heapq.heappop(ends)[1])
        while arrivals and jobs[arrivals[-1]].submit == now:
            queue.append(arrivals.pop())
        if not queue:
            continue
        decisions += 1
        queue.sort(key=lambda j: (order[j], jobs[j].submit, j))
        case = Case(
            now,
            capacity,
            [(starts[j] + jobs[j].limit, jobs[j].count) for j in running],
            [Job(jobs[j].count, jobs[j].limit, 0) for j in queue],
            depth,
        )
        for j, start in zip(list(queue), planned(case), strict=True):
            if start == now:
                starts[j] = now
                queue.remove(j)
                running.add(j)
                heapq.heappush(ends, (now + jobs[j].runtime, j))
    return starts, decisions


@pytest.mark.parametrize("depth", [0, 1, 2, 7, UNLIMITED])
@each(seed=range(6))
def test_replay_equals_planning_at_every_event(seed: int, depth: int) -> None:
    rng = random.Random(300 + seed)
    for _ in range(25):
        capacity = rng.randint(1, 16)
        busy = rng.choice([1, 5, 20])
        how = rng.choice(["exact", "early", "overrun"])
        jobs = []
        time = 0
        for _ in range(rng.randint(1, 60)):
            time += rng.randint(0, busy)
            limit = rng.randint(1, 40)
            runtime = {
                "exact": limit,
                "early": rng.choice([limit, rng.randint(1, limit)]),
                "overrun": rng.randint(1, 50),
            }[how]
            jobs.append(TraceJob(time, runtime, limit, rng.randint(1, capacity + 1)))
        rng.shuffle(jobs)
        order = [rng.randint(0, 5) for _ in jobs] if rng.random() < 0.4 else None
        result = replay_counts(
            column([job.submit for job in jobs]),
            column([job.runtime for job in jobs]),
            column([job.limit for job in jobs]),
            column([job.count for job in jobs]),
            capacity,
            depth,
            None if order is None else column(order),
        )
        starts, decisions = replayed_in_python(jobs, capacity, depth, order or [0] * len(jobs))
        assert result.start.tolist() == starts
        assert result.decisions == decisions == len(result.decision_ns)
