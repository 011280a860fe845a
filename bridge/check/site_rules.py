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
    7. If several rows break a rule together, the last ones in the plan are blamed.

A sweep over all sums finds those that are exceeded; the rows to blame are then searched in each of
these. Validities are expanded by `bridge.planning.site_rules.validity`, which defines their
meaning.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridge.check.amounts import Counted, Ints
from bridge.model.job import WidthRule
from bridge.model.limits import (
    EACH,
    Bound,
    ConsumerKind,
    FreePool,
    Limit,
    NodeSet,
)
from bridge.model.plan import Plan
from bridge.model.resources import Arrangement
from bridge.model.site import Protection, Site
from bridge.model.snapshot import Snapshot
from bridge.planning.requests.features import parse_features
from bridge.units import NEVER, UNPLANNED

_Found = Iterator[tuple[int, str]]
_OPEN = 1 << 56  # more than all amounts together
_LAST_S = 1 << 40  # latest time that is distinguished, from the snapshot's clock on


def broken_rules(snapshot: Snapshot, site: Site, plan: Plan) -> list[tuple[int, str]]:
    """Finds the rows of a plan that break a rule of the site.

    Args:
        snapshot: that the plan was made for.
        site: limits, FreePools, protections.
        plan: its columns fit together and to the snapshot.

    Returns:
        Rows of the plan and what they break, each once. O(n log n) in what is counted.
    """
    rules = site.rules
    keeps = any(reservation.licences.any() for reservation in snapshot.reservations)
    if not (rules.limits or rules.free_pools or site.protect or keeps):
        return []
    rows = np.flatnonzero(
        (plan.start_s != NEVER) & (plan.start_s != UNPLANNED) & (plan.partition >= 0)
    )
    if not len(rows):
        return []
    world = Counted(snapshot, plan, rows, rules.timezone, site.cron_s)
    found = [
        *_limits(world, rules.limits),
        *_pools(world, [pool for pool in rules.free_pools if pool.nodes is None]),
        *_kept_nodes(world, [pool for pool in rules.free_pools if pool.nodes is not None]),
        *_protections(world, site.protect),
        *_reserved_licences(world),
    ]
    return list(dict.fromkeys(found))


# ---------------------------------------------------------------------- sums over time


@dataclass(frozen=True)
class _Sum:
    """Amounts to be summed over time against one bound.

    Attributes:
        rows: (k,) positions among the checked rows; the last ones are blamed first.
        amounts: (k,) of these rows.
        running: (m,) running jobs that count, and their amounts.
        bounds: (w, 3) windows [start, end), and the most that may be in use in them.
        text: the violation of a row that exceeds the bound.
    """

    rows: NDArray[np.intp]
    amounts: Ints
    running: NDArray[np.intp]
    held: Ints
    bounds: Ints
    text: str


def _overrun(world: Counted, sums: Sequence[_Sum]) -> _Found:
    """The rows that exceed these sums: one sweep over all, and a closer look at those exceeded."""
    if not sums:
        return
    key, begin, end, amount, judged = [], [], [], [], []
    for at, one in enumerate(sums):
        sizes = len(one.rows), len(one.running), len(one.bounds)
        key.append(np.full(sum(sizes), at))
        begin += [world.start_s[one.rows], np.full(sizes[1], world.now_s), one.bounds[:, 0]]
        end += [world.end_s[one.rows], world.running_end_s[one.running], one.bounds[:, 1]]
        # A bound is added as a holder of all but that much of an unbounded sum.
        amount += [one.amounts, one.held, np.maximum(_OPEN - one.bounds[:, 2], 0)]
        judged.append(np.arange(sum(sizes)) < sizes[0])
    exceeded = _exceeded(
        np.concatenate(key),
        _span(world, np.concatenate(begin)),
        _span(world, np.concatenate(end)),
        np.concatenate(amount),
        np.concatenate(judged),
    )
    for at in exceeded.tolist():
        for row in _latecomers(world, sums[at]):
            world.blamed[row] = True
            yield int(world.rows[row]), sums[at].text


def _span(world: Counted, instant: Ints) -> Ints:
    return np.clip(instant - world.now_s, 0, _LAST_S)


def _exceeded(key: Ints, begin: Ints, end: Ints, amount: Ints, judged: NDArray[np.bool_]) -> Ints:
    """The keys for which, at some second, too much is in use and a checked row is present."""
    keys = np.concatenate((key, key))
    when = np.concatenate((begin, end))
    order = np.argsort((keys << 41) | when)
    keys, when = keys[order], when[order]
    used: Ints = np.cumsum(np.concatenate((amount, -amount))[order])
    there: Ints = np.cumsum(np.concatenate((judged, -judged.astype(np.int64)))[order])
    # What holds from an instant on is known after all that begins and ends at it.
    last = np.append((keys[1:] != keys[:-1]) | (when[1:] != when[:-1]), True)
    found: Ints = keys[last & (used > _OPEN) & (there > 0)]
    return np.unique(found)


def _latecomers(world: Counted, one: _Sum) -> list[int]:
    """The rows that no longer fit beside those before them (rule 7)."""
    fresh = ~world.blamed[one.rows]
    rows, amounts = one.rows[fresh], one.amounts[fresh]
    spans = [
        (_span(world, begin), _span(world, end), amount)
        for begin, end, amount in (
            (world.start_s[rows], world.end_s[rows], amounts),
            (np.full(len(one.running), world.now_s), world.running_end_s[one.running], one.held),
            (one.bounds[:, 0], one.bounds[:, 1], np.maximum(_OPEN - one.bounds[:, 2], 0)),
        )
    ]
    instants = np.unique(np.concatenate([edge for begin, end, _ in spans for edge in (begin, end)]))
    change = np.zeros(len(instants), dtype=np.int64)
    for begin, end, amount in spans:
        np.add.at(change, np.searchsorted(instants, begin), amount)
        np.add.at(change, np.searchsorted(instants, end), -amount)
    used = np.cumsum(change)  # from each instant to the next, by all of them
    over = np.concatenate(([0], np.cumsum(used > _OPEN)))
    first, last = (np.searchsorted(instants, edge) for edge in spans[0][:2])
    suspects = np.flatnonzero(over[last] > over[first])
    for at in suspects.tolist():
        used[first[at] : last[at]] -= amounts[at]
    late = []
    for at in suspects.tolist():
        own = slice(first[at], last[at])
        if (used[own] + amounts[at] > _OPEN).any():
            late.append(int(rows[at]))
        else:
            used[own] += amounts[at]
    return late


# ---------------------------------------------------------------------- limits


def _limits(world: Counted, limits: Sequence[Limit]) -> _Found:
    """Rule 2."""
    sums: list[_Sum] = []
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
    yield from _overrun(world, sums)


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


def _limits_of(world: Counted, who: _Consumer, limits: Sequence[Limit], sums: list[_Sum]) -> _Found:
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
                most = min(limit.items.of(int(there[column])), _OPEN)
                bounds.append(np.column_stack((times, np.full(len(times), most))))
            over = np.zeros(len(rows), dtype=bool)
            if limit.duration_s is not None:
                over |= world.limit_s[rows] > limit.duration_s
            if limit.area is not None:
                over |= amounts > limit.area // np.maximum(world.limit_s[rows], 1)
            for row in rows[over & _meets(world, rows, times)].tolist():
                yield int(world.rows[row]), f"is longer than the limit of {what} lets one job be"
        for each in bounds:
            text = f"is more than the limit of {what} leaves"
            held = world.running[who.running, column]
            sums.append(_Sum(rows, amounts, who.running, held, each, text))


def _without(times: Ints, others: Sequence[Ints]) -> Ints:
    """The parts of some windows that lie in none of the others."""
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


def _meets(world: Counted, rows: NDArray[np.intp], times: Ints) -> NDArray[np.bool_]:
    """Which rows have a second in some windows; those are ascending and apart."""
    if not len(times):
        return np.zeros(len(rows), dtype=bool)
    following = np.searchsorted(times[:, 1], world.start_s[rows], side="right")
    begins = np.append(times[:, 0], NEVER)[following]
    found: NDArray[np.bool_] = begins < world.end_s[rows]
    return found


# ---------------------------------------------------------------------- FreePools


def _pools(world: Counted, pools: Sequence[FreePool]) -> _Found:
    """Rule 3."""
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
            _Sum(
                rows,
                world.taken[rows, column],
                running,
                world.running[running, column],
                np.column_stack((times, np.full(len(times), left))),
                f"takes {world.columns[column]} that FreePool {pool.name} keeps free",
            )
        )
    yield from _overrun(world, sums)


def _kept_nodes(world: Counted, pools: Sequence[FreePool]) -> _Found:
    """Rule 4."""
    for pool in pools:
        times = world.windows(pool.validity)
        kept = _nodes_meant(world, pool.nodes or NodeSet())
        outside = _meets(world, np.arange(len(world.rows)), times)
        for access in pool.access:
            if not access.chunk:
                outside &= ~world.lets_in(access)
        there = kept[world.node] & outside[world.entry_row]
        if not there.any():
            continue
        by_chunk = [(access.chunk, world.lets_in(access)) for access in pool.access if access.chunk]
        text = f"uses nodes that FreePool {pool.name} keeps free"
        known: dict[tuple[object, ...], bool] = {}
        for at in np.flatnonzero(there).tolist():
            row = int(world.entry_row[at])
            conditions = [bounds for bounds, meets in by_chunk if meets[row]]
            chunks = _chunks_there(world, at) if conditions else ()
            alike = (tuple(conditions), chunks)
            if alike not in known:
                known[alike] = bool(conditions) and all(
                    any(_chunk_meets(world, bounds, chunk) for bounds in conditions)
                    for chunk in chunks
                )
            if not known[alike]:
                yield int(world.rows[row]), text


def _chunk_meets(world: Counted, bounds: Sequence[Bound], chunk: tuple[int, ...]) -> bool:
    """Whether a chunk meets all bounds; it requests nothing of resources that are not on nodes."""
    for bound in bounds:
        column = world.column(bound.what)
        amount = chunk[column] if 0 <= column < len(chunk) else 0
        if not bound.least <= amount <= bound.most:
            return False
    return True


def _chunks_there(world: Counted, at: int) -> tuple[tuple[int, ...], ...]:
    """The units of a row on a node: its chunks there, a task, or all that it has there.

    Amounts per node are part of each chunk there. Packed chunks are one unit.
    """
    row = int(world.entry_row[at])
    jobs, job = world.snapshot.jobs, int(world.job[row])
    asked = jobs.chunks[job]
    if asked is not None:
        wants = np.array(asked.wants, dtype=np.int64) + np.array(asked.per_node, dtype=np.int64)
        kinds = asked.request.kinds
        if asked.request.place.arrangement is Arrangement.PACK or kinds[0].host:
            counts = np.array([kind.count for kind in kinds], dtype=np.int64)
            return (tuple((counts @ wants).tolist()),)
        groups = world.plan.groups
        there = [0] if groups is None else np.flatnonzero(groups[world.entry[at]]).tolist() or [0]
        return tuple(tuple(wants[kind].tolist()) for kind in there)
    tasks = int(jobs.tasks[job])
    partition = world.snapshot.partitions[int(world.partition[row])]
    spread = (
        jobs.per_node[job].any()
        or jobs.required[job]
        or jobs.width_rule[job] != WidthRule.ANY
        or max(int(jobs.min_nodes[job]), partition.min_nodes) > 1
        or min(int(jobs.max_nodes[job]), partition.max_nodes or NEVER) < tasks
    )
    if tasks and not spread:
        return (tuple(jobs.per_task[job].tolist()),)
    return (tuple(world.want[at].tolist()),)


def _nodes_meant(world: Counted, nodes: NodeSet) -> NDArray[np.bool_]:
    """(n_nodes,) which nodes meet all that is stated."""
    table = world.snapshot.nodes
    meant = np.ones(len(table), dtype=bool)
    if nodes.names:
        wanted = set(nodes.names)
        meant &= np.array([name in wanted for name in table.names], dtype=bool)
    if nodes.features:
        alternatives = parse_features(nodes.features)
        meant &= np.array(
            [any(matches(each) for matches in alternatives) for each in table.features], dtype=bool
        )
    if nodes.having:
        column = world.column(nodes.having)
        has = 0 <= column < len(world.snapshot.resources)
        meant &= (table.capacity[:, column] > 0) if has else False
    return meant


# ---------------------------------------------------------------------- protections


def _protections(world: Counted, protect: Protection) -> _Found:
    """Rule 5."""
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
                most = int(capacity[node, column] - keep[node])
                sums.append(
                    _Sum(
                        world.entry_row[own],
                        outside[own, column],
                        holder[beside],
                        running.use[beside, column],
                        np.array([[world.now_s, NEVER, most]], dtype=np.int64),
                        text,
                    )
                )
            yield from _overrun(world, sums)
        alone = keeps[world.node] & (world.want[:, mine] == 0) & world.whole[world.entry_row]
        for row in np.unique(world.entry_row[alone]).tolist():
            yield int(world.rows[row]), f"takes a node whole that keeps some for {protected}"


def _unprotected(world: Counted, at: int, protected: int) -> Ints:
    """(R,) the use of a node by chunks that do not request a protected resource others request."""
    none = np.zeros(world.want.shape[1], dtype=np.int64)
    asked = world.snapshot.jobs.chunks[world.job[world.entry_row[at]]]
    groups = world.plan.groups
    if asked is None or groups is None or asked.request.place.arrangement is Arrangement.PACK:
        return none
    for kind, count in enumerate(groups[world.entry[at], : len(asked.wants)].tolist()):
        each = np.array(asked.wants[kind], dtype=np.int64) + np.array(asked.per_node)
        if count and not each[protected]:
            none += count * each
    return none


# ---------------------------------------------------------------------- licences


def _reserved_licences(world: Counted) -> _Found:
    """Rule 6: jobs outside a reservation must leave what it holds; its own jobs need not."""
    snapshot, sums = world.snapshot, []
    reservation = snapshot.jobs.reservation[world.job]
    for at, name in enumerate(snapshot.licences):
        column = world.columns.index(name, len(snapshot.resources))
        kept = [int(r.licences[at]) if at < len(r.licences) else 0 for r in snapshot.reservations]
        wants = world.asked[:, column] > 0
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
                amounts = world.asked[rows, column]
                sums.append(_Sum(rows, amounts, running, held, bounds.astype(np.int64), text))
    yield from _overrun(world, sums)
