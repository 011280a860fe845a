# SPDX-License-Identifier: Apache-2.0
"""The nodes that several jobs free or get in one decision, counted independently."""

import numpy as np

from bridge.planning.malleable.expand_shrink import Malleables, _growths, _shrinks
from schedbridge_contracts.builders import a_job
from tests.unit.policies.test_reshape import a_world, malleable


def test_shrinks_free_what_is_needed_and_no_job_more_than_that():
    """In random worlds, by a count that knows nothing of how they were chosen."""
    for seed in range(300):
        rng = np.random.default_rng(seed)
        widths = rng.integers(1, 6, int(rng.integers(2, 6))).tolist()
        ends = np.cumsum(widths).tolist()
        running = [
            malleable(range(end - width, end), minimum=int(rng.integers(1, width + 1)), id=str(n))
            for n, (width, end) in enumerate(zip(widths, ends, strict=True))
        ]
        needed = int(rng.integers(1, ends[-1] + 1))
        world = a_world(*running, jobs=[a_job(nodes=needed)], nodes=ends[-1])
        order = rng.permutation(len(running)).tolist()
        idle = np.zeros(ends[-1], dtype=bool)
        found = _shrinks(Malleables.of(world, 5), 0, idle, order, 15)
        freed = [widths[row] - len(nodes) for row, _, nodes, _ in found]
        minimum = [each.min_nodes for each in running]
        possible = sum(width - low for width, low in zip(widths, minimum, strict=True))
        assert bool(found) == (possible >= needed), f"seed {seed}"
        if found:
            assert sum(freed) == needed, f"seed {seed}"
            assert all(freed), f"seed {seed}: one shrinks for nothing"


def test_growths_use_idle_nodes_once_and_leave_none_that_a_job_may_have():
    for seed in range(300):
        rng = np.random.default_rng(seed)
        count, idle = int(rng.integers(2, 6)), int(rng.integers(1, 9))
        maximum = [int(rng.integers(2, 6)) for _ in range(count)]
        running = [
            malleable((2 * n, 2 * n + 1), maximum=maximum[n], id=str(n)) for n in range(count)
        ]
        world = a_world(*running, nodes=2 * count + idle)
        free = np.arange(2 * count + idle) >= 2 * count
        order = rng.permutation(count).tolist()
        found = _growths(Malleables.of(world, 5), free, order, set(), 15)
        added = [node for _, _, nodes, _ in found for node in nodes.tolist() if free[node]]
        assert len(added) == len(set(added)), f"seed {seed}"
        assert len(added) == min(idle, sum(each - 2 for each in maximum)), f"seed {seed}"
