# SPDX-License-Identifier: Apache-2.0
import json
import re
from importlib.resources import files

import numpy as np
import pytest

EXCERPT = str(files("bridge.lab.sim").joinpath("data/KTH-SP2-1996-excerpt.swf.gz"))


def results(schedbridge, *arguments):
    code, out, err = schedbridge("lab", "simulate", *arguments, "--json")
    assert (code, err) == (0, "")
    return json.loads(out)["results"]


def test_without_power_nothing_is_said_of_it(schedbridge):
    found = results(schedbridge, EXCERPT, "--jobs", 50)[0]
    assert "power" not in found


def test_energy_of_a_trace_without_a_corridor(schedbridge):
    shown = results(schedbridge, EXCERPT, "--jobs", 50, "--node-power", "100:100")[0]
    power = shown["power"]
    assert power["energy_j"] == 100 * 100 * shown["makespan_s"]
    assert power["energy_kwh"] == power["energy_j"] / 3.6e6
    assert power["energy_delay_js"] == power["energy_j"] * shown["makespan_s"]
    assert (power["mean_w"], power["peak_w"]) == (10_000, 10_000)
    assert power["upper"] is None
    same = results(schedbridge, EXCERPT, "--jobs", 50, "--engine", "cycle")[0]
    assert same["wait_s_mean"] == shown["wait_s_mean"]


def test_a_corridor_that_no_run_can_keep(schedbridge, tmp_path):
    path = tmp_path / "corridor.json"
    path.write_text('[{"at": 0, "lower": "20kW", "upper": "30kW"}]')
    options = ("--jobs", 50, "--node-power", "100:100", "--corridor", path)
    shown = results(schedbridge, EXCERPT, *options)[0]
    lower = shown["power"]["lower"]
    whole_s = shown["makespan_s"]
    assert lower["all"] == {"number": 1, "seconds": whole_s, "watt_seconds": 10_000 * whole_s}
    assert lower["late"]["seconds"] == whole_s - 10
    assert lower["avoidable"]["number"] == 0
    assert shown["power"]["upper"]["all"]["number"] == 0


def test_the_papers_workload(schedbridge):
    run = ("power-paper", "--policy", "conservative", "--seed", 3)
    shown = results(schedbridge, *run)[0]
    assert shown["jobs"] == 20
    assert shown["power"]["lower"]["avoidable"] is not None
    assert results(schedbridge, *run)[0]["power"] == shown["power"]
    exact = results(schedbridge, *run, "--power-error", 0)[0]
    assert exact["power"]["energy_j"] != shown["power"]["energy_j"]


def test_sensors_are_events(schedbridge):
    run = ("power-paper", "--policy", "easy")
    plain = results(schedbridge, *run)[0]
    sensed = results(schedbridge, *run, "--power-sensors")[0]
    assert sensed["decisions"] > plain["decisions"]


def test_the_report_shows_corridor_and_power(schedbridge, tmp_path):
    code, out, _ = schedbridge("lab", "simulate", "power-paper", "--out", tmp_path)
    assert code == 0
    assert "above the corridor, avoidable: in all" in out
    assert (tmp_path / "power.png").stat().st_size > 10_000
    page = (tmp_path / "report.html").read_text()
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])
    assert data["corridor"] == [[0, 1700, 2500], [300, 1000, 1700], [600, 2500, 3500]]
    (run,) = data["runs"]
    found = json.loads((tmp_path / "results.json").read_text())["results"][0]
    lasts_s = [
        to_s - from_s for from_s, to_s in zip(data["edges"], data["edges"][1:], strict=False)
    ]
    shown_j = sum(power_w * s for power_w, s in zip(run["power"], lasts_s, strict=True))
    assert shown_j == pytest.approx(found["power"]["energy_j"], rel=1e-3)


def test_what_malleable_jobs_hold_is_never_more_than_the_machine(schedbridge, tmp_path):
    corridor = tmp_path / "corridor.yaml"
    corridor.write_text("[{at: 0, lower: 0, upper: 3500W}]")
    policies = ("--policy", "power-plan", "--policy", "conservative")
    options = (*policies, "--corridor", corridor, "--out", tmp_path)
    code, out, _ = schedbridge("lab", "simulate", "power-paper", *options)
    assert code == 0
    for words in ("energy-delay product, kWh h", "above the corridor, behind the grace, kW s"):
        assert words in out
    page = (tmp_path / "report.html").read_text()
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])
    lasts_s = np.diff(data["edges"])
    ends_s = []
    for run, found in zip(
        data["runs"], json.loads((tmp_path / "results.json").read_text())["results"], strict=True
    ):
        assert max(run["busy"]) <= 1
        used = float(np.dot(run["busy"], lasts_s)) / found["makespan_s"]
        assert used == pytest.approx(found["utilization"], rel=1e-2)
        shown = [power_w for power_w in run["power"] if power_w is not None]
        assert min(shown) > 0
        assert run["power"][len(shown) :] == [None] * (len(run["power"]) - len(shown))
        ends_s.append(len(shown))
    assert len(set(ends_s)) == 2  # the shorter run ends before the plot does
