# SPDX-License-Identifier: Apache-2.0
"""With `pairs` no host is killed at its time limit because of its guests."""

from dataclasses import replace

import numpy as np
import pytest

from bridge.lab.sim.runs.engine import simulate
from bridge.lab.sim.runs.sharing_measures import sharing_measures
from bridge.planning.site_rules.rules_text import parse_site
from bridge.registry import build, parse_policy
from bridge.safe_cycle.decider import Decider
from schedbridge_contracts.workloads import a_workload
from tests.unit.lab.sim.sharing.test_engine import NOISY, PROCESSORS, shared, shared_pool

SITE = parse_site(
    {"coscheduling": [{"partition": "*", "scope": "all", "max_slowdown": 0.4, "max_mean_harm": 1}]}
)


def close_to_their_limits(seed, n_jobs=40):
    """Most jobs need nearly their limits; some need all of it, and some more."""
    rng = np.random.default_rng((seed, 9))
    limit_s = rng.integers(200, 1500, n_jobs)
    parts = rng.choice([0.5, 0.9, 0.98, 1.0, 1.1], n_jobs)
    columns = (
        1 + np.cumsum(rng.integers(0, 60, n_jobs)), np.maximum((limit_s * parts).astype(int), 1),
        limit_s, rng.choice([2, 4, 8], n_jobs),
    )  # fmt: skip
    workload = shared(a_workload(np.column_stack(columns).tolist(), PROCESSORS), NOISY, seed)
    return replace(workload, sharing=replace(workload.sharing, grace_s=0))


def run(seed, **parameters):
    workload = close_to_their_limits(seed)
    share = {"name": "pairs", "watch_s": 10, **parameters}
    policy = build(parse_policy({"preset": "easy", "share": share}))
    outcome = simulate(workload, shared_pool(), Decider(policy, site=SITE).decide)
    log = outcome.sharing
    assert log is not None
    host = (log.host < 0) & (log.shared_s > 0)
    in_time = workload.runtime_s <= workload.time_limit_s
    return outcome, log, host, host & in_time & log.killed


@pytest.mark.parametrize("seed", [1, 2])
def test_no_host_that_ends_in_time_alone_is_killed_at_its_limit(seed):
    outcome, log, host, killed = run(seed)
    assert host.sum() >= 5
    assert log.lost_s[host].sum() > 60
    assert not killed.any()
    assert sharing_measures(outcome)["hosts_overrun"] == 0.0
    # No limit grew by more than the time with guests, in whole minutes.
    assert (log.extended_s <= -(-log.shared_s // 60) * 60).all()
    assert log.extended_s[host].any()
    # Jobs without guests are killed as ever.
    alone = ~host & (outcome.workload.runtime_s > outcome.workload.time_limit_s)
    assert log.killed[alone].all()


def test_without_the_extension_some_are_killed():
    """Else the test above would say nothing.

    Slow: two whole simulations.
    """
    assert sum(int(run(seed, lengthen_limits=False)[3].sum()) for seed in (1, 2)) > 0
