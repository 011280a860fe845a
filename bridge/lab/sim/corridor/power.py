# SPDX-License-Identifier: Apache-2.0
"""System power of a simulation, as a step function that follows from its events.

Rules
    1. System power is a base, the idle power of each node in service that is not powered off
       (`bridge.extensions.power.simulated_nodes`), and for each job on each of
       its nodes what it draws beyond idle (`bridge.lab.sim.workloads.job_power`). A job with a
       part of a node's CPUs draws that part of it, in whole watts.
    2. A job draws from its start until it no longer holds a node: on nodes that it is giving back
       until they are free, on added ones from when they are its own.
    3. Sensors, if enabled, report from `SENSOR_S` after a start on: a low and a high value around
       the draw, each with an error of up to `NOISE` of it.
    4. A change of the corridor and a report are events, after which a decision is made.
"""

import heapq
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bridge.extensions.power.measures import PowerBounds, SystemPower
from bridge.extensions.power.rules import NodePower
from bridge.extensions.power.simulated_nodes import SimulatedPower
from bridge.lab.sim.cluster.allocation import Allocation
from bridge.lab.sim.cluster.controller import Controller
from bridge.lab.sim.corridor.steps import CorridorSteps
from bridge.lab.sim.workloads.job_power import JobPower
from bridge.model.node import CPUS
from bridge.units import NEVER

SENSOR_S: Final = 5
NOISE: Final = 0.02


@dataclass(frozen=True)
class PowerSetting:
    """The power settings of a simulation.

    Attributes:
        jobs: their draw and stated powers.
        corridor: None: there is none.
        sensors: whether draws are measured.
        resume_s: time to power a node up; 0: nodes cannot be powered down.
    """

    jobs: JobPower
    node: NodePower
    corridor: CorridorSteps | None = None
    sensors: bool = False
    seed: int = 0
    resume_s: int = 0

    @property
    def base_w(self) -> int:
        """Power in addition to nodes and jobs."""
        return 0 if self.corridor is None else self.corridor.base_w


@dataclass(frozen=True)
class Held:
    """A job's nodes from an instant on, with those it gives back, and W beyond idle."""

    at_s: int
    nodes: int
    beyond_w: int


@dataclass(frozen=True)
class PowerLog:
    """System power of a run, and the part of each job.

    Attributes:
        origin_s: the first submission.
        at_s, power_w: (n,) int64: system power from each instant on.
        held: by job: ascending; `nodes` 0: it ended or was requeued.
    """

    setting: PowerSetting
    origin_s: int
    at_s: NDArray[np.int64]
    power_w: NDArray[np.int64]
    held: dict[int, list[Held]]

    def until(self, end_s: int) -> SystemPower:
        """System power from the first submission on."""
        inside = self.at_s < end_s
        return SystemPower(self.at_s[inside], self.power_w[inside], end_s)

    @property
    def bounds(self) -> PowerBounds | None:
        """The corridor; None: there is none."""
        steps = self.setting.corridor
        if steps is None:
            return None
        announced = steps.announced(self.origin_s)
        return PowerBounds(steps.whole(self.origin_s), announced, steps.grace_s)


class PowerMeter:
    """Computes power from the allocations of a simulated controller."""

    def __init__(
        self,
        setting: PowerSetting,
        controller: Controller,
        origin_s: int,
        states: SimulatedPower | None = None,
    ) -> None:
        """Starts at `origin_s`; `states`: of nodes that can be powered down, if they can."""
        self._setting, self._controller, self._states = setting, controller, states
        self._origin_s = origin_s
        steps = setting.corridor
        self._due = [] if steps is None else steps.instants(origin_s)[::-1]
        self._reports: list[tuple[int, int, int]] = []
        self._nodes, self._idle_w = controller.nodes.table, 0
        self._seen: dict[int, Allocation] = {}
        self._held: dict[int, list[Held]] = {}
        self._jobs_w = 0
        self._at_s: list[int] = []
        self._power_w: list[int] = []
        self._count_nodes()
        rng = np.random.default_rng((setting.seed, 3))
        off = 1.0 + NOISE * rng.uniform(0.0, 1.0, (2, len(setting.jobs.draw_w)))
        self._low_w = np.floor(setting.jobs.draw_w / off[0]).astype(np.int64)
        self._high_w = np.ceil(setting.jobs.draw_w * off[1]).astype(np.int64)
        self._note(origin_s)

    def next_s(self) -> int:
        """When the corridor changes, or a sensor reports."""
        report_s = self._reports[0][0] if self._reports else NEVER
        return min(self._due[-1] if self._due else NEVER, report_s)

    def happen(self, now_s: int) -> int:
        """Applies due changes; returns how many."""
        changed = 0
        while self._due and self._due[-1] <= now_s:
            self._due.pop()
            changed += 1
        while self._reports and self._reports[0][0] <= now_s:
            _, job, start_s = heapq.heappop(self._reports)
            held = self._controller.running.get(job)
            if held is not None and held.start_s == start_s:
                low_w, high_w = int(self._low_w[job]), int(self._high_w[job])
                self._controller.measure_power(job, low_w, high_w)
                changed += 1
        return changed

    def read(self, now_s: int) -> None:
        """Records the changes after all events of an instant."""
        running = self._controller.running
        changed = [job for job, held in running.items() if self._seen.get(job) is not held]
        gone = [job for job in self._seen if job not in running]
        for job in gone:
            del self._seen[job]
            self._hold(job, Held(now_s, 0, 0))
        for job in changed:
            held = running[job]
            before = self._seen.get(job)
            begins = before is None or before.start_s != held.start_s
            if self._setting.sensors and begins:
                heapq.heappush(self._reports, (now_s + SENSOR_S, job, held.start_s))
            self._seen[job] = held
            self._hold(job, self._drawn(job, held, now_s))
        if self._controller.nodes.table is not self._nodes:
            self._nodes = self._controller.nodes.table
            self._count_nodes()
        self._note(now_s)

    def log(self) -> PowerLog:
        """The whole record."""
        at_s, power_w = np.array(self._at_s), np.array(self._power_w)
        return PowerLog(self._setting, self._origin_s, at_s, power_w, self._held)

    def _count_nodes(self) -> None:
        draws = self._nodes.usable
        if self._states is not None:
            draws = draws & self._states.draws
        self._idle_w = self._setting.node.idle_w * int(draws.sum())

    def _drawn(self, job: int, held: Allocation, now_s: int) -> Held:
        nodes, use = held.nodes, held.use[:, CPUS]
        if held.adaptation is not None:
            nodes = np.concatenate((nodes, held.adaptation.nodes))
            use = np.concatenate((use, held.adaptation.use[:, CPUS]))
        beyond_w = int(self._setting.jobs.draw_w[job]) - self._setting.node.idle_w
        part_w = beyond_w * use // self._nodes.capacity[nodes, CPUS]
        return Held(now_s, len(nodes), int(part_w.sum()))

    def _hold(self, job: int, held: Held) -> None:
        before = self._held.setdefault(job, [])
        self._jobs_w += held.beyond_w - (before[-1].beyond_w if before else 0)
        if before and before[-1].at_s == held.at_s:
            before.pop()
        before.append(held)

    def _note(self, now_s: int) -> None:
        power_w = self._setting.base_w + self._idle_w + self._jobs_w
        if self._at_s and self._at_s[-1] == now_s:
            self._power_w[-1] = power_w
        elif not self._power_w or self._power_w[-1] != power_w:
            self._at_s.append(now_s)
            self._power_w.append(power_w)
