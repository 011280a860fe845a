# SPDX-License-Identifier: Apache-2.0
"""Learning speed-ups, in whole simulations: it must not make anybody's wait longer on the whole.

`benchmarks/elastic_learning.py` measures by how much it helps.
"""

from dataclasses import replace

import numpy as np
import pytest
from policy_bench.elastic import ElasticCase, run_case

from bridge.lab.sim.workloads.esp import esp
from bridge.lab.sim.workloads.speedup import Amdahl
from bridge.registry import parse_policy


def applications(share, seed):
    """ESP whose types scale differently."""
    jobs = esp(share, seed=seed)
    of_type = np.random.default_rng(seed).uniform(0.0, 0.5, int(jobs.executable.max()) + 1)
    speedup = np.array([Amdahl(float(of_type[at])) for at in jobs.executable], dtype=object)
    return replace(jobs, malleable=replace(jobs.malleable, speedup=speedup))


def response_s(learn, seed):
    spec = parse_policy({"preset": "malleable", "reshape": {"name": "malleable", "learn": learn}})
    found = run_case("applications", applications, ElasticCase(spec, 100.0, seed))
    assert found["failures"] == 0
    return found["response_s"]


@pytest.mark.parametrize("seed", [0, 1])
def test_learning_does_no_harm(seed):
    """Slow: simulates a workload with and without what is learnt."""
    assert response_s(True, seed) <= 1.03 * response_s(False, seed)
