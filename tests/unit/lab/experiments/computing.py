# SPDX-License-Identifier: Apache-2.0
"""What workers compute in tests: cells that end well, raise, wait, or kill their worker."""

import os
import signal
import time
from pathlib import Path

from bridge.lab.experiments.cell import Cell
from bridge.lab.experiments.results import DONE, CellResult, JobColumns, packed
from tests.experiment_results import made_columns

FIGURES = {"wait_s_mean": 1.0, "bounded_slowdown_mean": 1.0, "engine": "fast"}


def compute(cell: Cell) -> tuple[CellResult, bytes | None]:
    """Does what the cell's `setting` says; files in its `folder` count its begins."""
    folder, act = Path(cell.setting["folder"]), cell.setting["act"]
    begins = len(list(folder.glob(f"{cell.seed}.*")))
    (folder / f"{cell.seed}.{begins}").touch()
    if act == "raise" or (act == "raise once" and not begins):
        raise RuntimeError(f"cell {cell.seed} raises")
    if act == "kill" or (act == "kill once" and not begins):
        os.kill(os.getpid(), signal.SIGKILL)
    if act == "wait":
        while not (folder / "go").exists():
            time.sleep(0.05)
    columns: JobColumns = made_columns(cell.seed, n_jobs=5)
    return CellResult(cell, DONE, FIGURES, {}, {}, 0.1, 0.1), packed(columns)
