# SPDX-License-Identifier: Apache-2.0
"""Placements of the rows of a cycle, and why they wait: in this plan and in the one before."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bridge.core import Blocked, match_ids
from bridge.planning.queue.layout_options import Layout
from bridge.units import NEVER


class RowStates:
    """The state of the plannable rows of a cycle, as columns of length n_plannable.

    Attributes:
        start_s: the booked start; NEVER: not booked.
        alternative: index among the row's own: the booked one, or the one the verdict is about.
        position: the position of its layout among those of the alternative.
        blocked: `Blocked`: why it does not start now.
        constraint: the constraint of the book, for `Blocked.COUNTER` and `NEVER_COUNTER`; -1: none.
        passed_over: beyond the depth: only a start now was tried.
        late: booked at the latest start.
    """

    def __init__(self, n_plannable: int) -> None:
        """No row is planned."""
        self.start_s = np.full(n_plannable, NEVER, dtype=np.int64)
        self.alternative = np.zeros(n_plannable, dtype=np.int32)
        self.position = np.zeros(n_plannable, dtype=np.int32)
        self.blocked = np.full(n_plannable, Blocked.NEVER_NODES, dtype=np.int8)
        self.constraint = np.full(n_plannable, -1, dtype=np.int32)
        self.passed_over = np.zeros(n_plannable, dtype=bool)
        self.late = np.zeros(n_plannable, dtype=bool)


@dataclass(frozen=True, slots=True)
class WaitingRows:
    """Rows that do not start now, and why, as columns of length n.

    Attributes:
        index: positions in `Rows.plannable`.
        candidate: index among all alternatives: the one the verdict is about.
        start_s: its start in the plan; NEVER: none.
        blocked: why it does not start now.
        constraint: the constraint of the book, for `Blocked.COUNTER` and `NEVER_COUNTER`; -1: none.
        nodes: number of nodes requested there.
        passed_over: beyond the depth: only a start now was tried.
    """

    index: NDArray[np.intp]
    candidate: NDArray[np.int64]
    start_s: NDArray[np.int64]
    blocked: NDArray[np.int8]
    constraint: NDArray[np.int32]
    partition: NDArray[np.int64]
    nodes: NDArray[np.int64]
    refused: NDArray[np.bool_]
    passed_over: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.index)


@dataclass(frozen=True, slots=True)
class Placement:
    """A row's placement in a former plan.

    Attributes:
        alternative: which of the job's own.
        layout_index: which of the alternative's layouts, and the layout.
        late: booked at the latest start.
        blocked, constraint_key: why it could not start at once when it was placed here.
    """

    start_s: int
    alternative: int
    layout_index: int
    layout: Layout
    nodes: NDArray[np.int32]
    groups: NDArray[np.int32]
    chunks: NDArray[np.int32]
    late: bool = False
    blocked: int = int(Blocked.NODES_BUSY)
    constraint_key: str = ""


@dataclass(frozen=True, slots=True)
class PlacementColumns:
    """Placements of n rows, as columns; see `Placement`.

    Attributes:
        layout: (n,) position in `layouts`.
        constraint: (n,) position in `constraint_keys`.
        indptr: (n + 1,) row i has the entries indptr[i]:indptr[i + 1] of nodes, groups and chunks.
    """

    start_s: NDArray[np.int64]
    alternative: NDArray[np.int32]
    layout_index: NDArray[np.int32]
    layout: NDArray[np.int64]
    late: NDArray[np.bool_]
    blocked: NDArray[np.int8]
    constraint: NDArray[np.int64]
    indptr: NDArray[np.int64]
    nodes: NDArray[np.int32]
    groups: NDArray[np.int32]
    chunks: NDArray[np.int32]
    layouts: tuple[Layout, ...]
    constraint_keys: tuple[str, ...]

    @classmethod
    def of(cls, placements: Sequence[Placement]) -> "PlacementColumns":
        layouts = {id(one.layout): one.layout for one in placements}  # shared by equal jobs
        number = {key: at for at, key in enumerate(layouts)}
        keys: dict[str, int] = {}
        table = [
            (
                one.start_s, one.alternative, one.layout_index, number[id(one.layout)], one.late,
                one.blocked, keys.setdefault(one.constraint_key, len(keys)), len(one.nodes),
            )
            for one in placements
        ]  # fmt: skip
        start_s, alternative, index, layout, late, blocked, key, width = (
            np.array(table, dtype=np.int64).reshape(len(table), 8).T
        )
        none = [np.zeros(0, dtype=np.int32)]
        return cls(
            start_s=np.ascontiguousarray(start_s),
            alternative=alternative.astype(np.int32),
            layout_index=index.astype(np.int32),
            layout=np.ascontiguousarray(layout),
            late=late.astype(bool),
            blocked=blocked.astype(np.int8),
            constraint=np.ascontiguousarray(key),
            indptr=np.concatenate(([0], np.cumsum(width))).astype(np.int64),
            nodes=np.concatenate(none + [one.nodes for one in placements]),
            groups=np.concatenate(none + [one.groups for one in placements]),
            chunks=np.concatenate(none + [one.chunks for one in placements]),
            layouts=tuple(layouts.values()),
            constraint_keys=tuple(keys),
        )

    def __len__(self) -> int:
        return len(self.start_s)

    def __getitem__(self, row: int) -> Placement:
        own = slice(int(self.indptr[row]), int(self.indptr[row + 1]))
        return Placement(
            int(self.start_s[row]),
            int(self.alternative[row]),
            int(self.layout_index[row]),
            self.layouts[self.layout[row]],
            self.nodes[own],
            self.groups[own],
            self.chunks[own],
            bool(self.late[row]),
            int(self.blocked[row]),
            self.constraint_keys[self.constraint[row]],
        )

    def __iter__(self) -> Iterator[Placement]:
        return map(self.__getitem__, range(len(self)))


class PlacementsById(Mapping[str, Placement]):
    """Placements of jobs, by id; a `Placement` is made when it is asked for.

    Attributes:
        ids: (n,) of the jobs.
    """

    def __init__(self, ids: Iterable[str], columns: PlacementColumns) -> None:
        self.ids = tuple(ids)
        self.columns = columns

    @cached_property
    def row(self) -> dict[str, int]:
        """The jobs' rows in `columns`."""
        return dict(zip(self.ids, range(len(self.ids)), strict=True))

    def rows_of(self, ids: list[str]) -> NDArray[np.int64]:
        """(n,) the rows of jobs in `columns`; -1: not among them."""
        return match_ids(self.ids, ids)

    def __getitem__(self, job_id: str) -> Placement:
        return self.columns[self.row[job_id]]

    def __iter__(self) -> Iterator[str]:
        return iter(self.ids)

    def __len__(self) -> int:
        return len(self.ids)


class AnnouncedStarts(Mapping[str, int]):
    """The starts of placements by job id, s; a dictionary is made only if it is asked for."""

    def __init__(self, placements: PlacementsById) -> None:
        self.placements = placements

    @cached_property
    def _starts(self) -> dict[str, int]:
        starts = self.placements.columns.start_s.tolist()
        return dict(zip(self.placements.ids, starts, strict=True))

    def of(self, ids: list[str]) -> NDArray[np.int64]:
        """(n,) the starts of jobs, s; 0: none."""
        row, start_s = self.placements.rows_of(ids), self.placements.columns.start_s
        return np.where(row < 0, 0, start_s[row]) if len(start_s) else np.zeros_like(row)

    def __getitem__(self, job_id: str) -> int:
        return self._starts[job_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._starts)

    def __len__(self) -> int:
        return len(self.placements)
