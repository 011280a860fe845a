# SPDX-License-Identifier: Apache-2.0
"""Tables recorded from a real server (OpenPBS 23.06.06) are understood."""

import dataclasses
import json
from pathlib import Path

import pytest

from bridge.pbs.decisions.last_check import LastCheck
from bridge.pbs.decisions.reservations import answer
from bridge.pbs.objects.definitions import read_definitions
from bridge.pbs.objects.values import Kind
from bridge.pbs.report.translation import Translation
from bridge.pbs.tables import Tables
from bridge.rpc.pb import scheduler_pb2 as pb

RECORDED = Path(__file__).parent / "recorded" / "server.json"


@pytest.fixture(scope="module")
def tables():
    found = json.loads(RECORDED.read_text())
    created_s = int(found["reservations"]["R4.pbssrv"]["ctime"])
    return Tables(now_s=created_s, server_name="pbssrv", **found)


def test_nothing_is_left_out(tables):
    assert Translation().report(tables).not_modelled == ()


def test_nodes_queues_and_jobs(tables):
    report = Translation().report(tables)
    assert {name: (n.cpus, n.memory_mib, n.usable) for name, n in report.nodes.items()} == {
        "n1": (4, 8192, True), "n2": (4, 8192, True),
    }  # fmt: skip
    partitions = {each.name: (each.nodes, each.up) for each in report.partitions.items}
    assert partitions == {"workq": ("n1,n2", True), "R4": ("n2", False)}
    running = report.jobs["0[5].pbssrv"]
    assert (running.state, running.allocation.uses[0].nodes) == (pb.JOB_STATE_RUNNING, "n2")
    assert running.time_limit_s == 3600
    assert "0[].pbssrv" not in report.jobs  # no task remains
    assert {report.jobs[f"{job}.pbssrv"].hold for job in (1, 2, 3)} == {pb.HOLD_HELD}
    assert {job.user for job in report.jobs.values()} <= {"alice", "bob"}


def test_resources_are_defined_as_the_server_says(tables):
    found = read_definitions(tables.resources)
    assert (found["mem"].kind, found["mem"].on_vnodes) == (Kind.SIZE, True)
    assert (found["hbmem"].kind, found["hbmem"].on_vnodes) == (Kind.SIZE, True)
    assert found["accelerator"].kind is Kind.BOOLEAN
    assert not found["hpm"].on_vnodes
    assert "walltime" not in found


def test_a_confirmed_reservation_keeps_its_vnodes(tables):
    report = Translation().report(tables)
    (reservation,) = report.reservations.items
    assert (reservation.nodes, reservation.end_s - reservation.start_s) == ("", 600)
    kept = report.jobs["R4.pbssrv"]  # two of four CPUs
    assert (kept.begin_s, kept.time_limit_s) == (reservation.start_s, 600)
    assert kept.request.chunks.chunks == "1:ncpus=2:host=n2"
    assert answer(tables, "R4.pbssrv") is None
    requested = tables.reservations["R4.pbssrv"] | {"reserve_state": "1"}
    again = dataclasses.replace(tables, reservations={"R4.pbssrv": requested})
    assert answer(again, "R4.pbssrv").location == "(n2:ncpus=2)"


def test_a_held_job_runs_only_if_an_operator_says_so(tables):
    version = Translation().report(tables).jobs["1.pbssrv"].version
    start = pb.Start(nodes="n1", partition="workq")
    check = LastCheck(tables)
    refused = check.admit(pb.Decision(job_id="1.pbssrv", job_version=version, start=start))
    assert refused.text == "the job is in state H"
