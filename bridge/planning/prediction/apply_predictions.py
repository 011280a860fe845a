# SPDX-License-Identifier: Apache-2.0
"""Puts predicted run times in place of time limits, where an underestimate is safe.

Terms
    kill limit          how long the controller lets a job run; predictions never change it.
    predicted snapshot  a snapshot with predicted run times and ends in place of time limits.

Rules
    1. A job is planned with its predicted run time, at least 1 s and at most its kill limit.
    2. A job is planned with its whole limit if it has a deadline, a fixed start or a limit that may
       be cut (`JobTable.min_time_s`); if it runs in a reservation; if its limit exceeds that of a
       partition it named; or if its limit, counted from now, reaches into a future reservation on
       a node or licence that it could use. So a job that starts now never runs into a reservation.
    3. A running job ends as predicted, at the latest at its limit. The predictor corrects its
       prediction for jobs that have exceeded it. An end in the past means within the next second.
    4. Limits and FreePools that depend on time use the kill limit, which the predicted snapshot
       carries along (`JobTable.kill_limit_s`).
    5. A site rule may come into force later. If a job's limit, counted from now, reaches that
       instant and the rule could apply to the job, it is planned with its whole limit; likewise a
       running job ends at its limit. The same applies where the upper bound of power falls.
    6. The reason of a planned start says when it was planned with predicted run times.
"""

import dataclasses

import numpy as np
from numpy.typing import NDArray

from bridge.model.decisions.prediction import Prediction
from bridge.model.decisions.resizes import NO_RESIZES
from bridge.model.plan import Plan
from bridge.model.reasons import Reason
from bridge.model.rules.limits import ALWAYS, EACH, ConsumerKind
from bridge.model.rules.site import Site
from bridge.model.snapshot import Snapshot
from bridge.planning.site_rules.validity import windows
from bridge.units import NEVER, UNLIMITED_S, UNPLANNED

BY_EXPECTED = "by expected run times"


def apply_predictions(snapshot: Snapshot, prediction: Prediction) -> Snapshot:
    """Returns the snapshot with predicted run times and ends (rules 1 to 4)."""
    jobs, running = snapshot.jobs, snapshot.running
    limit_s, longest_s, whole = _limits(snapshot)
    whole |= (prediction.run_s <= 0) | (jobs.deadline_s > 0) | jobs.fixed | (jobs.reservation >= 0)
    whole |= jobs.min_time_s > 0
    whole |= _reaches_closed_time(snapshot, longest_s)
    run_s = np.where(whole, jobs.time_limit_s, np.clip(prediction.run_s, 1, limit_s))
    foreseen = (prediction.end_s > 0) & ~running.releasing
    end_s = np.where(foreseen, np.minimum(prediction.end_s, running.end_s), running.end_s)
    return dataclasses.replace(
        snapshot,
        jobs=dataclasses.replace(
            jobs, time_limit_s=run_s, kill_limit_s=np.where(whole, jobs.kill_limit_s, limit_s)
        ),
        running=dataclasses.replace(running, end_s=end_s),
    )


def drop_unsafe(snapshot: Snapshot, prediction: Prediction, site: Site) -> Prediction:
    """Removes predictions that could break a rule which comes into force later (rule 5).

    Returns:
        The prediction, with 0 in the entries that were removed.
    """
    edges = _Edges(site, snapshot.now_s)
    if edges.none:
        return prediction
    jobs, running = snapshot.jobs, snapshot.running
    names = [partition.name for partition in snapshot.partitions]
    known: dict[tuple[str, str, tuple[int, ...]], int] = {}

    def next_of(user: str, account: str, partitions: tuple[int, ...]) -> int:
        key = user, account, partitions
        if key not in known:
            known[key] = edges.first(user, account, [names[at] for at in partitions])
        return known[key]

    _, longest_s, _ = _limits(snapshot)
    opens_s = np.array(
        [next_of(*key) for key in zip(jobs.user, jobs.account, jobs.partitions, strict=True)],
        dtype=np.int64,
    ).reshape(len(jobs))
    held_s = np.array(
        [
            next_of(user, account, (part,) if part >= 0 else ())
            for user, account, part in zip(
                running.user, running.account, running.partition.tolist(), strict=True
            )
        ],
        dtype=np.int64,
    ).reshape(len(running))
    return dataclasses.replace(
        prediction,
        run_s=np.where(snapshot.now_s + longest_s > opens_s, 0, prediction.run_s),
        end_s=np.where(running.end_s > held_s, 0, prediction.end_s),
    )


class _Edges:
    """When rules that could apply to a consumer next come into force.

    Attributes:
        none: no rule comes into force within the horizon.
    """

    def __init__(self, site: Site, now_s: int) -> None:
        rules, cron_s = site.rules, site.cron_s
        self._first: dict[tuple[ConsumerKind, str], int] = {}
        self._everybody = NEVER
        for limit in rules.limits:
            key = limit.kind, limit.name
            self._first.setdefault(key, NEVER)
            if limit.validity == ALWAYS:
                continue
            opened = windows(limit.validity, rules.timezone, now_s, now_s + cron_s)
            # When a named limit ends, the "*" limit that it replaced comes into force.
            self._first[key] = min(self._first[key], _next(opened.ravel(), now_s))
        for pool in rules.free_pools:
            if pool.validity != ALWAYS:
                opened = windows(pool.validity, rules.timezone, now_s, now_s + cron_s)
                self._everybody = min(self._everybody, _next(opened[:, 0], now_s))
        for part in site.parts.values():
            self._everybody = min(self._everybody, part.tightens_s(now_s))
        self.none = min([self._everybody, *self._first.values()]) == NEVER

    def first(self, user: str, account: str, partitions: list[str]) -> int:
        """Returns the first instant for a job of this user, account and partitions, or NEVER."""
        keys = [(ConsumerKind.USER, user), (ConsumerKind.ACCOUNT, account)]
        keys += [(ConsumerKind.PARTITION, partition) for partition in partitions]
        own = [
            self._first.get((kind, name), self._first.get((kind, EACH), NEVER))
            for kind, name in keys
        ]
        return min(self._everybody, *own)


def _next(instants: NDArray[np.int64], now_s: int) -> int:
    later = instants[instants > now_s]
    return int(later.min()) if len(later) else NEVER


def as_planned(snapshot: Snapshot, plan: Plan) -> Snapshot:
    """Returns the snapshot that a plan was made for: with predictions, if it used any."""
    return snapshot if plan.predicted is None else apply_predictions(snapshot, plan.predicted)


def starts_with_limits(snapshot: Snapshot, plan: Plan) -> Plan:
    """Returns the plan with its immediate starts only, each as long as the job's time limit.

    The check uses it to verify that these starts are legal however long the jobs run.
    """
    now = plan.start_s == plan.now_s
    width = np.where(now, np.diff(plan.indptr), 0)
    entries = np.repeat(now, np.diff(plan.indptr))
    requested_s = snapshot.jobs.time_limit_s[plan.job]
    default_s = np.array(
        [part.default_time_s or part.max_time_s or UNLIMITED_S for part in snapshot.partitions]
        + [0],
        dtype=np.int64,
    )
    limit_s = np.where(requested_s > 0, requested_s, default_s[plan.partition])
    # The row of a job whose limit may be cut already has the full length (rule 2).
    jobs = snapshot.jobs
    cut = (jobs.deadline_s[plan.job] > 0) | (jobs.min_time_s[plan.job] > 0)
    limit_s = np.where(cut, plan.end_s - plan.start_s, limit_s)
    return dataclasses.replace(
        plan,
        start_s=np.where(now, plan.start_s, UNPLANNED),
        end_s=np.where(now, plan.start_s + limit_s, 0),
        partition=np.where(now, plan.partition, -1).astype(np.int32),
        indptr=np.concatenate(([0], np.cumsum(width))).astype(np.int64),
        nodes=plan.nodes[entries],
        tasks=plan.tasks[entries],
        groups=None if plan.groups is None else plan.groups[entries],
        predicted=None,
        resizes=dataclasses.replace(plan.resizes, end_s=np.zeros_like(plan.resizes.end_s)),
        returns=NO_RESIZES,
    )


def with_prediction_notes(plan: Plan, prediction: Prediction) -> Plan:
    """Returns the plan with notes for users on the predictions it used (rule 6)."""
    later = (plan.start_s != plan.now_s) & (plan.start_s != NEVER) & (plan.start_s != UNPLANNED)
    reasons, known = list(plan.reasons), dict[int, Reason]()
    for row in np.flatnonzero(later).tolist():
        reason = reasons[row]
        if reason is not None:
            again = known.get(id(reason))
            if again is None:
                again = known[id(reason)] = Reason(reason.code, f"{reason.text}, {BY_EXPECTED}")
            reasons[row] = again
    note = f"run times are expected, not limits ({prediction.by})"
    return dataclasses.replace(
        plan, reasons=tuple(reasons), notes=(*plan.notes, note), predicted=prediction
    )


def _limits(
    snapshot: Snapshot,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Computes each job's kill limit.

    Returns:
        (n_jobs,) the shortest and the longest limit, s, which differ if the job states none and
        its partitions have different defaults; and whether it is too long for one of them.
    """
    jobs = snapshot.jobs
    default_s, max_s = [], []
    for part in snapshot.partitions:
        default_s.append(part.default_time_s or part.max_time_s or UNLIMITED_S)
        max_s.append(part.max_time_s or NEVER)
    distinct: dict[tuple[int, ...], int] = {}
    which = _numbered(jobs.partitions, distinct)
    default = np.array(
        [
            (min(defaults, default=UNLIMITED_S), max(defaults, default=UNLIMITED_S))
            for defaults in ([default_s[at] for at in named] for named in distinct)
        ]
        or [(0, 0)],
        dtype=np.int64,
    )[which]
    maximum = np.array(
        [min((max_s[at] for at in named), default=NEVER) for named in distinct] or [0],
        dtype=np.int64,
    )
    stated = jobs.time_limit_s > 0
    limit_s = np.where(stated, jobs.time_limit_s, default[:, 0])
    longest_s = np.where(stated, jobs.time_limit_s, default[:, 1])
    return limit_s, longest_s, limit_s > maximum[which]


def _reaches_closed_time(snapshot: Snapshot, limit_s: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Tells which jobs would reach a future reservation if they ran from now for a given time."""
    jobs, now_s = snapshot.jobs, snapshot.now_s
    ahead = [item for item in snapshot.reservations if item.start_s > now_s]
    reaches = np.zeros(len(jobs), dtype=bool)
    if not ahead:
        return reaches
    first_s = [
        min(
            (item.start_s for item in ahead if np.isin(part.nodes, item.nodes).any()), default=NEVER
        )
        for part in snapshot.partitions
    ]
    distinct: dict[tuple[int, ...], int] = {}
    which = _numbered(jobs.partitions, distinct)
    closes_s = np.array(
        [min((first_s[at] for at in named), default=NEVER) for named in distinct] or [NEVER],
        dtype=np.int64,
    )[which]
    reaches |= now_s + limit_s > closes_s
    for item in ahead:
        if item.licences.any():
            wants = jobs.licences[:, item.licences > 0].any(axis=1)
            reaches |= wants & (now_s + limit_s > item.start_s)
    return reaches


def _numbered(
    values: NDArray[np.object_], distinct: dict[tuple[int, ...], int]
) -> NDArray[np.intp]:
    """Numbers the values, equal ones alike; `distinct` maps each value to its number."""
    return np.fromiter(
        (distinct.setdefault(value, len(distinct)) for value in values),
        dtype=np.intp,
        count=len(values),
    )
