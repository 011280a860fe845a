# SPDX-License-Identifier: Apache-2.0
"""Classes of jobs: by size, by length, and by how many jobs their user has.

| kind | by | edges |
|---|---|---|
| size | CPUs as a share of the machine | 1 CPU; 1/8; 1/2 |
| length | run time under the baseline | 10 min; 1 h; 8 h |
| user | judged jobs of the same user | 10; 100 |

An edge belongs to the class below it. The classes of size are those of `bridge.measures`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bridge.lab.experiments.statistics.jobs import Jobs
from bridge.measures import SIZE_CLASSES

LENGTHS: Final = (
    ("up to 10 min", 600.0),
    ("10 min to 1 h", 3600.0),
    ("1 h to 8 h", 8 * 3600.0),
    ("over 8 h", np.inf),
)
"""Name and longest run time, s."""

USERS: Final = (
    ("users with up to 10 jobs", 10.0),
    ("users with 11 to 100 jobs", 100.0),
    ("users with over 100 jobs", np.inf),
)
"""Name and most judged jobs of the user."""


@dataclass(frozen=True)
class JobClass:
    """One class.

    Attributes:
        kind: "all", "size", "length" or "user".
        name: unique among all classes.
    """

    kind: str
    name: str


ALL: Final = JobClass("all", "all jobs")


def classes_of(jobs: Jobs) -> Iterator[tuple[JobClass, NDArray[np.bool_]]]:
    """Yields every class with its jobs, (n_jobs,) bool; empty classes are left out.

    Args:
        jobs: the judged jobs, as they ran under the baseline. Without a capacity there are no
            classes of size.
    """
    yield ALL, np.ones(len(jobs), dtype=bool)
    if jobs.capacity:
        sizes = [(name, max(1.0, share * jobs.capacity)) for name, share in SIZE_CLASSES]
        yield from _split("size", sizes, jobs.width.astype(np.float64))
    yield from _split("length", LENGTHS, jobs.end_s - jobs.start_s)
    _, user, count = np.unique(jobs.user, return_inverse=True, return_counts=True)
    yield from _split("user", USERS, count[user].astype(np.float64))


def _split(
    kind: str, classes: Sequence[tuple[str, float]], values: NDArray[np.float64]
) -> Iterator[tuple[JobClass, NDArray[np.bool_]]]:
    edges = [edge for _, edge in classes]
    place = np.minimum(np.searchsorted(edges, values, side="left"), len(edges) - 1)
    for index, (name, _) in enumerate(classes):
        inside: NDArray[np.bool_] = place == index
        if inside.any():
            yield JobClass(kind, name), inside
