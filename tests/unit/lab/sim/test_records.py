# SPDX-License-Identifier: Apache-2.0
"""Site workloads: the file, the requests made of it, dependencies and outages in simulations."""

import dataclasses
import gzip
import json

import numpy as np
import pytest

from bridge.errors import TraceError
from bridge.lab.sim.runs.engine import simulate
from bridge.lab.sim.runs.faults import FaultKind, recorded_outages
from bridge.lab.sim.workloads.reading import read_workload
from bridge.lab.sim.workloads.records.as_swf import as_swf
from bridge.lab.sim.workloads.records.job_record import (
    JobEnding,
    JobRecord,
    Outage,
    ReservationRecord,
    SiteWorkload,
)
from bridge.lab.sim.workloads.records.lowering import (
    NO_FEATURE,
    NO_NODE,
    NO_PARTITION,
    NOT_ENDED,
    NodeOutage,
    simulation_of,
)
from bridge.lab.sim.workloads.records.record_file import (
    read_site_workload,
    write_site_workload,
)
from bridge.lab.sim.workloads.swf import Field
from bridge.lab.sim.workloads.system import pool_of, read_system
from bridge.registry import PRESETS, build
from bridge.safe_cycle.decider import Decider

SYSTEM = """
nodes:
  - {names: "c[1-4]", cpus: 8, memory_mib: 1000, features: [old]}
  - {names: "g[1-2]", cpus: 8, memory_mib: 4000, gres: {gpu: 2}, features: [new]}
partitions:
  - {name: cpu, nodes: "c[1-4]", max_time_s: 500}
  - {name: gpu, nodes: "g[1-2]"}
use_memory: true
"""


@pytest.fixture
def system(tmp_path):
    path = tmp_path / "system.yaml"
    path.write_text(SYSTEM)
    return read_system(path)


def job(number, submit_s=1000, **fields):
    usual = {"runtime_s": 100, "start_s": submit_s + 5, "end_s": submit_s + 105, "cpus": 4,
             "nodes": 1, "time_limit_s": 200, "user": "ann",
             "state": JobEnding.COMPLETED}  # fmt: skip
    return JobRecord(number, submit_s, **{**usual, **fields})


def a_site(*jobs, **fields):
    return SiteWorkload("s", jobs, **fields)


def full_job():
    """A job with a value in every field."""
    values = {"str": "x", "int": 7, "bool": True}
    fields = {
        each.name: values.get(each.type.__name__)
        for each in dataclasses.fields(JobRecord)
        if isinstance(each.type, type) and each.type.__name__ in values
    }
    more = {"partitions": ("a", "b"), "gres": {"gpu": 2}, "after": (("afterok", "1"),)}
    return JobRecord(**{**fields, **more, "state": JobEnding.TIMEOUT})


@pytest.mark.parametrize("name", ["a.workload.jsonl", "a.workload.jsonl.gz"])
def test_what_is_written_is_read_back(tmp_path, name):
    outage, kept = Outage("n[1-2]", 5, 9, "drained", "fan"), ReservationRecord("r", 1, 2, "n1", "M")
    jobs = (full_job(), job("2"))
    assert not any(value in (0, "", (), None) for value in vars(jobs[0]).values())
    site = SiteWorkload("site", jobs, (outage,), (kept,), 64, {"reader": "test"})
    write_site_workload(tmp_path / name, site)
    again = read_site_workload(tmp_path / name)
    assert (tuple(again.jobs), tuple(again.outages)) == (site.jobs, site.outages)
    assert (tuple(again.reservations), again.processors) == (site.reservations, 64)
    assert dict(again.about) == {"reader": "test"}


HEAD = '{"format":"schedbridge-workload","version":1,"name":"s","processors":8,"about":{}}\n'
GOOD = '{"kind":"job","id":"1","submit_s":5}\n'


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("{", "is not JSON"),
        ("[1]", "is no JSON object"),
        ('{"kind":["job"]}', "its kind is not job"),
        ('{"kind":"job","id":"2"}', "has no field 'submit_s'"),
        ('{"kind":"job","id":"","submit_s":5}', "id is ''"),
        ('{"kind":"job","id":"2","submit_s":-5}', "submit_s is -5"),
        ('{"kind":"job","id":"2","submit_s":true}', "submit_s is True"),
        ('{"kind":"job","id":"2","submit_s":1e400}', "submit_s is inf"),
        ('{"kind":"job","id":"2","submit_s":5,"cpus":99999999999999999999}', "cpus is 9999"),
        ('{"kind":"job","id":"2","submit_s":5,"state":"odd"}', "state is 'odd'"),
        ('{"kind":"job","id":"2","submit_s":5,"after":[["afterok"]]}', "not pairs"),
        ('{"kind":"job","id":"2","submit_s":5,"partitions":"a"}', "partitions is 'a'"),
        ('{"kind":"job","id":"2","submit_s":5,"gres":{"gpu":-1}}', "gres gpu is -1"),
        ('{"kind":"job","id":"2","submit_s":5,"colour":1}', "unknown field 'colour'"),
        (GOOD.strip(), "job 1 was there before"),
        ("[" * 50_000, "is not JSON"),
    ],
)
def test_bad_lines_are_refused_by_number_and_dropped_leniently(tmp_path, line, says):
    path = tmp_path / "x.workload.jsonl"
    path.write_text(HEAD + GOOD + line + "\n")
    with pytest.raises(TraceError, match=f"jsonl:3: .*{says}.*--lenient"):
        read_site_workload(path)
    found = read_site_workload(path, lenient=True)
    assert (len(found.jobs), len(found.dropped)) == (1, 1)


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b"", "not the header"),
        (GOOD.encode(), "not the header"),
        (HEAD.encode(), "has no jobs"),
        (HEAD.replace('"version":1', '"version":2').encode(), "version 2 is not known"),
        (HEAD.replace("8", "-8").encode(), "header lacks"),
        (gzip.compress((HEAD + GOOD).encode())[:-9], "cut off"),
        (b"\x00" * 100, "NUL"),
    ],
)
def test_other_files_are_refused(tmp_path, raw, says):
    path = tmp_path / "x.workload.jsonl"
    path.write_bytes(raw)
    with pytest.raises(TraceError, match=says):
        read_site_workload(path)


def test_requests_keep_partitions_memory_gpus_and_features(system):
    found = simulation_of(
        a_site(
            job("plain", partitions=("cpu",), memory_mib=500, memory_per="node", features="old"),
            job("tasks", partitions=("gpu",), cpus=6, nodes=2, least_nodes=1, memory_mib=100,
                memory_per="cpu", gres={"gpu": 2}),
            job("whole", partitions=("cpu", "gone"), cpus=16, nodes=2, requested_cpus=4,
                exclusive=True, memory_mib=10, memory_per="cpu", time_limit_s=0),
        ),
        system, system.processors,
    )  # fmt: skip
    table = found.workload.requests
    assert table.partitions.tolist() == [(0,), (1,), (0,)]
    assert table.per_node.tolist() == [[4, 500, 0], [0, 0, 1], [2, 20, 0]]
    assert table.per_task.tolist() == [[0, 0, 0], [1, 100, 0], [0, 0, 0]]
    assert list(zip(table.min_nodes, table.max_nodes, table.tasks, strict=True)) == [
        (1, 1, 0), (1, 6, 6), (2, 2, 0),
    ]  # fmt: skip
    assert table.features.tolist() == ["old", "", ""]
    assert table.exclusive.tolist() == [False, False, True]
    assert found.workload.time_limit_s.tolist() == [200, 200, 500]
    assert found.ignored == ()


def test_jobs_that_cannot_be_simulated_are_counted_by_reason(system):
    found = simulation_of(
        a_site(
            job("1"), job("2", state=JobEnding.RUNNING), job("3", partitions=("gone",)),
            job("4", features="old&newer"), job("5", features="old&&"),
            job("6", memory_mib=2000, memory_per="node", partitions=("cpu",)),
            job("7", gres={"gpu": 3}), job("8", nodes=7, cpus=7), job("9", runtime_s=0),
            job("10", cpus=10_000),
        ),
        system, system.processors,
    )  # fmt: skip
    assert len(found.workload) == 1
    assert found.workload.left_out == {
        NOT_ENDED: 1, NO_PARTITION: 1, NO_FEATURE: 2, NO_NODE: 3,
        "never ran (run time or processors <= 0)": 1, "larger than the machine": 1,
    }  # fmt: skip
    with pytest.raises(TraceError, match="no job can be simulated: 1 had not ended"):
        simulation_of(a_site(job("2", state=JobEnding.RUNNING)), system, 8)


def simulated(site, machine, outages=()):
    found = simulation_of(site, None if machine.pool else machine, machine.processors)
    decide = Decider(build(PRESETS["easy"]), seed=0).decide
    faults = recorded_outages(found.outages)
    return found, simulate(found.workload, machine, decide, faults=faults)


def test_dependents_are_submitted_when_the_jobs_before_them_have_ended():
    site = a_site(
        job("1", cpus=4),
        job("2_1", 1010, runtime_s=50, array="2"),
        job("2_2", 1010, runtime_s=150, array="2"),
        job("3", 1001, after=(("afterok", "1"),)),
        job("4", 1002, after=(("afterany", "2"),)),
        job("5", 1020, after=(("afterok", "77"),), eligible_s=1020),
        job("6", 1003, name="n", user="bob"),
        job("7", 1004, name="n", user="bob", after=(("singleton", ""),)),
        job("8", 1005, eligible_s=1400, start_s=1500),
        job("9", 1006, after=(("afterok", "10"),)),
        job("10", 1006, after=(("afterok", "9"),)),
    )
    found, outcome = simulated(site, pool_of(64))
    start = dict(zip(found.workload.id, outcome.schedule.start_s.tolist(), strict=True))
    submit = dict(zip(found.workload.id, outcome.schedule.submit_s.tolist(), strict=True))
    assert (start["3"], submit["3"]) == (1100, 1100)  # 1 ends
    assert start["4"] == 1160  # the last task of 2
    assert start["5"] == 1020
    assert start["7"] == 1103
    assert start["8"] == 1400
    assert outcome.schedule.finished.sum() == 9  # 9 and 10 wait for each other
    assert any("1 jobs: dependencies" in what for what in found.ignored)
    few = found.workload.first(3)
    assert few.after.tolist() == [(), ("1",), ("2_1", "2_2")]


def test_outages_take_nodes_away_and_down_ones_lose_their_jobs(system):
    wide = {"partitions": ("gpu",), "nodes": 2, "cpus": 16}
    site = a_site(
        job("1", **wide), job("2", 1150, **wide), job("3", 1300, **wide),
        outages=(
            Outage("g1,elsewhere", 1050, 1060), Outage("g2", 1200, 1290, "drained"),
            Outage("elsewhere", 1200, 1290),
        ),
        reservations=(
            ReservationRecord("maint", 1290, 1500, "g[1-2]"),
            ReservationRecord("for jobs", 1, 2, ""),
        ),
    )  # fmt: skip
    found, outcome = simulated(site, system)
    assert found.ignored == ("1 outages: the system has none of their nodes",)
    assert outcome.restarts.tolist() == [1, 0, 0]
    assert outcome.schedule.start_s.tolist() == [1060, 1160, 1500]
    kinds = [fault.kind for fault in recorded_outages(found.outages)]
    assert kinds[0] is FaultKind.NODE_LOST
    assert kinds[-1] is FaultKind.NODE_RETURNED


def test_overlapping_outages_of_a_node_end_once():
    stretches = (NodeOutage(0, 5, 20, False), NodeOutage(0, 10, 0, True), NodeOutage(1, 1, 2, True))
    found = [(fault.at_s, fault.kind, fault.target) for fault in recorded_outages(stretches)]
    assert found == [
        (1, FaultKind.NODE_LOST, 1), (2, FaultKind.NODE_RETURNED, 1),
        (5, FaultKind.NODE_DRAINED, 0), (10, FaultKind.NODE_LOST, 0),
    ]  # fmt: skip


def test_the_common_format_has_what_it_can():
    site = a_site(
        job("b", 50, cpus=8, nodes=2, memory_mib=1024, memory_per="node", partitions=("p",)),
        job("a", 20, memory_mib=3, memory_per="cpu", state=JobEnding.CANCELLED, account="x"),
        job("c", 60, start_s=0, runtime_s=0, after=(("afterok", "b"),)),
        processors=64,
    )
    trace = as_swf(site)
    assert trace.whole_number("MaxProcs") == 64
    assert trace.whole_number("UnixStartTime") == 20
    columns = trace.columns
    assert columns[:, Field.SUBMIT_S].tolist() == [0, 30, 40]
    assert columns[:, Field.REQUESTED_MEMORY_KIB].tolist() == [3 * 1024, 256 * 1024, -1]
    assert columns[:, Field.STATUS].tolist() == [5, 1, 1]
    assert columns[2, [Field.RUNTIME_S, Field.PRECEDING_JOB]].tolist() == [-1, 2]


def test_a_pool_needs_a_number_of_processors(tmp_path):
    path = tmp_path / "x.workload.jsonl"
    write_site_workload(path, a_site(job("1", gres={"gpu": 1}, qos="a"), job("2", qos="b")))
    with pytest.raises(TraceError, match="states no processors; give --procs or --system"):
        read_workload(path, None)
    found = read_workload(path, None, 8)
    assert np.array_equal(found.workload.row, [0, 1])
    assert found.ignored[0] == "1 jobs: generic resources (GPUs)"
    assert found.ignored[1].startswith("QOS")
    assert json.dumps(found.ignored)
