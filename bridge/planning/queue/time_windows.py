# SPDX-License-Identifier: Apache-2.0
"""Jobs whose time is bounded: with a deadline, with a fixed start, and those that get no place.

Rules
    1. A job with a deadline ends by it: it starts at the latest its time limit before that.
    2. Where its limit may be cut (`JobTable.least_time_s`), it starts at the latest that long
       before its deadline, and what would lie behind the deadline is cut off. Slurm does the same
       at the start, and ends a job that waits beyond that instant.
    3. A job with a fixed start starts at its begin time. What runs on its nodes may take some
       seconds to go: it may be late by `FIXED_GRACE_S`, and does not start after that.
    4. A job that no place is kept for (`JobTable.no_place`) starts now or is in nobody's way.
"""

import numpy as np
from numpy.typing import NDArray

from bridge.model.job import JobTable
from bridge.model.reasons import Reason, ReasonCode
from bridge.units import NEVER, format_instant

FIXED_GRACE_S = 60
MISSED = ("cannot start at", "cannot end before its deadline")
"""How the reasons of `too_late` begin: of a fixed start, and of a deadline."""
SPARE_S = 60
"""What is left free before the deadline of a job that is planned as late as possible: a start that
is late by less does not break it."""


def fixed_start_s(jobs: JobTable, job: NDArray[np.int64]) -> NDArray[np.int64]:
    """(n,) the instants at which some rows of the table are to start exactly; 0: at any time."""
    begin_s = jobs.begin_s[job]
    return np.where(jobs.fixed[job], np.where(begin_s > 0, begin_s, jobs.eligible_s[job]), 0)


def latest_start_s(
    jobs: JobTable, job: NDArray[np.int64], time_limit_s: NDArray[np.int64], now_s: int
) -> NDArray[np.int64]:
    """When jobs may start at the latest; NEVER: at any time.

    Args:
        jobs: the table.
        job: (n,) rows of it.
        time_limit_s: (n,) with which each of them is planned.
        now_s: a fixed start still ahead is exact, one that has come has its grace.
    """
    latest = np.full(len(job), NEVER, dtype=np.int64)
    deadline_s = jobs.deadline_s[job]
    if deadline_s.any():
        latest = np.where(deadline_s > 0, deadline_s - shortest_s(jobs, job, time_limit_s), latest)
    if jobs.fixed.any():
        fixed_s = fixed_start_s(jobs, job)
        until = np.where(fixed_s > now_s, fixed_s, fixed_s + FIXED_GRACE_S)
        latest = np.where(fixed_s > 0, np.minimum(latest, until), latest)
    if jobs.no_place.any():
        latest = np.where(jobs.no_place[job], np.minimum(latest, now_s), latest)
    return latest


def shortest_s(
    jobs: JobTable, job: NDArray[np.int64], time_limit_s: NDArray[np.int64]
) -> NDArray[np.int64]:
    """(n,) what each job's time limit may be cut to for its deadline; arguments as above."""
    least_s = jobs.least_time_s[job]
    return np.where(least_s > 0, np.minimum(least_s, time_limit_s), time_limit_s)


def end_s(
    jobs: JobTable,
    job: NDArray[np.int64],
    start_s: NDArray[np.int64],
    time_limit_s: NDArray[np.int64],
) -> NDArray[np.int64]:
    """(n,) when jobs that start then end at the latest (rule 2)."""
    deadline_s = jobs.deadline_s[job]
    end = start_s + time_limit_s
    cut = (deadline_s > 0) & (jobs.least_time_s[job] > 0)
    return np.where(cut, np.minimum(end, deadline_s), end)


def too_late(
    jobs: JobTable,
    job: int,
    start_s: int,
    time_limit_s: int,
    *,
    now_s: int,
    code: ReasonCode = ReasonCode.RESOURCES,
) -> Reason | None:
    """Why a job that could only start then does not; None: neither kind keeps it from that.

    Args:
        jobs: the table.
        job: a row of it.
        start_s: the earliest start there is; NEVER: none.
        time_limit_s: with which it is planned.
        now_s: a bound that is behind is met by nothing but a change of the job.
        code: of what keeps it from an earlier start.
    """
    fixed_s = int(fixed_start_s(jobs, np.array([job]))[0])
    deadline_s = int(jobs.deadline_s[job])
    text, over = "", False
    if fixed_s:
        text = f"{MISSED[0]} {format_instant(fixed_s)} as fixed"
        if start_s not in (NEVER, fixed_s):
            text += f"; earliest start after that would be {format_instant(start_s)}"
        over = fixed_s + FIXED_GRACE_S < now_s
    elif deadline_s:
        least_s = int(shortest_s(jobs, np.array([job]), np.array([time_limit_s]))[0])
        text = f"{MISSED[1]} {format_instant(deadline_s)}"
        if start_s != NEVER:
            text += f"; earliest end would be {format_instant(start_s + least_s)}"
        over = max(now_s, int(jobs.begin_s[job])) + least_s > deadline_s
    if jobs.no_place[job] and not over:
        text = "no place is kept for it, as its QOS says: it starts when there is room"
    return Reason(ReasonCode.NEVER if over else code, text) if text else None


def asked_limit_s(
    jobs: JobTable, job: NDArray[np.int64], time_limit_s: NDArray[np.int64]
) -> NDArray[np.int64]:
    """(n,) the time limits that rules speak of: neither what is predicted nor cut for a deadline.

    Args:
        jobs: the table.
        job: (n,) rows of it.
        time_limit_s: (n,) with which each of them is planned.
    """
    limit_s = np.maximum(jobs.time_limit_s[job], time_limit_s)
    kill_s = jobs.kill_limit_s[job]
    return np.where(kill_s > 0, kill_s, limit_s)
