# SPDX-License-Identifier: Apache-2.0
"""A job that is changed as `explain` tells starts by the second that was told, under its policy."""

import dataclasses

import numpy as np
import pytest

from bridge.planning.explain.changes import JobChange, Variants
from bridge.planning.explain.what_if import can_change, what_if
from bridge.ports import conditions_of
from bridge.registry import build, parse_policy
from schedbridge_contracts.cycles import Memory, run
from schedbridge_contracts.worlds import random_world


def changed(snapshot, job: int, change: JobChange):
    """The snapshot with the job as it was told to be."""
    variants = Variants(snapshot, job)
    row = variants.plain()
    if change.partition >= 0:
        row = variants.in_partition(variants.partitions.index(change.partition))
    if change.size:
        row = variants.of_size(variants.sizes.values.tolist().index(change.size))
    columns = {}
    for field in dataclasses.fields(snapshot.jobs):
        column = getattr(snapshot.jobs, field.name).copy()
        column[job] = getattr(variants.snapshot.jobs, field.name)[row]
        columns[field.name] = column
    if change.time_limit_s:
        columns["time_limit_s"][job] = change.time_limit_s
    return dataclasses.replace(snapshot, jobs=dataclasses.replace(snapshot.jobs, **columns))


@pytest.mark.parametrize(
    "plan",
    [
        {"name": "easy"}, {"name": "easy", "depth": 3}, {"name": "easy", "depth": 0},
        {"name": "window"}, {"name": "window", "depth": 3}, {"name": "window", "period_s": 0},
    ],
    ids=str,
)  # fmt: skip
def test_what_is_told_is_kept(plan):
    policy = build(parse_policy({"order": "fcfs", "plan": plan, "place": "sequential"}))
    told, missed = 0, []
    for seed in range(15):
        # Between two windows, and not on one.
        snapshot = dataclasses.replace(random_world(seed, arrays=False), now_s=7)
        memory = Memory()
        made = run(snapshot, memory, policy)
        for row in range(len(made)):
            job = int(made.job[row])
            if not can_change(snapshot, made, row):
                continue
            conditions = conditions_of(policy.plan, memory.context().site)
            for change in what_if(snapshot, made, row, conditions, step_s=10):
                again = Memory()
                again.state = memory.state
                plan_then = run(changed(snapshot, job, change), again, policy)
                (then,) = plan_then.start_s[np.flatnonzero(plan_then.job == job)].tolist()
                told += 1
                if then > change.start_s:
                    missed.append((seed, row, change, then))
    assert told
    assert missed == []
