# SPDX-License-Identifier: Apache-2.0
import json
from importlib.resources import files

import pytest

from bridge.lab.sim.workloads.swf import Field, read_swf

EXCERPT = str(files("bridge.lab.sim").joinpath("data/KTH-SP2-1996-excerpt.swf.gz"))
JOB = "1 0 5 60 4 -1 -1 4 100 -1 1 7 1 -1 1 -1 -1 -1\n"


def a_file(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text)
    return path


def test_json_is_one_object_with_the_known_answers(schedbridge):
    code, out, err = schedbridge(
        "lab", "simulate", EXCERPT, "--policy", "easy", "--policy", "conservative", "--json"
    )
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert (found["jobs"], found["processors"], found["left_out"]) == (1500, 100, {})
    easy, conservative = found["results"]
    assert (easy["policy"], conservative["policy"]) == ("easy", "conservative")
    assert easy["wait_s_mean"] == pytest.approx(15669, rel=1e-3)
    assert easy["engine"] == "fast"


def test_both_engines_agree(schedbridge):
    found = [
        json.loads(
            schedbridge("lab", "simulate", EXCERPT, "--jobs", 200, "--engine", e, "--json")[1]
        )
        for e in ("cycle", "fast")
    ]
    cycle, fast = (each["results"][0] for each in found)
    for key in ("jobs", "wait_s_mean", "bounded_slowdown_mean", "utilization", "makespan_s"):
        assert cycle[key] == fast[key], key


def test_the_table(schedbridge):
    code, out, _ = schedbridge("lab", "simulate", EXCERPT, "--jobs", 50, "--procs", 128)
    assert code == 0
    assert "50 jobs on pool of 128; left out: none" in out
    assert "easy" in out


def test_out_writes_everything(schedbridge, tmp_path):
    code, _, _ = schedbridge(
        "lab", "simulate", EXCERPT, "--jobs", 60, "--out", tmp_path / "a" / "b"
    )
    assert code == 0
    assert {path.name for path in (tmp_path / "a" / "b").iterdir()} == {
        "results.json",
        "report.html",
        "jobs-easy.csv",
        "result-easy.swf",
        "utilization.png",
        "queue.png",
        "waits.png",
        "gantt-easy.png",
    }
    result = read_swf(tmp_path / "a" / "b" / "result-easy.swf")
    found = json.loads((tmp_path / "a" / "b" / "results.json").read_text())["results"][0]
    assert result.columns[:, Field.WAIT_S].mean() == found["wait_s_mean"]
    assert result.directive("Acknowledge") == "Lars Malinowsky"


def test_a_policy_from_a_file_and_one_name_twice(schedbridge, tmp_path):
    policy = a_file(tmp_path, "p.yaml", "preset: easy\nplan: {name: easy, depth: 2}\nname: two\n")
    arguments = [arg for value in (policy, policy) for arg in ("--policy", value)]
    found = json.loads(
        schedbridge("lab", "simulate", EXCERPT, "--jobs", 50, *arguments, "--json")[1]
    )
    assert [run["policy"] for run in found["results"]] == ["two", "two (2)"]
    assert found["policies"][0]["plan"] == {"name": "easy", "depth": 2}


def test_faults_come_from_the_seed(schedbridge):
    def run(seed):
        arguments = ("--jobs", 100, "--faults", 30, "--seed", seed, "--json")
        return json.loads(schedbridge("lab", "simulate", EXCERPT, *arguments)[1])["results"][0]

    keys = ("wait_s_mean", "cancelled", "restarts")
    first, again, other = ({key: run(seed)[key] for key in keys} for seed in (3, 3, 4))
    assert first == again != other
    assert first["cancelled"] > 0


def test_lenient_says_what_it_dropped(schedbridge, tmp_path):
    trace = a_file(tmp_path, "t.swf", f"; MaxProcs: 8\n{JOB}1 2 3\n{JOB}")
    code, out, err = schedbridge("lab", "simulate", trace)
    assert (code, out) == (1, "")
    assert "t.swf:3: 3 fields instead of 18" in err
    code, out, _ = schedbridge("lab", "simulate", trace, "--lenient")
    assert code == 0
    assert "dropped 1 malformed lines; the first: " in out


def test_a_described_system(schedbridge, tmp_path):
    system = a_file(tmp_path, "s.yaml", 'name: tiny\nnodes: [{names: "n[1-4]", cpus: 32}]\n')
    code, out, _ = schedbridge(
        "lab", "simulate", EXCERPT, "--jobs", 50, "--system", system, "--json"
    )
    assert code == 0
    found = json.loads(out)
    assert (found["system"], found["processors"]) == ("tiny", 128)
    assert found["results"][0]["engine"] == "cycle"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["none.swf"], "none.swf: cannot be read: No such file or directory"),
        ([EXCERPT, "--policy", "esay"], "'esay' is neither a preset"),
        ([EXCERPT, "--policy", "BROKEN"], "is not YAML"),
        ([EXCERPT, "--policy", "UNKNOWN"], "policy.colour: unknown key"),
        ([EXCERPT, "--procs", "0"], "procs: a machine has at least 1 processor"),
        ([EXCERPT, "--procs", "9", "--system", "SYSTEM"], "leave out one"),
        ([EXCERPT, "--system", "SYSTEM", "--engine", "fast"], "needs 'cycle'"),
        ([EXCERPT, "--faults", "3", "--engine", "fast"], "needs 'cycle': faults happen in the"),
        ([EXCERPT, "--policy", "openccs", "--engine", "fast"], "plan openccs"),
        (["NO_HEADER"], "give --procs"),
        ([EXCERPT, "--predict", "stars"], "policy.predict: no algorithm 'stars'; there are time"),
        ([EXCERPT, "--decision-time", "soon"], "decision-time: must be free, counted or 0 to"),
        ([EXCERPT, "--decision-time", "-1"], "decision-time: must be free, counted or 0 to"),
        ([EXCERPT, "--decision-time", "nan"], "decision-time: must be free, counted or 0 to"),
        ([EXCERPT, "--decision-time", "9", "--engine", "fast"], "with free decisions"),
        ([EXCERPT, "--jobs", "9", "--out", "/proc/none"], "cannot write there"),
    ],
)
def test_mistakes_get_one_line(schedbridge, tmp_path, monkeypatch, arguments, says):
    monkeypatch.chdir(tmp_path)
    a_file(tmp_path, "BROKEN", "plan: [")
    a_file(tmp_path, "UNKNOWN", "colour: red")
    a_file(tmp_path, "SYSTEM", "nodes: [{names: a, cpus: 200}]")
    a_file(tmp_path, "NO_HEADER", JOB)
    code, _, err = schedbridge("lab", "simulate", *arguments)
    assert code == 1
    assert says in err
    assert err.count("\n") == 1


def test_announced_starts_are_judged(schedbridge, tmp_path):
    arguments = ("--jobs", 300, "--policy", "easy", "--policy", "conservative")
    code, out, _ = schedbridge(
        "lab", "simulate", EXCERPT, *arguments, "--engine", "cycle", "--out", tmp_path
    )
    assert code == 0
    assert "starts that had been announced" in out
    assert out.count("not measured") == 0
    assert "churn: later, per job" in out
    page = (tmp_path / "report.html").read_text()
    assert "never later than last announced" in page
    easy, conservative = json.loads((tmp_path / "results.json").read_text())["results"]
    for found in (easy["starts"], conservative["starts"]):
        assert found["promised"] + found["unpromised"] == 300
    assert easy["starts"]["promised"] < conservative["starts"]["promised"]
    assert easy["starts"]["last"]["kept"] == 1


def test_each_policy_with_each_predictor(schedbridge):
    predictors = [w for name in ("time-limit", "last-two", "oracle") for w in ("--predict", name)]
    code, out, err = schedbridge("lab", "simulate", EXCERPT, "--jobs", 300, *predictors, "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    limits, last_two, oracle = found["results"]
    assert [each["policy"] for each in found["results"]] == ["easy", "easy+last-two", "easy+oracle"]
    assert [each["predict"] for each in found["policies"]] == ["time-limit", "last-two", "oracle"]
    assert limits["run_times"]["under"] == 0
    assert 0 < last_two["run_times"]["under"] < 1
    assert (oracle["run_times"]["accuracy"], oracle["run_times"]["off_s"]["max"]) == (1, 0)


def test_decisions_that_take_time_are_waited_for(schedbridge):
    free, slow = (
        json.loads(schedbridge("lab", "simulate", EXCERPT, "--jobs", 60, "--json", *more)[1])
        for more in ((), ("--decision-time", 250))
    )
    assert (free["decision_time"], slow["decision_time"]) == ("free", "250")
    waits = [each["results"][0]["wait_s_mean"] for each in (free, slow)]
    assert waits[1] - waits[0] == pytest.approx(0.25)


def test_esp_with_malleable_jobs(schedbridge):
    code, out, err = schedbridge(
        "lab",
        "simulate",
        "esp:100",
        "--jobs",
        60,
        "--policy",
        "easy",
        "--policy",
        "fpsma",
        "--json",
    )
    assert (code, err) == (0, "")
    found = json.loads(out)
    easy, fpsma = found["results"]
    assert (found["trace"], found["processors"]) == ("ESP, 100 % malleable, seed 0", 32)
    assert easy["utilization"] < fpsma["utilization"] <= 1


@pytest.mark.parametrize("share", ["abc", "101", "-1", ""])
def test_an_impossible_share_of_esp_is_refused(schedbridge, share):
    code, out, err = schedbridge("lab", "simulate", f"esp:{share}")
    assert (code, out) == (1, "")
    assert "esp" in err
    assert "trace" in err


def esp_makespan_s(schedbridge, model):
    code, out, err = schedbridge(
        "lab",
        "simulate",
        "esp:100",
        "--policy",
        "malleable",
        "--jobs",
        30,
        "--speed-up",
        model,
        "--json",
    )
    assert (code, err) == (0, "")
    return json.loads(out)["results"][0]["makespan_s"]


def test_esp_with_other_speed_ups(schedbridge):
    perfect = esp_makespan_s(schedbridge, "downey:1000:0")
    assert perfect < esp_makespan_s(schedbridge, "amdahl:1")
    assert perfect == esp_makespan_s(schedbridge, "table:1=1,64=64")
    assert perfect == esp_makespan_s(schedbridge, "phases:1*downey:1000:0")
    assert perfect < esp_makespan_s(schedbridge, "phases:0.5*downey:1000:0,0.5*amdahl:1")


def test_esp_with_other_costs_of_changes(schedbridge):
    run = ("lab", "simulate", "esp:100", "--policy", "malleable", "--jobs", 30, "--json")
    ends = {}
    for cost in ("join", "2", "60", "60:0"):
        code, out, err = schedbridge(*run, "--change-cost", cost)
        assert (code, err) == (0, "")
        ends[cost] = json.loads(out)["results"][0]["turnaround_s_mean"]
    assert len({*ends.values()}) == 4
    assert ends["60"] > ends["60:0"]
    assert json.loads(schedbridge(*run)[1])["results"][0]["turnaround_s_mean"] == ends["join"]


@pytest.mark.parametrize("cost", ["soon", "-1", "nan", "2:3", "2:"])
def test_impossible_costs_of_changes_are_refused(schedbridge, cost):
    code, out, err = schedbridge("lab", "simulate", "esp:100", "--change-cost", cost)
    assert (code, out) == (1, "")
    assert "change-cost" in err


@pytest.mark.parametrize(
    "model",
    ["linear", "amdahl:2", "table:", "phases:", "phases:0.5*amdahl:0", "phases:nan*amdahl:0"],
)
def test_impossible_speed_ups_are_refused(schedbridge, model):
    code, out, err = schedbridge("lab", "simulate", "esp:100", "--speed-up", model)
    assert (code, out) == (1, "")
    assert "speed-up" in err


def test_the_jobs_of_a_trace_have_no_speed_up(schedbridge):
    code, out, err = schedbridge("lab", "simulate", EXCERPT, "--speed-up", "amdahl:0.1")
    assert (code, out) == (1, "")
    assert "bench.py elastic" in err
    code, out, err = schedbridge("lab", "simulate", EXCERPT, "--change-cost", "2")
    assert (code, out) == (1, "")
    assert "bench.py elastic" in err


def test_esp_runs_on_a_pool_only(schedbridge):
    system = files("bridge.lab.sim").joinpath("data/eurora.yaml")
    code, out, err = schedbridge("lab", "simulate", "esp:50", "--system", system)
    assert (code, out) == (1, "")
    assert "give --procs instead" in err


def test_what_is_finished_is_kept_when_a_comparison_is_stopped(schedbridge, tmp_path, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("bridge.cli.simulation.replays.simulate", stop)
    arguments = [
        "lab",
        "simulate",
        EXCERPT,
        "--jobs",
        60,
        "--policy",
        "easy",
        "--policy",
        "openccs",
    ]
    code, out, err = schedbridge(*arguments, "--out", tmp_path / "kept")
    assert code == 130
    assert "1 of 2: easy: wait" in out
    assert "mean wait" in out
    assert "stopped: 1 of 2 policies are done" in err
    kept = json.loads((tmp_path / "kept" / "results.json").read_text())
    assert [run["policy"] for run in kept["results"]] == ["easy"]
    assert not kept["complete"]
    assert (tmp_path / "kept" / "jobs-easy.csv").exists()
    code, out, _ = schedbridge(*arguments, "--json")
    assert code == 130
    assert not json.loads(out)["complete"]


def test_percentiles_and_what_a_trace_has_twice_are_told(schedbridge, tmp_path):
    never_ran = JOB.replace(" 60 ", " 0 ")
    fraction = JOB.replace("1 0 5 60 ", "1 0.75 5 59.5 ")
    late = JOB.replace("1 0 ", "2 900 ") + never_ran.replace("1 0 ", "3 901 ")
    text = f"; MaxProcs: -1\n; MaxNodes: 8\n{JOB}{never_ran}{fraction}{late}"
    trace = a_file(tmp_path, "t.swf", text)
    found = json.loads(schedbridge("lab", "simulate", trace, "--jobs", 2, "--json")[1])
    assert (found["processors"], found["jobs"]) == (8, 2)
    assert found["left_out"] == {"never ran (run time or processors <= 0)": 1}
    assert found["repeated_job_numbers"] == 1
    assert found["results"][0]["makespan_s"] == 60  # submitted within the first second
    assert found["results"][0]["wait_s_p95"] == 0
    assert found["results"][0]["by_size"][0]["bounded_slowdown_p99"] == 1
    found = json.loads(schedbridge("lab", "simulate", trace, "--json")[1])
    assert found["left_out"] == {"never ran (run time or processors <= 0)": 2}
    assert "1 jobs have the number of an earlier one" in schedbridge("lab", "simulate", trace)[1]


def results_of(schedbridge, *arguments):
    return json.loads(schedbridge("lab", "simulate", *arguments, "--json")[1])["results"]


def test_the_engine_is_named_with_the_reason(schedbridge):
    requested = [EXCERPT, "--jobs", 40, "--policy", "search", "--policy", "openccs"]
    fast, cycle = results_of(schedbridge, *requested)
    assert (fast["engine"], cycle["engine"]) == ("fast", "cycle")
    assert "counts" in fast["engine_because"]
    assert "plan openccs" in cycle["engine_because"]
    _, out, _ = schedbridge("lab", "simulate", *requested)
    assert "engine of openccs: cycle, plan openccs" in out
    again = results_of(schedbridge, *requested[:3], "--policy", "search", "--engine", "cycle")[0]
    assert again["engine_because"] == "as asked by --engine"
    same = ("wait_s_mean", "wait_s_max", "decisions", "starts", "run_times")
    assert [again[key] for key in same] == [fast[key] for key in same]


@pytest.mark.parametrize("engine", ["fast", "cycle"])
def test_a_hopeless_backlog_ends_with_words_and_code_3(schedbridge, monkeypatch, engine):
    monkeypatch.setattr("bridge.lab.sim.runs.backlog.MAX_WAITING", 100)
    monkeypatch.setattr("bridge.lab.sim.runs.backlog.MAX_S", 8 * 86_400)
    requested = [EXCERPT, "--procs", 16, "--policy", "responsive", "--engine", engine]
    code, out, err = schedbridge("lab", "simulate", *requested, "--json")
    assert code == 3
    assert "more work arrives than the machine can do" in err
    assert "stopped there: the results are those of the jobs that ended" in err
    found = json.loads(out)["results"][0]
    assert found["unfinished"] > 0
    assert found["growing_backlog"]["load"] > 1
