# SPDX-License-Identifier: Apache-2.0
"""Decisions about running jobs: new sets of nodes, and CPU quotas.

Rules
    1. A resize is sent once. It is under way until the job holds the nodes that were decided, or
       ends. Until then every snapshot shows the job as adapting, with these nodes, and with those
       that it gives back as being released. So nothing is planned on nodes that are not free yet
       or are promised.
    2. A resize that is refused, or not complete `GRACE_S` after it should have been, is over. The
       job is then shown with the nodes that it has, and for `REFUSED_S` as one that keeps them,
       unless its version changes before.
    3. A quota is sent when it is another one than the last that was sent. A job whose quota is
       dropped from the plan while it runs is told that it has none.
    4. After `reset` nothing is under way and no quota is known to the controller.
    5. What does not fit a report is forgotten, with a line in the log. No report may stop the
       cycle.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bridge.model.job import RunningTable
from bridge.model.plan import Plan
from bridge.model.quotas import USUAL_WEIGHT
from bridge.model.resizes import Resizes, resized
from bridge.model.snapshot import Snapshot
from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.rpc.reported.features import Feature
from bridge.rpc.reported.hostlist import NodeIndex
from bridge.rpc.reported.safe_text import plain

_log = logging.getLogger(__name__)

GRACE_S = 30
REFUSED_S = 60
_NO_QUOTA = (0, USUAL_WEIGHT)


@dataclass(frozen=True, slots=True)
class _UnderWay:
    decision_id: int
    version: int
    nodes: tuple[str, ...]
    by_s: int
    end_s: int
    reason: str


class Adjustments:
    """What running jobs of one controller have been told to change."""

    def __init__(self, take_id: Callable[[], int]) -> None:
        """Begins without any.

        Args:
            take_id: gives the number of the next decision.
        """
        self._take_id = take_id
        self._under_way: dict[str, _UnderWay] = {}
        self._refused: dict[str, tuple[int, int]] = {}
        self._quotas: dict[str, tuple[int, int]] = {}

    def reset(self) -> None:
        """Forgets all changes: the controller has started again."""
        self._under_way.clear()
        self._refused.clear()
        self._quotas.clear()

    def close(self, result: pb.Fate, now_s: int) -> bool:
        """Takes note of a result; False if it is none of a resize."""
        for job_id, change in self._under_way.items():
            if change.decision_id == result.decision_id:
                if result.outcome != pb.OUTCOME_APPLIED:
                    self._give_up(job_id, now_s)
                return True
        return False

    def _give_up(self, job_id: str, now_s: int) -> None:
        self._refused[job_id] = (self._under_way.pop(job_id).version, now_s)

    # ------------------------------------------------------------ in

    def overlay(self, snapshot: Snapshot) -> Snapshot:
        """The snapshot as it will be once what is under way has come about (rules 1, 2 and 5)."""
        if not self._under_way and not self._refused:
            return snapshot
        try:
            return self._overlaid(snapshot)
        except Exception:
            _log.exception("what is under way does not fit the report: forgotten")
            self.reset()
            return snapshot

    def _overlaid(self, snapshot: Snapshot) -> Snapshot:
        running = snapshot.running
        row_of = _rows(running)
        self._settle(snapshot, row_of)
        adapting, max_nodes = running.adapting.copy(), running.max_nodes.copy()
        for job_id in self._refused:
            max_nodes[row_of[job_id]] = 0
        rows, end_s = [], {}
        for job_id, change in self._under_way.items():
            row = row_of[job_id]
            adapting[row], end_s[row] = True, change.end_s
            by_s = max(change.by_s, snapshot.now_s + 1)
            rows.append((row, by_s, self._nodes(snapshot, change), change.reason))
        changed = replace(running, adapting=adapting, max_nodes=max_nodes)
        return resized(replace(snapshot, running=changed), Resizes.of(rows, end_s))

    def _settle(self, snapshot: Snapshot, row_of: dict[str, int]) -> None:
        """Drops what has come about, is late, or is of a job that is gone or ends."""
        running, now_s = snapshot.running, snapshot.now_s
        for job_id, change in list(self._under_way.items()):
            row, wanted = row_of.get(job_id), self._nodes(snapshot, change)
            if row is None or len(wanted) != len(change.nodes):
                del self._under_way[job_id]
                continue
            held = running.nodes[running.indptr[row] : running.indptr[row + 1]]
            ends = not len(held) or running.end_s[row] == 0
            if ends or np.array_equal(held, wanted):
                del self._under_way[job_id]
            elif now_s > change.by_s + GRACE_S:
                self._give_up(job_id, now_s)
        for job_id, (version, since_s) in list(self._refused.items()):
            row = row_of.get(job_id)
            over = row is None or int(running.version[row]) != version
            if over or not 0 <= now_s - since_s < REFUSED_S:
                del self._refused[job_id]

    def _nodes(self, snapshot: Snapshot, change: _UnderWay) -> NDArray[np.int32]:
        index = snapshot.nodes.index
        known = [index[name] for name in change.nodes if name in index]
        return np.array(sorted(known), dtype=np.int32)

    # ------------------------------------------------------------ out

    def decide(
        self, snapshot: Snapshot, plan: Plan, nodes: NodeIndex, features: frozenset[str]
    ) -> list[pb.Decision]:
        """The resizes and quotas of a plan that the controller has not been told yet."""
        found: list[pb.Decision] = []
        if Feature.RESIZE in features:
            found += self._resizes(snapshot, plan, nodes)
        if Feature.QUOTA in features:
            found += self._new_quotas(snapshot, plan)
        return found

    def _resizes(self, snapshot: Snapshot, plan: Plan, nodes: NodeIndex) -> list[pb.Decision]:
        running, resizes = snapshot.running, plan.resizes
        found = []
        for row, job in enumerate(resizes.job.tolist()):
            job_id, version = str(running.id[job]), int(running.version[job])
            wanted, reason = resizes.nodes_of(row), plain(resizes.reasons[row])
            by_s = int(resizes.by_s[row])
            message = pb.Decision(
                id=self._take_id(),
                job_id=job_id,
                job_version=version,
                resize=pb.Resize(nodes=nodes.fold(wanted), by_s=by_s, reason=reason),
            )
            names = tuple(snapshot.nodes.names[node] for node in wanted.tolist())
            end_s = int(resizes.end_s[row])
            self._under_way[job_id] = _UnderWay(message.id, version, names, by_s, end_s, reason)
            found.append(message)
        return found

    def _new_quotas(self, snapshot: Snapshot, plan: Plan) -> list[pb.Decision]:
        running, quotas = snapshot.running, plan.quotas
        versions = {job_id: int(running.version[row]) for job_id, row in _rows(running).items()}
        wanted = {
            job_id: (quota, weight)
            for job_id, quota, weight in zip(
                quotas.id.tolist(), quotas.milli_cpus_per_node.tolist(), quotas.weight.tolist(),
                strict=True,
            )
        }  # fmt: skip
        found = []
        for job_id in sorted(wanted.keys() | self._quotas.keys()):
            quota, weight = now = wanted.get(job_id, _NO_QUOTA)
            if job_id not in versions:  # it ended, or starts now and is told with the next cycle
                self._quotas.pop(job_id, None)
            elif now != self._quotas.get(job_id, _NO_QUOTA):
                self._quotas[job_id] = now
                message = pb.Decision(
                    id=self._take_id(), job_id=job_id, job_version=versions[job_id]
                )
                message.quota.milli_cpus_per_node, message.quota.weight = quota, weight
                found.append(message)
        return found


def _rows(running: RunningTable) -> dict[str, int]:
    """Running jobs by their ids, without the rows of nodes that they are releasing."""
    releasing = running.releasing.tolist()
    return {job_id: row for row, job_id in enumerate(running.id.tolist()) if not releasing[row]}
