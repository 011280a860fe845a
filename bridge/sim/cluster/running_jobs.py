# SPDX-License-Identifier: Apache-2.0
"""The running jobs of the simulated controller, and their table."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridge.model.coscheduling import counted_once
from bridge.model.job import JobTable, RunningTable
from bridge.model.job_columns import objects
from bridge.sim.cluster.allocation import Allocation
from bridge.sim.cluster.job_rows import is_constant
from bridge.sim.workloads.workload import Malleable


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
            jobs: of the workload.
            widths: which of them can be resized, and how; None: none.
            n_resources: columns of a resource vector.
        """
        self._jobs, self._widths = jobs, widths
        self.allocations: dict[int, Allocation] = {}
        self.measured: dict[int, float] = {}
        self._power_w: dict[int, tuple[int, int]] = {}
        self.shown: list[int] = []
        self._nothing = (
            np.zeros(0, dtype=np.int32),
            np.zeros((0, n_resources), dtype=np.int64),
        )
        self._same = {
            name: column
            for name in ("id", "name", "user", "account")
            if len(column := getattr(jobs, name)) and is_constant(column)
        }
        self._numbers = np.zeros((len(jobs), 5), dtype=np.int64)
        self._table: RunningTable | None = None

    def hold(self, job: int, held: Allocation) -> None:
        """Records the allocation of a job from now on."""
        self._table = None
        self.allocations[job] = held
        self._numbers[job] = (
            held.start_s, held.limit_s, held.partition, held.exclusive, len(held.nodes),
        )  # fmt: skip

    def remove(self, job: int) -> Allocation:
        """Removes a job, and returns what it held."""
        self._table = None
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
        self.shown = list(self.allocations)
        held = list(self.allocations.values())
        rows = np.array(self.shown, dtype=np.int64)
        numbers = self._numbers.take(rows, axis=0)
        adapting, releasing = [], []
        if self._widths is not None:
            adapting = [at for at, one in enumerate(held) if one.adaptation is not None]
        for at in adapting:
            release = held[at].adaptation
            assert release is not None
            if not len(release.nodes):
                continue
            releasing.append(at)
            until_s = min(release.by_s, held[at].limit_s)
            held.append(replace(held[at], nodes=release.nodes, use=release.use, limit_s=until_s))
            self.shown.append(self.shown[at])
        if releasing:
            rows = np.array(self.shown, dtype=np.int64)
            numbers = np.concatenate((numbers, numbers[releasing]))
            numbers[-len(releasing) :, 1] = [one.limit_s for one in held[-len(releasing) :]]
            numbers[-len(releasing) :, 4] = [len(one.nodes) for one in held[-len(releasing) :]]
        start_s, end_s, partition, exclusive, widths = np.ascontiguousarray(numbers.T)
        count = len(rows)
        indptr = np.zeros(count + 1, dtype=np.int64)
        widths.cumsum(out=indptr[1:])
        words = {
            name: self._same[name][:count]
            if name in self._same
            else getattr(self._jobs, name).take(rows)
            for name in ("id", "name", "user", "account")
        }
        self._table = RunningTable.of_columns(
            {
                **words,
                "start_s": start_s,
                "end_s": end_s,
                "partition": partition,
                "exclusive": exclusive.astype(bool),
                "licences": np.zeros((count, 0), dtype=np.int64),
                "indptr": indptr,
                "nodes": np.concatenate([one.nodes for one in held]) if held else self._nothing[0],
                "use": np.concatenate([one.use for one in held]) if held else self._nothing[1],
                **self._resizable(rows, adapting, len(releasing)),
                **self._power(rows),
                **self._sharing(rows, held),
            }
        )
        self._table = counted_once(self._table)
        return self._table

    def _sharing(
        self, rows: NDArray[np.int64], held: Sequence[Allocation]
    ) -> dict[str, NDArray[Any]]:
        """The columns for jobs that share their nodes; none if jobs may not share."""
        jobs = self._jobs
        if not jobs.coschedule.any():
            return {}
        hosts = [one.host for one in held]
        return {
            "host_id": objects(jobs.id[host] if host >= 0 else "" for host in hosts),
            "coschedule": jobs.coschedule[rows],
            "max_slowdown_permille": jobs.max_slowdown_permille[rows],
            "requeue": jobs.requeue[rows],
        }

    def _power(self, rows: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
        """The columns for what the jobs state, and what is measured of them."""
        found: dict[str, NDArray[Any]] = {}
        for name in ("min_power_w", "max_power_w"):
            if (stated := getattr(self._jobs, name)).any():
                found[name] = stated[rows]
        if self._power_w:
            measured = [self._power_w.get(job, (0, 0)) for job in rows.tolist()]
            low_w, high_w = np.array(measured, dtype=np.int64).reshape(-1, 2).T
            found |= {"measured_min_power_w": low_w, "measured_max_power_w": high_w}
        return found

    def _resizable(
        self, rows: NDArray[np.int64], adapting: Sequence[int], releasing: int
    ) -> dict[str, NDArray[Any]]:
        """The columns for resizes of running jobs; none if no job can be resized.

        Args:
            rows: the jobs.
            adapting: positions of the jobs that are changing their width.
            releasing: how many of the last rows are for nodes being released.
        """
        widths = self._widths
        if widths is None:
            return {}
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
