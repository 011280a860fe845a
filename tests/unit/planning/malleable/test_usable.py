# SPDX-License-Identifier: Apache-2.0
"""Jobs that could use the same nodes count as one, and only those."""

from dataclasses import replace

import numpy as np

from bridge.planning.malleable.usable import Usable, growable
from schedbridge_contracts.crosses import each
from schedbridge_contracts.reshaping import a_malleable_world


@each(seed=range(40))
def test_jobs_of_a_group_could_use_the_same_nodes_as_each_by_itself(seed):
    world, rng = a_malleable_world(seed), np.random.default_rng(seed)
    n = len(world.running)
    limits = np.array(["", "", "gpu"], dtype=object)
    running = replace(
        world.running, features=limits[rng.integers(3, size=n)], exclusive=rng.random(n) < 0.5
    )
    world = replace(world, running=running)
    free = rng.permutation(len(world.nodes))[: len(world.nodes) // 2].astype(np.int32)
    rows = np.flatnonzero(np.diff(running.indptr) > 0)
    usable = Usable(world, free)
    for part in (rows[::2], rows):
        for row, group in zip(part.tolist(), usable.groups(part), strict=True):
            alone = growable(world, row)[free]
            assert usable.masks[group].tolist() == alone.tolist()
            assert usable.counts[group] == alone.sum()
    assert len(usable.masks) == len(usable.counts) <= len(rows)


def test_alike_jobs_are_one_group():
    world = a_malleable_world(3)
    n = len(world.running)
    running = replace(
        world.running,
        exclusive=np.ones(n, dtype=bool),
        partition=np.zeros(n, dtype=np.int64),
        features=np.full(n, "", dtype=object),
    )
    world = replace(world, running=running, reservations=())
    rows = np.flatnonzero(np.diff(running.indptr) > 0)
    usable = Usable(world, np.arange(len(world.nodes), dtype=np.int32))
    assert set(usable.groups(rows)) == {0}
