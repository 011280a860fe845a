# SPDX-License-Identifier: Apache-2.0
"""Cells on real worker processes of this machine, which are killed."""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from distributed import Future
from distributed.comm import CommClosedError

from bridge.errors import ConfigError, Unreachable
from bridge.lab.experiments import workers
from bridge.lab.experiments.cell import Cell
from bridge.lab.experiments.results import read_all, read_columns
from bridge.lab.experiments.run import RunStatus, Stop, interruptible, run
from tests.experiment_results import a_cell
from tests.unit.lab.experiments.computing import compute

pytestmark = pytest.mark.usefixtures("no_hang")

RETRIES = 1
JOBS = workers.SlurmJobs()


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with workers.local(2, RETRIES) as found:
        yield found


def _cells(folder: Path, *acts: str) -> list[Cell]:
    (folder / "begins").mkdir()
    told = {"folder": str(folder / "begins")}
    return [a_cell(seed=n, setting={**told, "act": act}) for n, act in enumerate(acts)]


def _run(client: Any, folder: Path, cells: list[Cell], observe: Any, stop: Stop) -> None:
    orders = [(cell, cell) for cell in cells]
    run(client, orders, compute, folder, retries=RETRIES, observe=observe, stop=stop)


def _begins(folder: Path, cell: Cell) -> int:
    return len(list((folder / "begins").glob(f"{cell.seed}.*")))


def test_what_crashes_costs_its_own_retries_alone(tmp_path: Path) -> None:
    """Slow: workers are processes, and are started anew."""
    acts = ["fine", "kill", "fine", "raise", "fine", "kill once", "raise once", *["fine"] * 5]
    cells = _cells(tmp_path, *acts)
    seen: list[RunStatus] = []
    with workers.local(2, RETRIES) as client:
        _run(client, tmp_path, cells, seen.append, Stop())
    found = {result.cell.seed: (result, path) for result, path in read_all(tmp_path)}
    assert sorted(found) == list(range(len(cells)))
    for cell, act in zip(cells, acts, strict=True):
        result, path = found[cell.seed]
        assert result.done == (act not in ("kill", "raise")), act
        if not result.done:
            assert _begins(tmp_path, cell) == RETRIES + 1, act
        if result.done:
            assert len(read_columns(path)) == 5
    assert "died, 2 times of 2" in str(found[1][0].error)
    assert "RuntimeError: cell 3 raises" in str(found[3][0].error)
    assert sum(moment.result is not None for moment in seen) == len(cells)
    assert seen[-1].left == 0


def test_asked_to_stop_it_waits_for_what_has_begun(client: Any, tmp_path: Path) -> None:
    cells, stop = _cells(tmp_path, *["wait"] * 9), Stop()
    before_stop: set[int] = set()

    def begun() -> set[int]:
        return {cell.seed for cell in cells if _begins(tmp_path, cell)}

    def observe(moment: RunStatus) -> None:
        if len(begun()) >= 2 and not stop.requested:
            before_stop.update(begun())
            os.kill(os.getpid(), signal.SIGINT)
        if moment.stopping:
            (tmp_path / "begins" / "go").touch()

    with interruptible() as requested:
        stop = requested
        _run(client, tmp_path, cells, observe, stop)
    assert stop.requested == 1
    # One that begins while the others are called back may end, or be left for the next run.
    assert before_stop <= {result.cell.seed for result, _ in read_all(tmp_path)} <= begun()
    assert 2 <= len(before_stop) <= len(begun()) < len(cells)


def test_asked_twice_it_abandons_them(client: Any, tmp_path: Path) -> None:
    cells, stop = _cells(tmp_path, "fine", "wait", "wait", "wait"), Stop()

    def observe(moment: RunStatus) -> None:
        if moment.result is not None:
            stop.requested = 2

    _run(client, tmp_path, cells, observe, stop)
    assert [result.cell.seed for result, _ in read_all(tmp_path)] == [0]
    (tmp_path / "begins" / "go").touch()


def test_a_lost_connection_to_the_scheduler_is_made_again(client: Any, tmp_path: Path) -> None:
    cells = _cells(tmp_path, *["fine"] * 8)
    lost: list[Any] = []

    def observe(moment: RunStatus) -> None:
        if moment.result is not None and not lost:
            lost.append(client.scheduler_comm.comm)
            client.loop.add_callback(lost[0].abort)

    _run(client, tmp_path, cells, observe, Stop())
    assert client.scheduler_comm.comm is not lost[0]
    assert {result.cell.seed for result, _ in read_all(tmp_path)} == set(range(len(cells)))


def test_requests_that_a_lost_connection_breaks_are_made_again(
    client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = {"result": 1, "processing": 1}

    def breaking(name: str, request: Any) -> Any:
        def made(*given: Any, **more: Any) -> Any:
            if broken[name]:
                broken[name] -= 1
                raise CommClosedError("in <TCP>: Stream is closed")
            return request(*given, **more)

        return made

    monkeypatch.setattr(Future, "result", breaking("result", Future.result))
    monkeypatch.setattr(client, "processing", breaking("processing", client.processing))
    stop = Stop()

    def observe(moment: RunStatus) -> None:
        if moment.result is not None:
            stop.requested = 1
        if moment.stopping:
            (tmp_path / "begins" / "go").touch()

    _run(client, tmp_path, _cells(tmp_path, "fine", *["wait"] * 9), observe, stop)
    assert broken == {"result": 0, "processing": 0}
    assert 1 <= len(list(read_all(tmp_path))) < 10


def test_loading_the_workers_of_slurm_leaves_interrupts_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """dask_jobqueue ends the program at an interrupt, with exit code 0."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unreachable, match="no command sbatch"), workers.slurm(JOBS, 0, tmp_path):
        pass
    sbatch = tmp_path / "sbatch"
    sbatch.write_text("#!/bin/sh\necho 'no such partition' >&2; exit 1\n")
    sbatch.chmod(0o755)
    sys.modules.pop("dask_jobqueue.runner", None)
    sys.modules.pop("dask_jobqueue", None)
    with interruptible():
        before = signal.getsignal(signal.SIGINT)
        refused = pytest.raises(ConfigError, match="sbatch refuses the job: no such partition")
        with refused, workers.slurm(JOBS, 0, tmp_path / "kept"):
            pass
        assert signal.getsignal(signal.SIGINT) is before
