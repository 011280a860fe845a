# SPDX-License-Identifier: Apache-2.0
"""Starts whose nodes the controller chooses, through the wire: who is offered, and how often."""

import pytest

from bridge.model.rules.limits import ConsumerKind, FreePool, Items, Limit, Rules
from bridge.model.rules.node_set import NodeSet
from bridge.model.rules.site import NO_RULES, Site
from bridge.planning.eligibility.controller_choice import Chooser
from bridge.registry import PRESETS, build
from bridge.rpc.controller.offers import NodesToChoose
from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.safe_cycle.decider import Decider
from schedbridge_contracts import builders
from schedbridge_contracts.crosses import each
from schedbridge_contracts.worlds import random_world
from tests.unit.rpc.worlds import (
    NOW_S,
    a_delta,
    a_full,
    a_hello,
    a_job,
    a_node,
    a_request,
    a_running_job,
    partitions,
    some_cycles,
)

LIMITED = Site(Rules(limits=(Limit(ConsumerKind.USER, "*", "cpus", Items(99)),)))

KEPT = Site(Rules(free_pools=(FreePool("n2", nodes=NodeSet(names=("n2",))),)))


def choosing_cycles(site=NO_RULES, features=("start", "choice"), **settings):
    decide = Decider(build(PRESETS["slurm-like"]), site=site).decide
    hello = a_hello(features=features)
    return some_cycles(decide, "slurm-like", site=site, hello=hello, **settings)


def starts(reply):
    return [
        (d.job_id, d.start.nodes, d.start.choice)
        for d in reply.decisions
        if d.WhichOneof("action") == "start"
    ]


def results(reply, outcome=pb.OUTCOME_REFUSED):
    return [
        pb.Fate(decision_id=d.id, job_id=d.job_id, outcome=outcome, code=2014, text="no")
        for d in reply.decisions
        if d.WhichOneof("action") == "start"
    ]


def one(job_id="1", **settings):
    return a_job(job_id, request=a_request(min_nodes=1, max_nodes=1, **settings))


def test_whole_nodes_of_several_sizes_are_the_controllers_choice():
    """Two jobs of whole nodes, and one that shares them: only its nodes are the planner's."""
    nodes = [a_node(f"n{at}", cpus=cpus) for at, cpus in enumerate((4, 8, 8, 4, 4))]
    jobs = [one("1", exclusive=True), one("2", exclusive=True), one("3")]
    for by_size, told in (
        (False, [("1", "n0", ""), ("2", "n3", ""), ("3", "n4", "")]),
        (True, [("1", "", "n[0-2]"), ("2", "", "n[1-3]"), ("3", "n4", "")]),
    ):
        cycles = choosing_cycles(places_by_size=lambda by_size=by_size: by_size)
        assert starts(cycles.run(a_full(jobs, nodes=nodes))) == told


def test_after_a_refused_start_the_controller_chooses():
    cycles = choosing_cycles()
    first = cycles.run(a_full([one()]))
    assert starts(first) == [("1", "n0", "")]
    second = cycles.run(a_delta(1, fates=results(first)))
    assert starts(second) == [("1", "", "n[0-3]")]
    third = cycles.run(a_delta(2, fates=results(second)))
    assert starts(third) == []
    assert cycles.counts.decisions["start"] == 2  # both kinds are counted


def test_after_a_change_it_is_asked_again_more_and_more_rarely():
    cycles = choosing_cycles()
    reply = cycles.run(a_full([one(features="none")]))  # by the planner never
    requested = []
    for number in range(1, 64):
        if starts(reply):
            requested.append(number - 1)
        changed = a_node("n1", state=f"STATE{number}")
        reply = cycles.run(
            a_delta(number, nodes=[changed], fates=results(reply), now_s=NOW_S + number)
        )
    assert requested == [0, 1, 3, 7, 15, 31, 61]


def test_what_does_not_change_is_not_asked_again():
    cycles = choosing_cycles()
    reply = cycles.run(a_full([one(features="none")]))
    assert starts(reply) == [("1", "", "n[0-3]")]
    for number in range(1, 50):
        reply = cycles.run(a_delta(number, fates=results(reply), now_s=NOW_S + number))
        assert starts(reply) == []


@pytest.mark.parametrize("is_open", [True, False])
@pytest.mark.parametrize("bit", [1, 31, 32, 60])
def test_a_job_that_has_changed_is_offered_at_once(bit, *, is_open):
    """In whatever bit its version differs; the other job has to wait."""
    cycles = choosing_cycles()
    jobs = [one(job_id, features="none") for job_id in ("1", "2")]
    reply = cycles.run(a_full(jobs))
    assert [job_id for job_id, _, _ in starts(reply)] == ["1", "2"]
    reply = cycles.run(a_delta(1, fates=[] if is_open else results(reply)))
    assert starts(reply) == []
    jobs[0].version ^= 1 << bit
    reply = cycles.run(a_delta(2, jobs=jobs[:1]))
    assert [job_id for job_id, _, _ in starts(reply)] == ["1"]


def test_the_tasks_of_an_array_that_the_controller_can_place_start_one_after_the_other():
    """In a partition that oversubscribes: the planner has no place for a fifth task."""
    full = [a_running_job("7", "n[0-3]")]
    array = one("1", controller_chooses=True)
    array.array_tasks = array.array_startable = 3
    cycles = choosing_cycles()
    reply = cycles.run(a_full([*full, array]))
    for number in range(1, 4):
        assert starts(reply) == [("1", "", "n[0-3]")]
        reply = cycles.run(a_delta(number, fates=results(reply, pb.OUTCOME_APPLIED)))
    reply = cycles.run(a_delta(4, fates=results(reply)))
    assert starts(reply) == []  # refused


@pytest.mark.parametrize(
    "settings", [{"features": "none"}, {"features": "[odd"}, {"required_nodes": "n0,n1"}]
)
def test_what_the_planner_cannot_place_is_offered(settings):
    assert starts(choosing_cycles().run(a_full([one(**settings)]))) == [("1", "", "n[0-3]")]


def test_nodes_of_jobs_that_ask_for_more_are_chosen_by_the_controller():
    cycles = choosing_cycles()
    jobs = [one("1", exclusive=True), one("2", controller_chooses=True)]
    assert starts(cycles.run(a_full(jobs))) == [("1", "n0", ""), ("2", "", "n[1-3]")]


def test_the_controller_counts_switches_where_none_are_known_here():
    cycles = choosing_cycles()
    two = a_job("1", request=a_request(min_nodes=2, max_nodes=2, switches=1))
    reply = cycles.run(a_full([two]))
    requested = []
    for number in range(1, 20):  # how long it waits for few of them, Slurm knows
        requested.append(starts(reply))
        busy = results(reply, pb.OUTCOME_BUSY)
        reply = cycles.run(a_delta(number, fates=busy, now_s=NOW_S + number))
    assert requested.count([("1", "", "n[0-3]")]) > 8
    assert all(nodes == "" for starts in requested for _, nodes, _ in starts)


@pytest.mark.parametrize(
    "settings",
    [
        {"site": LIMITED, "choice": "n[0-3]"},
        {"site": KEPT, "choice": "n[0-1,3]"},
        {"site": Site(protect={"gpu": {"cpus": 1}})},
        {"features": ("start",)},
    ],
)
def test_where_there_is_no_choice_nothing_is_offered(settings):
    """A planned start is made among nodes that are as good, or on the planned ones."""
    choice = settings.pop("choice", "")
    cycles = choosing_cycles(**settings)
    assert starts(cycles.run(a_full([one(features="none")]))) == []
    told = starts(choosing_cycles(**settings).run(a_full([one(controller_chooses=True)])))
    assert told == [("1", "" if choice else "n0", choice)]


def test_chunks_and_malleable_jobs_are_laid_out_by_the_planner_alone():
    cycles = choosing_cycles()
    chunks = one("1", chunks=pb.Chunks(chunks="nonsense"))
    odd = one("2", malleable=pb.Malleable(min_nodes=3, max_nodes=2))
    assert starts(cycles.run(a_full([chunks, odd]))) == []


def test_nodes_that_were_busy_are_no_fault_of_the_job():
    cycles = choosing_cycles(features=("start",))
    reply = cycles.run(a_full([one()]))
    for number in range(1, 20):
        held = cycles.run(a_delta(2 * number - 1, fates=results(reply, pb.OUTCOME_BUSY),
                                  now_s=NOW_S + number - 1))  # fmt: skip
        assert starts(held) == []
        assert held.wake_after_s == 1
        reply = cycles.run(a_delta(2 * number, now_s=NOW_S + number))
        assert starts(reply) == [("1", "n0", "")]


def test_a_job_that_was_refused_in_one_of_its_partitions_is_tried_in_the_others():
    cycles = choosing_cycles(features=("start",))
    job, rooms = one(partitions=["main", "other"]), partitions()
    rooms.items[0].name = "main"
    rooms.items.add(name="other", nodes="n[0-3]", up=True)
    reply = cycles.run(a_full([job], partitions=rooms))
    tried = []
    for number in range(1, 5):
        tried += [decision.start.partition for decision in reply.decisions if decision.start.nodes]
        now_s = NOW_S + 40 * number
        cycles.run(a_delta(2 * number - 1, fates=results(reply), now_s=now_s))
        reply = cycles.run(a_delta(2 * number, now_s=now_s + 35))
    assert tried == ["main", "other", "main", "main"]  # then it has been refused in both
    cycles = choosing_cycles()
    reply = cycles.run(a_full([job], partitions=rooms))
    reply = cycles.run(a_delta(1, fates=results(reply)))
    assert [(d.start.partition, d.start.choice) for d in reply.decisions if d.start.choice] == [
        ("other", "n[0-3]")
    ]


def test_what_is_outside_the_bounds_of_its_partition_is_offered():
    """Slurm holds such jobs by itself, but where their QOS lifts the bounds."""
    two = a_job("1", request=a_request(min_nodes=2, max_nodes=2))
    reply = choosing_cycles().run(a_full([two], partitions=partitions(max_nodes=1)))
    assert starts(reply) == [("1", "", "n[0-3]")]


def test_no_node_is_avoided_for_a_limit():
    cycles = choosing_cycles(features=("start",))
    reply = cycles.run(a_full([one()]))
    tried = []
    for number in range(1, 7):
        tried += [nodes for _, nodes, _ in starts(reply)]
        now_s = NOW_S + 40 * number
        limited = results(reply, pb.OUTCOME_LIMITED)
        cycles.run(a_delta(2 * number - 1, fates=limited, now_s=now_s))
        reply = cycles.run(a_delta(2 * number, now_s=now_s + 35))
    assert tried == ["n0"] * 6


def limits(reply):
    return {
        d.job_id: (d.start.choice, d.start.time_limit_s)
        for d in reply.decisions
        if d.WhichOneof("action") == "start"
    }


def test_a_limit_that_may_be_cut_is_cut_before_a_reservation():
    """Of jobs whose nodes the controller chooses, at their start and after a change (`TimeMin`)."""
    kept = pb.Reservation(name="all", start_s=NOW_S + 600, end_s=NOW_S + 9000, nodes="n[0-3]")
    hour = {"time_limit_s": 3600, "request": a_request(max_nodes=1, controller_chooses=True)}
    cycles = choosing_cycles()
    reply = cycles.run(
        a_full(
            [a_job("1", min_time_s=120, **hour), a_job("2", **hour)],
            reservations=pb.Reservations(items=[kept]),
        )
    )
    assert limits(reply)["1"] == ("n[0-3]", 420)
    assert limits(reply)["2"][1] == 0  # Slurm says why it waits
    changed = a_job("2", version=2, min_time_s=240, **hour)
    reply = cycles.run(a_delta(1, jobs=[changed]))
    assert limits(reply)["2"][1] == 420


def test_nodes_that_were_refused_are_avoided_one_after_the_other():
    cycles = choosing_cycles(features=("start",))
    reply = cycles.run(a_full([one()]))
    tried = []
    for number in range(1, 7):
        tried += [nodes for _, nodes, _ in starts(reply)]
        now_s = NOW_S + 40 * number
        cycles.run(a_delta(2 * number - 1, fates=results(reply), now_s=now_s))
        reply = cycles.run(a_delta(2 * number, now_s=now_s + 35))
    assert tried == ["n0", "n1", "n2", "n3", "n0", "n0"]  # then it has been refused on all


def refused_again_and_again(cycles, jobs, nodes, times):
    """Where each job is to start, or is to be given nodes, while all starts are refused."""
    reply = cycles.run(a_full(jobs, nodes))
    tried = []
    for number in range(1, times + 1):
        tried.append({job_id: choice or nodes for job_id, nodes, choice in starts(reply)})
        now_s = NOW_S + 40 * number
        cycles.run(a_delta(2 * number - 1, fates=results(reply), now_s=now_s))
        reply = cycles.run(a_delta(2 * number, now_s=now_s + 35))
    return tried


def test_planned_nodes_among_which_the_controller_finds_none_are_avoided():
    """Under a limit it may take these alone; they may break a request that is not modelled.

    Each of two jobs avoids its own refused nodes and gets those of the other; the last node has
    room for both.
    """
    wish = {"controller_chooses": True, "min_cpus_per_node": 2}
    nodes = [a_node(f"n{at}", cpus=2 + 2 * at) for at in range(3)]
    tried = refused_again_and_again(
        choosing_cycles(LIMITED), [one("1", **wish), one("2", **wish)], nodes, 4
    )
    assert tried == [
        {"1": "n0", "2": "n1"}, {"1": "n1", "2": "n0"}, {"1": "n2", "2": "n2"},
        {"1": "n0", "2": "n1"},
    ]  # fmt: skip


@pytest.mark.parametrize("max_nodes", [1, 2])
def test_nodes_that_do_not_go_together_are_tried_again_soon(max_nodes):
    """Of two jobs the one whose request is modelled waits for the nodes that are in use.

    The nodes are those among which the controller may choose, or the planned ones alone.
    """
    jobs = [
        a_job(job_id, request=a_request(min_nodes=1, max_nodes=max_nodes, features=name, **more))
        for job_id, name, more in (("1", "a", {"controller_chooses": True}), ("2", "b", {}))
    ]
    nodes = [a_node(f"n{at}", cpus=1, features=["aabb"[at]]) for at in range(4)]
    others = [a_running_job(str(3 + at), f"n{at}", end_s=NOW_S + 9000) for at in (1, 3)]
    cycles = choosing_cycles(LIMITED)
    reply = cycles.run(a_full([*jobs, *others], nodes))
    assert sorted(job_id for job_id, _, _ in starts(reply)) == ["1", "2"]
    cycles.run(a_delta(1, fates=results(reply)))
    tried = [
        [job_id for job_id, _, _ in starts(cycles.run(a_delta(at, now_s=NOW_S + after_s)))]
        for at, after_s in ((2, 35), (3, 61))
    ]
    assert tried == [[], ["1"]]


def test_whole_nodes_by_size_among_which_the_controller_finds_none_are_avoided():
    """Each of two jobs avoids its own; neither may be given the node planned for the other."""
    cycles = choosing_cycles(LIMITED, places_by_size=lambda: True)
    nodes = [a_node(f"n{at}", cpus=cpus) for at, cpus in enumerate((4, 4, 4, 8, 8, 8))]
    jobs = [one("1", exclusive=True), one("2", exclusive=True)]
    assert refused_again_and_again(cycles, jobs, nodes, 4) == [
        {"1": "n[0,2]", "2": "n[1-2]"}, {"1": "n[1-2]", "2": "n[0,2]"},
        {"1": "n2", "2": "n[3-5]"}, {"1": "n[3-5]", "2": "n2"},
    ]  # fmt: skip


@pytest.mark.parametrize(
    "wish",
    [
        {"features": "gpu"},
        {"tasks": 8, "cpus_per_task": 1},
        {"memory_per_node_mib": 1500},
        {"reservation": "r"},
    ],
)
def test_the_only_nodes_that_could_hold_a_job_are_not_avoided(wish):
    """Otherwise it would be told that no node can hold it, and would wait beside an idle one."""
    large = a_node("n0", cpus=8, memory_mib=2000, features=["gpu"])
    kept = pb.Reservation(name="r", start_s=NOW_S - 1, end_s=NOW_S + 9000, nodes="n0")
    cycles = choosing_cycles(LIMITED)
    reply = cycles.run(
        a_full(
            [one(**wish)], [large, a_node("n1"), a_node("n2")],
            reservations=pb.Reservations(items=[kept] if "reservation" in wish else []),
        )
    )  # fmt: skip
    for number in range(1, 4):
        assert [nodes for _, nodes, _ in starts(reply)] == ["n0"], number
        now_s = NOW_S + 40 * number
        cycles.run(a_delta(2 * number - 1, fates=results(reply), now_s=now_s))
        reply = cycles.run(a_delta(2 * number, now_s=now_s + 35))


@pytest.mark.parametrize("preset", ["slurm-like", "conservative"])
@each(seed=range(25))
def test_whoever_has_a_choice_has_room(preset, seed):
    snapshot = random_world(seed, chunks=True)
    plan = Decider(build(PRESETS[preset])).decide(snapshot)
    room, starting = NodesToChoose(snapshot, plan), set(plan.job[plan.starts_now].tolist())
    waiting = [row for row in range(len(snapshot.jobs)) if row not in starting]
    chosen = [choice.job for choice in Chooser(snapshot, NO_RULES, plan).choices(waiting)]
    assert all(job in room for job in chosen)


def test_on_full_nodes_and_those_of_starts_there_is_no_room():
    running = [builders.a_running_job((0,), 99)]
    jobs = [builders.a_job(nodes=2), builders.a_job(), builders.a_job(controller_chooses=True)]
    snapshot = builders.a_snapshot(nodes=3, jobs=jobs, running=running)()
    plan = Decider(build(PRESETS["slurm-like"])).decide(snapshot)
    assert plan.job[plan.starts_now].tolist() == [0]
    room = NodesToChoose(snapshot, plan)
    assert [job in room for job in (1, 2)] == [False, True]
