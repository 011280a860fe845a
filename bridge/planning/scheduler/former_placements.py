# SPDX-License-Identifier: Apache-2.0
"""Finds which rows can keep their placements of a former plan, by layout and nodes.

Rules
    1. A placement is valid as long as its alternative has the same layout, and the layout allows
       its nodes.
    2. Where switches are chosen, alternatives are renumbered in every cycle: the first one is taken
       that has the nodes and is open when the placement starts.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridge.planning.queue.columns import by_appearance, gather, packed
from bridge.planning.scheduler.candidates import Candidates
from bridge.planning.scheduler.placements import PlacementColumns
from bridge.planning.site_rules.capacity_constraints import Mode


@dataclass(frozen=True, slots=True)
class KeptRows:
    """Rows with their former placements, as columns of length n.

    Attributes:
        index: positions in `Rows.plannable`.
        row: the row of `PlacementColumns`.
        candidate: the present one with the placement.
        position: the position of the layout among the candidate's; -1: the placement is no longer
            valid.
    """

    index: NDArray[np.intp]
    row: NDArray[np.intp]
    candidate: NDArray[np.int64]
    position: NDArray[np.int32]
    start_s: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.index)

    def take(self, which: NDArray[np.intp] | slice) -> "KeptRows":
        return KeptRows(
            self.index[which],
            self.row[which],
            self.candidate[which],
            self.position[which],
            self.start_s[which],
        )


class FormerPlacements:
    """The placements of a former plan, matched to the candidates of this cycle."""

    def __init__(self, candidates: Candidates, former: PlacementColumns) -> None:
        self._candidates, self._former = candidates, former
        layouts, eligibility = candidates.choices.layouts, candidates.rows.eligibility
        sizes = [len(layout.groups) for layout in layouts]
        self._group_at = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        classes = [group.class_ for layout in layouts for group in layout.groups]
        names, number = np.unique(np.array(classes, dtype=np.int64), return_inverse=True)
        self._class_of_group: NDArray[np.intp] = number
        masks = [eligibility.classes.mask(class_) for class_ in names.tolist()]
        self._masks = np.array(masks, dtype=bool).reshape(
            len(names), len(candidates.rows.snapshot.nodes)
        )
        # Whether every class has all nodes of the former plan.
        self._all_in_all = bool(self._masks.all(axis=0).take(former.nodes).all())
        opens = np.array(
            [eligibility.classes.opens_s(one) for one in names.tolist()], dtype=np.int64
        )
        self._opens_s = np.array(
            [
                max((int(opens[number[at]]) for at in range(begin, end)), default=0)
                for begin, end in zip(self._group_at[:-1].tolist(), self._group_at[1:].tolist(),
                                      strict=True)
            ],
            dtype=np.int64,
        )  # fmt: skip

    def match(
        self, requested: NDArray[np.intp], row: NDArray[np.intp], start_s: NDArray[np.int64]
    ) -> KeptRows:
        """The rows that can be booked again, on the same nodes or on others.

        Args:
            requested: positions in `Rows.plannable`.
        """
        all_ = self._candidates
        first, count = all_.first[requested], np.diff(all_.first)[requested]
        number = self._former.alternative[row].astype(np.int64)
        there = number < count
        position = np.full(len(row), -1, dtype=np.int32)
        position[there] = self._position((first + number)[there], row[there])
        stands = self._open(first + number, position, start_s)
        for at in np.flatnonzero(~stands).tolist():
            number[at], position[at] = self._renumbered(
                first[at], count[at], row[at : at + 1], start_s[at : at + 1], position[at]
            )
        candidate, there = first + number, number < count
        there[there] = ~all_.choices.refused[candidate[there]]
        there[there] = start_s[there] <= all_.latest_s[candidate[there]]
        return KeptRows(
            requested[there], row[there], candidate[there], position[there], start_s[there]
        )

    def _renumbered(
        self,
        first: np.int64,
        count: np.int64,
        row: NDArray[np.intp],
        start_s: NDArray[np.int64],
        position: np.int32,
    ) -> tuple[int, np.int32]:
        """The alternative that now has the nodes of a placement, and its layout (rule 2)."""
        own = int(self._former.alternative[row[0]])
        for number in range(int(count)):
            if number == own:
                continue
            candidate = np.array([first + number])
            found = self._position(candidate, row)
            if self._open(candidate, found, start_s)[0]:
                return number, found[0]
        return own, position

    def _open(
        self,
        candidate: NDArray[np.int64],
        position: NDArray[np.int32],
        start_s: NDArray[np.int64],
    ) -> NDArray[np.bool_]:
        """Whether placements are valid with these layouts, on classes open at their start."""
        stands = position >= 0
        layout = self._candidates.choices.which[candidate[stands]] + position[stands]
        stands[stands] = self._opens_s[layout] <= start_s[stands]
        return stands

    def _position(self, candidate: NDArray[np.int64], row: NDArray[np.intp]) -> NDArray[np.int32]:
        """The positions of the layouts of placements; -1: no longer valid (rule 1)."""
        choices, former = self._candidates.choices, self._former
        position = former.layout_index[row].copy()
        still = position < choices.n_min[candidate]
        still[still] = ~choices.hopeless[choices.numbers(candidate[still], position[still])]
        layout, kept = (choices.which[candidate] + position)[still], former.layout[row[still]]
        pair, which = by_appearance(packed(layout, kept))
        alike = [
            choices.layouts[new].alike(former.layouts[old])
            for new, old in zip(layout[pair].tolist(), kept[pair].tolist(), strict=True)
        ]
        still[still] = np.array(alike, dtype=bool)[which]
        rows = np.flatnonzero(still)
        if len(rows) and not self._all_in_all:
            offsets, take = gather(former.indptr, row[rows])
            layout = np.repeat((choices.which[candidate] + position)[rows], np.diff(offsets))
            group = self._group_at[layout] + former.groups[take]
            may = self._masks[self._class_of_group[group], former.nodes[take]]
            still[rows] = np.logical_and.reduceat(may, offsets[:-1])
        position[~still] = -1
        return position

    def only_count(self, kept: KeptRows) -> NDArray[np.bool_]:
        """(n,) which rows only count on some constraint that binds others."""
        terms = self._candidates.terms
        before = np.concatenate(([0], np.cumsum(terms.mode == Mode.COUNT)))[terms.indptr]
        number = self._candidates.choices.numbers(kept.candidate, np.maximum(kept.position, 0))
        found: NDArray[np.bool_] = before[number + 1] > before[number]
        return found & (kept.position >= 0)
