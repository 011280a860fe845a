# SPDX-License-Identifier: Apache-2.0
"""No schedule of failing meters lets a job count with less than it draws.

The assumptions: a job draws no more than the greatest of what is stated, the power measured last on
its node, and what the model says at the present load; and no more than its node can. A job on a
part of a node is stated, unless its user says otherwise, to draw that part beyond idle. Nobody
knows the load of a node whose agent is silent: its jobs may draw their parts, whatever is stated.
"""

import dataclasses
from collections import Counter

import numpy as np

from bridge.extensions.power.measured import measured, node_types
from bridge.extensions.power.planning.estimates import node_powers, running_draws, system_power
from bridge.extensions.power.power_use import STALE_S, PowerUse
from bridge.extensions.power.rules import Corridor, NodePower, PowerRules
from bridge.model.rules.node_set import NodeSet
from bridge.rpc.pb import agent_pb2 as pb
from schedbridge_contracts.builders import a_node, a_running_job, a_snapshot

IDLE_W, MAX_W, NODES = 70, 500, 4
RULES = PowerRules(Corridor((0,), (0,), (9999,)), (NodePower("n", NodeSet(), IDLE_W, MAX_W),))
MODES = ("meter", "model", "nothing", "silent")


class Machine:
    """Nodes with one job each, or one on two of them, whose meters fail as a seed says."""

    def __init__(self, seed):
        self.dice, self.now_s = np.random.default_rng(seed), 1000.0
        self.power = PowerUse(lambda: self.now_s)
        self.stated = [int(w) for w in self.dice.choice((0, 150, 300), 3)]
        running = [
            a_running_job(nodes, end_s=9999, id=name, max_power_w=stated)
            for nodes, name, stated in zip(((0,), (1,), (2, 3)), "123", self.stated, strict=True)
        ]
        self.world = a_snapshot(nodes=NODES, running=running)()
        self.names = self.world.nodes.names
        self.power.state_types(node_types(self.world, RULES))
        self.mode = ["meter"] * NODES
        self.true_w = np.full(NODES, 200.0)
        self.measured_w = np.zeros(NODES)
        self.silent_s = np.zeros(NODES)
        self.model_w = np.zeros(NODES)

    def second(self):
        """Draws change, and with them what agents say; meters fail and come back."""
        dice = self.dice
        self.now_s += 1
        for node in range(NODES):
            if dice.random() < 0.06:
                self.mode[node] = MODES[dice.integers(len(MODES))]
            job = min(node, 2)
            stated_w = self.stated[job] or MAX_W
            if self.mode[node] == "meter":
                self.silent_s[node] = 0
                if dice.random() < 0.05:
                    self.true_w[node] = dice.integers(IDLE_W, MAX_W)
                self.measured_w[node] = self.true_w[node]
            else:
                self.silent_s[node] = self.silent_s[node] + 1 if self.mode[node] == "silent" else 0
                if self.mode[node] == "model":
                    self.model_w[node] = dice.integers(IDLE_W, MAX_W)
                else:
                    self.model_w[node] = IDLE_W
                most_w = max(stated_w, self.measured_w[node], self.model_w[node])
                self.true_w[node] = dice.integers(IDLE_W, int(most_w) + 1)
            self._report(node, job)

    def _report(self, node, job):
        mode, name = self.mode[node], self.names[node]
        if mode == "silent":
            return
        use = pb.Use()
        said = use.nodes.add(node=name)
        if mode != "nothing":
            said.watts = self.true_w[node] if mode == "meter" else self.model_w[node]
            said.source = "rapl" if mode == "meter" else "model"
        use.jobs.add(job=str(job + 1), node=name, cpus=1)
        self.power.took(name, {name}, pb.Uses(uses=[use]))

    def failed(self, node):
        """Whether its meter had values and has failed, and that can be known."""
        silent = self.mode[node] == "silent"
        return (
            self.measured_w[node] > 0
            and self.mode[node] != "meter"
            and (not silent or self.silent_s[node] > STALE_S)
        )

    def counted(self):
        """The snapshot, and what is counted for each job."""
        world = measured(dataclasses.replace(self.world, now_s=int(self.now_s)), self.power)
        running = world.running
        return world, np.where(
            running.measured_max_power_w > 0, running.measured_max_power_w,
            np.where(running.max_power_w > 0, running.max_power_w, MAX_W),
        )  # fmt: skip


def test_the_counted_power_is_never_below_the_true_one():
    """Of every job all of whose nodes have failed, second by second; and of the whole system.

    Slow: 40 systems, second by second.
    """
    judged = Counter()
    for seed in range(40):
        machine = Machine(seed)
        for second in range(200):
            machine.second()
            if second < 30:
                continue
            world, counted = machine.counted()
            for job, nodes in enumerate(((0,), (1,), (2, 3))):
                if not all(machine.failed(node) for node in nodes):
                    continue
                judged[job] += 1
                true_w = sum(machine.true_w[node] for node in nodes)
                assert counted[job] * len(nodes) >= true_w, f"seed {seed}, second {second}"
                assert world.running.power_lost_s[job] > 0
                assert "in place of rapl" in world.running.power_source[job]
            if all(machine.failed(node) for node in range(NODES)):
                judged["system"] += 1
                assert system_power(RULES, world)[1] >= machine.true_w.sum()
    assert min(judged[job] for job in (0, 1, 2, "system")) > 100


class SharedNodes:
    """Two nodes full of small jobs, whose meters fail as a seed says; the service may restart."""

    def __init__(self, seed, jobs, idle_w=IDLE_W, max_w=MAX_W):
        self.dice, self.now_s, self.jobs = np.random.default_rng(seed), 1000.0, jobs
        self.idle_w, self.max_w = idle_w, max_w
        self.rules = PowerRules(RULES.corridor, (NodePower("n", NodeSet(), idle_w, max_w),))
        # In some worlds all jobs draw little, and say so, as long as somebody looks.
        self.load, some_w = (1, (0, 0, idle_w + 5, max_w)) if seed % 3 else (0.1, (idle_w + 5,))
        own_w = [int(w) for w in self.dice.choice(some_w, 2 * jobs)]
        running = [
            a_running_job(
                (row // jobs,), end_s=9999, id=str(row), shared=True, cpus=2, max_power_w=w
            )
            for row, w in enumerate(own_w)
        ]
        self.world = a_snapshot(nodes=[a_node(cpus=2 * jobs)] * 2, running=running)()
        part_w = self.part_w = -(-(max_w - idle_w) // jobs)
        self.stated_w = np.array([w - idle_w if w else part_w for w in own_w]).reshape(2, jobs)
        self.mode = ["meter"] * 2
        self.last_w, self.model_w, self.true_w = (np.zeros((2, jobs)) for _ in range(3))
        self.most_w, self.peak_w = np.full(2, float(max_w)), np.full(2, float(max_w))
        self.silent_s, self.heard = [0, 0], [False, False]
        self.restart()

    def restart(self):
        """The service forgets all."""
        self.power = PowerUse(lambda: self.now_s)
        self.power.state_types(node_types(self.world, self.rules))
        self.heard = [False, False]

    def second(self):
        """All draws, W beyond idle, change within the assumptions; agents report."""
        self.now_s += 1
        if self.dice.random() < 0.01:
            self.restart()
        for node in range(2):
            if self.dice.random() < 0.025:
                self.mode[node] = MODES[self.dice.integers(len(MODES))]
            self._draw(node)
            self._report(node)

    def _draw(self, node):
        mode, dice, span_w = self.mode[node], self.dice, self.max_w - self.idle_w
        load = self.load * dice.random(self.jobs) * (dice.random(self.jobs) < dice.random())
        if mode == "meter":  # it may show a little more than the type's maximum
            self.true_w[node] = 1.1 * span_w * load / max(load.sum(), 1)
            self.last_w[node] = self.true_w[node]
            self.most_w[node] = max(self.max_w, self.idle_w + self.last_w[node].sum())
            self.peak_w[node] = max(self.peak_w[node], self.most_w[node])
            return
        self.model_w[node] = span_w * load / max(load.sum(), 1) if mode == "model" else 0
        most_w = np.maximum.reduce([self.stated_w[node], self.last_w[node], self.model_w[node]])
        most_w = np.maximum(most_w, self.part_w * (mode == "silent"))
        draw_w = most_w * dice.choice((1, dice.random()))
        room_w = self.most_w[node] - self.idle_w
        self.true_w[node] = draw_w * min(1, room_w / max(draw_w.sum(), 1))

    def _report(self, node):
        mode, name = self.mode[node], self.world.nodes.names[node]
        self.silent_s[node] = self.silent_s[node] + 1 if mode == "silent" else 0
        if mode == "silent":
            return
        self.heard[node] = True
        use, watts = pb.Use(), self.last_w[node] if mode == "meter" else self.model_w[node]
        said = use.nodes.add(node=name)
        if mode != "nothing":
            said.watts, said.source = (
                self.idle_w + watts.sum(),
                "rapl" if mode == "meter" else "model",
            )
        if mode != "meter" and self.last_w[node].any():
            said.lost_source, said.lost_watts = "rapl", self.idle_w + self.last_w[node].sum()
        for job in range(self.jobs):
            cpus = watts[job] or (not watts.any())
            use.jobs.add(job=str(node * self.jobs + job), node=name, cpus=cpus)
        self.power.took(name, {name}, pb.Uses(uses=[use]))

    def failed(self, node):
        """Whether its meter had values and has failed, and that can be known."""
        silent_s = self.silent_s[node]
        failed = self.mode[node] != "meter" and self.last_w[node].any() and self.heard[node]
        return failed and (not silent_s or silent_s > STALE_S)

    def counted_w(self):
        """What is counted for each node, and for the system."""
        world = measured(dataclasses.replace(self.world, now_s=int(self.now_s)), self.power)
        draws_w = running_draws(world, node_powers(self.rules, world)).upper_w
        nodes_w = self.idle_w + draws_w.reshape(2, self.jobs).sum(axis=1)
        return nodes_w, system_power(self.rules, world)[1]


def test_many_jobs_on_a_node_count_with_what_it_can_draw_at_most_and_draws_at_least():
    """Node by node, second by second, also after the service has restarted."""
    judged = Counter()
    for seed in range(12):
        shared = SharedNodes(seed, (3, 8)[seed % 2])
        for second in range(150):
            shared.second()
            nodes_w, system_w = shared.counted_w()
            for node in filter(shared.failed, range(2)):
                judged[shared.mode[node]] += 1
                where = f"seed {seed}, second {second}, node {node}, {shared.mode[node]}"
                true_w = shared.idle_w + shared.true_w[node].sum()
                assert true_w <= nodes_w[node] + 1e-6, where
                assert nodes_w[node] <= shared.peak_w[node] + 1 + 1e-6, where  # rounded up
            assert system_w == nodes_w.sum()
    assert min(judged[mode] for mode in MODES[1:]) > 100


def test_64_jobs_of_a_silent_node_count_with_its_maximum_and_no_more():
    """Of another node, whose agent speaks, what it draws counts."""
    for metered in (True, False):
        shared = SharedNodes(1, 64, idle_w=100, max_w=900)
        shared.world.running.max_power_w[:] = 0
        shared.mode = ["meter", "meter"]
        shared.last_w[:] = 500 / 64
        for _ in range(20):
            shared.now_s += 1
            shared._report(0)
            shared._report(1)
        if not metered:
            shared.restart()  # and the meter is gone for good
            shared.mode[0] = "nothing"
        for _ in range(int(STALE_S) + 2):
            shared.now_s += 1
            shared._report(1)
            if not metered:
                shared._report(0)
        nodes_w, system_w = shared.counted_w()
        assert nodes_w[0] == 900
        assert 600 <= nodes_w[1] <= 600 + 64  # each job's is rounded up
        assert system_w == nodes_w.sum()
