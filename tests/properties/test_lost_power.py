# SPDX-License-Identifier: Apache-2.0
"""No schedule of failing meters lets a job count with less than it draws.

The assumptions: a job draws no more than the greatest of what is stated, the power measured last on
its node, and what the model says at the present load; and no more than its node can.
"""

import dataclasses
from collections import Counter

import numpy as np

from bridge.model.rules.node_set import NodeSet
from bridge.model.rules.power import Corridor, NodePower, PowerRules
from bridge.planning.power.estimates import system_power
from bridge.rpc.agents.measured import measured, node_types
from bridge.rpc.agents.power_use import STALE_S, PowerUse
from bridge.rpc.pb import agent_pb2 as pb
from tests.builders import a_running_job, a_snapshot

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
    """Of every job all of whose nodes have failed, second by second; and of the whole system."""
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
