# SPDX-License-Identifier: Apache-2.0
"""The link in virtual time, beside a double of a server and the real cycles of the service."""

import random
from collections import Counter

import pytest

from bridge.pbs.link.mirror import steady
from bridge.rpc.pb import scheduler_pb2 as pb
from schedbridge_contracts.crosses import each, seeds
from tests.unit.pbs.link.world import World, judge, without_threads


@pytest.fixture
def world(monkeypatch):
    with without_threads(monkeypatch):
        yield World()


def states(world):
    return Counter(job["job_state"] for job in world.pbs.jobs.values())


def ended(world):
    return Counter(job_id for _, what, job_id, _ in world.pbs.history if what == "ended")


def test_jobs_start_where_the_service_says(world):
    wide = world.pbs.submit("2:ncpus=2:mem=1gb+1:ncpus=1", place="scatter")
    small = world.pbs.submit("1:ncpus=4", runs_s=5)
    world.run(3)
    assert {world.pbs.jobs[job]["substate"] for job in (wide, small)} == {"42"}
    assert str(world.pbs.jobs[wide]["exec_vnode"]).count("(") == 3
    assert judge(world.pbs) == []


def test_a_job_that_waits_gets_its_reason_and_its_start(world):
    world.pbs.submit("4:ncpus=4")
    waits = world.pbs.submit("1:ncpus=2")
    never = world.pbs.submit("9:ncpus=4")
    world.run(3)
    assert "expected to start" in world.written.told[waits]["comment"]
    assert int(world.written.told[waits]["estimated"]["start_time"]) > world.pbs.now
    assert world.written.told[never]["comment"].startswith("Not Running: ")
    assert "estimated" not in world.written.told[never]


def test_a_hold_sends_no_command_and_is_found(world):
    world.pbs.submit("4:ncpus=4", runs_s=4)
    waits = world.pbs.submit("1:ncpus=1")
    world.run(2)
    world.pbs.hold(waits)
    world.run(10)
    assert world.pbs.jobs[waits]["job_state"] == "H"
    assert ended(world) == {"0.srv": 1}


def test_the_tasks_of_an_array_start_once_each(world):
    world.pbs.submit("1:ncpus=4", runs_s=1)
    array = "7[].srv"
    world.pbs.jobs[array] = {
        **world.pbs.jobs["0.srv"], "array": "True", "array_indices_submitted": "1,2,3,4,5,6",
        "array_indices_remaining": "1,2,3,4,5,6",
    }  # fmt: skip
    world.pbs.runs_s[array] = 2
    world.run(30)
    tasks = {f"7[{index}].srv": 1 for index in range(1, 7)}
    assert ended(world) == {"0.srv": 1, **tasks}
    assert judge(world.pbs) == []


def test_a_start_on_a_dead_mom_is_refused_and_tried_elsewhere(world):
    world.pbs.moms["n1"] = "dead"  # the server has not noticed
    for _ in range(4):
        world.pbs.submit("1:ncpus=4", runs_s=2)
    world.run(60)
    assert sum(ended(world).values()) == 4
    assert any(what == "queued again" for _, what, _, _ in world.pbs.history)
    assert "n1" not in {where[1:3] for _, what, _, where in world.pbs.history if what == "ended"}
    assert judge(world.pbs) == []


def test_a_frozen_mom_gets_no_more_jobs(world):
    world.pbs.freeze_mom("n1")
    for _ in range(8):
        world.pbs.submit("1:ncpus=2", runs_s=30, place="pack")
    world.run(200)
    requested = [
        job for _, what, job, where in world.pbs.history if what == "asked" and "n1" in where
    ]
    assert len(requested) <= 2
    assert sum(ended(world).values()) == 8 - len(requested)


def test_an_unanswered_mom_that_is_back_ends_the_wait(world):
    world.pbs.freeze_mom("n1")
    job = world.pbs.submit("1:ncpus=4:vnode=n1", runs_s=5)
    world.run(100)
    assert world.pbs.jobs[job]["substate"] == "41"
    world.pbs.moms["n1"] = "up"
    world.run(30)
    assert ended(world) == {job: 1}


def test_the_registration_is_given_back_when_the_service_is_silent(world):
    world.run(2)
    assert world.link.is_registered
    world.service.silent = True
    world.pbs.submit("1:ncpus=1")
    world.run(8)
    assert not world.link.is_registered
    assert world.pbs.registered is None
    assert world.parent.words.count("aside") == 1
    assert world.link.figures.fallbacks == 1
    world.service.silent = False
    world.run(6)
    assert world.link.is_registered
    assert states(world) == {"R": 1}


def test_whoever_takes_over_is_told_to_look_once(world):
    world.run(2)
    world.service.silent = True
    world.pbs.submit("1:ncpus=1")
    world.run(8)
    assert "start_cycle" not in world.pbs.calls
    pair = world.pbs.connect(""), world.pbs.connect("")
    world.pbs.register("default", *pair)
    world.run(4)
    assert world.pbs.calls.count("start_cycle") == 1


def test_a_restart_of_the_service_loses_nothing(world):
    world.pbs.submit("4:ncpus=4", runs_s=5)
    waits = world.pbs.submit("1:ncpus=1", runs_s=1)
    world.run(2)
    world.service.restart()
    world.run(20)
    assert ended(world) == {"0.srv": 1, waits: 1}
    assert judge(world.pbs) == []


def test_another_scheduler_that_is_registered_is_not_disturbed(world):
    pbs = world.pbs
    pair = pbs.connect(""), pbs.connect("")
    assert pbs.register("default", *pair) == 0
    pbs.submit("1:ncpus=1")
    world.run(20)
    assert not world.link.is_registered
    assert pbs.registered == pair
    assert "run" not in pbs.calls
    for handle in pair:
        pbs.disconnect(handle)
    world.run(20)
    assert world.link.is_registered
    assert states(world) == {"R": 1}


def test_nothing_starts_while_scheduling_is_off(world):
    world.pbs.server["scheduling"] = "False"
    job = world.pbs.submit("1:ncpus=1")
    world.run(10)
    assert world.pbs.jobs[job]["job_state"] == "Q"
    world.pbs.server["scheduling"] = "True"
    world.run(5)
    assert world.pbs.jobs[job]["job_state"] == "R"


@pytest.mark.parametrize("decides_s", [0.0, 1.0])
def test_a_job_held_while_the_service_decides_is_not_started(world, decides_s):
    world.run(2)
    job = world.pbs.submit("1:ncpus=1")
    world.service.meanwhile = lambda: (world.pbs.hold(job), world.pbs.advance(decides_s))
    world.run(3)
    assert states(world) == {"H": 1}
    assert "asked" not in {what for _, what, _, _ in world.pbs.history}


@pytest.mark.parametrize("decides_s", [0.0, 0.3])
def test_a_vnode_taken_offline_while_the_service_decides_is_not_used(world, decides_s):
    world.run(2)
    job = world.pbs.submit("1:ncpus=1:vnode=n1")

    def meanwhile():
        world.pbs.vnodes["n1"] = {**world.pbs.vnodes["n1"], "state": "offline"}
        world.pbs.advance(decides_s)

    world.service.meanwhile = meanwhile
    world.run(1)
    assert world.pbs.jobs[job]["job_state"] == "Q"
    assert "asked" not in {what for _, what, _, _ in world.pbs.history}


def test_a_limit_set_while_the_service_decides_for_long_is_kept(world):
    world.run(2)
    world.pbs.submit("1:ncpus=1")

    def meanwhile():
        world.pbs.server["max_run"] = "[u:PBS_GENERIC=0]"
        world.pbs.advance(1.0)

    world.service.meanwhile = meanwhile
    world.run(3)
    assert states(world) == {"Q": 1}


def test_a_short_job_takes_two_calls_of_the_service(world):
    world.run(2)
    before = world.service.calls
    for _ in range(10):
        world.pbs.submit("1:ncpus=1", runs_s=0.1)
        world.run(2)
    assert sum(ended(world).values()) == 10
    assert world.service.calls - before <= 22


def test_that_a_job_runs_is_reported_soon(world):
    world.pbs.submit("1:ncpus=1")
    world.run(3)
    assert len(world.service.cycles.session.snapshot()[0].running) == 1
    assert not world.service.cycles._announcements._open


def test_an_operator_who_runs_a_job_is_answered(world):
    world.run(2)
    held = world.pbs.submit("1:ncpus=1")
    world.pbs.hold(held)
    world.pbs.tell(11, held)
    world.run(2)
    assert [job for job, _ in world.pbs.answers] == [held]


FAULTS = ("server", "service", "link", "mom dies", "mom freezes", "silence", "none")


@each(seed=seeds(8, whole=24))
def test_whatever_fails_nothing_is_lost_or_started_twice(seed):
    """Slow: each seed is a long history of failures."""
    with pytest.MonkeyPatch.context() as patch, without_threads(patch):
        nothing_is_lost_or_started_twice(World(), random.Random(seed))


def nothing_is_lost_or_started_twice(world, rng):
    pbs, submitted = world.pbs, 0
    for _ in range(40):
        for _ in range(rng.randrange(4)):
            count, ncpus = rng.choice([(1, 1), (1, 2), (2, 2), (1, 4), (3, 1)])
            pbs.submit(f"{count}:ncpus={ncpus}", runs_s=rng.uniform(0.5, 20))
            submitted += 1
        match rng.choice(FAULTS):
            case "server":
                pbs.restart()
            case "service":
                world.service.restart()
            case "link":
                world.new_link()
            case "mom dies":
                pbs.kill_mom(rng.choice(list(pbs.moms)))
            case "mom freezes":
                pbs.freeze_mom(rng.choice(list(pbs.moms)))
            case "silence":
                world.service.silent = True
        world.run(rng.uniform(0.25, 4))
        world.service.silent = False
        for name, state in list(pbs.moms.items()):
            if state == "frozen":
                pbs.moms[name] = "up"
            elif state == "dead" and rng.random() < 0.5:
                pbs.revive_mom(name)
    for name in list(pbs.moms):
        pbs.revive_mom(name)
    for _ in range(90):
        if sum(ended(world).values()) < submitted:
            world.run(10, step_s=1)
    assert judge(pbs) == []
    assert sum(ended(world).values()) == submitted
    assert set(ended(world).values()) <= {1}


def test_own_comments_do_not_make_the_link_read_the_jobs_every_turn(world):
    world.pbs.submit("4:ncpus=4")
    world.run(5)
    waits = [world.pbs.submit("1:ncpus=1") for _ in range(20)]
    world.run(5)
    requested = world.pbs.calls.count("stat_jobs")
    for _ in range(16):
        for job in waits:
            world.pbs._touch(job)
        world.turn()
    assert world.pbs.calls.count("stat_jobs") - requested <= 5
    world.pbs.submit("1:ncpus=1")
    requested = world.pbs.calls.count("stat_jobs")
    world.turn()
    assert world.pbs.calls.count("stat_jobs") > requested


def test_reservations_are_answered_on_the_registered_connection(world, monkeypatch):
    used, confirm = [], world.pbs.confirm_reservation
    monkeypatch.setattr(
        world.pbs, "confirm_reservation", lambda c, *rest: used.append(c) or confirm(c, *rest)
    )
    world.run(2)
    now = int(world.pbs.now)
    world.pbs.reservations["R1.srv"] = {
        "reserve_state": "1", "reserve_start": str(now + 1000), "reserve_end": str(now + 1600),
        "schedselect": "1:ncpus=1", "queue": "R1", "Reserve_Owner": "ann@host",
        "Resource_List": {"select": "1:ncpus=1", "place": "free"},
    }  # fmt: skip
    world.run(3)
    assert set(used) == {world.pbs.registered[0]}


def suspended(world, vnode):
    job = world.pbs.submit(f"1:ncpus=2:vnode={vnode}")
    world.run(2)
    world.pbs._set(job, job_state="S", substate="45", resources_released="")
    return job


def test_a_resume_to_a_mom_that_does_not_answer_does_not_stop_the_link(world):
    job, requested = suspended(world, "n1"), []

    def never(limit_s, call):
        requested.append(world.pbs.now)
        world.pbs.advance(limit_s)

    world.link.requests.within = never
    before = world.parent.words.count("registered")
    world.run(30)
    other = world.pbs.submit("1:ncpus=1:vnode=n2")
    world.run(30)
    assert len(requested) == 1
    assert world.parent.words.count("registered") == before + 1
    assert world.pbs.jobs[other]["substate"] == "42"
    world.link.requests.within = lambda _, call: call()
    world.run(300, 1.0)
    assert world.pbs.jobs[job]["job_state"] == "R"
    assert judge(world.pbs) == []


def test_what_the_service_may_decide_and_this_link_may_not_is_said_once(world, caplog):
    with caplog.at_level("INFO"):
        world.run(2)
        world.new_link()
        world.run(2)
    (line, again) = [line for line in caplog.messages if "leaves out" in line]
    assert line == again
    assert {"share", "resize"} <= set(line.rpartition(": ")[2].split(", "))
    assert "start" not in line.rpartition(": ")[2].split(", ")


def test_of_a_new_job_it_reads_only_that_before_it_asks_and_the_rest_meanwhile(world):
    world.run(2)
    job, before = world.pbs.submit("1:ncpus=1"), []
    world.pbs.calls.clear()
    world.service.meanwhile = lambda: before.extend(world.pbs.calls)
    world.turn()
    assert [call for call in before if call.startswith("stat")] == ["stat_jobs"]
    later = world.pbs.calls[len(before) :]
    run = later.index("run")
    assert {"stat_server", "stat_queues", "stat_vnodes", "stat_jobs"} <= set(later[:run])
    world.turn()
    assert world.pbs.jobs[job]["substate"] == "42"


def test_a_result_that_is_read_while_the_service_decides_is_reported(world):
    outcomes, run = [], world.service.Cycle

    def cycle(request, timeout):
        outcomes.extend((each.job_id, each.outcome) for each in request.fates)
        return run(request, timeout)

    world.service.Cycle = cycle
    job = world.pbs.submit("1:ncpus=1")
    while "asked" not in {what for _, what, _, _ in world.pbs.history}:
        world.turn(0.01)
    world.pbs.submit("1:ncpus=1")
    world.service.meanwhile = lambda: world.pbs.advance(1.0)  # the first job runs then
    world.run(3)
    assert (job, pb.OUTCOME_APPLIED) in outcomes


@pytest.mark.usefixtures("world")
def test_each_of_many_starts_is_a_sign_of_life(monkeypatch):
    world = World({f"n{i}": {"ncpus": "4", "mem": "8gb"} for i in range(30)})
    world.run(2)
    seen, run = [], world.pbs.run

    def slow(*arguments):
        seen.append(len(world.parent.words))
        world.pbs.advance(0.2)
        return run(*arguments)

    monkeypatch.setattr(world.pbs, "run", slow)
    for _ in range(30):
        world.pbs.submit("1:ncpus=4")
    world.run(20)
    assert len(seen) == 30
    assert all(later > before for before, later in zip(seen, seen[4:], strict=False))


@pytest.mark.parametrize("what", ["delete_job", "hold"])
def test_what_happens_while_the_service_decides_is_seen_before_the_start(world, what):
    world.run(2)
    job = world.pbs.submit("1:ncpus=1")
    world.service.meanwhile = lambda: getattr(world.pbs, what)(job)
    world.link.wake.clear()
    world.turn()
    assert world.link.wake.is_set()
    world.run(3)
    assert not [each for each in world.pbs.history if each[1] == "asked"]


def test_a_vnode_that_goes_while_the_service_decides_gets_no_job(world):
    world.run(2)
    world.pbs.submit("4:ncpus=4")

    def offline():
        world.pbs.vnodes["n1"] = {**world.pbs.vnodes["n1"], "state": "offline"}

    world.service.meanwhile = offline
    world.run(3)
    assert not [each for each in world.pbs.history if each[1] == "asked"]


def test_a_server_that_is_lost_while_the_service_decides_gets_its_jobs_later(world):
    world.run(2)
    job = world.pbs.submit("1:ncpus=1")
    world.service.meanwhile = world.pbs.restart
    world.turn()
    assert not [each for each in world.pbs.history if each[1] == "asked"]
    world.run(5)
    assert world.pbs.jobs[job]["substate"] == "42"
    assert judge(world.pbs) == []


def test_counts_and_full_vnodes_are_no_news():
    full = {"state": "job-busy", "resources_assigned": {"ncpus": "4"}, "jobs": "1.srv/0", "a": "b"}
    assert steady(full) == {"state": "free", "a": "b"}
    assert steady({"state": "job-busy,offline"}) == {"state": "offline"}
    assert steady({"state": "job-exclusive", "state_count": "Queued:3"}) == {
        "state": "job-exclusive"
    }


def test_records_of_jobs_that_end_together_are_read_at_once(world):
    world.pbs.server["job_history_enable"] = "True"
    seen, run = [], world.service.Cycle

    def cycle(request, timeout):
        seen.extend((each.id, each.ending) for each in request.ended)
        return run(request, timeout)

    world.service.Cycle = cycle
    jobs = [world.pbs.submit("1:ncpus=1", runs_s=4.0) for _ in range(3)]
    world.run(10)
    assert sorted(seen) == [(job, pb.ENDING_CANCELLED) for job in jobs]
    assert world.pbs.calls.count("stat_ended") == 1
