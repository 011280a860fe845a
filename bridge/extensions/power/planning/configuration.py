# SPDX-License-Identifier: Apache-2.0
"""Widths that keep power within its corridor and leave few nodes idle: an integer programme.

    chosen = configuration(jobs, room, waiting)     None: there are not enough nodes
    chosen = one_way(jobs, room, waiting, chosen)   without shrinks for growths, if it is as good

Terms
    beyond idle     the additional power of a node with a job. Idle nodes are in the room.
    room            nodes and power that are left for the jobs after everything else.
    changed         of a running job: with another width than now.

Rules
    1. A job has one of its allowed widths. All jobs together have no more nodes than there are.
    2. The maximum draw of jobs counts for the upper bound, the minimum for the lower one.
    3. The configuration with the least power above the upper bound is chosen; among these the one
       with the least below the lower bound; then with the fewest idle nodes, the fewest changed
       jobs and the fewest changed nodes. The upper bound is a rule, the lower one a goal, so the
       upper one comes first.
    4. Ties are broken in the same way whatever the order of the jobs.

Source: equation 1 of Chadha, John and Gerndt, "Extending SLURM for Dynamic Resource-Aware Adaptive
Batch Scheduling", HiPC 2020, according to its text; the equation itself is lost in our copy.
Deviates: jobs with the same widths and draws are interchangeable there and here, but among equally
good configurations the one with the fewest changes is used; if none keeps the corridor, the
nearest one.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bridge.core import choose_widths
from bridge.extensions.power.rules import NO_UPPER_W

EFFORT: Final = 200_000
"""Widths examined: some ten milliseconds, mostly for the fewest changes of hundreds of jobs."""

_MAX: Final = 1 << 50


@dataclass(frozen=True, slots=True)
class Scalable:
    """A job that could have several widths.

    Attributes:
        width: at present; 0: it waits.
        widths: that it may have, ascending, the present one among them.
        lower_w, upper_w: minimum and maximum draw on each node, beyond idle.
    """

    id: str
    width: int
    widths: Sequence[int]
    lower_w: int
    upper_w: int


@dataclass(frozen=True, slots=True)
class Room:
    """Nodes and power that are left for the jobs.

    Attributes:
        nodes: those that they hold, and idle ones.
        lower_w: the minimum that they should draw together, beyond idle; 0 or less: no bound.
        upper_w: the maximum; negative: everything else draws too much already.
    """

    nodes: int
    lower_w: int
    upper_w: int

    @staticmethod
    def within(bounds_w: tuple[int, int], rest_w: tuple[int, int], nodes: int) -> "Room":
        """The room that a corridor leaves besides the rest of the system.

        Args:
            bounds_w: lower and upper bound of system power.
            rest_w: minimum and maximum draw of the rest: the base, all nodes idle, and what other
                jobs draw beyond that.
        """
        (lower_w, upper_w), (min_w, max_w) = bounds_w, rest_w
        upper_w = _MAX if upper_w >= NO_UPPER_W else upper_w - max_w
        return Room(nodes, max(lower_w - min_w, 0), upper_w)


@dataclass(frozen=True, slots=True)
class Configuration:
    """A choice of widths.

    Attributes:
        widths: widths of each running job, by id.
        starts: starts of each waiting job, by id.
        idle: nodes that no job has.
        over_w: by how much the jobs may exceed the room.
        under_w: by how much they may fall below the minimum.
        proven: nothing is better in power and idle nodes; False: the search was cut off.
        settled: nothing is better in changes either.
    """

    widths: dict[str, int]
    starts: dict[str, int]
    idle: int
    over_w: int
    under_w: int
    proven: bool = True
    settled: bool = True

    @property
    def feasible(self) -> bool:
        """Whether the corridor is kept."""
        return not self.over_w and not self.under_w


def configuration(
    jobs: Sequence[Scalable],
    room: Room,
    waiting: Sequence[Scalable] = (),
    *,
    effort: int = EFFORT,
) -> Configuration | None:
    """Chooses a width for every job.

    Args:
        jobs: running malleable ones.
        waiting: jobs that must start, too.
        effort: maximum number of widths that are examined.

    Returns:
        The best configuration (rules 3 and 4); None: the smallest widths need more nodes than
        exist.
    """
    every = [*sorted(jobs, key=_by_id), *sorted(waiting, key=_by_id)]
    if not every:
        over_w = max(-room.upper_w, 0)
        return Configuration({}, {}, room.nodes, over_w, max(room.lower_w, 0))
    counts = [len(job.widths) for job in every]
    found = choose_widths(
        np.concatenate(([0], np.cumsum(counts, dtype=np.int64))),
        np.concatenate([_column(job.widths) for job in every]),
        _column([job.width for job in every]),
        _column([job.lower_w for job in every]),
        _column([job.upper_w for job in every]),
        nodes=room.nodes,
        lower_w=_bounded(room.lower_w),
        upper_w=_bounded(room.upper_w),
        effort=effort,
    )
    chosen: list[int] = found.width.tolist()
    if not chosen:
        return None
    widths = {job.id: width for job, width in zip(every, chosen, strict=True) if job.width}
    starts = {job.id: width for job, width in zip(every, chosen, strict=True) if not job.width}
    idle = room.nodes - sum(chosen)
    return Configuration(
        widths, starts, idle, found.over_w, found.under_w, found.proven, found.settled
    )


def one_way(
    jobs: Sequence[Scalable],
    room: Room,
    waiting: Sequence[Scalable],
    found: Configuration,
) -> Configuration:
    """A configuration that only shrinks or only grows jobs, if it is as good except for changes.

    If some jobs shrink so that others can grow, the growth has to wait for the shrinks.

    Args:
        jobs: as of `configuration`; so for the next two.
        waiting: jobs that are to start, too.
        found: what `configuration` found.
    """
    changes = [found.widths[job.id] - job.width for job in jobs]
    if not (max(changes, default=0) > 0 > min(changes, default=0)):
        return found
    for sign in (1, -1):
        kept = [
            Scalable(job.id, job.width, _from_now(job, sign), job.lower_w, job.upper_w)
            for job in jobs
        ]
        other = configuration(kept, room, waiting)
        if other is not None and _reached(other) == _reached(found):
            return other
    return found


def _from_now(job: Scalable, sign: int) -> Sequence[int]:
    """The widths that are at least, or with -1 at most, the present one."""
    at = bisect_left(job.widths, job.width)
    return job.widths[at:] if sign > 0 else job.widths[: at + 1]


def _reached(found: Configuration) -> tuple[int, int, int]:
    return found.over_w, found.under_w, found.idle


def _by_id(job: Scalable) -> tuple[int, str]:
    """9 before 10."""
    return len(job.id), job.id


def _column(values: Sequence[int]) -> NDArray[np.int64]:
    if isinstance(values, range):
        return np.arange(values.start, values.stop, values.step, dtype=np.int64)
    return np.array(values, dtype=np.int64)


def _bounded(watts: int) -> int:
    return max(-_MAX, min(watts, _MAX))
