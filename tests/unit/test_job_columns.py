# SPDX-License-Identifier: Apache-2.0
"""What is derived from the one declaration of a job's columns."""

from dataclasses import fields, replace

import numpy as np
import pytest

from bridge.model.job import COLUMNS, RUNNING_COLUMNS, JobTable, RunningTable
from bridge.model.job_columns import MAX_RATIO, Source, Unit, objects
from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.rpc.reported.decode_allocation import Allocated
from bridge.rpc.reported.decode_request import Lowered
from schedbridge_contracts.builders import a_job, a_running_job, a_snapshot

ONE = np.ones(2, dtype=np.int64)
AMOUNTS = np.zeros((2, 2), dtype=np.int64)
NEEDED = {
    "id": objects(["1", "2"]), "priority": ONE, "submit_s": ONE, "eligible_s": ONE,
    "time_limit_s": ONE, "partitions": objects([(0,), (0, 1)]), "min_nodes": ONE, "max_nodes": ONE,
    "per_node": AMOUNTS, "per_task": AMOUNTS, "licences": AMOUNTS,
}  # fmt: skip


def test_every_column_is_declared():
    assert [each.name for each in COLUMNS] == [field.name for field in fields(JobTable)]
    rows = {field.name for field in fields(RunningTable)} - {"indptr", "nodes", "use"}
    assert {each.name for each in RUNNING_COLUMNS} == rows


def test_what_is_left_out_is_neutral_and_of_its_type():
    table = JobTable(**NEEDED)
    for each in COLUMNS:
        column = getattr(table, each.name)
        assert len(column) == 2
        assert column.dtype == each.dtype
    assert table.reservation.tolist() == [-1, -1]
    assert table.required.tolist() == [(), ()]
    assert table.chunks.tolist() == [None, None]
    assert not table.hold.any()
    assert not table.exclusive.any()


@pytest.mark.parametrize("name", NEEDED)
def test_some_columns_cannot_be_left_out(name):
    with pytest.raises(TypeError, match=name):
        JobTable(**{key: column for key, column in NEEDED.items() if key != name})


def test_every_source_has_what_is_taken_of_it():
    sources = {
        Source.MESSAGE: set(pb.Job.DESCRIPTOR.fields_by_name),
        Source.REQUEST: set(pb.Request.DESCRIPTOR.fields_by_name),
        Source.LOWERED: {field.name for field in fields(Lowered)},
        Source.ALLOCATION: {field.name for field in fields(Allocated)},
    }
    for each in (*COLUMNS, *RUNNING_COLUMNS):
        if each.source is not Source.SERVICE:
            assert each.field in sources[each.source]


def test_a_type_holds_what_its_unit_lets_in():
    for each in COLUMNS:
        if each.source in (Source.MESSAGE, Source.REQUEST) and each.dtype.kind == "i":
            code = each.unit is Unit.CODE  # the session compares it with the members
            assert code or each.max_accepted <= np.iinfo(each.dtype).max


def test_rows_and_joined_tables_keep_every_column():
    world = a_snapshot(jobs=[a_job(id="a", nodes=2), a_job(id="b", no_place=True)])()
    jobs = world.jobs
    twice = jobs.rows(np.array([1, 0, 1]))
    assert twice.id.tolist() == ["b", "a", "b"]
    assert twice.no_place.tolist() == [True, False, True]
    both = jobs.followed_by(twice)
    assert both.min_nodes.tolist() == [2, 1, 1, 2, 1]
    assert len(both.version) == 5


def test_running_jobs_may_leave_words_out():
    running = a_snapshot(running=[a_running_job()])().running
    columns = {field.name: getattr(running, field.name) for field in fields(running)}
    for name in ("name", "user", "account", "partition", "exclusive"):
        del columns[name]
    table = RunningTable(**columns)
    assert table.account.tolist() == [""]
    assert table.partition.tolist() == [-1]


ABSURD = (float("nan"), float("inf"), float("-inf"), 1e300, -2.0, 2.0 * MAX_RATIO)


@pytest.mark.parametrize("value", ABSURD)
@pytest.mark.parametrize("name", ["cpu_s", "busy_cpus", "progress", "memory_stall"])
def test_what_is_no_measurement_is_unknown(name, value):
    running = a_snapshot(running=[a_running_job(), a_running_job(nodes=(1,), id="b")], nodes=2)()
    column = np.array([value, 0.25])
    table = replace(running.running, **{name: column})
    assert getattr(table, name).tolist() == [-1.0, 0.25]
    assert column[1] == 0.25
    sound = np.array([-1.0, 0.0])
    assert getattr(replace(table, **{name: sound}), name) is sound
