# SPDX-License-Identifier: Apache-2.0
"""The records of the simulated controller, shared by its parts."""

from dataclasses import replace

from bridge.lab.sim.cluster.adaptations import Adaptations
from bridge.lab.sim.cluster.cluster_nodes import ClusterNodes
from bridge.lab.sim.cluster.guests import Guests
from bridge.lab.sim.cluster.reservations import Reservations
from bridge.lab.sim.cluster.running_jobs import RunningJobs
from bridge.lab.sim.cluster.waiting_jobs import WaitingJobs
from bridge.lab.sim.workloads.requests import requests
from bridge.lab.sim.workloads.system import System
from bridge.lab.sim.workloads.workload import Workload


class ClusterState:
    """Queue, running jobs and nodes at one instant; jobs are named by their row in the workload.

    Attributes:
        jobs: requests of all jobs of the workload.
        waiting: pending jobs.
        adaptations: changes of width in progress.
        guests: which jobs run on which hosts' CPUs.
        reservations: made and removed by operators.
    """

    def __init__(self, workload: Workload, system: System) -> None:
        """Starts without jobs."""
        self.workload, self.system = workload, system
        jobs = requests(workload, system)
        # `waiting` changes these.
        self.jobs = replace(jobs, version=jobs.version.copy(), eligible_s=jobs.eligible_s.copy())
        self.waiting = WaitingJobs(self.jobs, late=workload.after is not None)
        self.running = RunningJobs(self.jobs, workload.malleable, len(system.resources))
        self.nodes = ClusterNodes(system.nodes)
        occupancy = self.nodes.occupancy
        self.adaptations = Adaptations(self.running, workload.malleable, occupancy)
        self.guests = Guests(self.jobs, self.running, occupancy)
        self.reservations = Reservations(self.running.allocations)
