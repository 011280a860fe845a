# SPDX-License-Identifier: Apache-2.0
"""plan_nodes equals the reference planner: starts, alternatives, nodes, tasks, reasons."""

import random
from collections import Counter

from bridge.core import NEVER, UNLIMITED, UNPLANNED, Blocked
from schedbridge_contracts.crosses import each, seeds
from schedbridge_contracts.reference_planner import ReferencePlanner
from schedbridge_contracts.reference_problem import Alternative, Job, Problem, Running
from tests.properties.node_tables import kernel


def subset(rng: random.Random, n: int, minimum: int = 0) -> set[int]:
    return set(rng.sample(range(n), rng.randint(minimum, n)))


def random_case(rng: random.Random) -> Problem:
    """All features mixed; each is left out now and then, so that the others meet undisturbed."""
    n_nodes = rng.randint(1, 7)
    n_res = rng.randint(1, 3)
    n_counters = rng.choice([0, 0, 1, 2])
    kinds = [tuple(rng.randint(0 if r else 1, 6) for r in range(n_res)) for _ in range(2)]
    capacity = [rng.choice(kinds[: rng.choice([1, 2])]) for _ in range(n_nodes)]
    n_class = rng.randint(1, 3)
    classes = [subset(rng, n_nodes, 1) for _ in range(n_class)]
    if rng.random() < 0.5:  # the same nodes, or nodes apart
        classes = [set(range(n_nodes))] * n_class
        if rng.random() < 0.5 and n_nodes > 1:
            cut = rng.randint(1, n_nodes - 1)
            classes = [set(range(cut)), set(range(cut, n_nodes))]
            n_class = 2
    lengths = [rng.randint(1, 12) for _ in range(3)]
    counters = [rng.randint(0, 5) for _ in range(n_counters)]

    free = [list(amounts) for amounts in capacity]
    alone = [True] * n_nodes
    running = []
    for _ in range(rng.choice([0, 0, 1, 3, 6])):
        exclusive = rng.random() < 0.4
        uses = {}
        for node in subset(rng, n_nodes):
            if exclusive and alone[node]:
                uses[node] = tuple(rng.randint(0, amount) for amount in free[node])
                free[node] = [0] * n_res
                alone[node] = False
            elif not exclusive and any(free[node]):
                uses[node] = tuple(rng.randint(0, amount) for amount in free[node])
                free[node] = [a - b for a, b in zip(free[node], uses[node], strict=True)]
                alone[node] = False
        end = NEVER if rng.random() < 0.04 else rng.choice([-1, 0, 1, *lengths])
        held = tuple(rng.randint(0, amount // 2) for amount in counters)
        running.append(Running(end, exclusive, uses, held))

    blackouts = []
    for _ in range(rng.choice([0, 0, 1, 2])):
        start = rng.randint(-3, 15)
        end = NEVER if rng.random() < 0.05 else start + rng.randint(1, 10)
        blackouts.append((rng.randrange(n_class), start, end, subset(rng, n_nodes)))

    required = [subset(rng, n_nodes) for _ in range(2)]
    whole = rng.choice([0.0, 0.5, 0.9, 1.0])
    plain = rng.random() < 0.4
    bound = rng.choice([0, 0, 0.2, 0.6])  # share of alternatives with a latest start
    pooled = rng.choice([0, 0, 4, 20])  # so many jobs, at first, that treat nodes alike
    if pooled and rng.random() < 0.7:
        blackouts = []
    jobs = []
    for i in range(rng.randint(1, 9) + rng.randint(0, pooled)):
        alternatives = []
        for _ in range(rng.choice([1, 1, 1, 2, 3])):
            minimum = rng.randint(1, max(1, n_nodes // rng.choice([1, 2])))
            maximum = minimum + rng.choice([0, 0, 1, n_nodes])
            latest = rng.choice([-1, 0, 0, 2, 5, 9, 15]) if rng.random() < bound else NEVER
            alternatives.append(
                Alternative(rng.randrange(n_class), rng.choice(lengths), minimum, maximum, latest)
            )
        tasks = 0 if plain or rng.random() < 0.5 else rng.randint(1, 8)
        jobs.append(
            Job(
                alternatives=alternatives,
                per_node=tuple(rng.choice([0, 0, 1, 1, 2, 3]) for _ in range(n_res)),
                tasks=tasks,
                per_task=tuple(rng.choice([0, 1, 1, 2]) for _ in range(n_res)),
                max_tasks=rng.choice([0, 0, 1, 2, 3]),
                exclusive=i < pooled or rng.random() < whole,
                not_before=rng.choice([-5, 0, 0, 0, 0, 0, 0, 3, 8]) if not plain else 0,
                width_rule=rng.choice([0, 0, 0, 0, 1, 2, 3, 4]),
                required=-1 if plain or i < pooled or rng.random() < 0.85 else rng.randrange(2),
                counters=tuple(rng.choice([0, 0, 1, 2]) for _ in counters),
                beside_depth=rng.random() < bound / 2,
            )
        )
    if rng.random() < 0.3:  # many jobs that differ only in width and length
        few = jobs[:3]
        for _ in range(rng.randint(4, 20)):
            job = rng.choice(few)
            resized = [
                a._replace(time_limit=rng.choice(lengths), min_nodes=rng.randint(1, a.max_nodes))
                for a in job.alternatives
            ]
            jobs.append(job._replace(alternatives=resized))
    return Problem(
        now=rng.choice([0, 1000]),
        depth=rng.choice([0, 1, 1, 2, UNLIMITED, UNLIMITED, UNLIMITED]),
        select=rng.choice([0, 1]),
        capacity=capacity,
        rank=[rng.randint(0, 3) for _ in range(n_nodes)],
        running=running,
        classes=classes,
        blackouts=blackouts,
        counters=counters,
        required=required,
        jobs=jobs,
    )


@each(seed=seeds(12, whole=40))
def test_equals_the_reference_planner_on_random_cases(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(100):
        case = random_case(rng)
        assert kernel(case) == ReferencePlanner(case).plan(), case


def tasks_on_ranked_nodes(rng: random.Random) -> Problem:
    """Jobs of tasks that take one resource of nodes of several ranks and sizes."""
    n_nodes = rng.randint(3, 7)
    jobs = [
        Job(
            alternatives=[Alternative(0, rng.randint(1, 3), 1, rng.randint(1, n_nodes), NEVER)],
            per_node=(0,), tasks=rng.randint(2, 9), per_task=(1,), max_tasks=0, exclusive=False,
            not_before=0, width_rule=rng.choice([0, 0, 2]), required=-1, counters=(),
            beside_depth=False,
        )
        for _ in range(rng.randint(1, 4))
    ]  # fmt: skip
    return Problem(
        now=0, depth=UNLIMITED, select=rng.choice([0, 1]),
        capacity=[(rng.randint(1, 6),) for _ in range(n_nodes)],
        rank=[rng.randint(0, 2) for _ in range(n_nodes)],
        running=[], classes=[set(range(n_nodes))], blackouts=[], counters=[], required=[],
        jobs=jobs,
    )  # fmt: skip


@each(seed=seeds(3, whole=20))
def test_tasks_are_on_the_ranks_of_the_reference_planner(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(100):
        case = tasks_on_ranked_nodes(rng)
        assert kernel(case) == ReferencePlanner(case).plan(), case


def test_the_random_cases_meet_every_outcome() -> None:
    """Else the comparison above would prove less than it says."""
    rng = random.Random(1)
    seen: Counter[int] = Counter()
    later = pooled = alternatives = 0
    for _ in range(1500):
        case = random_case(rng)
        for answer in kernel(case):
            seen[answer.why] += 1
            later += answer.start not in (0, NEVER, UNPLANNED)
            alternatives += answer.alternative > 0
        reference = ReferencePlanner(case)
        reference.plan()
        pooled += any(len(pool.booked) > 2 for pool in reference.pools)
    assert all(seen[code] >= 20 for code in Blocked), seen
    assert min(later, alternatives, pooled) > 50


@each(seed=range(10))
def test_nothing_is_oversubscribed_at_any_second(seed: int) -> None:
    rng = random.Random(1000 + seed)
    for _ in range(100):
        case = random_case(rng)
        answers = kernel(case)
        placed = [
            (job, job.alternatives[answer.alternative], answer)
            for job, answer in zip(case.jobs, answers, strict=True)
            if answer.start not in (NEVER, UNPLANNED)
        ]
        times = {answer.start for _, _, answer in placed}  # use only grows where a job starts
        for time in times:
            there: dict[int, list[tuple[bool, list[int]]]] = {}
            counted = [0] * len(case.counters)
            for run in case.running:
                if time < max(run.end, 1):
                    counted = [a + b for a, b in zip(counted, run.counters, strict=True)]
                    for node, use in run.uses.items():
                        there.setdefault(node, []).append((run.exclusive, list(use)))
            for job, alternative, answer in placed:
                if answer.start <= time < answer.start + alternative.time_limit:
                    counted = [a + b for a, b in zip(counted, job.counters, strict=True)]
                    for node, tasks in answer.nodes.items():
                        use = [
                            a + tasks * b for a, b in zip(job.per_node, job.per_task, strict=True)
                        ]
                        there.setdefault(node, []).append((job.exclusive, use))
            starting = [job for job, _, answer in placed if answer.start == time]
            for k, amount in enumerate(case.counters):  # running jobs alone may hold too much
                assert counted[k] <= amount or not any(job.counters[k] for job in starting)
            for node, holders in there.items():
                if any(exclusive for exclusive, _ in holders):
                    assert len(holders) == 1
                for r, amount in enumerate(case.capacity[node]):
                    assert sum(use[r] for _, use in holders) <= amount
        for job, alternative, answer in placed:
            assert sum(answer.nodes.values()) == job.tasks
            assert alternative.min_nodes <= len(answer.nodes) <= alternative.max_nodes
            assert answer.nodes.keys() <= case.classes[alternative.node_class]
            for cls, start, end, nodes in case.blackouts:
                if cls == alternative.node_class and nodes & answer.nodes.keys():
                    assert end <= answer.start or answer.start + alternative.time_limit <= start


@each(seed=range(10))
def test_a_later_job_never_changes_an_earlier_start(seed: int) -> None:
    rng = random.Random(2000 + seed)
    for _ in range(60):
        case = random_case(rng)
        starts = [answer.start for answer in kernel(case)]
        for n in range(len(case.jobs)):
            fewer = kernel(case._replace(jobs=case.jobs[:n]))
            assert [answer.start for answer in fewer] == starts[:n]
