# SPDX-License-Identifier: Apache-2.0
"""A simulated controller, and agents whose readings a test makes, by a clock of its own."""

from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from bridge.lab.sim.cluster.controller import Controller
from bridge.lab.sim.workloads.job_power import JobPower
from bridge.lab.sim.workloads.system import pool_of
from bridge.rpc.agents.hub import Hub
from bridge.rpc.clients.remote_decider import RemoteDecider
from bridge.rpc.pb import agent_pb2 as pb
from bridge.service.config import parse
from bridge.service.serve import Service
from schedbridge_contracts.workloads import a_workload
from tests.simulation.services import a_config, controller_of

TWO = ((1, 60, 60, 2), (2, 80, 80, 4))


class World:
    """A simulated controller that calls the service."""

    def __init__(self, home, jobs=TWO, nodes=4, *, stated_w=None, submitted=None):
        """Submits the first jobs, or all.

        Args:
            home: of the service.
            jobs: see `tests.workloads.a_workload`.
            nodes: of the machine.
            stated_w: by job, `--max-power`; None: nothing is stated.
            submitted: how many; None: all.
        """
        workload = a_workload(list(jobs), nodes)
        if stated_w is not None:
            stated = np.array(stated_w, dtype=np.int64)
            workload = replace(workload, power=JobPower(stated, np.minimum(stated, 1), stated))
        self.controller = Controller(workload, pool_of(nodes))
        for job in range(len(jobs) if submitted is None else submitted):
            self.controller.submit(job)
        self.remote = RemoteDecider(controller_of(home))
        self.now_s = 1000

    def __enter__(self):
        self.remote.__enter__()
        self.cycle()
        return self

    def __exit__(self, *ending):
        self.remote.__exit__(*ending)

    def cycle(self, after_s=0):
        self.now_s += after_s
        plan = self.remote.decide(self.controller.snapshot(self.now_s))
        self.controller.plans.apply(plan, self.now_s)
        return plan


class Metered:
    """Readings of the agents of some nodes."""

    def __init__(self):
        self.s = 1000.0
        self.hub = Hub(lambda: self.s)
        self.agents = {}

    def attend(self, *names):
        """Agents of these nodes, and of no others."""
        for agent in self.agents.values():
            self.hub.left(agent)
        self.agents = {name: self.hub.arrived([name], lambda order: None) for name in names}

    def reads(self, watts, busy=None, source="rapl", *, job="", seconds=60, ago_ms=0):
        """The same of every node, once a second."""
        for _ in range(seconds):
            self.s += 1
            for name, agent in self.agents.items():
                node = pb.NodePower(node=name, watts=watts, source=source, cpus=4)
                if busy is not None:
                    node.busy_cpus = busy
                use = pb.Use(nodes=[node], ago_ms=ago_ms)
                if job:
                    use.jobs.add(job=job, node=name, cpus=1)
                report = pb.AgentReport(uses=pb.Uses(uses=[use]))
                self.hub.report(agent, report)


@contextmanager
def a_metered_service(home, **settings):
    """A service in this process, and the readings that it gets."""
    service, meters = Service(parse(a_config(home, **settings), "test")), Metered()
    service.hub = meters.hub
    service.start()
    try:
        yield service, meters
    finally:
        service.stop(grace_s=5)
