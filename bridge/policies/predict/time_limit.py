# SPDX-License-Identifier: Apache-2.0
"""Every job takes its time limit: what its user asked for, and what everybody is told."""

from dataclasses import dataclass

from bridge.model.snapshot import Snapshot
from bridge.ports import Context, Predicted

_NOTHING = Predicted()


@dataclass(frozen=True)
class TimeLimit:
    """Predicts nothing."""

    def predict(self, snapshot: Snapshot, context: Context) -> Predicted:
        """Leaves the limits as they are; see `bridge.ports.PredictPolicy`."""
        del snapshot, context
        return _NOTHING
