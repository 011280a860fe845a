# SPDX-License-Identifier: Apache-2.0
"""Jobs with a deadline, with a fixed or a later begin, or without a planned start.

Rules
    1. A job with a deadline must end by it: its latest start is the deadline less its time limit.
    2. If its limit may be cut (`JobTable.min_time_s`), its latest start is the deadline less that
       time, and the limit is cut at the deadline. Slurm does the same at the start, and cancels a
       job that waits longer.
    3. A job with a fixed start starts at its begin time. Jobs on its nodes may need some seconds to
       end: it may be late by `FIXED_GRACE_S`, but not more.
    4. A job without a planned start (`JobTable.no_place`) starts now or books nothing.
    5. A job whose begin time has not come is not yet eligible: as in Slurm, nothing is reserved
       for it. It is planned behind all eligible jobs, so that its expected start delays none of
       them, under every policy and in every order. A fixed start is reserved from its submission.
"""

import numpy as np
from numpy.typing import NDArray

from bridge.model.job import Hold, JobTable
from bridge.model.reasons import Reason, ReasonCode
from bridge.units import NEVER, format_instant

FIXED_GRACE_S = 60
MISSED = ("cannot start at", "cannot end before its deadline")
"""How the reasons of `too_late` begin: of a fixed start, and of a deadline."""
SPARE_S = 60
"""Margin before the deadline of a job that is planned as late as possible, so that a slightly late
start does not miss it."""


def not_yet_eligible(jobs: JobTable, now_s: int) -> NDArray[np.bool_]:
    """(n_jobs,) which jobs wait for their begin time, without a fixed start (rule 5)."""
    waits: NDArray[np.bool_] = (jobs.hold == Hold.BEGIN_TIME) & (jobs.begin_s > now_s)
    return waits & ~jobs.fixed


def eligible_first(jobs: JobTable, order: NDArray[np.int64], now_s: int) -> NDArray[np.int64]:
    """The order with the jobs that are not yet eligible behind all others (rule 5).

    Args:
        order: (n,) rows of it, first planned first.
    """
    waits = not_yet_eligible(jobs, now_s)
    if not np.count_nonzero(waits):
        return order
    waits = waits[order]
    return np.concatenate((order[~waits], order[waits]))


def fixed_start_s(jobs: JobTable, job: NDArray[np.int64]) -> NDArray[np.int64]:
    """(n,) the fixed start of each of these rows of the table; 0: none."""
    begin_s = jobs.begin_s[job]
    return np.where(jobs.fixed[job], np.where(begin_s > 0, begin_s, jobs.eligible_s[job]), 0)


def latest_start_s(
    jobs: JobTable, job: NDArray[np.int64], time_limit_s: NDArray[np.int64], now_s: int
) -> NDArray[np.int64]:
    """The latest start of jobs; NEVER: none.

    Args:
        job: (n,) rows of it.
        time_limit_s: (n,) with which each of them is planned.
        now_s: a fixed start in the future is exact, one in the past has the grace of rule 3.
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
    """(n,) the least time limit to which each job may be cut for its deadline; see above."""
    min_s = jobs.min_time_s[job]
    return np.where(min_s > 0, np.minimum(min_s, time_limit_s), time_limit_s)


def end_s(
    jobs: JobTable,
    job: NDArray[np.int64],
    start_s: NDArray[np.int64],
    time_limit_s: NDArray[np.int64],
) -> NDArray[np.int64]:
    """(n,) the latest ends of jobs with these starts (rule 2)."""
    deadline_s = jobs.deadline_s[job]
    end = start_s + time_limit_s
    cut = (deadline_s > 0) & (jobs.min_time_s[job] > 0)
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
    """Why a job cannot use its earliest start; None: no deadline or fixed start prevents it.

    Args:
        start_s: the earliest start; NEVER: none.
        now_s: a bound in the past can only be met if the job is changed.
        code: the code of what keeps it from an earlier start.
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
        min_s = int(shortest_s(jobs, np.array([job]), np.array([time_limit_s]))[0])
        text = f"{MISSED[1]} {format_instant(deadline_s)}"
        if start_s != NEVER:
            text += f"; earliest end would be {format_instant(start_s + min_s)}"
        over = max(now_s, int(jobs.begin_s[job])) + min_s > deadline_s
    if jobs.no_place[job] and not over:
        text = "no place is kept for it, as its QOS says: it starts when there is room"
    return Reason(ReasonCode.NEVER if over else code, text) if text else None


def requested_time_limit_s(
    jobs: JobTable, job: NDArray[np.int64], time_limit_s: NDArray[np.int64]
) -> NDArray[np.int64]:
    """(n,) the time limits that rules apply to: neither predicted nor cut for a deadline.

    Args:
        job: (n,) rows of it.
        time_limit_s: (n,) with which each of them is planned.
    """
    limit_s = np.maximum(jobs.time_limit_s[job], time_limit_s)
    kill_s = jobs.kill_limit_s[job]
    return np.where(kill_s > 0, kill_s, limit_s)
