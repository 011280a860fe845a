# SPDX-License-Identifier: Apache-2.0
"""Tiny traces and their schedules, as text a person can check.

Many presets plan a trace alike: `schedules.yaml` says which presets each file of `schedules` is of.
SCHEDBRIDGE_GOLDEN=write writes files and table again; read the difference before you commit it.
"""

import os
from functools import cache
from pathlib import Path

import pytest
import yaml

from bridge.lab.report.ascii import LETTERS, ascii_gantt
from bridge.lab.sim.runs.engine import simulate
from bridge.lab.sim.workloads.swf import read_swf
from bridge.lab.sim.workloads.system import pool_of
from bridge.lab.sim.workloads.workload import workload_from
from bridge.registry import PRESETS, build
from bridge.safe_cycle.decider import Decider
from schedbridge_contracts.crosses import each

HERE = Path(__file__).parent
FILES, TABLE = HERE / "schedules", HERE / "schedules.yaml"
TRACES = sorted(path.stem for path in (HERE / "traces").glob("*.swf"))


def render(trace, outcome):
    schedule, workload = outcome.schedule, outcome.workload
    origin = int(workload.submit_s[0])
    lines = [
        trace.directive("Note"),
        f"on {workload.processors_total} processors",
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


@cache
def schedule(name, preset):
    """The text of a trace's schedule under a preset."""
    trace = read_swf(HERE / "traces" / f"{name}.swf")
    workload = workload_from(trace)
    decider = Decider(build(PRESETS[preset]))
    return render(trace, simulate(workload, pool_of(workload.processors_total), decider.decide))


def grouped():
    """By trace and text, the presets under which the trace has that schedule."""
    found = {}
    for name in TRACES:
        for preset in PRESETS:
            found.setdefault((name, schedule(name, preset)), []).append(preset)
    return found


@pytest.fixture(scope="module", autouse=True)
def _renewed():
    """With SCHEDBRIDGE_GOLDEN=write: files are named by the first of their presets."""
    if os.environ.get("SCHEDBRIDGE_GOLDEN") != "write":
        return
    found = grouped()
    for path in FILES.iterdir():
        path.unlink()
    lines = ["# SPDX-License-Identifier: Apache-2.0", "# Written by test_golden.py.", ""]
    for (name, text), presets in found.items():
        file = f"{name}.{presets[0]}.txt"
        (FILES / file).write_text(text)
        lines.append(f"{file}: [{', '.join(presets)}]")
    TABLE.write_text("\n".join([*lines, ""]))


def approved():
    """By trace and preset, the name of the file; fails where there are two."""
    found = {}
    for file, presets in yaml.safe_load(TABLE.read_text()).items():
        for preset in presets:
            of = (file.split(".")[0], preset)
            assert found.setdefault(of, file) == file, f"{of} is in two lines of {TABLE.name}"
    return found


@each(name=TRACES, preset=list(PRESETS))
def test_the_schedule_is_the_one_that_was_read_and_approved(name, preset):
    assert schedule(name, preset) == (FILES / approved()[name, preset]).read_text()


def test_the_table_names_every_schedule_and_every_file_once():
    files = approved()
    assert files.keys() == {(name, preset) for name in TRACES for preset in PRESETS}
    assert set(files.values()) == {path.name for path in FILES.iterdir()}


def test_no_two_files_of_a_trace_are_alike():
    texts = [(path.name.split(".")[0], path.read_text()) for path in FILES.iterdir()]
    assert len(set(texts)) == len(texts)
