# SPDX-License-Identifier: Apache-2.0
"""No prediction: every job is planned with its time limit."""

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
