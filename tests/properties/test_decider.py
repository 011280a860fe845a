# SPDX-License-Identifier: Apache-2.0
"""Every snapshot gets a legal plan, under every preset, whatever numbers it holds.

The numbers are those at which something may tip over; nobody has looked at them before, as the
session would. Who has none of them is planned, and by the policy that was asked for.
"""

import dataclasses

import numpy as np
import pytest

from bridge.model.job import Hold
from bridge.ports import Promises, State
from bridge.registry import PRESETS, build, parse_policy
from bridge.safe_cycle.decider import Decider
from bridge.units import NEVER, UNPLANNED
from schedbridge_contracts.builders import a_job, a_partition, a_running_job, a_snapshot
from schedbridge_contracts.crosses import each
from schedbridge_contracts.cycles import a_site, check
from schedbridge_contracts.worlds import random_world

EXTREME = (
    0, 1, -1, 59, 2**31 - 1, 2**31, 2**40, 2**53, 2**62, 2**63 - 1, -(2**63),
    253_402_300_800,  # the year 10000
    10**11, 365 * 86_400,
)  # fmt: skip
OF_JOBS = (
    "begin_s", "deadline_s", "time_limit_s", "priority", "submit_s", "eligible_s", "min_time_s",
    "kill_limit_s", "switches_wait_s", "min_nodes", "max_nodes", "tasks", "max_tasks_per_node",
    "array_tasks", "array_startable",
)  # fmt: skip
OF_RUNNING = ("start_s", "end_s", "partition")
RULES = {
    "limits": [{"user": "*", "resource": "cpus", "items": 9}],
    "free_pools": [{"name": "p", "resource": "cpus", "keep": "10%", "access": [{"time": "< 30s"}]}],
}
QUICK = {
    "search": {"budget_ms": 0, "effort": 50},
    "pcp19": {"budget_ms": 0, "effort": 0.01},
    "hcp19": {"budget_ms": 0, "effort": 0.01},
    "pcp20": {"budget_ms": 0, "effort": 0.01},
}


def decider(preset, **settings):
    plan = {"name": PRESETS[preset].plan.name, **QUICK.get(preset, {})}
    return Decider(build(parse_policy({"preset": preset, "plan": plan})), **settings)


def mutated(snapshot, dice):
    """One to three extreme numbers, of waiting or of running jobs."""
    jobs, running = snapshot.jobs, snapshot.running
    for _ in range(int(dice.integers(1, 4))):
        value = EXTREME[dice.integers(len(EXTREME))]
        if dice.random() < 0.2 and len(running):
            name, row = str(dice.choice(OF_RUNNING)), dice.integers(len(running))
            column = getattr(running, name).copy()
            column[row] = min(value, len(snapshot.partitions) - 1) if name == "partition" else value
            running = dataclasses.replace(running, **{name: column})
        elif len(jobs):
            name, row = str(dice.choice(OF_JOBS)), dice.integers(len(jobs))
            column = getattr(jobs, name).copy()
            column[row] = np.clip(value, np.iinfo(column.dtype).min, np.iinfo(column.dtype).max)
            jobs = dataclasses.replace(jobs, **{name: column})
            if name == "begin_s":
                hold = jobs.hold.copy()
                hold[row] = Hold.BEGIN_TIME
                jobs = dataclasses.replace(jobs, hold=hold)
    return dataclasses.replace(snapshot, jobs=jobs, running=running)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("preset", PRESETS)
@each(seed=range(12))
def test_extreme_numbers(preset, seed):
    dice = np.random.default_rng((seed, len(preset), ord(preset[0])))
    snapshot = mutated(random_world(int(dice.integers(1 << 30)), chunks=seed % 3 == 0), dice)
    site = a_site(RULES if seed % 2 else None)
    own = decider(preset, site=site)
    for _ in range(2):
        plan = own.decide(snapshot)
        assert set(plan.job.tolist()) == set(range(len(snapshot.jobs)))
        aside = any(note.startswith(("set aside", "fell back")) for note in plan.notes)
        assert aside or check(snapshot, plan, site) == ()


@each(preset=list(PRESETS))
def test_a_default_limit_above_the_greatest_stops_nobody(preset):
    partitions = [a_partition(nodes=(0, 1, 2, 3), max_time_s=600, default_time_s=3600)]
    jobs = [a_job(id="none", limit_s=0), a_job(id="some", limit_s=300)]
    snapshot = a_snapshot(nodes=4, jobs=jobs, partitions=partitions)()
    own = decider(preset)
    plan = own.decide(snapshot)
    assert check(snapshot, plan) == ()
    assert (own.failures, [n for n in plan.notes if not n.startswith("run times")]) == (0, [])
    starts = dict(zip(plan.job.tolist(), plan.start_s.tolist(), strict=True))
    assert starts[1] not in (NEVER, UNPLANNED)


@each(preset=list(PRESETS), year_10000_s=[253_402_300_740, 253_402_300_800, 10**12])
def test_a_begin_time_beyond_the_calendar_stops_nobody(preset, year_10000_s):
    jobs = [
        a_job(id="far", hold=Hold.BEGIN_TIME, begin_s=year_10000_s, deadline_s=1_900_000_000),
        a_job(id="some", limit_s=300),
    ]
    snapshot = a_snapshot(nodes=4, jobs=jobs, running=[a_running_job((0,), 50)])()
    own = decider(preset)
    plan = own.decide(snapshot)
    assert check(snapshot, plan) == ()
    assert (own.failures, [note for note in plan.notes if "aside" in note]) == (0, [])
    starts = dict(zip(plan.job.tolist(), plan.start_s.tolist(), strict=True))
    assert starts[1] not in (NEVER, UNPLANNED)


def test_what_a_file_says_was_announced_may_be_anything():
    snapshot = a_snapshot(nodes=4, jobs=[a_job(id="1")], running=[a_running_job((0,), 50)])()
    for at_s in EXTREME:
        own = decider("openccs", state=State(Promises("openccs", {"1": at_s})))
        assert check(snapshot, own.decide(snapshot)) == ()
