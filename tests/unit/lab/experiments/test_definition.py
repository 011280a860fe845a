# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

import pytest

from bridge.cli.experiments.grid import grid_of
from bridge.errors import ConfigError
from bridge.lab.experiments.definition import read_definition
from tests.experiment_results import EXCERPT

PLAIN = f"""
results: kept
policies: [easy, {{name: mine, preset: easy, order: shortest}}]
predictors: [own, last-two]
traces: [{{file: {EXCERPT}, name: kth, weeks: {{first: 0, count: 2}}}}]
seeds: 2
perturbations: [none, ties, {{load: 1.2}}]
"""


def _file(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "plan.yaml"
    path.write_text(text)
    return path


def test_every_combination_is_a_cell(tmp_path: Path) -> None:
    path = _file(tmp_path, PLAIN)
    grid = grid_of(read_definition(path), path)
    assert len(grid.cells) == len({cell.key for cell in grid.cells}) == 2 * 2 * 2 * 3
    assert {cell.policy for cell in grid.cells} == {"easy", "mine"}
    assert {cell.predictor for cell in grid.cells} == {"time-limit", "last-two"}
    assert {cell.perturbation for cell in grid.cells} == {"none", "ties", "load-1.2"}
    assert grid.baseline == ("easy", "time-limit")
    assert grid.folder == tmp_path / "kept"
    assert "none, load-1.2" in grid.notes[0]
    assert [cell.seed for cell in grid.cells] == sorted(cell.seed for cell in grid.cells)


def test_a_share_of_zero_is_a_step(tmp_path: Path) -> None:
    named = "[none, {malleable: 0}, {name: both, ties: true, malleable: 0}]"
    path = _file(tmp_path, PLAIN.replace("[none, ties, {load: 1.2}]", named))
    found = {each.name: each.parameters for each in read_definition(path).perturbations}
    assert found == {
        "none": {},
        "malleable-0": {"malleable": 0},
        "both": {"ties": True, "malleable": 0},
    }


def test_a_change_of_the_policy_makes_its_cells_new(tmp_path: Path) -> None:
    keys = []
    for order in ("shortest", "slowdown"):
        path = _file(tmp_path, PLAIN.replace("shortest", order))
        cells = grid_of(read_definition(path), path).cells
        keys.append({cell.key: cell.policy for cell in cells})
    assert {keys[0][key] for key in keys[0].keys() & keys[1].keys()} == {"easy"}


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("results: kept", "", "results: is missing"),
        ("results: kept", "results: kept\npolicy: easy", "policy: unknown key"),
        ("results: kept", "results: [", "is not YAML: line"),
        ("[easy, ", "[eazy, ", "policies.0: policy: 'eazy' is neither a preset"),
        ("order: shortest", "order: longest", "policies.1: policy.order: no algorithm 'longest'"),
        ("name: mine", "name: easy", "policies.1: two policies are named 'easy'"),
        ("last-two]", "crystal]", "no algorithm 'crystal'"),
        ("last-two]", "own]", "'own' is there twice"),
        ("seeds: 2", "seeds: 0", "seeds: must be 1 to"),
        ("seeds: 2", "seeds: [1, -2]", "seeds.1: input should be greater than or equal to 0"),
        ("seeds: 2", "seeds: [1, 1]", "'1' is there twice"),
        ("count: 2", "count: 0", "traces.0.weeks.count"),
        ("name: kth", "nam: kth", "traces.0.nam: unknown key; there are file"),
        (EXCERPT.name, "nowhere.swf", "cannot be read: No such file"),
        ("name: kth", "system: x.yaml, procs: 2", "leave 'procs' out"),
        ("ties,", "knots,", "there is no perturbation 'knots'"),
        ("load: 1.2", "load: 0", "perturbations.2.load"),
        ("load: 1.2", "name: x", "'x' does nothing"),
        ("load: 1.2", "load: true", "perturbations.2.load: must be a number"),
        ("load: 1.2", "malleable: true", "perturbations.2.malleable: must be a number"),
        ("name: kth", "procs: true", "traces.0.procs: must be a whole number"),
        ("results: kept", "results: ''", "results: must name a folder of its own"),
        ("[easy, ", "[3, ", "policies.0: must be a preset, a file or a mapping of stages"),
        ("predictors: [own, last-two]", "predictors: own", "predictors: must be a list"),
        ("load: 1.2", "malleable: 101", "perturbations.2.malleable"),
        ("load: 1.2", "malleable: 10, consent: 10", "cannot be malleable and share nodes"),
        ("load: 1.2", "consent: 10", "needs 'interference' of trace kth"),
        ("results: kept", "results: kept\nbaseline: fcfs", "baseline: is not one of the policies"),
        ("results: kept", "results: kept\nengine: slow", "engine: input should be"),
        (f"file: {EXCERPT}", "file: 'esp:150'", "needs a share of 0 to 100"),
    ],
)
def test_a_mistake_is_named_with_file_and_key(
    tmp_path: Path, before: str, after: str, words: str
) -> None:
    assert before in PLAIN
    path = _file(tmp_path, PLAIN.replace(before, after, 1))
    with pytest.raises(ConfigError) as caught:
        grid_of(read_definition(path), path)
    assert str(path) in str(caught.value)
    assert words in str(caught.value)


def test_all_mistakes_are_shown_at_once(tmp_path: Path) -> None:
    path = _file(tmp_path, "policies: []\ntraces: [{}]\nseeds: x\n")
    with pytest.raises(ConfigError) as caught:
        read_definition(path)
    lines = str(caught.value).splitlines()
    for key in ("results: is missing", "policies: ", "traces.0.file: is missing", "seeds: must"):
        assert any(line.startswith(f"{path}: {key}") for line in lines), key
