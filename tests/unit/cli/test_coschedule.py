# SPDX-License-Identifier: Apache-2.0
"""`benchmarks/bench.py coschedule` and `simulate --interference`: figures, and clear refusals."""

import json
from pathlib import Path
from typing import Any

import bench
import numpy as np
import pytest
from policy_bench.coschedule import PAPER, lines, model_of

from bridge.cli.main import main
from bridge.errors import ConfigError
from bridge.lab.sim.sharing.interference import Interference
from bridge.lab.sim.workloads.coscheduling_paper import (
    CORES,
    NODE_CPUS,
    SET,
    WORKFLOWS,
    paper_model,
    paper_sets,
    paper_system,
)

DATA = Path(__file__).parents[3] / "bridge" / "lab" / "sim" / "data"
TRACE, MODEL = DATA / "KTH-SP2-1996-excerpt.swf.gz", DATA / "interference.json"


def command(*arguments: str) -> int:
    with pytest.raises(SystemExit) as stopped:
        bench.run(arguments[1:]) if arguments[0] == "bench.py" else main(arguments)
    code = stopped.value.code
    assert isinstance(code, int)
    return code


def found(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert command(*arguments) == 0
    value: dict[str, Any] = json.loads(capsys.readouterr().out)
    return value


def test_the_experiment_without_sharing(capsys: pytest.CaptureFixture[str]) -> None:
    """Nobody is slowed down, the sets have different jobs, and larger clusters make waits short."""
    one = found(capsys, "bench.py", "coschedule", "--json", "--seeds", "2", "--policies", "easy")
    again = found(capsys, "bench.py", "coschedule", "--json", "--seeds", "2", "--policies", "easy")
    assert one == again
    assert len(one["runs"]) == 2 * len(CORES)
    for run in one["runs"]:
        assert run["failures"] == run["refusals"] == run["guests"] == 0
        assert run["slower_percent"] == run["overrun_percent"] == 0
        for name, flow in WORKFLOWS.items():
            assert run["runtimes_h"][name] == pytest.approx(flow.mean_h, rel=0.05)  # runs scatter
        assert len({each["response_h"] for each in run["repeats"]}) == 3
        assert 0 < run["cpu_percent"] < 100
    waits = [entry["wait_h"]["mean"] for entry in one["summary"]]
    assert waits == sorted(waits, reverse=True)
    assert len(one["paper"]) == len(PAPER) == 9
    assert len(lines(one["summary"])) == 2 + len(CORES)


def test_the_experiment_with_sharing(capsys: pytest.CaptureFixture[str]) -> None:
    """Guests start earlier and slow hosts down: with `pairs` within the bound."""
    one = found(
        capsys, "bench.py", "coschedule", "--json", "--seeds", "1", "--repeats", "1",
        "--cores", "64", "--policies", "easy,static-half,asax,pairs",
    )  # fmt: skip
    runs = {run.pop("policy"): run for run in one["runs"]}
    for run in runs.values():
        assert run["failures"] == run["refusals"] == 0
    alone = runs.pop("easy")
    assert alone["guests"] == 0
    for policy, run in runs.items():
        assert run["guests"] >= 3, policy
        assert 1 <= run["hosts"] <= len(run["pairs"]) <= run["guests"], policy
        worst = max(percent for _, _, percent in run["pairs"])
        assert (worst > 10) == (run["above_bound_percent"] > 0), policy
        assert run["slower_percent"] > 0, policy
        assert run["wait_h"] < alone["wait_h"], policy
        assert run["cpu_percent"] > alone["cpu_percent"], policy
    assert runs["pairs"]["above_bound_percent"] == 0 < runs["static-half"]["above_bound_percent"]
    assert {entry["policy"] for entry in one["summary"]} == {"easy", *runs}


def test_run_times_have_the_mean_and_the_deviation_of_the_papers_table() -> None:
    for flow in WORKFLOWS.values():
        hours = np.array([flow.runtime_s(cores) for cores in flow.cores]) / 3600
        assert hours.mean() == pytest.approx(flow.mean_h)
        assert hours.std() / hours.mean() == pytest.approx(flow.deviation)
        assert (np.diff(hours) < 0).all()


def test_a_set_has_the_papers_jobs() -> None:
    system, model = paper_system(64), model_of(None)
    workload = paper_sets(system, model, seed=3, begins_s=[100, 90_000])
    assert workload.sharing is not None
    assert workload.requests is not None
    for part in (slice(0, SET), slice(SET, None)):
        names = [model.applications[at].name for at in workload.sharing.application[part]]
        assert [names.count(name) for name in WORKFLOWS] == [4, 4, 4, 3]
        assert workload.processors[part].sum() == 3 * 120 + 112
    assert set(workload.submit_s.tolist()) == {100, 90_000}
    assert (workload.requests.min_nodes * NODE_CPUS == workload.processors).all()
    first = paper_sets(system, model, seed=3, begins_s=[100])
    assert (first.runtime_s == workload.runtime_s[:SET]).all()


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("bench.py", "coschedule", "--cores", "60"),
         "must be a multiple of 8 from 64 to 65536, "),
        (("bench.py", "coschedule", "--cores", "65544"), "to 65536, not 65544"),
        (("bench.py", "coschedule", "--cores", "99999999999999999999999992"), "cores: must be"),
        (("bench.py", "coschedule", "--cores", "9" * 5000), "cores: must be"),
        (("bench.py", "coschedule", "--policies", "easy,malleable"), "malleable resizes jobs"),
        (("bench.py", "coschedule", "--cores", "many"), "cores: must be a multiple of 8"),
        (("bench.py", "coschedule", "--cores", "64,64"), "cores: 64 is listed twice"),
        (("bench.py", "coschedule", "--policies", "easy,easy"),
         "policies: easy is listed twice"),
        (("bench.py", "coschedule", "--interference", "none.yaml"),
         "none.yaml: cannot be read"),
        (("lab", "simulate", str(TRACE), "--consent", "30"), "consent: needs --interference FILE"),
        (("lab", "simulate", str(TRACE), "--over-time-limit", "3"), "over-time-limit: needs"),
        (("lab", "simulate", str(TRACE), "--interference", str(MODEL), "--consent", "101"),
         "consent: must be 0 to 100 percent, not 101"),
        (("lab", "simulate", str(TRACE), "--interference", str(MODEL), "--over-time-limit", "soon"),
         "over-time-limit: must be unlimited or 0 to 65533 minutes, not 'soon'"),
        (("lab", "simulate", "esp:50", "--interference", str(MODEL)),
         "cannot be combined with malleable"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_in_a_line(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], problem: str
) -> None:
    assert command(*arguments) != 0
    said = capsys.readouterr().err
    assert problem in said
    assert said.count("\n") == 1


def test_a_model_without_one_of_the_workflows_is_refused() -> None:
    whole = model_of(None)
    with pytest.raises(ConfigError, match="has no 'synthetic'"):
        paper_model(Interference(whole.applications[:3]), 64)


@pytest.mark.parametrize("cores", CORES)
def test_workflows_use_the_cpu_time_of_the_papers_table(cores: int) -> None:
    for application in paper_model(model_of(None), cores).applications:
        stages, wanted = application.stages, WORKFLOWS[application.name].cpu[CORES.index(cores)]
        assert sum(stage.share for stage in stages) == pytest.approx(1, abs=1e-3)
        assert all(stage.cpu <= 1 for stage in stages)
        used = sum(stage.share * stage.cpu for stage in stages if stage.parallel)
        assert used == pytest.approx(wanted, rel=2e-3)


def test_a_trace_with_guests(capsys: pytest.CaptureFixture[str]) -> None:
    summary = found(
        capsys, "lab", "simulate", str(TRACE), "--jobs", "150", "--policy", "asax",
        "--interference", str(MODEL), "--json",
    )  # fmt: skip
    (result,) = summary["results"]
    assert result["sharing"]["guests"] > 0
    assert result["sharing"]["host_slowdown"]["p95"] > 0


def test_a_trace_with_a_model_but_without_guests(capsys: pytest.CaptureFixture[str]) -> None:
    summary = found(
        capsys, "lab", "simulate", str(TRACE), "--jobs", "150", "--policy", "easy",
        "--interference", str(MODEL), "--consent", "40", "--over-time-limit", "0", "--json",
    )  # fmt: skip
    assert summary["planning"]["coscheduling"] == [{"partition": "*", "scope": "all"}]
    sharing = summary["results"][0]["sharing"]
    assert sharing["guests"] == sharing["killed"] == 0
    assert 0 < sharing["cpu_use"] < summary["results"][0]["utilization"]
