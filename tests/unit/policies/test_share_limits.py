# SPDX-License-Identifier: Apache-2.0
"""The policy `pairs`: time limits of hosts are lengthened by what guests have cost them."""

import numpy as np
import pytest

from bridge.extensions.sharing.lost_time import NEAR_S
from bridge.extensions.sharing.part import shared_of
from bridge.units import NEVER
from schedbridge_contracts.builders import a_reservation
from schedbridge_contracts.sharing import NOW_S, a_host, a_waiting_job, a_world
from tests.unit.policies.measured_node import STEP_S, Machine, harmless
from tests.unit.policies.test_share import Cycles

LONG_S = 9000
"""The host's own limit, after `NOW_S`."""


class Limited(Machine):
    """A controller that counts the time with guests and lengthens limits as the plugin does."""

    def __init__(self, harm, *, extendable=True, **settings):
        super().__init__(harm, **settings)
        self.extendable = extendable
        self.own_end_s = self.host.get("end_s", NOW_S + LONG_S)
        self.past_s = self.since_s = self.added_s = 0

    def world(self):
        if self.guest and not self.since_s:
            self.since_s = self.began_s
        if not self.guest and self.since_s:
            self.past_s, self.since_s = self.hosted_s, 0
        self.extra = self.extra | {
            "hosted_s": self.past_s, "hosted_since_s": self.since_s, "extended_s": self.added_s,
            "extendable": self.extendable, "end_s": self.own_end_s + self.added_s,
        }  # fmt: skip
        return super().world()

    @property
    def hosted_s(self):
        return self.past_s + (self.now_s - self.since_s if self.since_s else 0)

    def _obey(self, plan):
        for job_id, total_s in zip(
            shared_of(plan).extensions.id.tolist(),
            shared_of(plan).extensions.total_s.tolist(),
            strict=True,
        ):
            assert job_id == "h0"
            assert 0 < total_s <= self.hosted_s
            assert -(-total_s // 60) * 60 > self.added_s  # nothing is sent in vain
            self.added_s = -(-total_s // 60) * 60
        super()._obey(plan)


@pytest.mark.parametrize("harm", [0.0, 0.05, 0.09])
def test_the_limit_grows_with_what_the_guest_costs(harm):
    machine = Limited(lambda _: harm, noise=0.01).with_guest()
    machine.step(240)
    assert machine.guest
    lost_s = machine.hosted_s * harm / (1 + harm)
    assert lost_s <= machine.added_s <= lost_s + 0.08 * machine.hosted_s + 90


def test_time_of_unknown_slowdown_counts_as_a_whole():
    """As after a restart of the service: nothing is known of the time before."""
    machine = Limited(harmless, host={"start_s": NOW_S - 1000}).with_guest()
    machine.past_s = 600
    machine.step()
    assert machine.added_s >= 600


def test_a_host_near_its_limit_gets_all_its_time_with_guests():
    """The loss that is measured may be less than the true one."""
    machine = Limited(harmless, host={"end_s": NOW_S + 1000}).with_guest()
    while machine.guest:
        plan = machine.step()
        assert machine.now_s <= NOW_S + 1000 + STEP_S
    assert "would not end within its time limit" in shared_of(plan).requeues.reasons[0]
    assert machine.now_s >= NOW_S + 1000  # it may stay until then
    for _ in range(1000):
        machine.step()
        if machine.now_s >= machine.own_end_s + machine.added_s:
            break
    assert machine.hosted_s <= machine.added_s < machine.hosted_s + 60
    assert machine.now_s >= NOW_S + 1000 + machine.hosted_s


def test_the_policy_is_asked_before_a_host_reaches_its_limit():
    """Its guests have left, and nothing else happens."""
    had = {"hosted_s": 300, "extended_s": 60, "end_s": NOW_S + 5000, "start_s": NOW_S - 1000}
    cycles = Cycles("pairs")
    world = a_world([a_host(**had)], nodes=1)
    plan = cycles.run(world)
    assert plan.again_s <= NOW_S + 5000 - NEAR_S
    had |= {"measured_s": NOW_S + 5000 - NEAR_S}
    plan = cycles.run(a_world([a_host(**had)], nodes=1, now_s=NOW_S + 5000 - NEAR_S))
    assert shared_of(plan).extensions.total_s.tolist() == [300]
    had |= {"extended_s": 300, "end_s": NOW_S + 5240}
    plan = cycles.run(a_world([a_host(**had)], nodes=1, now_s=NOW_S + 5000 - NEAR_S))
    assert not len(shared_of(plan).extensions)
    assert plan.again_s == NEVER


def test_switched_off_hosts_still_get_what_they_have_lost():
    machine = Limited(harmless, host={"start_s": NOW_S - 1000}).with_guest()
    machine.past_s = 600
    machine.cycles.site = machine.cycles.site.__class__()  # nobody may share any more
    machine.step(2)
    assert not machine.guest
    assert machine.added_s >= 600


@pytest.mark.parametrize(
    ("share", "extendable", "reserved", "days", "starts"),
    [
        ({}, True, False, 0, True),
        ({}, False, False, 0, False),
        ({}, False, False, 365, True),  # it has no limit
        ({}, True, True, 0, False),
        ({"lengthen_limits": False}, False, False, 0, True),
        ({"keep_limits": True}, True, False, 0, False),
    ],
)
def test_where_a_limit_cannot_be_lengthened_the_need_must_be_known(
    share, extendable, reserved, days, starts
):
    cycles = Cycles({"name": "pairs", **share})
    started = 0
    for step in range(12):
        now_s = NOW_S + 5 * step
        host = a_host(
            cpu_s=100.0 + 10 * step, busy_cpus=2.0, measured_s=now_s, extendable=extendable,
            end_s=NOW_S + 1000 + days * 86_400,
        )  # fmt: skip
        world = a_world([host], [a_waiting_job(id="g0", cpus=4)], nodes=1, now_s=now_s)
        if reserved:  # behind its limit, but not behind what an extension may be
            there = a_reservation([0], NOW_S + 1050, NOW_S + 2000)
            world = world.with_tables(reservations=(there,))
        started += len(shared_of(cycles.run(world)).guest_starts)
    assert (started > 0) == starts


def test_without_the_parameter_nothing_is_lengthened():
    machine = Limited(harmless, share={"name": "pairs", "lengthen_limits": False}).with_guest()
    machine.past_s = 600
    machine.step(10)
    assert not machine.added_s
    assert machine.plans[-1].again_s < NEVER


def test_another_run_of_the_same_job_begins_without_a_loss():
    machine = Limited(harmless).with_guest()
    machine.step(30)
    counted = [
        numbers for key, numbers in machine.cycles.state.learnt_by("pairs").running.items()
        if key.startswith("lost")
    ]  # fmt: skip
    ((_, counted_s, _),) = counted
    assert counted_s > 100
    had = {"hosted_s": 10, "end_s": machine.now_s + LONG_S, "measured_s": machine.now_s}
    had |= {"start_s": machine.now_s - 20}
    plan = machine.cycles.run(a_world([a_host(**had)], nodes=1, now_s=machine.now_s))
    assert shared_of(plan).extensions.total_s.tolist() == [10]
    assert np.all(shared_of(plan).extensions.id == "h0")


def test_an_end_of_a_guest_that_the_controller_noticed_late_costs_nothing():
    """Then the time with guests is shorter than what was counted."""
    machine = Limited(harmless).with_guest()
    machine.step(60)
    lost_s = machine.added_s
    had = {"hosted_s": machine.hosted_s - 100, "end_s": machine.now_s + LONG_S}
    had |= {"start_s": int(machine.world().running.start_s[0]), "extended_s": lost_s}
    plan = machine.cycles.run(
        a_world([a_host(**had, measured_s=machine.now_s)], nodes=1, now_s=machine.now_s)
    )
    assert not len(shared_of(plan).extensions)


@pytest.mark.parametrize("extended_s", [0, 60, 600])
@pytest.mark.parametrize("reserved_s", [3000, 8000])
def test_a_reservation_takes_away_no_extension_that_fits_before_it(extended_s, reserved_s):
    """The controller bounds what reaches into it."""
    had = {"start_s": NOW_S - 3500, "end_s": NOW_S + 100 + extended_s, "hosted_s": 900}
    had |= {"extended_s": extended_s, "measured_s": NOW_S + extended_s}
    world = a_world([a_host(**had)], nodes=1, now_s=NOW_S + extended_s).with_tables(
        reservations=(a_reservation([0], NOW_S + reserved_s, NOW_S + reserved_s + 600),)
    )
    plan = Cycles("pairs").run(world)
    assert shared_of(plan).extensions.total_s.tolist() == [900]
