# SPDX-License-Identifier: Apache-2.0
"""How a job can be laid out on nodes, as requests of the book.

Rules
    1. Chunks are laid out as requested. Amounts per node (memory stated beside the chunks) are
       counted with every chunk.
    2. A job without tasks is one scattered chunk per node. It starts now on as many nodes as
       possible (`wider`); a later start is planned with the fewest.
    3. A job with tasks, without amounts per node and without a number of nodes is one free chunk
       per task.
    4. Any other job with tasks gets the fewest nodes allowed, with its tasks spread evenly (one
       more on the first ones): scattered chunks of one size or two. If not even the empty cluster
       can hold them so, they are spread as evenly as its largest nodes allow.
    5. Required nodes are groups of their own: a chunk on each of them.

Deviates: where rule 4 applies, no other layouts are tried; a job may be planned later than some
less even layout would allow. If more than `MAX_WIDTHS` numbers of nodes are allowed, only that
many are tried, among them the least and the most.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bridge.model.job import WidthRule
from bridge.model.resources import Arrangement
from bridge.model.snapshot import Snapshot
from bridge.planning.eligibility.alternatives import Alternative, Eligibility
from bridge.planning.queue.columns import by_appearance, packed
from bridge.planning.queue.layout_options import Group, Layout, LayoutOptions
from bridge.planning.queue.rows import Rows
from bridge.planning.requests.chunk_groups import ChunkGroups, chunk_groups

MAX_WIDTHS = 16
"""Numbers of nodes that are tried for a job with a variable number of nodes."""


def layouts(
    snapshot: Snapshot, eligibility: Eligibility, row: int, alternative: Alternative
) -> LayoutOptions:
    """Returns the layouts of a job on the nodes of one alternative.

    Args:
        eligibility: the eligibility of the same; classes of single groups are added to it.
        row: the row of `snapshot.jobs`.
        alternative: one of the job's.
    """
    jobs = snapshot.jobs
    requested = chunk_groups(snapshot, row)
    required = _required(snapshot, eligibility, row, alternative)
    if jobs.chunks[row] is not None:
        if required:  # one node, for all of them (host=)
            alternative = replace(alternative, class_=required.class_)
        return LayoutOptions(
            _chunks(eligibility, alternative, requested, counted=bool(jobs.tasks[row]))
        )
    tasks = int(jobs.tasks[row])
    rule = WidthRule(int(jobs.width_rule[row]))
    widths = _widths(alternative, rule)
    if required:
        widths = [width for width in widths if width >= required.count]
    if not widths:
        return LayoutOptions(())
    if not tasks:
        want = _ints(jobs.per_node[row])
        made = [
            _scattered(alternative.class_, required, [(width, want, 0)], requested.exclusive)
            for width in widths
        ]
        return LayoutOptions((made[0],), tuple(reversed(made[1:])))
    free = not requested.per_node.any() and alternative.min_nodes == 1 and not rule and not required
    min_nodes = -(-tasks // requested.max_per_node) if requested.max_per_node else 1
    if free and alternative.max_nodes >= tasks:
        group = Group(
            alternative.class_, tasks, _ints(requested.wants[0]), requested.max_per_node, tasks=1
        )
        return LayoutOptions(
            (
                Layout(
                    (group,),
                    Arrangement.FREE,
                    requested.exclusive,
                    min(tasks, alternative.max_nodes),
                ),
            )
        )
    wide_enough = [w for w in widths if min_nodes <= w <= tasks]
    if not wide_enough:
        return LayoutOptions(())
    large = _large(snapshot, eligibility.classes.mask(alternative.class_), requested)
    spread = None
    for width in wide_enough:
        if large[:width].size == width and large[width - 1] * width >= tasks:
            break
        if spread is None and not required:
            spread = _spread(tasks, large[:width].tolist(), width)
    else:
        if spread is not None:
            parts = [
                (spread.count(n), _ints(requested.per_node + n * requested.wants[0]), n)
                for n in sorted(set(spread), reverse=True)
            ]
            return LayoutOptions(
                (_scattered(alternative.class_, None, parts, requested.exclusive),)
            )
    parts = [
        (count, _ints(requested.per_node + n * requested.wants[0]), n)
        for count, n in even_parts(tasks, width)
    ]
    return LayoutOptions((_scattered(alternative.class_, required, parts, requested.exclusive),))


@dataclass(frozen=True)
class CandidateLayouts:
    """The layouts of every alternative of the plannable rows; equal requests share them.

    Attributes:
        which: (n_alternatives,) position in `options`.
    """

    options: tuple[LayoutOptions, ...]
    which: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.which)

    def __getitem__(self, alternative: int) -> LayoutOptions:
        return self.options[int(self.which[alternative])]


def layouts_of(rows: Rows, job: NDArray[np.int64]) -> CandidateLayouts:
    """Returns the layouts of every alternative of the plannable rows.

    Args:
        job: (n_alternatives,) row of `snapshot.jobs` of each.
    """
    columns = rows.alternatives
    first, inverse, names = _distinct(rows, job)
    kept = {} if rows.kept is None else rows.kept.layouts
    known: dict[tuple[object, ...], LayoutOptions] = {}
    position: dict[int, int] = {}
    options: list[LayoutOptions] = []
    found = []
    table = zip(
        *(
            column[first].tolist()
            for column in (
                job, columns.class_, columns.partition, columns.time_limit_s,
                columns.min_nodes, columns.max_nodes,
            )
        ),
        strict=True,
    )  # fmt: skip
    for name, (row, *alternative) in zip(names, table, strict=True):
        requested = kept.get((*name, alternative[0])) if name else None
        if requested is None:
            requested = _layouts(
                rows, row, Alternative(*alternative), known, kept if name else known
            )
            if name and _lasts(rows.snapshot, row):
                kept[*name, alternative[0]] = requested
        number = position.setdefault(id(requested), len(options))
        if number == len(options):
            options.append(requested)
        found.append(number)
    return CandidateLayouts(tuple(options), np.array(found, dtype=np.int64)[inverse])


def _layouts(
    rows: Rows,
    row: int,
    alternative: Alternative,
    known: dict[tuple[object, ...], LayoutOptions],
    kept: dict[tuple[object, ...], LayoutOptions],
) -> LayoutOptions:
    """The layouts of a job, shared by equal ones; those that last are kept."""
    jobs = rows.snapshot.jobs
    key = (
        jobs.per_node[row].tobytes(), jobs.per_task[row].tobytes(), int(jobs.tasks[row]),
        int(jobs.max_tasks_per_node[row]), bool(jobs.exclusive[row]),
        int(jobs.width_rule[row]), jobs.required[row], jobs.chunks[row],
        alternative.class_, alternative.min_nodes, alternative.max_nodes,
    )  # fmt: skip
    shared = kept if _lasts(rows.snapshot, row) else known
    found = shared.get(key)
    if found is None:
        found = shared[key] = layouts(rows.snapshot, rows.eligibility, row, alternative)
    return found


def _lasts(snapshot: Snapshot, row: int) -> bool:
    """Whether a job's layouts depend on nothing but its request and its class."""
    jobs = snapshot.jobs
    return not jobs.tasks[row] and not jobs.required[row] and jobs.chunks[row] is None


def _distinct(
    rows: Rows, job: NDArray[np.int64]
) -> tuple[NDArray[np.intp], NDArray[np.intp], list[tuple[int, ...]]]:
    """The alternatives of distinct requests, in order, which of them represents each, and names.

    A name is the number of the request and the position of the alternative; empty: the number
    does not identify it.
    """
    everyone = np.arange(len(job))
    if rows.lowered is None or np.count_nonzero(rows.snapshot.jobs.chunks):
        return everyone, everyone, [()] * len(job)  # it does not identify a job's chunks
    indptr = rows.alternatives.indptr
    counts = np.diff(indptr)
    number = np.repeat(rows.lowered.number[rows.plannable], counts)
    ordinal = everyone - np.repeat(indptr[:-1], counts)
    first, which = by_appearance(packed(number, ordinal))
    return first, which, list(zip(number[first].tolist(), ordinal[first].tolist(), strict=True))


def even_parts(tasks: int, nodes: int) -> list[tuple[int, int]]:
    """Tasks spread evenly over nodes, as (number of nodes, tasks on each), most tasks first."""
    more, each = tasks % nodes, tasks // nodes
    return [(count, n) for count, n in ((more, each + 1), (nodes - more, each)) if count and n]


def _large(
    snapshot: Snapshot, mask: NDArray[np.bool_], requested: ChunkGroups
) -> NDArray[np.int64]:
    """How many tasks each node of a class holds when it is empty, most first."""
    room = snapshot.nodes.capacity[mask] - requested.per_node
    want = requested.wants[0]
    wanted = want > 0
    if not wanted.any():
        return np.full(len(room), requested.max_per_node or 1 << 30, dtype=np.int64)
    held = (room[:, wanted] // want[wanted]).min(axis=1)
    if requested.max_per_node:
        held = np.minimum(held, requested.max_per_node)
    return np.sort(held)[::-1]


def _spread(tasks: int, room: list[int], width: int) -> list[int] | None:
    """Tasks on each of `width` nodes, as even as possible; None if they do not fit.

    Args:
        tasks: at least one on each node.
        room: how many tasks fit on each node, largest first.
    """
    if len(room) < width or room[-1] < 1 or sum(room) < tasks:
        return None
    spread, left = [], tasks
    for nodes_left, maximum in zip(range(width, 0, -1), reversed(room), strict=True):
        spread.append(min(maximum, left // nodes_left))
        left -= spread[-1]
    return spread


def _chunks(
    eligibility: Eligibility, alternative: Alternative, requested: ChunkGroups, *, counted: bool
) -> tuple[Layout, ...]:
    """Rule 1; one layout for each alternative of the kinds' constraints."""
    width = 1 if requested.arrangement is Arrangement.PACK else int(requested.counts.sum())
    several = len(requested.counts) > 1
    choices = eligibility.classes.choices(requested.features[0]) if several else 1
    found = []
    for choice in range(choices):
        groups = tuple(
            Group(
                eligibility.classes.narrowed(alternative.class_, requested.features[kind], choice)
                if several else alternative.class_,
                int(requested.counts[kind]),
                _ints(requested.wants[kind] + requested.per_node),
                max_per_node=requested.max_per_node,
                tasks=int(counted),
                kind=kind,
            )
            for kind in range(len(requested.counts))
        )  # fmt: skip
        found.append(Layout(groups, requested.arrangement, requested.exclusive, width))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Required:
    """Nodes that must be in the set: their class, that of all others, and how many they are."""

    class_: int
    others: int
    count: int


def _required(
    snapshot: Snapshot, eligibility: Eligibility, row: int, alternative: Alternative
) -> _Required | None:
    nodes = snapshot.jobs.required[row]
    if not nodes:
        return None
    class_ = alternative.class_
    return _Required(
        eligibility.classes.only(class_, nodes),
        eligibility.classes.without(class_, nodes),
        len(set(nodes)),
    )


def _scattered(
    class_: int,
    required: _Required | None,
    parts: list[tuple[int, tuple[int, ...], int]],
    exclusive: bool,
) -> Layout:
    """One chunk a node; parts are (nodes, want, tasks), and required nodes come first."""
    groups, nodes = [], sum(count for count, _, _ in parts)
    left = required.count if required else 0
    others = required.others if required else class_
    for count, want, tasks in parts:
        bound = min(left, count)
        if bound and required:
            groups.append(Group(required.class_, bound, want, 1, tasks))
            left -= bound
        if count > bound:
            groups.append(Group(others, count - bound, want, 1, tasks))
    return Layout(tuple(groups), Arrangement.SCATTER, exclusive, nodes)


def _widths(alternative: Alternative, rule: WidthRule) -> list[int]:
    """Numbers of nodes to try, ascending; the first is the least."""
    low, high = alternative.min_nodes, alternative.max_nodes
    if high - low > 1 << 16:
        high = low + (1 << 16)
    allowed = [n for n in range(low, high + 1) if rule.allows(n)]
    if len(allowed) <= MAX_WIDTHS:
        return allowed
    picks = np.unique(np.geomspace(1, len(allowed), MAX_WIDTHS).round().astype(int)) - 1
    return [allowed[at] for at in picks]


def _ints(vector: NDArray[np.int64]) -> tuple[int, ...]:
    return tuple(vector.tolist())
