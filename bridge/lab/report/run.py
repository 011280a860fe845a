# SPDX-License-Identifier: Apache-2.0
"""One policy's run over a workload: the input of reports, and its figures for programs."""

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bridge.core import HostlistFolder
from bridge.extensions.power.measures import PowerBounds, SystemPower
from bridge.line_text import on_one_line
from bridge.measures import (
    ExecutedSchedule,
    Measures,
    Spells,
    Spread,
    bounded_slowdown,
    slowdown,
    turnaround_s,
    wait_s,
)


@dataclass(frozen=True)
class Run:
    """A schedule with its measures; columns of length n_jobs.

    Attributes:
        policy: its name, unique among the runs of a report.
        engine: its engine, for display: "cycle", "fast", "service".
        node_names: names of the machine's nodes.
        id: object (str).
        time_limit_s: int64.
        indptr, nodes: job i held nodes[indptr[i]:indptr[i + 1]]; no nodes: they are unknown.
        decision_ms: (n_decisions,) float64.
        extra: further figures for results.json, e.g. refusals.
        system_power: system power; None: it was not computed.
        bounds: its corridor; None: there was none.
        spells: which nodes each job held when; None: those of `nodes` from its start to its end.
    """

    policy: str
    engine: str
    schedule: ExecutedSchedule
    measures: Measures
    node_names: tuple[str, ...]
    id: NDArray[np.object_]
    time_limit_s: NDArray[np.int64]
    indptr: NDArray[np.int64]
    nodes: NDArray[np.int32]
    decision_ms: NDArray[np.float64]
    extra: Mapping[str, object] = field(default_factory=dict)
    system_power: SystemPower | None = None
    bounds: PowerBounds | None = None
    spells: Spells | None = None

    @property
    def placed(self) -> bool:
        """Tells whether the nodes of the jobs are known."""
        return len(self.nodes) > 0


def figures(run: Run) -> dict[str, object]:
    """The run's entry in `results`: the stable keys first, then the rest."""
    m = run.measures
    return {
        "policy": run.policy,
        "jobs": m.jobs,
        "wait_s_mean": m.wait_s.mean,
        "bounded_slowdown_mean": m.bounded_slowdown.mean,
        "slowdown_mean": m.slowdown.mean,
        "turnaround_s_mean": m.turnaround_s.mean,
        "utilization": m.utilization,
        "makespan_s": m.makespan_s,
        "decision_ms_mean": m.decision_ms.mean,
        "decision_ms_p99": m.decision_ms.p99,
        "engine": run.engine,
        "unfinished": m.unfinished,
        "decisions": m.decisions,
        **{
            key: value
            for name in ("wait_s", "bounded_slowdown", "turnaround_s")
            for key, value in spread_keys(name, getattr(m, name)).items()
            if not key.endswith("_mean")
        },
        "by_size": [
            {
                "name": size.name,
                "jobs": size.jobs,
                **spread_keys("wait_s", size.wait_s),
                **spread_keys("bounded_slowdown", size.bounded_slowdown),
            }
            for size in m.by_size
        ],
        "starts": None if m.starts is None else asdict(m.starts),
        "run_times": None if m.run_times is None else asdict(m.run_times),
        **{name: asdict(part) for name, part in m.parts.items()},
        **run.extra,
    }


def spread_keys(name: str, spread: Spread) -> dict[str, float]:
    """Mean and percentiles as keys: `wait_s_mean`, `wait_s_p50`, and so on."""
    return {f"{name}_{key}": value for key, value in asdict(spread).items()}


_CSV_COLUMNS = (
    "job",
    "submit_s",
    "processors",
    "time_limit_s",
    "start_s",
    "end_s",
    "wait_s",
    "turnaround_s",
    "slowdown",
    "bounded_slowdown",
    "nodes",
)


def write_jobs_csv(path: Path, run: Run) -> None:
    """Writes one line per job; unknown values and events that did not happen are empty."""
    schedule = run.schedule
    finished = schedule.finished
    waits, turnarounds = wait_s(schedule), turnaround_s(schedule)
    slow, bounded = slowdown(schedule), bounded_slowdown(schedule)
    places: Sequence[str] = [""] * len(schedule)
    if run.placed:
        places = HostlistFolder(run.node_names).fold_many(run.indptr, run.nodes)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(_CSV_COLUMNS)
        for job, done in enumerate(finished.tolist()):
            row = [on_one_line(run.id[job]), schedule.submit_s[job]]
            row += [schedule.processors[job], run.time_limit_s[job]]
            if done:
                row += [schedule.start_s[job], schedule.end_s[job], waits[job], turnarounds[job]]
                row += [f"{slow[job]:.6g}", f"{bounded[job]:.6g}", on_one_line(places[job])]
            writer.writerow(row + [""] * (len(_CSV_COLUMNS) - len(row)))


def file_word(text: str) -> str:
    """A policy's name as part of a file name."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-.") or "policy"
