# SPDX-License-Identifier: Apache-2.0
"""The policy `pairs`: hosts that work at given rates alone, and beside a guest."""

from dataclasses import replace

import numpy as np
import pytest

from bridge.errors import ConfigError
from bridge.model.job import Ending
from bridge.model.learnt import Learnt
from bridge.planning.sharing.histories import application
from bridge.planning.sharing.left_hosts import MOST_TIMES, PAUSE_S
from bridge.planning.sharing.orders import FLOOR
from bridge.planning.sharing.pair_knowledge import CEILINGS, Entry, highest_admissible, pair_key
from bridge.planning.sharing.switch import NAME as SWITCH
from bridge.planning.sharing.switch import OFF, off_since_s, stopped, stopped_users, turned_on
from bridge.policies.share.pairs import NAME
from bridge.ports import State
from bridge.registry import build, parse_policy
from schedbridge_contracts.sharing import NOW_S, SHARING, a_guest, a_host, a_waiting_job, a_world
from tests.unit.policies.test_share import Cycles, ended, quota_of

STEP_S = 5
HOST, GUEST = application("user", "host", 1), application("user", "job", 1)


class Machine:
    """One node: a host whose work is measured every `STEP_S`, and at times a guest.

    The host uses 2 CPUs alone, or what `own` says of the instant; beside a guest its rate is
    divided by 1 + what `harm` says of the guest's quota as a share of the node. A guest that does
    the same harm at any quota is bound by input and output: its quota does not change its CPU time.
    The host tells no progress unless `progress`.
    """

    def __init__(self, harm, *, share="pairs", site=SHARING, noise=0.0, seed=1, host=None):
        self.cycles = Cycles(share, site, seed=seed)
        self.harm, self.noise, self.rng = harm, noise, np.random.default_rng(seed)
        self.host = host or {}
        self.now_s, self.work_s, self.guest_s = NOW_S, 100.0, 0.0
        self.guest, self.quota = False, 0.0
        self.guest_name = "job"
        self.guest_id, self.began_s = "g0", NOW_S - 50
        self.jobs = ()
        self.extra = {}
        self.plans = []
        self.own = lambda _: 2.0
        self.io_bound = 0 < self.harm(FLOOR) == self.harm(1.0)

    def step(self, steps=1, by_s=STEP_S):
        """Lets time pass and plans; returns the last plan."""
        for _ in range(steps):
            slowed = 1 + (self.harm(self.quota) if self.guest else 0.0)
            noise = 1 + self.noise * float(self.rng.standard_normal())
            self.work_s += by_s * self.own(self.now_s) * noise / slowed
            self.guest_s += by_s * self.guest_cpus() if self.guest else 0.0
            self.now_s += by_s
            self.plans.append(self.cycles.run(self.world()))
            self._obey(self.plans[-1])
        return self.plans[-1]

    def guest_cpus(self):
        return 0.1 if self.io_bound else 4 * self.quota

    def world(self):
        measured = {"start_s": NOW_S - 100, "end_s": NOW_S + 9000, "measured_s": self.now_s}
        host = measured | {"busy_cpus": 2.0, "cpu_s": self.work_s} | self.host | self.extra
        running = [a_host(**host)]
        if self.guest:
            running.append(
                a_guest(id=self.guest_id, name=self.guest_name, cpu_s=self.guest_s,
                        end_s=self.now_s + 500, measured_s=self.now_s, start_s=self.began_s,
                        user=self.host.get("user", "user"), host_id=self.host.get("id", "h0"))
            )  # fmt: skip
        return a_world(running, [] if self.guest else self.jobs, nodes=1, now_s=self.now_s)

    def _obey(self, plan):
        quotas = quota_of(plan)
        if len(plan.guest_starts):
            self.guest, self.guest_s, self.began_s = True, 0.0, self.now_s
            self.guest_id = str(self.jobs[0].id) if self.jobs else self.guest_id
        if self.guest:
            self.quota = quotas[self.guest_id] / 4000
        if len(plan.requeues):
            self.guest = False

    def with_guest(self):
        """Measures the host alone, then lets a guest start."""
        self.step(4)
        self.jobs = (a_waiting_job(id="g0", cpus=4),)
        assert len(self.step().guest_starts) == 1
        self.jobs = ()
        return self

    def progress(self, done, by, steps):
        """As `step`, and the host's application tells its progress."""
        for _ in range(steps):
            done += by
            self.extra = {"progress": done}
            self.step()

    @property
    def known(self):
        return self.cycles.state.learnt_by(NAME).known


def harmless(quota):
    return 0.0


def harmful(quota):
    return 0.5


def by_quota(quota):
    """Nothing at the floor, much at a high quota."""
    return 0.0 if quota <= 0.1 else 0.4


def test_no_guest_before_the_host_was_measured_alone():
    machine = Machine(harmless)
    machine.jobs = (a_waiting_job(id="g0"),)
    assert not len(machine.step().guest_starts)
    assert machine.plans[-1].again_s <= machine.now_s + 30


@pytest.mark.parametrize(("bound", "soon"), [(0.0, False), (0.005, False), (0.05, True)])
def test_it_does_not_plan_often_for_a_host_that_can_get_no_guest(bound, soon):
    site = replace(SHARING, coscheduling=(replace(SHARING.coscheduling[0], max_slowdown=bound),))
    machine = Machine(harmless, site=site)
    machine.extra = {"start_s": NOW_S}
    machine.jobs = (a_waiting_job(id="g0", cpus=4),)
    for _ in range(3):
        assert not len(machine.step().guest_starts)
        assert (machine.plans[-1].again_s <= machine.now_s + STEP_S) == soon
    assert machine.plans[-1].again_s <= machine.now_s + 30


def test_it_does_not_plan_often_for_a_host_that_uses_no_cpu():
    machine = Machine(harmless)
    machine.jobs = (a_waiting_job(id="g0", cpus=4),)
    machine.extra = {"cpu_s": 5.0}
    machine.step(20)
    assert machine.plans[0].again_s == machine.now_s - 19 * STEP_S + STEP_S
    assert machine.plans[-1].again_s == machine.now_s + 30


@pytest.mark.parametrize(
    ("started_s", "bound", "steps"),
    [(NOW_S, 0.1, 3), (NOW_S, 0.2, 2), (NOW_S, 0.05, 7), (NOW_S - 300, 0.1, 3)],
    ids=["harm within the bound", "second measurement", "low bound", "its start was not seen"],
)
def test_a_host_gets_its_guest_when_harm_until_it_is_detected_is_within_the_bound(
    started_s, bound, steps
):
    """At most 0.2 of 10 s is lost: 2 s must be within the bound of t + 8 s."""
    machine = Machine(harmless, host={"max_slowdown_permille": round(1000 * bound)})
    machine.work_s, machine.extra = 0.0, {"start_s": started_s}
    machine.jobs = (a_waiting_job(id="g0", cpus=4),)
    for _ in range(steps - 1):
        assert not len(machine.step().guest_starts)
        assert machine.plans[-1].again_s <= machine.now_s + STEP_S
    assert len(machine.step().guest_starts) == 1


def test_a_guest_starts_at_the_least_weight_under_a_high_ceiling():
    machine = Machine(harmless).with_guest()
    plan = machine.plans[-1]
    assert quota_of(plan) == {"g0": 4000}
    assert plan.quotas.weight.tolist() == [1]
    assert plan.again_s == machine.now_s + 5


def test_a_guest_that_does_no_harm_stays_and_the_pair_is_known():
    machine = Machine(harmless, noise=0.03).with_guest()
    machine.step(150)
    assert machine.guest
    assert machine.quota == 1.0
    machine.guest = False
    machine.step()
    entry = Entry.of_numbers(machine.known.get(pair_key(HOST, GUEST)))
    assert entry.seen[-1].count >= 2
    assert abs(entry.seen[-1].harm) < 0.05
    assert entry.guest_cpus == pytest.approx(4.0, rel=0.05)


def test_a_guest_that_harms_is_held_to_the_floor_within_two_measurements():
    machine = Machine(by_quota).with_guest()
    began_s = machine.now_s
    while machine.quota > FLOOR:
        machine.step()
        assert machine.now_s - began_s <= 20
    assert machine.guest
    assert machine.plans[-1].quotas.milli_cpus_per_node.tolist() == [200]


@pytest.mark.parametrize("renamed", ["guest", "host"])
def test_a_job_that_is_renamed_again_and_again_is_bound_all_the_same(renamed):
    machine = Machine(harmful).with_guest()
    began_s = machine.now_s
    while machine.guest:
        name = f"app{'x' * (machine.now_s % 7)}{machine.now_s}y"
        if renamed == "guest":
            machine.guest_name = name
        else:
            machine.host = {"name": name}
        machine.step()
        assert machine.now_s - began_s <= 40


def test_below_the_floor_it_gets_a_lower_ceiling_after_a_while():
    machine = Machine(by_quota).with_guest()
    seen = []
    for _ in range(120):
        machine.step()
        if machine.guest and machine.quota > FLOOR and machine.quota not in seen:
            seen.append(machine.quota)
    assert seen == sorted(seen, reverse=True)
    assert not machine.guest or machine.quota <= 0.1
    late = machine.plans[-30:]
    assert all(harm == 0 for harm in (by_quota(quota_of(plan).get("g0", 0) / 4000)
                                      for plan in late))  # fmt: skip


def test_a_guest_that_harms_even_at_the_floor_is_requeued_and_told_why():
    machine = Machine(harmful).with_guest()
    began_s = machine.now_s
    while machine.guest:
        plan = machine.step()
        assert machine.now_s - began_s <= 40
    (reason,) = plan.requeues.reasons
    assert reason.startswith("it slows its host down by 50%")
    assert "10% are allowed" in reason
    assert len(reason) <= 160


def test_the_second_encounter_is_informed_by_the_first():
    machine = Machine(harmful).with_guest()
    machine.step(10)
    assert not machine.guest
    machine.jobs = (a_waiting_job(id="g0", cpus=4),)
    for _ in range(60):
        assert not len(machine.step().guest_starts)


def test_a_host_states_its_own_bound():
    machine = Machine(harmful, host={"max_slowdown_permille": 900}).with_guest()
    machine.step(60)
    assert machine.guest
    assert machine.quota == 1.0


@pytest.mark.parametrize(("compare", "most"), [(False, 4), (True, 0)])
def test_noise_alone_costs_few_guests_their_ceiling(compare, most):
    """Of 20 guests that do no harm at 5 % of noise, watched for 5 minutes each."""
    lowered = 0
    for seed in range(20):
        share = {"name": "pairs", "compare": compare}
        machine = Machine(harmless, share=share, noise=0.05, seed=seed).with_guest()
        machine.step(60)
        quotas = [plan.quotas.milli_cpus_per_node.tolist() for plan in machine.plans[5:]]
        lowered += any(each not in ([200], [4000]) for each in quotas)
        if compare:
            assert quotas.count([200]) <= 30
        else:
            lowered += [200] in quotas
    assert lowered <= most


def test_harm_above_the_bound_is_always_found():
    for seed in range(20):
        machine = Machine(lambda _: 0.35, noise=0.05, seed=seed).with_guest()
        machine.step(20)
        assert not machine.guest


def test_progress_goes_before_cpu_time():
    """The CPU time of the host does not fall, but its progress does: memory is the bottleneck."""
    machine = Machine(harmless)
    machine.io_bound = True
    machine.jobs = (a_waiting_job(id="g0", cpus=4),)
    machine.progress(0.1, 0.01, 6)
    assert machine.guest
    machine.jobs = ()
    machine.progress(0.16, 0.005, 8)
    assert not machine.guest
    (gone,) = (plan for plan in machine.plans if len(plan.requeues))
    assert gone.requeues.reasons[0].startswith("it slows its host down by 100%")


@pytest.mark.parametrize("runs", [0, 5], ids=["unknown application", "known application"])
def test_progress_that_begins_beside_the_guest_hides_no_harm(runs):
    machine = Machine(harmful)
    for _ in range(runs):
        alone = a_host(id="x", start_s=NOW_S - 300, cpu_s=600.0, measured_s=NOW_S)
        machine.cycles.run(a_world([alone], nodes=1))
        machine.cycles.run(a_world([], nodes=1), ended(("x", 300, 500, Ending.COMPLETED)))
    machine.with_guest().progress(0.0, 0.005, 8)
    assert not machine.guest


def test_progress_that_is_told_no_more_hides_no_harm():
    machine = Machine(harmful)
    machine.jobs = (a_waiting_job(id="g0", cpus=4),)
    machine.progress(0.1, 0.01, 6)
    assert machine.guest
    machine.jobs, machine.extra = (), {}
    machine.step(8)
    assert not machine.guest


@pytest.mark.parametrize("progress", [False, True])
def test_with_progress_only_no_other_job_is_a_host(progress):
    machine = Machine(harmless, share={"name": "pairs", "progress_only": True})
    machine.jobs = (a_waiting_job(id="g0", cpus=4),)
    if progress:
        machine.progress(0.1, 0.01, 8)
    else:
        machine.step(8)
    assert machine.guest == progress


def test_with_progress_only_a_host_that_reports_none_any_more_loses_its_guest():
    machine = Machine(harmless, share={"name": "pairs", "progress_only": True})
    machine.jobs = (a_waiting_job(id="g0", cpus=4),)
    machine.progress(0.1, 0.01, 6)
    assert machine.guest
    machine.jobs, machine.extra = (), {}
    machine.step(8)
    assert not machine.guest


@pytest.mark.parametrize("every", [1, 12], ids=["it stands at 0", "it moves once a minute"])
def test_progress_that_says_nothing_of_seconds_leaves_cpu_time_in_force(every):
    machine = Machine(harmful)
    machine.jobs = (a_waiting_job(id="g0", cpus=4),)
    for step in range(40):
        machine.extra = {"progress": 0.0 if every == 1 else 0.02 * (step // every)}
        machine.step()
        if machine.guest:
            machine.jobs = ()
    assert any(len(plan.guest_starts) for plan in machine.plans)
    assert not machine.guest


def test_progress_alone_counts_from_its_first_change():
    """The start-up without progress does not make the rate alone look small."""
    machine = Machine(harmless)
    machine.io_bound = True
    machine.progress(0.0, 0.0, 40)
    machine.progress(0.0, 0.01, 10)
    machine.jobs = (a_waiting_job(id="g0", cpus=4),)
    machine.progress(0.10, 0.01, 1)
    assert machine.guest
    machine.jobs = ()
    machine.progress(0.11, 0.005, 8)
    assert not machine.guest


def test_a_host_that_uses_no_cpu_gets_no_guest():
    """Its slowdown could not be known."""
    machine = Machine(harmless)
    machine.jobs = (a_waiting_job(id="g0", cpus=4),)
    machine.extra = {"cpu_s": 5.0}
    for _ in range(20):
        assert not len(machine.step().guest_starts)


def test_a_guest_leaves_when_the_slowdown_stays_unknown():
    """At first it is held to the floor; a short gap changes nothing."""
    machine = Machine(harmless).with_guest()
    machine.extra = {"cpu_s": -1.0}
    machine.step(2)
    machine.extra = {}
    machine.step(3)
    assert machine.quota == 1.0
    machine.extra = {"cpu_s": -1.0}
    quotas = []
    while machine.guest:
        plan = machine.step()
        quotas.append(machine.quota)
        assert len(quotas) < 10
    assert FLOOR in quotas
    assert quotas[0] == 1.0
    assert "cannot be measured" in plan.requeues.reasons[0]


def test_a_guest_taken_over_beside_an_unknown_host_leaves():
    """As after a restart: the rate alone of this run is lost."""
    machine = Machine(harmless)
    machine.guest = True
    machine.step(10)
    assert not machine.guest


def test_a_host_that_should_have_ended_sends_its_guest_away():
    """Alone it takes 300 s. Its CPU time does not fall beside the guest, but it does not end."""
    machine = Machine(harmless)
    for _ in range(4):
        alone = a_host(id="x", start_s=NOW_S - 300, cpu_s=600.0, measured_s=NOW_S)
        machine.cycles.run(a_world([alone], nodes=1))
        machine.cycles.run(a_world([], nodes=1), ended(("x", 300, 500, Ending.COMPLETED)))
    machine.with_guest()
    began_s = machine.now_s
    while machine.guest:
        machine.step()
        assert machine.now_s - began_s < 300
    assert machine.now_s - (NOW_S - 100) > 300 * 1.05
    (gone,) = (plan for plan in machine.plans if len(plan.requeues))
    assert "slows its host down" in gone.requeues.reasons[0]


def test_a_host_that_is_not_measured_any_more_holds_its_guest_to_the_floor():
    machine = Machine(harmless).with_guest()
    machine.step(3)
    machine.extra = {"measured_s": machine.now_s - 60}
    assert machine.step().quotas.milli_cpus_per_node.tolist() == [200]
    assert not len(machine.plans[-1].requeues)
    machine.extra = {}
    assert machine.step().quotas.milli_cpus_per_node.tolist() == [4000]


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        ({"memory_stall": 0.2}, "memory is short"),
        ({"peak_mib": 3900}, "do not fit"),
    ],
)
def test_memory_that_is_short_sends_the_guest_away(extra, words):
    machine = Machine(harmless).with_guest()
    machine.step(2)
    machine.extra = extra
    plan = machine.step()
    assert words in plan.requeues.reasons[0]
    assert plan.quotas.milli_cpus_per_node.tolist() == [200]


def test_a_host_that_would_not_end_within_its_limit_is_left_alone():
    """At 1 % in 5 s it needs 450 s from the start; 220 s are left."""
    machine = Machine(harmless, host={"end_s": NOW_S + 220})
    machine.jobs = (a_waiting_job(id="g0", cpus=4, limit_s=50),)
    machine.progress(0.1, 0.01, 10)
    assert not any(len(plan.guest_starts) for plan in machine.plans)


@pytest.mark.parametrize(
    ("keep_limits", "runs", "progress", "starts"),
    [
        (False, 0, False, True),
        (True, 0, False, False),
        (True, 2, False, False),
        (True, 3, False, True),
        (True, 0, True, True),
    ],
)
def test_with_limits_kept_a_host_of_unknown_need_gets_no_guest(keep_limits, runs, progress, starts):
    machine = Machine(harmless, share={"name": "pairs", "keep_limits": keep_limits})
    for _ in range(runs):
        alone = a_host(id="x", start_s=NOW_S - 300, cpu_s=600.0, measured_s=NOW_S)
        machine.cycles.run(a_world([alone], nodes=1))
        machine.cycles.run(a_world([], nodes=1), ended(("x", 300, 500, Ending.COMPLETED)))
    machine.jobs = (a_waiting_job(id="g0", cpus=4),)
    for step in range(12):
        machine.extra = {"progress": 0.1 + 0.01 * step} if progress else {}
        machine.step()
    assert any(len(plan.guest_starts) for plan in machine.plans) == starts


@pytest.mark.parametrize(("keep_limits", "used_s", "leaves"), [
    (True, 800, True), (True, 640, False), (False, 800, False),
])  # fmt: skip
def test_with_limits_kept_a_guest_leaves_a_host_that_needs_more_than_its_runs_alone(
    keep_limits, used_s, leaves
):
    """Three runs alone took 600 s of CPU time each; 5 % of noise make at most 657 s."""
    machine = Machine(harmless, share={"name": "pairs", "keep_limits": keep_limits})
    for _ in range(3):
        alone = a_host(id="x", start_s=NOW_S - 300, cpu_s=600.0, measured_s=NOW_S)
        machine.cycles.run(a_world([alone], nodes=1))
        machine.cycles.run(a_world([], nodes=1), ended(("x", 300, 500, Ending.COMPLETED)))
    machine.jobs = (a_waiting_job(id="g0", cpus=4),)
    while not machine.guest:
        machine.step()
    machine.jobs = ()
    machine.work_s = float(used_s)
    machine.plans.clear()
    machine.step()
    reasons = [reason for plan in machine.plans for reason in plan.requeues.reasons]
    assert any("within its time limit" in reason for reason in reasons) == leaves


def test_a_guest_leaves_a_host_that_it_would_keep_from_ending_in_time():
    site = replace(SHARING, coscheduling=(replace(SHARING.coscheduling[0], max_slowdown=1.0),))
    machine = Machine(harmless, site=site, host={"end_s": NOW_S + 600})
    machine.jobs = (a_waiting_job(id="g0", cpus=4, limit_s=50),)
    done = 0.5
    while not machine.guest:
        machine.progress(done, 0.01, 1)
        done += 0.01
    machine.jobs = ()
    machine.progress(done, 0.001, 5)
    (gone,) = (plan for plan in machine.plans if len(plan.requeues))
    assert "would not end within its time limit" in gone.requeues.reasons[0]


def test_the_guest_that_gets_most_of_what_it_wants_is_taken():
    """The host leaves 2 of 4 CPUs: a job known to use one goes before one that wants all."""
    machine = Machine(harmless)
    alone = a_host(id="x", name="small", cpu_s=100.0, measured_s=NOW_S, start_s=NOW_S - 100)
    machine.cycles.run(a_world([alone], nodes=1))
    done = replace(ended(("x", 100, 500, Ending.COMPLETED)))
    machine.cycles.run(a_world([], nodes=1), done)
    machine.step(4)
    machine.jobs = (a_waiting_job(id="g1", cpus=4), a_waiting_job(id="g2", cpus=4))
    world = machine.world()
    jobs = world.jobs.with_columns(name=np.array(["big", "small7"], dtype=object))
    machine.now_s += STEP_S
    world = replace(machine.world(), jobs=jobs)
    plan = machine.cycles.run(world)
    (row,) = plan.guest_starts
    assert world.jobs.id[plan.job[row]] == "g2"


def harm_again_and_again(machine, users, until):
    """Another pair after each one that was parted, of one of these users after the other."""
    names = (f"app{a}{b}" for a in "abcdefghij" for b in "abcdefghij")
    guests = 0

    def another_pair():
        nonlocal guests
        guests += 1
        user = users[guests % len(users)]
        machine.host = {"id": f"h{guests}", "name": next(names), "user": user}
        machine.jobs = (a_waiting_job(id=f"g{guests}", cpus=4, user=user),)

    another_pair()
    for _ in range(600):
        machine.step()
        if not machine.guest and len(machine.plans[-1].requeues):
            another_pair()
        if until():
            break
    else:
        raise AssertionError("nothing has ended")
    for _ in range(5):
        assert not len(machine.step().guest_starts)
    another_pair()
    return another_pair


def test_sharing_ends_on_the_whole_site_when_hosts_are_harmed_on_the_mean():
    machine = Machine(harmful)
    known = lambda: machine.cycles.state.learnt_by(SWITCH).known  # noqa: E731
    another_pair = harm_again_and_again(machine, ["ann", "bob", "eve"], lambda: OFF in known())
    assert known()[OFF][1] == 1
    state = machine.cycles.state
    kept = turned_on(state.learnt_by(SWITCH))
    machine.cycles.state = replace(state, learnt={**state.learnt, SWITCH: kept})
    another_pair()
    for _ in range(10):
        machine.step()
    assert machine.guest or any(len(plan.guest_starts) for plan in machine.plans[-10:])


def test_a_user_whose_hosts_are_harmed_ends_sharing_for_himself_alone():
    machine = Machine(harmful)
    harm_again_and_again(machine, ["eve"], lambda: stopped_users(machine.cycles.state) == {"eve"})
    for _ in range(20):
        assert not len(machine.step().guest_starts)
    assert off_since_s(machine.cycles.state) is None
    machine.host = {"id": "other", "name": "other", "user": "ann"}
    machine.jobs = (a_waiting_job(id="g", cpus=4, user="ann"),)
    assert any(len(machine.step().guest_starts) for _ in range(10))
    kept = turned_on(machine.cycles.state.learnt_by(SWITCH))
    assert not stopped_users(State(learnt={SWITCH: kept}))


def test_a_running_guest_leaves_the_host_of_a_stopped_user():
    machine = Machine(harmless).with_guest()
    kept = stopped(Learnt(), ["user"], NOW_S)
    machine.cycles.state = replace(
        machine.cycles.state, learnt={**machine.cycles.state.learnt, SWITCH: kept}
    )
    (reason,) = machine.step().requeues.reasons
    assert "its host's user" in reason


@pytest.mark.parametrize("extra", [{"memory_stall": 0.2}, {"peak_mib": 3900}])
def test_a_guest_that_was_short_of_memory_does_not_come_back_to_its_host(extra):
    machine = Machine(harmless)
    machine.step(4)
    starts = 0
    for _ in range(300):
        machine.jobs = (a_waiting_job(id="g0", cpus=4),)
        machine.extra = extra if machine.guest else {}
        starts += len(machine.step().guest_starts)
    assert starts == 1
    assert highest_admissible(machine.known, (HOST, GUEST), 0.1, 0.5) is None
    other = application("user", "other", 1)  # beside which nothing was seen
    assert highest_admissible(machine.known, (HOST, other), 0.1, 0.1) is not None


def test_a_guest_that_is_sent_away_everywhere_stops_being_one():
    """Beside ever other applications, of which nothing is known; another job is a guest still."""
    machine = Machine(harmless)
    starts = []
    names = iter(f"app{a}{b}{c}" for a in "abcdefgh" for b in "abcdefgh" for c in "abcdefgh")
    for _ in range(560):
        if not machine.guest:
            machine.jobs = (a_waiting_job(id="g0", cpus=4),)
        machine.extra = {"memory_stall": 0.2} if machine.guest else {}
        machine.extra["end_s"] = machine.now_s + 9000
        plan = machine.step(by_s=20)
        if len(plan.requeues):
            machine.host = {"id": f"h{machine.now_s}", "name": next(names)}
        if len(plan.guest_starts):
            starts.append(machine.now_s)
    assert len(starts) == MOST_TIMES
    pauses = np.diff(starts)
    assert (pauses[1:] >= 1.9 * pauses[:-1]).all()
    assert machine.now_s - starts[-1] > PAUSE_S << (MOST_TIMES - 1)
    machine.jobs = (a_waiting_job(id="g1", cpus=4),)
    assert len(machine.step(by_s=20).guest_starts) == 1


def test_an_unknown_running_guest_is_taken_over():
    """Another policy started it, or the service was restarted."""
    machine = Machine(harmless)
    machine.step(3)
    machine.guest = True
    plan = machine.step()
    assert plan.quotas.id.tolist() == ["g0"]
    assert plan.quotas.milli_cpus_per_node[0] > 200


def test_what_was_learnt_is_admissible_as_the_entry_says():
    machine = Machine(harmful).with_guest()
    machine.step(10)
    apps = HOST, GUEST
    assert highest_admissible(machine.known, apps, 0.5, 0.10) is None
    assert highest_admissible(machine.known, apps, 0.5, 3.0) == CEILINGS[-1]


@pytest.mark.parametrize("share", ["pairs", "asax", "static-half"])
@pytest.mark.parametrize("name", ["cpu_s", "busy_cpus", "progress", "memory_stall"])
def test_absurd_measurements_end_nothing(share, name):
    """An agent or an application says what it likes; plans are made all the same, and kept."""
    for value in (np.nan, np.inf, -np.inf, 1e300, 1e12, -7.0):
        machine = Machine(harmless, share=share)
        machine.jobs = (a_waiting_job(id="g0", cpus=4),)
        for at in range(12):
            machine.extra = {name: value} if at % 3 else {}
            machine.guest |= at == 6
            machine.step()
        gone = ended(("h0", 100, 500, Ending.COMPLETED))
        machine.cycles.run(a_world([], nodes=1), gone)
        numbers = machine.known.values()
        assert all(abs(number) < 1 << 63 for each in numbers for number in each)


@pytest.mark.parametrize(
    "parameters",
    [{"most_candidates": 0}, {"least_share": 2.0}, {"calm_s": 1}, {"watch_s": 0}],
)
def test_impossible_parameters_are_refused(parameters):
    (name,) = parameters
    with pytest.raises(ConfigError, match=name):
        build(parse_policy({"preset": "easy", "share": {"name": "pairs", **parameters}}))
