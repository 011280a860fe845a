# SPDX-License-Identifier: Apache-2.0
"""Injected faults of a simulation, drawn from a seed: of nodes, of jobs, and of the decider."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from bridge.errors import Unreachable
from bridge.lab.sim.workloads.records.lowering import NodeOutage
from bridge.lab.sim.workloads.workload import Workload
from bridge.model.plan import Plan
from bridge.model.snapshot import Snapshot
from bridge.ports import Decide
from bridge.units import NEVER


class FaultKind(Enum):
    """Kinds of faults; the target is a node's index or a job's row in the workload."""

    NODE_LOST = "node lost"
    NODE_DRAINED = "node drained"
    NODE_RETURNED = "node returned"
    JOB_CANCELLED = "job cancelled"
    JOB_ENDED_EARLY = "job ended early"


_LOST = {True: FaultKind.NODE_LOST, False: FaultKind.NODE_DRAINED}


@dataclass(frozen=True)
class Fault:
    """One fault: its kind, time and target."""

    at_s: int
    kind: FaultKind
    target: int


def recorded_outages(outages: Sequence[NodeOutage]) -> tuple[Fault, ...]:
    """The outages of a site's records as faults; where those of a node overlap, it stays away."""
    faults: list[Fault] = []
    changes = sorted(
        (at_s, begins, each.node, each.lost)
        for each in outages
        for at_s, begins in ((each.start_s, 1), (each.end_s or NEVER, 0))
    )
    away: dict[int, int] = {}
    for at_s, begins, node, lost in changes:
        before = away.get(node, 0)
        away[node] = before + (1 if begins else -1)
        if begins and (lost or not before):
            faults.append(Fault(at_s, _LOST[lost], node))
        elif not begins and before == 1 and at_s != NEVER:
            faults.append(Fault(at_s, FaultKind.NODE_RETURNED, node))
    return tuple(faults)


def random_faults(seed: int, workload: Workload, n_nodes: int, count: int) -> tuple[Fault, ...]:
    """Draws `count` faults over the time of submissions; a lost node always returns.

    Args:
        seed: same seed, same faults.
        workload: provides the period and the jobs.
        count: nodes lost, jobs cancelled and jobs ended early, together.
    """
    rng = np.random.default_rng(seed)
    first_s, last_s = int(workload.submit_s[0]), int(workload.submit_s[-1])
    outage_s = max(60, int(np.median(workload.runtime_s)))
    faults: list[Fault] = []
    for _ in range(count):
        at_s = int(rng.integers(first_s, last_s + outage_s))
        kind = rng.integers(3)
        if kind == 0:
            node = int(rng.integers(n_nodes))
            back_s = at_s + 1 + int(rng.integers(outage_s))
            faults.append(Fault(at_s, FaultKind.NODE_LOST, node))
            faults.append(Fault(back_s, FaultKind.NODE_RETURNED, node))
        else:
            job = int(rng.integers(len(workload)))
            struck = FaultKind.JOB_CANCELLED if kind == 1 else FaultKind.JOB_ENDED_EARLY
            faults.append(Fault(at_s, struck, job))
    return tuple(sorted(faults, key=lambda fault: fault.at_s))


class Saboteur:
    """A decider that fails at times: gives no answer, an old plan, or an invalid one.

    Attributes:
        broken: number of failures, by kind.
    """

    def __init__(self, decide: Decide, seed: int, share: float) -> None:
        """Wraps a decider.

        Args:
            decide: makes all other decisions.
            seed: same seed and same snapshots, same failures.
            share: the share of decisions that fail, in [0, 1].
        """
        self._decide, self._share = decide, share
        self._rng = np.random.default_rng(seed)
        self._last: Plan | None = None
        self.broken = dict.fromkeys(("silent", "stale", "garbage"), 0)

    def __call__(self, snapshot: Snapshot) -> Plan:
        """Decides, or fails.

        Raises:
            Unreachable: for failures without an answer.
        """
        if self._rng.random() >= self._share:
            self._last = self._decide(snapshot)
            return self._last
        kind = ("silent", "stale", "garbage")[int(self._rng.integers(3))]
        if kind == "stale" and self._last is None:
            kind = "silent"
        self.broken[kind] += 1
        if kind == "silent":
            raise Unreachable("the saboteur does not answer")
        if kind == "stale" and self._last is not None:
            return self._last
        return garbage(self._decide(snapshot), snapshot, self._rng)


def garbage(plan: Plan, snapshot: Snapshot, rng: np.random.Generator) -> Plan:
    """Corrupts one part of a plan: jobs, nodes, starts, offsets or tasks."""
    n_nodes, n_jobs = len(snapshot.nodes), len(snapshot.jobs)
    spoil: tuple[Callable[[], Plan], ...] = (
        lambda: replace(plan, job=rng.integers(-3, n_jobs + 3, len(plan)).astype(np.int32)),
        lambda: replace(plan, job=np.zeros_like(plan.job)),
        lambda: replace(
            plan, nodes=rng.integers(-2, n_nodes + 2, len(plan.nodes)).astype(np.int32)
        ),
        lambda: replace(plan, nodes=np.zeros_like(plan.nodes)),
        lambda: replace(plan, start_s=np.full_like(plan.start_s, plan.now_s)),
        lambda: replace(plan, start_s=plan.start_s[:-1]),
        lambda: replace(plan, indptr=plan.indptr[::-1].copy()),
        lambda: replace(plan, partition=np.full_like(plan.partition, 99)),
        lambda: replace(plan, tasks=rng.integers(-5, 5, len(plan.tasks)).astype(np.int32)),
    )
    return spoil[int(rng.integers(len(spoil)))]()
