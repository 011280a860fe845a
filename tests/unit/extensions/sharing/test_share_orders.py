# SPDX-License-Identifier: Apache-2.0
"""What agents are told of CPU shares, and what they say of jobs."""

import math
from dataclasses import replace

import numpy as np
import pytest

from bridge.extensions.sharing.agents import used
from bridge.extensions.sharing.job_readings import STALE_S
from bridge.extensions.sharing.part import having_shared
from bridge.extensions.sharing.quotas import Quotas
from bridge.extensions.sharing.share_orders import LEASE_S, PLAN_S, hosts_of, shares_of
from bridge.model.plan import Plan
from bridge.rpc.agents.hub import Hub
from bridge.rpc.pb import agent_pb2 as pb
from schedbridge_contracts.builders import a_running_job, a_snapshot

GUEST = pb.Share(job="8", node="n1", milli_cpus=500, weight=1, guest=True)
OTHER = pb.Share(job="9", node="n2", milli_cpus=0, weight=200)


class Clock:
    """A monotonic clock, s."""

    s = 100.0

    def __call__(self):
        return self.s


def orders_of(hub):
    return hub.extensions.get("sharing").orders


def readings_of(hub):
    return hub.extensions.get("sharing").readings


class Node:
    """An agent, as the hub sees it."""

    def __init__(self, hub, *nodes, takes_shares=True):
        self.hub, self.sent = hub, []
        self.agent = hub.arrived(nodes, self.sent.append, takes_shares=takes_shares)

    def orders(self):
        """Since the last call."""
        found = [order.shares for order in self.sent if order.HasField("shares")]
        self.sent.clear()
        return found

    def says(self, *uses):
        self.hub.report(self.agent, pb.AgentReport(uses=pb.Uses(uses=uses)))


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def hub(clock):
    return Hub(clock)


# ---------------------------------------------------------------- orders


def test_before_the_first_plan_nothing_is_said(hub):
    node = Node(hub, "n1")
    orders_of(hub).renew()
    assert node.orders() == []


def test_after_a_restart_of_the_service_a_plan_without_quotas_lifts_those_of_before(hub):
    """Agents that were there before the first plan, and one that comes after it."""
    before = [Node(hub, "n1"), Node(hub, "n2", "n3")]
    orders_of(hub).planned({})
    nodes = [*before, Node(hub, "n4")]
    assert [[list(order.shares) for order in node.orders()] for node in nodes] == [[[]]] * 3


def test_an_agent_gets_the_whole_state_of_its_nodes(hub):
    one, two = Node(hub, "n1"), Node(hub, "n2", "n3")
    orders_of(hub).planned({"n1": (GUEST,), "n2": (OTHER,)})
    assert [list(order.shares) for order in one.orders()] == [[GUEST]]
    assert [list(order.shares) for order in two.orders()] == [[OTHER]]


def test_what_did_not_change_is_not_said_again(hub):
    node = Node(hub, "n1")
    orders_of(hub).planned({"n1": (GUEST,)})
    first = node.orders()
    orders_of(hub).planned({"n1": (GUEST,), "n2": (OTHER,)})
    assert node.orders() == []
    orders_of(hub).planned({})
    (last,) = node.orders()
    assert list(last.shares) == []
    assert last.sequence > first[0].sequence


def test_leases_are_renewed_while_plans_come(hub, clock):
    node, idle = Node(hub, "n1"), Node(hub, "n2")
    orders_of(hub).planned({"n1": (GUEST,)})
    (first,) = node.orders()
    idle.orders()
    orders_of(hub).renew()
    (again,) = node.orders()
    assert again == first
    assert again.lease_ms == LEASE_S * 1000
    assert idle.orders() == []
    clock.s += PLAN_S + 1
    orders_of(hub).renew()
    assert node.orders() == []


def test_an_agent_that_comes_back_is_told_again(hub):
    node = Node(hub, "n1")
    orders_of(hub).planned({"n1": (GUEST,)})
    hub.left(node.agent)
    orders_of(hub).renew()
    node.orders()
    again = Node(hub, "n1")
    assert [list(order.shares) for order in again.orders()] == [[GUEST]]
    # One of whose nodes the plan says nothing gives back what it kept for a service before.
    assert [list(order.shares) for order in Node(hub, "n7").orders()] == [[]]


def test_an_agent_that_keeps_no_shares_is_left_alone(hub):
    node = Node(hub, "n1", takes_shares=False)
    orders_of(hub).planned({"n1": (GUEST,)})
    orders_of(hub).renew()
    assert node.orders() == []
    assert orders_of(hub).nodes == frozenset()
    Node(hub, "n2")
    assert orders_of(hub).nodes == {"n2"}


# ---------------------------------------------------------------- plans


def quotas(*rows):
    ids, milli, weight = zip(*rows, strict=True)
    return Quotas(np.array(ids, object), np.array(milli), np.array(weight))


def test_a_plans_quotas_are_shares_on_the_jobs_nodes():
    world = a_snapshot(
        nodes=4,
        running=[
            a_running_job((1, 2), id="7"),
            a_running_job((1, 2), id="8", host_id="7"),
            a_running_job((3,), id="4_1"),
        ],
    )()
    numbered = replace(world.running, number=np.array([0, 0, 44]))
    world = replace(world, running=numbered)
    plan = a_plan(quotas(("8", 500, 1), ("4_1", 0, 50), ("gone", 5, 5)))
    assert hosts_of(world, plan) == {"8": "7"}
    found = shares_of(world, plan, hosts_of(world, plan))
    names = world.nodes.names
    assert found == {
        names[1]: (pb.Share(job="8", node=names[1], milli_cpus=500, weight=1, guest=True),),
        names[2]: (pb.Share(job="8", node=names[2], milli_cpus=500, weight=1, guest=True),),
        names[3]: (pb.Share(job="44", node=names[3], milli_cpus=0, weight=50),),
    }


def a_plan(its):
    return having_shared(Plan.without_rows(0), quotas=its)


# ---------------------------------------------------------------- readings


def use(job="8", node="n1", ago_ms=0, pressure=None, **values):
    node_power = pb.NodePower(node=node, memory_pressure=pressure)
    return pb.Use(nodes=[node_power], jobs=[pb.JobUse(job=job, node=node, **values)], ago_ms=ago_ms)


def test_readings_of_a_job_over_its_nodes(hub, clock):
    one, two = Node(hub, "n1"), Node(hub, "n2")
    one.says(use(cpu_s=10, cpus=2, memory_mib=100, peak_memory_mib=150, memory_pressure=0.25))
    two.says(use(node="n2", cpu_s=5, cpus=1, memory_mib=200, peak_memory_mib=200, pressure=0.5))
    found = readings_of(hub).of("8", ["n1", "n2", "n3"])
    assert (found.cpu_s, found.cpus, found.memory_mib, found.peak_mib) == (15, 3, 200, 200)
    assert (found.pressure, found.nodes, found.method) == (0.5, 2, "")
    force = pb.ShareInForce(share=GUEST, method="cgroup-v2")
    hub.report(one.agent, pb.AgentReport(shares=pb.SharesInForce(sequence=1, shares=[force])))
    assert readings_of(hub).of("8", ["n1"]).method == "cgroup-v2"
    assert readings_of(hub).of("8", ["n7"]) is None
    clock.s += STALE_S + 1
    assert readings_of(hub).of("8", ["n1", "n2"]) is None


def test_a_job_that_is_not_read_any_more_is_forgotten(hub):
    node = Node(hub, "n1")
    node.says(use(cpu_s=10))
    node.says(use(job="9", cpu_s=1))
    assert readings_of(hub).of("8", ["n1"]) is None


def test_lies_and_nonsense_are_dropped(hub):
    node = Node(hub, "n1")
    node.says(use(cpu_s=10, cpus=1, memory_mib=7))
    for values in (
        {"cpu_s": math.nan}, {"cpu_s": math.inf}, {"cpus": 1e9}, {"memory_mib": 1 << 50},
        {"memory_pressure": 7.0},
    ):  # fmt: skip
        node.says(use(**values))
        assert readings_of(hub).of("8", ["n1"]).cpu_s == 10
    node.says(use(node="n2", cpu_s=5))
    assert readings_of(hub).of("8", ["n2"]) is None


def test_cpu_time_goes_on_when_an_agent_counts_anew(hub):
    node = Node(hub, "n1")
    for seen, expected in ((10, 10), (2, 12), (3, 13), (1, 14)):
        node.says(use(cpu_s=seen))
        assert readings_of(hub).of("8", ["n1"]).cpu_s == expected


def test_what_is_read_of_all_its_nodes_is_in_the_snapshot(hub, clock):
    running = [a_running_job((0, 1), id="8"), a_running_job((2,), id="9")]
    world = a_snapshot(nodes=3, running=running, now_s=1000)()
    names = world.nodes.names
    assert used(world, readings_of(hub), orders_of(hub).nodes) is world
    node = Node(hub, *names)
    both = [
        pb.JobUse(job="8", node=names[row], cpu_s=10, cpus=1.5, memory_mib=5, peak_memory_mib=7)
        for row in (0, 1)
    ]
    powers = [pb.NodePower(node=name, memory_pressure=0.25) for name in names]
    node.says(pb.Use(nodes=powers, jobs=both))
    clock.s += 3
    found = used(world, readings_of(hub), orders_of(hub).nodes).running
    columns = found.cpu_s, found.busy_cpus, found.peak_mib, found.memory_stall, found.measured_s
    assert [column.tolist() for column in columns] == [
        [20, -1], [3, -1], [7, 0], [0.25, -1], [997, 0],
    ]  # fmt: skip
    assert used(world, readings_of(hub), {names[0]}).running.cpu_s.tolist() == [-1, -1]
    node.says(pb.Use(nodes=powers, jobs=both[:1]))  # its processes have left the second node
    found = used(world, readings_of(hub), orders_of(hub).nodes).running
    assert (found.cpu_s[0], found.busy_cpus[0]) == (20, 1.5)


def test_a_node_without_processes_of_a_job_counts_as_unused_while_its_agent_reports(hub, clock):
    running = [a_running_job((0, 1), id="8"), a_running_job((2,), id="9")]
    world = a_snapshot(nodes=3, running=running, now_s=1000)()
    names = world.nodes.names
    one, two, three = (Node(hub, name) for name in names)

    def read():
        found = used(world, readings_of(hub), orders_of(hub).nodes).running
        return found.cpu_s.tolist(), found.busy_cpus.tolist(), found.measured_s.tolist()

    unknown = [-1, -1], [-1, -1], [0, 0]
    two.says(idle(names[1]))
    clock.s += 1
    one.says(use(node=names[0], cpu_s=10, cpus=1, memory_mib=5, progress=0.5))
    assert read() == unknown  # the other node was read before the job came
    three.says(idle(names[2]))
    assert read() == unknown  # of the second job nobody sees a process
    clock.s += 2
    two.says(idle(names[1]))
    assert read() == ([10, -1], [1, -1], [998, 0])
    assert readings_of(hub).of("8", list(names[:2])).progress == 0.5
    clock.s += STALE_S - 1
    one.says(use(node=names[0], cpu_s=11, cpus=1))
    assert read()[0] == [11, -1]
    clock.s += 2  # by now the second agent is silent
    assert read() == unknown
    two.says(idle(names[1]))
    assert read()[0] == [11, -1]
    hub.left(two.agent)
    assert read() == unknown


def test_what_a_job_has_used_on_a_node_stays_after_its_step_there(hub):
    running = [a_running_job((0, 1), id="8")]
    world = a_snapshot(nodes=2, running=running, now_s=1000)()
    empty = a_snapshot(nodes=2, now_s=1000)()
    names = world.nodes.names
    one, two = (Node(hub, name) for name in names)

    def read(world=world):
        found = used(world, readings_of(hub), orders_of(hub).nodes).running
        return found.cpu_s.tolist(), found.busy_cpus.tolist(), found.peak_mib.tolist()

    one.says(use(node=names[0], cpu_s=1, cpus=0.5, memory_mib=5, peak_memory_mib=5))
    two.says(use(node=names[1], cpu_s=20, cpus=2, memory_mib=50, peak_memory_mib=70))
    assert read() == ([21], [2.5], [70])
    two.says(idle(names[1]))
    assert read() == ([21], [0.5], [70])
    two.says(use(node=names[1], cpu_s=3, cpus=1))  # its next step, in a new cgroup
    assert read() == ([24], [1.5], [70])
    two.says(idle(names[1]))
    read(empty)  # it waits again: its next run begins with nothing
    assert read()[0] == [1]


def idle(node):
    """A reading of a node without jobs."""
    return pb.Use(nodes=[pb.NodePower(node=node)])
