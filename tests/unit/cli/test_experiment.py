# SPDX-License-Identifier: Apache-2.0
"""`schedbridge lab experiment` and `rerun`, by their words, on a worker process."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import distributed
import pytest

from bridge.cli.experiments import session
from bridge.cli.main import main
from bridge.lab.experiments import workers
from bridge.lab.experiments.results import FAILED, CellResult, cell_path, read_all, write_cell
from bridge.lab.experiments.until_sure import NextStep
from tests.experiment_results import EXCERPT, a_cell, write_made

pytestmark = pytest.mark.usefixtures("no_hang")

PLAN = f"""
results: kept
policies: [easy, {{name: windowed, preset: easy, order: shortest}}]
traces: [{{file: {EXCERPT}, name: kth, jobs: 60}}]
seeds: [3]
perturbations: [ties, {{name: impossible, weeks: true}}]
"""


def _told(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = 0
    try:
        main(words)
    except SystemExit as ended:
        code = int(ended.code or 0)
    out, err = capsys.readouterr()
    return code, out, err


@contextmanager
def _in_this_process(*_: int) -> Iterator[Any]:
    """A client whose worker is a thread: no process has to start."""
    with distributed.Client(
        processes=False, n_workers=1, threads_per_worker=1, dashboard_address=None
    ) as client:
        yield client


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    path = tmp_path / "plan.yaml"
    path.write_text(PLAN)
    return path


def test_an_experiment_is_computed_kept_and_repeated(
    capsys: pytest.CaptureFixture[str], plan: Path
) -> None:
    """Slow: workers are processes."""
    code, out, _ = _told(capsys, "lab", "experiment", str(plan), "--dry-run")
    assert code == 0
    assert "4 cells, 0 kept, 4 to compute; about" in out
    assert not (plan.parent / "kept").exists()

    code, out, err = _told(capsys, "lab", "experiment", str(plan), "--workers", "1", "--json")
    found = json.loads(out)
    assert code == 1, err
    assert (found["computed"], found["failed"], found["left"]) == (2, 2, 0)
    results = {r.cell.key: (r, path) for r, path in read_all(plan.parent / "kept")}
    assert set(results) == {cell["key"] for cell in found["cells"]}
    done = {r.cell.policy: (r, path) for r, path in results.values() if r.done}
    assert sorted(done) == ["easy", "windowed"]
    assert done["easy"][0].results["jobs"] == 60
    assert all("0 whole weeks" in str(r.error) for r, _ in results.values() if not r.done)
    origin = done["easy"][0].provenance
    assert origin["command"].startswith("schedbridge lab experiment ")
    assert origin["machine"]["cpus"] > 0
    assert {"version", "commit", "load_average", "date", "versions"} <= origin.keys()

    path = done["easy"][1]
    code, out, _ = _told(capsys, "lab", "rerun", str(path))
    assert code == 0
    assert "it came out the same" in out
    value: dict[str, Any] = json.loads(path.read_text())
    value["results"]["wait_s_mean"] += 1
    path.write_text(json.dumps(value))
    code, out, _ = _told(capsys, "lab", "rerun", str(path), "--json")
    assert code == 1
    assert [each["measure"] for each in json.loads(out)["differences"]] == ["wait_s_mean"]
    code, _, err = _told(capsys, "lab", "rerun", str(path), "--trace", str(plan))
    assert code == 1
    assert "has changed" in err


def test_seeds_are_added_until_the_intervals_are_narrow(
    capsys: pytest.CaptureFixture[str], plan: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "local", _in_this_process)
    plan.write_text(PLAN.replace("seeds: [3]", "seeds: [3, 4]").replace("ties, {", "users, {"))
    words = ("lab", "experiment", str(plan), "--workers", "1", "--until-sure")
    code, out, err = _told(capsys, *words, "0.9", "--json")
    found = json.loads(out)
    seeds = {cell["seed"] for cell in found["cells"]}
    assert code == 1, err  # the impossible perturbation
    assert seeds > {3, 4}
    assert found["computed"] == len(seeds) * 2
    assert "wide" in found["until_sure"]
    assert _told(capsys, *words, "5")[2].startswith("schedbridge: until-sure: must be a share")


def test_a_simulation_is_repeated_with_the_same_words(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words = ("lab", "simulate", str(EXCERPT), "--jobs", "50", "--policy", "easy", "--json")
    code, out, _ = _told(capsys, *words)
    assert code == 0
    path = tmp_path / "result.json"
    path.write_text(out)
    code, out, err = _told(capsys, "lab", "rerun", str(path))
    assert (code, err) == (0, "")
    assert "it came out the same" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--scheduler", "tcp://127.0.0.1:1", "--on", "slurm"), "remove --on and --workers"),
        (("--on", "moon"), "Invalid value for '--on'"),
        (("--workers", "0"), "Invalid value for '--workers'"),
    ],
)
def test_wrong_words_are_named(
    capsys: pytest.CaptureFixture[str], plan: Path, words: tuple[str, ...], message: str
) -> None:
    code, _, err = _told(capsys, "lab", "experiment", str(plan), *words)
    assert code != 0
    assert message in err


def test_results_that_cannot_be_repeated_are_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    write_made(tmp_path, {"easy": 1.0}, seeds=(0,))
    failed = a_cell(seed=9)
    write_cell(tmp_path, CellResult(failed, FAILED, error="it ended"))
    (tmp_path / "other.json").write_text("{}")
    for path, message in (
        (cell_path(tmp_path, failed.key), "the cell failed"),
        (cell_path(tmp_path, a_cell().key), "cannot be repeated"),
        (tmp_path / "other.json", "does not say where it comes from"),
        (tmp_path / "none.json", "cannot be read"),
        (EXCERPT, "is not JSON"),
    ):
        code, _, err = _told(capsys, "lab", "rerun", str(path))
        assert code == 1
        assert message in err


def test_failing_cells_do_not_add_seeds_without_end(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "plan.yaml").write_text(
        f"results: kept\npolicies: [easy, conservative]\nseeds: 2\nperturbations: [ties]\n"
        f"traces: [{{file: {EXCERPT}, jobs: 20}}]\n"
    )
    monkeypatch.setattr(workers, "local", _in_this_process)
    monkeypatch.setattr(session, "MAX_SEEDS", 5)

    def without_narrowing(*_: object, **__: object) -> NextStep:
        return NextStep(1, sure=False, wide=(), words="1 of 1 is wide; 1 more seeds follow")

    monkeypatch.setattr(session, "until_sure", without_narrowing)
    code, out, _ = _told(
        capsys, "lab", "experiment", str(tmp_path / "plan.yaml"), "--until-sure", "0.01"
    )
    assert code == 0
    assert "1 of 1 is wide; 5 seeds were tried" in out
    assert len(list((tmp_path / "kept/cells").glob("*.json"))) == 10
