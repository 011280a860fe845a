# SPDX-License-Identifier: Apache-2.0
from collections import Counter

import numpy as np
import pytest

from bridge.errors import ConfigError
from bridge.lab.sim.workloads.esp import INTERVAL_S, esp


def test_its_sizes_on_32_nodes_are_those_of_the_paper():
    workload = esp(0)
    sizes = {(kind, size) for kind, size in zip(workload.executable, workload.processors)}  # noqa: B905
    assert sorted(size for _, size in sizes) == sorted(
        [1, 2, 16, 8, 16, 2, 4, 5, 1, 2, 3, 4, 8, 32]
    )
    assert len(workload) == 230
    assert Counter(workload.executable.tolist())[13] == 2  # type Z
    assert np.diff(workload.submit_s).tolist() == [INTERVAL_S] * 229


@pytest.mark.parametrize("percent", [0, 25, 50, 75, 100])
def test_the_share_of_malleable_jobs_is_what_was_asked_for(percent):
    workload = esp(percent, seed=3)
    assert (workload.malleable.max_nodes > 0).sum() == round(230 * percent / 100)
    widths = workload.malleable
    for job in np.flatnonzero(widths.max_nodes):
        assert widths.objection(job, int(widths.min_nodes[job])) is None
        assert widths.objection(job, int(widths.max_nodes[job])) is None


def test_the_order_depends_on_the_seed_alone():
    one, other, another = esp(0, seed=1), esp(100, seed=1), esp(0, seed=2)
    assert one.runtime_s.tolist() == other.runtime_s.tolist()
    assert one.runtime_s.tolist() != another.runtime_s.tolist()
    assert sorted(one.runtime_s) == sorted(another.runtime_s)


def test_impossible_shares_and_sizes_are_refused():
    for share, nodes in ((-1, 32), (101, 32), (50, 0)):
        with pytest.raises(ConfigError):
            esp(share, nodes=nodes)
