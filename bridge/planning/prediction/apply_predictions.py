# SPDX-License-Identifier: Apache-2.0
"""The snapshot with predicted run times in place of time limits, where that does no harm.

Words
    kill limit  how long the controller lets a job run; it stays the user's, whatever is predicted.
    predicted   the snapshot whose time limits and expected ends are the predicted ones.

Rules
    1. A job takes its predicted run time, at least a second and at most its kill limit.
    2. A job takes its whole limit where less could break something: it has a deadline, a fixed
       start or a limit that may be cut (`JobTable.least_time_s`); it runs in a reservation; a
       partition it named would not take its limit; or its limit, counted from now, reaches into a
       reservation to come on a node or a licence that it could use. So a job that starts now never
       runs into a reservation, whatever it takes.
    3. A running job ends as predicted, at the latest at its limit. The predictor corrects what has
       run for longer than predicted. An end in the past is within the next second, as everywhere.
    4. Limits and FreePools that speak of time are applied to kill limits; the predicted snapshot
       carries them along (`JobTable.kill_limit_s`).
    5. A rule of the site may come into force later. A job whose limit, counted from now, reaches
       that instant takes its whole limit, and a running job ends at its limit, if the rule could
       bind it.
    6. A start that was planned for later by predicted run times says so in its reason.
"""

import dataclasses

import numpy as np
from numpy.typing import NDArray

from bridge.model.limits import ALWAYS, EACH, ConsumerKind, Rules
from bridge.model.plan import Plan
from bridge.model.prediction import Prediction
from bridge.model.reasons import Reason
from bridge.model.snapshot import Snapshot
from bridge.planning.site_rules.validity import windows
from bridge.units import NEVER, UNLIMITED_S, UNPLANNED

BY_EXPECTED = "by expected run times"


def apply_predictions(snapshot: Snapshot, prediction: Prediction) -> Snapshot:
    """The snapshot with predicted run times and ends.

    Args:
        snapshot: the world.
        prediction: for its jobs.
    """
    jobs, running = snapshot.jobs, snapshot.running
    limit_s, longest_s, whole = _limits(snapshot)
    whole |= (prediction.run_s <= 0) | (jobs.deadline_s > 0) | jobs.fixed | (jobs.reservation >= 0)
    whole |= jobs.least_time_s > 0
    whole |= _reaches_closed_time(snapshot, longest_s)
    run_s = np.where(whole, jobs.time_limit_s, np.clip(prediction.run_s, 1, limit_s))
    end_s = np.where(
        prediction.end_s > 0, np.minimum(prediction.end_s, running.end_s), running.end_s
    )
    return dataclasses.replace(
        snapshot,
        jobs=dataclasses.replace(
            jobs, time_limit_s=run_s, kill_limit_s=np.where(whole, jobs.kill_limit_s, limit_s)
        ),
        running=dataclasses.replace(running, end_s=end_s),
    )


def cautious(snapshot: Snapshot, prediction: Prediction, rules: Rules, cron_s: int) -> Prediction:
    """The prediction without those that could break a rule which comes into force (rule 5).

    Args:
        snapshot: the world.
        prediction: for its jobs.
        rules: limits and FreePools.
        cron_s: how far repeated validities are looked at.
    """
    edges = _Edges(rules, snapshot.now_s, cron_s)
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
    """When the rules that could bind somebody next come into force.

    Attributes:
        none: never.
    """

    def __init__(self, rules: Rules, now_s: int, cron_s: int) -> None:
        self._first: dict[tuple[ConsumerKind, str], int] = {}
        self._everybody = NEVER
        for limit in rules.limits:
            key = limit.kind, limit.name
            self._first.setdefault(key, NEVER)
            if limit.validity == ALWAYS:
                continue
            opened = windows(limit.validity, rules.timezone, now_s, now_s + cron_s)
            # Where one ends that stood in place of "*", that comes into force.
            self._first[key] = min(self._first[key], _next(opened.ravel(), now_s))
        for pool in rules.free_pools:
            if pool.validity != ALWAYS:
                opened = windows(pool.validity, rules.timezone, now_s, now_s + cron_s)
                self._everybody = min(self._everybody, _next(opened[:, 0], now_s))
        self.none = min([self._everybody, *self._first.values()]) == NEVER

    def first(self, user: str, account: str, partitions: list[str]) -> int:
        """The first instant for a job of these; NEVER: none."""
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
    """The snapshot that a plan was made with: with predictions, if there were any."""
    return snapshot if plan.predicted is None else apply_predictions(snapshot, plan.predicted)


def real_starts(snapshot: Snapshot, plan: Plan) -> Plan:
    """What a plan starts now, as rows of the real limits; all other rows are without a start.

    So it can be judged whether its starts are legal whatever the jobs take.
    """
    now = plan.start_s == plan.now_s
    width = np.where(now, np.diff(plan.indptr), 0)
    entries = np.repeat(now, np.diff(plan.indptr))
    asked_s = snapshot.jobs.time_limit_s[plan.job]
    default_s = np.array(
        [part.default_time_s or part.max_time_s or UNLIMITED_S for part in snapshot.partitions]
        + [0],
        dtype=np.int64,
    )
    limit_s = np.where(asked_s > 0, asked_s, default_s[plan.partition])
    # A limit that may be cut is the length of the row: such jobs take all of it (rule 2).
    jobs = snapshot.jobs
    cut = (jobs.deadline_s[plan.job] > 0) | (jobs.least_time_s[plan.job] > 0)
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
    )


def told(plan: Plan, prediction: Prediction) -> Plan:
    """The plan with a note on the predictions it used, for users (rule 6)."""
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
    """Each job's kill limit, and whether some partition that it named would not take that.

    Returns:
        The shortest and the longest that its partitions make of it, if it states none; and whether
        it is too long for some.
    """
    jobs = snapshot.jobs
    default_s, most_s = [], []
    for part in snapshot.partitions:
        default_s.append(part.default_time_s or part.max_time_s or UNLIMITED_S)
        most_s.append(part.max_time_s or NEVER)
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
    most = np.array(
        [min((most_s[at] for at in named), default=NEVER) for named in distinct] or [0],
        dtype=np.int64,
    )
    stated = jobs.time_limit_s > 0
    limit_s = np.where(stated, jobs.time_limit_s, default[:, 0])
    longest_s = np.where(stated, jobs.time_limit_s, default[:, 1])
    return limit_s, longest_s, limit_s > most[which]


def _reaches_closed_time(snapshot: Snapshot, limit_s: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which jobs would meet a reservation to come if they started now and took so long."""
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
    """A number for each value; equal ones have the same, which `distinct` tells."""
    return np.fromiter(
        (distinct.setdefault(value, len(distinct)) for value in values),
        dtype=np.intp,
        count=len(values),
    )
