# SPDX-License-Identifier: Apache-2.0
"""`lab bench planning`: the figures are there, and about the system that was asked for."""

import json
from pathlib import Path

import pytest
from bench import run as run_bench
from policy_bench.planning import measure_table, openccs
from policy_bench.workloads import QueueShape


def bench(*arguments: str) -> int:
    with pytest.raises(SystemExit) as stopped:
        run_bench(["planning", *arguments])
    code = stopped.value.code
    assert isinstance(code, int)
    return code


def test_the_system_is_of_the_published_size() -> None:
    machine = openccs()
    assert machine.capacity.shape == (616, 4)
    assert machine.capacity[:, [0, 2, 3]].sum(axis=0).tolist() == [9_920, 32, 8]
    assert sorted(set(machine.capacity[:, 1].tolist())) == [65_536, 262_144, 1_048_576]


def test_json_is_one_object(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench("--jobs", "300", "--no-table", "--json") == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["system"], result["nodes"], result["jobs_booked"]) == ("openccs", 616, 300)
    for figure in ("replans_per_s", "array_10k_s", "recover_5000_s", "peak_mib", "plan_s"):
        assert result[figure] > 0
    assert result["table"] == []


def test_a_described_system(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    system = tmp_path / "system.yaml"
    system.write_text('nodes: [{names: "n[1-99]", cpus: 8, memory_mib: 32768, gres: {gpu: 1}}]')
    assert bench("--system", str(system), "--jobs", "200", "--no-table") == 0
    out = capsys.readouterr().out
    assert "99 nodes, 792 cores" in out
    assert "replans_per_s" in out


def test_a_missing_file_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench("--system", str(tmp_path / "none.yaml")) != 0
    error = capsys.readouterr().err
    assert "none.yaml" in error
    assert "Traceback" not in error


@pytest.mark.parametrize("shape", list(QueueShape))
def test_the_table_compares_equal_plans(shape: QueueShape) -> None:
    cell = measure_table(shape, 200, 40, against=True, repeats=1)
    assert cell["ratio"] > 0
