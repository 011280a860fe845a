# SPDX-License-Identifier: Apache-2.0
"""What an agent adds to its readings of use: the power of each node, with its source."""

from pathlib import Path

import pytest

from bridge.agent.processes import Processes
from bridge.agent.settings import AgentSettings
from bridge.agent.use.meter import AgentMeter
from bridge.extensions.power.on_nodes.choice import PowerSettings
from bridge.extensions.power.on_nodes.node_service import PowerService
from bridge.rpc.pb import agent_pb2 as pb
from tests.unit.agent.test_use import V1, write


def model(node, idle_w, max_w):
    return pb.AgentOrder(model=pb.PowerModel(node=node, idle_w=idle_w, max_w=max_w))


class Node:
    """A node with a job, read once a second."""

    def __init__(self, path, settings, *names):
        self.cgroups, self.second = V1(path / "cgroup", f"slurm_{names[0]}"), 10.0
        self.power = PowerService(names, settings)
        self.meter = AgentMeter(
            names, Processes(path), self.cgroups.root, cpus=4, clock=lambda: self.second
        )

    def read(self, cpu_s):
        self.second += 1
        self.cgroups.total(cpu_s)
        self.cgroups.job(7, cpu_s * 3 / 4, 65)
        use = self.meter.read()
        self.power.measure(use)
        return use


def test_a_reading_names_the_source_of_each_value(tmp_path):
    sys = tmp_path / "sys"
    one = Node(tmp_path, PowerSettings(("pm_counters", "model"), sys=sys), "n1")
    (node,) = one.read(0).nodes
    assert not node.HasField("watts")
    assert not node.HasField("busy_cpus")
    one.power.take(model("n1", 71, 250))
    one.power.take(model("n9", 1, 2))
    message = one.read(2)
    (node,), (job,) = message.nodes, message.jobs
    assert (node.node, node.source, node.watts) == ("n1", "model", pytest.approx(160.5))
    assert (node.busy_cpus, node.cpus) == (pytest.approx(2), 4)
    assert (job.job, job.node, job.cpus, job.memory_mib) == ("7", "n1", pytest.approx(1.5), 65)
    write(sys / "cray" / "pm_counters" / "power", "92 W")
    (node,) = one.read(4).nodes
    assert (node.source, node.watts) == ("pm_counters", 92)


def test_of_two_nodes_each_has_its_own_power(tmp_path):
    two = Node(tmp_path, PowerSettings(("model",)), "n1", "n2")
    other = V1(tmp_path / "cgroup", "slurm_n2")
    two.power.take(model("n1", 71, 250))
    two.power.take(model("n2", 100, 200))
    other.total(0)
    two.read(0)
    other.total(1)
    nodes = two.read(4).nodes
    assert {node.node: node.watts for node in nodes} == {"n1": 250, "n2": 125}


def test_what_the_agents_own_options_state_wins(tmp_path):
    one = Node(tmp_path, PowerSettings(("model",), model=(10, 20)), "n1")
    one.read(0)
    one.power.take(model("n1", 71, 250))
    assert one.read(0).nodes[0].watts == 10


def test_an_agent_has_the_settings_of_its_command(tmp_path):
    none, write_to = Path("none"), tmp_path / "sys" / "cray" / "pm_counters" / "power"
    write(write_to, "92 W")
    chosen = PowerSettings(("pm_counters",), sys=tmp_path / "sys")
    for extensions, watts in (({"power": chosen}, 92), ({"power": PowerSettings(())}, None)):
        settings = AgentSettings(
            "s:1", none, none, none, ("n1",), tmp_path / "s", extensions=extensions
        )
        service = PowerService.made(settings, Processes(tmp_path), lambda report: None)
        use = pb.Use()
        node = use.nodes.add(node="n1", cpus=2)
        service.measure(use)
        assert (node.watts if node.HasField("watts") else None) == watts
