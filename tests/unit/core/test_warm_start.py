# SPDX-License-Identifier: Apache-2.0
"""Windows of many jobs: `compact` is no worse than the contiguous placements it begins with."""

import numpy as np
import pytest

from bridge.model.hop_tree import HopTree, in_groups
from bridge.model.topology import regular
from schedbridge_contracts.crosses import each


@pytest.mark.parametrize("steps", [0, 500_000])
@each(seed=range(6))
def test_many_jobs_are_placed_no_worse_than_as_runs(seed, steps):
    rng = np.random.default_rng(seed)
    hop_tree = HopTree.of(regular(400, 8, 40))
    idle = np.sort(rng.choice(400, 300, replace=False)).astype(np.int32)
    sizes = rng.integers(1, 21, size=20).astype(np.int32)
    tree, metric = hop_tree.tree, hop_tree.metric
    found = hop_tree.costs(tree.compact(metric, idle, sizes, steps)).sum()
    assert found <= hop_tree.costs(tree.sequential(idle, sizes)).sum()
    if not steps:  # nothing ends the programme

        def runs(left, some):
            return tree.contiguous(metric, left, some)

        assert found <= hop_tree.costs(in_groups(runs, idle, sizes, 4)).sum()


@pytest.mark.parametrize("jobs", [2, 5, 8, 30])
def test_the_same_steps_find_the_same_nodes_and_more_of_them_none_that_are_worse(jobs):
    rng = np.random.default_rng(jobs)
    hop_tree = HopTree.of(regular(400, 8, 40))
    idle = np.sort(rng.choice(400, 350, replace=False)).astype(np.int32)
    sizes = rng.integers(1, 12, size=jobs).astype(np.int32)
    costs = []
    for steps in (10_000, 1_000_000, 10_000_000):
        found, again = (
            hop_tree.tree.compact(hop_tree.metric, idle, sizes, steps) for _ in range(2)
        )
        assert [part.tolist() for part in found] == [part.tolist() for part in again]
        costs.append(hop_tree.costs(found).sum())
    assert costs[-1] <= costs[0]


@pytest.mark.parametrize("jobs", [2, 5, 8])
def test_up_to_eight_jobs_are_placed_no_worse_than_the_best_runs(jobs):
    rng = np.random.default_rng(jobs)
    hop_tree = HopTree.of(regular(400, 8, 40))
    idle = np.sort(rng.choice(400, 200, replace=False)).astype(np.int32)
    sizes = rng.integers(1, 21, size=jobs).astype(np.int32)
    tree, metric = hop_tree.tree, hop_tree.metric
    exact = hop_tree.costs(tree.contiguous(metric, idle, sizes)).sum()
    assert hop_tree.costs(tree.compact(metric, idle, sizes, 500_000)).sum() <= exact


def test_jobs_that_runs_would_put_across_fabrics_find_a_place():
    two = regular(8, 4)
    apart = HopTree.of(type(two)(two.names[:2], np.array([-1, -1], np.int32), two.leaf_of_node))
    idle, sizes = np.arange(8, dtype=np.int32), np.array([3, 4], np.int32)
    assert np.isfinite(apart.costs(apart.tree.compact(apart.metric, idle, sizes, 0))).all()
