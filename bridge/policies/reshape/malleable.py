# SPDX-License-Identifier: Apache-2.0
"""Starts, widths and announced starts planned together: nodes beyond a base are lent.

Terms
    base, lent  as in `bridge.planning.malleable.bases`: every malleable job, waiting or running, is
                planned on its base, and holds further nodes only until the plan needs them.
    promise     the start that the last plan announced for a job.

Rules
    1. The queue is planned with every job on its base and all lent nodes given back. So a loan
       delays no start, and waiting jobs start on fewer nodes than requested if that is earlier.
    2. If this delays a promise, the queue is planned again with the jobs in the order of their
       promises, those without one last: then no job starts later than promised.
    3. Lent nodes are given back when the plan uses them, idle ones are lent
       (`bridge.planning.malleable.loans`).
    4. A job changes its width at most once in `between_s`; both the time without progress during a
       change and this interval are counted.
    5. Speed-ups that are not measured are those learnt from earlier jobs of the same user and name
       (`bridge.planning.malleable.speed_ups`).
    6. If no job is malleable, the plan is that of the plan stage.

It needs a plan stage that gives every waiting job a start, such as `conservative`. A promise can
still be broken if a job ends later than its latest planned end, and where nodes differ.

Source: ours. That nodes beyond a share may be taken back is known from FPSMA
(`bridge.papers.malleable.fpsma`); rule 2 is the argument of list scheduling: a job that is
considered after those that start before it finds its former nodes free.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bridge.errors import ConfigError
from bridge.model.decisions.resizes import NO_RESIZES, Resize, Resizes
from bridge.model.learnt import Learnt
from bridge.model.snapshot import Snapshot
from bridge.planning.malleable.bases import (
    Costs,
    at_bases,
    base_ends_s,
    elastic_jobs,
    elastic_rows,
    given_back,
    start_widths_at_bases,
)
from bridge.planning.malleable.elastic import ElasticJobs, MalleableJob
from bridge.planning.malleable.loans import (
    NONE,
    growths,
    kept_now,
    min_growths,
    used_from_s,
)
from bridge.planning.malleable.observing import NAME as SPEED_UPS
from bridge.planning.malleable.observing import observed
from bridge.planning.malleable.reshaper import Adapting
from bridge.planning.malleable.width_explanations import Demands, Watched, with_reasons
from bridge.ports import Context, Planned, Promises, Replan
from bridge.units import NEVER, UNPLANNED

_NAME = "malleable"


@dataclass(frozen=True)
class LentNodes(Adapting):
    """Plans malleable jobs on their bases and lends them idle nodes.

    Attributes:
        stretch: how many times as long as on the requested nodes a job may take on its base.
        between_s: minimum time between two changes of a job.
        fairness: when idle nodes are lent, the remaining work of jobs with fewer nodes than
            requested is divided by this.
        learn: learn speed-ups per user and job name.
    """

    stretch: float = 4.0
    between_s: int = 60
    fairness: float = 2.0
    learn: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.stretch >= 1:
            raise ConfigError("stretch", f"must be 1 or more, not {self.stretch}")
        if self.between_s < 0:
            raise ConfigError("between_s", f"must be 0 or more, not {self.between_s}")
        if not self.fairness > 0:
            raise ConfigError("fairness", f"must be more than 0, not {self.fairness}")

    def plans_itself(self, snapshot: Snapshot) -> bool:
        """Whether the queue is planned around bases; see `bridge.ports.PlansItself`."""
        return bool(len(snapshot.jobs)) and bool(len(elastic_rows(snapshot.running)))

    def reshape(
        self,
        snapshot: Snapshot,
        order: NDArray[np.int64],
        planned: Planned,
        replan: Replan,
        context: Context,
    ) -> Planned:
        """Resizes running jobs; see `bridge.ports.ReshapePolicy`."""
        before = context.state.learnt_by(SPEED_UPS)
        learnt = observed(snapshot, before) if self.learn else Learnt()
        promised = context.state.promised_by(_NAME).start_s
        found = self._together(
            snapshot, order, planned, Watched(replan), promised=promised, learnt=learnt
        )
        if not self.learn or learnt is before:
            return found
        return replace(found, learnt={**found.learnt, SPEED_UPS: learnt})

    def _together(
        self,
        snapshot: Snapshot,
        order: NDArray[np.int64],
        planned: Planned,
        replan: Watched,
        *,
        promised: Mapping[str, int],
        learnt: Learnt,
    ) -> Planned:
        """Starts, widths and announced starts planned together (rules 1 to 3)."""
        jobs = elastic_jobs(snapshot, self._costs, learnt)
        widths = start_widths_at_bases(snapshot, self.stretch, learnt)
        worth = min_growths(jobs, self._costs)
        if len(jobs) or len(widths):
            ends_s = base_ends_s(jobs, snapshot.now_s, self.adaptation_s)
            returns = at_bases(jobs, ends_s)
            if len(snapshot.jobs):
                planned = replan(NO_RESIZES, returns, widths)
                if late_s := _late_s(snapshot, planned, promised):
                    by_promise = _by_promise(snapshot, order, promised)
                    again = replan(NO_RESIZES, returns, widths, by_promise)
                    if _late_s(snapshot, again, promised) < late_s:
                        planned = again
            planned = self._lend(snapshot, jobs, ends_s, worth, planned=planned, replan=replan)
            planned = replace(planned, promises=Promises(_NAME, _starts(snapshot, planned)))
        minimum = np.zeros(len(snapshot.running), dtype=np.int64)
        minimum[jobs.row] = worth
        demands = Demands(self.adaptation_s, self.between_s, minimum=minimum)
        return with_reasons(snapshot, planned, replan.left_out, demands)

    @property
    def _costs(self) -> Costs:
        return Costs(self.adaptation_s, self.between_s, self.stretch, self.fairness)

    def _lend(
        self,
        snapshot: Snapshot,
        jobs: ElasticJobs,
        ends_s: NDArray[np.int64],
        worth: NDArray[np.int64],
        *,
        planned: Planned,
        replan: Replan,
    ) -> Planned:
        """Rule 3: the same rows, with changes that begin now and later returns."""
        by_s = snapshot.now_s + self.adaptation_s
        used_s = used_from_s(planned.plan, len(snapshot.nodes))
        first_s = jobs.first_used_s(used_s, NEVER)
        gives = (first_s <= by_s) & (jobs.back_s <= by_s)
        resizes: list[Resize] = []
        new_ends: dict[int, int] = {}

        def resize(job: MalleableJob, at: int, nodes: NDArray[np.int32], why: str) -> None:
            resizes.append((job.row, by_s, nodes, why))
            new_ends[job.row] = by_s + math.ceil(job.lasts_s(len(nodes)))
            first_s[at] = used_s[nodes[job.base :]].min(initial=NEVER)

        for at in gives.nonzero()[0].tolist():
            job = jobs[at]
            resize(job, at, kept_now(job, used_s, by_s), "other jobs start on these nodes")
        worth = np.where(gives | ~jobs.resizable, NONE, worth)
        for at, added in growths(snapshot, jobs, worth, planned.plan, used_s, costs=self._costs):
            job = jobs[at]
            resize(job, at, np.concatenate((job.nodes, added)), "nodes are idle")
        lends = first_s != NEVER
        if not resizes and not lends.any():
            return planned
        until_s = np.maximum(first_s, jobs.back_s)  # a start before takes what the job leaves free
        later = given_back(jobs, lends, until_s, ends_s, "lent until then")
        again_s = int((later.by_s - self.adaptation_s).min(initial=NEVER))
        found = replan.around(planned, Resizes.of(resizes, new_ends), later)
        return replace(found, plan=replace(found.plan, again_s=again_s))


def _starts(snapshot: Snapshot, planned: Planned) -> dict[str, int]:
    """The first planned start of each waiting job, by its id."""
    plan, ids = planned.plan, snapshot.jobs.id
    rows = np.flatnonzero((plan.start_s != NEVER) & (plan.start_s != UNPLANNED))
    names, starts_s = ids[plan.job[rows]].tolist(), plan.start_s[rows].tolist()
    found: dict[str, int] = dict(zip(names, starts_s, strict=True))
    if len(found) < len(names):  # tasks of an array
        for job_id, start_s in zip(names, starts_s, strict=True):
            found[job_id] = min(found[job_id], start_s)
    return found


def _late_s(snapshot: Snapshot, planned: Planned, promised: Mapping[str, int]) -> int:
    """The sum of the delays of promises, s."""
    starts = _starts(snapshot, planned) if promised else {}
    if starts == promised:
        return 0
    return sum(
        max(starts.get(job_id, start_s) - max(start_s, snapshot.now_s), 0)
        for job_id, start_s in promised.items()
    )


def _by_promise(
    snapshot: Snapshot, order: NDArray[np.int64], promised: Mapping[str, int]
) -> NDArray[np.int64]:
    """The rows in order of their promises (rule 2)."""
    ids = snapshot.jobs.id[order].tolist()
    start_s = np.array([promised.get(job_id, NEVER) for job_id in ids], dtype=np.int64)
    return order[np.argsort(start_s, kind="stable")]
