# SPDX-License-Identifier: Apache-2.0
"""The policy `pairs`: a guest that slows its host down beyond the bound is held, then sent away."""

import pytest

from bridge.extensions.sharing.orders import FLOOR
from bridge.extensions.sharing.pair_knowledge import Entry, pair_key
from bridge.extensions.sharing.part import shared_of
from bridge.model.job import Ending
from schedbridge_contracts.sharing import NOW_S, a_host, a_world
from tests.unit.policies.measured_node import GUEST, HOST, Machine, by_quota, harmful, harmless
from tests.unit.policies.test_share import ended, quota_of


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
    assert shared_of(machine.plans[-1]).quotas.milli_cpus_per_node.tolist() == [200]


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
    (reason,) = shared_of(plan).requeues.reasons
    assert reason.startswith("it slows its host down by 50%")
    assert "10% are allowed" in reason
    assert len(reason) <= 160


def test_a_host_states_its_own_bound():
    machine = Machine(harmful, host={"max_slowdown_permille": 900}).with_guest()
    machine.step(60)
    assert machine.guest
    assert machine.quota == 1.0


@pytest.mark.parametrize(("compare", "maximum"), [(False, 4), (True, 0)])
def test_noise_alone_costs_few_guests_their_ceiling(compare, maximum):
    """Of 20 guests that do no harm at 5 % of noise, watched for 5 minutes each."""
    lowered = 0
    for seed in range(20):
        share = {"name": "pairs", "compare": compare}
        machine = Machine(harmless, share=share, noise=0.05, seed=seed).with_guest()
        machine.step(60)
        quotas = [shared_of(plan).quotas.milli_cpus_per_node.tolist() for plan in machine.plans[5:]]
        lowered += any(each not in ([200], [4000]) for each in quotas)
        if compare:
            assert quotas.count([200]) <= 30
        else:
            lowered += [200] in quotas
    assert lowered <= maximum


def test_harm_above_the_bound_is_always_found():
    for seed in range(20):
        machine = Machine(lambda _: 0.35, noise=0.05, seed=seed).with_guest()
        machine.step(20)
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
    (gone,) = (plan for plan in machine.plans if len(shared_of(plan).requeues))
    assert "slows its host down" in shared_of(gone).requeues.reasons[0]


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
    assert words in shared_of(plan).requeues.reasons[0]
    assert shared_of(plan).quotas.milli_cpus_per_node.tolist() == [200]
