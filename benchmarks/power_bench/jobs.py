# SPDX-License-Identifier: Apache-2.0
"""The jobs of the experiment on power, as batch jobs of a real cluster and as a simulation.

Rules
    1. Sizes, kinds and draws are those of `bridge.lab.sim.corridor.paper`, as are the 2 s between
       submissions. Run times and the instants at which the corridor changes are divided by the
       compression: the paper states neither.
    2. Each step of a program takes `STEP_S` on one node, and scales by Amdahl's law (`pace.c`).
       Between two steps it may change its width.
    3. Slurm's time limits are whole minutes: they are rounded up, plus one minute, because the
       plugin does not grow jobs in their last minute. The simulation has the same limits.
    4. The simulation models the beginning and the end of a job as a first phase, whose duration
       does not depend on the number of nodes. Speed-ups are not measured on either side.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from bridge.lab.sim.corridor.paper import PAPER_CORRIDOR, PAPER_NODE, power_paper
from bridge.lab.sim.corridor.power import PowerSetting
from bridge.lab.sim.corridor.steps import CorridorSteps
from bridge.lab.sim.workloads.change_costs import flat
from bridge.lab.sim.workloads.speedup import UNKNOWN, Amdahl, Phase, Phases
from bridge.lab.sim.workloads.workload import Workload

STEP_S = 2.0
PROGRAMS = ("pi", "heat")
_FOLDER = "elastic/wheel"


@dataclass(frozen=True)
class Experiment:
    """The experiment.

    Attributes:
        seed: of sizes, run times and draws.
        compression: seconds of `bridge.lab.sim.corridor.paper` in one of the cluster's.
        count: number of jobs, the first ones.
        nodes: of the cluster; a job may have all of them.
    """

    seed: int
    compression: float
    count: int
    nodes: int

    def drawn(self) -> Workload:
        """The simulator's jobs, not compressed."""
        whole = power_paper(seed=self.seed).first(self.count)
        assert whole.malleable is not None
        most = np.full(self.count, self.nodes, dtype=np.int64)
        widths = replace(whole.malleable, max_nodes=most)
        return replace(whole, processors_total=self.nodes, malleable=widths)

    @property
    def corridor(self) -> CorridorSteps:
        """The paper's bounds, scaled to the nodes, at compressed instants."""

        def scaled(watts: int) -> int:
            return watts * self.nodes // 14

        steps = [
            replace(
                step, at_s=round(step.at_s / self.compression), lower_w=scaled(step.lower_w),
                upper_w=scaled(step.upper_w),
            )
            for step in PAPER_CORRIDOR.steps
        ]  # fmt: skip
        return replace(PAPER_CORRIDOR, steps=tuple(steps))

    def setting(self, workload: Workload) -> PowerSetting:
        """What is drawn."""
        assert workload.power is not None
        return PowerSetting(workload.power, PAPER_NODE, self.corridor, sensors=True, seed=self.seed)


@dataclass(frozen=True)
class Job:
    """One job; seconds are the cluster's.

    Attributes:
        number: in the order of submission.
        at_s: its submission after the first one.
        program: pi or heat.
        steps: of its program.
        serial: the part of a step that does not scale.
        least_w, most_w: its stated draw; draw_w: its true draw; W per node.
        most: maximum number of nodes; 0: it is rigid.
    """

    number: int
    at_s: float
    program: str
    nodes: int
    steps: int
    serial: float
    limit_min: int
    least_w: int
    most_w: int
    draw_w: int
    most: int

    @property
    def malleable(self) -> bool:
        """May it change its width?"""
        return self.most > 0

    @property
    def runs_s(self) -> float:
        """The duration of all steps on the requested nodes."""
        return self.steps * STEP_S * (self.serial + (1 - self.serial) / self.nodes)

    @property
    def options(self) -> list[str]:
        """The options of sbatch."""
        found = [f"-N{self.nodes}", "--exclusive", "--ntasks-per-node=1", f"-t{self.limit_min}"]
        found.append(f"--job-name={self.program}")
        if self.malleable:
            found.append(f"--malleable=1-{self.most}")
            found += [f"--min-power={self.least_w}", f"--max-power={self.most_w}"]
        return found

    @property
    def command(self) -> str:
        """The program; its last argument is the time of a step on one node."""
        microseconds = round(STEP_S * 1e6)
        if self.program == "pi":
            return f"{_FOLDER}/pi {self.steps} 20000 {microseconds}"
        return f"{_FOLDER}/heat 64 64 {self.steps} 1 {microseconds}"

    def script(self, exports: str) -> str:
        """The batch script; `exports`: settings of MPI."""
        run = (
            f"schedbridge run --mpi pmi2 --engine join --no-mpi-time -- {self.command}"
            if self.malleable
            else f"srun --mpi=pmi2 -n {self.nodes} {self.command}"
        )
        return (
            f"#!/bin/bash\n{exports}export PACE_SERIAL={self.serial} TMPDIR=/tmp\n"
            f"export MPIR_CVAR_CH4_NETMOD=ofi\nexec {run}\n"
        )


def real_jobs(given: Experiment, *, malleable: bool) -> list[Job]:
    """The jobs of the cluster, in the order of their submission."""
    drawn = given.drawn()
    assert drawn.power is not None
    assert drawn.malleable is not None
    found = []
    for at in range(given.count):
        size, speedup = int(drawn.processors[at]), drawn.malleable.speedup[at]
        runs_s = float(drawn.runtime_s[at]) / given.compression
        limit_s = float(drawn.time_limit_s[at]) / given.compression
        found.append(
            Job(
                at, float(drawn.submit_s[at] - drawn.submit_s[0]),
                PROGRAMS[int(drawn.executable[at])], size,
                max(round(runs_s * float(speedup.at(size)) / STEP_S), 1), float(speedup.serial),
                math.ceil(limit_s / 60) + 1, int(drawn.power.min_w[at]),
                int(drawn.power.max_w[at]), int(drawn.power.draw_w[at]),
                given.nodes if malleable else 0,
            )
        )  # fmt: skip
    return found


@dataclass(frozen=True)
class Costs:
    """Times measured on the cluster, s, for the simulation of the same jobs.

    Attributes:
        change_s: mean duration of a change of width.
        still_s: the part in which the program stands still.
        around_s: run time of a job beyond its steps: its beginning and end.
    """

    change_s: float = 0.0
    still_s: float = 0.0
    around_s: float = 0.0


def simulated_jobs(given: Experiment, costs: Costs) -> Workload:
    """The same jobs for the simulator, in the cluster's seconds."""
    drawn, jobs = given.drawn(), real_jobs(given, malleable=True)
    assert drawn.malleable is not None
    limit_s = np.array([job.limit_min * 60 for job in jobs], dtype=np.int64)
    runtime_s = np.array([round(job.runs_s + costs.around_s) for job in jobs], dtype=np.int64)
    speedup = np.empty(len(jobs), dtype=object)
    for at, job in enumerate(jobs):
        work_s = job.steps * STEP_S
        share = costs.around_s / (costs.around_s + work_s)
        phases = [Phase(1.0 - share, Amdahl(job.serial), UNKNOWN)]
        if share > 0:
            phases.insert(0, Phase(share, Amdahl(1.0), UNKNOWN))
        speedup[at] = Phases(tuple(phases))
    changes = flat(max(costs.change_s, costs.still_s), costs.still_s)
    widths = replace(drawn.malleable, changes=changes, speedup=speedup)
    return replace(
        drawn, runtime_s=np.clip(runtime_s, 1, limit_s), time_limit_s=limit_s, malleable=widths
    )
