# SPDX-License-Identifier: Apache-2.0
"""From what agents report to the columns of a snapshot, and to the memory file."""

from dataclasses import replace

import numpy as np
import pytest

from bridge.extensions.power.draws import NAME
from bridge.extensions.power.memory import PowerMemory
from bridge.extensions.power.rules import NodePower, PowerRules
from bridge.model.rules.node_set import NodeSet
from bridge.ports import State
from bridge.rpc.agents.hub import Hub
from bridge.state.store import Store
from schedbridge_contracts import builders
from schedbridge_contracts.builders import a_job, a_running_job
from tests.unit.extensions.power.test_power_use import LONG, Clock, a_use
from tests.unit.extensions.power.test_power_use import Node as AnAgent

RULES = PowerRules(node_types=(NodePower("all", NodeSet(), 70, 250),))


@pytest.fixture
def hub():
    found = Hub(Clock())
    found.clock = found.extensions.get("power")._clock
    return found


def a_snapshot(*running, **more):
    """Of two nodes; waiting and running jobs have one name."""
    found = builders.a_snapshot(nodes=2, running=running, **more)()
    found.running.name[:] = "job"
    return found


def draws(hub, agent, watts=100, **more):
    for _ in range(LONG):
        hub.clock.s += 1
        agent.draws(a_use(watts, **more))


def test_what_is_measured_becomes_columns(hub):
    snapshot = a_snapshot(a_running_job(id="7", nodes=(0,)), a_running_job(id="8", nodes=(1,)))
    memory = PowerMemory(hub, lambda: RULES)
    assert memory.overlay(snapshot) is snapshot
    draws(hub, AnAgent(hub, *snapshot.nodes.names[:1]), node=snapshot.nodes.names[0])
    running = memory.overlay(snapshot).running
    assert running.measured_min_power_w.tolist() == [100, 0]
    assert running.measured_max_power_w.tolist() == [100, 0]


def test_a_job_of_which_a_node_is_not_measured_counts_with_its_type(hub):
    snapshot = a_snapshot(a_running_job(id="7", nodes=(0, 1)))
    memory = PowerMemory(hub, lambda: RULES)
    memory.overlay(snapshot)
    draws(hub, AnAgent(hub, *snapshot.nodes.names[:1]), node=snapshot.nodes.names[0])
    running = memory.overlay(snapshot).running
    assert running.measured_min_power_w.tolist() == [85]
    assert running.measured_max_power_w.tolist() == [175]


def test_a_task_of_an_array_is_found_by_its_number(hub):
    snapshot = a_snapshot(a_running_job(id="6_1", nodes=(0,)))
    numbered = replace(snapshot.running, number=np.array([7]))
    snapshot = replace(snapshot, running=numbered)
    draws(hub, AnAgent(hub, *snapshot.nodes.names), node=snapshot.nodes.names[0])
    running = PowerMemory(hub, lambda: None).overlay(snapshot).running
    assert running.measured_max_power_w.tolist() == [100]


def test_agents_learn_the_types_and_values_outside_are_refused(hub):
    snapshot = a_snapshot()
    agent = AnAgent(hub, *snapshot.nodes.names)
    PowerMemory(hub, lambda: RULES).overlay(snapshot)
    assert {(o.model.node, o.model.max_w) for o in agent.sent} == {
        (name, 250) for name in snapshot.nodes.names
    }
    agent.draws(a_use(1000, node=snapshot.nodes.names[0]))
    assert list(hub.extensions.get("power").refused.values()) == [1]


def taught(memory, hub, watts=100):
    """A job has run and ended."""
    snapshot = a_snapshot(a_running_job(id="7", nodes=(0,)))
    draws(hub, AnAgent(hub, *snapshot.nodes.names), watts, node=snapshot.nodes.names[0])
    memory.overlay(snapshot)
    return memory.overlay(a_snapshot())


def test_what_was_learnt_is_known_of_later_jobs(hub):
    memory = PowerMemory(hub, lambda: None)
    taught(memory, hub)
    snapshot = a_snapshot(a_running_job(id="9", nodes=(1,)), jobs=[a_job(), a_job(user="another")])
    found = memory.overlay(snapshot)
    assert found.jobs.learnt_min_power_w.tolist() == [100, 0]
    assert found.jobs.learnt_max_power_w.tolist() == [100, 0]
    assert found.running.learnt_max_power_w.tolist() == [100]
    again = memory.overlay(replace(snapshot, running=a_snapshot().running))
    assert again.jobs is found.jobs  # whoever keeps something of the table still knows it


def test_it_is_kept_over_a_restart(hub, tmp_path):
    first = Store(tmp_path / "memory.sqlite")
    memory = PowerMemory(hub, lambda: None)
    first.watch(lambda: memory.put(State()))
    taught(memory, hub)
    first.close()
    second = Store(tmp_path / "memory.sqlite")
    later = PowerMemory(None, lambda: None)
    assert NAME not in later.take(second.state()).learnt
    second.close()
    assert later.overlay(a_snapshot(jobs=[a_job()])).jobs.learnt_max_power_w.tolist() == [100]


def test_a_file_that_is_opened_late_is_joined(hub):
    early, late = PowerMemory(hub, lambda: None), PowerMemory(hub, lambda: None)
    taught(early, hub, 100)
    taught(late, hub, 130)
    late.take(early.put(State()))  # of the same user: what is known already is newer
    assert late.overlay(a_snapshot(jobs=[a_job()])).jobs.learnt_max_power_w.tolist() == [130]


def test_nothing_known_leaves_no_trace(hub):
    state = State()
    assert PowerMemory(hub, lambda: None).put(state) is state
    assert PowerMemory(hub, lambda: None).take(state) is state


def test_a_fault_of_its_own_ends_no_cycle(hub, caplog):
    def broken():
        raise RuntimeError("a bug")

    snapshot = a_snapshot()
    assert PowerMemory(hub, broken).overlay(snapshot) is snapshot
    assert "power of jobs is unknown" in caplog.text
