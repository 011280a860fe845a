# SPDX-License-Identifier: Apache-2.0
"""A backlog that grows is found, with the instant since which it does; others are not."""

import numpy as np
import pytest

from bridge.lab.sim.runs import backlog
from bridge.lab.sim.runs.backlog import Watch, growing
from bridge.lab.sim.runs.ordered import replay_ordered
from bridge.lab.sim.runs.replay import replay
from bridge.lab.sim.workloads.system import pool_of
from bridge.registry import parse_policy
from bridge.units import DAY_S, NEVER
from schedbridge_contracts.workloads import a_workload

HOUR_S = 3600


def arriving(*loads, days=40):
    """One job of an hour on the whole machine of 4 each 1/load hours, over so many days each."""
    at_s, jobs = 1.0, []
    for load in loads:
        for _ in range(int(days * 24 * load)):
            jobs.append((int(at_s), HOUR_S, HOUR_S, 4))
            at_s += HOUR_S / load
    return a_workload(jobs, 4)


@pytest.mark.parametrize(
    ("loads", "grows"),
    [((0.5,), False), ((0.95,), False), ((1.1,), False), ((0.5, 1.5), True), ((1.5,), True),
     ((2.0, 0.2, 0.2), False)],
)  # fmt: skip
def test_which_backlogs_grow(loads, grows):
    workload = arriving(*loads)
    found = growing(workload, 4, replay(workload, pool_of(4), 1).schedule.start_s)
    assert (found is not None) == grows


def test_what_it_says():
    workload = arriving(0.5, 1.5)
    found = growing(workload, 4, replay(workload, pool_of(4), 1).schedule.start_s)
    assert found.load == pytest.approx(1.5, rel=0.05)
    assert 40 * DAY_S <= found.since_s <= 48 * DAY_S  # it was below a tenth of 20 days until then
    assert found.backlog_days == pytest.approx(20, rel=0.05)
    assert found.processors == 7
    said = found.sentence(stopped=False)
    assert f"--procs 7 or more, or --jobs {found.before} for the time before" in said
    assert "stopped" not in said
    assert "the results are those of the jobs that ended" in found.sentence(stopped=True)


def test_a_hopeless_queue_ends_the_run(monkeypatch):
    monkeypatch.setattr(backlog, "MAX_WAITING", 100)
    monkeypatch.setattr(backlog, "MAX_S", 7 * DAY_S)
    workload = arriving(0.5, 2.0)
    spec = parse_policy({"preset": "easy", "order": "shortest"})
    outcome = replay_ordered(workload, pool_of(4), spec, watch=Watch(workload, 4))
    never = outcome.schedule.start_s == NEVER
    assert 0 < never.sum() < len(workload)
    assert outcome.stopped
    found = growing(workload, 4, outcome.schedule.start_s, ended=True)
    assert found.backlog_days == pytest.approx(7, rel=0.2)
    assert found.load > 1
    whole = replay_ordered(workload, pool_of(4), spec)
    assert not (whole.schedule.start_s == NEVER).any()
    assert np.array_equal(whole.schedule.start_s[~never], outcome.schedule.start_s[~never])
