# SPDX-License-Identifier: Apache-2.0
"""Who is listened to: the newest controller that is alive; nobody is locked out for good."""

import random

import pytest

from bridge.errors import StaleSnapshot
from bridge.rpc.reported.fence import FIRST_LEASE_S, LEASE_S, LONGEST_LEASE_S, Fence
from bridge.rpc.reported.session import Session
from schedbridge_contracts.crosses import each
from tests.unit.rpc.worlds import a_delta, a_full, a_hello

ABSURD = 2**64 - 1


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def a_holder(clock, epoch=5):
    fence = Fence(clock)
    fence.take(epoch)
    fence.reported()
    return fence


def is_refused(fence, epoch):
    try:
        fence.take(epoch)
    except StaleSnapshot:
        return True
    return False


def test_a_newer_one_takes_over_at_once(clock):
    fence = a_holder(clock)
    fence.take(6)
    assert fence.epoch == 6
    with pytest.raises(StaleSnapshot, match="epoch 5 is over"):
        fence.admit(5)


@pytest.mark.parametrize("epoch", [5, 2**32 + 5, 2**53 + 2, 2**63])
def test_which_epoch_is_newer_is_decided_with_all_its_bits(epoch):
    for bit in range(64):
        other, fence = epoch ^ 1 << bit, a_holder(Clock(), epoch)
        assert is_refused(fence, other) is (other < epoch), bit
        assert fence.epoch == max(epoch, other)


def test_an_absurd_epoch_that_says_hello_alone_costs_the_first_lease(clock):
    fence = a_holder(clock)
    fence.take(ABSURD)
    clock.now += FIRST_LEASE_S - 0.1
    fence.take(ABSURD)  # renews nothing
    assert is_refused(fence, 5)
    clock.now += 0.1
    fence.take(5)
    fence.reported()
    assert is_refused(fence, ABSURD)  # it never was of use
    with pytest.raises(StaleSnapshot):
        fence.admit(ABSURD)


def test_one_that_reported_keeps_its_place_for_a_lease_after_its_last_call(clock):
    fence = a_holder(clock, 6)
    for _ in range(10):
        clock.now += LEASE_S - 1
        assert is_refused(fence, 5)
        assert fence.admit(6)
    clock.now += LEASE_S
    fence.take(5)
    assert fence.epoch == 5


def test_who_is_refused_is_told_when_to_come_again(clock):
    fence = a_holder(clock, 6)
    clock.now += 18
    with pytest.raises(StaleSnapshot, match=r"hello again in 42 s, if that one is silent"):
        fence.take(5)
    clock.now += 100
    with pytest.raises(StaleSnapshot, match=r"hello again now"):
        fence.admit(5)  # a report takes nothing over


def test_who_was_silent_and_comes_back_is_waited_for_longer(clock):
    fence = a_holder(clock, 6)
    clock.now += 1000
    fence.take(5)
    fence.reported()
    fence.take(6)  # alive: it calls once in 1,000 s
    fence.reported()
    clock.now += 2999
    assert is_refused(fence, 5)
    clock.now += 1
    fence.take(5)


def test_who_was_refused_all_the_time_was_not_silent(clock):
    fence = a_holder(clock, 5)
    fence.take(6)
    for _ in range(5000):
        fence.reported()
        clock.now += 1
        assert is_refused(fence, 5)
    clock.now += LEASE_S
    fence.take(5)
    fence.reported()
    assert is_refused(fence, 4)
    clock.now += LEASE_S
    fence.take(4)  # not waited for any longer than usual


def test_no_silence_makes_a_lease_endless(clock):
    fence = a_holder(clock, 6)
    clock.now += 1e7
    fence.take(5)
    fence.take(6)
    fence.reported()
    clock.now += LONGEST_LEASE_S
    fence.take(5)


def test_many_epochs_fill_no_memory(clock):
    fence = Fence(clock)
    for epoch in range(1, 10_000):
        fence.take(epoch)
    assert len(fence._past) < 100


@each(seed=range(20))
def test_two_that_live_do_not_alternate(seed):
    """Both call at random, with gaps up to a tick; once the newer has begun, only it is heard."""
    rng, clock = random.Random(seed), Clock()
    fence, sessions = Fence(clock), {7: False, 9: False}
    heard = []
    begins = {7: 0.0, 9: rng.uniform(0, 100)}
    due = dict(begins)
    while clock.now < 1000 + 5000:
        epoch = min(due, key=due.get)
        clock.now = max(clock.now, 1000 + due[epoch])
        due[epoch] += rng.uniform(0.01, 10)
        try:
            if not sessions[epoch]:
                fence.take(epoch)
                sessions[epoch] = True
            elif not fence.admit(epoch):
                sessions[epoch] = False
                continue
            fence.reported()
            heard.append(epoch)
        except StaleSnapshot:
            sessions[epoch] = False
    assert heard == sorted(heard)
    assert heard[-1] == 9


def test_a_session_lets_the_real_controller_in_again(clock):
    session = Session(clock=clock)
    session.greet(a_hello(epoch=5))
    assert session.apply(a_full(epoch=5))
    session.greet(a_hello(epoch=ABSURD))
    with pytest.raises(StaleSnapshot):
        session.apply(a_delta(1, epoch=5))
    clock.now += FIRST_LEASE_S
    with pytest.raises(StaleSnapshot, match="hello again now"):
        session.apply(a_full(epoch=5))
    session.greet(a_hello(epoch=5))
    assert not session.apply(a_delta(1, epoch=5))  # what it said before is forgotten
    assert session.apply(a_full(epoch=5))


def test_a_controller_whose_clock_was_set_back_gets_in(clock):
    session = Session(clock=clock)
    session.greet(a_hello(epoch=2_000_000))
    assert session.apply(a_full(epoch=2_000_000))
    clock.now += LEASE_S  # it has died and is started again, an hour earlier
    session.greet(a_hello(epoch=1_000_000))
    assert session.apply(a_full(epoch=1_000_000))


def test_a_newer_one_that_was_displaced_while_silent_is_told_to_say_hello(clock):
    """Asked for everything, a plugin would send full reports for ever: it has greeted already."""
    fence = a_holder(clock, epoch=6)
    clock.now += LEASE_S + 1
    fence.take(5)
    fence.reported()
    with pytest.raises(StaleSnapshot, match="say hello again"):
        fence.admit(6)
    fence.take(6)
    assert fence.admit(6)


def test_before_any_hello_everything_is_asked_for(clock):
    assert Fence(clock).admit(5) is False
