# SPDX-License-Identifier: Apache-2.0
"""The experiment of ASA_X on a cluster: its workload, and what it reads from logs."""

import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
sys.path.append(str(ROOT / "benchmarks"))

from coscheduling_bench import simulated_table, table  # noqa: E402
from coscheduling_bench.curve_figure import plot as plot_curve  # noqa: E402
from coscheduling_bench.paper_figures import PAPER_RUNTIMES_H, plot  # noqa: E402
from coscheduling_bench.run import read_stays  # noqa: E402
from coscheduling_bench.workload import STAGES, workflows  # noqa: E402

LOG = """
[2026-11-24T16:00:00.000] bridge: start JobId=1 NodeList=n[1-2] #CPUs=2 Partition=share
[2026-11-24T16:00:05.000] bridge: start JobId=2 NodeList=n2 #CPUs=1 Partition=share
[2026-11-24T16:00:06.000] bridge: start JobId=9 NodeList=n1 #CPUs=1 Partition=main
[2026-11-24T16:00:09.000] bridge: requeue JobId=2, the guest of JobId=1
[2026-11-24T16:00:10.000] bridge: start JobId=3 NodeList=n1 #CPUs=1 Partition=share
[2026-11-24T16:00:20.000] _job_complete: JobId=1 done
[2026-11-24T16:00:30.000] bridge: start JobId=2 NodeList=n2 #CPUs=1 Partition=share
[2026-11-24T16:00:40.000] _job_complete: JobId=3 done
[2026-11-24T16:00:50.000] _job_complete: JobId=2 done
"""


def test_guests_are_those_that_start_beside_another_job():
    found = read_stays(LOG, dict.fromkeys("123"))
    said = [(s.job_id, s.hosts, s.requeued, s.end_s - s.start_s) for s in found.stays]
    assert said == [
        ("1", (), False, 20), ("2", ("1",), True, 4), ("3", ("1",), False, 30),
        ("2", (), False, 20),
    ]  # fmt: skip
    assert found.hosts == {"1"}


def test_a_set_is_the_papers():
    found = workflows(seed=3, count=15, max_nodes=2)
    assert Counter(flow.kind for flow in found) == {
        "montage": 4, "blast": 4, "readings": 4, "synthetic": 3,
    }  # fmt: skip
    wide = sorted(flow.kind for flow in found if flow.nodes == 2)
    assert wide == ["montage", "readings", "synthetic"]
    assert {flow.number for flow in found} == set(range(15))
    assert {flow.nodes for flow in workflows(3, 15, max_nodes=1)} == {1}


def test_stages_are_those_of_the_workflows():
    sys.path.append(str(ROOT / "examples" / "workloads"))
    import workflow

    known = {name: tuple(s.name for s in stages) for name, stages in workflow.WORKFLOWS.items()}
    assert known == STAGES


def a_run(policy, **walls):
    jobs = [
        {"kind": "blast", "stage": stage, "nodes": 1, "wall_s": wall_s, "right": True,
         "host": stage == "scan", "guest": False}
        for stage, wall_s in walls.items()
    ]  # fmt: skip
    return {"policy": policy, "jobs": jobs}


def test_slowdowns_are_beyond_the_mean_alone_of_long_stages():
    runs = [a_run("easy", scan=10, rank=1), a_run("easy", scan=30), a_run("asax", scan=25, rank=9)]
    alone = table.alone_s(runs)
    assert table.slowdowns(runs[2], alone, "host") == [pytest.approx(0.25)]
    assert table.slowdowns(runs[2], alone, "guest") == []
    runs[2]["jobs"][0]["right"] = False
    assert table.slowdowns(runs[2], alone, "") == []


def test_the_papers_figures_are_drawn_beside_ours(tmp_path):
    value = {"mean": 1.0, "interval": [0.9, 1.1]}
    summary = [
        {
            "policy": policy, "cores": cores, "makespan_h": value,
            "runtimes_h": dict.fromkeys(("montage", "blast", "readings", "synthetic"), value),
        }
        for cores in (64, 128)
        for policy in (*PAPER_RUNTIMES_H, "pairs")
    ]  # fmt: skip
    plot({"summary": summary}, tmp_path / "plot.svg")
    drawn = (tmp_path / "plot.svg").read_text()
    for words in ("easy", "static-half", "asax", "pairs", "the paper's", "64 cores", "128 cores"):
        assert f">{words}<" in drawn


def test_a_hosts_lost_share_is_its_wall_time_per_cpu_time():
    def a_job(wall_s, cpu_s, *, host=True):
        return {
            "kind": "blast", "stage": "scan", "nodes": 1, "wall_s": wall_s, "cpu_s": cpu_s,
            "host": host, "guest": False, "right": True,
        }  # fmt: skip

    runs = [
        {"policy": "easy", "jobs": [a_job(10.0, 8.0, host=False)]},
        {"policy": "asax", "jobs": [a_job(15.0, 8.0)]},
        {"policy": "pairs", "jobs": [a_job(15.0, 12.0)]},
    ]
    rows = table.lines({"runs": runs}, "cpu")[2:]
    assert rows[1] == "| asax | 1 | +50 % | +50 % | +0 % | +0 % | +50 % | +50 % |"
    assert rows[2] == "| pairs | 1 | +50 % | +50 % | +50 % | +50 % | +0 % | +0 % |"


def test_the_learning_curve_is_drawn_with_intervals(tmp_path):
    sets = [
        {key: {"mean": mean, "interval": [mean - 0.1, mean + 0.1]}
         for key in ("response_h", "slower_percent")}
        for mean in (2.0, 1.5, 1.2)
    ]  # fmt: skip
    summary = [{"policy": each, "cores": 64, "repeats": sets} for each in ("easy", "pairs")]
    plot_curve({"summary": summary}, tmp_path / "curve.svg")
    drawn = (tmp_path / "curve.svg").read_text()
    for words in ("easy", "pairs", "64 cores", "set", "mean response, h"):
        assert f">{words}<" in drawn
    shown = simulated_table.lines({"summary": summary}, "curve")
    assert shown[-1].startswith("| 64 | pairs | 2.00 [1.90, 2.10] | 1.50 [1.40, 1.60] |")


def test_harm_is_shown_by_pair_of_workflows():
    run = {"cores": 64, "policy": "asax", "hosts": 2, "requeued": 1}
    runs = [
        {**run, "pairs": [["blast", "montage", 10.0], ["blast", "montage", 20.0]]},
        {**run, "pairs": [["blast", "blast", 5.0], ["blast", "montage", 30.0]]},
        {**run, "policy": "easy", "hosts": 0, "pairs": []},
    ]
    measures = ("host_mean_percent", "host_p95_percent", "above_bound_percent", "above_s_mean",
                "above_s_p95", "hosts_overrun_percent")  # fmt: skip
    entry = {key: {"mean": 3.0, "interval": [2.0, 4.0]} for key in measures}
    entry |= {"cores": 64, "workflows": {"montage": {}, "blast": {}}}
    summary = [{**entry, "policy": policy} for policy in ("easy", "asax")]
    found = {"runs": runs, "summary": summary}
    assert simulated_table.lines(found, "pairs")[2:] == [
        "| blast | montage | 20.0 % (29.0 %) of 3 |",
        "| blast | blast | 5.0 % (5.0 %) of 1 |",
    ]
    (row,) = simulated_table.lines(found, "harm")[2:]
    assert row.startswith("| 64 | asax | 2.0 | 3.0 [2.0, 4.0] |")
    assert row.endswith("| 3 [2, 4] | 3.0 [2.0, 4.0] | 1.0 |")


def test_gains_are_relative_to_easy_with_the_same_seed():
    def a_run(policy, seed, wait_s):
        return {
            "log": "KTH", "consent_percent": 10, "policy": policy, "seed": seed, "wait_s": wait_s,
            "response_s": 50.0, "bounded_slowdown": 2.0, "cpu_percent": 40.0,
        }  # fmt: skip

    runs = [a_run("easy", 0, 100.0), a_run("easy", 1, 200.0),
            a_run("pairs", 0, 90.0), a_run("pairs", 1, 160.0)]  # fmt: skip
    (row,) = simulated_table.lines({"runs": runs}, "gains")[2:]
    # -10 and -20 %: t of one degree of freedom is 12.71
    assert row == "| KTH | 10 | pairs | 2 | -15.0 [-78.5, +48.5] | +0.0 | +0.0 | +0.0 |"
