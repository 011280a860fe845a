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
    8. A job with a deadline lies where it ends by it (`bridge.planning.kinds`). With `deadline`
       early that is the earliest such place, as for all jobs. With late it is the latest within the
       horizon, so that others may go before; it is not moved earlier by rule 2, but starts now if
       there is room for it beside all that is planned: nodes would idle otherwise. If there is no
       late place, it gets the earliest. A job that cannot end by its deadline is told when it
       could.
    9. A job with a fixed start lies there or nowhere. It is booked after what was promised and
       before anything else, so that no job without a promise takes its place.

Source: Keller, JSSPP 2017 (sections 5.1 to 5.4); the planning horizon is its future work.
Deviates: the paper backfills in the background whenever a job has left the plan; here every cycle
does, whole. It searches slots of the system first and then maps; the book searches nodes and
ceilings together (docs/design/0004-planning.md), which finds the same starts.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridge.core import Blocked
from bridge.errors import ConfigError, PolicyError
from bridge.model.limits import Rules
from bridge.model.plan import Plan
from bridge.model.reasons import Reason, ReasonCode
from bridge.model.snapshot import Snapshot
from bridge.planning.booking import Booking, Place
from bridge.planning.explanation import blocked_reason
from bridge.planning.freepools import Closure
from bridge.planning.kept_plan import KeptPlan
from bridge.planning.kinds import too_late
from bridge.planning.rows import Rows, expand_arrays
from bridge.planning.rules import lower
from bridge.planning.rules_text import parse_rules
from bridge.planning.variant_search import Conditions
from bridge.ports import Memory, Preference
from bridge.units import DAY_S, NEVER, format_duration, format_instant

CRON_HORIZON_S = 60 * DAY_S
"""How far repeated validities are written out where no horizon is set."""


@dataclass(frozen=True)
class OpenCcs:
    """Keeps a plan of all jobs, under limits and FreePools.

    Attributes:
        horizon_s: no start later than so many seconds from now is planned; None: no bound.
        array_depth: tasks of one array planned at a time.
        keep_plan: hold on to announced starts; otherwise every cycle plans anew (conservative
            backfilling under limits).
        rules: limits and FreePools, as the section `planning` of the configuration has them.
        protect: resource to what each node that has it keeps for jobs that want it, by resource:
            `{gpu: {cpus: 2}}` keeps two CPUs of every GPU node for jobs with GPUs.
        deadline: where a job with a deadline is planned: `early` or `late` (rule 8).
    """

    horizon_s: int | None = None
    array_depth: int = 1000
    keep_plan: bool = True
    rules: dict[str, Any] | None = None
    protect: dict[str, Any] | None = None
    deadline: str = "early"
    _rules: Rules = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.horizon_s is not None and self.horizon_s < 1:
            raise ConfigError("horizon_s", f"must be 1 or more, or null, not {self.horizon_s}")
        if self.array_depth < 1:
            raise ConfigError("array_depth", f"must be 1 or more, not {self.array_depth}")
        if self.deadline not in ("early", "late"):
            raise ConfigError("deadline", f"must be early or late, not '{self.deadline}'")
        for resource, kept in (self.protect or {}).items():
            if not isinstance(kept, Mapping) or not all(
                isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in kept.values()
            ):
                raise ConfigError(
                    f"protect.{resource}", "must map resources to whole numbers, as in {cpus: 2}"
                )
        object.__setattr__(self, "_rules", parse_rules(self.rules, "rules"))

    @property
    def conditions(self) -> Conditions:
        """What the plan is held to, for questions of what would be otherwise."""
        return Conditions(
            rules=self._rules,
            cron_s=self.horizon_s or CRON_HORIZON_S,
            horizon_s=self.horizon_s,
            protect=self.protect,
            whole_queue=True,
        )

    def plan(
        self,
        snapshot: Snapshot,
        order: NDArray[np.int64],
        preference: Preference,
        memory: Memory,
        rng: np.random.Generator,
    ) -> Plan:
        """Plans all pending jobs; see `bridge.ports.PlanPolicy`."""
        del rng
        rows = Rows(
            snapshot, expand_arrays(snapshot.jobs, order, self.array_depth), several_kinds=True
        )
        lowered = lower(self._rules, snapshot, self.horizon_s or CRON_HORIZON_S)
        jobs, asked = snapshot.jobs, rows.job[rows.asked]
        late = (jobs.deadline_s[asked] > 0) & (self.deadline == "late")
        latest = NEVER - 1 if self.horizon_s is None else snapshot.now_s + self.horizon_s
        try:
            booking = Booking(rows, preference.rank, lowered=lowered, protect=self.protect)
            kept = self._kept(rows, memory)
            promised = np.flatnonzero(kept > 0)
            everyone = np.arange(len(kept))
            # 1. What was promised stands while it can.
            self._keep(booking, promised, kept[promised], memory, late=late)
            booking.late &= late & booking.has_start(everyone)
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
        except ValueError as error:
            raise PolicyError("openccs", str(error)) from error
        for row, reason in self._reasons(rows, booking):
            rows.reasons[row] = reason
        plan = booking.result("openccs", beyond=self.horizon_s is not None)
        _announce(booking, memory)
        return plan

    def _keep(
        self,
        booking: Booking,
        promised: NDArray[np.intp],
        start: NDArray[np.int64],
        memory: Memory,
        *,
        late: NDArray[np.bool_],
    ) -> None:
        """Rule 1: on the same nodes, else on others at the same time."""
        rows = booking.rows
        last = memory.kept_plan
        booking.late[promised] = late[promised]  # so it was, if nothing else is known
        if isinstance(last, KeptPlan) and last.names == rows.snapshot.nodes.names:
            ids = rows.snapshot.jobs.id[rows.job[rows.asked[promised]]].tolist()
            has = np.array([job_id in last.places for job_id in ids], dtype=bool)
            known = [last.places[job_id] for job_id in ids if job_id in last.places]
            booking.keep(promised[has], known, start[has])
        left = ~booking.has_start(promised)
        # By start: what begins first leaves the most room for the others.
        order = np.flatnonzero(left)[np.argsort(start[left], kind="stable")]
        booking.plan(promised[order], not_before=start[order], latest=start[order])

    def _kept(self, rows: Rows, memory: Memory) -> NDArray[np.int64]:
        """(n_asked,) the start announced last; 0: none, or it has passed."""
        kept = np.zeros(len(rows.asked), dtype=np.int64)
        if not self.keep_plan or not memory.planned_start_s:
            return kept
        snapshot, known = rows.snapshot, memory.planned_start_s
        job = rows.job[rows.asked]
        single = snapshot.jobs.array_tasks[job] == 0
        for at in np.flatnonzero(single).tolist():
            start_s = known.get(snapshot.jobs.id[job[at]], 0)
            kept[at] = max(start_s, snapshot.now_s) if start_s else 0
        not_before = rows.not_before_s()
        kept[kept < not_before] = 0
        return kept

    def _reasons(self, rows: Rows, booking: Booking) -> Iterator[tuple[int, Reason]]:
        """Why each asked row that does not start now waits; rows that wait alike share it."""
        known: dict[tuple[int, ...], Reason] = {}
        jobs = rows.snapshot.jobs
        bounded = jobs.fixed | (jobs.deadline_s > 0)
        for at, place in booking.waiting():
            row = int(rows.asked[at])
            job = int(rows.job[row])
            if place.reason is not None:
                yield row, place.reason
                continue
            if place.start_s == NEVER and (pools := booking.kept_out(at)):
                yield row, _kept_out(pools)
                continue
            if bounded[job]:
                yield row, self._bounded(rows, at, place, booking)
                continue
            alone = place.blocked in _JUDGED_ALONE
            key = (
                place.blocked, place.ceiling, place.partition, place.nodes,
                int(place.start_s == NEVER), int(jobs.tasks[job]), job if alone else -1,
            )  # fmt: skip
            if key not in known:
                known[key] = self._reason(rows.snapshot, job, place, booking)
            yield row, known[key]

    def _bounded(self, rows: Rows, at: int, place: Place, booking: Booking) -> Reason:
        """For jobs with a deadline or a fixed start."""
        jobs, job = rows.snapshot.jobs, int(rows.job[rows.asked[at]])
        deadline_s = int(jobs.deadline_s[job])
        if place.start_s == NEVER:
            if Blocked(place.blocked) not in _JUDGED_ALONE:
                missed = too_late(jobs, job, *booking.earliest(at))
                if missed is not None:
                    return missed
        elif booking.late[at]:
            return Reason(
                ReasonCode.RESOURCES,
                f"planned as late as its deadline {format_instant(deadline_s)} allows",
            )
        reason = self._reason(rows.snapshot, job, place, booking)
        if place.start_s == NEVER or not deadline_s:
            return reason
        return Reason(
            reason.code,
            f"{reason.text}; planned as early as possible, to end before its deadline "
            f"{format_instant(deadline_s)}",
        )

    def _reason(self, snapshot: Snapshot, job: int, place: Place, booking: Booking) -> Reason:
        blocked = Blocked(place.blocked)
        if blocked is Blocked.COUNTER and place.ceiling >= 0:
            licence, label = booking.cluster.ceiling_label(place.ceiling)
            if licence:
                kept = any(
                    reservation.licences[snapshot.licences.index(label)]
                    for reservation in snapshot.reservations
                    if len(reservation.licences)
                )
                kept_too = " or kept by a reservation" if kept else ""
                return Reason(ReasonCode.LICENCES, f"licence {label} is in use{kept_too}")
            return Reason(ReasonCode.LIMIT, f"the {label} is reached until then")
        if place.start_s == NEVER and self.horizon_s is not None and blocked not in _JUDGED_ALONE:
            return Reason(
                ReasonCode.RESOURCES,
                f"in the waiting room: no place within {format_duration(self.horizon_s)}",
            )
        if blocked is Blocked.NODES_BUSY and place.start_s == NEVER:
            blocked = Blocked.NEVER_NODES  # not even on the emptied system
        if blocked is Blocked.NODES_BUSY:
            where = snapshot.partitions[place.partition].name
            room = f"{place.nodes} node" + ("s" if place.nodes != 1 else "")
            return Reason(ReasonCode.RESOURCES, f"waits for room on {room} of {where}")
        return blocked_reason(
            snapshot,
            job,
            partition=place.partition,
            min_nodes=place.nodes,
            blocked=blocked,
            fit_now=0,
            counter=max(booking.cluster.licences.licence(place.ceiling), 0),
        )


def _kept_out(pools: tuple[Closure, ...]) -> Reason:
    """Says which FreePools keep a job out that could run without them."""
    texts = [f"FreePool {pool.name} keeps nodes for {pool.access or 'nobody'}" for pool in pools]
    return Reason(ReasonCode.NEVER, f"has no access to nodes that it needs: {'; '.join(texts)}")


_JUDGED_ALONE = (Blocked.NEVER_NODES, Blocked.NEVER_SIZE, Blocked.NEVER_COUNTER)


def _announce(booking: Booking, memory: Memory) -> None:
    """Remembers the starts and places of the jobs that are promised a later start."""
    rows = booking.rows
    snapshot = rows.snapshot
    asked = np.arange(len(rows.asked))
    single = snapshot.jobs.array_tasks[rows.job[rows.asked]] == 0
    later = asked[single & booking.later()]
    ids = snapshot.jobs.id[rows.job[rows.asked[later]]].tolist()
    places = booking.places(later)
    memory.planned_start_s = {
        job_id: place.start_s for job_id, place in zip(ids, places, strict=True)
    }
    memory.kept_plan = KeptPlan(snapshot.nodes.names, dict(zip(ids, places, strict=True)))
