# SPDX-License-Identifier: Apache-2.0
"""Cycles planned again: what is predicted, what is completed, what has moved."""

import dataclasses

import numpy as np
import pytest

from bridge.extensions.sharing.longer_limits import Extensions
from bridge.extensions.sharing.part import having_shared, requeues, shared_of
from bridge.extensions.sharing.quotas import Quotas
from bridge.lab.sim.recorded.judging import judge
from bridge.lab.sim.recorded.rerun import completed, moved, rerun
from bridge.model.decisions.prediction import Prediction
from bridge.model.job_columns import objects
from bridge.ports import State
from bridge.recording.recordings import Recording
from bridge.registry import PRESETS, build
from bridge.safe_cycle.decider import Decider
from bridge.units import UNPLANNED
from schedbridge_contracts.builders import a_job, a_running_job, a_snapshot
from schedbridge_contracts.crosses import each
from schedbridge_contracts.worlds import random_world


def recorded(snapshot, policy="easy", memory=None):
    plan = Decider(build(PRESETS[policy])).decide(snapshot)
    return Recording(snapshot, memory or State(), PRESETS[policy], 0, plan)


def a_queue():
    return a_snapshot(
        nodes=2,
        running=[a_running_job((0,), end_s=100)],
        jobs=[a_job(nodes=2, limit_s=50), a_job(nodes=2, limit_s=10), a_job(nodes=1, limit_s=100)],
    )()


def test_the_rest_is_planned_behind_what_easy_planned():
    snapshot = a_queue()
    plan = recorded(snapshot).plan
    assert plan.start_s.tolist() == [100, UNPLANNED, 0]
    whole = completed(snapshot, plan, PRESETS["easy"])
    assert dict(zip(whole.job.tolist(), whole.start_s.tolist(), strict=True)) == {
        0: 100, 2: 0, 1: 150
    }  # fmt: skip
    assert judge(snapshot, whole).rows == 3
    assert judge(snapshot, whole).costs["wait"] == pytest.approx((100 + 150 + 0) / 3)
    assert judge(snapshot, whole).costs["slowdown"] == pytest.approx((3 + 16 + 1) / 3)


@each(seed=range(40))
def test_completing_changes_nothing_that_was_planned(seed):
    snapshot = random_world(seed, arrays=False)
    plan = recorded(snapshot).plan
    whole = completed(snapshot, plan, PRESETS["easy"])
    before = dict(zip(plan.job.tolist(), plan.start_s.tolist(), strict=True))
    after = dict(zip(whole.job.tolist(), whole.start_s.tolist(), strict=True))
    assert before.keys() == after.keys()
    for job, start_s in before.items():
        assert start_s in (UNPLANNED, after[job])


def test_completing_keeps_what_was_decided_of_running_jobs():
    """Of two guests one gets a quota and one leaves; rows are joined anew, so none has a host."""
    snapshot = a_queue()
    quotas = Quotas(objects(["g", "7"]), np.array([500, 0]), np.array([1, 50]))
    leaving, longer = requeues([("k", "too slow")]), Extensions.of({"h": 90, "i": 60})
    planned = having_shared(
        recorded(snapshot).plan, quotas=quotas, requeues=leaving, extensions=longer,
        host_id=objects(["", "", "h"]),
    )  # fmt: skip
    whole = completed(snapshot, planned, PRESETS["easy"])
    assert sorted(whole.job.tolist()) == [0, 1, 2]
    shared = shared_of(whole)
    assert shared.quotas is quotas
    assert shared.requeues is leaving
    assert shared.extensions is longer
    assert not len(shared.guest_starts)


def test_all_policies_use_the_recorded_predictions():
    snapshot = a_queue()
    predicted = Prediction("oracle", np.array([7, 8, 9]), np.array([20]))
    recording = recorded(snapshot)
    recording = dataclasses.replace(
        recording, plan=dataclasses.replace(recording.plan, predicted=predicted)
    )
    again = rerun(recording, PRESETS["conservative"])
    assert again.plan.predicted is predicted
    assert sorted(again.plan.start_s.tolist()) == [0, 20, 27]


def test_what_moved_is_told_by_job():
    snapshot = a_queue()
    easy, other = recorded(snapshot).plan, recorded(snapshot, "conservative").plan
    assert moved(snapshot, easy, easy) == []
    (only,) = moved(snapshot, easy, other)
    assert (only.job, only.before_s, only.after_s) == ("2", (UNPLANNED,), (150,))
