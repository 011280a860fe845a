# SPDX-License-Identifier: Apache-2.0
"""Time limits of hosts, lengthened by what their guests have cost them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from bridge.model.job import RunningTable
from bridge.model.job_columns import objects

MINUTE_S = 60
"""Controllers lengthen limits by whole minutes."""


@dataclass(frozen=True)
class Extensions:
    """Lengthened time limits, as columns of length n_extensions.

    Attributes:
        id: (n_extensions,) object (str): running jobs, each once.
        total_s: (n_extensions,) int64: the whole extension since the job's start. The controller
            rounds it up to whole minutes.
    """

    id: NDArray[np.object_] = field(default_factory=lambda: np.empty(0, dtype=object))
    total_s: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.id)

    @staticmethod
    def of(totals_s: Mapping[str, int]) -> "Extensions":
        """Those of a mapping of job id to `total_s`."""
        if not totals_s:
            return NO_EXTENSIONS
        return Extensions(objects(totals_s), np.array(list(totals_s.values()), dtype=np.int64))


NO_EXTENSIONS = Extensions()


def hosted_s(running: RunningTable, row: int, now_s: int) -> int:
    """The time for which a running job has had guests since its start, until its own limit, s."""
    since_s = int(running.hosted_since_s[row])
    own_end_s = int(running.end_s[row]) - int(running.extended_s[row])
    open_s = max(min(now_s, own_end_s) - since_s, 0) if since_s > 0 else 0
    ran_s = max(now_s - int(running.start_s[row]), 0)
    return min(int(running.hosted_s[row]) + open_s, ran_s)


def whole_minutes_s(total_s: int) -> int:
    """An extension as the controller rounds it, s."""
    return -(-total_s // MINUTE_S) * MINUTE_S
