# SPDX-License-Identifier: Apache-2.0
"""Lowers limits to constraints, one for each consumer, and jobs to their terms on them.

Rules
    1. A consumer that is named has the limits that name it and no others. One that is not has
       those for `EACH` of its kind, counted for itself.
    2. At each second, a limit on a resource that is in force overrides those on `EACH` resource.
       Several that are in force for the same resource all hold.
    3. Items are a constraint over all of the consumer's jobs that use the resource; running jobs
       count. An `EACH` resource is any of nodes or licences, but not "jobs" and "arrayjobs".
    4. Duration and area are bounds of one job. While such a limit is in force, a constraint is
       closed for jobs that ask for more: they are planned before or after it, or never.
    5. A percentage is of what is available at present: in the partition for a partition's limit,
       in the cluster for others.

Source: Keller, JSSPP 2017, section 3, Limit.
Deviates: the paper does not say whether an area is one request's or a sum over many; this reads
its example ("allows a consumer to request one core for 1024 hours") as one request's. "jobs" and
"arrayjobs" bound what runs at the same time; how many may wait is Slurm's matter.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bridge.model.rules.limits import EACH, ConsumerKind, Limit, Validity
from bridge.model.snapshot import Snapshot
from bridge.planning.requests.amounts import Amounts
from bridge.planning.site_rules.capacity_constraints import (
    UNBOUNDED,
    CapacityConstraintList,
    Mode,
    TermList,
)
from bridge.planning.site_rules.validity import windows
from bridge.units import NEVER, format_duration


class Sort(IntEnum):
    """The quantity that a limit bounds."""

    ITEMS = 0
    DURATION = 1
    AREA = 2


@dataclass(frozen=True)
class Horizon:
    """The period and timezone in which rules are evaluated."""

    now_s: int
    until_s: int
    timezone: str

    def windows(self, validity: Validity) -> NDArray[np.int64]:
        """(n, 2) int64 when it is in force."""
        return windows(validity, self.timezone, self.now_s, self.until_s)


def steps_of(now_s: int, several: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """The clock, and the instants after it at which any of some windows opens or closes."""
    edges = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *(w.ravel() for w in several)]))
    later: NDArray[np.int64] = edges[(edges > now_s) & (edges < NEVER)]
    return np.concatenate((np.array([now_s], dtype=np.int64), later))


def in_force(opened: NDArray[np.int64], starts: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of the steps lie in the windows."""
    odd: NDArray[np.bool_] = np.searchsorted(opened.ravel(), starts, side="right") % 2 == 1
    return odd


def simplified(
    starts: NDArray[np.int64], amounts: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The same function without steps that change nothing."""
    keep = np.concatenate(([True], amounts[1:] != amounts[:-1]))
    return starts[keep], amounts[keep]


@dataclass(frozen=True)
class _Shape:
    """One constraint of a consumer; `maximum` of a job's duration or area."""

    sort: Sort
    column: int
    maximum: int
    starts: NDArray[np.int64]
    amounts: NDArray[np.int64]


def _shapes(
    limits: Sequence[Limit], amounts: Amounts, available: NDArray[np.int64], horizon: Horizon
) -> list[_Shape]:
    """The constraints of one consumer."""
    found = []
    for column in range(len(amounts.names)):
        own = [limit for limit in limits if amounts.column(limit.resource) == column]
        rest = [
            limit for limit in limits if limit.resource == EACH and column < amounts.n_requested
        ]
        held = [*own, *rest]
        if not held:
            continue
        opened = [horizon.windows(limit.validity) for limit in held]
        starts = steps_of(horizon.now_s, opened)
        force = np.array([in_force(each, starts) for each in opened])
        force[len(own) :] &= ~force[: len(own)].any(axis=0)
        bounds: dict[tuple[Sort, int], NDArray[np.int64]] = {}
        for limit, on in zip(held, force, strict=True):
            for sort, maximum, amount in _bounds(limit, int(available[column])):
                unbounded = np.full(len(starts), UNBOUNDED, dtype=np.int64)
                function = bounds.setdefault((sort, maximum), unbounded)
                function[on] = np.minimum(function[on], amount)
        found += [
            _Shape(sort, column, maximum, *simplified(starts, function))
            for (sort, maximum), function in bounds.items()
            if (function != UNBOUNDED).any()
        ]
    return found


def _bounds(limit: Limit, available: int) -> Iterator[tuple[Sort, int, int]]:
    """Kind, bound per job, and the constraint for jobs beyond it."""
    if limit.items is not None:
        yield Sort.ITEMS, 0, limit.items.of(available)
    if limit.duration_s is not None:
        yield Sort.DURATION, limit.duration_s, 0
    if limit.area is not None:
        yield Sort.AREA, limit.area, 0


def _words(shape: _Shape, kind: ConsumerKind, name: str, amounts: Amounts) -> tuple[str, str, str]:
    """Key, label and refusal of a constraint."""
    who, what = f"{kind} {name}", amounts.names[shape.column]
    key = f"{kind}/{name}/{what}/{shape.sort.name.lower()}/{shape.maximum}"
    label = f"limit of {who} on {what}"
    if shape.sort is Sort.ITEMS:
        return key, label, ""
    if shape.sort is Sort.DURATION:
        bound = f"{what} for {format_duration(shape.maximum)} at most"
    else:
        bound = f"{shape.maximum / 3600:g} hours times {what} in one job at most"
    return key, f"{label}: {bound}", f"{who} may use {bound}"


@dataclass(frozen=True)
class _Layer:
    """At most one constraint for each consumer of a kind; -1: none."""

    kind: ConsumerKind
    sort: Sort
    column: int
    constraint: NDArray[np.int64]
    maximum: NDArray[np.int64]


class Consumers:
    """Users, accounts and partitions of a snapshot, numbered when a rule needs them."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._jobs, self._running = snapshot.jobs, snapshot.running
        self._partitions = snapshot.partitions

    @cached_property
    def names(self) -> dict[ConsumerKind, dict[str, int]]:
        jobs, running = self._jobs, self._running
        return {
            ConsumerKind.USER: _numbered(jobs.user, running.user),
            ConsumerKind.ACCOUNT: _numbered(jobs.account, running.account),
            ConsumerKind.PARTITION: {part.name: at for at, part in enumerate(self._partitions)},
        }

    def _numbers(self, kind: ConsumerKind, names: NDArray[np.object_]) -> NDArray[np.int64]:
        known = self.names[kind]
        return np.array([known[name] for name in names.tolist()], dtype=np.int64)

    @cached_property
    def user(self) -> NDArray[np.int64]:
        """(n_jobs,) of the waiting jobs."""
        return self._numbers(ConsumerKind.USER, self._jobs.user)

    @cached_property
    def account(self) -> NDArray[np.int64]:
        """(n_jobs,) of the waiting jobs."""
        return self._numbers(ConsumerKind.ACCOUNT, self._jobs.account)

    @cached_property
    def running(self) -> dict[ConsumerKind, NDArray[np.int64]]:
        """(n_running,) of the running jobs."""
        return {
            ConsumerKind.USER: self._numbers(ConsumerKind.USER, self._running.user),
            ConsumerKind.ACCOUNT: self._numbers(ConsumerKind.ACCOUNT, self._running.account),
            ConsumerKind.PARTITION: self._running.partition,
        }

    def of_jobs(
        self, rows: NDArray[np.int64], partition: NDArray[np.int64]
    ) -> dict[ConsumerKind, NDArray[np.int64]]:
        """For each kind (n,) which consumer each job belongs to; partition -1: none."""
        return {
            ConsumerKind.USER: self.user[rows],
            ConsumerKind.ACCOUNT: self.account[rows],
            ConsumerKind.PARTITION: partition,
        }


def _numbered(*columns: NDArray[np.object_]) -> dict[str, int]:
    """Numbers names in order of appearance."""
    names = dict.fromkeys(name for column in columns for name in column.tolist())
    return {name: number for number, name in enumerate(names)}


class LoweredLimits:
    """The limits of one snapshot's consumers."""

    def __init__(
        self,
        limits: Sequence[Limit],
        amounts: Amounts,
        consumers: Consumers,
        horizon: Horizon,
        constraints: CapacityConstraintList,
    ) -> None:
        self._amounts = amounts
        named: dict[tuple[ConsumerKind, str], list[Limit]] = defaultdict(list)
        for limit in limits:
            named[limit.kind, limit.name].append(limit)
        layers: dict[tuple[ConsumerKind, Sort, int, int], _Layer] = {}
        for kind in ConsumerKind:
            if not any(limit.kind is kind for limit in limits):
                continue
            shared: list[_Shape] | None = None  # shared by all that are not named
            for name, index in consumers.names[kind].items():
                own = named.get((kind, name)) if name != EACH else None
                each = named.get((kind, EACH), [])
                if kind is ConsumerKind.PARTITION:
                    shapes = _shapes(own or each, amounts, amounts.available_in(index), horizon)
                elif own:
                    shapes = _shapes(own, amounts, amounts.available, horizon)
                else:
                    if shared is None:
                        shared = _shapes(each, amounts, amounts.available, horizon)
                    shapes = shared
                counts: dict[tuple[Sort, int], int] = defaultdict(int)
                for shape in shapes:
                    key = (shape.sort, shape.column)
                    layer = layers.get((kind, *key, counts[key]))
                    if layer is None:
                        size = len(consumers.names[kind])
                        none = np.full(size + 1, -1, dtype=np.int64)  # the last: no consumer
                        layer = _Layer(kind, *key, none, np.zeros(size + 1, dtype=np.int64))
                        layers[kind, *key, counts[key]] = layer
                    counts[key] += 1
                    name_of, label, refusal = _words(shape, kind, name, amounts)
                    layer.constraint[index] = constraints.add(
                        shape.starts, shape.amounts, key=name_of, label=label, refusal=refusal
                    )
                    layer.maximum[index] = shape.maximum
        self._layers = [layers[key] for key in sorted(layers)]

    def add_terms(
        self,
        terms: TermList,
        who: dict[ConsumerKind, NDArray[np.int64]],
        used: NDArray[np.int64],
        time_limit_s: NDArray[np.int64],
    ) -> None:
        """Adds the terms of pending jobs.

        Args:
            who: for each kind (n,) the consumer of each job.
            used: (n, n_columns) the use of each.
            time_limit_s: (n,).
        """
        for layer in self._layers:
            constraint, amount = layer.constraint[who[layer.kind]], used[:, layer.column]
            bound = (constraint >= 0) & (amount > 0)
            mode = Mode.BOTH
            if layer.sort is not Sort.ITEMS:
                maximum = layer.maximum[who[layer.kind]]
                if layer.sort is Sort.AREA:
                    over = amount > maximum // np.maximum(time_limit_s, 1)
                else:
                    over = time_limit_s > maximum
                bound &= over
                amount, mode = np.ones_like(amount), Mode.CHECK
            jobs = np.flatnonzero(bound)
            terms.add(jobs, constraint[jobs], amount[jobs], np.full(len(jobs), mode, dtype=np.int8))

    def count_running(
        self, terms: TermList, who: dict[ConsumerKind, NDArray[np.int64]], used: NDArray[np.int64]
    ) -> None:
        """Adds the amounts of running jobs, which are never refused."""
        for layer in self._layers:
            if layer.sort is not Sort.ITEMS:
                continue
            constraint, amount = layer.constraint[who[layer.kind]], used[:, layer.column]
            jobs = np.flatnonzero((constraint >= 0) & (amount > 0))
            terms.add(
                jobs, constraint[jobs], amount[jobs], np.full(len(jobs), Mode.COUNT, dtype=np.int8)
            )
