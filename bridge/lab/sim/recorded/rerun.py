# SPDX-License-Identifier: Apache-2.0
"""Plans recorded cycles again, and compares plans of the same cycle.

Rules
    1. All policies use the run times that the recorded cycle predicted (`Plan.predicted`), so that
       their plans are judged by the same lengths. Only if none are recorded (the policy failed, or
       it predicted the limits) is a policy's own predictor used, with the recorded state.
    2. A plan that leaves jobs without a possible start (EASY beyond its depth, a horizon) is
       completed before it is judged: the other jobs are planned after it, in the policy's order,
       each at its earliest start. The starts planned by the policy do not change.
    3. Starts are compared job by job; tasks of an array in the order of their starts.
"""

import dataclasses
import time
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridge.extensions.power.corridor.sites import site_at
from bridge.extensions.sharing.part import having_shared
from bridge.model.decisions.prediction import Prediction
from bridge.model.plan import Plan
from bridge.model.policy import PolicySpec
from bridge.model.snapshot import Snapshot
from bridge.planning.prediction.apply_predictions import as_planned
from bridge.policies.plan.backfill import Backfill
from bridge.ports import Context, Environment, Predicted, Solver, State, Telemetry
from bridge.recording.recordings import Recording
from bridge.registry import build
from bridge.safe_cycle.decider import Decider
from bridge.units import UNPLANNED


@dataclass(frozen=True)
class RecordedPrediction:
    prediction: Prediction

    def predict(self, snapshot: Snapshot, context: Context) -> Predicted:
        """See `bridge.ports.PredictPolicy`."""
        del snapshot, context
        return Predicted(self.prediction)


@dataclass(frozen=True)
class Rerun:
    """The result of planning a recorded cycle again.

    Attributes:
        decision_ms: wall-clock time from snapshot to plan, check included.
        cpu_ms: CPU time of this process in it; a solver's own process is not counted.
        failed: the policy failed, and the conservative plan is used.
    """

    plan: Plan
    decision_ms: float
    cpu_ms: float
    failed: bool
    state: State
    telemetry: Telemetry


def rerun(
    recording: Recording,
    spec: PolicySpec | None = None,
    *,
    seed: int | None = None,
    solver: Solver | None = None,
    planning: Mapping[str, object] | None = None,
) -> Rerun:
    """Plans a recorded cycle again.

    Args:
        spec: the policy; None: the recorded one.
        seed: the seed of all random numbers; None: the recorded one.
        planning: rules of the site, in the form of the section `planning`; None: as recorded.

    Raises:
        ConfigError: this version does not have the policy.
        PolicyError: not even the conservative plan is possible.
    """
    policy = build(spec or recording.policy)
    if recording.plan.predicted is not None:
        policy = dataclasses.replace(policy, predict=RecordedPrediction(recording.plan.predicted))
    decider = Decider(
        policy,
        recording.state,
        recording.seed if seed is None else seed,
        site=site_at(
            recording.planning if planning is None else planning, recording.snapshot.now_s
        ),
        environment=Environment(solver=solver),
    )
    if solver is not None:
        solver.begin()
    began, cpu = time.perf_counter(), time.process_time()
    plan = decider.decide(recording.snapshot)
    wall_ms, cpu_ms = (time.perf_counter() - began) * 1e3, (time.process_time() - cpu) * 1e3
    return Rerun(plan, wall_ms, cpu_ms, decider.failures > 0, decider.state, decider.telemetry)


# ------------------------------------------------------------ comparison of plans


@dataclass(frozen=True)
class Moved:
    """A job that starts at another time; tasks of an array in the order of their starts."""

    job: str
    before_s: tuple[int, ...]
    after_s: tuple[int, ...]


def moved(snapshot: Snapshot, before: Plan, after: Plan) -> list[Moved]:
    """Jobs whose starts differ, in the order of the table."""
    first, second = _starts(before), _starts(after)
    return [
        Moved(str(snapshot.jobs.id[job]), first.get(job, ()), second.get(job, ()))
        for job in sorted(first.keys() | second.keys())
        if first.get(job) != second.get(job)
    ]


def _starts(plan: Plan) -> dict[int, tuple[int, ...]]:
    found: dict[int, list[int]] = {}
    for job, start_s in zip(plan.job.tolist(), plan.start_s.tolist(), strict=True):
        found.setdefault(job, []).append(start_s)
    return {job: tuple(sorted(starts)) for job, starts in found.items()}


def completed(
    snapshot: Snapshot, plan: Plan, spec: PolicySpec, planning: Mapping[str, object] | None = None
) -> Plan:
    """The plan with a start for every job that can have one (rule 2).

    Args:
        spec: the policy that made the plan; it defines which nodes are taken first.
        planning: rules of the site, in the form of the section `planning`.
    """
    open_rows = plan.start_s == UNPLANNED
    if not open_rows.any():
        return plan
    world = as_planned(snapshot, plan)
    whole = ~np.isin(plan.job, plan.job[open_rows])
    order = np.concatenate((plan.job[~open_rows], plan.job[open_rows])).astype(np.int64)
    _, first = np.unique(order, return_index=True)
    behind = (
        Backfill(depth=None)
        .plan(
            world,
            order[np.sort(first)],
            build(spec).place.preference(world),
            Context(site_at(planning, snapshot.now_s)),
        )
        .plan
    )
    return _joined(plan, whole, behind, ~np.isin(behind.job, plan.job[whole]))


def _joined(one: Plan, rows: NDArray[np.bool_], other: Plan, other_rows: NDArray[np.bool_]) -> Plan:
    """Rows of two plans as one plan, without kinds of chunks."""
    entries = np.repeat(rows, np.diff(one.indptr))
    other_entries = np.repeat(other_rows, np.diff(other.indptr))
    widths = np.concatenate((np.diff(one.indptr)[rows], np.diff(other.indptr)[other_rows]))

    def both(a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.concatenate((a[rows], b[other_rows]))

    return dataclasses.replace(
        having_shared(one, host_id=None),
        job=np.concatenate((one.job[rows], other.job[other_rows])),
        start_s=both(one.start_s, other.start_s),
        end_s=both(one.end_s, other.end_s),
        partition=np.concatenate((one.partition[rows], other.partition[other_rows])),
        indptr=np.concatenate(([0], np.cumsum(widths))).astype(np.int64),
        nodes=np.concatenate((one.nodes[entries], other.nodes[other_entries])),
        tasks=np.concatenate((one.tasks[entries], other.tasks[other_entries])),
        reasons=tuple(r for r, keep in zip(one.reasons, rows, strict=True) if keep)
        + tuple(r for r, keep in zip(other.reasons, other_rows, strict=True) if keep),
        groups=None,
    )
