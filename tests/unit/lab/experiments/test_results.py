# SPDX-License-Identifier: Apache-2.0
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bridge.errors import ResultError
from bridge.lab.experiments.cell import Cell
from bridge.lab.experiments.results import (
    COLUMNS,
    FAILED,
    CellResult,
    cell_path,
    read_all,
    read_cell,
    read_columns,
    write_cell,
)
from tests.experiment_results import a_cell, made_columns, write_made


def test_what_is_kept_is_read_back(tmp_path: Path) -> None:
    cells = write_made(tmp_path, {"easy": 1.0, "conservative": 1.2}, seeds=(0, 1))
    found = read_all(tmp_path)
    assert {result.cell.key for result, _ in found} == {cell.key for cell in cells}
    result, path = next(each for each in found if each[0].cell == cells[0])
    columns, made = read_columns(path), made_columns(0)
    for name in COLUMNS:
        assert np.array_equal(getattr(columns, name), getattr(made, name))
    assert result.results["wait_s_mean"] == pytest.approx(np.mean(made.start_s - made.submit_s))
    assert not [each for each in (tmp_path / "cells").iterdir() if each.name.startswith(".")]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("policy", "other"),
        ("policy_text", "{}"),
        ("predictor", "oracle"),
        ("trace", "other"),
        ("trace_sha256", "1" * 64),
        ("seed", 1),
        ("perturbation", "ties"),
        ("parameters", {"load": 1.1}),
        ("engine", "cycle"),
        ("setting", {"jobs": 10}),
        ("version", "0.2.0"),
        ("commit", "0123456789ab-dirty"),
    ],
)
def test_whatever_determines_the_result_changes_the_key(name: str, value: object) -> None:
    cell = a_cell()
    assert replace(cell, **{name: value}).key != cell.key
    assert len(cell.key) == 64


def test_where_the_trace_lies_does_not_change_the_key() -> None:
    cell = a_cell()
    assert replace(cell, trace_path="/elsewhere/t.swf").key == cell.key
    assert Cell.of(json.loads(json.dumps(cell.plain()))).key == cell.key


def test_a_failed_cell_has_a_reason_and_no_jobs(tmp_path: Path) -> None:
    (cell,) = write_made(tmp_path, {"easy": 1.0}, seeds=(0,))
    write_cell(tmp_path, CellResult(cell, FAILED, error="it ended"))
    path = cell_path(tmp_path, cell.key)
    assert read_cell(path).error == "it ended"
    with pytest.raises(ResultError, match="cannot be read"):
        read_columns(path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not a result of a cell"),
        ("[]", "not a result of a cell"),
        ('{"cell": {}}', "not a result of a cell"),
        ('{"cell": 3, "status": "done"}', "not a result of a cell"),
    ],
)
def test_a_file_that_is_no_result_is_named(tmp_path: Path, text: str, words: str) -> None:
    write_made(tmp_path, {"easy": 1.0}, seeds=(0,))
    (tmp_path / "cells" / "x.json").write_text(text)
    with pytest.raises(ResultError, match=words):
        read_all(tmp_path)
    told: list[ResultError] = []
    assert len(read_all(tmp_path, told.append)) == 1
    assert "x.json" in str(told[0])


def test_columns_that_are_damaged_are_named(tmp_path: Path) -> None:
    (cell,) = write_made(tmp_path, {"easy": 1.0}, seeds=(0,))
    path = cell_path(tmp_path, cell.key)
    held = path.with_suffix(".npz")
    whole = held.read_bytes()
    for damaged in (b"", whole[: len(whole) // 2], b"PK" + bytes(100)):
        held.write_bytes(damaged)
        with pytest.raises(ResultError, match="columns of jobs"):
            read_columns(path)
    with pytest.raises(ResultError, match="no folder cells"):
        read_all(tmp_path / "nowhere")
