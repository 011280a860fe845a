# SPDX-License-Identifier: Apache-2.0
"""The speed of two stages that share a node at one instant, relative to having it alone.

Terms
    demand      share of the CPUs, or of the disk's time, that a stage uses alone
    ceiling     the maximum CPU time of a job under its quota, as a share of the CPUs
    weight      its share when CPU time is short, as in cgroup v2

Rules
    1. CPU time is shared by weight: each gets its demand, at most its ceiling and at most its
       share by weight; the rest of one goes to the other. Together they get at most all CPUs.
    2. The time of the disk is shared likewise, by equal weights and without a ceiling. A job that
       gets only a part of its CPU demand demands the same part of the disk's time.
    3. The scarcer of the two determines the speed of a stage: time received over time demanded.
    4. Beyond that the other slows it down in proportion to its own speed (memory bandwidth,
       caches, scheduling delays): the speed is divided by 1 + sensitivity * pressure of the other *
       its speed by rule 3. It uses CPU time in proportion to its speed: work takes the same CPU
       time with any partner (measured: docs/results/coscheduling.md).
    5. A job alone has no ceiling and speed 1. If only one of two jobs is busy on a node, its
       ceiling still applies.

`bridge.lab.sim.sharing.progress` extends this to jobs on several nodes.

Source: rules 1 and 2 are the max-min shares of Linux' fair scheduler; rule 4 is the separation of
J. Mars et al., Bubble-Up (MICRO 2011), into sensitivity and pressure.
"""

from dataclasses import dataclass

from bridge.lab.sim.sharing.interference import Application, UseStage


@dataclass(frozen=True)
class Side:
    """One of two jobs on a shared node.

    Attributes:
        of: that both share; a guest may have requested fewer.
        ceiling: 0 to 1; 1: no quota.
        weight: above 0.
    """

    application: Application
    stage: UseStage
    cpus: int
    of: int
    ceiling: float = 1.0
    weight: float = 100.0

    @property
    def demand(self) -> float:
        """The part of the shared CPUs that it uses, at most 1."""
        return min(self.stage.busy(self.cpus) / self.of, 1.0)


@dataclass(frozen=True)
class JobRate:
    """The progress of a job at an instant.

    Attributes:
        speed: work per second, 0 to 1; 1: as fast as alone.
        busy: CPUs that it keeps busy.
    """

    speed: float
    busy: float


def alone(side: Side) -> JobRate:
    """The rate of a job that has its nodes to itself."""
    return JobRate(1.0, side.stage.busy(side.cpus))


def undisturbed(side: Side) -> JobRate:
    """The rate under its ceiling where the other job is not busy."""
    speed = _part(min(side.demand, side.ceiling), side.demand)
    return JobRate(speed, speed * side.demand * side.of)


def together(one: Side, other: Side) -> tuple[JobRate, JobRate]:
    """The rates of two jobs on the same node."""
    wanted = one.demand, other.demand
    capped = min(wanted[0], one.ceiling), min(wanted[1], other.ceiling)
    cpu = _shared(*capped, one.weight, other.weight)
    parts = _part(cpu[0], wanted[0]), _part(cpu[1], wanted[1])
    disk = _shared(one.stage.io * parts[0], other.stage.io * parts[1], 1.0, 1.0)
    first = min(parts[0], _part(disk[0], one.stage.io))
    second = min(parts[1], _part(disk[1], other.stage.io))
    return (
        _slowed(one, first, other.application, second),
        _slowed(other, second, one.application, first),
    )


def _slowed(side: Side, speed: float, other: Application, other_speed: float) -> JobRate:
    """The speed beside another job, by that one's pressure (rule 4)."""
    speed /= 1 + side.application.sensitivity * other.pressure * other_speed
    return JobRate(speed, speed * side.demand * side.of)


def _part(got: float, demand: float) -> float:
    return got / demand if demand > got else 1.0


def _shared(
    one: float, other: float, one_weight: float, other_weight: float
) -> tuple[float, float]:
    """Max-min shares of 1 by weight; each gets at most its demand."""
    if one + other <= 1:
        return one, other
    fair = one_weight / (one_weight + other_weight)
    if one <= fair:
        return one, 1 - one
    if other <= 1 - fair:
        return 1 - other, other
    return fair, 1 - fair
