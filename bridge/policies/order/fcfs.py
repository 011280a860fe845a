# SPDX-License-Identifier: Apache-2.0
"""First come, first served: by submission, ties by job id.

Source: the order under which backfilling is usually studied (Mu'alem, Feitelson, TPDS 2001).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridge.model.snapshot import Snapshot


@dataclass(frozen=True)
class Fcfs:
    """Orders by submission time."""

    def order(self, snapshot: Snapshot) -> NDArray[np.int64]:
        """Returns the rows by submission; rows of equal second keep the table's order (by id)."""
        return snapshot.jobs.submit_s.argsort(kind="stable").astype(np.int64, copy=False)
