# SPDX-License-Identifier: Apache-2.0
"""Windows small enough to try every schedule of them; second by second, position by position.

Every schedule in which no job could start earlier without moving is made: all orders of the jobs,
all nodes (and positions) of their units, each job at its earliest start there. One of them is
optimal, because the objective only grows with the starts.
"""

import itertools

import numpy as np

from bridge.papers.dispatch.instance import Instance, ResourceUnit, Unavailable, WindowJob

SECONDS = 120


class Grid:
    """Who holds what at every second.

    `places` says what a unit can take: amounts of nodes, or certain positions of them.
    """

    def __init__(self, instance, *, positions):
        self.instance, self.positions = instance, positions
        n_seconds = SECONDS
        self.taken = [[set() for _ in range(n_seconds)] for _ in instance.used]
        self.left = np.repeat(instance.capacity[:, None], n_seconds, axis=1)
        for n, used in enumerate(instance.used):
            for one in used:
                for second in range(one.start_s, min(one.end_s, n_seconds)):
                    self._put(n, second, one.amount, (0,) * len(one.amount))

    def _put(self, n, second, want, at, sign=1):
        self.left[n, second] -= sign * np.array(want)
        if not self.positions:
            return
        cells = {(r, at[r] + k) for r, height in enumerate(want) for k in range(height)}
        if sign > 0:
            self.taken[n][second] |= cells
        else:
            self.taken[n][second] -= cells

    def fits(self, n, second, want, at):
        if (self.left[n, second] < np.array(want)).any():
            return False
        cells = {(r, at[r] + k) for r, height in enumerate(want) for k in range(height)}
        return not (self.positions and cells & self.taken[n][second])

    def choices(self, unit):
        """Node and position in every resource, for one unit."""
        for n in unit.nodes:
            has = self.instance.capacity[n].tolist()
            if self.positions:
                spans = [
                    range(h - w + 1) if w else (0,) for h, w in zip(has, unit.want, strict=True)
                ]
                yield from ((n, at) for at in itertools.product(*spans))
            else:
                yield n, (0,) * len(has)

    def hold(self, job, where, start_s, sign=1):
        for unit, (n, at) in zip(job.units, where, strict=True):
            for second in range(start_s, start_s + job.length_s):
                self._put(n, second, unit.want, at, sign)

    def together(self, job, where, second):
        """Whether all units fit at one second, beside each other."""
        done, good = [], True
        for unit, (n, at) in zip(job.units, where, strict=True):
            if not self.fits(n, second, unit.want, at):
                good = False
                break
            self._put(n, second, unit.want, at)
            done.append((n, unit.want, at))
        for n, want, at in done:
            self._put(n, second, want, at, -1)
        return good

    def earliest(self, job, where):
        """None: the units do not fit beside each other there, not even alone."""
        start_s = job.release_s
        while start_s + job.length_s <= SECONDS:
            clash = [s for s in range(start_s, start_s + job.length_s)
                     if not self.together(job, where, s)]  # fmt: skip
            if not clash:
                return start_s
            start_s = clash[-1] + 1
        return None

    def ways(self, job):
        """All ways to lie: units alike are interchangeable."""
        for where in itertools.product(*(list(self.choices(unit)) for unit in job.units)):
            nodes = [n for n, _ in where]
            if job.scatter and len(set(nodes)) < len(nodes):
                continue
            maximum = job.max_per_node[0]
            if maximum and any(nodes.count(n) > maximum for n in nodes):
                continue
            if list(where) == sorted(where):
                yield where


def best(instance, weights, *, positions):
    """The least sum of weights times starts."""
    grid = Grid(instance, positions=positions)
    found = [sum(w * j.place_s for w, j in zip(weights, instance.jobs, strict=True))]

    def place(left, cost):
        bound = cost + sum(weights[i] * instance.jobs[i].release_s for i in left)
        if bound >= found[0]:
            return
        if not left:
            found[0] = cost
            return
        for i in left:
            job = instance.jobs[i]
            for where in grid.ways(job):
                start_s = grid.earliest(job, where)
                if start_s is None:
                    continue
                grid.hold(job, where, start_s)
                place(left - {i}, cost + weights[i] * start_s)
                grid.hold(job, where, start_s, -1)

    place(frozenset(range(len(instance.jobs))), 0)
    return found[0]


def greedy(instance):
    """The same jobs at their earliest places, in order, on positions."""
    grid, jobs = Grid(instance, positions=True), []
    for job in instance.jobs:
        found = [(grid.earliest(job, where), where) for where in grid.ways(job)]
        start_s, where = min(one for one in found if one[0] is not None)
        grid.hold(job, where, start_s)
        jobs.append((job, start_s, tuple(n for n, _ in where)))
    return Instance(
        tuple(
            WindowJob(
                j.submit_s, j.release_s, j.length_s, j.units, j.scatter, j.max_per_node, at, nodes
            )
            for j, at, nodes in jobs
        ),
        instance.resources, instance.capacity, instance.used, instance.rank,
    )  # fmt: skip


def small_instance(seed, *, maximum=3):
    """Two nodes or three, three jobs, one or two resources, something that runs.

    `maximum` bounds nodes and amounts: with 2 all positions can be tried.
    """
    dice = np.random.default_rng(seed)
    n_nodes, n_resources = int(dice.integers(2, maximum + 1)), int(dice.integers(1, 3))
    capacity = dice.integers(1, maximum + 1, (n_nodes, n_resources))
    capacity[0] = maximum
    used = []
    for n in range(n_nodes):
        amount = dice.integers(0, capacity[n] + 1)
        end_s = int(dice.integers(1, 8))
        used.append((Unavailable(0, end_s, tuple(amount.tolist())),) if amount.any() else ())
    jobs = []
    for _ in range(3):
        want = dice.integers(0, 3, n_resources)
        want[0] = max(int(want[0]), 1)
        nodes = tuple(n for n in range(n_nodes) if (capacity[n] >= want).all())
        n_units = int(dice.integers(1, 3))
        scatter = n_units <= len(nodes) and bool(dice.random() < 0.5)
        room = sum(int((capacity[n] // np.maximum(want, 1)).min()) for n in nodes)
        n_units = n_units if scatter or room >= n_units else 1
        unit = ResourceUnit(0, tuple(want.tolist()), nodes)
        length_s = int(dice.integers(1, 9))
        jobs.append(
            WindowJob(
                -int(dice.integers(0, 5)), int(dice.choice((0, 0, 3))), length_s,
                (unit,) * n_units, scatter, (1 if scatter else 0,), 0, (),
            )
        )  # fmt: skip
    names = tuple(f"r{k}" for k in range(n_resources))
    rank = np.zeros(n_nodes, dtype=np.int64)
    return greedy(Instance(tuple(jobs), names, capacity, tuple(used), rank))
