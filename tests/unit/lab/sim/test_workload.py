# SPDX-License-Identifier: Apache-2.0
import dataclasses

import numpy as np
import pytest

from bridge.errors import ConfigError, TraceError
from bridge.lab.sim.workloads.swf import Field, Trace
from bridge.lab.sim.workloads.workload import (
    NOT_RUN,
    TOO_LARGE,
    FormatDeviations,
    MemoryUnit,
    workload_from,
)


def a_trace(*jobs, header=("MaxProcs: 8",)):
    """Each job as a mapping of fields; what is not said is -1."""
    columns = np.full((len(jobs), 18), -1.0)
    for row, job in enumerate(jobs):
        columns[row, Field.JOB] = row + 1
        columns[row, Field.SUBMIT_S] = 0
        for field, value in job.items():
            columns[row, Field[field]] = value
    return Trace("t.swf", header, columns)


def job(runtime=60, requested=2, allocated=2, limit=100, submit=0, **more):
    return {
        "RUNTIME_S": runtime,
        "REQUESTED_PROCESSORS": requested,
        "ALLOCATED_PROCESSORS": allocated,
        "REQUESTED_TIME_S": limit,
        "SUBMIT_S": submit,
    } | more


def one(**what):
    return workload_from(a_trace(job(), job(**what)))


@pytest.mark.parametrize(
    ("what", "column", "value"),
    [
        ({"requested": 4, "allocated": 2}, "processors", 4),
        ({"requested": -1, "allocated": 3}, "processors", 3),
        ({"requested": 0, "allocated": 3}, "processors", 3),
        ({"limit": -1, "runtime": 60}, "time_limit_s", 60),
        ({"limit": 0, "runtime": 60}, "time_limit_s", 60),
        ({"limit": 50, "runtime": 60}, "runtime_s", 50),
        ({"limit": 500, "runtime": 60}, "runtime_s", 60),
        ({"REQUESTED_MEMORY_KIB": 2048}, "memory_kib", 2048),
    ],
)
def test_rules(what, column, value):
    assert getattr(one(**what), column)[1] == value


@pytest.mark.parametrize(
    ("what", "reason"),
    [
        ({"runtime": 0}, NOT_RUN),
        ({"runtime": -1}, NOT_RUN),
        ({"requested": 0, "allocated": -1}, NOT_RUN),
        ({"requested": 9}, TOO_LARGE),
    ],
)
def test_what_is_left_out_is_counted(what, reason):
    workload = one(**what)
    assert len(workload) == 1
    assert workload.left_out == {reason: 1}


def test_jobs_are_sorted_by_submission_and_keep_their_order_within_a_second():
    workload = workload_from(
        a_trace(job(submit=9), job(submit=3), job(submit=9, limit=7), job(submit=0))
    )
    assert workload.id.tolist() == ["4", "2", "1", "3"]
    assert workload.row.tolist() == [3, 1, 0, 2]
    assert workload.submit_s.tolist() == [1, 4, 10, 10]


def test_instants_are_unix_seconds():
    header = ("MaxProcs: 8", "UnixStartTime: 843480031")
    assert workload_from(a_trace(job(submit=5), header=header)).submit_s[0] == 843480036


def test_job_numbers_that_occur_twice_get_distinct_ids():
    workload = workload_from(a_trace(job(JOB=7), job(JOB=7), job(JOB=8)))
    assert workload.id.tolist() == ["7", "7.1", "8"]


def test_size_comes_from_the_header_unless_it_is_given():
    assert workload_from(a_trace(job(), header=("MaxNodes: 12",))).processors_total == 12
    assert workload_from(a_trace(job()), 2).processors_total == 2
    with pytest.raises(TraceError, match="neither MaxProcs nor MaxNodes; give --procs"):
        workload_from(a_trace(job(), header=()))
    with pytest.raises(TraceError, match="fits 1 processors: 0 did not run, 1 are larger"):
        workload_from(a_trace(job()), 1)
    with pytest.raises(ConfigError):
        workload_from(a_trace(job()), 0)


@pytest.mark.parametrize("begin", ["99999999999999999999999", "274877906945"])
def test_an_impossible_begin_of_the_trace_is_refused(begin):
    with pytest.raises(TraceError, match="UnixStartTime"):
        workload_from(a_trace(job(), header=("MaxProcs: 8", f"UnixStartTime: {begin}")))


def test_the_first_jobs():
    workload = workload_from(a_trace(job(), job(), job()))
    assert len(workload.first(2)) == 2
    assert workload.first(2).submit_s.shape == (2,)


@pytest.mark.parametrize(
    ("unit", "memory_kib"),
    [(MemoryUnit.BYTE, 3), (MemoryUnit.KIB, 2049), (MemoryUnit.MIB, 2049 * 1024)],
)
def test_a_dialect_may_count_memory_otherwise(unit, memory_kib):
    trace = a_trace(job(REQUESTED_MEMORY_KIB=2049), job())
    workload = workload_from(trace, dialect=FormatDeviations(memory_unit=unit))
    assert workload.memory_kib.tolist() == [memory_kib, 0]


def test_text_of_a_dialect_follows_its_job():
    trace = dataclasses.replace(
        a_trace(job(submit=9), job(requested=9), job(submit=3)),
        extension=(("a", "1:ppn=2"), ("b", "9"), ("c", "2")),
    )
    workload = workload_from(trace, dialect=FormatDeviations(nodes_field=20))
    assert workload.id.tolist() == ["3", "1"]
    assert workload.node_requests.tolist() == ["2", "1:ppn=2"]
    assert workload.first(1).node_requests.tolist() == ["2"]
    with pytest.raises(TraceError, match="no field 22"):
        workload_from(trace, dialect=FormatDeviations(nodes_field=22))
