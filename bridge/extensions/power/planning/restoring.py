# SPDX-License-Identifier: Apache-2.0
"""Brings system power back into its corridor: widths, chosen waiting jobs, and later steps.

Terms
    violation   estimated system power out of its corridor, including the starts of the plan.
    chosen      the waiting jobs, one or two, with which a configuration keeps the corridor.

Rules
    1. It is used on a violation, while no job adapts.
    2. The first feasible configuration is taken: of running malleable jobs with one waiting job, in
       the plan's order; then with two; then with none. A configuration whose chosen jobs could not
       start is skipped.
    3. Jobs that shrink do so first. Jobs grow in the same cycle only as far as nodes are idle and
       power permits; the rest of the growth, and the chosen jobs, follow when the shrinks are
       complete, before others.
    4. Jobs that the plan starts now count as running. Only if no configuration in addition to them
       is feasible, growth alone comes before these starts.
    5. If no configuration is feasible, the one with the least violation is used.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from itertools import combinations, islice

import numpy as np
from numpy.typing import NDArray

from bridge.errors import ConfigError
from bridge.extensions.power.planning.configuration import (
    Configuration,
    Scalable,
    configuration,
    one_way,
)
from bridge.extensions.power.planning.drawn_power import DrawnPower
from bridge.extensions.power.planning.redistribution import Redistribution
from bridge.extensions.power.planning.violations import why_not_ended, why_resized, with_note
from bridge.model.decisions.resizes import NO_RESIZES, Resizes
from bridge.model.plan import Plan
from bridge.model.snapshot import Snapshot
from bridge.planning.malleable.expand_shrink import idle_nodes
from bridge.planning.malleable.pending import Pending
from bridge.planning.malleable.reshaper import Adapting
from bridge.ports import Planned, Replan
from bridge.units import NEVER, UNPLANNED

_PATIENCE = 10
"""Growths and starts that wait for shrinks are abandoned after this multiple of a change."""
_THEN = "the jobs that shrank for the power corridor have done so"


@dataclass(frozen=True)
class Effort(Adapting):
    """Parameters of the policies that keep a corridor.

    Attributes:
        waiting: maximum number of waiting jobs that a configuration starts; 0: running jobs only.
        tried: maximum number of configurations with waiting jobs that are computed in a cycle.
        tick_s: the policy plans again after this time; 0: at events only.
    """

    waiting: int = 2
    tried: int = 64
    tick_s: int = 30

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.waiting <= 2:
            raise ConfigError("waiting", f"must be 0, 1 or 2, not {self.waiting}")
        if self.tried < 1:
            raise ConfigError("tried", f"must be 1 or more, not {self.tried}")
        if self.tick_s < 0:
            raise ConfigError("tick_s", f"must be 0 or more, not {self.tick_s}")


@dataclass(frozen=True)
class Restoring:
    """One decision.

    Attributes:
        order: (n_jobs,) rows of its jobs.
        replan: plans around other widths.
        power: the present power, and its bounds.
    """

    effort: Effort
    snapshot: Snapshot
    order: NDArray[np.int64]
    replan: Replan
    power: DrawnPower

    @property
    def _by_s(self) -> int:
        return self.snapshot.now_s + self.effort.adaptation_s

    def first(self, planned: Planned, jobs: frozenset[str]) -> Planned:
        """The plan in which these jobs come before all others."""
        order = self._order(jobs)
        return planned if order is None else self.replan(NO_RESIZES, order=order)

    def _order(self, jobs: frozenset[str]) -> NDArray[np.int64] | None:
        ids = self.snapshot.jobs.id[self.order].tolist()
        before = np.array([each in jobs for each in ids], dtype=bool)
        if not before.any() or before[: int(before.sum())].all():
            return None
        return np.concatenate((self.order[before], self.order[~before]))

    def continued(self, planned: Planned, pending: Pending) -> tuple[Planned, Pending]:
        """Without a violation: the rest of the last decision (rule 3)."""
        if not pending:
            return planned, pending
        order = self._order(pending.jobs)
        planned = planned if order is None else self.replan(NO_RESIZES, order=order)
        ids = self.snapshot.jobs.id
        own = _only(planned.plan, {*np.flatnonzero(np.isin(ids, [*pending.jobs])).tolist()})
        wanted = Redistribution(
            self.snapshot, self.power.running(own), pending.widths, self._by_s, _THEN
        )
        room_w = self.power.bounds_w[1] - self.power.system_w[1] - self.power.starting_w(own)[1]
        if grown := wanted.growths(idle_nodes(self.snapshot, own), room_w):
            planned = self.replan(Resizes.of(grown), order=order)
        started = ids[planned.plan.job[planned.plan.starts_now]].tolist()
        return planned, pending.without(started)

    def restored(self, planned: Planned) -> tuple[Planned, Pending]:
        """On a violation: rules 2 to 5."""
        jobs, room = self.power.running(planned.plan), self.power.room(planned.plan)
        running = [*jobs.values()]
        nearest: tuple[Configuration, tuple[int, ...]] | None = None
        known: dict[object, Configuration | None] = {}
        for starts in self._choices(planned):
            waiting, rows = [*starts.values()], tuple(starts)
            alike = tuple((tuple(job.widths), job.lower_w, job.upper_w) for job in waiting)
            if alike not in known:
                known[alike] = configuration(running, room, waiting)
            found = known[alike]
            if found is None:
                continue
            if found.feasible:
                found = one_way(running, room, waiting, found)
                if done := self._carried_out(planned, jobs, found, rows):
                    return done
            elif nearest is None or _missed_w(found) < _missed_w(nearest[0]):
                nearest = found, rows
        if nearest is None:
            return planned, Pending()
        if done := self._instead_of_starts(planned):
            return done
        found, rows = nearest
        done = self._carried_out(planned, jobs, found, rows) or (planned, Pending())
        outside = self.power.outside(planned.plan)
        text = why_not_ended(self.snapshot, self.power, outside, found)
        return with_note(done[0], text), done[1]

    def _instead_of_starts(self, planned: Planned) -> tuple[Planned, Pending] | None:
        """Growth that keeps the corridor if the plan's starts have to wait; None: none."""
        own = _only(planned.plan, ())
        if not len(planned.plan.starts_now) or self.power.outside(own).over_w:
            return None
        jobs, room = self.power.running(own), self.power.room(own)
        wider = {
            row: replace(job, widths=[width for width in job.widths if width >= job.width])
            for row, job in jobs.items()
        }
        found = configuration([*wider.values()], room)
        if found is None or not found.feasible:
            return None
        done = self._carried_out(replace(planned, plan=own), wider, found, ())
        return done if done and len(done[0].plan.resizes) else None

    def _choices(self, planned: Planned) -> Iterator[dict[int, Scalable]]:
        """The sets of waiting jobs for configurations to start, in the order of rule 2."""
        maximum = self.effort.tried
        if self.effort.waiting:
            waiting = self.power.waiting(planned.plan, maximum)
            rows = range(1, self.effort.waiting + 1)
            every = (chosen for n in rows for chosen in combinations(waiting, n))
            for chosen in islice(every, maximum):
                yield {row: waiting[row] for row in chosen}
        yield {}

    def _carried_out(
        self,
        planned: Planned,
        jobs: dict[int, Scalable],
        found: Configuration,
        chosen: tuple[int, ...],
    ) -> tuple[Planned, Pending] | None:
        """The plan with a configuration; None: chosen jobs would not start in it."""
        snapshot, power, n_nodes = self.snapshot, self.power, len(self.snapshot.nodes)
        why = why_resized(power, power.outside(planned.plan), found)
        wanted = Redistribution(snapshot, jobs, found.widths, self._by_s, why)
        first = power.usable_by(chosen) if chosen else np.ones(n_nodes, dtype=bool)
        shrinks = wanted.shrinks(first)
        ids = frozenset(snapshot.jobs.id[[*chosen]].tolist())
        order = self._order(ids)
        if shrinks or order is not None:
            planned = self.replan(Resizes.of(shrinks), order=order)
        if not _start(planned.plan, chosen, self._by_s):
            return None
        idle = idle_nodes(snapshot, planned.plan)
        idle &= ~_taken(planned.plan, chosen, self._by_s, n_nodes)
        starting_w = power.starting_w(planned.plan)[1]
        grown = wanted.growths(idle, power.bounds_w[1] - power.system_w[1] - starting_w)
        if grown:
            planned = self.replan(Resizes.of([*shrinks, *grown]), order=order)
        if not shrinks:
            return planned, Pending()
        started = snapshot.jobs.id[planned.plan.job[planned.plan.starts_now]].tolist()
        now = {str(snapshot.running.id[row]): len(nodes) for row, _, nodes, _ in grown}
        later = {
            job.id: found.widths[job.id]
            for job in jobs.values()
            if found.widths[job.id] > now.get(job.id, job.width)
        }
        until_s = snapshot.now_s + _PATIENCE * self.effort.adaptation_s
        return planned, Pending(later, ids.difference(started), until_s)


def _missed_w(found: Configuration) -> tuple[int, int]:
    return found.over_w, found.under_w


def _only(plan: Plan, jobs: Collection[int]) -> Plan:
    """The plan in which only some jobs start in this cycle."""
    kept = np.isin(plan.job, [*jobs]) | (plan.start_s != plan.now_s)
    return replace(plan, start_s=np.where(kept, plan.start_s, NEVER))


def _start(plan: Plan, jobs: tuple[int, ...], by_s: int) -> bool:
    """Whether jobs start by then; the plan may lack the start of all but the first."""
    for at, job in enumerate(jobs):
        start_s = int(plan.start_s[plan.job == job].min())
        if start_s > by_s or (start_s == UNPLANNED and at == 0):
            return False
    return True


def _taken(plan: Plan, jobs: tuple[int, ...], by_s: int, n_nodes: int) -> NDArray[np.bool_]:
    """(n_nodes,) the nodes on which jobs start by then."""
    soon = np.isin(plan.job, jobs) & (plan.start_s <= by_s)
    taken = np.zeros(n_nodes, dtype=bool)
    taken[plan.nodes[np.repeat(soon, np.diff(plan.indptr))]] = True
    return taken
