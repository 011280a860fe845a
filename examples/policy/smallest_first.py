# SPDX-License-Identifier: Apache-2.0
"""A policy in a package of its own: smallest jobs first; no job is passed for longer than a bound.

Rules
    1. A job that has waited for `patience_s` stands before all that have not, longest wait first.
    2. Of the others the job with the fewest nodes stands first, then the one submitted first.

Source: textbook; Smallest Job First, with ageing.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridge.errors import ConfigError
from bridge.model.policy import Algorithm, PolicyPackage, preset
from bridge.model.snapshot import Snapshot


@dataclass(frozen=True)
class SmallestFirst:
    """Orders by the number of nodes.

    Attributes:
        patience_s: how long smaller jobs may pass a job, s.
    """

    patience_s: int = 4 * 3600

    def __post_init__(self) -> None:
        if self.patience_s < 0:
            raise ConfigError("patience_s", "must be 0 or more")

    def order(self, snapshot: Snapshot) -> NDArray[np.int64]:
        """Returns the rows in the order of the rules."""
        jobs = snapshot.jobs
        is_patient = jobs.submit_s > snapshot.now_s - self.patience_s
        n_nodes = np.where(is_patient, jobs.min_nodes, 0)
        return np.lexsort((jobs.submit_s, n_nodes, is_patient)).astype(np.int64, copy=False)


PACKAGE = PolicyPackage(
    algorithms={"order": {"smallest-first": Algorithm("smallest_first:SmallestFirst")}},
    presets=(preset("smallest-first", "smallest-first", "easy", "best-fit"),),
    summaries={
        "smallest-first": "the fewest nodes first; no job is passed for more than four hours"
    },
)
