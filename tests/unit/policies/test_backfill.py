# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

from bridge.model.job import Hold, WidthRule
from bridge.model.reasons import ReasonCode
from bridge.registry import build, parse_policy
from bridge.units import NEVER, UNPLANNED
from schedbridge_contracts.builders import (
    a_job,
    a_node,
    a_partition,
    a_reservation,
    a_running_job,
    a_snapshot,
    gantt,
)
from schedbridge_contracts.cycles import Memory, check, run


def planned(snapshot, policy="conservative"):
    plan = run(snapshot, Memory(), build(parse_policy(policy)), np.random.default_rng(0))
    print(gantt(snapshot, plan))
    return plan


def starts(plan):
    return dict(zip((plan.job + 1).tolist(), plan.start_s.tolist(), strict=True))


def reason(plan, job):
    (row,) = np.flatnonzero(plan.job == job - 1)
    return plan.reasons[row]


def nodes(plan, job):
    (row,) = np.flatnonzero(plan.job == job - 1)
    return plan.nodes_of(row).tolist()


HEAD_WAITS = {
    "nodes": 4,
    "running": [a_running_job(nodes=(0, 1), end_s=100)],
    "jobs": [
        a_job(nodes=4, limit_s=50),  # waits for all nodes
        a_job(nodes=2, limit_s=100),  # ends just as the first begins
        a_job(nodes=1, limit_s=10),  # nothing left now
    ],
}


def test_easy_starts_what_does_not_delay_the_first():
    plan = planned(a_snapshot(**HEAD_WAITS)(), "easy")
    assert starts(plan) == {1: 100, 2: 0, 3: UNPLANNED}
    assert reason(plan, 1).code is ReasonCode.RESOURCES


@pytest.mark.parametrize("policy", ["slurm-like", "easy", "conservative", "openccs"])
@pytest.mark.parametrize(
    ("min_s", "start_s", "lasts_s"),
    [(300, 0, 1800), (1860, 0, 1860), (2040, 3000, 7200), (0, 3000, 7200)],
)
def test_a_limit_is_cut_where_the_job_starts_earlier_for_it(policy, min_s, start_s, lasts_s):
    """--time-min without a deadline: the longest of some time limits with the earliest start."""
    head = a_job(nodes=4, limit_s=1000, priority=2)
    job = a_job(nodes=1, limit_s=7200, min_s=min_s)
    running = [a_running_job(nodes=(0, 1), end_s=2000)]
    snapshot = a_snapshot(nodes=4, running=running, jobs=[head, job])()
    plan = planned(snapshot, policy)
    row = int(np.flatnonzero(plan.job == 1)[0])
    if plan.start_s[row] != UNPLANNED:  # easy plans nothing ahead but the first
        assert (plan.start_s[row], plan.end_s[row]) == (start_s, start_s + lasts_s)
    assert (plan.start_s[row] == 0) == (start_s == 0)
    assert not check(snapshot, plan)


def test_a_limit_is_cut_to_that_of_the_partition_where_the_job_allows_it():
    rooms = [a_partition(nodes=range(4), max_time_s=600)]
    jobs = [a_job(limit_s=1800, min_s=120), a_job(limit_s=1800, min_s=1200)]
    snapshot = a_snapshot(nodes=4, jobs=jobs, partitions=rooms)()
    plan = planned(snapshot)
    assert (plan.start_s.tolist(), plan.end_s[0]) == ([0, UNPLANNED], 600)
    assert reason(plan, 2).code is ReasonCode.PARTITION
    assert not check(snapshot, plan)


def test_a_job_that_would_delay_the_first_waits():
    jobs = [a_job(nodes=4, limit_s=50), a_job(nodes=2, limit_s=101)]
    plan = planned(a_snapshot(**(HEAD_WAITS | {"jobs": jobs}))(), "easy")
    assert starts(plan) == {1: 100, 2: UNPLANNED}
    assert reason(plan, 2).code is ReasonCode.PRIORITY


def test_conservative_plans_every_job():
    plan = planned(a_snapshot(**HEAD_WAITS)())
    assert starts(plan) == {1: 100, 2: 0, 3: 150}
    assert nodes(plan, 2) == [2, 3]


def test_depth_is_a_parameter():
    policy = {"preset": "easy", "plan": {"name": "easy", "depth": 2}}
    jobs = [a_job(nodes=4), a_job(nodes=4), a_job(nodes=4)]
    plan = planned(a_snapshot(nodes=4, jobs=jobs, running=[a_running_job((0,), 100)])(), policy)
    assert starts(plan) == {1: 100, 2: 200, 3: UNPLANNED}


def test_higher_priority_goes_first_under_slurms_order():
    jobs = [a_job(nodes=4, priority=1), a_job(nodes=4, priority=9)]
    assert starts(planned(a_snapshot(jobs=jobs)(), "slurm-like")) == {1: 100, 2: 0}


def test_higher_tier_goes_before_higher_priority():
    parts = (a_partition("low", range(4)), a_partition("high", range(4), priority_tier=5))
    jobs = [a_job(nodes=4, priority=9), a_job(nodes=4, priority=1, partitions=(1,))]
    plan = planned(a_snapshot(jobs=jobs, partitions=parts)(), "slurm-like")
    assert starts(plan) == {1: 100, 2: 0}


def test_held_jobs_are_not_planned_and_say_why():
    jobs = [a_job(hold=Hold.HELD), a_job(hold=Hold.DEPENDENCY), a_job(hold=Hold.REFUSED)]
    plan = planned(a_snapshot(jobs=jobs)())
    assert set(plan.start_s.tolist()) == {UNPLANNED}
    codes = [reason(plan, job).code for job in (1, 2, 3)]
    assert codes == [ReasonCode.HELD, ReasonCode.DEPENDENCY, ReasonCode.REFUSED]


def test_a_begin_time_is_kept():
    jobs = [a_job(hold=Hold.BEGIN_TIME, begin_s=500)]
    plan = planned(a_snapshot(jobs=jobs)())
    assert starts(plan) == {1: 500}
    assert reason(plan, 1).code is ReasonCode.BEGIN_TIME


def test_an_array_starts_as_many_tasks_as_its_limit_lets():
    plan = planned(a_snapshot(jobs=[a_job(array_tasks=5, array_startable=2)])())
    assert plan.start_s.tolist() == [0, 0]


def test_an_array_at_its_limit_waits():
    plan = planned(a_snapshot(jobs=[a_job(array_tasks=5, array_startable=0)])())
    assert plan.start_s.tolist() == [UNPLANNED]
    assert reason(plan, 1).code is ReasonCode.ARRAY_LIMIT


def test_a_job_takes_as_many_nodes_as_it_may():
    assert len(nodes(planned(a_snapshot(jobs=[a_job(nodes=2, max_nodes=3)])()), 1)) == 3


@pytest.mark.parametrize(
    ("rule", "width"), [(WidthRule.POF2, 4), (WidthRule.ODD, 7), (WidthRule.CUBIC, 1)]
)
def test_a_node_constraint_bounds_the_width(rule, width):
    job = a_job(nodes=1, max_nodes=7, width_rule=rule)
    assert len(nodes(planned(a_snapshot(nodes=7, jobs=[job])()), 1)) == width


def test_an_impossible_node_constraint_says_so():
    plan = planned(a_snapshot(jobs=[a_job(nodes=3, width_rule=WidthRule.EVEN)])())
    assert reason(plan, 1).code is ReasonCode.BAD_REQUEST
    assert "even" in reason(plan, 1).text


def test_shared_jobs_share_a_node():
    jobs = [a_job(shared=True, tasks=2), a_job(shared=True, tasks=2)]
    plan = planned(a_snapshot(nodes=1, jobs=jobs)())
    assert starts(plan) == {1: 0, 2: 0}


def test_memory_is_a_resource():
    jobs = [a_job(shared=True, cpus=1, mem_mib=3000), a_job(shared=True, cpus=1, mem_mib=3000)]
    assert starts(planned(a_snapshot(nodes=1, jobs=jobs)())) == {1: 0, 2: 100}


def test_gpus_are_a_resource():
    nodes_ = [a_node(), a_node(gpus=2)]
    jobs = [a_job(shared=True, cpus=1, gpus=2), a_job(shared=True, cpus=1, gpus=1)]
    plan = planned(a_snapshot(nodes=nodes_, jobs=jobs)())
    assert starts(plan) == {1: 0, 2: 100}
    assert nodes(plan, 1) == [1]


def test_best_fit_fills_the_fuller_node():
    snapshot = a_snapshot(
        nodes=2,
        running=[a_running_job((1,), 1000, shared=True, cpus=2)],
        jobs=[a_job(shared=True, tasks=2)],
    )()
    assert nodes(planned(snapshot, {"preset": "conservative", "place": "best-fit"}), 1) == [1]
    assert nodes(planned(snapshot, "conservative"), 1) == [0]


WEIGHTS = {
    "a whole node": (a_job(), [1]),
    "beside a partly used node of more weight": (a_job(shared=True, cpus=1), [1]),
    "tasks on more nodes rather than on heavier ones": (
        a_job(shared=True, tasks=7, max_nodes=7),
        [1, 2],
    ),
    "as many nodes as it may have": (a_job(shared=True, tasks=7), [3]),
    "the heavier ones, too, if need be": (a_job(shared=True, tasks=10, max_nodes=9), [1, 2, 3]),
}


@pytest.mark.parametrize("policy", ["slurm-like", "easy", "conservative"])
@pytest.mark.parametrize(("job", "expected"), WEIGHTS.values(), ids=WEIGHTS)
def test_nodes_of_less_weight_are_filled_first(job, expected, policy):
    """Slurm's Weight says which nodes are kept free: it is no mere tie-break."""
    nodes_ = [a_node(weight=w, cpus=c) for w, c in ((20, 4), (5, 4), (5, 4), (20, 8))]
    running = [a_running_job((0,), 1000, shared=True, cpus=3)]
    snapshot = a_snapshot(nodes=nodes_, running=running, jobs=[job])()
    assert nodes(planned(snapshot, policy), 1) == expected


def test_features_choose_nodes_and_bad_ones_say_where():
    nodes_ = [a_node(features=("slow",)), a_node(features=("fast",))]
    jobs = [a_job(features="fast"), a_job(features="fast&"), a_job(features="none")]
    plan = planned(a_snapshot(nodes=nodes_, jobs=jobs)())
    assert nodes(plan, 1) == [1]
    assert reason(plan, 2).code is ReasonCode.BAD_REQUEST
    assert "character 6" in reason(plan, 2).text
    assert reason(plan, 3).code is ReasonCode.NEVER


def test_matching_or_keeps_all_nodes_of_one_kind():
    nodes_ = [a_node(features=("r1",)), a_node(features=("r2",)), a_node(features=("r2",))]
    plan = planned(a_snapshot(nodes=nodes_, jobs=[a_job(nodes=2, features="[r1|r2]")])())
    assert nodes(plan, 1) == [1, 2]


def test_required_and_excluded_nodes():
    jobs = [a_job(nodes=2, required=(3,)), a_job(nodes=1, excluded=(0, 1, 2))]
    plan = planned(a_snapshot(jobs=jobs)())
    assert 3 in nodes(plan, 1)
    assert nodes(plan, 2) == [3]
    assert starts(plan)[2] == 100


def test_the_partition_that_starts_first_is_taken():
    parts = (a_partition("a", (0, 1)), a_partition("b", (1, 2)))
    plan = planned(
        a_snapshot(
            nodes=3,
            partitions=parts,
            running=[a_running_job((0,), 50)],
            jobs=[a_job(nodes=2, partitions=(0, 1))],
        )()
    )
    assert plan.partition.tolist() == [1]
    assert nodes(plan, 1) == [1, 2]


def test_a_partition_refuses_what_exceeds_its_bounds():
    parts = (a_partition("short", range(4), max_time_s=60),)
    plan = planned(a_snapshot(partitions=parts, jobs=[a_job(limit_s=61)])())
    assert reason(plan, 1).code is ReasonCode.PARTITION
    assert "short" in reason(plan, 1).text


def test_a_default_limit_above_the_greatest_holds_the_job_and_no_other():
    parts = (a_partition("p", range(4), default_time_s=60, max_time_s=50),)
    plan = planned(a_snapshot(partitions=parts, jobs=[a_job(limit_s=0), a_job(limit_s=50)])())
    assert reason(plan, 1).code is ReasonCode.PARTITION
    assert "default time limit exceeds" in reason(plan, 1).text
    assert starts(plan)[2] == 0


def test_no_time_limit_means_the_partitions():
    parts = (a_partition("p", range(4), default_time_s=60),)
    plan = planned(a_snapshot(partitions=parts, jobs=[a_job(limit_s=0)])())
    assert plan.end_s.tolist() == [60]


def test_announced_downtime_is_planned_around():
    snapshot = a_snapshot(
        nodes=2,
        reservations=[a_reservation((0, 1), 50, 80)],
        jobs=[a_job(limit_s=60), a_job(limit_s=50)],
    )()
    plan = planned(snapshot)
    assert starts(plan) == {1: 80, 2: 0}
    assert reason(plan, 1).code is ReasonCode.RESERVATION


def test_a_job_in_a_reservation_gets_its_nodes_and_waits_for_it():
    snapshot = a_snapshot(
        nodes=3,
        reservations=[a_reservation((1, 2), 50, 300, "course")],
        jobs=[a_job(nodes=2, reservation=0, hold=Hold.RESERVATION), a_job(nodes=2, limit_s=60)],
    )()
    plan = planned(snapshot)
    assert starts(plan) == {1: 50, 2: 300}
    assert nodes(plan, 1) == [1, 2]


def test_a_job_that_cannot_start_within_its_reservation_is_told():
    snapshot = a_snapshot(
        nodes=2,
        reservations=[a_reservation((1,), 0, 50, "course")],
        running=[a_running_job((1,), 60)],
        jobs=[a_job(reservation=0)],
    )()
    plan = planned(snapshot)
    assert starts(plan) == {1: NEVER}
    assert "course" in reason(plan, 1).text


def test_licences_are_counted():
    jobs = [a_job(licences=(2,)), a_job(licences=(2,)), a_job(licences=(4,)), a_job()]
    plan = planned(a_snapshot(jobs=jobs, licences=[("matlab", 3)])())
    assert starts(plan) == {1: 0, 2: 100, 3: NEVER, 4: 0}
    assert "matlab" in reason(plan, 2).text
    assert reason(plan, 3).code is ReasonCode.NEVER


def test_too_large_is_never_but_down_nodes_may_return():
    nodes_ = [a_node(), a_node(usable=False)]
    plan = planned(a_snapshot(nodes=nodes_, jobs=[a_job(nodes=2), a_job(nodes=3)])())
    assert reason(plan, 1).code is ReasonCode.RESOURCES
    assert reason(plan, 1).text == "needs 2 nodes of batch, only 1 is up"
    assert reason(plan, 2).code is ReasonCode.NEVER


def test_a_job_may_start_in_the_second_another_ends():
    snapshot = a_snapshot(nodes=1, running=[a_running_job((0,), 100)], jobs=[a_job(limit_s=10)])()
    plan = planned(snapshot)
    assert starts(plan) == {1: 100}
    assert check(snapshot, plan) == ()


def test_an_overrunning_job_is_expected_to_end_in_a_second():
    snapshot = a_snapshot(nodes=1, running=[a_running_job((0,), 5)], jobs=[a_job()], now_s=50)()
    assert starts(planned(snapshot)) == {1: 51}


def test_an_empty_queue_gives_an_empty_plan():
    assert len(planned(a_snapshot()())) == 0
