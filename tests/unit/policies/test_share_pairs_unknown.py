# SPDX-License-Identifier: Apache-2.0
"""The policy `pairs`: measurements that are missing, absurd or of another run of the host."""

import numpy as np
import pytest

from bridge.extensions.sharing.orders import FLOOR
from bridge.extensions.sharing.part import shared_of
from bridge.model.job import Ending
from schedbridge_contracts.sharing import a_waiting_job, a_world
from tests.unit.policies.measured_node import Machine, harmless
from tests.unit.policies.test_share import ended


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
    assert "cannot be measured" in shared_of(plan).requeues.reasons[0]


def test_a_guest_taken_over_beside_an_unknown_host_leaves():
    """As after a restart: the rate alone of this run is lost."""
    machine = Machine(harmless)
    machine.guest = True
    machine.step(10)
    assert not machine.guest


def test_a_host_that_is_not_measured_any_more_holds_its_guest_to_the_floor():
    machine = Machine(harmless).with_guest()
    machine.step(3)
    machine.extra = {"measured_s": machine.now_s - 60}
    assert shared_of(machine.step()).quotas.milli_cpus_per_node.tolist() == [200]
    assert not len(shared_of(machine.plans[-1]).requeues)
    machine.extra = {}
    assert shared_of(machine.step()).quotas.milli_cpus_per_node.tolist() == [4000]


def test_an_unknown_running_guest_is_taken_over():
    """Another policy started it, or the service was restarted."""
    machine = Machine(harmless)
    machine.step(3)
    machine.guest = True
    plan = machine.step()
    assert shared_of(plan).quotas.id.tolist() == ["g0"]
    assert shared_of(plan).quotas.milli_cpus_per_node[0] > 200


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
