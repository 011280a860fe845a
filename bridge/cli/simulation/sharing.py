# SPDX-License-Identifier: Apache-2.0
"""Jobs that share nodes in simulations, as the options of `schedbridge lab simulate` state it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from bridge.cli.bundled import bundled
from bridge.errors import ConfigError
from bridge.lab.sim.runs.sharing_measures import sharing_measures
from bridge.lab.sim.runs.simulation_result import SimulationResult
from bridge.lab.sim.sharing.interference import read_interference
from bridge.lab.sim.sharing.setting import sharing_of
from bridge.lab.sim.workloads.system import System
from bridge.lab.sim.workloads.workload import Workload

EVERYWHERE: Final[Mapping[str, Any]] = {"partition": "*", "scope": "all"}
"""Rules on shared nodes, for a site that states none."""
_SECTION: Final = "coscheduling"


@dataclass(frozen=True)
class SharingOptions:
    """What the command was given.

    Attributes:
        interference: file; None: no job shares its nodes.
        consent: percent of the jobs.
        grace: `unlimited`, or so many minutes; None: not given.
    """

    interference: Path | None = None
    consent: float | None = None
    grace: str | None = None

    def applied(
        self, workload: Workload, system: System, planning: dict[str, Any], seed: int
    ) -> tuple[Workload, System, dict[str, Any]]:
        """The workload, the system and the site's rules with what was given.

        Raises:
            ConfigError: an option is impossible, or has no effect.
        """
        if self.interference is None:
            for name, value in (("consent", self.consent), ("over-time-limit", self.grace)):
                if value is not None:
                    raise ConfigError(name, "needs --interference FILE: nobody shares nodes")
            return workload, system, planning
        if workload.malleable is not None or workload.power is not None:
            raise ConfigError(
                "interference", "cannot be combined with malleable jobs or with what nodes draw"
            )
        sharing = sharing_of(
            read_interference(bundled(self.interference)),
            workload.executable,
            workload.user,
            consent_percent=100.0 if self.consent is None else self.consent,
            seed=seed,
            grace_s=self._grace_s(),
        )
        if _SECTION not in planning:
            planning = {**planning, _SECTION: [dict(EVERYWHERE)]}
        return replace(workload, sharing=sharing), system.with_shared_nodes(), planning

    def _grace_s(self) -> int | None:
        if self.grace is None or self.grace == "unlimited":
            return None
        minutes = int(self.grace) if self.grace.isdecimal() and len(self.grace) < 8 else -1
        if not 0 <= minutes <= 65_533:
            raise ConfigError(
                "over-time-limit",
                f"must be unlimited or 0 to 65533 minutes, not '{self.grace:.40}'",
            )
        return 60 * minutes


def shared(result: SimulationResult) -> dict[str, object]:
    """The run's figures on sharing nodes; none if no job may."""
    return {} if result.sharing is None else {"sharing": sharing_measures(result)}
