# SPDX-License-Identifier: Apache-2.0
"""Workloads for tests, and a second opinion: backfilling on counts as plainly as it can be put."""

import dataclasses

import numpy as np
from hypothesis import strategies as st

from bridge.lab.sim.workloads.workload import Malleable, Workload
from bridge.model.plan import Plan
from bridge.model.policy import PolicySpec, StageSpec
from bridge.model.snapshot import Snapshot
from bridge.registry import PRESETS
from bridge.units import NEVER, UNPLANNED
from schedbridge_contracts.workloads import a_workload


def malleable(workload: Workload, least: int = 1, most: int = 8) -> Workload:
    """The same jobs, all of them malleable between two widths."""
    n = len(workload)
    widths = Malleable(
        np.full(n, least), np.full(n, most), np.zeros(n, dtype=np.int8), workload.processors,
        np.full(n, None),
    )  # fmt: skip
    return dataclasses.replace(workload, malleable=widths)


ANY_WORKLOAD = st.builds(
    lambda jobs, spare: a_workload(jobs, max(size for *_, size in jobs) + spare),
    st.lists(
        st.tuples(
            st.integers(1, 3000), st.integers(1, 2500), st.integers(1, 2500), st.integers(1, 6)
        ),
        min_size=1,
        max_size=25,
    ),
    st.integers(0, 3),
)


class NaiveBackfill:
    """Plans jobs one by one on a list of bookings; O(jobs * instants^2), no kernels."""

    def __init__(self, depth: int | None = 1) -> None:
        self.depth = depth

    def __call__(self, snapshot: Snapshot) -> Plan:
        now_s, jobs, running = snapshot.now_s, snapshot.jobs, snapshot.running
        held = [
            (max(int(running.end_s[job]), now_s + 1), running.nodes[a:b])
            for job, (a, b) in enumerate(
                zip(running.indptr[:-1].tolist(), running.indptr[1:].tolist(), strict=True)
            )
        ]
        capacity = int(snapshot.nodes.usable.sum())
        busy = {int(node) for _, nodes in held for node in nodes}
        free_now = [
            int(node) for node in np.flatnonzero(snapshot.nodes.usable) if int(node) not in busy
        ]
        booked = [(now_s, end_s, int(snapshot.nodes.usable[nodes].sum())) for end_s, nodes in held]
        starts, chosen, promised = [], [], 0
        for job in range(len(jobs)):
            wanted, limit_s = int(jobs.min_nodes[job]), int(jobs.time_limit_s[job])
            may_book = self.depth is None or promised < self.depth
            start_s = _earliest(now_s, wanted, limit_s, booked, capacity, only_now=not may_book)
            nodes: list[int] = []
            if start_s == now_s:
                nodes, free_now = free_now[:wanted], free_now[wanted:]
            elif start_s not in (NEVER, UNPLANNED):
                promised += 1
            if start_s not in (NEVER, UNPLANNED):
                booked.append((start_s, start_s + limit_s, wanted))
            starts.append(start_s)
            chosen.append(nodes)
        start = np.array(starts, dtype=np.int64)
        placed = (start != NEVER) & (start != UNPLANNED)
        widths = [len(nodes) for nodes in chosen]
        return Plan(
            now_s=now_s,
            policy="naive",
            job=np.arange(len(jobs), dtype=np.int32),
            start_s=start,
            end_s=np.where(placed, start + jobs.time_limit_s, 0),
            partition=np.where(placed, 0, -1).astype(np.int32),
            indptr=np.cumsum([0, *widths]).astype(np.int64),
            nodes=np.array([node for nodes in chosen for node in nodes], dtype=np.int32),
            tasks=np.zeros(sum(widths), dtype=np.int32),
            reasons=(None,) * len(jobs),
        )


def _earliest(now_s, wanted, limit_s, booked, capacity, *, only_now):
    def free(at_s):
        return capacity - sum(count for start, end, count in booked if start <= at_s < end)

    if wanted > capacity:
        return NEVER
    instants = sorted({now_s, *(end for _, end, _ in booked)})
    for start_s in instants[:1] if only_now else instants:
        inside = [s for s, _, _ in booked if start_s < s < start_s + limit_s]
        if all(free(at_s) >= wanted for at_s in (start_s, *inside)):
            return start_s
    return UNPLANNED


_BRIEF: dict[str, object] = {"effort": 0.02, "most_jobs": 4}


def quick(preset: str) -> PolicySpec:
    """A preset for whole simulations: a solver looks briefly at little, a window opens always."""
    spec = PRESETS[preset]
    less = {"pcp19": _BRIEF, "hcp19": _BRIEF, "pcp20": _BRIEF, "window": {"period_s": 0}}
    if spec.plan.name not in less:
        return spec
    plan = StageSpec(spec.plan.name, {**spec.plan.parameters, **less[spec.plan.name]})
    return dataclasses.replace(spec, plan=plan)
