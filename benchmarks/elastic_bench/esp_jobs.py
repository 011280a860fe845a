# SPDX-License-Identifier: Apache-2.0
"""The jobs of ESP, compressed in time, as batch jobs of a real cluster and as a simulation.

Rules
    1. Order, which jobs are malleable, and their speed-ups are those of
       `bridge.lab.sim.workloads.esp`, as is the number of nodes. Run times and pauses between
       submissions are divided by the compression.
    2. Slurm's time limits are whole minutes: ESP's are compressed and rounded up. A malleable job
       requests one minute more, because the plugin does not grow jobs in their last minute.
    3. The simulation has the same limits, as seconds of ESP.
    4. The duration of a job's beginning and end does not depend on the number of nodes: it is a
       first phase of the simulated job, during which nothing is measured.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from bridge.lab.sim.workloads.change_costs import flat
from bridge.lab.sim.workloads.esp import esp
from bridge.lab.sim.workloads.speedup import UNKNOWN, Amdahl, Phase, Phases, Speedup
from bridge.lab.sim.workloads.workload import Workload
from bridge.model.job import WidthRule

UNIT_S = 0.5
"""Work on one node between two moments at which a program may look for a change."""


@dataclass(frozen=True)
class Esp:
    """The experiment.

    Attributes:
        share: of malleable jobs, percent.
        seed: of all random values.
        nodes: of the cluster.
        compression: ESP's seconds in one of the cluster's.
        count: number of jobs, the first ones.
    """

    share: float
    seed: int
    nodes: int
    compression: float
    count: int

    def drawn(self) -> Workload:
        """The simulator's jobs."""
        return esp(self.share, nodes=self.nodes, seed=self.seed).first(self.count)


@dataclass(frozen=True)
class Job:
    """One job; seconds are the cluster's.

    Attributes:
        number: in the order of submission.
        at_s: its submission after the first one.
        runs_s: on the requested nodes.
        work_s: on one node.
        serial: its serial part.
        least, most: minimum and maximum number of nodes; 0: it is rigid.
    """

    number: int
    at_s: float
    nodes: int
    runs_s: float
    work_s: float
    serial: float
    limit_min: int
    least: int
    most: int
    rule: WidthRule

    @property
    def malleable(self) -> bool:
        """May it change its width?"""
        return self.most > 0

    @property
    def units(self) -> int:
        """Of its work."""
        return max(math.ceil(self.work_s / UNIT_S), 1)

    @property
    def options(self) -> list[str]:
        """The options of sbatch."""
        found = [f"-N{self.nodes}", "--exclusive", "--ntasks-per-node=1", f"-t{self.limit_min}"]
        if self.malleable:
            found.append(f"--malleable={self.least}-{self.most}")
        if self.malleable and self.rule != WidthRule.ANY:
            found.append(f"--node-constraints={self.rule.name.lower()}")
        return found

    @property
    def script(self) -> str:
        """The batch script."""
        program = f"python3 paced.py {self.units} {self.work_s:.4f} {self.serial:.6f} {self.number}"
        run = (
            f"schedbridge run --mpi none --engine join -- {program}"
            if self.malleable
            else f"srun --mpi=none -n {self.nodes} {program}"
        )
        return f"#!/bin/bash\nexport TMPDIR=/tmp\nexec {run}\n"


def real_jobs(given: Esp) -> list[Job]:
    """The jobs of the cluster, in the order of their submission."""
    drawn, compression = given.drawn(), given.compression
    widths = drawn.malleable
    assert widths is not None
    found = []
    for at in range(len(drawn)):
        size = int(drawn.processors[at])
        runs_s = float(drawn.runtime_s[at]) / compression
        may = bool(widths.max_nodes[at])
        longest_s = float(drawn.time_limit_s[at]) / compression
        limit_min = math.ceil(longest_s / 60) + may
        speedup = widths.speedup[at]
        found.append(
            Job(
                at, float(drawn.submit_s[at] - drawn.submit_s[0]) / compression, size, runs_s,
                runs_s * float(speedup.at(size)), float(speedup.serial), limit_min,
                int(widths.min_nodes[at]), int(widths.max_nodes[at]),
                WidthRule(int(widths.width_rule[at])),
            )
        )  # fmt: skip
    return found


@dataclass(frozen=True)
class Costs:
    """Times measured on the cluster, in its seconds, for the simulation of the same jobs.

    Attributes:
        change_s: mean duration of a change of width.
        still_s: the part in which the program stands still; None: all of it.
        rigid_s, malleable_s: run time beyond the program's, of jobs that kept their width: start
            of the script, of the step and of its processes, and their ends.
        scale: beginnings and ends are faster on more nodes, like the program (not rule 4).
    """

    change_s: float = 0.0
    still_s: float | None = None
    rigid_s: float = 0.0
    malleable_s: float = 0.0
    scale: bool = False


def simulated_jobs(given: Esp, costs: Costs) -> Workload:
    """The same jobs for the simulator, in ESP's seconds."""
    drawn, compression = given.drawn(), given.compression
    jobs = real_jobs(given)
    widths = drawn.malleable
    assert widths is not None
    limit_s = np.array([job.limit_min * 60 * compression for job in jobs])
    extra_s = np.array([costs.malleable_s if job.malleable else costs.rigid_s for job in jobs])
    extra_s *= compression
    runtime_s = np.ceil(drawn.runtime_s + extra_s)
    speedup = widths.speedup.copy()
    for at, job in enumerate(jobs):
        if job.malleable and extra_s[at] > 0 and not costs.scale:
            speedup[at] = _after(extra_s[at], job.work_s * compression, speedup[at])
    still_s = None if costs.still_s is None else costs.still_s * compression
    changes = flat(costs.change_s * compression, still_s)
    return replace(
        drawn,
        runtime_s=np.minimum(runtime_s, limit_s).astype(np.int64),
        time_limit_s=np.ceil(limit_s).astype(np.int64),
        malleable=replace(widths, changes=changes, speedup=speedup),
    )


def _after(extra_s: float, work_s: float, program: Speedup) -> Phases:
    """A program after a phase of `extra_s` on any number of nodes (rule 4)."""
    share = extra_s / (extra_s + work_s)
    return Phases((Phase(share, Amdahl(1.0), UNKNOWN), Phase(1.0 - share, program)))
