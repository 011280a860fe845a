# SPDX-License-Identifier: Apache-2.0
"""No start passes its bound unless the base plan's does; judged by planners without kernels."""

import dataclasses
import itertools
import random

import numpy as np
import pytest

from bridge.core import NEVER, search_orders
from bridge.lab.sim.runs.engine import simulate
from bridge.lab.sim.workloads.system import pool_of
from bridge.registry import build, parse_policy
from bridge.safe_cycle.decider import Decider
from schedbridge_contracts.crosses import each
from schedbridge_contracts.workloads import random_workload
from tests.properties.test_core_nodes import random_case
from tests.properties.test_order_search import Asked, starts
from tests.workloads import ReferenceBackfill

HOUR = 3600.0


def cost(requested, start, minimum, waited, halves):
    """The cost without breaches, in floating point."""
    has = (minimum != NEVER) & (start != NEVER)
    late = np.maximum(start - requested.due, 0)[has]
    before = waited[has]
    more = ((before + late) / HOUR) ** (halves / 2) - (before / HOUR) ** (halves / 2)
    return float((requested.weight[has] * HOUR * more).sum())


@each(seed=range(12))
def test_the_kernel_keeps_no_order_with_more_breaches(seed):
    rng = random.Random(seed)
    bound = 0
    for _ in range(25):
        requested = Asked.of(random_case(rng), rng, lead=rng.choice([0, 0, 1]))
        given = starts(requested.problem, requested.jobs(requested.orders[0]))
        n = len(given)
        slack = np.array([rng.choice([0, 0, 3, NEVER]) for _ in range(n)])
        latest = np.where(
            (given == NEVER) | (slack == NEVER), NEVER, given + np.minimum(slack, 3)
        ).astype(np.int64)
        waited = np.array([rng.choice([0, 5000, 90_000]) for _ in range(n)], dtype=np.int64)
        halves = rng.choice([2, 3, 4, 6])
        found, free = (
            search_orders(
                requested.problem, unit_indptr=requested.indptr, weight=requested.weight * 1000,
                due=requested.due, orders=requested.orders, lead=requested.lead, effort=2000,
                steps=0, patience=20, seed=1, latest=own, waited=waited, halves=halves,
            )
            for own in (latest, None)
        )  # fmt: skip
        assert (found.start <= latest).all()
        assert (
            found.start.tolist() == starts(requested.problem, requested.jobs(found.order)).tolist()
        )
        assert found.bound <= found.cost * (1 + 1e-9)
        bound += bool((free.start > latest).any())
    assert bound  # without the bound, some start passes it


@each(seed=range(8))
def test_few_units_get_the_best_order_within_the_bounds(seed):
    rng = random.Random(seed)
    for _ in range(4):
        case = random_case(rng)
        requested = Asked.of(case._replace(jobs=case.jobs[:4]), rng)
        requested = dataclasses.replace(requested, weight=requested.weight * 1000)
        n = len(requested.weight)
        given = starts(requested.problem, requested.jobs(requested.orders[0]))
        latest = np.where(given == NEVER, NEVER, given + rng.choice([0, 4])).astype(np.int64)
        waited = np.array([rng.choice([0, 7000]) for _ in range(n)], dtype=np.int64)
        halves = rng.choice([2, 4, 5])
        found = search_orders(
            requested.problem, unit_indptr=requested.indptr, weight=requested.weight,
            due=requested.due, orders=requested.orders, lead=requested.lead, effort=0, steps=0,
            patience=20, seed=1,
            latest=latest, waited=waited, halves=halves,
        )  # fmt: skip
        minimum = np.array(
            [
                starts(requested.problem, np.array([j, *np.delete(np.arange(n), j)]))[j]
                for j in range(n)
            ]
        )
        costs = []
        for order in itertools.permutations(range(len(requested.indptr) - 1)):
            start = starts(requested.problem, requested.jobs(np.array(order)))
            missed = (start == NEVER) & (minimum != NEVER)
            if (start <= latest).all() and not missed.any():
                costs.append(cost(requested, start, minimum, waited, halves))
        if costs and not ((found.start == NEVER) & (minimum != NEVER)).any():
            assert cost(requested, found.start, minimum, waited, halves) == pytest.approx(
                min(costs), rel=1e-6, abs=1.0
            )
            assert found.bound <= min(costs) * (1 + 1e-6) + n


class Judge:
    """Plans by a policy, and counts starts beyond each bound that a naive planner finds."""

    def __init__(self, decider, bounds):
        self.decider, self.naive = decider, ReferenceBackfill(None)
        self.promise_s, self.beyond, self.moved = {}, dict.fromkeys(bounds, 0), 0

    def __call__(self, snapshot):
        plan, base = self.decider.decide(snapshot), self.naive(snapshot)
        start_s = dict(zip(plan.job.tolist(), plan.start_s.tolist(), strict=True))
        for row, base_s in zip(base.job.tolist(), base.start_s.tolist(), strict=True):
            submit_s = int(snapshot.jobs.submit_s[row])
            promise_s = self.promise_s.setdefault(snapshot.jobs.id[row], base_s)
            for factor, more_s in self.beyond:
                bound_s = submit_s + int(factor * (promise_s - submit_s)) + more_s
                self.beyond[factor, more_s] += start_s[row] > max(bound_s, base_s)
            self.moved += start_s[row] > base_s
        return plan


BOUNDS = ((0, 0), (1, 0), (1.5, 600))


def judged_run(plan, bounds):
    """The judge of a simulation under this plan policy."""
    judge = Judge(Decider(build(parse_policy({"preset": "search", "plan": plan}))), bounds)
    simulate(random_workload(4, 70, 16), pool_of(16), judge)
    return judge


@pytest.mark.parametrize("power", [1, 2])
def test_no_plan_of_a_run_passes_a_bound_that_the_base_plan_keeps(power):
    """Slow: a simulation without bounds, which passes each of them, and one with each."""
    free = {"name": "search", "budget_ms": 0, "effort": 600, "most_wait_s": None, "power": power}
    unbound = judged_run(free, BOUNDS)
    assert unbound.moved
    assert all(unbound.beyond.values()), unbound.beyond
    for factor, more_s in BOUNDS:
        bound = judged_run(free | {"harm_factor": factor, "harm_s": more_s}, [(factor, more_s)])
        assert bound.moved or not factor
        assert bound.beyond == {(factor, more_s): 0}
