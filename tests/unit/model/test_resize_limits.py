# SPDX-License-Identifier: Apache-2.0
"""Waiting jobs whose users or partitions keep their nodes start on what they ask for."""

import pytest

from bridge.model.rules.limits import EACH, ConsumerKind
from bridge.model.rules.resize_limits import ResizeLimit, bounded
from schedbridge_contracts.builders import a_job, a_running_job, a_snapshot

USER, PARTITION = ConsumerKind.USER, ConsumerKind.PARTITION


@pytest.mark.parametrize(
    ("limits", "widths"),
    [
        ((), [8, 8]),
        ((ResizeLimit(USER, "ann", never=True),), [0, 8]),
        ((ResizeLimit(USER, EACH, never=True), ResizeLimit(USER, "bob")), [0, 8]),
        ((ResizeLimit(PARTITION, "batch", never=True),), [0, 0]),
        ((ResizeLimit(PARTITION, "batch", extra_nodes=0),), [8, 8]),
    ],
)
@pytest.mark.parametrize("running", [[], [a_running_job()]])
def test_a_job_that_could_never_grow_is_not_started_narrow(limits, widths, running):
    jobs = [a_job(user=user, nodes=4, min_start=1, max_start=8) for user in ("ann", "bob")]
    found = bounded(a_snapshot(jobs=jobs, running=running)(), limits).jobs
    assert found.max_start.tolist() == widths
    assert [bool(minimum) for minimum in found.min_start.tolist()] == [bool(w) for w in widths]
