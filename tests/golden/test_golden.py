# SPDX-License-Identifier: Apache-2.0
"""Tiny traces and their schedules, as text a person can check.

SCHEDBRIDGE_GOLDEN=write writes the schedules again; read the difference before you commit it.
"""

import os
from pathlib import Path

import pytest

from bridge.registry import PRESETS, build
from bridge.report.ascii import LETTERS, ascii_gantt
from bridge.safe_cycle.decider import Decider
from bridge.sim.runs.engine import simulate
from bridge.sim.workloads.swf import read_swf
from bridge.sim.workloads.system import pool_of
from bridge.sim.workloads.workload import workload_from

HERE = Path(__file__).parent
TRACES = sorted(path.stem for path in (HERE / "traces").glob("*.swf"))


def render(trace, preset, outcome):
    schedule, workload = outcome.schedule, outcome.workload
    origin = int(workload.submit_s[0])
    lines = [
        trace.directive("Note"),
        f"policy {preset} on {workload.processors_total} processors",
        "",
        "      job  processors  submit  limit  runtime  start  end  wait",
    ]
    lines += [
        f"  {LETTERS[job]}{workload.id[job]:>6}{workload.processors[job]:>12}"
        f"{workload.submit_s[job] - origin:>8}{workload.time_limit_s[job]:>7}"
        f"{workload.runtime_s[job]:>9}{schedule.start_s[job] - origin:>7}"
        f"{schedule.end_s[job] - origin:>5}{schedule.start_s[job] - schedule.submit_s[job]:>6}"
        for job in range(len(workload))
    ]
    gantt = ascii_gantt(
        outcome.system.nodes.names,
        schedule.start_s,
        schedule.end_s,
        outcome.indptr,
        outcome.nodes,
        origin_s=origin,
    )
    return "\n".join([*lines, "", gantt, ""])


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("name", TRACES)
def test_the_schedule_is_the_one_that_was_read_and_approved(name, preset):
    trace = read_swf(HERE / "traces" / f"{name}.swf")
    workload = workload_from(trace)
    outcome = simulate(
        workload, pool_of(workload.processors_total), Decider(build(PRESETS[preset])).decide
    )
    found = render(trace, preset, outcome)
    expected = HERE / "schedules" / f"{name}.{preset}.txt"
    if os.environ.get("SCHEDBRIDGE_GOLDEN") == "write":
        expected.write_text(found)
    assert found == expected.read_text()


def test_every_schedule_has_its_trace():
    known = {f"{name}.{preset}.txt" for name in TRACES for preset in PRESETS}
    assert {path.name for path in (HERE / "schedules").iterdir()} == known
