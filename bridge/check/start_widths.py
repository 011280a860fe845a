# SPDX-License-Identifier: Apache-2.0
"""Checks the widths on which waiting jobs are planned instead of the requested ones.

Rules
    1. Only a moldable job gets another width, within its bounds and by its width rule. Jobs that
       request tasks, chunks or named nodes, and those with a fixed start, are not moldable.
    2. Its time there lies between its time limit and the time with the same node-seconds: speed-up
       is neither below 1 nor better than linear.
"""

import numpy as np

from bridge.model.decisions.start_widths import StartWidths
from bridge.model.job import WidthRule
from bridge.model.snapshot import Snapshot


def broken_start_widths(snapshot: Snapshot, widths: StartWidths) -> list[tuple[str, str]]:
    """Finds widths that break a rule.

    Returns:
        Job ids and violations; the id is empty if the columns do not fit together.
    """
    if not len(widths):
        return []
    jobs = snapshot.jobs
    fits = (
        len(widths.job) == len(widths.nodes) == len(widths.time_limit_s)
        and widths.job.min() >= 0
        and widths.job.max() < len(jobs)
        and (np.diff(widths.job) > 0).all()
    )
    if not fits:
        return [("", "has columns of widths that do not fit together")]
    fine_rows = _fine(snapshot, widths)
    if all(fine_rows):
        return []
    found = []
    rows = zip(
        widths.job.tolist(),
        widths.nodes.tolist(),
        widths.time_limit_s.tolist(),
        strict=True,
    )
    for (job, nodes, limit_s), fine in zip(rows, fine_rows, strict=True):
        if fine:
            continue
        job_id = str(jobs.id[job])
        if (
            not jobs.max_start[job]
            or jobs.tasks[job]
            or jobs.chunks[job]
            or jobs.required[job]
            or jobs.fixed[job]
        ):
            found.append((job_id, "is planned on another width but not moldable"))
            continue
        allowed = WidthRule(int(jobs.width_rule[job])).allows(nodes)
        if not max(jobs.min_start[job], 1) <= nodes <= jobs.max_start[job] or not allowed:
            found.append((job_id, f"is planned on {nodes} nodes, which it does not allow"))
        requested, requested_s = int(jobs.min_nodes[job]), int(jobs.time_limit_s[job])
        perfect_s = -(-requested_s * requested // max(nodes, 1))
        if not min(requested_s, perfect_s) <= limit_s <= max(requested_s, perfect_s):
            found.append((job_id, f"is planned for {limit_s} s on {nodes} nodes"))
    return found


def _fine(snapshot: Snapshot, widths: StartWidths) -> list[bool]:
    """Which of them break no rule, by columns; False: one may be broken."""
    jobs, job = snapshot.jobs, widths.job
    fine = (widths.nodes >= np.maximum(jobs.min_start[job], 1)) & ~jobs.fixed[job]
    fine &= (widths.nodes <= jobs.max_start[job]) & (jobs.tasks[job] == 0)
    fine &= jobs.width_rule[job] == WidthRule.ANY
    for column in (jobs.chunks[job], jobs.required[job]):
        if np.count_nonzero(column):
            fine &= ~column.astype(bool)
    requested_s = jobs.time_limit_s[job]
    perfect_s = -(-requested_s * jobs.min_nodes[job] // np.maximum(widths.nodes, 1))
    fine &= widths.time_limit_s >= np.minimum(requested_s, perfect_s)
    fine &= widths.time_limit_s <= np.maximum(requested_s, perfect_s)
    found: list[bool] = fine.tolist()
    return found
