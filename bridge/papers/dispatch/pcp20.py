# SPDX-License-Identifier: Apache-2.0
"""PCP'20: starts and positions on the list of all resources, jointly, by constraint programming.

Terms
    list        all items of a resource, node after node; node n has the positions
                [n * L, n * L + its amount), L being the largest amount of any node.
    position    where on the list of a resource a unit's share begins.
    box         a unit on the list of a resource: a number of positions for the job's duration.
    see also    `bridge.papers.dispatch.window`, `bridge.planning.dispatch`.

The model of a window of jobs Q, job i with rn_i units, on resources R:

    variables       starts s_i, positions y_irj: |Q| + sum rn_i * |R_i|, however large the system;
                    R_i are the resources that job i asks for.
    auxiliary       n_ij, the node of a unit: sum rn_i, however large the system.
    boxes           of one resource do not overlap.
    one node        a unit's positions of all resources are of one node, and none of its boxes
                    reaches from one node into the next: n_ij * L <= y_irj <= n_ij * L + L - h_irj.
    implied         the positions of a job on a resource are all different; the use of a resource
                    never exceeds its total; no position is used for longer than the horizon.
    objective       the sum of the jobs' weights times their starts: slowdown, unless otherwise set.
    search          job after job by the slowdown that it would have if it started now, largest
                    first: its earliest start, then the position with the fewest values left at
                    its greatest value (best fit).

Source: Galleguillos, Kiziltan, Soto: A Constraint Programming-based Job Dispatcher for Modern HPC
Systems and Applications, 2020 (sections 2.2 and 3).
Deviates
    1. The paper maps positions to nodes by element constraints over arrays as long as the lists.
       CP-SAT expands these to a literal for each value; lists with gaps of one length for each node
       make them the linear constraints above, which say the same. The gaps are no positions.
    2. Running jobs do not hold particular positions: what is used of a node is at the beginning
       of its list, to avoid fragmentation.
    3. CP-SAT's strategies are a fixed sequence of variables: "the job that can start first" among
       those of equal priority is not chosen again at every node of the search. They are given as
       described above, but only CP-SAT's fixed search follows them exactly; its automatic search,
       which finds far more here, first decides on learnt literals, then by the strategies.
    4. Identical units are ordered by node, surplus identical nodes are left out, and starts that
       alone would be worse than the greedy plan are excluded (symmetries that the paper leaves for
       later). If there are more nodes than the time allows, those that become free last are left
       out as well, which may lose solutions.
    5. Jobs that limit the number of units on a node have a constraint that their nodes differ.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from ortools.sat.python import cp_model
from ortools.sat.python.cp_model import CpModel, Domain, IntervalVar, IntVar

from bridge.model.decisions.answer import Answer
from bridge.papers.dispatch.cp_dispatch import (
    AskFor,
    CpDispatcher,
    Reach,
    Unsayable,
    WindowSchedule,
)
from bridge.papers.dispatch.instance import Instance, ResourceUnit, WindowJob
from bridge.papers.dispatch.window_model import Started, merged, pool, started
from bridge.units import NEVER

SEARCH = (
    "max_presolve_iterations: 1 cp_model_probing_level: 0 symmetry_level: 0 linearization_level: 0"
)


@dataclass(frozen=True)
class Positions:
    """The model of one instance.

    Attributes:
        start: (J,) variables.
        node: for each job one variable of each unit.
        position: (job, unit, resource) to its variable.
    """

    model: CpModel
    start: list[IntVar]
    node: list[list[IntVar]]
    position: dict[tuple[int, int, int], IntVar]


def build(instance: Instance, weights: list[int]) -> Positions:
    """Makes the model.

    Raises:
        Unsayable: a job has no positions in the greedy plan, so that there would be no hint.
    """
    whole, instance = instance, instance.coarsened()
    hint = greedy_positions(instance)
    made = started(instance, weights)
    lists = instance.capacity.max(axis=0).tolist()
    node = [_nodes(made.model, i, job) for i, job in enumerate(instance.jobs)]
    spans: dict[tuple[int, int, int], Domain] = {}
    position: dict[tuple[int, int, int], IntVar] = {}
    for i, job in enumerate(instance.jobs):
        for j, unit in enumerate(job.units):
            for r, height in enumerate(unit.want):
                if height:
                    key = id(unit.nodes), r, height
                    if key not in spans:
                        has = instance.capacity[:, r]
                        spans[key] = _positions(unit, has, height, lists[r])
                    y = made.model.new_int_var_from_domain(spans[key], f"y{i}_{r}_{j}")
                    made.model.add_hint(y, hint[i, j, r])
                    link = y - lists[r] * node[i][j]
                    made.model.add_linear_constraint(link, 0, lists[r] - height)
                    position[i, j, r] = y
    for r, length in enumerate(lists):
        _boxes(made, instance, position, r, length)
    pool(made, whole)
    _strategy(made, instance, node, position)
    return Positions(made.model, made.start, node, position)


def _nodes(model: CpModel, i: int, job: WindowJob) -> list[IntVar]:
    """The units' nodes; units alike in order."""
    found: list[IntVar] = []
    domains: dict[int, Domain] = {}
    for j, unit in enumerate(job.units):
        key = id(unit.nodes)
        if key not in domains:
            domains[key] = Domain.from_values(unit.nodes)
        var = model.new_int_var_from_domain(domains[key], f"n{i}_{j}")
        model.add_hint(var, job.place[j])
        found.append(var)
    first = 0
    for j, unit in enumerate(job.units):
        if j and unit.group != job.units[j - 1].group:
            first = j
        maximum = 1 if job.scatter else job.max_per_node[unit.group]
        if j > first:
            apart = 1 if maximum == 1 else 0
            model.add(found[j - 1] + apart <= found[j])
        if maximum > 1 and j - maximum >= first:
            model.add(found[j - maximum] + 1 <= found[j])
    if job.scatter and len({unit.group for unit in job.units}) > 1:
        model.add_all_different(found)
    return found


def _positions(unit: ResourceUnit, has: NDArray[np.int64], height: int, length: int) -> Domain:
    """Positions on nodes that hold the unit, within the capacity of each."""
    spans = [[n * length, n * length + int(has[n]) - height] for n in unit.nodes]
    return Domain.from_intervals(spans)


def _boxes(
    made: Started,
    instance: Instance,
    position: dict[tuple[int, int, int], IntVar],
    r: int,
    length: int,
) -> None:
    """No overlap on one list, and implied constraints."""
    model = made.model
    times: list[IntervalVar] = []
    places: list[IntervalVar] = []
    lasting: list[int] = []
    for i, job in enumerate(instance.jobs):
        own = [position[i, j, r] for j in range(len(job.units)) if (i, j, r) in position]
        for j, unit in enumerate(job.units):
            if (i, j, r) in position:
                y = position[i, j, r]
                times.append(made.interval[i])
                places.append(model.new_fixed_size_interval_var(y, unit.want[r], ""))
                lasting.append(job.length_s)
        if len(own) > 1:
            model.add_all_different(own)
    if not times:
        return
    for low, high, begin_s, end_s in _used_boxes(instance, r, length, made.horizon_s):
        times.append(model.new_fixed_size_interval_var(begin_s, end_s - begin_s, ""))
        places.append(model.new_fixed_size_interval_var(low, high - low, ""))
        lasting.append(end_s - begin_s)
    model.add_no_overlap_2d(times, places)
    model.add_cumulative(places, lasting, made.horizon_s)


def _used_boxes(
    instance: Instance, r: int, length: int, horizon_s: int
) -> list[tuple[int, int, int, int]]:
    """The used parts of a list: first and last position, begin and end; neighbours are merged."""
    boxes: list[tuple[int, int, int, int]] = []
    open_at: dict[tuple[int, int], int] = {}  # whole nodes: the box that ends at the last node
    for n, used in enumerate(instance.used):
        has, still = int(instance.capacity[n, r]), {}
        for one in merged(used, r):
            end_s = min(one.end_s, horizon_s) if one.end_s < NEVER else horizon_s
            if end_s <= one.start_s:
                continue
            low, high = n * length, n * length + one.amount[0]
            span = (one.start_s, end_s)
            if one.amount[0] == has == length:
                at = open_at.get(span)
                if at is not None:
                    boxes[at] = (boxes[at][0], high, *span)
                else:
                    at = len(boxes)
                    boxes.append((low, high, *span))
                still[span] = at
            else:
                boxes.append((low, high, *span))
        open_at = still
    return boxes


def _strategy(
    made: Started,
    instance: Instance,
    node: list[list[IntVar]],
    position: dict[tuple[int, int, int], IntVar],
) -> None:
    """The paper's interleaved search."""
    order = sorted(range(len(instance.jobs)), key=lambda i: -instance.jobs[i].slowdown_now)
    for i in order:
        own = [y for (k, _, _), y in position.items() if k == i]
        made.model.add_decision_strategy(
            [made.start[i]], cp_model.CHOOSE_FIRST, cp_model.SELECT_MIN_VALUE
        )
        made.model.add_decision_strategy(
            own or node[i], cp_model.CHOOSE_MIN_DOMAIN_SIZE, cp_model.SELECT_MAX_VALUE
        )


def greedy_positions(instance: Instance) -> dict[tuple[int, int, int], int]:
    """Positions for the greedy plan: jobs by start, the highest that are free, else the lowest.

    Raises:
        Unsayable: a job has none, because a unit's share must not be split.
    """
    jobs = instance.jobs
    by_start = sorted(range(len(jobs)), key=lambda i: (jobs[i].place_s, i))
    failed = 0
    for order, lowest in ((by_start, False), (by_start, True), (range(len(jobs)), True)):
        found, left_over = _stacked(instance, order, lowest=lowest)
        if left_over is None:
            return found
        failed = left_over
    raise Unsayable(failed)


def _stacked(
    instance: Instance, order: Sequence[int], *, lowest: bool
) -> tuple[dict[tuple[int, int, int], int], int | None]:
    """Positions for one job after the other, and the first job that has none."""
    lists = instance.capacity.max(axis=0).tolist()
    placed: dict[tuple[int, int], list[tuple[int, int, int, int]]] = {}
    found: dict[tuple[int, int, int], int] = {}
    for i in order:
        job = instance.jobs[i]
        span = job.place_s, job.place_s + job.length_s
        for j, (unit, n) in enumerate(zip(job.units, job.place, strict=True)):
            for r, height in enumerate(unit.want):
                if not height:
                    continue
                low = max(
                    (u.amount[r] for u in instance.used[n] if _meet((u.start_s, u.end_s), span)),
                    default=0,
                )
                boxes = placed.setdefault((n, r), [])
                gaps = _gaps(boxes, span, low, int(instance.capacity[n, r]))
                fitting = [gap for gap in gaps if gap[1] - gap[0] >= height]
                if not fitting:
                    return found, i
                at = fitting[0][0] if lowest else fitting[-1][1] - height
                boxes.append((at, at + height, *span))
                found[i, j, r] = n * lists[r] + at
    return found, None


def _gaps(
    boxes: list[tuple[int, int, int, int]], span: tuple[int, int], low: int, top: int
) -> list[tuple[int, int]]:
    """The free parts of [low, top) for a span of time, ascending."""
    gaps = []
    for begin, end in sorted((b[0], b[1]) for b in boxes if _meet((b[2], b[3]), span)):
        gaps.append((low, begin))
        low = max(low, end)
    return [*gaps, (low, top)]


def _meet(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] < other[1] and other[0] < one[1]


@dataclass(frozen=True)
class Pcp20(CpDispatcher):
    """Plans the first jobs of the order by PCP'20, the others around them; see the module."""

    name = "pcp20"
    reach = Reach(jobs=14, units=70, nodes=90, power=0.5)
    bounds = False  # cores are interchangeable, positions are not

    def solve(
        self, instance: Instance, weights: list[int], ask: AskFor, solving_s: float = 1.0
    ) -> tuple[WindowSchedule | None, Answer]:
        """See `CpDispatcher`."""
        instance, at = instance.without_spares(self.reach.within(solving_s)[2])
        built = build(instance, weights)
        answer = ask(built.model, 1.0, SEARCH)
        if answer.values is None:
            return None, answer
        values = answer.values
        return WindowSchedule(
            [int(values[s.index]) for s in built.start],
            [[int(at[values[n.index]]) for n in nodes] for nodes in built.node],
        ), answer
