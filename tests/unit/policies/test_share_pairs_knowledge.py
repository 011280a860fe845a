# SPDX-License-Identifier: Apache-2.0
"""The policy `pairs`: what was seen of pairs, users and guests decides on the next ones."""

from dataclasses import replace

import numpy as np
import pytest

from bridge.extensions.sharing.histories import application
from bridge.extensions.sharing.left_hosts import MAX_TIMES, PAUSE_S
from bridge.extensions.sharing.pair_knowledge import CEILINGS, highest_admissible
from bridge.extensions.sharing.part import shared_of
from bridge.extensions.sharing.switch import NAME as SWITCH
from bridge.extensions.sharing.switch import OFF, off_since_s, stopped, stopped_users, turned_on
from bridge.model.learnt import Learnt
from bridge.ports import State
from schedbridge_contracts.sharing import NOW_S, a_waiting_job
from tests.unit.policies.measured_node import (
    GUEST,
    HOST,
    Machine,
    harmful,
    harmless,
)


def test_the_second_encounter_is_informed_by_the_first():
    machine = Machine(harmful).with_guest()
    machine.step(10)
    assert not machine.guest
    machine.jobs = (a_waiting_job(id="g0", cpus=4),)
    for _ in range(60):
        assert not len(shared_of(machine.step()).guest_starts)


def test_what_was_learnt_is_admissible_as_the_entry_says():
    machine = Machine(harmful).with_guest()
    machine.step(10)
    apps = HOST, GUEST
    assert highest_admissible(machine.known, apps, 0.5, 0.10) is None
    assert highest_admissible(machine.known, apps, 0.5, 3.0) == CEILINGS[-1]


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
        if not machine.guest and len(shared_of(machine.plans[-1]).requeues):
            another_pair()
        if until():
            break
    else:
        raise AssertionError("nothing has ended")
    for _ in range(5):
        assert not len(shared_of(machine.step()).guest_starts)
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
    assert machine.guest or any(len(shared_of(plan).guest_starts) for plan in machine.plans[-10:])


def test_a_user_whose_hosts_are_harmed_ends_sharing_for_himself_alone():
    machine = Machine(harmful)
    harm_again_and_again(machine, ["eve"], lambda: stopped_users(machine.cycles.state) == {"eve"})
    for _ in range(20):
        assert not len(shared_of(machine.step()).guest_starts)
    assert off_since_s(machine.cycles.state) is None
    machine.host = {"id": "other", "name": "other", "user": "ann"}
    machine.jobs = (a_waiting_job(id="g", cpus=4, user="ann"),)
    assert any(len(shared_of(machine.step()).guest_starts) for _ in range(10))
    kept = turned_on(machine.cycles.state.learnt_by(SWITCH))
    assert not stopped_users(State(learnt={SWITCH: kept}))


def test_a_running_guest_leaves_the_host_of_a_stopped_user():
    machine = Machine(harmless).with_guest()
    kept = stopped(Learnt(), ["user"], NOW_S)
    machine.cycles.state = replace(
        machine.cycles.state, learnt={**machine.cycles.state.learnt, SWITCH: kept}
    )
    (reason,) = shared_of(machine.step()).requeues.reasons
    assert "its host's user" in reason


@pytest.mark.parametrize("extra", [{"memory_stall": 0.2}, {"peak_mib": 3900}])
def test_a_guest_that_was_short_of_memory_does_not_come_back_to_its_host(extra):
    machine = Machine(harmless)
    machine.step(4)
    starts = 0
    for _ in range(300):
        machine.jobs = (a_waiting_job(id="g0", cpus=4),)
        machine.extra = extra if machine.guest else {}
        starts += len(shared_of(machine.step()).guest_starts)
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
        if len(shared_of(plan).requeues):
            machine.host = {"id": f"h{machine.now_s}", "name": next(names)}
        if len(shared_of(plan).guest_starts):
            starts.append(machine.now_s)
    assert len(starts) == MAX_TIMES
    pauses = np.diff(starts)
    assert (pauses[1:] >= 1.9 * pauses[:-1]).all()
    assert machine.now_s - starts[-1] > PAUSE_S << (MAX_TIMES - 1)
    machine.jobs = (a_waiting_job(id="g1", cpus=4),)
    assert len(shared_of(machine.step(by_s=20)).guest_starts) == 1
