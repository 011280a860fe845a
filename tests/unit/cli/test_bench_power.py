# SPDX-License-Identifier: Apache-2.0
import json
from importlib.resources import files

import pytest
from policy_bench import power as bench_power
from policy_bench.power import entries

from bridge.errors import ConfigError
from bridge.lab.sim.corridor.sight import Sight
from bridge.model.policy import StageSpec
from bridge.registry import PRESETS

EXCERPT = str(files("bridge.lab.sim").joinpath("data/KTH-SP2-1996-excerpt.swf.gz"))


def test_the_papers_workload_over_seeds(schedbridge):
    run = (
        "bench.py",
        "power",
        "--policies",
        "static,malleable-performance@nothing",
        "--seeds",
        2,
    )
    code, out, err = schedbridge(*run, "--first-seed", 1, "--json")
    assert code == 0, err
    found = json.loads(out)
    runs = found["runs"]
    assert [(run["policy"], run["seed"]) for run in runs] == [
        ("static", 1), ("malleable-performance@nothing", 1),
        ("static", 2), ("malleable-performance@nothing", 2),
    ]  # fmt: skip
    for each in runs:
        assert (each["jobs"], each["unfinished"], each["failures"]) == (20, 0, 0)
        assert each["violations"] == each["upper_violations"] + each["lower_violations"]
        assert each["avoidable"] <= each["violations"]
        assert each["seconds"] <= each["upper_s"] + each["lower_s"]
    assert runs[0]["resizes"] == 0 < runs[1]["resizes"]
    static = found["summary"][0]
    mean = static["makespan_s"]["mean"]
    assert mean == (runs[0]["makespan_s"] + runs[2]["makespan_s"]) / 2
    low, high = static["makespan_s"]["interval"]
    assert low <= mean <= high


def test_static_backfill_is_the_golden_run(schedbridge):
    """Its figures are those of tests/golden/power-paper.txt."""
    run = (
        "bench.py",
        "power",
        "--policies",
        "static",
        "--seeds",
        1,
        "--first-seed",
        1,
        "--json",
    )
    (found,) = json.loads(schedbridge(*run)[1])["runs"]
    assert (found["violations"], found["seconds"], found["watt_seconds"]) == (4, 737, 512418)
    assert (found["avoidable"], found["avoidable_s"], found["peak_w"]) == (4, 540, 3008)


def test_a_trace_needs_a_corridor(schedbridge, tmp_path):
    run = ("bench.py", "power", "--scenario", EXCERPT, "--jobs", 20, "--policies", "static")
    code, out, err = schedbridge(*run)
    assert (code, out) == (1, "")
    assert "--corridor FILE and --node-power" in err
    path = tmp_path / "corridor.yaml"
    path.write_text("[{at: 0, upper: 1W}]")
    code, out, err = schedbridge(
        *run, "--corridor", path, "--node-power", "1:2", "--seeds", 1, "--json"
    )
    assert code == 0, err
    (found,) = json.loads(out)["runs"]
    assert found["avoidable"] == 0  # idle nodes alone draw more
    assert found["upper_s"] == found["makespan_s"]


def test_the_table(schedbridge):
    code, out, _ = schedbridge("bench.py", "power", "--policies", "static", "--seeds", 1)
    assert code == 0
    assert out.splitlines()[2].startswith("| static | ")


def test_policies_and_what_they_see(monkeypatch):
    kinds = {each.name: each.sight for each in entries("static,hold,easy,fpsma@present")}
    assert kinds == {
        "static": Sight.NOTHING, "hold": Sight.PRESENT, "easy": Sight.ANNOUNCED,
        "fpsma@present": Sight.PRESENT,
    }  # fmt: skip
    names = [each.name for each in entries(None)]
    assert names[:2] == ["static", "hold"]
    assert names == bench_power.known()


def test_scenarios_follow_when_their_preset_is_there(monkeypatch):
    without = {name: spec for name, spec in PRESETS.items() if name != "malleable-power"}
    monkeypatch.setattr(bench_power, "PRESETS", without)
    with pytest.raises(ConfigError, match="needs the preset malleable-power"):
        entries("scenario-2")
    if "malleable-power" in PRESETS:
        monkeypatch.undo()
        two, three = entries("scenario-2,scenario-3")
        assert two.spec.reshape == StageSpec("power-corridor", {"waiting": 0})
        assert three.spec.reshape.parameters == PRESETS["malleable-power"].reshape.parameters


@pytest.mark.parametrize("text", ["magic", "easy@now", "static,static", "", "@present"])
def test_unknown_policies_are_refused(text):
    with pytest.raises(ConfigError):
        entries(text)
