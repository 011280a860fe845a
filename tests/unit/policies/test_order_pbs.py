# SPDX-License-Identifier: Apache-2.0
"""The order policy `pbs`: priority first, then entities in turns by usage and share."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bridge.policies.order.pbs import PbsOrder
from bridge.policies.order.slurm import SlurmPriority
from schedbridge_contracts.builders import a_job, a_snapshot


def order(jobs):
    snapshot = a_snapshot(jobs=[a_job(id=f"{at:03}", **job) for at, job in enumerate(jobs)])()
    return PbsOrder().order(snapshot).tolist(), SlurmPriority().order(snapshot).tolist()


def job(of, usage=0, cost=10, ppm=500_000, **more):
    return {"share_of": of, "share_usage": usage, "share_cost": cost, "share_ppm": ppm} | more


def test_entities_take_turns():
    assert order([job("a"), job("a"), job("b"), job("b")])[0] == [0, 2, 1, 3]


def test_less_usage_first():
    assert order([job("a", usage=100), job("a", usage=100), job("b"), job("b")])[0] == [2, 3, 0, 1]


def test_usage_is_compared_by_share():
    jobs = [job("a", usage=100, ppm=900_000), job("b", usage=50, ppm=100_000)]
    assert order(jobs)[0] == [0, 1]


def test_without_shares_last():
    assert order([job("a", ppm=0), job("b", usage=9999)])[0] == [1, 0]


def test_priority_before_fair_share():
    assert order([job("a"), job("b", usage=9999, priority=9)])[0] == [1, 0]


def test_what_is_ordered_counts_among_lower_priorities():
    jobs = [job("a", priority=9), job("a"), job("b")]
    assert order(jobs)[0] == [0, 2, 1]


jobs_ = st.builds(
    job, st.sampled_from("abc"), st.just(0), st.integers(0, 100), st.just(10),
    priority=st.integers(1, 3), submit_s=st.integers(1, 5),
)  # fmt: skip


@given(st.lists(jobs_, max_size=12))
def test_every_row_once_and_priorities_descend(jobs):
    found, _ = order(jobs)
    assert sorted(found) == list(range(len(jobs)))
    priorities = [jobs[row]["priority"] for row in found]
    assert priorities == sorted(priorities, reverse=True)


@given(st.lists(st.builds(lambda p, s: {"priority": p, "submit_s": s}, st.integers(1, 3),
                          st.integers(1, 5)), max_size=12))  # fmt: skip
def test_without_fair_share_as_slurm(jobs):
    mine, slurm = order(jobs)
    assert np.array_equal(mine, slurm)
