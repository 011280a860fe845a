# SPDX-License-Identifier: Apache-2.0
"""Traces with malleable jobs, and measurements that are off."""

import numpy as np
import pytest

from bridge.errors import ConfigError
from bridge.lab.sim.workloads.esp import esp
from bridge.lab.sim.workloads.malleable_jobs import with_malleable
from schedbridge_contracts.workloads import a_workload

JOBS = [(1 + at, 50, 100, 1 + at % 8) for at in range(40)]


def test_a_share_of_the_jobs_may_be_four_times_narrower_or_wider():
    workload = a_workload(JOBS, 16)
    found = with_malleable(workload, 20, seed=3).malleable
    chosen = found.max_nodes > 0
    assert chosen.sum() == 8
    requested = workload.processors[chosen]
    assert (found.min_nodes[chosen] == np.ceil(requested / 4)).all()
    assert (found.max_nodes[chosen] == np.minimum(4 * requested, 16)).all()
    again = with_malleable(workload, 20, seed=3).malleable
    assert (again.max_nodes == found.max_nodes).all()
    assert (with_malleable(workload, 20, seed=4).malleable.max_nodes != found.max_nodes).any()


@pytest.mark.parametrize("share", [-1, 101])
def test_an_impossible_share_is_refused(share):
    with pytest.raises(ConfigError, match="is not a percentage"):
        with_malleable(a_workload(JOBS, 16), share)


def test_an_error_moves_what_is_measured_and_not_the_jobs():
    right, wrong = esp(50, seed=2), esp(50, seed=2, mtct_error=0.3)
    ratio = np.array([
        wrong.malleable.mtct(job, 8) / right.malleable.mtct(job, 8) for job in range(len(right))
    ])  # fmt: skip
    assert set(np.round(ratio, 6)) == {1.3, round(1 / 1.3, 6)}
    assert (wrong.malleable.speedup == right.malleable.speedup).all()
    assert (wrong.malleable.max_nodes == right.malleable.max_nodes).all()
