# SPDX-License-Identifier: Apache-2.0
"""Workloads for tests, and a second opinion on their plans: the reference planner."""

import dataclasses

import numpy as np
from hypothesis import strategies as st

from bridge.core import UNLIMITED
from bridge.lab.sim.workloads.workload import Malleable, Workload
from bridge.model.plan import Plan
from bridge.model.policy import PolicySpec, StageSpec
from bridge.model.snapshot import Snapshot
from bridge.registry import PRESETS
from bridge.units import NEVER, UNPLANNED
from schedbridge_contracts.reference_planner import ReferencePlanner
from schedbridge_contracts.reference_problem import Alternative, Job, Problem, Running
from schedbridge_contracts.workloads import a_workload


def malleable(workload: Workload, minimum: int = 1, maximum: int = 8) -> Workload:
    """The same jobs, all of them malleable between two widths."""
    n = len(workload)
    widths = Malleable(
        np.full(n, minimum), np.full(n, maximum), np.zeros(n, dtype=np.int8), workload.processors,
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


class ReferenceBackfill:
    """Plans whole nodes with the reference planner, without kernels."""

    def __init__(self, depth: int | None = 1) -> None:
        self.depth = UNLIMITED if depth is None else depth

    def __call__(self, snapshot: Snapshot) -> Plan:
        results = ReferencePlanner(self.problem(snapshot)).plan()
        start = np.array([result.start for result in results], dtype=np.int64)
        placed = (start != NEVER) & (start != UNPLANNED)
        start[placed] += snapshot.now_s
        nodes = [sorted(result.nodes) for result in results]
        widths = [len(each) for each in nodes]
        return Plan(
            now_s=snapshot.now_s,
            policy="reference",
            job=np.arange(len(start), dtype=np.int32),
            start_s=start,
            end_s=np.where(placed, start + snapshot.jobs.time_limit_s, 0),
            partition=np.where(placed, 0, -1).astype(np.int32),
            indptr=np.cumsum([0, *widths]).astype(np.int64),
            nodes=np.array([node for each in nodes for node in each], dtype=np.int32),
            tasks=np.zeros(sum(widths), dtype=np.int32),
            reasons=(None,) * len(start),
        )

    def problem(self, snapshot: Snapshot) -> Problem:
        jobs, running = snapshot.jobs, snapshot.running
        usable = set(np.flatnonzero(snapshot.nodes.usable).tolist())
        held = np.split(running.nodes, running.indptr[1:-1]) if len(running) else []
        sizes = zip(jobs.min_nodes.tolist(), jobs.time_limit_s.tolist(), strict=True)
        return Problem(
            now=snapshot.now_s, depth=self.depth, select=0,
            capacity=[(1,)] * len(snapshot.nodes), rank=[0] * len(snapshot.nodes),
            running=[
                Running(int(end_s) - snapshot.now_s, True, dict.fromkeys(nodes.tolist(), (1,)), ())
                for end_s, nodes in zip(running.end_s, held, strict=True)
            ],
            classes=[usable], blackouts=[], counters=[], required=[],
            jobs=[
                Job(
                    alternatives=[Alternative(0, limit_s, width, width)], per_node=(1,), tasks=0,
                    per_task=(0,), max_tasks=0, exclusive=True, not_before=0, width_rule=0,
                    required=-1, counters=(),
                )
                for width, limit_s in sizes
            ],
        )  # fmt: skip


_BRIEF: dict[str, object] = {"effort": 0.02, "most_jobs": 4}


def quick(preset: str) -> PolicySpec:
    """A preset for whole simulations: a solver looks briefly at little, a window opens always."""
    spec = PRESETS[preset]
    less = {"pcp19": _BRIEF, "hcp19": _BRIEF, "pcp20": _BRIEF, "window": {"period_s": 0}}
    if spec.plan.name not in less:
        return spec
    plan = StageSpec(spec.plan.name, {**spec.plan.parameters, **less[spec.plan.name]})
    return dataclasses.replace(spec, plan=plan)
