# SPDX-License-Identifier: Apache-2.0
"""Checks whether a plan keeps the rules of its site, without code of the planners.

    for row, text in broken_rules(snapshot, site, plan): ...

Limits, FreePools and protections are checked as stated in docs/LIMITS.md, for every row with a
start, at every second of it, together with the running jobs. Violations by running jobs alone are
not a fault of the plan, but nothing may be added to them.

Rules
    1. A row uses the total of its nodes, tasks and chunks; with whole nodes, all CPUs and all
       memory of these nodes, if that is more. A running job uses what it holds.
    2. At every second the rows and the running jobs of a consumer together stay within each limit
       in force. Bounds on the time limit and on the area apply to each row by itself, at every
       second that they are in force.
    3. At every second the rows without access to a FreePool, and all running jobs, stay within what
       it leaves. Rows with access do not count against those without: planned after them, they
       would use the kept part, which they are allowed to.
    4. A row without access never uses a node that a FreePool keeps. If a condition is on chunks,
       each chunk on kept nodes meets one.
    5. Chunks that do not request a protected resource, together with the running jobs that hold
       none of it, stay within what a node does not keep for others. They never hold a node whole
       that keeps anything.
    6. Licences held by a reservation are not available to other jobs during its time.
    7. Further rules, of extensions, hold by their own checks (`bridge.extensions.port.Check`).
    8. If several rows break a rule together, the last ones in the plan are blamed
       (`bridge.check.sums`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridge.check.amounts import CheckedAmounts, Ints
from bridge.check.kept_nodes import kept_nodes
from bridge.check.sums import OPEN, Found, Sum, meets, overrun
from bridge.extension_packages import broken_rows
from bridge.model.plan import Plan
from bridge.model.resources import Arrangement
from bridge.model.rules.limits import (
    EACH,
    ConsumerKind,
    FreePool,
    Limit,
)
from bridge.model.rules.site import Protection, Site
from bridge.model.snapshot import Snapshot
from bridge.units import NEVER, UNPLANNED


def broken_rules(snapshot: Snapshot, site: Site, plan: Plan) -> list[tuple[int, str]]:
    """Finds the rows of a plan that break a rule of the site.

    Args:
        site: limits, FreePools, protections.
        plan: its columns fit together and to the snapshot.

    Returns:
        Rows of the plan and the rules that they break, each once. O(n log n) in what is counted.
    """
    rules = site.rules
    keeps = any(reservation.licences.any() for reservation in snapshot.reservations)
    if not (rules.limits or rules.free_pools or site.protect or keeps or site.binds_starts):
        return []
    rows = np.flatnonzero(
        (plan.start_s != NEVER) & (plan.start_s != UNPLANNED) & (plan.partition >= 0)
    )
    if not len(rows):
        return []
    world = CheckedAmounts(snapshot, plan, rows, rules.timezone, site.cron_s)
    found = [
        *_limits(world, rules.limits),
        *_pools(world, [pool for pool in rules.free_pools if pool.nodes is None]),
        *kept_nodes(world, [pool for pool in rules.free_pools if pool.nodes is not None]),
        *_protections(world, site.protect),
        *_reserved_licences(world),
        *broken_rows(world, site),
    ]
    return list(dict.fromkeys(found))


# ---------------------------------------------------------------------- limits


def _limits(world: CheckedAmounts, limits: Sequence[Limit]) -> Found:
    """Where a limit is exceeded (rule 2)."""
    sums: list[Sum] = []
    for kind in ConsumerKind:
        by_name: dict[str, list[Limit]] = {}
        for limit in limits:
            if limit.kind is kind:
                by_name.setdefault(limit.name, []).append(limit)
        if not by_name:
            continue
        names, of_row, of_running = world.consumers(kind)
        each = by_name.pop(EACH, [])
        rows_of = _members(of_row, len(names))
        running_of = _members(of_running, len(names))
        for number, name in enumerate(names):
            own = by_name.get(name, each)  # a named consumer has only the limits that name it
            if own and len(rows_of[number]):
                who = _Consumer(kind, name, number, rows_of[number], running_of[number])
                yield from _limits_of(world, who, own, sums)
    yield from overrun(world, sums)


def _members(of: Ints, count: int) -> list[NDArray[np.intp]]:
    """The positions of each number below `count`, ascending."""
    order = np.argsort(of, kind="stable")
    return np.split(order, np.searchsorted(of[order], np.arange(count + 1)))[1:-1]


@dataclass(frozen=True)
class _Consumer:
    kind: ConsumerKind
    name: str
    number: int
    rows: NDArray[np.intp]
    running: NDArray[np.intp]


def _limits_of(
    world: CheckedAmounts, who: _Consumer, limits: Sequence[Limit], sums: list[Sum]
) -> Found:
    """Checks the bounds of single rows; adds the sums to those that are checked together."""
    taken = world.taken[who.rows]
    for column in np.flatnonzero(taken.any(axis=0)).tolist():
        exact = [limit for limit in limits if world.column(limit.resource) == column]
        others = [
            limit for limit in limits if limit.resource == EACH and column < world.n_requested
        ]
        in_force = [world.windows(limit.validity) for limit in exact]
        users = taken[:, column] > 0
        rows, amounts = who.rows[users], taken[users, column]
        bounds = []
        for limit in (*exact, *others):
            times = world.windows(limit.validity)
            if limit.resource == EACH:
                times = _without(times, in_force)
            what = f"{who.kind} {who.name} on {world.columns[column]}"
            if limit.items is not None:
                there = world.available(who.number if who.kind is ConsumerKind.PARTITION else -1)
                maximum = min(limit.items.of(int(there[column])), OPEN)
                bounds.append(np.column_stack((times, np.full(len(times), maximum))))
            over = np.zeros(len(rows), dtype=bool)
            if limit.duration_s is not None:
                over |= world.limit_s[rows] > limit.duration_s
            if limit.area is not None:
                over |= amounts > limit.area // np.maximum(world.limit_s[rows], 1)
            for row in rows[over & meets(world, rows, times)].tolist():
                yield int(world.rows[row]), f"is longer than the limit of {what} allows one job"
        for each in bounds:
            text = f"is more than the limit of {what} leaves"
            held = world.running[who.running, column]
            sums.append(Sum(rows, amounts, who.running, held, each, text))


def _without(times: Ints, others: Sequence[Ints]) -> Ints:
    """The parts of some windows that lie outside all others."""
    for closed in others:
        parts = []
        for start, end in times.tolist():
            at = start
            for begin, until in closed.tolist():
                if begin >= end:
                    break
                if at < begin:
                    parts.append((at, begin))
                at = max(at, until)
            if at < end:
                parts.append((at, end))
        times = np.array(parts, dtype=np.int64).reshape(-1, 2)
    return times


# ---------------------------------------------------------------------- FreePools


def _pools(world: CheckedAmounts, pools: Sequence[FreePool]) -> Found:
    """Where rows without access use what a FreePool keeps (rule 3)."""
    sums = []
    for pool in pools:
        column, times = world.column(pool.resource), world.windows(pool.validity)
        if column < 0 or not len(times):
            continue
        there = int(world.available()[column])
        left = max(there - pool.keep.of(there, round_up=True), 0)
        outside = world.taken[:, column] > 0
        for access in pool.access:
            outside &= ~world.lets_in(access)
        rows = np.flatnonzero(outside)
        running = np.flatnonzero(world.running[:, column])
        sums.append(
            Sum(
                rows,
                world.taken[rows, column],
                running,
                world.running[running, column],
                np.column_stack((times, np.full(len(times), left))),
                f"takes {world.columns[column]} that FreePool {pool.name} keeps free",
            )
        )
    yield from overrun(world, sums)


# ---------------------------------------------------------------------- protections


def _protections(world: CheckedAmounts, protect: Protection) -> Found:
    """Where chunks use what a protection keeps for others (rule 5)."""
    resources, capacity = world.snapshot.resources, world.snapshot.nodes.capacity
    running = world.snapshot.running
    holder = np.repeat(np.arange(len(running)), np.diff(running.indptr))
    for protected, kept in protect.items():
        mine = world.column(protected)
        if not 0 <= mine < len(resources):
            continue
        outside = world.want.copy()
        for at in np.flatnonzero(world.want[:, mine] > 0).tolist():
            outside[at] = _unprotected(world, at, mine)
        theirs = running.use[:, mine] == 0
        keeps = np.zeros(len(capacity), dtype=bool)
        for name, amount in kept.items():
            column = world.column(name)
            if not 0 <= column < len(resources) or column == mine or not amount:
                continue
            keep = np.where(capacity[:, mine] > 0, np.minimum(capacity[:, column], amount), 0)
            keeps |= keep > 0
            text = f"takes {name} that a node keeps for jobs with {protected}"
            sums = []
            entries = np.flatnonzero((keep[world.node] > 0) & (outside[:, column] > 0))
            held = np.flatnonzero((keep[running.nodes] > 0) & theirs)
            of_node = _members(world.node[entries].astype(np.int64), len(capacity))
            held_of = _members(running.nodes[held].astype(np.int64), len(capacity))
            for node in np.unique(world.node[entries]).tolist():
                own, beside = entries[of_node[node]], held[held_of[node]]
                maximum = int(capacity[node, column] - keep[node])
                sums.append(
                    Sum(
                        world.entry_row[own],
                        outside[own, column],
                        holder[beside],
                        running.use[beside, column],
                        np.array([[world.now_s, NEVER, maximum]], dtype=np.int64),
                        text,
                    )
                )
            yield from overrun(world, sums)
        alone = keeps[world.node] & (world.want[:, mine] == 0) & world.whole[world.entry_row]
        for row in np.unique(world.entry_row[alone]).tolist():
            yield int(world.rows[row]), f"takes a node whole that keeps some for {protected}"


def _unprotected(world: CheckedAmounts, at: int, protected: int) -> Ints:
    """(R,) the use of a node by chunks that do not request a protected resource others request."""
    none = np.zeros(world.want.shape[1], dtype=np.int64)
    requested = world.snapshot.jobs.chunks[world.job[world.entry_row[at]]]
    groups = world.plan.groups
    if (
        requested is None
        or groups is None
        or requested.request.place.arrangement is Arrangement.PACK
    ):
        return none
    for kind, count in enumerate(groups[world.entry[at], : len(requested.wants)].tolist()):
        each = np.array(requested.wants[kind], dtype=np.int64) + np.array(requested.per_node)
        if count and not each[protected]:
            none += count * each
    return none


# ---------------------------------------------------------------------- licences


def _reserved_licences(world: CheckedAmounts) -> Found:
    """Rule 6: jobs outside a reservation must leave what it holds; its own jobs need not."""
    snapshot, sums = world.snapshot, []
    reservation = snapshot.jobs.reservation[world.job]
    for at, name in enumerate(snapshot.licences):
        column = world.columns.index(name, len(snapshot.resources))
        kept = [int(r.licences[at]) if at < len(r.licences) else 0 for r in snapshot.reservations]
        wants = world.requested[:, column] > 0
        within = np.where(np.array([*(count > 0 for count in kept), False])[reservation],
                          reservation, -1)  # fmt: skip
        running = np.flatnonzero(world.running[:, column])
        for own in (-1, *np.flatnonzero(kept).tolist()):
            others = [
                (max(r.start_s, world.now_s), r.end_s, count)
                for keeper, (r, count) in enumerate(zip(snapshot.reservations, kept, strict=True))
                if count and keeper != own
            ]
            edges = sorted({world.now_s, NEVER, *(edge for each in others for edge in each[:2])})
            edges = [edge for edge in edges if edge >= world.now_s]
            total = int(snapshot.licence_total[at])
            left = [total - sum(n for a, b, n in others if a <= edge < b) for edge in edges[:-1]]
            bounds = np.column_stack((edges[:-1], edges[1:], np.maximum(left, 0)))
            rows = np.flatnonzero(wants & (within == -1))
            if own >= 0:
                rows = np.concatenate((rows, np.flatnonzero(wants & (within == own))))
            if any(kept):
                text = f"takes {name} that a reservation keeps"
                held = world.running[running, column]
                amounts = world.requested[rows, column]
                sums.append(Sum(rows, amounts, running, held, bounds.astype(np.int64), text))
    yield from overrun(world, sums)
