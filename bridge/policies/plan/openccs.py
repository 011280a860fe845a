# SPDX-License-Identifier: Apache-2.0
"""OpenCCS: every job has its place in a plan that is kept, and is moved only for a better one.

Words
    kept plan       the starts announced last; what was promised stands while it can.
    waiting room    jobs that have no place at present: too few nodes are up, or every place lies
                    beyond the planning horizon. They are tried again in every cycle.
    backfilling     looking for an earlier place for a job that has one.

Rules
    1. Jobs with an announced start are booked there first, by priority. One that does not fit there
       any more (a node was lost, a limit changed, a job overran) gives way: it is planned anew,
       and so those of lower priority are displaced, never those of higher.
    2. Then each of them, by priority, moves to an earlier place if there is one (first fit). What
       ended early or came back is used that way.
    3. Then all others get the earliest place that is left, by priority. So a new job never delays
       an announced one, whatever its priority.
    4. A place obeys limits and FreePools at every second, and chunks are never split.
    5. A job that may have more or fewer nodes starts now on as many as it may, and is planned for
       later with the least.
    6. Tasks of arrays are planned one by one, at most `array_depth` of an array; their starts are
       not kept.
    7. A start later than `horizon_s` from now is not announced: the job is in the waiting room.
    8. A job with a deadline lies where it ends by it (`bridge.planning.queue.time_windows`). With
       `deadline` early that is the earliest such place, as for all jobs. With late it is the latest
       within the horizon, so that others may go before; it is not moved earlier by rule 2, but
       starts now if there is room for it beside all that is planned: nodes would idle otherwise. If
       there is no late place, it gets the earliest. A job that cannot end by its deadline is told
       when it could.
    9. A job with a fixed start lies there or nowhere. It is booked after what was promised and
       before anything else, so that no job without a promise takes its place.

Source: Keller, JSSPP 2017 (sections 5.1 to 5.4); the planning horizon is its future work.
Deviates: the paper backfills in the background whenever a job has left the plan; here every cycle
does, whole. It searches slots of the system first and then maps; the book searches nodes and
constraints together (docs/design/0004-planning.md), which finds the same starts.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bridge.errors import ConfigError
from bridge.model.site import Site
from bridge.model.snapshot import Snapshot
from bridge.planning.queue.rows import Rows, expand_arrays
from bridge.planning.scheduler.booked import PlacementsById
from bridge.planning.scheduler.booking import Booking
from bridge.planning.scheduler.conditions import Conditions
from bridge.planning.scheduler.kept_book import Handover
from bridge.planning.scheduler.kept_plan import KeptPlan
from bridge.planning.scheduler.queue_planner import QueuePlanner
from bridge.planning.scheduler.wait_reasons import explain
from bridge.planning.site_rules.lowered_rules import lower
from bridge.ports import Context, Planned, Preference, Promises
from bridge.units import NEVER


@dataclass(frozen=True)
class OpenCcs(QueuePlanner):
    """Keeps a plan of all jobs, under limits and FreePools.

    Attributes:
        horizon_s: no start later than so many seconds from now is planned; None: no bound.
        array_depth: tasks of one array planned at a time.
        keep_plan: hold on to announced starts; otherwise every cycle plans anew (conservative
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
        """What plans are held to."""
        return Conditions(site, horizon_s=self.horizon_s, whole_queue=True)

    def planned(
        self,
        snapshot: Snapshot,
        order: NDArray[np.int64],
        preference: Preference,
        context: Context,
    ) -> Planned:
        """The kept plan first, then all others."""
        site, promises = context.site, context.state.promised_by(self.name)
        rows = Rows(snapshot, expand_arrays(snapshot.jobs, order, self.array_depth))
        lowered = lower(site.rules, snapshot, site.cron_s)
        jobs, asked = snapshot.jobs, rows.job[rows.asked]
        late = (jobs.deadline_s[asked] > 0) & (self.deadline == "late")
        latest = NEVER - 1 if self.horizon_s is None else snapshot.now_s + self.horizon_s
        last = promises.kept_plan
        book = last.handover.take() if isinstance(last, KeptPlan) and self.keep_plan else None
        booking = Booking(rows, preference, lowered=lowered, protect=site.protect, kept=book)
        kept = self._kept(rows, promises)
        promised = np.flatnonzero(kept > 0)
        everyone = np.arange(len(kept))
        # 1. What was promised stands while it can.
        self._keep(booking, promised, kept[promised], promises, late=late)
        booking.late[~(late & booking.has_start(everyone))] = False
        # Fixed starts come before all that may move (rule 9).
        fixed = np.flatnonzero(jobs.fixed[asked] & ~booking.has_start(everyone))
        booking.plan(fixed, not_before=None, latest=np.full(len(fixed), latest))
        # 2. By priority each moves to an earlier place if there is one.
        booking.replan(promised[booking.has_start(promised) & ~booking.late[promised]])
        # 3. All others get the earliest place that is left, or the latest (rule 8).
        others = np.flatnonzero(~booking.has_start(everyone) & ~jobs.fixed[asked])
        booking.plan(
            others, not_before=None, latest=np.full(len(others), latest), late=late[others]
        )
        booking.start_now(np.flatnonzero(booking.late & booking.later()))
        explain(booking, self.horizon_s)
        plan = booking.result(self.name, beyond=self.horizon_s is not None)
        return Planned(plan, self._announced(booking, promises))

    def _keep(
        self,
        booking: Booking,
        promised: NDArray[np.intp],
        start: NDArray[np.int64],
        promises: Promises,
        *,
        late: NDArray[np.bool_],
    ) -> None:
        """Rule 1: on the same nodes, else on others at the same time."""
        rows = booking.rows
        last = promises.kept_plan
        booking.late[promised] = late[promised]  # so it was, if nothing else is known
        if isinstance(last, KeptPlan) and last.names == rows.snapshot.nodes.names:
            ids = rows.snapshot.jobs.id[rows.job[rows.asked[promised]]].tolist()
            row = last.by_id.row
            former = np.array([row.get(job_id, -1) for job_id in ids], dtype=np.intp)
            has = former >= 0
            booking.keep(promised[has], last.by_id.columns, former[has], start[has])
        left = ~booking.has_start(promised)
        # By start: what begins first leaves the most room for the others.
        order = np.flatnonzero(left)[np.argsort(start[left], kind="stable")]
        booking.plan(promised[order], not_before=start[order], latest=start[order])

    def _kept(self, rows: Rows, promises: Promises) -> NDArray[np.int64]:
        """(n_asked,) the start announced last; 0: none, or it has passed."""
        kept = np.zeros(len(rows.asked), dtype=np.int64)
        if not self.keep_plan or not promises.start_s:
            return kept
        snapshot, known = rows.snapshot, promises.start_s
        job = rows.job[rows.asked]
        announced = [known.get(job_id, 0) for job_id in snapshot.jobs.id[job].tolist()]
        start_s = np.array(announced, dtype=np.int64).reshape(len(kept))
        single = (snapshot.jobs.array_tasks[job] == 0) & (start_s != 0)
        kept[single] = np.maximum(start_s[single], snapshot.now_s)
        not_before = rows.not_before_s()
        kept[kept < not_before] = 0
        return kept

    def _announced(self, booking: Booking, before: Promises) -> Promises:
        """The starts and placements of the jobs that are promised a later start.

        One that was promised before and starts now keeps its place until it is no longer pending:
        the reply that starts it may be lost.
        """
        rows = booking.rows
        snapshot = rows.snapshot
        asked = np.arange(len(rows.asked))
        single = snapshot.jobs.array_tasks[rows.job[rows.asked]] == 0
        kept = single & booking.later()
        if self.keep_plan and before.start_s:
            starting = np.flatnonzero(single & booking.has_start(asked) & ~booking.later())
            ids = snapshot.jobs.id[rows.job[rows.asked[starting]]].tolist()
            kept[starting] = [job_id in before.start_s for job_id in ids]
        lasting = asked[kept]
        ids = snapshot.jobs.id[rows.job[rows.asked[lasting]]].tolist()
        placements = booking.placements_of(lasting)
        start_s = dict(zip(ids, placements.start_s.tolist(), strict=True))
        by_id, book = PlacementsById(ids, placements), booking.hand_over(lasting)
        kept_plan = KeptPlan(snapshot.nodes.names, by_id, book if self.keep_plan else Handover())
        return Promises(self.name, start_s, kept_plan)
