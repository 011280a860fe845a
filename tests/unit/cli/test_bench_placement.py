# SPDX-License-Identifier: Apache-2.0
"""`benchmarks/bench.py placement`: known costs and optima, legal sets, clear refusals."""

import json
from pathlib import Path

import pytest
from bench import run as run_bench
from policy_bench.placement import SAMPLE


def bench(*arguments: str) -> int:
    with pytest.raises(SystemExit) as stopped:
        run_bench(["placement", *arguments])
    code = stopped.value.code
    assert isinstance(code, int)
    return code


def test_the_sample_costs_what_others_found(capsys: pytest.CaptureFixture[str]) -> None:
    """Sequential costs and static optima as recorded; ours is no dearer, and its bound is none."""
    names = "sequential,contiguous-exact,compact@1,annealing,annealing-published"
    assert bench("--metric", "code", "--placers", names, "--bound", "--json") == 0
    result = json.loads(capsys.readouterr().out)
    known = {row["id"]: row["cost"] for row in map(json.loads, SAMPLE.read_text().splitlines())}
    assert len(result["results"]) == len(known) == 42
    for row in result["results"]:
        assert row["sequential"]["cost"] == known[row["id"]]["sequential"]
        assert row["contiguous-exact"]["cost"] == known[row["id"]]["scas_optimum"]
        assert row["bound"] <= row["compact@1"]["cost"] <= row["contiguous-exact"]["cost"]
        assert row["annealing"]["cost"] <= row["sequential"]["cost"]
    total = result["figures"]
    assert total["annealing"]["cost"] < total["annealing-published"]["cost"]


def test_any_topology(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    topology = tmp_path / "topology.conf"
    topology.write_text(
        "SwitchName=a Nodes=x[0-2]\nSwitchName=b Nodes=y[0-1]\nSwitchName=t Switches=a,b"
    )
    windows = tmp_path / "windows.jsonl"
    windows.write_text('{"id": "w", "idle_nodes": [0, 1, 2, 3, 4], "job_sizes": [2, 3]}\n\n')
    requested = ("--instances", str(windows), "--topology", str(topology))
    assert bench(*requested, "--placers", "sequential,compact", "--json") == 0
    (row,) = json.loads(capsys.readouterr().out)["results"]
    assert row["compact"]["cost"] == 1000 * 2 * 2 / 2 + 1000 * 6 * 2 / 3  # a pair, a triple
    assert row["compact"]["cost"] < row["sequential"]["cost"]
    windows.write_text('{"id": "w", "idle_nodes": [5], "job_sizes": [1]}')
    assert bench(*requested) == 1
    assert "node 5 of w is on no switch" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("", "windows: has no window"),
        ("{", "windows:1: no JSON"),
        ("[]", "windows:1: must be an object"),
        ('{"job_sizes": [1]}', "windows:1: idle_nodes: a list of whole numbers is missing"),
        ('{"idle_nodes": [0, 1.5], "job_sizes": [1]}', "idle_nodes: 1.5 is not a whole number"),
        ('{"idle_nodes": [-1], "job_sizes": [1]}', "idle_nodes: -1 is not from 0"),
        ('{"idle_nodes": [3, 3], "job_sizes": [1]}', "a node is listed twice"),
        ('{"idle_nodes": [3], "job_sizes": [0]}', "job_sizes: 0 is not from 1"),
        ('{"id": [1], "idle_nodes": [3], "job_sizes": [1]}', "id: [1] is neither text"),
        ("[" * 100_000, "windows:1: JSON nested too deeply"),
        ('{"idle_nodes": [' + "1" * 10_000 + '], "job_sizes": [1]}', "windows:1: JSON nested"),
    ],
)
def test_what_is_refused(
    line: str, problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "windows"
    path.write_text(line)
    assert bench("--instances", str(path)) == 1
    assert problem in capsys.readouterr().err


def test_who_does_not_fit_is_left_out_and_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "windows"
    path.write_text(
        '{"id": 7, "idle_nodes": [0, 1, 2, 500], "job_sizes": [3, 2, 1, 1]}\n\n'
        '{"idle_nodes": [], "job_sizes": [1]}'
    )
    assert bench("--instances", str(path), "--bound", "--json") == 0
    full, empty = json.loads(capsys.readouterr().out)["results"]
    assert (full["id"], full["jobs"], full["left_out"]) == (7, 4, 2)
    assert full["compact"]["cost"] == 2 * 3 * 2 / 3 * 1000 == full["bound"]
    assert (empty["id"], empty["left_out"], empty["compact"]["cost"]) == (3, 1, 0)
    assert bench("--instances", str(path)) == 0
    assert "3 jobs left out" in capsys.readouterr().out


@pytest.mark.parametrize(
    "placers", ["best", "compact@x", "compact@\u00b2", "compact@9" + "9" * 20, ",", "sequential@5"]
)
def test_placers_that_do_not_exist(placers: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench("--placers", placers) == 1
    assert "--placers" in capsys.readouterr().err


def test_windows_that_one_cannot_place_are_not_summed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Sequential goes across fabrics, which is no placement: costs are compared without it."""
    topology = tmp_path / "topology.conf"
    topology.write_text("SwitchName=a Nodes=x[0-3]\nSwitchName=b Nodes=y[0-3]\n")
    path = tmp_path / "windows"
    across = '{"idle_nodes": [2, 3, 4, 5, 6], "job_sizes": [3]}\n'
    path.write_text(across + '{"idle_nodes": [0, 1], "job_sizes": [2]}')
    requested = ("--instances", str(path), "--topology", str(topology))
    requested += ("--placers", "sequential,compact")
    assert bench(*requested, "--json") == 0
    result = json.loads(capsys.readouterr().out)
    assert result["counted"] == 1
    assert result["results"][0]["sequential"]["cost"] is None
    assert [result["figures"][name]["placed"] for name in ("sequential", "compact")] == [1, 2]
    assert bench(*requested) == 0
    out = capsys.readouterr().out
    assert "1 placed" in out
    assert "costs are for the 1 windows" in out
    path.write_text(across)
    assert bench(*requested) == 0
    assert " - " in capsys.readouterr().out
