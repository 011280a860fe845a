# SPDX-License-Identifier: Apache-2.0
"""Makes the instance of the first jobs of a cycle, for constraint programming models.

    window = choose(planner.planned, asked, most_jobs=20, max_units=64)
    instance = window.instance      numbers only: units, requests, nodes, use over time

Terms (see `bridge.papers.dispatch.instance`)
    seat        if some jobs share nodes and others do not, nodes have seats: a unit that shares
                its node takes one, any other unit takes all of them.
    used        by running jobs, with their remaining time (at least a second), closed times, and
                jobs that keep their placements.

Rules
    1. The window is the first rows of the order that have a placement, at most `most_jobs` and
       `max_units`. With `startable` it has only those that could start now if no other job
       waited; the others are planned around it.
    2. A row within the window that the models cannot represent keeps its greedy placement, so that
       it is not overtaken. These are rows with licences, a reservation, a deadline or a fixed
       start, rows bound by limits or FreePools, rows that may have more nodes than they need, and
       exclusive rows with several units on a node. Rows with a fixed start always keep theirs.
       Rows of jobs that are not yet eligible are planned around the window.
    3. Of several alternatives or layouts a row has that of its greedy placement. In this case, if
       tasks could be spread differently over nodes, and if a row keeps its placement, the window is
       not `exact`: a bound proved for its instance does not hold for its jobs.
    4. Times count from now. Amounts are divided by their greatest common divisor.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from math import gcd
from operator import floordiv

import numpy as np
from numpy.typing import NDArray

from bridge.model.resources import Arrangement
from bridge.papers.dispatch.instance import (
    ALL,
    Instance,
    ResourceUnit,
    Span,
    Unavailable,
    WindowJob,
    summed,
)
from bridge.planning.queue.layout_options import Layout
from bridge.planning.queue.time_windows import not_yet_eligible
from bridge.planning.scheduler.placements import Placement
from bridge.planning.scheduler.planned_rows import PlannedRows

SEAT = "seat"


@dataclass(frozen=True)
class DispatchWindow:
    """An instance, and its relation to the book.

    Attributes:
        rows: (J,) positions in `Rows.plannable` of its jobs.
        fixed: rows that keep their greedy placements; all others are planned around the window.
        exact: the instance represents all options of its jobs.
        settled: each of its jobs has its earliest possible start, whatever the others do.
        nodes: (N,) node indexes of its nodes.
        kept: (J,) the jobs' greedy placements in the book.
    """

    instance: Instance
    rows: tuple[int, ...]
    fixed: tuple[int, ...]
    exact: bool
    settled: bool
    nodes: NDArray[np.int64]
    kept: tuple[Placement, ...]

    def placement_of(self, i: int, nodes: Sequence[int]) -> Placement:
        """The placement of a job on other nodes, for the book.

        Args:
            i: index of the job in the instance.
            nodes: the nodes of each of its units, positions in the instance's nodes.
        """
        kept, units = self.kept[i], self.instance.jobs[i].units
        groups = kept.layout.groups
        chunks: dict[tuple[int, int], int] = {}
        for unit, node in zip(units, nodes, strict=True):
            at = int(self.nodes[node])
            if len(units) == 1:  # packed: chunks of all groups
                chunks |= {(at, number): group.count for number, group in enumerate(groups)}
            else:
                chunks[at, unit.group] = chunks.get((at, unit.group), 0) + 1
        return replace(
            kept,
            nodes=np.array([node for node, _ in chunks], dtype=np.int32),
            groups=np.array([group for _, group in chunks], dtype=np.int32),
            chunks=np.array(list(chunks.values()), dtype=np.int32),
        )


def choose(
    planned: PlannedRows,
    rank: NDArray[np.int32],
    *,
    most_jobs: int,
    max_units: int,
    startable: bool = False,
    without: Collection[int] = (),
) -> DispatchWindow | None:
    """Makes the window of the first rows of a cycle that is planned greedily.

    Args:
        planned: every row with a placement is booked at it.
        rank: (n_nodes,) nodes of lower rank first.
        most_jobs: rule 1.
        max_units: rule 1.
        startable: rule 1.
        without: rows that keep their placements.

    Returns:
        None: no row can be represented.
    """
    rows: list[int] = []
    fixed: list[int] = []
    jobs, job = planned.rows.snapshot.jobs, planned.rows.job[planned.rows.plannable]
    early = not_yet_eligible(jobs, planned.rows.snapshot.now_s)[job]
    everyone = np.flatnonzero(planned.has_start(np.arange(len(job))) & ~early)
    possible = set(_expressible(planned, everyone)) - set(without)
    present = Present(planned) if startable else None
    n_units = 0
    for row in everyone.tolist():
        choice, layout = planned.layout_choice(row)
        if row not in possible or not _sayable(planned, row, choice, layout):
            fixed.append(row)
            continue
        if present is not None and not present.fits(row, layout):
            continue
        units = sum(group.count for group in layout.groups)
        if units > max_units:  # too large for any window: it keeps its placement
            fixed.append(row)
            continue
        if n_units + units > max_units:
            break
        rows.append(row)
        n_units += units
        if len(rows) == most_jobs:
            break
    if not rows:
        return None
    fixed = [row for row in fixed if row < rows[-1] or jobs.fixed[job[row]]]
    placements = list(planned.placements_of(np.array(rows, dtype=np.intp)))
    return _Builder(planned, rank, rows, placements, fixed).window()


class Present:
    """The amounts that running jobs leave free now."""

    def __init__(self, planned: PlannedRows) -> None:
        self._planned, self._snapshot = planned, planned.rows.snapshot
        snapshot, running = self._snapshot, self._snapshot.running
        owner = np.repeat(np.arange(len(running)), np.diff(running.indptr))
        self._free = snapshot.nodes.capacity.copy()
        np.subtract.at(self._free, running.nodes, running.use)
        self._free[running.nodes[running.exclusive[owner]]] = 0
        self._open = np.ones(len(snapshot.nodes), dtype=bool)
        for reservation in snapshot.reservations:
            if reservation.start_s <= snapshot.now_s < reservation.end_s:
                self._open[reservation.nodes] = False
        self._shared = self._open.copy()
        self._shared[running.nodes[running.exclusive[owner]]] = False
        self._idle = self._open.copy()
        self._idle[running.nodes] = False
        self._known: dict[int, bool] = {}

    def fits(self, row: int, layout: Layout) -> bool:
        """Whether a row could start now on such nodes if no other job waited."""
        if self._planned.not_before_s(row) > self._snapshot.now_s:
            return False
        known = self._known.get(id(layout))
        if known is None:
            known = self._known[id(layout)] = self._fits(layout)
        return known

    def _fits(self, layout: Layout) -> bool:
        eligibility = self._planned.rows.eligibility
        for group, want in zip(layout.groups, layout.together(), strict=True):
            if eligibility.classes.opens_s(group.class_) > self._snapshot.now_s:
                return False
            nodes = eligibility.classes.mask(group.class_)
            nodes = nodes & (self._idle if layout.exclusive else self._shared)
            wanted = np.array(want, dtype=np.int64)
            here = wanted > 0
            room = np.full(int(nodes.sum()), group.count, dtype=np.int64)
            if here.any():
                free = self._free[nodes][:, here]
                room = np.minimum(room, (free // wanted[here]).min(axis=1))
            if layout.arrangement is Arrangement.SCATTER:
                room = np.minimum(room, 1)
            elif group.max_per_node:
                room = np.minimum(room, group.max_per_node)
            needed = 1 if layout.arrangement is Arrangement.PACK else group.count
            if int(room.sum()) < needed:
                return False
        return True


def _expressible(planned: PlannedRows, requested: NDArray[np.intp]) -> list[int]:
    """Rows that the models can represent, by their jobs' columns (rule 2)."""
    jobs = planned.rows.snapshot.jobs
    job = planned.rows.job[planned.rows.plannable[requested]]
    able = ~jobs.licences[job].any(axis=1) if jobs.licences.shape[1] else np.ones(len(job), bool)
    able &= ~planned.bound(requested)
    able &= (jobs.reservation[job] < 0) & (jobs.deadline_s[job] == 0) & ~jobs.fixed[job]
    found: list[int] = requested[able].tolist()
    return found


def _sayable(planned: PlannedRows, row: int, choice: int, layout: Layout) -> bool:
    """Whether the models can represent its layout (rule 2)."""
    options = planned.options(row)
    if options.wider or choice >= len(options.minimum):
        return False
    alone = layout.arrangement is Arrangement.FREE and layout.exclusive
    return not alone or (len(layout.groups) == 1 and layout.groups[0].count == 1)


def _exact(planned: PlannedRows, row: int, layout: Layout) -> bool:
    """Whether its layout is the row's only option (rule 3)."""
    if not planned.simple(row):
        return False
    spread = layout.arrangement is Arrangement.SCATTER and any(
        group.tasks and group.kind < 0 for group in layout.groups
    )
    if not spread:
        return True
    at = planned.candidate(row)
    alternatives = planned.rows.alternatives
    widths = {int(alternatives.min_nodes[at]), int(alternatives.max_nodes[at]), layout.nodes}
    return len(widths) == 1 and (layout.nodes == 1 or all(g.tasks == 1 for g in layout.groups))


class _Builder:
    """Builds the numbers of one window."""

    def __init__(
        self,
        planned: PlannedRows,
        rank: NDArray[np.int32],
        rows: list[int],
        kept: list[Placement],
        fixed: list[int],
    ) -> None:
        self.planned, self.rank = planned, rank
        self.rows, self.kept, self.fixed = rows, kept, fixed
        self.snapshot = planned.rows.snapshot
        masks = [
            planned.rows.eligibility.classes.mask(group.class_)
            for placement in kept
            for group in placement.layout.groups
        ]
        self.nodes = np.flatnonzero(np.logical_or.reduce(masks)).astype(np.int64)
        shares = [not placement.layout.exclusive for placement in kept]
        self.real = np.zeros(0, dtype=np.int64)
        if any(shares):
            wanted = np.zeros(len(self.snapshot.resources), dtype=bool)
            for placement in kept:
                if not placement.layout.exclusive:
                    for group in placement.layout.groups:
                        wanted |= np.array(group.want) > 0
            self.real = np.flatnonzero(wanted)
        units = [
            1 if placement.layout.arrangement is Arrangement.PACK
            else sum(group.count for group in placement.layout.groups)
            for placement in kept
        ]  # fmt: skip
        # One seat more than all shared units: running shared jobs take one, too.
        self.seats = 0
        if not all(shares) or not len(self.real):
            self.seats = 1 + sum(n for n, share in zip(units, shares, strict=True) if share)

    def window(self) -> DispatchWindow:
        snapshot = self.snapshot
        capacity = snapshot.nodes.capacity[self.nodes][:, self.real]
        taken = self._taken()
        scale = self._scale(capacity, taken)
        capacity = capacity // scale
        names = [snapshot.resources[column] for column in self.real.tolist()]
        if self.seats:
            capacity = np.column_stack((capacity, np.full(len(capacity), self.seats)))
            names.append(SEAT)
            scale = np.append(scale, 1)
        by = scale.tolist()
        known: dict[tuple[object, ...], tuple[Unavailable, ...]] = {}
        used: list[tuple[Unavailable, ...]] = []
        for spans, maximum in zip(taken, capacity.tolist(), strict=True):
            key = (*spans, *maximum)
            if key not in known:
                scaled = [(a, b, tuple(map(floordiv, amount, by))) for a, b, amount in spans]
                known[key] = summed(scaled, maximum)
            used.append(known[key])
        jobs = tuple(
            self._job(row, placement, scale)
            for row, placement in zip(self.rows, self.kept, strict=True)
        )
        instance = Instance(
            jobs, tuple(names), capacity, tuple(used), self.rank[self.nodes].astype(np.int64)
        )
        now_s, placed = self.snapshot.now_s, list(zip(self.rows, self.kept, strict=True))
        return DispatchWindow(
            instance,
            tuple(self.rows),
            tuple(self.fixed),
            exact=not self.fixed
            and all(_exact(self.planned, row, placement.layout) for row, placement in placed),
            settled=all(
                placement.start_s <= max(self.planned.not_before_s(row), now_s)
                for row, placement in placed
            ),
            nodes=self.nodes,
            kept=tuple(self.kept),
        )

    # ------------------------------------------------------------------ what is taken already

    def _taken(self) -> list[list[Span]]:
        """For each node the spans in which resources are unavailable; unscaled, with seats."""
        planned, now_s = self.planned, self.snapshot.now_s
        at = np.full(len(self.snapshot.nodes), -1, dtype=np.int64)
        at[self.nodes] = np.arange(len(self.nodes))
        spans: list[list[Span]] = [[] for _ in self.nodes]
        running = self.snapshot.running
        owner = np.repeat(np.arange(len(running)), np.diff(running.indptr))
        there = np.flatnonzero(at[running.nodes] >= 0)
        ends = np.maximum(running.end_s - now_s, 1)
        for entry in there.tolist():
            job = int(owner[entry])
            amount = self._amount(running.use[entry], exclusive=bool(running.exclusive[job]))
            spans[at[running.nodes[entry]]].append((0, int(ends[job]), amount))
        rows = np.array(self.fixed, dtype=np.intp)
        for row, placement in zip(self.fixed, planned.placements_of(rows), strict=True):
            start_s = placement.start_s - now_s
            end_s = start_s + planned.length_s(row)
            wants = np.array([group.want for group in placement.layout.groups], dtype=np.int64)
            columns = (
                placement.nodes.tolist(),
                placement.groups.tolist(),
                placement.chunks.tolist(),
            )
            for node, group, chunks in zip(*columns, strict=True):
                if at[node] >= 0:
                    amount = self._amount(
                        wants[group] * chunks, exclusive=placement.layout.exclusive
                    )
                    spans[at[node]].append((start_s, end_s, amount))
        self._close(at, spans)
        return spans

    def _close(self, at: NDArray[np.int64], spans: list[list[Span]]) -> None:
        """Closed times: rows in reservations are not in a window, so all rows have the same."""
        snapshot, now_s = self.snapshot, self.snapshot.now_s
        whole = snapshot.nodes.capacity[:, self.real]
        for reservation in snapshot.reservations:
            start_s = max(reservation.start_s - now_s, 0)
            end_s = reservation.end_s - now_s
            for node in reservation.nodes.tolist():
                if end_s > start_s and at[node] >= 0:
                    seats = [self.seats] if self.seats else []
                    spans[at[node]].append((start_s, end_s, (*whole[node].tolist(), *seats)))

    def _amount(self, use: NDArray[np.int64], *, exclusive: bool) -> tuple[int, ...]:
        if not self.seats:  # no job needs a whole node: all requests are used
            return (ALL,) * len(self.real) if exclusive else tuple(use[self.real].tolist())
        return (*use[self.real].tolist(), self.seats if exclusive else 1)

    def _scale(self, capacity: NDArray[np.int64], taken: list[list[Span]]) -> NDArray[np.int64]:
        """(real,) the divisor of all amounts of a resource (rule 4)."""
        scale = np.zeros(len(self.real), dtype=np.int64)
        for column in range(len(self.real)):
            amounts = set(np.unique(capacity[:, column]).tolist())
            amounts |= {a[column] for spans in taken for _, _, a in spans}
            amounts.discard(ALL)
            for placement in self.kept:
                if not placement.layout.exclusive:
                    wants = (g.want[self.real[column]] for g in placement.layout.groups)
                    amounts |= (
                        {w * g.count for w, g in zip(wants, placement.layout.groups, strict=True)}
                        if placement.layout.arrangement is Arrangement.PACK
                        else set(wants)
                    )
            scale[column] = gcd(*amounts) or 1
        return scale

    # ------------------------------------------------------------------ the jobs

    def _job(self, row: int, placement: Placement, scale: NDArray[np.int64]) -> WindowJob:
        planned, now_s = self.planned, self.snapshot.now_s
        layout = placement.layout
        job = int(planned.rows.job[planned.rows.plannable[row]])
        where = _unit_nodes(placement, np.searchsorted(self.nodes, placement.nodes))
        units, chosen = [], []
        if layout.arrangement is Arrangement.PACK:
            want = sum(np.array(g.want, dtype=np.int64) * g.count for g in layout.groups)
            mask = np.logical_and.reduce(
                [planned.rows.eligibility.classes.mask(g.class_) for g in layout.groups]
            )
            unit = self._unit(0, np.asarray(want), mask, layout, scale)
            units, chosen = [unit], [where[0][0]]
            maximum: tuple[int, ...] = (0,)
        else:
            maximum = tuple(group.max_per_node for group in layout.groups)
            for number, group in enumerate(layout.groups):
                mask = planned.rows.eligibility.classes.mask(group.class_)
                unit = self._unit(number, np.array(group.want), mask, layout, scale)
                units += [unit] * group.count
                chosen += sorted(where[number])
        return WindowJob(
            submit_s=int(self.snapshot.jobs.submit_s[job]) - now_s,
            release_s=max(planned.not_before_s(row), self._opens_s(layout)) - now_s,
            length_s=planned.length_s(row),
            units=tuple(units),
            scatter=layout.arrangement is Arrangement.SCATTER,
            max_per_node=maximum,
            place_s=placement.start_s - now_s,
            place=tuple(chosen),
        )

    def _opens_s(self, layout: Layout) -> int:
        """The instant from which the nodes of a greedy placement are open to its job."""
        opens_s = self.planned.rows.eligibility.classes.opens_s
        return max(self.snapshot.now_s, *(opens_s(group.class_) for group in layout.groups))

    def _unit(
        self,
        group: int,
        want: NDArray[np.int64],
        mask: NDArray[np.bool_],
        layout: Layout,
        scale: NDArray[np.int64],
    ) -> ResourceUnit:
        has = self.snapshot.nodes.capacity[self.nodes]
        held = mask[self.nodes] & (has >= want).all(axis=1) & has.any(axis=1)
        if layout.exclusive:
            amount = [0] * len(self.real) + [self.seats]
        else:
            real = want[self.real] // scale[: len(self.real)]
            amount = real.tolist() + ([1] if self.seats else [])
        return ResourceUnit(group, tuple(amount), tuple(np.flatnonzero(held).tolist()))


def _unit_nodes(placement: Placement, at: NDArray[np.intp]) -> list[list[int]]:
    """For each group the node of every unit, as in the book."""
    found: list[list[int]] = [[] for _ in placement.layout.groups]
    for node, group, chunks in zip(
        at.tolist(), placement.groups.tolist(), placement.chunks.tolist(), strict=True
    ):
        found[group] += [node] * chunks
    return [nodes or found[0] for nodes in found]
