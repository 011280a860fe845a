# SPDX-License-Identifier: Apache-2.0
"""Whether more work arrives than the machine can do, so that waits say nothing about a policy.

Terms
    work        processors times actual run time, processor-seconds.
    backlog     the work of the jobs that wait, divided by the machine's processors: how long the
                whole machine would need for it, s.
    growing     the backlog at the last submission is `MIN_S` or more; since it was last a tenth
                of that, a quarter of the trace or more has passed, and more work arrived than the
                machine could do.
    hopeless    `MAX_WAITING` jobs wait, and the backlog exceeds `MAX_S`: the engines that make
                every decision in Python stop there, as their time grows with the queue.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridge.lab.sim.workloads.workload import Workload
from bridge.units import DAY_S, NEVER

MIN_S = 7 * DAY_S
MAX_S = 30 * DAY_S
MAX_WAITING = 1_000
_BETWEEN = 64
_ROOM = 0.9
"""The load at which a machine can still serve its queue."""


@dataclass(frozen=True)
class Growing:
    """A backlog that grows.

    Attributes:
        since_s: since this instant of the trace, Unix seconds.
        days: how long it has grown until the last submission.
        load: work that arrived since then, as a share of what the machine could do.
        backlog_days: at the last submission.
        waiting: jobs that wait then.
        before: jobs that were submitted before `since_s`.
        processors: that could serve this load.
    """

    since_s: int
    days: float
    load: float
    backlog_days: float
    waiting: int
    before: int
    processors: int

    def sentence(self, *, stopped: bool) -> str:
        """What grows, since when, and what to do."""
        what = (
            f"more work arrives than the machine can do: the backlog has grown for the last "
            f"{self.days:.0f} days (since second {self.since_s}) at a load of {self.load:.2f}, and "
            f"{self.waiting:,} jobs wait at the last submission, {self.backlog_days:.0f} days of "
            "work for the whole machine; waits since then say little about the policy"
        )
        remedy = f"give --procs {self.processors} or more"
        if self.before:
            remedy += f", or --jobs {self.before} for the time before"
        ended = "; stopped there: the results are those of the jobs that ended" if stopped else ""
        return f"{what}{ended}; {remedy}"


class Watch:
    """Watches the queue of one simulation.

    Attributes:
        ended: the queue was hopeless.
    """

    def __init__(self, workload: Workload, processors: int) -> None:
        self.ended = False
        self._work = (workload.processors * workload.runtime_s).astype(np.float64)
        self._maximum = float(processors) * MAX_S
        self._looks = 0

    def hopeless(self, waiting: Sequence[int]) -> bool:
        """Whether to stop; looks at a long queue at every 64th decision."""
        if len(waiting) < MAX_WAITING:
            return False
        self._looks += 1
        if self._looks % _BETWEEN:
            return False
        rows = np.fromiter(waiting, np.int64, len(waiting))
        self.ended = float(self._work[rows].sum()) > self._maximum
        return self.ended


def growing(
    workload: Workload, processors: int, start_s: NDArray[np.int64], *, ended: bool = False
) -> Growing | None:
    """Finds a growing backlog; None: there is none.

    Args:
        start_s: (n_jobs,) when each started; NEVER: it did not.
        ended: a `Watch` has ended the simulation, which is judged at its last start.
    """
    submit_s, begun = workload.submit_s, start_s[start_s != NEVER]
    last_s = int(submit_s[-1])
    if ended and len(begun):
        last_s = min(last_s, int(begun.max()))
    came = submit_s <= last_s
    if not came.any():
        return None
    work = (workload.processors * workload.runtime_s).astype(np.float64) / processors
    left = came & (start_s > last_s)
    backlog_s = float(work[left].sum())
    if backlog_s < MIN_S and not ended:
        return None
    gone = came & ~left
    at_s = np.concatenate((submit_s[came], start_s[gone]))
    change = np.concatenate((work[came], -work[gone]))
    order = np.argsort(at_s, kind="stable")
    at_s, level = at_s[order], np.cumsum(change[order])
    below = np.flatnonzero(level <= backlog_s / 10)
    since_s = int(at_s[below[-1]]) if len(below) else int(submit_s[0])
    span_s = max(last_s - since_s, 1)
    load = float(work[came & (submit_s > since_s)].sum()) / span_s
    if not ended and (span_s < (last_s - int(submit_s[0])) / 4 or load <= 1):
        return None
    return Growing(
        since_s, span_s / DAY_S, load, backlog_s / DAY_S, int(left.sum()),
        int((submit_s <= since_s).sum()) if since_s > int(submit_s[0]) else 0,
        int(np.ceil(processors * load / _ROOM)),
    )  # fmt: skip
