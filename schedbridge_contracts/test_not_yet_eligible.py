# SPDX-License-Identifier: Apache-2.0
"""A job whose begin time has not come delays nobody, under any policy, as under Slurm."""

import dataclasses

import numpy as np
import pytest

from bridge.model.job import Hold
from bridge.registry import build, parse_policy
from bridge.units import UNPLANNED
from schedbridge_contracts import subject
from schedbridge_contracts.builders import a_job, a_running_job, a_snapshot, gantt
from schedbridge_contracts.cycles import Memory, check, run
from schedbridge_contracts.worlds import random_world

NOW_S = 6000
HOUR_S = 3600
MINUTE_S = 60
SEEDS = range(12)
POLICIES = subject.presets()


def policy_of(preset, **stages):
    return build(parse_policy({**POLICIES[preset], **stages}))


def starts(snapshot, policy, memory=None):
    """From each job's id to the starts of its rows."""
    plan = run(snapshot, memory or Memory(), policy)
    assert check(snapshot, plan) == (), gantt(snapshot, plan)
    found = {}
    for job, start_s in zip(plan.job.tolist(), plan.start_s.tolist(), strict=True):
        found.setdefault(snapshot.jobs.id[job], []).append(start_s)
    return {name: sorted(values) for name, values in found.items()}


def ahead(name, begin_s=NOW_S + 5 * HOUR_S, **settings):
    """A job of all nodes with the highest priority that may not begin yet."""
    wanted = {"limit_s": 10 * MINUTE_S, "hold": Hold.BEGIN_TIME, "priority": 1000, **settings}
    return a_job(8, id=name, begin_s=begin_s, submit_s=1, **wanted)


def a_world(*jobs, now_s=NOW_S, **settings):
    return a_snapshot(nodes=8, now_s=now_s, jobs=list(jobs), **settings)()


@pytest.mark.parametrize("preset", POLICIES)
class TestEveryPreset:
    def test_nobody_idles_the_cluster_by_a_begin_time(self, preset):
        """Two users hold all nodes for later; two long jobs of others start at once."""
        world = a_world(
            ahead("alice"),
            ahead("anne", NOW_S + 3 * HOUR_S),
            a_job(4, id="bob", limit_s=10 * HOUR_S, submit_s=2),
            a_job(4, id="carol", limit_s=10 * HOUR_S, submit_s=3),
        )
        found = starts(world, policy_of(preset))
        assert found["bob"] == found["carol"] == [NOW_S]

    def test_an_expected_start_of_an_earlier_cycle_gives_way(self, preset):
        memory, policy = Memory(), policy_of(preset)
        before = starts(a_world(ahead("alice")), policy, memory)
        assert before["alice"] == [NOW_S + 5 * HOUR_S]
        later = a_world(
            ahead("alice"),
            a_job(8, id="bob", limit_s=10 * HOUR_S, submit_s=NOW_S),
            now_s=NOW_S + MINUTE_S,
        )
        after = starts(later, policy, memory)
        assert after["bob"] == [NOW_S + MINUTE_S]
        assert after["alice"][0] >= NOW_S + MINUTE_S + 10 * HOUR_S  # an expected start, or none

    def test_neither_do_tasks_of_an_array(self, preset):
        world = a_world(
            ahead("array", array_tasks=4, array_startable=2),
            a_job(8, id="bob", limit_s=10 * HOUR_S, submit_s=2),
        )
        assert starts(world, policy_of(preset))["bob"] == [NOW_S]

    @pytest.mark.parametrize("hold", [Hold.DEPENDENCY, Hold.LIMIT, Hold.ARRAY_LIMIT])
    def test_neither_do_jobs_that_the_controller_would_not_start(self, preset, hold):
        world = a_world(
            ahead("dependent", hold=hold),
            ahead("throttled", hold=Hold.NONE, array_tasks=3, array_startable=0, begin_s=0),
            a_job(8, id="bob", limit_s=10 * HOUR_S, submit_s=2),
        )
        assert starts(world, policy_of(preset))["bob"] == [NOW_S]

    def test_a_fixed_start_keeps_its_reservation(self, preset):
        """It is asked for by name (`--fixed-start`), and is the same under every policy."""
        world = a_world(
            ahead("alice", fixed=True), a_job(8, id="bob", limit_s=10 * HOUR_S, submit_s=2)
        )
        found = starts(world, policy_of(preset))
        assert found["alice"] == [NOW_S + 5 * HOUR_S]
        assert found["bob"] != [NOW_S]

    def test_the_starts_of_all_others_are_as_without_them(self, preset):
        """In random worlds: with later begin times, or held by their users."""
        policy = policy_of(preset)
        for seed in SEEDS:
            world = random_world(seed)
            waits = np.random.default_rng(seed).random(len(world.jobs)) < 0.4
            waits &= ~world.jobs.fixed & (world.jobs.hold == Hold.NONE)
            begin_s = world.now_s + np.random.default_rng(seed).integers(1, 300, len(waits))
            early = _with(world, waits, Hold.BEGIN_TIME, begin_s)
            held = _with(world, waits, Hold.HELD, begin_s)
            found, without = starts(early, policy), starts(held, policy)
            for job in set(world.jobs.id[~waits].tolist()):
                assert _as_good(found[job], without[job], world.now_s), (
                    f"seed {seed}, job {job}: {found[job]}, alone {without[job]}\n"
                    f"{gantt(early, run(early, Memory(), policy))}"
                )


def _as_good(found, without, now_s):
    """Whether these are the same starts; a window may have no room left to announce later ones."""
    pairs = zip(found, without, strict=True)
    return found == without or all(
        one == other or (one == UNPLANNED and other > now_s) for one, other in pairs
    )


def _with(world, which, hold, begin_s):
    jobs = world.jobs.with_columns(
        hold=np.where(which, hold, world.jobs.hold).astype(np.int8),
        begin_s=np.where(which, begin_s, world.jobs.begin_s),
    )
    return dataclasses.replace(world, jobs=jobs)


@pytest.mark.parametrize("preset", POLICIES)
def test_once_its_begin_time_has_come_it_has_its_place_in_the_order(preset):
    running = [a_running_job(tuple(range(8)), end_s=NOW_S + MINUTE_S)]
    world = a_world(
        ahead("alice", NOW_S, eligible_s=NOW_S),
        a_job(8, id="bob", limit_s=10 * MINUTE_S, submit_s=2, eligible_s=2),
        running=running,
    )
    found = starts(world, policy_of(preset, order="slurm"))
    assert found["alice"] < found["bob"] or found["bob"] == [UNPLANNED]
