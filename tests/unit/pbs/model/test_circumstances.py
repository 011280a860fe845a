# SPDX-License-Identifier: Apache-2.0
"""Waiting jobs are judged again when something that they depend on changed, and only then."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.pbs.decisions.last_check import LastCheck
from bridge.pbs.orders import StartOrder
from bridge.pbs.report import translation
from bridge.pbs.report.translation import Translation
from bridge.rpc.pb import scheduler_pb2 as pb
from tests.pbs_tables import NOW_S, a_job, a_queue, running, some_tables

JOBS = {
    "1.srv": a_job("1:ncpus=1"),
    "2.srv": a_job("2:ncpus=1", user="bob"),
    "3[].srv": a_job("1:ncpus=1", array_indices_remaining="1-4", max_run_subjobs="2"),
    "4.srv": a_job("1:ncpus=1", Execution_Time=str(NOW_S + 5), job_state="W"),
    "5.srv": a_job("1:ncpus=1", queue="R9"),
    "6.srv": a_job("1:ncpus=1", listed={"lic": "1"}),
    "7.srv": a_job("1:ncpus=1", Priority="7"),
}
CHANGES = {
    "later": lambda t: {"now_s": t.now_s + 6},
    "a start": lambda t: {"jobs": t.jobs | {"8.srv": running("(n1:ncpus=2)")}},
    "a task": lambda t: {
        "jobs": t.jobs | {"3[1].srv": running("(n2:ncpus=1)", array_id="3[].srv")}
    },
    "an end": lambda t: {"jobs": {j: a for j, a in t.jobs.items() if j != "8.srv"}},
    "a hold": lambda t: {"jobs": t.jobs | {"1.srv": {**t.jobs["1.srv"], "Hold_Types": "u"}}},
    "a limit": lambda t: {"server": {"max_run": "[u:ann=1]"}},
    "a soft limit": lambda t: {"server": {"max_run_soft": "[u:ann=0]"}},
    "no limit": lambda t: {"server": {}},
    "licences": lambda t: {"server": {"resources_available": {"lic": "1"}}},
    "a formula": lambda t: {"server": {"job_sort_formula": "ncpus"}},
    "a stopped queue": lambda t: {"queues": {"workq": a_queue(started="False")}},
    "a queue's priority": lambda t: {"queues": {"workq": a_queue(Priority="9")}},
    "a queue's count": lambda t: {"queues": {"workq": a_queue(total_jobs="9")}},
    "a reservation": lambda t: {
        "reservations": {"R9.srv": {
            "reserve_state": "2", "reserve_start": str(NOW_S + 8), "queue": "R9",
            "reserve_end": str(NOW_S + 900), "resv_nodes": "(n1:ncpus=4)",
        }},
        "queues": {**t.queues, "R9": a_queue()},
    },
    "nothing": lambda _: {},
}  # fmt: skip


@given(st.lists(st.sampled_from(sorted(CHANGES)), max_size=6))
def test_a_report_is_as_if_everything_were_judged_again(changes):
    tables, kept = some_tables(JOBS), Translation()
    kept.report(tables)
    for change in changes:
        tables = dataclasses.replace(tables, **CHANGES[change](tables))
        found, fresh = kept.report(tables), Translation().report(tables)
        assert dict(found.jobs) == dict(fresh.jobs), change


@pytest.mark.parametrize(
    ("change", "judged"),
    [("nothing", 0), ("a queue's count", 0), ("a start", 0), ("a hold", 1), ("a limit", 20)],
)
def test_only_what_may_have_changed_is_judged(monkeypatch, change, judged):
    tables, kept = some_tables({f"{at}.srv": a_job() for at in range(1, 21)}), Translation()
    kept.report(tables)
    calls, judge = [], translation._standing
    monkeypatch.setattr(
        translation, "_standing", lambda job, *a, **k: calls.append(job.id) or judge(job, *a, **k)
    )
    kept.report(dataclasses.replace(tables, **CHANGES[change](tables)))
    assert len(calls) == judged


def test_a_resource_that_is_not_compared_is_neither_taken_nor_reported():
    tables = some_tables(
        {"1.srv": running("(n1:ncpus=1:scratch=100gb)"), "2.srv": a_job("1:ncpus=1:scratch=1gb")}
    )
    reader = Translation()
    assert len(reader.report(tables).jobs["1.srv"].allocation.uses[0].gres) == 1
    config = translation.Reader().files.config
    compared = dataclasses.replace(config, compared=frozenset(("ncpus", "mem")))
    reader.reader.files = dataclasses.replace(reader.reader.files, config=compared)
    assert not reader.report(tables).jobs["1.srv"].allocation.uses[0].gres
    decision = pb.Decision(
        job_id="2.srv", job_version=reader.report(tables).jobs["2.srv"].version,
        start=pb.Start(nodes="n1", partition="workq"),
    )  # fmt: skip
    assert LastCheck(tables, reader.reader).admit(decision) == StartOrder("2.srv", "(n1:ncpus=1)")
