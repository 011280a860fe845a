# SPDX-License-Identifier: Apache-2.0
"""The possible layouts of a job, each with its terms under the rules of the site.

Terms
    candidate   one alternative of an asked row.
    choice      one layout of a candidate, with the terms and closures of that layout.

Rules
    1. The amounts of a job depend on its number of nodes and, with whole nodes, on which nodes it
       gets. So every choice has its own terms. Without rules all choices of a candidate share them.
    2. A choice that the rules can never allow is not tried. A candidate is refused if all its
       choices are; the reason of the first is reported.
    3. A job with a variable number of nodes is planned on the fewest, and starts now on as many as
       the rules and other jobs leave. Where a FreePool gives access to jobs that request much,
       every number of nodes is also tried for later starts.
    4. For a job on whole nodes only an upper bound of its amounts is known in advance. Where rules
       count CPUs or memory and nodes differ, smaller nodes are tried, too: nodes up to each size,
       with some of the next larger size; and, where several of its tasks or chunks may share a
       node, fewer nodes.
    5. Likewise for what a job adds at most to bounds with weights of nodes, as that of power: nodes
       up to each weight, if they differ, without mixtures; and fewer nodes.

Deviates: rules 4 and 5 try at most `MAX_TIERS` mixtures, of two sizes each. A job may be planned
later than some other mixture would allow; the rules always hold.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bridge.model.node import CPUS, MEMORY_MIB
from bridge.model.reasons import Reason, ReasonCode
from bridge.model.resources import Arrangement
from bridge.model.snapshot import Snapshot
from bridge.planning.eligibility.alternatives import Eligibility
from bridge.planning.queue.columns import by_appearance
from bridge.planning.queue.layout_options import Group, Layout, LayoutOptions
from bridge.planning.queue.layouts import CandidateLayouts, even_parts
from bridge.planning.requests.amounts import largest
from bridge.planning.scheduler.layout_weights import LayoutAmounts
from bridge.planning.site_rules.capacity_constraints import Terms
from bridge.planning.site_rules.freepools import JobClosures
from bridge.planning.site_rules.lowered_rules import Extent, LoweredRules

MAX_TIERS = 24
"""Layouts on smaller nodes that are tried for one layout on whole nodes."""
_NO_WIDTH = Reason(ReasonCode.NEVER, "no number of nodes that it may have holds its tasks")


class WholeNodes:
    """The amounts of layouts on whole nodes, and their variants on smaller or fewer nodes."""

    def __init__(self, snapshot: Snapshot, eligibility: Eligibility, lowered: LoweredRules) -> None:
        self._capacity = snapshot.nodes.capacity[:, : MEMORY_MIB + 1]
        self._size = self._capacity
        if lowered.bounds:
            own = (self._capacity,) if lowered.weighs_nodes else ()
            weights = (bound.given.weight for bound in lowered.bounds)
            self._size = np.column_stack((*own, *weights))
        self._mixes = lowered.weighs_nodes or not lowered.bounds
        self._eligibility = eligibility
        self._largest: dict[int, NDArray[np.int64]] = {}

    def have(self, layout: Layout) -> tuple[int, int]:
        """Upper bounds of the CPUs and the memory of its nodes."""
        if layout.arrangement is Arrangement.SCATTER:
            parts = [(group.class_, group.count) for group in layout.groups]
            maximum = sum((self._maximum(*part) for part in parts), np.zeros(2, dtype=np.int64))
        elif len(layout.groups) == 1:
            maximum = self._maximum(layout.groups[0].class_, layout.nodes)
        else:
            union = np.zeros(len(self._capacity), dtype=bool)
            for group in layout.groups:
                union |= self._eligibility.classes.mask(group.class_)
            table = largest(self._capacity[union])
            maximum = table[min(layout.nodes, len(table) - 1)]
        return int(maximum[CPUS]), int(maximum[MEMORY_MIB])

    def _maximum(self, class_: int, count: int) -> NDArray[np.int64]:
        """An upper bound of what `count` nodes of a class have together."""
        table = self._table(class_)
        found: NDArray[np.int64] = table[min(count, len(table) - 1)]
        return found

    def _table(self, class_: int) -> NDArray[np.int64]:
        if class_ not in self._largest:
            mask = self._eligibility.classes.mask(class_)
            self._largest[class_] = largest(self._capacity[mask])
        return self._largest[class_]

    def smaller(self, layout: Layout, *, share: bool) -> Iterator[Layout]:
        """The layout on smaller nodes, and on fewer ones (rule 4), larger ones first.

        Args:
            layout: on whole nodes.
            share: whether its chunks may share fewer nodes.
        """
        yield from self._on_smaller(layout)
        if layout.arrangement is not Arrangement.FREE or not share or layout.nodes < 2:
            return
        tasks = sum(group.count for group in layout.groups if group.kind < 0)
        if not tasks:
            packed = replace(layout, arrangement=Arrangement.PACK, nodes=1)
            yield packed
            yield from self._on_smaller(packed)
            return
        (group,) = layout.groups
        for nodes in range(min(layout.nodes, MAX_TIERS) - 1, 0, -1):
            fewest = -(-tasks // nodes)
            if group.max_per_node and fewest > group.max_per_node:
                break
            groups = tuple(
                Group(group.class_, count, tuple(n * want for want in group.want), 1, n)
                for count, n in even_parts(tasks, nodes)
            )
            spread = Layout(groups, Arrangement.SCATTER, layout.exclusive, nodes)
            yield spread
            yield from self._on_smaller(spread)

    def _on_smaller(self, layout: Layout) -> Iterator[Layout]:
        union = np.zeros(len(self._capacity), dtype=bool)
        for group in layout.groups:
            union |= self._eligibility.classes.mask(group.class_)
        upper = None
        for mask in self._up_to(union):
            if upper is not None and len(layout.groups) == 1 and self._mixes:
                yield from self._mixed(layout, mask, upper)
            if upper is not None:
                yield replace(
                    layout,
                    groups=tuple(
                        replace(group, class_=self._narrowed(group.class_, mask))
                        for group in layout.groups
                    ),
                )
            upper = mask

    def _up_to(self, union: NDArray[np.bool_]) -> list[NDArray[np.bool_]]:
        """The nodes up to each size that occurs, the largest size (all nodes) first."""
        sizes = np.unique(self._size[union], axis=0)[::-1]
        if len(sizes) > MAX_TIERS:
            sizes = sizes[np.linspace(0, len(sizes) - 1, MAX_TIERS).round().astype(int)]
        found: list[NDArray[np.bool_]] = [union]
        for size in sizes.tolist():
            mask = union & (self._size <= size).all(axis=1)
            if not any(np.array_equal(mask, one) for one in found):
                found.append(mask)
        return found

    def _mixed(
        self, layout: Layout, mask: NDArray[np.bool_], upper: NDArray[np.bool_]
    ) -> Iterator[Layout]:
        """Layouts on nodes up to a size with some of the next larger size."""
        (group,) = layout.groups
        if layout.arrangement is not Arrangement.SCATTER or group.count < 2:
            return
        larger = np.unique(np.linspace(group.count - 1, 1, min(group.count - 1, 12)).astype(int))
        small, large = (self._narrowed(group.class_, nodes) for nodes in (mask, upper))
        for count in larger[::-1].tolist():
            parts = (
                replace(group, class_=large, count=count),
                replace(group, class_=small, count=group.count - count),
            )
            yield replace(layout, groups=parts)

    def _narrowed(self, class_: int, mask: NDArray[np.bool_]) -> int:
        nodes = np.flatnonzero(mask & self._eligibility.classes.mask(class_))
        return self._eligibility.classes.only(class_, nodes.tolist())


def fewest_nodes(layout: Layout) -> int:
    """The least number of nodes that a layout needs."""
    return layout.nodes if layout.arrangement is Arrangement.SCATTER else 1


def varied(
    lowered: LoweredRules, job: NDArray[np.int64], partition: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """(n,) for which jobs smaller and fewer nodes are tried, too (rules 4 and 5)."""
    found = np.zeros(len(job), dtype=bool)
    whole = lowered.takes_whole(job, partition) if lowered.any and len(job) else found
    if lowered.weighs_nodes:
        found |= whole
    for bound in lowered.bounds:
        weight = bound.given.weight
        differ = bool((weight != weight[:1]).any())
        stated = bound.given.stated[job] > 0
        found |= np.where(stated, lowered.snapshot.jobs.tasks[job] > 0, whole | differ)
        chunks = lowered.snapshot.jobs.chunks[job]
        found |= stated & chunks.astype(bool)
    return found


def extent_of(
    layouts: list[Layout],
    whole: WholeNodes | None,
    amounts: tuple[NDArray[np.int64], ...] = (),
) -> Extent:
    """The extent of some layouts.

    Args:
        whole: None: not needed, as no job takes whole nodes or no rule counts CPUs or memory.
        amounts: for each bound with weights of nodes, (n,) what they add at most.
    """
    have = None
    if whole is not None:
        known = {id(layout): layout for layout in layouts}  # equal requests share one
        each = {at: whole.have(layout) for at, layout in known.items()}
        have = np.array([each[id(layout)] for layout in layouts], dtype=np.int64).reshape(-1, 2)
    return Extent(
        nodes=np.array([layout.nodes for layout in layouts], dtype=np.int64),
        fewest=np.array([fewest_nodes(layout) for layout in layouts], dtype=np.int64),
        have=have,
        amounts=amounts,
    )


def layouts_to_try(
    given: LayoutOptions, lowered: LoweredRules, whole: WholeNodes | None
) -> tuple[tuple[Layout, ...], tuple[Layout, ...]]:
    """The layouts of a candidate to be tried under rules: for any start, and wider ones for now.

    Args:
        given: as `layouts` gives them.
        whole: None: it takes no whole nodes, or no rule counts CPUs or memory.
    """
    minimum, wider = given.minimum, given.wider
    if lowered.bounds_minimum:
        minimum += wider[::-1]
    if whole is not None:
        share = not lowered.bounds_chunks
        minimum, wider = (
            tuple(each for one in some for each in _with_smaller(one, whole, share=share))
            for some in (minimum, wider)
        )
    return minimum, wider


def _with_smaller(layout: Layout, whole: WholeNodes, *, share: bool) -> list[Layout]:
    found = [layout]
    for smaller in whole.smaller(layout, share=share):
        if len(found) > MAX_TIERS:
            break
        found.append(smaller)
    return found


@dataclass(frozen=True, slots=True)
class LayoutChoice:
    """One layout of a candidate.

    Attributes:
        number: among all choices; of its terms and closures.
        layout: the layout of its chunks.
        position: among the candidate's layouts: those for any start, then the wider ones.
    """

    candidate: int
    number: int
    layout: Layout
    position: int


class LayoutChoices:
    """The layout choices of all candidates of one cycle.

    Attributes:
        layouts: layouts of all choices; candidates with equal requests share them.
        which: (n_candidates,) the first of its layouts: those for any start, then the wider ones.
        n_min: (n_candidates,) how many are for any start.
        simple: (n_candidates,) it has one layout only.
        refused: (n_candidates,) it can never run; see `refusal`.
        hopeless: (n_choices,) which can never run.
        owner: (n_choices,) the candidate of each.
    """

    def __init__(
        self,
        given: CandidateLayouts,
        snapshot: Snapshot,
        eligibility: Eligibility,
        lowered: LoweredRules,
        *,
        job: NDArray[np.int64],
        partition: NDArray[np.int64],
        time_limit_s: NDArray[np.int64],
    ) -> None:
        """Lowers them.

        Args:
            given: (n_candidates,) layouts.
            eligibility: the eligibility of the same; classes of smaller nodes are added to it.
            job: (n_candidates,) rows of its jobs.
            partition: (n_candidates,) indexes of partitions.
            time_limit_s: (n_candidates,) time limits.
        """
        takes = varied(lowered, job, partition)
        whole = WholeNodes(snapshot, eligibility, lowered) if takes.any() else None
        self._lay_out(*_options_to_try(given, lowered, takes, whole))
        self.shared = not lowered.any  # one entry for all choices of a candidate
        counts = np.ones_like(self._count) if self.shared else self._count
        self._first = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
        self.owner = np.repeat(np.arange(len(given)), counts)
        requested = (job[self.owner], partition[self.owner], time_limit_s[self.owner])
        each = [] if self.shared else self._layout_of_each()
        amounts: tuple[NDArray[np.int64], ...] = ()
        if lowered.bounds:
            holds = lowered.takes_whole(requested[0], requested[1])
            amounts = LayoutAmounts(snapshot, eligibility, lowered.bounds).maximum(
                each, requested[0], holds
            )
        extent = extent_of(each, whole if lowered.weighs_nodes else None, amounts)
        self.terms: Terms = lowered.terms(*requested, extent)
        self.job_closures: list[JobClosures] = lowered.closed_to(*requested, extent)
        self._refuse(self.terms.reasons)

    def _lay_out(self, options: Sequence[LayoutOptions], option: NDArray[np.int64]) -> None:
        """Sets the layouts of all candidates.

        Args:
            option: (n_candidates,) which of them each candidate has.
        """
        sizes = np.array([(len(one.minimum), len(one.wider)) for one in options], dtype=np.int64)
        sizes = sizes.reshape(-1, 2)
        total = sizes.sum(axis=1)
        self.layouts = [layout for one in options for layout in (*one.minimum, *one.wider)]
        self.which: NDArray[np.int64] = (np.cumsum(total) - total)[option]
        self.n_min: NDArray[np.int64] = sizes[option, 0]
        self._count: NDArray[np.int64] = total[option]
        self.simple: NDArray[np.bool_] = self._count == 1

    def _layout_of_each(self) -> list[Layout]:
        position = np.arange(len(self.owner)) - self._first[self.owner]
        return [self.layouts[at] for at in (position + self.which[self.owner]).tolist()]

    def _refuse(self, reasons: Sequence[Reason | None]) -> None:
        """Sets which choices and candidates can never run.

        Args:
            reasons: why limits refuse each choice.
        """
        self._reasons = reasons
        self.hopeless = np.zeros(len(self.owner), dtype=bool)
        if not self.shared:
            self.hopeless[[at for at, reason in enumerate(reasons) if reason is not None]] = True
        self.refused: NDArray[np.bool_] = self.n_min == 0
        for candidate in np.unique(self.owner[self.hopeless]).tolist():
            self.refused[candidate] = self.refusal(candidate) is not None

    def refusal(self, candidate: int) -> Reason | None:
        """Why a candidate can never run; None: it can."""
        if not self.n_min[candidate]:
            return _NO_WIDTH
        first = int(self._first[candidate])
        reasons = self._reasons[first : first + (1 if self.shared else self.n_min[candidate])]
        return reasons[0] if all(reason is not None for reason in reasons) else None

    def numbers(
        self, candidate: NDArray[np.int64], position: NDArray[np.int32] | None = None
    ) -> NDArray[np.int64]:
        """The choices of some candidates by their positions among its layouts; None: the first."""
        first: NDArray[np.int64] = self._first[candidate]
        return first if position is None or self.shared else first + position

    def choice(self, candidate: int, position: int) -> LayoutChoice | None:
        """The choice at a position among a candidate's layouts; None: it can never run."""
        number = int(self._first[candidate]) + (0 if self.shared else position)
        if self._reasons[number] is not None:
            return None
        layout = self.layouts[self.which[candidate] + position]
        return LayoutChoice(candidate, number, layout, position)

    def index(self, candidate: int, position: int) -> int:
        """Which of the choices for any start it is; one past the last: a wider one."""
        return min(position, int(self.n_min[candidate]))

    def first(self, candidate: int) -> LayoutChoice:
        """The first choice of a candidate that is not refused."""
        return next(iter(self.to_plan(candidate)))

    def _among(self, candidate: int, positions: Iterable[int]) -> Iterator[LayoutChoice]:
        found = (self.choice(candidate, position) for position in positions)
        return (choice for choice in found if choice is not None)

    def to_plan(self, candidate: int) -> Iterator[LayoutChoice]:
        """The choices to be tried for any start, in this order; the earliest start wins."""
        return self._among(candidate, range(self.n_min[candidate]))

    def to_start(self, candidate: int) -> Iterator[LayoutChoice]:
        """The wider choices for a start now, widest first."""
        return self._among(candidate, range(self.n_min[candidate], self._count[candidate]))


def _options_to_try(
    given: CandidateLayouts,
    lowered: LoweredRules,
    takes: NDArray[np.bool_],
    whole: WholeNodes | None,
) -> tuple[Sequence[LayoutOptions], NDArray[np.int64]]:
    """The layouts that candidates are to be tried with under limits, and which each has.

    Args:
        given: (n_candidates,) layouts.
        takes: (n_candidates,) which take whole nodes that differ.
        whole: these nodes; None: no candidate does.
    """
    if not lowered.bounds_minimum and whole is None:
        return given.options, given.which
    first, option = by_appearance(2 * given.which + takes)
    tried = [
        layouts_to_try(given[at], lowered, whole if alone else None)
        for at, alone in zip(first.tolist(), takes[first].tolist(), strict=True)
    ]
    return [LayoutOptions(*one) for one in tried], option
