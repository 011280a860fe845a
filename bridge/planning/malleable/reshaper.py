# SPDX-License-Identifier: Apache-2.0
"""The common base of reshape policies.

A reshape policy is a frozen dataclass whose fields are its parameters, with the one method
`reshaped`.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridge.errors import ConfigError
from bridge.model.snapshot import Snapshot
from bridge.planning.malleable.width_explanations import Demands, Watched, with_reasons
from bridge.ports import Context, Planned, Replan


@dataclass(frozen=True)
class Adapting:
    """A policy for which resizes take time.

    Attributes:
        adaptation_s: how long a change of width is expected to take.
    """

    adaptation_s: int = 5

    def __post_init__(self) -> None:
        if self.adaptation_s < 1:
            raise ConfigError("adaptation_s", f"must be 1 or more, not {self.adaptation_s}")


@dataclass(frozen=True)
class Reshaper(Adapting, ABC):
    """Resizes running jobs, whatever the order and the state."""

    def reshape(
        self,
        snapshot: Snapshot,
        order: NDArray[np.int64],
        planned: Planned,
        replan: Replan,
        context: Context,
    ) -> Planned:
        """Resizes running jobs; see `bridge.ports.ReshapePolicy`."""
        del order, context
        watched = Watched(replan)
        found = self.reshaped(snapshot, planned, watched)
        demands = Demands(self.adaptation_s, one_at_a_time=True)
        return with_reasons(snapshot, found, watched.left_out, demands)

    @abstractmethod
    def reshaped(self, snapshot: Snapshot, planned: Planned, replan: Replan) -> Planned:
        """Returns `planned`, or what `replan` returned.

        Args:
            snapshot: the state of the cluster, with predicted times.
            replan: the plan with other widths.
        """
