# SPDX-License-Identifier: Apache-2.0
"""CPU quotas of jobs that share nodes."""

from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray


def _no_ints() -> NDArray[np.int64]:
    return np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class Quotas:
    """CPU quotas and weights, as columns of length n_quotas.

    Attributes:
        id: (n_quotas,) object (str): jobs that run or start now, each once.
        milli_cpus_per_node: (n_quotas,) int64: the most a job may use on each of its nodes, in
            thousandths of a CPU; 0: no quota.
        weight: (n_quotas,) int64: its share where CPU time is short, 1 to 10,000 as in cgroup v2;
            100 is usual.
    """

    id: NDArray[np.object_] = field(default_factory=lambda: np.empty(0, dtype=object))
    milli_cpus_per_node: NDArray[np.int64] = field(default_factory=_no_ints)
    weight: NDArray[np.int64] = field(default_factory=_no_ints)

    def __len__(self) -> int:
        return len(self.id)

    def without(self, ids: Collection[str]) -> "Quotas":
        """Those of other jobs."""
        if not ids:
            return self
        kept = np.array([job_id not in ids for job_id in self.id.tolist()], dtype=bool)
        return Quotas(self.id[kept], self.milli_cpus_per_node[kept], self.weight[kept])


NO_QUOTAS = Quotas()
MIN_WEIGHT, USUAL_WEIGHT, MAX_WEIGHT = 1, 100, 10_000
