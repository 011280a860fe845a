# SPDX-License-Identifier: Apache-2.0
"""The policy `pairs` beside hosts whose rate of work changes from stage to stage."""

import numpy as np
import pytest

from bridge.extensions.sharing.orders import FLOOR
from bridge.extensions.sharing.pair_knowledge import Entry, pair_key
from bridge.extensions.sharing.part import shared_of
from schedbridge_contracts.sharing import NOW_S, a_waiting_job
from tests.unit.policies.measured_node import GUEST, HOST, STEP_S, Machine, harmless

ARRIVES_S = NOW_S + 5 * STEP_S
"""When `Machine.with_guest` lets the guest start."""


def by_use(quota):
    """In proportion to the guest's CPU time: all of the node doubles the host's run time."""
    return quota


COMPARING = {"name": "pairs", "compare": True}


def stage_at_arrival(before, after):
    return lambda now_s: before if now_s < ARRIVES_S else after


def beside(own, harm, *, steps=80, seed=0, noise=0.05):
    """A guest beside a host of this own rate, and the harm done to it in each step."""
    machine = Machine(harm, share=COMPARING, noise=noise, seed=seed)
    machine.own = own
    machine.with_guest()
    harms = []
    for _ in range(steps):
        harms.append(harm(machine.quota) if machine.guest else 0.0)
        machine.step()
    return machine, np.array(harms)


@pytest.mark.parametrize("seed", range(3))
def test_a_faster_stage_that_begins_with_the_guest_hides_no_harm(seed):
    """Alone it would be four times as fast as before; beside the guest it is twice as fast."""
    machine, harms = beside(stage_at_arrival(1.0, 4.0), by_use, seed=seed)
    assert STEP_S * (harms > 0.5).sum() <= 100
    assert (harms[-40:] <= 0.26).all()
    entry = Entry.of_numbers(machine.known.get(pair_key(HOST, GUEST)))
    assert entry.seen[-1].harm > 0.5


@pytest.mark.parametrize("seed", range(3))
def test_harm_that_a_faster_stage_cancels_out_exactly_is_found_as_well(seed):
    _, harms = beside(stage_at_arrival(2.0, 4.0), by_use, seed=seed)
    assert (harms[-40:] <= 0.26).all()


@pytest.mark.parametrize("before", [1.0, 2.0], ids=["it seems faster", "it seems the same"])
def test_a_guest_whose_harm_a_comparison_has_shown_is_held_to_the_floor_at_once(before):
    """Not only once new measurements beside the guest show the harm again."""
    machine = Machine(by_use, share=COMPARING, noise=0.05)
    machine.own = stage_at_arrival(before, 4.0)
    machine.with_guest()
    while not Entry.of_numbers(machine.known.get(pair_key(HOST, GUEST))).seen[-1].count:
        machine.step()
        assert machine.now_s - ARRIVES_S <= 40 * STEP_S
    assert machine.guest
    for _ in range(4):
        assert machine.quota == FLOOR
        machine.step()


@pytest.mark.parametrize("seed", range(3))
def test_a_slower_stage_costs_a_harmless_guest_neither_place_nor_ceiling(seed):
    machine, _ = beside(stage_at_arrival(2.0, 1.0), harmless, seed=seed)
    assert not any(len(shared_of(plan).requeues) for plan in machine.plans)
    quotas = [shared_of(plan).quotas.milli_cpus_per_node[0] for plan in machine.plans[-20:]]
    assert quotas.count(4000) >= 15
    entry = Entry.of_numbers(machine.known.get(pair_key(HOST, GUEST)))
    assert entry.seen[-1].harm < 0.1


def test_stages_one_after_the_other_seldom_cost_a_harmless_guest_its_place():
    """Three guests, and five changes of stage each."""

    def stages(now_s):
        return (1.0, 3.0, 0.5, 2.0)[(now_s - NOW_S) // 300 % 4]

    gone = 0
    for seed in range(3):
        machine, _ = beside(stages, harmless, steps=300, seed=seed)
        gone += any(len(shared_of(plan).requeues) for plan in machine.plans)
    assert gone <= 1


def test_a_host_that_jumps_at_random_convicts_few_harmless_guests():
    """Of 20, for 5 minutes each; with harm, each is held to less than does that harm."""
    wrong = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        rates = rng.choice([1.0, 4.0], 1000)
        machine, _ = beside(lambda now_s, r=rates: r[(now_s - NOW_S) // STEP_S], harmless,
                            steps=60, seed=seed)  # fmt: skip
        entry = Entry.of_numbers(machine.known.get(pair_key(HOST, GUEST)))
        wrong += entry.seen[-1].count > 0 and entry.seen[-1].harm > 0.1
    assert wrong <= 5


def test_harm_that_does_not_depend_on_the_quota_is_no_stage():
    """A guest bound by the disk: it uses little CPU time at any quota, and leaves."""
    machine, _ = beside(stage_at_arrival(2.0, 2.0), lambda _: 0.5, steps=12)
    assert not machine.guest


def test_a_guest_that_hardly_uses_the_cpu_is_not_compared():
    machine = Machine(harmless, share=COMPARING, noise=0.03)
    machine.io_bound = True
    machine.with_guest()
    machine.step(60)
    assert all(shared_of(plan).quotas.milli_cpus_per_node[0] == 4000 for plan in machine.plans[5:])


def test_a_guest_of_a_known_pair_is_compared_later():
    machine = Machine(harmless, share=COMPARING, noise=0.02).with_guest()
    machine.step(380)
    machine.guest = False
    machine.step()
    known = Entry.of_numbers(machine.known.get(pair_key(HOST, GUEST)))
    assert known.seen[-1].count >= 3
    machine.jobs = (a_waiting_job(id="g1", cpus=4),)
    machine.step()
    assert machine.guest
    machine.jobs = ()
    machine.step(60)
    assert FLOOR * 4000 not in [
        shared_of(plan).quotas.milli_cpus_per_node[0] for plan in machine.plans[-60:]
    ]
