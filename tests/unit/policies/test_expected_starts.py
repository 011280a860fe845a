# SPDX-License-Identifier: Apache-2.0
"""Which starts are announced for jobs that must wait."""

import pytest

from bridge.registry import build, choices, parse_policy
from bridge.units import NEVER, UNPLANNED, format_instant
from schedbridge_contracts.builders import a_job, a_running_job, a_snapshot
from schedbridge_contracts.crosses import each
from schedbridge_contracts.cycles import Memory, a_site, check, run
from schedbridge_contracts.test_not_yet_eligible import (
    HOUR_S,
    NOW_S,
    a_world,
    ahead,
    policy_of,
    starts,
)
from schedbridge_contracts.test_plan_conditions import row_of
from schedbridge_contracts.test_plan_stage import decide
from schedbridge_contracts.worlds import random_world


@pytest.mark.parametrize("preset", ["slurm-like", "conservative", "pbs", "openccs", "search"])
def test_expected_starts_are_still_shown(preset):
    """At the begin time, or after the eligible jobs, also behind a queue."""
    world = a_world(
        ahead("alice"),
        ahead("anne", NOW_S + 50),
        a_job(8, id="bob", limit_s=40, submit_s=2),
        a_job(8, id="carol", limit_s=40, submit_s=3),
        running=[a_running_job(tuple(range(8)), end_s=NOW_S + 10)],
    )
    found = starts(world, policy_of(preset))
    assert found == {
        "bob": [NOW_S + 10],
        "carol": [NOW_S + 50],
        "anne": [NOW_S + 90],
        "alice": [NOW_S + 5 * HOUR_S],
    }
    assert not {NEVER, UNPLANNED} & {start_s for (start_s,) in found.values()}


@each(seed=range(30))
def test_conservative_never_delays_a_job_planned_before(seed):
    """Without the last job, everything before it starts exactly when and where it did."""
    snapshot = random_world(seed, arrays=False)
    policy = {"order": "fcfs", "plan": "conservative", "place": "sequential"}
    whole = decide(snapshot, **policy)
    shorter = random_world(seed, arrays=False, hide=int(whole.job[-1]))
    fewer = decide(shorter, **policy)
    row_of = {int(job): row for row, job in enumerate(fewer.job)}
    for row, job in enumerate(whole.job[:-1]):
        if whole.start_s[row] != UNPLANNED:
            other = row_of[int(job)]
            assert whole.start_s[row] == fewer.start_s[other]
            assert whole.nodes_of(row).tolist() == fewer.nodes_of(other).tolist()


@pytest.mark.parametrize("plan", choices()["plan"])
def test_a_deadline_among_chunks_and_rules(plan):
    """The book obeys what bounds a start as the fast path does."""
    rules = {"limits": [{"user": "*", "resource": "cpus", "items": 100}]}
    jobs = [
        a_job(chunks="1:ncpus=1+1:ncpus=2", limit_s=10, id="mixed"),
        a_job(2, limit_s=100, deadline_s=150, id="misses"),
        a_job(2, limit_s=1000, deadline_s=300, min_s=60, id="cut"),
    ]
    if plan == "in-order":  # of those that wait, only the first has a planned start
        jobs = jobs[1:]
    running = [a_running_job((0, 1), end_s=100)]
    snapshot = a_snapshot(nodes=2, jobs=jobs, running=running)()
    deep = {"depth": 3} if plan in ("easy", "window") else {}
    policy = {"order": "fcfs", "plan": {"name": plan, **deep}, "place": "sequential"}
    site = a_site(rules)
    made = run(snapshot, Memory(), build(parse_policy(policy)), site=site)
    assert check(snapshot, made, site) == ()
    misses, cut = (row_of(snapshot, made, job) for job in ("misses", "cut"))
    assert made.start_s[misses] == NEVER
    assert f"before its deadline {format_instant(150)}" in made.reasons[misses].text
    assert made.end_s[cut] == 300
