# SPDX-License-Identifier: Apache-2.0
"""Rows of a plan, put together from a service's decisions."""

import numpy as np
from numpy.typing import NDArray

from bridge.model.plan import Plan
from bridge.model.reasons import Reason
from bridge.model.snapshot import Snapshot
from bridge.planning.queue.time_windows import end_s
from bridge.units import NEVER, UNLIMITED_S, UNPLANNED

NO_NODES: NDArray[np.int32] = np.empty(0, dtype=np.int32)


class PlanRows:
    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._scalars: list[tuple[int, int, int, int]] = []  # job, start, end, partition
        self._nodes: list[NDArray[np.int32]] = []
        self._tasks: list[NDArray[np.int32]] = []
        self._reasons: list[Reason | None] = []

    def add(
        self,
        job: int,
        start_s: int,
        partition: int,
        nodes: NDArray[np.int32],
        *,
        tasks: NDArray[np.int32] | None = None,
        reason: Reason | None = None,
    ) -> None:
        """Adds a row; without `tasks` the job's tasks are spread evenly."""
        end_at_s = 0
        if start_s not in (NEVER, UNPLANNED):
            end_at_s = self._end_s(job, partition, start_s)
        if tasks is None or len(tasks) != len(nodes):
            tasks = _even(int(self._snapshot.jobs.tasks[job]), len(nodes))
        self._scalars.append((job, start_s, end_at_s, partition))
        self._nodes.append(nodes)
        self._tasks.append(tasks)
        self._reasons.append(reason)

    def _end_s(self, job: int, partition: int, start_s: int) -> int:
        part, jobs = self._snapshot.partitions[partition], self._snapshot.jobs
        stated = int(jobs.time_limit_s[job])
        limit_s = stated or part.default_time_s or part.max_time_s or UNLIMITED_S
        if not jobs.deadline_s[job]:
            return start_s + limit_s
        columns = (np.array([value], dtype=np.int64) for value in (job, start_s, limit_s))
        return int(end_s(jobs, *columns)[0])

    def plan(self) -> Plan:
        table = np.array(self._scalars, dtype=np.int64).reshape(-1, 4)
        widths = [len(nodes) for nodes in self._nodes]
        return Plan(
            now_s=self._snapshot.now_s,
            policy="the service's",
            job=table[:, 0].astype(np.int32),
            start_s=table[:, 1].copy(),
            end_s=table[:, 2].copy(),
            partition=table[:, 3].astype(np.int32),
            indptr=np.concatenate(([0], np.cumsum(widths))).astype(np.int64),
            nodes=np.concatenate([*self._nodes, NO_NODES]),
            tasks=np.concatenate([*self._tasks, NO_NODES]),
            reasons=tuple(self._reasons),
        )


def _even(tasks: int, nodes: int) -> NDArray[np.int32]:
    if tasks == 0:
        return np.zeros(nodes, dtype=np.int32)
    share = np.full(nodes, tasks // nodes if nodes else 0, dtype=np.int32)
    share[: tasks % nodes if nodes else 0] += 1
    return share
