# SPDX-License-Identifier: Apache-2.0
"""`lab bench elastic`: same jobs for all policies, measures, intervals, clear refusals."""

import json
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from bench import run as run_bench
from policy_bench.elastic import interval, lines, summary

TRACE = Path(str(files("bridge.lab.sim").joinpath("data", "KTH-SP2-1996-excerpt.swf.gz")))


def bench(*arguments: str) -> int:
    with pytest.raises(SystemExit) as stopped:
        run_bench(["elastic", *arguments])
    code = stopped.value.code
    assert isinstance(code, int)
    return code


def measured(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict:
    assert bench("--json", *arguments) == 0
    return json.loads(capsys.readouterr().out)


def test_without_malleable_jobs_ours_is_static_backfill(capsys):
    found = measured(capsys, "--jobs", "60", "--seeds", "2", "--shares", "0",
                     "--policies", "conservative,malleable")  # fmt: skip
    by_policy: dict[str, list] = {}
    for run in found["runs"]:
        own = {key: value for key, value in run.items() if key not in ("policy", "decision_ms")}
        by_policy.setdefault(run["policy"], []).append(own)
    assert by_policy["conservative"] == by_policy["malleable"]
    assert all(run["malleable_wait_s"] is None and run["failures"] == 0 for run in found["runs"])


def test_malleable_jobs_gain_most_under_ours(capsys, tmp_path):
    """Slow: replays the mix of jobs under each policy."""
    plot = tmp_path / "plot.svg"
    found = measured(
        capsys, "--jobs", "80", "--seeds", "2", "--shares", "0,60", "--plot", str(plot)
    )
    assert "<svg" in plot.read_text()
    response_s = {
        (entry["policy"], entry["share"]): entry["response_s"]["mean"] for entry in found["summary"]
    }
    ours = response_s.pop(("malleable", 60))
    assert all(ours < others for (_, share), others in response_s.items() if share == 60)
    assert all(run["resizes"] > 0 for run in found["runs"] if run["share"] and run["policy"]
               != "conservative")  # fmt: skip


def test_a_trace_is_a_scenario_and_its_jobs_are_told_apart(capsys):
    drawn = ("--scenario", str(TRACE), "--jobs", "50", "--seeds", "1", "--shares", "20")
    found = measured(capsys, *drawn, "--policies", "malleable", "--mtct-error", "0.3")
    (run,) = found["runs"]
    assert run["scenario"] == TRACE.name.removesuffix(".swf.gz")
    n_malleable = 10
    mixed = (40 * run["rigid_wait_s"] + n_malleable * run["malleable_wait_s"]) / 50
    assert run["wait_s"] == pytest.approx(mixed, abs=0.02)


def test_jobs_have_phases_and_changes_have_costs(capsys):
    run = ("--jobs", "40", "--seeds", "1", "--shares", "100", "--policies", "malleable-performance")
    plain = measured(capsys, *run, "--speed-up", "amdahl:0.1")
    one = measured(capsys, *run, "--speed-up", "phases:1*amdahl:0.1")
    several = measured(capsys, *run, "--speed-up", "phases:0.5*amdahl:0,0.5*amdahl:0.4")
    slow = measured(capsys, *run, "--speed-up", "amdahl:0.1", "--change-cost", "60")
    assert slow["change_cost"] == "60"
    assert plain["runs"][0]["makespan_s"] == one["runs"][0]["makespan_s"]
    assert plain["runs"][0]["resizes"] == one["runs"][0]["resizes"]
    assert several["runs"][0]["response_s"] != plain["runs"][0]["response_s"]
    assert slow["runs"][0]["response_s"] > plain["runs"][0]["response_s"]


def test_an_interval_is_that_of_the_mean():
    values = np.arange(20.0)
    low, high = interval(values)
    spread = values.std() / np.sqrt(len(values))
    assert low == pytest.approx(values.mean() - 1.96 * spread, abs=0.5)
    assert high == pytest.approx(values.mean() + 1.96 * spread, abs=0.5)
    assert interval(np.array([3.0])) == [3.0, 3.0]


def test_a_table_has_a_line_for_each_share_and_policy():
    measures = dict.fromkeys(
        ("makespan_s", "utilization", "wait_s", "response_s", "throughput_per_h"), 0.5
    )
    runs = [
        {"scenario": "esp", "policy": policy, "share": share, **measures}
        for policy in ("a", "b")
        for share in (50.0, 0.0)
    ]
    head, _, *rows = lines(summary(runs))
    assert head.startswith("| malleable, % | policy |")
    assert [row.split("|")[1:3] for row in rows] == [
        [" 0 ", " a "], [" 0 ", " b "], [" 50 ", " a "], [" 50 ", " b "]
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--shares", "50,x"), "shares: '50,x': give percentages"),
        (("--shares", "101"), "give percentages from 0 to 100"),
        (("--policies", "nobody"), "'nobody' is neither a preset"),
        (("--policies", "easy,easy"), "easy is listed twice"),
        (("--scenario", "/nowhere.swf"), "cannot be read"),
        (("--mtct-error", "-1"), "mtct-error"),
        (("--mtct-error", "nan"), "mtct-error"),
        (("--speed-up", "phases:0.5*amdahl:0"), "add up to 0.5, not to 1"),
        (("--change-cost", "soon"), "give join, or seconds"),
        (("--plot", "x.gif"), "must end in .svg, .png or .pdf"),
    ],
)
def test_wrong_input_is_refused_at_once(arguments, why, capsys):
    assert bench(*arguments) == 1
    assert why in capsys.readouterr().err
