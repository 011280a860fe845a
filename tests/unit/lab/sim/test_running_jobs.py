# SPDX-License-Identifier: Apache-2.0
"""The table of running jobs follows their starts and ends as one made from scratch."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bridge.lab.sim.cluster.allocation import Allocation
from bridge.lab.sim.cluster.job_rows import ColumnRows
from bridge.lab.sim.cluster.running_jobs import RunningJobs
from bridge.lab.sim.workloads.requests import requests
from bridge.lab.sim.workloads.system import pool_of
from bridge.model.job import RUNNING_COLUMNS
from schedbridge_contracts.workloads import a_workload

JOBS = 12


TABLE = requests(a_workload([(0, 10 + job, 60, 1) for job in range(JOBS)], JOBS), pool_of(JOBS))
step = st.tuples(
    st.sampled_from(["start", "end", "limit", "look"]), st.integers(0, JOBS - 1), st.integers(0, 4)
)


def an_allocation(job, width, now_s):
    nodes = np.arange(job, job + width, dtype=np.int32)
    use = np.full((width, 2), job + 1, dtype=np.int64)
    return Allocation(nodes, use, now_s, now_s + 60, job % 2, bool(width % 2), 60)


def assert_like_one_from_scratch(running):
    fresh = RunningJobs(TABLE, None, 2)
    for job, held in running.allocations.items():
        fresh.hold(job, held)
    table, expected = running.table(), fresh.table()
    assert running.shown == fresh.shown == list(running.allocations)
    for column in (*(each.name for each in RUNNING_COLUMNS), "indptr", "nodes", "use"):
        found, wanted = getattr(table, column), getattr(expected, column)
        assert found.dtype == wanted.dtype, column
        assert found.tolist() == wanted.tolist(), column
    for row, (job, held) in enumerate(running.allocations.items()):
        own = slice(int(table.indptr[row]), int(table.indptr[row + 1]))
        assert table.nodes[own].tolist() == held.nodes.tolist()
        assert table.use[own].tolist() == held.use.tolist()
        assert table.id[row] == TABLE.id[job]
        assert (table.start_s[row], table.end_s[row]) == (held.start_s, held.limit_s)
        assert (table.partition[row], table.exclusive[row]) == (held.partition, held.exclusive)


@given(st.lists(step, max_size=30))
def test_the_table_is_that_of_the_present_allocations(steps):
    running = RunningJobs(TABLE, None, 2)
    for now_s, (kind, job, width) in enumerate(steps):
        holds = job in running.allocations
        if kind == "start" and not holds:
            running.hold(job, an_allocation(job, width, now_s))
        elif kind == "end" and holds:
            running.remove(job)
        elif kind == "limit" and holds:
            running.hold(job, replace(running.allocations[job], limit_s=1_000 + now_s))
        elif kind == "look":
            assert_like_one_from_scratch(running)
    assert_like_one_from_scratch(running)


def test_a_table_does_not_change_when_jobs_start_and_end():
    running = RunningJobs(TABLE, None, 2)
    for job in range(3):
        running.hold(job, an_allocation(job, 2, 0))
    before = running.table()
    running.remove(1)
    running.hold(5, an_allocation(5, 1, 9))
    assert len(running.table()) == 3
    assert before.id.tolist() == TABLE.id[:3].tolist()
    assert before.nodes.tolist() == [0, 1, 1, 2, 2, 3]


def test_rows_are_those_of_every_column():
    columns = {
        "same": np.full(4, 7),
        "number": np.array([3, 1, 4, 1]),
        "wide": np.arange(8).reshape(4, 2),
        "word": np.array(["a", "b", "a", "c"], dtype=object),
        "live": np.array([5, 5, 5, 5]),
    }
    columns["again"] = columns["number"]
    rows = ColumnRows(columns, live=frozenset({"live"}))
    columns["live"][2] = 6
    for which in ([2, 0], [1, 3], [], [3]):
        found = rows.take(np.array(which, dtype=np.int64))
        assert found.keys() == columns.keys()
        for name, column in columns.items():
            assert found[name].tolist() == column[which].tolist(), name
