# SPDX-License-Identifier: Apache-2.0
"""The models of the dispatchers against every schedule there is, on windows small enough."""

import dataclasses

import numpy as np
import pytest

from bridge.papers.dispatch import hcp19, pcp19, pcp20
from bridge.papers.dispatch.instance import Instance, ResourceUnit, Unavailable, WindowJob
from bridge.papers.dispatch.window_model import whole_weights
from bridge.planning.dispatch.cp_sat import run
from schedbridge_contracts.crosses import each, seeds
from tests.properties.naive_window import Grid, best, small_instance

DISPATCHERS = {"pcp19": pcp19.Pcp19, "hcp19": hcp19.Hcp19, "pcp20": pcp20.Pcp20}
SEEDS = seeds(12, whole=25)


def ask(model, share, search):
    return run(model, effort=5.0, budget_s=0.0, seed=1, search=search)


def slowdown(instance):
    return whole_weights(np.array([1.0 / job.length_s for job in instance.jobs]))


def cost(weights, start_s):
    return sum(w * s for w, s in zip(weights, start_s, strict=True))


def legal(instance, schedule):
    """Amounts by the second; the nodes of each unit among those that it may use."""
    grid = Grid(instance, positions=False)
    for job, start_s, nodes in zip(instance.jobs, schedule.start_s, schedule.nodes, strict=True):
        assert start_s >= job.release_s
        assert all(n in unit.nodes for unit, n in zip(job.units, nodes, strict=True))
        assert not job.scatter or len(set(nodes)) == len(nodes)
        where = [(n, (0,) * len(instance.resources)) for n in nodes]
        assert all(
            grid.together(job, where, second) for second in range(start_s, start_s + job.length_s)
        )
        grid.hold(job, where, start_s)


@each(seed=SEEDS)
def test_pcp19_finds_the_least_slowdown_there_is(seed):
    instance = small_instance(seed)
    weights = slowdown(instance)
    schedule, answer = pcp19.Pcp19().solve(instance, weights, ask)
    assert answer.proved
    assert cost(weights, schedule.start_s) == best(instance, weights, positions=False)


@each(seed=SEEDS)
def test_pcp20_finds_the_least_slowdown_there_is_on_positions(seed):
    """Slow: solves a program for each seed, and tries all positions."""
    instance = small_instance(seed, maximum=2)
    weights = slowdown(instance)
    schedule, answer = pcp20.Pcp20().solve(instance, weights, ask)
    assert answer.proved
    assert cost(weights, schedule.start_s) == best(instance, weights, positions=True)


@pytest.mark.parametrize("name", DISPATCHERS)
@each(seed=SEEDS)
def test_what_is_found_can_be_run(name, seed):
    instance = small_instance(seed)
    schedule, _ = DISPATCHERS[name]().solve(instance, slowdown(instance), ask)
    legal(instance, schedule)


@each(seed=SEEDS)
def test_hcp19_is_no_better_than_the_least_and_its_bound_holds(seed):
    instance = small_instance(seed)
    weights = slowdown(instance)
    schedule, answer = hcp19.Hcp19().solve(instance, weights, ask)
    minimum = best(instance, weights, positions=False)
    assert answer.bound <= minimum + 1e-6
    assert cost(weights, schedule.start_s) >= minimum


def wide_instance(n_nodes, n_jobs=4, units=3):
    """The same jobs on a system of any size; two resources."""
    unit = ResourceUnit(0, (2, 1), tuple(range(n_nodes)))
    jobs = tuple(
        WindowJob(-5, 0, 10 + i, (unit,) * units, False, (0,), 0, tuple(range(units)))
        for i in range(n_jobs)
    )
    jobs = tuple(
        dataclasses.replace(job, place_s=sum(j.length_s for j in jobs[:i]))
        for i, job in enumerate(jobs)
    )
    capacity = np.tile(np.array([[4, 4]]), (n_nodes, 1))
    return Instance(
        jobs, ("cpus", "mem"), capacity, ((),) * n_nodes, np.zeros(n_nodes, dtype=np.int64)
    )


def test_the_variables_of_pcp20_do_not_know_how_large_the_system_is():
    counts = set()
    for n_nodes in (8, 64, 512):
        instance = wide_instance(n_nodes)
        built = pcp20.build(instance, slowdown(instance))
        n_units = instance.n_units
        assert len(built.position) == n_units * 2
        assert len(built.start) == len(instance.jobs)
        # Starts, positions, and one auxiliary variable for the node of each unit.
        assert len(built.model.proto.variables) == len(instance.jobs) + n_units * 2 + n_units
        counts.add(len(built.model.proto.variables))
    assert len(counts) == 1


def test_the_variables_of_pcp19_grow_with_the_system():
    for n_nodes in (8, 64):
        instance = wide_instance(n_nodes)
        built = pcp19.build(instance, slowdown(instance))
        # Two units fit on a node: p = min(3, 4 // 2).
        assert len(built.model.proto.variables) == len(instance.jobs) * (1 + 2 * n_nodes)


def test_the_variables_of_hcp19_are_the_starts():
    instance = wide_instance(64)
    assert len(hcp19.build(instance, slowdown(instance)).model.proto.variables) == 4


def test_a_share_that_would_have_to_be_split_leaves_its_job_out():
    unit = [ResourceUnit(0, (height,), (0,)) for height in (2, 1, 2)]
    # Free at second 5: one position at the top, one at the bottom, what is between is held.
    times = ((0, 5), (0, 10), (5, 5))
    jobs = tuple(
        WindowJob(0, 0, length_s, (u,), False, (0,), start_s, (0,))
        for u, (start_s, length_s) in zip(unit, times, strict=True)
    )
    instance = Instance(jobs, ("cpus",), np.array([[3]]), ((),), np.zeros(1, dtype=np.int64))
    found = pcp20.greedy_positions(instance)
    assert found == {(0, 0, 0): 1, (1, 0, 0): 0, (2, 0, 0): 1}
    middle = dataclasses.replace(jobs[2], units=(ResourceUnit(0, (2,), (0,)),), place_s=3)
    split = dataclasses.replace(instance, jobs=(jobs[0], jobs[1], middle))
    with pytest.raises(pcp20.Unsayable):
        pcp20.greedy_positions(split)


@each(seed=SEEDS)
def test_nodes_that_are_left_out_are_not_missed(seed):
    instance = small_instance(seed)
    weights = slowdown(instance)
    smaller, at = instance.without_spares(len(instance.used))
    assert [[int(at[n]) for n in job.place] for job in smaller.jobs] == [
        list(job.place) for job in instance.jobs
    ]
    assert best(smaller, weights, positions=False) == best(instance, weights, positions=False)


@each(seed=SEEDS)
def test_what_the_units_cannot_tell_makes_no_difference(seed):
    instance = small_instance(seed)
    weights = slowdown(instance)
    coarse = instance.coarsened()
    assert best(coarse, weights, positions=False) == best(instance, weights, positions=False)
    assert sum(map(len, coarse.used)) <= sum(map(len, instance.used))


def test_units_that_fit_nowhere_are_given_up():
    """The first unit fits at once, the second never: nothing comes after which to try again."""
    fits, never = ResourceUnit(0, (1,), (0,)), ResourceUnit(1, (9,), (0,))
    job = WindowJob(0, 0, 10, (fits, never), False, (0, 0), 0, (0, 0))
    instance = Instance(
        (job,), ("cpus",), np.array([[4]]), ((Unavailable(5, 8, (1,)),),), np.arange(1)
    )
    assert hcp19.allocate(instance, [0]).nodes == [None]
