# SPDX-License-Identifier: Apache-2.0
"""How tasks lie on nodes of different sizes."""

import pytest

from bridge.registry import PRESETS, build
from bridge.safe_cycle.decider import Decider
from bridge.units import NEVER
from schedbridge_contracts.builders import a_job, a_node, a_snapshot


def decided(sizes, tasks, max_nodes, preset="openccs"):
    job = a_job(nodes=1, max_nodes=max_nodes, tasks=tasks, shared=True)
    snapshot = a_snapshot(nodes=[a_node(cpus=cpus) for cpus in sizes], jobs=[job])()
    return Decider(build(PRESETS[preset])).decide(snapshot)


@pytest.mark.parametrize(
    ("sizes", "tasks", "max_nodes", "spread"),
    [
        ((4, 2), 6, 2, [4, 2]),
        ((2, 4), 6, 2, [2, 4]),
        ((8, 2, 1), 11, 3, [8, 2, 1]),
        ((4, 2, 4, 4), 6, 2, [3, 3]),
    ],
)
def test_tasks_that_only_fit_unevenly_lie_as_evenly_as_the_nodes_allow(
    sizes, tasks, max_nodes, spread
):
    plan = decided(sizes, tasks, max_nodes)
    assert plan.start_s.tolist() == [0]
    assert sorted(plan.tasks.tolist()) == sorted(spread)


@pytest.mark.parametrize("preset", ["openccs", "slurm-like"])
def test_what_no_nodes_hold_never_starts(preset):
    assert decided((8, 2, 1), 12, 3, preset).start_s.tolist() == [NEVER]
    assert decided((4, 2, 2), 7, 2, preset).start_s.tolist() == [NEVER]
