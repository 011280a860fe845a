# SPDX-License-Identifier: Apache-2.0
"""Time in MPI against computing time, from the agents' reports."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.agent.daemon import mpi_reports
from bridge.agent.pages import MpiUse
from bridge.cli.operators.elastic import _mpi_time
from bridge.extensions.elastic.operators.answers import _job
from bridge.extensions.elastic.resizing.launchers import Willing
from bridge.extensions.elastic.resizing.runtime import Runtime
from bridge.rpc.agents.hub import Hub
from bridge.rpc.agents.mpi_times import LARGEST, MAX_JOBS, SETTLE_S, WINDOW_S, MpiTimes
from bridge.rpc.pb import agent_pb2 as pb
from schedbridge_contracts.builders import a_running_job, a_snapshot
from tests.unit.rpc.placements import a_placement

ATTACH = """
{"op": "attach", "version": 1, "job": "5_2", "nodes": [NODES], "engine": "join", "pending": null}
""".strip()


@pytest.fixture
def times():
    return MpiTimes()


def test_the_ratio_is_mpi_time_over_the_rest(times):
    assert times.mtct("7", 0) == -1
    times.add("7", 4, 20, 5)
    times.add("7", 1, 5, 6)
    times.add("8", 20, 20, 6)
    times.add("9", 0, 20, 6)
    assert times.mtct("7", 6) == pytest.approx(5 / 20)
    assert times.mtct("8", 6) == LARGEST
    assert times.mtct("9", 6) == 0
    assert times.mtct("7", 7 + WINDOW_S) == -1


def test_little_time_says_nothing(times):
    times.add("7", 1, 9, 5)
    assert times.mtct("7", 5) == -1


def test_another_width_is_a_new_baseline_and_its_first_reports_do_not_count(times):
    times.runs_on("7", ("n1",), 1)
    times.add("7", 20, 40, 5)
    times.runs_on("7", ("n1",), 9)
    assert times.mtct("7", 9) == 1
    times.runs_on("7", ("n1", "n2"), 10)
    times.add("7", 15, 15, 11)
    assert times.mtct("7", 11) == -1
    times.add("7", 1, 11, 10 + SETTLE_S)
    assert times.mtct("7", 21) == pytest.approx(0.1)


def test_what_was_before_the_window_is_forgotten(times):
    times.add("7", 20, 40, 0)
    times.add("7", 1, 11, WINDOW_S + 1)
    assert times.mtct("7", WINDOW_S + 1) == pytest.approx(21 / 30)
    times.add("7", 1, 11, 2 * WINDOW_S + 2)
    assert times.mtct("7", 2 * WINDOW_S + 2) == pytest.approx(0.1)


def test_the_number_of_jobs_is_bounded(times):
    times.add("old", 1, 20, 0)
    for number in range(MAX_JOBS):
        times.add(str(number), 1, 20, 1)
    assert times.mtct("old", 1) == -1
    assert times.mtct("0", 1) >= 0


@given(st.lists(st.tuples(st.floats(), st.floats(), st.floats(0, 1e4)), max_size=8))
def test_no_report_makes_a_ratio_out_of_bounds(reports):
    times, now_s = MpiTimes(), 0.0
    for mpi_s, wall_s, later_s in reports:
        now_s += later_s
        times.add("7", mpi_s, wall_s, now_s)
        found = times.mtct("7", now_s)
        assert found == -1 or 0 <= found <= LARGEST * (1 + 1e-9)
        assert math.isfinite(found)


def test_the_hub_takes_reports_of_an_agents_own_nodes_and_jobs_by_their_users_names():
    hub = Hub()
    hub.placed(a_placement({"5_2": "n1 n2"}, numbers={"5_2": "7"}))
    agent = hub.arrived(["n1"], lambda _order: None)
    line = ATTACH.replace("NODES", '"n1"')
    said = pb.FromLauncher(connection=1, user="ann", job="7", line=line)
    hub.report(agent, pb.AgentReport(launcher=said))
    for node, mpi_s in (("n1", 10.0), ("n2", 19.0)):
        spent = pb.MpiTime(job="7", node=node, mpi_s=mpi_s, wall_s=20, processes=2)
        hub.report(agent, pb.AgentReport(mpi=spent))
    spent = pb.MpiTime(job="7", node="n1", mpi_s=4, wall_s=20, estimated=True)
    hub.report(agent, pb.AgentReport(mpi=spent))
    assert hub.mtct("5_2", "ann") == 1
    assert hub.mtct("5_2", "ann", estimate=True) == 0.25
    said.line = line.replace('"n1"', '"n1", "n3"')
    hub.report(agent, pb.AgentReport(launcher=said))
    assert hub.mtct("5_2", "ann") == -1


def test_an_agent_reports_its_own_nodes_and_nothing_of_first_readings():
    found = {
        ("7", "n1"): MpiUse(1, 5, 1), ("7", "n9"): MpiUse(1, 5, 1),
        ("8", ""): MpiUse(2, 5, 3), ("9", "n1"): MpiUse(0, 0, 1),
    }  # fmt: skip
    guessed = {("9", "n1"): MpiUse(3, 5, 1), ("10", "n2"): MpiUse(4, 5, 1)}
    sent = [report.mpi for report in mpi_reports(found, guessed, ("n1", "n2"))]
    assert [(one.job, one.node, one.mpi_s, one.processes, one.estimated) for one in sent] == [
        ("7", "n1", 1, 1, False), ("8", "n1", 2, 3, False), ("10", "n2", 4, 1, True),
    ]  # fmt: skip


class Measured(Willing):
    def __init__(self, mtct):
        super().__init__()
        self.value = mtct

    def mtct(self, job_id, user, *, estimate=False):
        return 0.5 if estimate else self.value


@pytest.mark.parametrize("mtct", [-1.0, 0.25])
def test_planning_and_operators_see_what_was_measured_and_nothing_else_changes(mtct):
    job = a_running_job((0,), id="m", min_nodes=1, max_nodes=2)
    world = a_snapshot(running=[job], nodes=2)()
    runtime = Runtime(Measured(mtct), lambda job_id: job_id)
    runtime.see(world)
    shown = runtime.overlay(world)
    message = _job(runtime.shown[0], "n1", "n1")
    assert message.HasField("mtct") == (mtct >= 0)
    assert message.HasField("mtct_estimate") == (mtct < 0)
    text = "not measured; estimated by CPU use: 0.500 s of waiting" if mtct < 0 else "0.250 s"
    assert _mpi_time(message).startswith(text)
    if mtct < 0:
        assert shown is world
        return
    assert list(shown.running.mtct) == [mtct]
    for field in dataclasses.fields(world.running):
        if field.name != "mtct":
            before, after = getattr(world.running, field.name), getattr(shown.running, field.name)
            assert np.array_equal(before, after)
