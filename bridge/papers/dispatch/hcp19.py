# SPDX-License-Identifier: Apache-2.0
"""HCP'19: starts by constraint programming on all nodes as one, nodes by best fit, and repair.

The model of a window of jobs Q on resources R:

    variables       starts s_i: |Q|, whatever the system and the jobs' widths.
    pool            the use of a resource never exceeds the total of all nodes.
    objective       the sum of the jobs' weights times their starts, as in PCP'20.

Rules
    1. Jobs are given nodes by start, ties by slowdown, largest first. Each unit is placed on the
       node on which the least is left (best fit), by the share of the system's resources that
       the unit requests, over the whole duration of the job.
    2. A job whose units do not all fit at its start is moved to the next end of a running or
       placed job, and so on until it fits; if it never does, the core plans it.
    3. If any job was moved, the starts are planned again, with the instant at which each of these
       fitted as its earliest start, at most `ROUNDS` times. The best schedule of all rounds is
       used.

Source: Galleguillos, Kiziltan, Sîrbu, Babaoglu: Constraint Programming-Based Job Dispatching for
Modern HPC Applications, CP 2019, as described in the PCP'20 paper (sections 1 and 2.2).
Deviates
    1. The paper states that inconsistencies are fixed and that several iterations may be needed,
       but not how: rules 2 and 3 are ours.
    2. Best fit is by the requested resources that are left; the paper only names the strategy.
"""

from dataclasses import dataclass, replace
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray
from ortools.sat.python import cp_model

from bridge.model.decisions.answer import Answer
from bridge.papers.dispatch.cp_dispatch import AskFor, CpDispatcher, Reach, WindowSchedule
from bridge.papers.dispatch.instance import Instance, WindowJob
from bridge.papers.dispatch.window_model import Started, pool, started
from bridge.units import NEVER

ROUNDS = 4
SEARCH = "max_presolve_iterations: 1 cp_model_probing_level: 0 symmetry_level: 0"


def build(instance: Instance, weights: list[int], place_s: list[int] | None = None) -> Started:
    """Makes the model; `place_s` is its hint; None: the greedy starts."""
    made = started(instance, weights, place_s)
    pool(made, instance)
    order = sorted(range(len(instance.jobs)), key=lambda i: -instance.jobs[i].slowdown_now)
    made.model.add_decision_strategy(
        [made.start[i] for i in order], cp_model.CHOOSE_FIRST, cp_model.SELECT_MIN_VALUE
    )
    return made


def allocate(instance: Instance, start_s: list[int]) -> WindowSchedule:
    """Rules 1 and 2: nodes for all jobs, some of them later than their solved starts."""
    room, jobs = _FreeOverTime(instance), instance.jobs
    order = sorted(range(len(jobs)), key=lambda i: (start_s[i], -jobs[i].slowdown_now))
    waiting = [(start_s[i], place, i) for place, i in enumerate(order)]
    found: list[list[int] | None] = [None] * len(jobs)
    at_s = list(start_s)
    while waiting:
        now_s, place, i = heappop(waiting)
        first_s = room.first_s(jobs[i], now_s)
        if first_s is None:
            continue
        if first_s > now_s:  # those that start until then are given nodes before
            heappush(waiting, (first_s, place, i))
            continue
        nodes = room.nodes(jobs[i], now_s)
        if nodes is None:  # its first units fit, the others do not
            later_s = room.next_s(now_s)
            if later_s is not None:
                heappush(waiting, (later_s, place, i))
            continue
        room.take(jobs[i], now_s, nodes)
        found[i], at_s[i] = nodes, now_s
    return WindowSchedule(at_s, found)


class _FreeOverTime:
    """What is left on the nodes over time: one row for each span in which nothing changes."""

    def __init__(self, instance: Instance) -> None:
        pieces = [(n, u) for n, used in enumerate(instance.used) for u in used]
        instants = {0} | {t for _, u in pieces for t in (u.start_s, u.end_s) if t < NEVER}
        self._at = np.array(sorted(instants), dtype=np.int64)
        self._left = np.repeat(instance.capacity[None], len(self._at), axis=0)
        for n, u in pieces:
            a, b = np.searchsorted(self._at, (u.start_s, u.end_s))
            self._left[a:b, n] -= np.array(u.amount, dtype=np.int64)
        self._weight = 1.0 / np.maximum(instance.capacity.sum(axis=0), 1)
        self._eligible: dict[int, NDArray[np.bool_]] = {}

    def first_s(self, job: WindowJob, start_s: int) -> int | None:
        """The first instant from a start on at which its first group fits; None: there is none.

        That is the start itself, or an instant at which something ends.
        """
        unit = job.units[0]
        want = np.array(unit.want, dtype=np.int64)
        wanted = want > 0
        units = sum(other.group == unit.group for other in job.units)
        maximum = 1 if job.scatter else job.max_per_node[unit.group] or units
        first = self._row(start_s)
        nodes = np.flatnonzero(self._may(unit.nodes))
        fit = np.full((len(self._at) - first, len(nodes)), maximum, dtype=np.int64)
        if wanted.any():
            held = (self._left[first:, nodes][:, :, wanted] // want[wanted]).min(axis=2)
            fit = np.minimum(fit, held)
        instants = np.concatenate(([start_s], self._at[first + 1 :]))
        enough = np.flatnonzero(fit.sum(axis=1) >= units)  # at the first second at least
        for row in enough.tolist():
            end = int(np.searchsorted(instants, instants[row] + job.length_s))
            if fit[row:end].min(axis=0).sum() >= units:
                return int(instants[row])
        return None

    def next_s(self, start_s: int) -> int | None:
        """The next instant at which something changes; None: from here on nothing does."""
        later = self._at[np.searchsorted(self._at, start_s, side="right") :]
        return int(later[0]) if len(later) else None

    def nodes(self, job: WindowJob, start_s: int) -> list[int] | None:
        """A node for every unit; None: they do not all fit."""
        end = int(np.searchsorted(self._at, start_s + job.length_s))
        left = self._left[self._row(start_s) : end].min(axis=0)
        free = np.ones(len(left), dtype=bool)  # of the job's other units, if they must be apart
        found: list[int] = []
        while len(found) < len(job.units):
            unit = job.units[len(found)]
            units = sum(other.group == unit.group for other in job.units)
            want = np.array(unit.want, dtype=np.int64)
            wanted = want > 0
            maximum = 1 if job.scatter else job.max_per_node[unit.group] or units
            fit = np.full(len(left), maximum, dtype=np.int64)
            if wanted.any():
                fit = np.minimum(fit, (left[:, wanted] // want[wanted]).min(axis=1))
            fit[~(self._may(unit.nodes) & free)] = 0
            # The best fit remains so until it is full: nodes are filled one by one.
            score = left[:, wanted] @ self._weight[wanted]
            nodes = np.flatnonzero(fit)
            nodes = nodes[np.argsort(score[nodes], kind="stable")]
            chosen = np.repeat(nodes, fit[nodes])[:units]
            if len(chosen) < units:
                return None
            np.subtract.at(left, chosen, want)
            if job.scatter:
                free[chosen] = False
            found += chosen.tolist()
        return found

    def take(self, job: WindowJob, start_s: int, nodes: list[int]) -> None:
        begin, end = self._cut(start_s), self._cut(start_s + job.length_s)
        taken = np.zeros_like(self._left[0])
        np.add.at(taken, nodes, np.array([unit.want for unit in job.units], dtype=np.int64))
        self._left[begin:end] -= taken

    def _row(self, at_s: int) -> int:
        return int(np.searchsorted(self._at, at_s, side="right")) - 1

    def _cut(self, at_s: int) -> int:
        """The row that begins at an instant; makes it."""
        row = self._row(at_s)
        if self._at[row] == at_s:
            return row
        self._at = np.insert(self._at, row + 1, at_s)
        self._left = np.insert(self._left, row + 1, self._left[row], axis=0)
        return row + 1

    def _may(self, nodes: tuple[int, ...]) -> NDArray[np.bool_]:
        found = self._eligible.get(id(nodes))
        if found is None:
            found = self._eligible[id(nodes)] = np.zeros(self._left.shape[1], dtype=bool)
            found[list(nodes)] = True
        return found


@dataclass(frozen=True)
class Hcp19(CpDispatcher):
    """Plans the first jobs of the order by HCP'19, the others around them; see the module."""

    name = "hcp19"
    reach = Reach(jobs=100, units=2000, nodes=1e9, power=1.0)
    bounds = True

    def solve(
        self, instance: Instance, weights: list[int], ask: AskFor, solving_s: float = 1.0
    ) -> tuple[WindowSchedule | None, Answer]:
        """See `CpDispatcher`."""
        del solving_s
        instance, at_nodes = instance.without_spares(len(instance.used))
        best: WindowSchedule | None = None
        first: Answer | None = None
        minimum, pushed, hint = np.inf, instance, None
        for number in range(ROUNDS):
            made = build(pushed, weights, hint)
            answer = ask(made.model, 0.5 if number < ROUNDS - 1 else 1.0, SEARCH)
            first = first or answer
            if answer.values is None:
                break
            wished = [int(answer.values[s.index]) for s in made.start]
            schedule = allocate(instance, wished)
            cost = sum(w * s for w, s in zip(weights, schedule.start_s, strict=True))
            if cost < minimum:
                best, minimum = schedule, cost
            if list(schedule.start_s) == wished:
                break
            hint = list(schedule.start_s)
            pushed = replace(
                pushed,
                jobs=tuple(
                    replace(job, release_s=max(job.release_s, at) if at > wish else job.release_s)
                    for job, at, wish in zip(pushed.jobs, hint, wished, strict=True)
                ),
            )
        assert first is not None
        if best is None or first.values is None:
            return None, first
        proved = first.proved and minimum <= first.objective
        nodes = [None if own is None else at_nodes[own].tolist() for own in best.nodes]
        best = replace(best, nodes=nodes)
        return best, replace(first, objective=float(minimum), proved=proved)
