# SPDX-License-Identifier: Apache-2.0
"""search_orders decodes exactly as plan_nodes plans, costs what it says, and keeps its bound."""

import dataclasses
import itertools
import random
from typing import Any

import numpy as np

from bridge.core import (
    NEVER,
    UNLIMITED,
    ClockAlarm,
    Decoding,
    NodeProblem,
    Stopped,
    plan_nodes,
    search_orders,
)
from schedbridge_contracts.crosses import each
from schedbridge_contracts.reference_problem import Problem
from tests.properties.node_tables import table_of
from tests.properties.test_core_nodes import random_case, tasks_on_ranked_nodes

MISS = 2.0**100


def problem_of(case: Problem) -> NodeProblem:
    return dataclasses.replace(table_of(case), depth=UNLIMITED)


def permuted(problem: NodeProblem, jobs: np.ndarray) -> NodeProblem:
    """The same jobs in another order."""
    found = {}
    for name in (
        "job_counter", "per_node", "tasks", "per_task", "max_tasks_per_node", "exclusive",
        "not_before", "width_rule", "required", "beside_depth",
    ):  # fmt: skip
        found[name] = np.ascontiguousarray(getattr(problem, name)[jobs])
    first = problem.alt_indptr
    take = np.concatenate([np.arange(first[j], first[j + 1]) for j in jobs])
    found["alt_indptr"] = np.concatenate(([0], np.cumsum(np.diff(first)[jobs]))).astype(np.int64)
    for name in ("alt_class", "alt_time_limit_s", "alt_min_nodes", "alt_max_nodes", "alt_latest"):
        found[name] = np.ascontiguousarray(getattr(problem, name)[take])
    return dataclasses.replace(problem, **found)


def starts(problem: NodeProblem, jobs: np.ndarray) -> np.ndarray:
    """By job, as plan_nodes plans them in that order."""
    found = np.empty(len(jobs), dtype=np.int64)
    found[jobs] = plan_nodes(permuted(problem, jobs)).start
    return found


def cost(weight: np.ndarray, due: np.ndarray, start: np.ndarray, minimum: np.ndarray) -> float:
    late = np.where(start == NEVER, 0, np.maximum(start - due, 0))
    missed = (start == NEVER) & (minimum != NEVER)
    return float((weight * late)[minimum != NEVER].sum()) + MISS * int(missed.sum())


@dataclasses.dataclass
class Asked:
    problem: NodeProblem
    indptr: np.ndarray
    weight: np.ndarray
    due: np.ndarray
    orders: np.ndarray
    lead: int

    @classmethod
    def of(cls, case: Problem, rng: random.Random, lead: int = 0) -> "Asked":
        n = len(case.jobs)
        cuts = sorted(rng.sample(range(1, n), min(n - 1, rng.choice([0, 0, n // 2]))))
        if rng.random() < 0.7:
            cuts = list(range(1, n))
        indptr = np.array([0, *cuts, n], dtype=np.int64)
        units = len(indptr) - 1
        lead = min(lead, units)
        front = list(range(lead))
        orders = [[*front, *rng.sample(range(lead, units), units - lead)] for _ in range(3)]
        return cls(
            problem_of(case),
            indptr,
            np.array([rng.choice([0, 1, 3, 10]) for _ in range(n)], dtype=np.int64),
            np.array([case.now + rng.choice([0, 0, 4]) for _ in range(n)], dtype=np.int64),
            np.array(orders, dtype=np.int32),
            lead,
        )

    def jobs(self, order: np.ndarray) -> np.ndarray:
        return np.concatenate([np.arange(self.indptr[u], self.indptr[u + 1]) for u in order])

    def search(self, **settings: Any):
        requested = {"effort": 3000, "steps": 0, "patience": 20, "seed": 1} | settings
        return search_orders(
            self.problem, unit_indptr=self.indptr, weight=self.weight, due=self.due,
            orders=self.orders, lead=self.lead, **requested,
        )  # fmt: skip


@each(seed=range(20))
def test_steps_bound_a_search_and_nothing_else_does(seed: int) -> None:
    """The same steps, the same answer; more of them, none that is worse; and they are kept to."""
    rng = random.Random(seed)
    requested = Asked.of(random_case(rng), rng, lead=0)
    costs = []
    for steps in (1, 20_000, 200_000, 2_000_000):
        found, again = (requested.search(effort=0, steps=steps, patience=200) for _ in range(2))
        assert found.order.tolist() == again.order.tolist()
        assert (found.steps, found.decodes, found.stopped) == (
            again.steps, again.decodes, again.stopped
        )  # fmt: skip
        if found.steps > steps:  # what was begun is ended: a job, or the first order
            assert found.stopped in (Stopped.BUDGET, Stopped.BOUND, Stopped.EXHAUSTED)
        costs.append(found.cost)
    assert costs == sorted(costs, reverse=True)


def test_an_alarm_that_rings_ends_a_search_with_what_there_is() -> None:
    ended = 0
    for seed in range(20):
        rng = random.Random(seed)
        requested = Asked.of(random_case(rng), rng, lead=0)
        found = requested.search(effort=0, patience=100_000, alarm=ClockAlarm(0))
        assert sorted(found.order.tolist()) == list(range(len(requested.indptr) - 1))
        ended += found.stopped == Stopped.BUDGET
    assert ended


@each(seed=range(30))
def test_starts_are_those_of_the_planner_in_the_order_found(seed: int) -> None:
    """Slow: plans each order again with the planner."""
    rng = random.Random(seed)
    seen = set()
    for _ in range(40):
        requested = Asked.of(random_case(rng), rng, lead=rng.choice([0, 0, 2]))
        found = requested.search(seed=rng.randint(0, 9))
        seen.add(found.decoding)
        assert sorted(found.order.tolist()) == list(range(len(requested.indptr) - 1))
        assert (
            found.order[: requested.lead].tolist() == requested.orders[0][: requested.lead].tolist()
        )
        assert (
            found.start.tolist() == starts(requested.problem, requested.jobs(found.order)).tolist()
        )
        assert found.bound <= found.cost <= found.family_cost <= found.given_cost
    assert seen == set(Decoding)


@each(seed=range(10))
def test_tasks_are_on_the_ranks_of_the_planner(seed: int) -> None:
    """Other nodes of a job show as other starts of those behind it, in about one case of 200."""
    rng = random.Random(seed)
    for _ in range(200):
        case = tasks_on_ranked_nodes(rng)
        jobs = [job for _ in range(3) for job in tasks_on_ranked_nodes(rng).jobs]
        requested = Asked.of(case._replace(jobs=jobs), rng)
        found = requested.search(effort=1)
        assert (
            found.start.tolist() == starts(requested.problem, requested.jobs(found.order)).tolist()
        )


@each(seed=range(10))
def test_costs_what_it_says(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(20):
        requested = Asked.of(random_case(rng), rng)
        found = requested.search()
        n = len(found.start)
        minimum = np.array(
            [
                starts(requested.problem, np.array([j, *np.delete(np.arange(n), j)]))[j]
                for j in range(n)
            ]
        )
        assert found.cost == cost(requested.weight, requested.due, found.start, minimum)
        given = starts(requested.problem, requested.jobs(requested.orders[0]))
        assert found.given_cost == cost(requested.weight, requested.due, given, minimum)


@each(seed=range(20))
def test_no_order_goes_below_the_bound_and_few_units_are_solved(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(5):
        case = random_case(rng)
        requested = Asked.of(case._replace(jobs=case.jobs[:5]), rng)
        found = requested.search(effort=0)
        assert found.stopped in (Stopped.BOUND, Stopped.EXHAUSTED)
        costs = []
        for order in itertools.permutations(range(len(requested.indptr) - 1)):
            one = dataclasses.replace(requested, orders=np.array([order], dtype=np.int32))
            costs.append(one.search(effort=1).given_cost)
        assert found.cost == min(costs)
        assert found.bound <= min(costs)


@each(seed=range(5))
def test_the_same_seed_and_effort_give_the_same_order(seed: int) -> None:
    rng = random.Random(seed)
    requested = Asked.of(random_case(rng), rng)
    first, second = requested.search(seed=seed), requested.search(seed=seed)
    assert first.order.tolist() == second.order.tolist()
    assert first.booked == second.booked
