# SPDX-License-Identifier: Apache-2.0
"""The running jobs of the simulated controller, and their table."""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridge.extensions.sharing.counting import counted_once
from bridge.lab.sim.cluster.allocation import Allocation
from bridge.lab.sim.cluster.held_nodes import HeldNodes
from bridge.lab.sim.cluster.job_rows import ColumnRows
from bridge.lab.sim.workloads.workload import Malleable
from bridge.model.job import JobTable, RunningTable
from bridge.model.job_columns import objects


class RunningJobs:
    """Allocations by job, in order of start.

    Attributes:
        allocations: changed by `hold` and `remove` only.
        measured: MTCT of jobs for which it is not that of their first phase.
        shown: the job of each row of the last table. Nodes that a job is giving back have a row of
            their own.
    """

    def __init__(self, jobs: JobTable, widths: Malleable | None, n_resources: int) -> None:
        """Starts without running jobs.

        Args:
            widths: which of them can be resized, and how; None: none.
            n_resources: columns of a resource vector.
        """
        self._jobs, self._widths = jobs, widths
        self.allocations: dict[int, Allocation] = {}
        self.measured: dict[int, float] = {}
        self._power_w: dict[int, tuple[int, int]] = {}
        self.shown: list[int] = []
        self._words = ColumnRows(
            {name: getattr(jobs, name) for name in ("id", "name", "user", "account")}
        )
        self._shares = bool(jobs.coschedule.any())
        self._stated = [
            (name, column)
            for name in ("min_power_w", "max_power_w")
            if (column := getattr(jobs, name)).any()
        ]
        self._numbers = np.zeros((4, len(jobs)), dtype=np.int64)
        self._held = HeldNodes(self.allocations, n_resources)
        self._table: RunningTable | None = None

    def hold(self, job: int, held: Allocation) -> None:
        """Records the allocation of a job from now on."""
        self._table = None
        self._held.note_held(job)
        self.allocations[job] = held
        numbers = self._numbers
        numbers[0, job], numbers[1, job] = held.start_s, held.limit_s
        numbers[2, job], numbers[3, job] = held.partition, held.exclusive

    def remove(self, job: int) -> Allocation:
        """Removes a job, and returns what it held."""
        self._table = None
        self._held.note_gone(job)
        self.measured.pop(job, None)
        self._power_w.pop(job, None)
        return self.allocations.pop(job)

    def measure(self, job: int, mtct: float) -> None:
        """Records what is measured of a running job's time in MPI."""
        self._table = None
        self.measured[job] = mtct

    def measure_power(self, job: int, low_w: int, high_w: int) -> None:
        """Records what is measured of a running job's draw on each node."""
        self._table = None
        self._power_w[job] = low_w, high_w

    def table(self) -> RunningTable:
        """The running jobs; the same object as long as they are the same."""
        if self._table is not None:
            return self._table
        rows, indptr, nodes, use = self._held.columns()
        self.shown = rows.tolist()
        numbers = self._numbers.take(rows, axis=1)
        adapting: list[int] = []
        released: list[tuple[int, Allocation]] = []
        if self._widths is not None:
            adapting, released = self._released()
        if released:
            left = [one for _, one in released]
            self.shown += [self.shown[at] for at, _ in released]
            rows = np.array(self.shown, dtype=np.int64)
            numbers = self._numbers.take(rows, axis=1)
            numbers[1, -len(left) :] = [one.limit_s for one in left]
            nodes = np.concatenate((nodes, *(one.nodes for one in left)))
            use = np.concatenate((use, *(one.use for one in left)))
            widths = [len(one.nodes) for one in left]
            indptr = np.concatenate((indptr, indptr[-1] + np.cumsum(widths)))
        start_s, end_s, partition, exclusive = numbers
        count = len(rows)
        columns = self._words.take(rows)
        columns |= {
            "start_s": start_s,
            "end_s": end_s,
            "partition": partition,
            "exclusive": exclusive.astype(bool),
            "licences": _no_licences(count),
            "indptr": indptr,
            "nodes": nodes,
            "use": use,
        }
        if self._widths is not None:
            columns |= self._resizable(rows, adapting, len(released))
        if self._stated or self._power_w:
            columns |= self._power(rows)
        if self._shares:
            held = [self.allocations[job] for job in self.shown]
            columns |= self._sharing(rows, held)
        table = RunningTable.of_columns(columns)
        self._table = counted_once(table) if self._shares else table
        return self._table

    def _released(self) -> tuple[list[int], list[tuple[int, Allocation]]]:
        """Rows of jobs that are changing their width; and rows with what each is giving back."""
        adapting, released = [], []
        for at, held in enumerate(self.allocations.values()):
            release = held.adaptation
            if release is None:
                continue
            adapting.append(at)
            if len(release.nodes):
                until_s = min(release.by_s, held.limit_s)
                released.append(
                    (at, replace(held, nodes=release.nodes, use=release.use, limit_s=until_s))
                )
        return adapting, released

    def _sharing(
        self, rows: NDArray[np.int64], held: Sequence[Allocation]
    ) -> dict[str, NDArray[Any]]:
        """The columns for jobs that share their nodes."""
        jobs = self._jobs
        hosts = [one.host for one in held]
        return {
            "host_id": objects(jobs.id[host] if host >= 0 else "" for host in hosts),
            "coschedule": jobs.coschedule[rows],
            "max_slowdown_permille": jobs.max_slowdown_permille[rows],
            "requeue": jobs.requeue[rows],
        }

    def _power(self, rows: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
        """The columns for what the jobs state, and what is measured of them."""
        found: dict[str, NDArray[Any]] = {name: stated[rows] for name, stated in self._stated}
        if self._power_w:
            measured = [self._power_w.get(job, (0, 0)) for job in rows.tolist()]
            low_w, high_w = np.array(measured, dtype=np.int64).reshape(-1, 2).T
            found |= {"measured_min_power_w": low_w, "measured_max_power_w": high_w}
        return found

    def _resizable(
        self, rows: NDArray[np.int64], adapting: Sequence[int], releasing: int
    ) -> dict[str, NDArray[Any]]:
        """The columns for resizes of running jobs.

        Args:
            adapting: positions of the jobs that are changing their width.
            releasing: how many of the last rows are for nodes being released.
        """
        widths = self._widths
        assert widths is not None
        last = np.zeros(len(rows), dtype=bool)
        last[len(rows) - releasing :] = True
        changing = np.zeros(len(rows), dtype=bool)
        changing[adapting] = True
        held = [self.allocations[job] for job in rows.tolist()]
        return {
            "version": self._jobs.version[rows],
            "min_nodes": widths.min_nodes[rows],
            "max_nodes": widths.max_nodes[rows],
            "width_rule": widths.width_rule[rows],
            "features": self._jobs.features[rows],
            "reservation": self._jobs.reservation[rows],
            "mtct": np.array(
                [
                    self.measured[job] if job in self.measured else widths.mtct(job, len(one.nodes))
                    for job, one in zip(rows.tolist(), held, strict=True)
                ],
                dtype=np.float64,
            ),
            "head": np.array([one.head for one in held], dtype=np.int64),
            "requested_nodes": np.where(widths.max_nodes[rows] > 0, widths.nominal[rows], 0),
            "resized_s": np.array([one.resized_s for one in held]),
            "adapting": changing,
            "releasing": last,
        }


@lru_cache(maxsize=512)
def _no_licences(count: int) -> NDArray[np.int64]:
    return np.zeros((count, 0), dtype=np.int64)
