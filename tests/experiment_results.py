# SPDX-License-Identifier: Apache-2.0
"""Results of an experiment that never ran: a folder with cells of random jobs."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

import bridge
from bridge.lab.experiments.cell import Cell, canonical
from bridge.lab.experiments.results import DONE, CellResult, JobColumns, write_cell
from bridge.measures import ExecutedSchedule, measure
from bridge.registry import PRESETS, describe

EXCERPT = Path(bridge.__file__).parent / "lab/sim/data/KTH-SP2-1996-excerpt.swf.gz"
ORIGIN_S = 1_400_000_000
PROCESSORS = 64


def a_cell(policy: str = "easy", **changes: object) -> Cell:
    """A cell of a preset."""
    given: dict[str, object] = {
        "policy": policy,
        "policy_text": canonical(describe(PRESETS[policy])),
        "predictor": "time-limit",
        "trace": "made",
        "trace_sha256": "0" * 64,
        "seed": 0,
        "version": "0.1.0",
        "commit": "0123456789ab",
    }
    return Cell(**{**given, **changes})  # type: ignore[arg-type]


def made_columns(seed: int, *, n_jobs: int = 200, factor: float = 1.0) -> JobColumns:
    """Random jobs; the same of one seed, whose waits are `factor` times as long."""
    dice = np.random.default_rng(seed)
    submit_s = ORIGIN_S + np.sort(dice.integers(0, 7 * 86_400, n_jobs)).astype(np.float64)
    run_s = np.ceil(dice.lognormal(6.0, 1.5, n_jobs))
    wait_s = np.round(dice.exponential(1000.0, n_jobs) * (dice.random(n_jobs) < 0.7) * factor)
    return JobColumns(
        id=np.arange(1, n_jobs + 1),
        user=dice.integers(1, 12, n_jobs),
        submit_s=submit_s,
        start_s=submit_s + wait_s,
        end_s=submit_s + wait_s + run_s,
        width=2 ** dice.integers(0, 7, n_jobs),
        limit_s=np.ceil(run_s * dice.uniform(1.0, 4.0, n_jobs)),
        run_s=run_s,
    )


def write_made(
    folder: Path,
    factors: dict[str, float],
    *,
    seeds: Sequence[int] = (0, 1, 2),
    n_jobs: int = 200,
) -> list[Cell]:
    """Cells of policies whose waits are so many times those of the others, the same jobs."""
    cells = []
    for policy, factor in factors.items():
        for seed in seeds:
            cell = a_cell(policy, seed=seed)
            columns = made_columns(seed, n_jobs=n_jobs, factor=factor)
            whole = {
                name: getattr(columns, name).astype(np.int64)
                for name in ("submit_s", "start_s", "end_s")
            }
            schedule = ExecutedSchedule(PROCESSORS, **whole, processors=columns.width)
            measures = measure(schedule, np.ones(1))
            results = {
                "policy": policy,
                "jobs": measures.jobs,
                "wait_s_mean": measures.wait_s.mean,
                "bounded_slowdown_mean": measures.bounded_slowdown.mean,
                "utilization": measures.utilization,
                "engine": "fast",
                "unfinished": 0,
                "by_size": [asdict(size) for size in measures.by_size],
            }
            machine = {"name": f"pool of {PROCESSORS}", "processors": PROCESSORS}
            write_cell(
                folder, CellResult(cell, DONE, results, machine, cpu_s=1.0, wall_s=1.1), columns
            )
            cells.append(cell)
    return cells
