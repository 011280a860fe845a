# SPDX-License-Identifier: Apache-2.0
"""OpenCCS: every job has a slot in a plan that is kept; starts are only moved to earlier times.

Terms
    kept plan       the starts announced last; they are kept as long as they are feasible.
    waiting room    jobs without a slot: too few nodes are up, or every slot is beyond the planning
                    horizon. They are tried again in every cycle.
    backfilling     looking for an earlier slot for a job that has one.

Rules
    1. Jobs with an announced start are booked there first, in order of priority. A job that no
       longer fits (a node failed, a limit changed, a job overran) is planned again. So jobs are
       displaced only by jobs of higher priority.
    2. Then each of them, in order of priority, moves to an earlier slot if there is one (first
       fit). This uses what became free early.
    3. Then all other jobs get the earliest free slot, in order of priority. So a new job never
       delays an announced one, whatever its priority.
    4. Limits and FreePools hold at every second of a slot, and chunks are never split.
    5. A job with a variable number of nodes starts now on as many as possible; a later start is
       planned with the fewest.
    6. Tasks of arrays are planned one by one, at most `array_depth` of an array; their starts are
       not kept.
    7. A start later than `horizon_s` from now is not announced: the job is in the waiting room.
    8. A job with a deadline gets a slot that ends by it (`bridge.planning.queue.time_windows`).
       With `deadline: early` it is the earliest, as for all jobs. With `late` it is the latest
       within the horizon, to let other jobs go first; rule 2 does not apply, but the job starts now
       if it fits in addition to the whole plan, as nodes would be idle otherwise. If there is no
       late slot, it gets the earliest. The reason of a job that cannot meet its deadline says when
       it could end.
    9. A job with a fixed start gets that start or none. It is booked after the announced starts and
       before all other jobs.
    10. The expected start of a job that is not yet eligible is not kept: it is planned in every
       cycle, behind all others.

Source: Keller, JSSPP 2017 (sections 5.1 to 5.4); the planning horizon is its future work.
Deviates: the paper backfills in the background whenever a job leaves the plan; here every cycle
backfills all jobs. The paper searches the system's slots first and maps to nodes afterwards; the
book searches nodes and constraints together (docs/design/0004-planning.md) and finds the same
starts.
"""

from dataclasses import dataclass
from itertools import repeat
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bridge.core import Bookings
from bridge.errors import ConfigError
from bridge.model.rules.site import Site
from bridge.model.snapshot import Snapshot
from bridge.planning.queue.rows import Rows, expand_arrays
from bridge.planning.queue.time_windows import not_yet_eligible
from bridge.planning.scheduler.book_handover import Handover
from bridge.planning.scheduler.book_planner import BookPlanner
from bridge.planning.scheduler.kept_plan import KeptPlan
from bridge.planning.scheduler.placements import AnnouncedStarts, PlacementsById
from bridge.planning.scheduler.queue_planner import QueuePlanner
from bridge.planning.scheduler.wait_reasons import explain
from bridge.planning.site_rules.lowered_rules import lower
from bridge.ports import Conditions, Context, Planned, Preference, Promises
from bridge.units import NEVER


@dataclass(frozen=True)
class OpenCcs(QueuePlanner):
    """Keeps a plan of all jobs, under limits and FreePools.

    Attributes:
        horizon_s: no start later than this from now is planned, s; None: no bound.
        array_depth: tasks of one array planned at a time.
        keep_plan: keep announced starts; otherwise every cycle plans from scratch (conservative
            backfilling under limits).
        deadline: where a job with a deadline is planned: `early` or `late` (rule 8).
    """

    horizon_s: int | None = None
    keep_plan: bool = True
    deadline: str = "early"

    name: ClassVar[str] = "openccs"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.horizon_s is not None and self.horizon_s < 1:
            raise ConfigError("horizon_s", f"must be 1 or more, or null, not {self.horizon_s}")
        if self.deadline not in ("early", "late"):
            raise ConfigError("deadline", f"must be early or late, not '{self.deadline}'")

    def conditions(self, site: Site) -> Conditions:
        """The conditions that hold for every plan."""
        return Conditions(site, horizon_s=self.horizon_s, whole_queue=True)

    def planned(
        self,
        snapshot: Snapshot,
        order: NDArray[np.int64],
        preference: Preference,
        context: Context,
    ) -> Planned:
        """Books the kept plan first, then all other jobs."""
        site, promises = context.site, context.state.promised_by(self.name)
        rows = Rows(snapshot, expand_arrays(snapshot.jobs, order, self.array_depth))
        lowered = lower(site, snapshot)
        jobs, requested = snapshot.jobs, rows.job[rows.plannable]
        late = (jobs.deadline_s[requested] > 0) & (self.deadline == "late")
        latest = NEVER - 1 if self.horizon_s is None else snapshot.now_s + self.horizon_s
        last = promises.kept_plan
        book = last.handover.take() if isinstance(last, KeptPlan) and self.keep_plan else None
        planner = BookPlanner(rows, preference, lowered=lowered, protect=site.protect, kept=book)
        planned = planner.planned
        ids = jobs.id[requested].tolist()
        announced = _announced_starts(promises, ids) if self.keep_plan else np.zeros_like(requested)
        kept = self._kept(rows, announced)
        promised = np.flatnonzero(kept > 0)
        everyone = np.arange(len(kept))
        # 1. Announced starts are kept if they are feasible.
        self._keep(planner, promised, kept[promised], promises, ids, late=late)
        planned.late[~(late & planned.has_start(everyone))] = False
        # Fixed starts come before all jobs that can be moved (rule 9).
        fixed = np.flatnonzero(jobs.fixed[requested] & ~planned.has_start(everyone))
        planner.plan(fixed, not_before=None, latest=np.full(len(fixed), latest))
        # 2. Each moves to an earlier slot if there is one, in order of priority.
        planner.replan(promised[planned.has_start(promised) & ~planned.late[promised]])
        # 3. All others get the earliest free slot, or the latest (rule 8).
        others = np.flatnonzero(~planned.has_start(everyone) & ~jobs.fixed[requested])
        planner.plan(
            others, not_before=None, latest=np.full(len(others), latest), late=late[others]
        )
        planner.start_now(np.flatnonzero(planned.late & planned.later()))
        explain(planned, self.horizon_s)
        known = planned.bookings()
        plan = planned.result(self.name, beyond=self.horizon_s is not None, known=known)
        return Planned(plan, self._announced(planner, announced, ids, known))

    def _keep(
        self,
        planner: BookPlanner,
        promised: NDArray[np.intp],
        start: NDArray[np.int64],
        promises: Promises,
        ids: list[str],
        *,
        late: NDArray[np.bool_],
    ) -> None:
        """Rule 1: on the same nodes, otherwise on other nodes at the same time."""
        planned, rows = planner.planned, planner.planned.rows
        last = promises.kept_plan
        planned.late[promised] = late[promised]  # assumed, unless the kept plan says otherwise
        if isinstance(last, KeptPlan) and last.names == rows.snapshot.nodes.names:
            former = last.by_id.rows_of(ids)[promised]
            has = former >= 0
            planner.keep(promised[has], last.by_id.columns, former[has], start[has])
        left = ~planned.has_start(promised)
        # In order of start: booking the earliest first leaves most room for the others.
        order = np.flatnonzero(left)[np.argsort(start[left], kind="stable")]
        planner.plan(promised[order], not_before=start[order], latest=start[order])

    def _kept(self, rows: Rows, announced: NDArray[np.int64]) -> NDArray[np.int64]:
        """Returns the starts announced last, (n_plannable,); 0: none, or in the past."""
        kept = np.zeros(len(rows.plannable), dtype=np.int64)
        snapshot, job = rows.snapshot, rows.job[rows.plannable]
        single = (snapshot.jobs.array_tasks[job] == 0) & (announced != 0)
        kept[single] = np.maximum(announced[single], snapshot.now_s)
        not_before = rows.not_before_s()
        kept[kept < not_before] = 0
        kept[not_yet_eligible(snapshot.jobs, snapshot.now_s)[job]] = 0
        return kept

    def _announced(
        self,
        planner: BookPlanner,
        before: NDArray[np.int64],
        ids: list[str],
        known: tuple[NDArray[np.intp], Bookings],
    ) -> Promises:
        """Returns the starts and placements of all jobs with a later start.

        A job that was promised a start before and starts now is included as long as it is pending,
        because the reply that starts it may be lost.
        """
        planned, rows = planner.planned, planner.planned.rows
        snapshot = rows.snapshot
        requested = np.arange(len(ids))
        single = snapshot.jobs.array_tasks[rows.job[rows.plannable]] == 0
        kept = single & planned.later()
        kept |= single & (before != 0) & planned.has_start(requested)
        lasting = requested[kept]
        if len(lasting) < len(ids):
            ids = [ids[at] for at in lasting.tolist()]
        by_id = PlacementsById(ids, planned.placements_of(lasting, known))
        book = planner.hand_over(lasting)
        kept_plan = KeptPlan(snapshot.nodes.names, by_id, book if self.keep_plan else Handover())
        return Promises(self.name, AnnouncedStarts(by_id), kept_plan)


def _announced_starts(promises: Promises, ids: list[str]) -> NDArray[np.int64]:
    """(n,) the starts announced last, s; 0: none."""
    if isinstance(promises.start_s, AnnouncedStarts):
        return promises.start_s.of(ids)
    return np.fromiter(map(promises.start_s.get, ids, repeat(0)), dtype=np.int64, count=len(ids))
