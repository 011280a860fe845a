# SPDX-License-Identifier: Apache-2.0
"""The columns of nodes that the controller can power down and up again.

Terms
    off     powered down, powering down, or powering up: no job can run there yet.
    resume  from the order to power a node up until jobs can run there.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bridge.model.node import NodeTable

NAME: Final = "power"
"""The name of the extension."""


@dataclass(frozen=True)
class PowerSaving:
    """State of nodes that can be powered down, as columns of length n_nodes.

    Attributes:
        can: bool: the controller may power it down and up again.
        off: bool: it is powered down, on the way there, or on the way up.
        resume_s: int64: off: time until jobs can run there if it is powered up now; on: time to
            power up again after it has been powered down.
        ready_s: int64: powering up: when jobs are expected to be able to run there; 0: it is not.
        idle_since_s: int64: on: since when no job uses it, Unix seconds; 0: unknown.
    """

    can: NDArray[np.bool_]
    off: NDArray[np.bool_]
    resume_s: NDArray[np.int64]
    ready_s: NDArray[np.int64]
    idle_since_s: NDArray[np.int64]

    @property
    def resuming(self) -> NDArray[np.bool_]:
        """(n_nodes,) which are powering up."""
        return self.ready_s > 0


def saving_of(nodes: NodeTable) -> PowerSaving | None:
    """Returns the columns of some nodes; None: the controller powers no node down."""
    return nodes.parts.get(NAME)
