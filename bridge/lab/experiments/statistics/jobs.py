# SPDX-License-Identifier: Apache-2.0
"""The jobs of one run as columns, and two runs of the same jobs as a pair.

A pair joins jobs by their ids. Judged are the jobs that ended in both runs and were submitted in
the middle of them: the first jobs find an empty machine, the last ones have nobody behind them
(`Trim`). Both runs of a pair are judged over exactly the same jobs.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bridge.errors import ConfigError, ResultError
from bridge.lab.experiments.results import COLUMNS, JobColumns
from bridge.units import BOUND_S


@dataclass(frozen=True)
class Jobs(JobColumns):
    """Jobs that ended, and what follows from their columns.

    Attributes:
        capacity: CPUs of the machine; None: unknown.
    """

    capacity: int | None = None

    @classmethod
    def of(cls, columns: JobColumns, capacity: int | None = None) -> "Jobs":
        """Takes the columns of a result."""
        return cls(**{name: getattr(columns, name) for name in COLUMNS}, capacity=capacity)

    def __getitem__(self, rows: NDArray[np.bool_] | NDArray[np.intp]) -> "Jobs":
        taken = {name: getattr(self, name)[rows] for name in COLUMNS}
        return Jobs(**taken, capacity=self.capacity)

    @property
    def wait_s(self) -> NDArray[np.float64]:
        """(n_jobs,) start - submit, s."""
        return self.start_s - self.submit_s

    @property
    def response_s(self) -> NDArray[np.float64]:
        """(n_jobs,) end - submit, s."""
        return self.end_s - self.submit_s

    @property
    def bounded_slowdown(self) -> NDArray[np.float64]:
        """(n_jobs,) as in `bridge.measures`: run times under 10 s count as 10 s."""
        ran_s = np.maximum(self.end_s - self.start_s, BOUND_S)
        slow: NDArray[np.float64] = np.maximum((self.end_s - self.submit_s) / ran_s, 1.0)
        return slow

    @property
    def cpu_s(self) -> NDArray[np.float64]:
        """(n_jobs,) CPU-seconds held."""
        return self.width * (self.end_s - self.start_s)


def joined(parts: list[Jobs]) -> Jobs:
    """All jobs of several runs, one behind the other."""
    columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in COLUMNS}
    return Jobs(**columns, capacity=parts[0].capacity)


@dataclass(frozen=True)
class Trim:
    """Which shares of the jobs, in order of submission, are simulated but not judged.

    Attributes:
        warm_up: the first ones; 0 <= warm_up, warm_up + cool_down < 1.
        cool_down: the last ones.
    """

    warm_up: float = 0.05
    cool_down: float = 0.05

    def __post_init__(self) -> None:
        if not (self.warm_up >= 0 and self.cool_down >= 0 and self.warm_up + self.cool_down < 1):
            raise ConfigError(
                "trim",
                f"{self.warm_up:.0%} and {self.cool_down:.0%} leave no jobs to judge: the two must"
                " be 0 or more and together less than 100 %",
            )

    def judged(self, submit_s: NDArray[np.float64]) -> NDArray[np.bool_]:
        """(n_jobs,) whether each is in the middle; jobs of the same second keep their order."""
        n_jobs = len(submit_s)
        rank = np.empty(n_jobs, dtype=np.int64)
        rank[np.argsort(submit_s, kind="stable")] = np.arange(n_jobs)
        first, last = int(n_jobs * self.warm_up), n_jobs - int(n_jobs * self.cool_down)
        middle: NDArray[np.bool_] = (rank >= first) & (rank < last)
        return middle

    @property
    def words(self) -> str:
        """The sentence for a report."""
        if not self.warm_up and not self.cool_down:
            return "all jobs are judged"
        return (
            f"the first {100 * self.warm_up:.3g} % and the last {100 * self.cool_down:.3g} % of the"
            " submissions are simulated, but not judged"
        )


AS_USUAL: Final = Trim()


@dataclass(frozen=True)
class RunPair:
    """Two runs of the same jobs, row by row.

    Attributes:
        base: under the baseline.
        other: under the policy that is compared with it.
        judged: (n_jobs,) bool.
        unpaired: jobs that ended in one of the runs only.
    """

    base: Jobs
    other: Jobs
    judged: NDArray[np.bool_]
    unpaired: int


def pair_of(base: Jobs, other: Jobs, trim: Trim, name: str = "the pair") -> RunPair:
    """Joins two runs by the ids of their jobs.

    Args:
        base: the run under the baseline.
        name: the name of the pair, for messages.

    Raises:
        ResultError: an id is there twice, no job is in both, or a job was submitted at another
            time or has another width: they are not runs of the same workload.
    """
    for run in (base, other):
        if len(np.unique(run.id)) < len(run):
            raise ResultError(name, "two jobs of one run have the same id: they cannot be paired")
    common, left, right = np.intersect1d(base.id, other.id, assume_unique=True, return_indices=True)
    if not len(common):
        raise ResultError(name, "the two runs have no job in common that ended")
    unpaired = len(base) + len(other) - 2 * len(common)
    base, other = base[left], other[right]
    differs = (base.submit_s != other.submit_s) | (base.width != other.width)
    if differs.any():
        raise ResultError(
            name,
            f"job {common[np.argmax(differs)]} differs between the two runs: they do not have the"
            " same workload",
        )
    return RunPair(base, other, trim.judged(base.submit_s), unpaired)
