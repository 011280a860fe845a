# SPDX-License-Identifier: Apache-2.0
"""Power-aware: running jobs grow and shrink to bring the system's power back into its corridor.

Words
    corridor    lower and upper bound of system power (`planning.power`); they may change any time.
    violation   system power outside of it, by the estimates, with what the plan starts now.
    chosen      the waiting jobs, one or two, with which a configuration keeps the corridor.

Rules
    1. Without a violation nobody is resized. Jobs start in the stage order as far as the upper
       bound permits, which is a rule of the site for every plan.
    2. While any job adapts nothing is decided. Jobs that end soon keep their nodes.
    3. On a violation the first feasible configuration (`bridge.planning.power.configuration`) is
       taken: of the running malleable jobs with one waiting job, in the plan's order; then with
       two; then with none. With `waiting: 0`, of running jobs only.
    4. Jobs that shrink do so first, as their nodes and their power are needed by the others. Jobs
       grow in the same cycle only as far as nodes are idle and power permits; the rest of the
       growth, and the chosen jobs, follow when the shrinks are complete, before others.
    5. Where no configuration is feasible the one with the least violation is taken, and the reasons
       say so, and what would end it.
    6. It plans again at every change of a bound, and each `tick_s` while malleable jobs run.
    7. A site without bounds of power: nobody is resized.

Source: Algorithm 2 of Chadha, John and Gerndt, "Extending SLURM for Dynamic Resource-Aware Adaptive
Batch Scheduling", HiPC 2020. With order `fcfs` and plan `in-order` it is the whole algorithm; its
scenario 2 is `waiting: 0`, scenario 3 is `waiting: 2`.
Deviates: the paper carries out a configuration at once, and its jobs exceed the upper bound until
shrinks are complete; see rule 4. Jobs that the plan stage can start in the same cycle do start,
and count as running.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from itertools import combinations, islice

import numpy as np
from numpy.typing import NDArray

from bridge.errors import ConfigError
from bridge.model.plan import Plan
from bridge.model.resizes import NO_RESIZES, Resizes
from bridge.model.snapshot import Snapshot
from bridge.planning.malleable.drawn_power import DrawnPower
from bridge.planning.malleable.expand_shrink import Malleables, idle_nodes
from bridge.planning.malleable.pending import Pending
from bridge.planning.malleable.redistribution import Redistribution
from bridge.planning.malleable.reshaper import Adapting
from bridge.planning.malleable.violations import why_not_ended, why_resized, with_note
from bridge.planning.malleable.why import Demands, Watched, with_reasons
from bridge.planning.power.configuration import (
    Configuration,
    Scalable,
    configuration,
    one_way,
)
from bridge.ports import Context, Planned, Replan
from bridge.units import NEVER, UNPLANNED

_NAME = "power-corridor"
_PATIENCE = 10
"""Growths and starts that wait for shrinks are given up after so many times their duration."""
_THEN = "the jobs that shrank for the power corridor have done so"


@dataclass(frozen=True)
class PowerCorridor(Adapting):
    """Keeps system power within its corridor by widths and starts.

    Attributes:
        waiting: most waiting jobs that a configuration starts; 0: running jobs only.
        tried: most configurations with waiting jobs that are computed in a cycle.
        tick_s: it plans again after so long while malleable jobs run; 0: at events only.
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

    def reshape(
        self,
        snapshot: Snapshot,
        order: NDArray[np.int64],
        planned: Planned,
        replan: Replan,
        context: Context,
    ) -> Planned:
        """Resizes running jobs; see `bridge.ports.ReshapePolicy`."""
        rules, running = context.site.rules.power, snapshot.running
        if rules is None or not (running.max_nodes > 0).any():
            return planned
        before = context.state.learnt_by(_NAME)
        pending = Pending.of(before)
        watched = Watched(replan)
        malleables = Malleables.of(snapshot, self.adaptation_s)
        cycle = _Cycle(self, snapshot, order, watched, DrawnPower(rules, snapshot, malleables))
        if running.adapting.any():
            planned, left = cycle.first(planned, pending.jobs), pending
        elif cycle.power.outside(planned.plan):
            planned, left = cycle.restored(planned)
        else:
            planned, left = cycle.continued(planned, pending.at(snapshot.now_s))
        demands = Demands(self.adaptation_s, one_at_a_time=True)
        planned = with_reasons(snapshot, planned, watched.left_out, demands)
        again_s = rules.corridor.next_change_s(snapshot.now_s)
        if self.tick_s:
            again_s = min(again_s, snapshot.now_s + self.tick_s)
        planned = replace(
            planned, plan=replace(planned.plan, again_s=min(planned.plan.again_s, again_s))
        )
        if left == pending:
            return planned
        return replace(planned, learnt={**planned.learnt, _NAME: left.learnt()})


@dataclass(frozen=True)
class _Cycle:
    """One decision."""

    policy: PowerCorridor
    snapshot: Snapshot
    order: NDArray[np.int64]
    replan: Replan
    power: DrawnPower

    @property
    def _by_s(self) -> int:
        return self.snapshot.now_s + self.policy.adaptation_s

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
        """Without a violation: what is left of the last decision (rule 4), then rule 1."""
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
        """On a violation: rules 3 to 5."""
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
        found, rows = nearest
        done = self._carried_out(planned, jobs, found, rows) or (planned, Pending())
        outside = self.power.outside(planned.plan)
        text = why_not_ended(self.snapshot, self.power, outside, found)
        return with_note(done[0], text), done[1]

    def _choices(self, planned: Planned) -> Iterator[dict[int, Scalable]]:
        """The waiting jobs that configurations are to start, in the order of rule 3."""
        most = self.policy.tried
        if self.policy.waiting:
            waiting = self.power.waiting(planned.plan, most)
            rows = range(1, self.policy.waiting + 1)
            every = (chosen for n in rows for chosen in combinations(waiting, n))
            for chosen in islice(every, most):
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
        until_s = snapshot.now_s + _PATIENCE * self.policy.adaptation_s
        return planned, Pending(later, ids.difference(started), until_s)


def _missed_w(found: Configuration) -> tuple[int, int]:
    return found.over_w, found.under_w


def _only(plan: Plan, jobs: Collection[int]) -> Plan:
    """The plan in which of all starts of this cycle only those of some jobs remain."""
    kept = np.isin(plan.job, [*jobs]) | (plan.start_s != plan.now_s)
    return replace(plan, start_s=np.where(kept, plan.start_s, NEVER))


def _start(plan: Plan, jobs: tuple[int, ...], by_s: int) -> bool:
    """Whether jobs start by then; of all but the first the plan may not say when they start."""
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
