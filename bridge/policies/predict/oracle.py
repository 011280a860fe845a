# SPDX-License-Identifier: Apache-2.0
"""Predicts the actual run times; for simulations only.

Source: the baseline of Galleguillos, Kiziltan, Soto, CP 2020 ("real duration").
"""

from dataclasses import dataclass

import numpy as np

from bridge.errors import PolicyError
from bridge.model.decisions.prediction import Prediction
from bridge.model.snapshot import Snapshot
from bridge.ports import Context, Predicted


@dataclass(frozen=True)
class Oracle:
    """Knows all run times (`Environment.run_s`)."""

    def predict(self, snapshot: Snapshot, context: Context) -> Predicted:
        """Returns the actual run times; see `bridge.ports.PredictPolicy`."""
        known, running = context.environment.run_s, snapshot.running
        if known is None:
            raise PolicyError("oracle", "real run times are known in simulations only")
        run_s = [known.get(job_id, 0) for job_id in snapshot.jobs.id]
        left_s = [known.get(job_id, 0) for job_id in running.id]
        taken_s = np.array(left_s, dtype=np.int64)
        return Predicted(
            Prediction(
                "oracle",
                np.array(run_s, dtype=np.int64),
                np.where(taken_s > 0, running.start_s + taken_s, 0),
            )
        )
