# SPDX-License-Identifier: Apache-2.0
"""The speed-up of jobs on more nodes.

The speed-up on one node is 1. All time beyond perfect speed-up counts as communication: a job's
MTCT (time in MPI calls over computing time) is width / speed-up - 1.

Source: Amdahl, AFIPS 1967.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from bridge.errors import ConfigError


class Speedup(ABC):
    """Speed on a number of nodes, as a multiple of that on one."""

    @abstractmethod
    def at(self, nodes: int) -> float:
        """The speed-up on this many nodes, > 0."""

    def mtct(self, nodes: int) -> float:
        """Time in MPI calls over computing time, >= 0."""
        return max(nodes / self.at(nodes) - 1.0, 0.0)


@dataclass(frozen=True)
class Amdahl(Speedup):
    """A part of the work that runs on one node only, whatever their number."""

    serial: float

    def __post_init__(self) -> None:
        if not 0.0 <= self.serial <= 1.0:
            raise ConfigError("speedup", f"serial fraction must lie in [0, 1], not {self.serial}")

    def at(self, nodes: int) -> float:
        """1 / (serial + (1 - serial) / nodes)."""
        return 1.0 / (self.serial + (1.0 - self.serial) / nodes)
