# SPDX-License-Identifier: Apache-2.0
"""Power in simulations, as the options of `schedbridge lab simulate` state it, and its results."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from bridge.errors import ConfigError
from bridge.extensions.power.measures import PowerMeasures, power_measures
from bridge.extensions.power.rules import NodePower
from bridge.lab.sim.corridor.paper import ERROR, PAPER_CORRIDOR, PAPER_NODE, power_paper
from bridge.lab.sim.corridor.power import PowerSetting
from bridge.lab.sim.corridor.steps import read_corridor, watts
from bridge.lab.sim.runs.power_oracle import Configurations, judges
from bridge.lab.sim.runs.simulation_result import SimulationResult
from bridge.lab.sim.workloads.job_power import by_application
from bridge.lab.sim.workloads.workload import Workload
from bridge.model.rules.node_set import NodeSet

POWER_PAPER = "power-paper"
"""In place of a trace: the workload of `bridge.lab.sim.corridor.paper`."""


@dataclass(frozen=True)
class PowerOptions:
    """The options of the command.

    Attributes:
        node_power: `IDLE:MAX`.
        error: percent.
        sensors: whether draws are measured.
        resume_s: time to power a node up, s; 0: nodes cannot be powered down.
    """

    corridor: Path | None = None
    node_power: str | None = None
    error: float | None = None
    sensors: bool = False
    resume_s: int = 0

    def checked(self, *, bounded: bool) -> Self:
        """Returns itself.

        Args:
            bounded: power has bounds, also without a corridor of its own.

        Raises:
            ConfigError: an option would have no effect.
        """
        if self.resume_s and self.node_power and self.corridor is None and not bounded:
            raise ConfigError("power-down", "has no effect without a bound: --corridor FILE")
        return self

    @property
    def error_share(self) -> float | None:
        """The maximum relative difference of draws from their model.

        Raises:
            ConfigError: the percentage is out of range.
        """
        if self.error is None:
            return None
        if not 0 <= self.error <= 90:
            raise ConfigError("power-error", f"must be 0 to 90 percent, not {self.error:g}")
        return self.error / 100


def paper_workload(options: PowerOptions, seed: int) -> Workload:
    """The workload of `power-paper`.

    Raises:
        ConfigError: an option contradicts it.
    """
    if options.node_power is not None:
        raise ConfigError("node-power", f"{POWER_PAPER} has its own nodes: leave it out")
    error = options.error_share
    return power_paper(seed=seed, error=ERROR if error is None else error)


def powered(
    workload: Workload, options: PowerOptions, seed: int
) -> tuple[Workload, PowerSetting | None]:
    """The workload with the draw of its jobs, and the setting; None: power is not computed.

    Raises:
        ConfigError: an option is missing or impossible.
    """
    corridor = None if options.corridor is None else read_corridor(options.corridor)
    if workload.power is not None:
        steps = corridor or PAPER_CORRIDOR
        setting = PowerSetting(
            workload.power, PAPER_NODE, steps, options.sensors, seed, options.resume_s
        )
        return workload, setting
    if options.node_power is None:
        given = {
            "corridor": options.corridor is not None,
            "power-error": options.error is not None,
            "power-sensors": options.sensors,
            "power-down": options.resume_s > 0,
        }
        for name, there in given.items():
            if there:
                raise ConfigError(name, "needs the power of nodes: --node-power IDLE:MAX, in watts")
        return workload, None
    node = _node(options.node_power)
    error = options.error_share or 0.0
    jobs = by_application(workload.executable, workload.user, node, error=error, seed=seed)
    setting = PowerSetting(jobs, node, corridor, options.sensors, seed, options.resume_s)
    return replace(workload, power=jobs), setting


def _node(text: str) -> NodePower:
    idle, colon, maximum = text.partition(":")
    if not colon:
        raise ConfigError("node-power", f"must be IDLE:MAX, as in 71:250, not '{text:.40}'")
    idle_w, max_w = watts("node-power", idle), watts("node-power", maximum)
    if idle_w > max_w:
        raise ConfigError("node-power", f"an idle node draws more ({idle_w} W) than any: {max_w} W")
    return NodePower("all nodes", NodeSet(), idle_w, max_w)


def measured(result: SimulationResult) -> PowerMeasures | None:
    """The measures of power of a run; None: power was not computed."""
    log = result.power
    if log is None:
        return None
    exists = Configurations.of(result, log).exists if judges(result) else None
    submitted_s = result.workload.submit_s.tolist()
    return power_measures(log.until(end_s(result)), log.bounds, exists, submitted_s)


def end_s(result: SimulationResult) -> int:
    """The last end of a run."""
    schedule = result.schedule
    ends_s = schedule.end_s[schedule.finished]
    return int(ends_s.max()) if len(ends_s) else int(schedule.submit_s.max())
