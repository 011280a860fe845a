# SPDX-License-Identifier: Apache-2.0
"""What the extension adds to a cycle: the decisions of the policy's stage `share`.

Of the guests that are to start, all do, or else as many as break no rule. Under a policy without
that stage, guests of a former policy are held (`former_guests.py`).
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from bridge.extensions.port import CycleView, Stages
from bridge.extensions.sharing.check import guests_running
from bridge.extensions.sharing.former_guests import FormerGuests
from bridge.extensions.sharing.guest_rows import with_guests
from bridge.extensions.sharing.part import GuestStart, having_shared
from bridge.extensions.sharing.stage_share import NOTHING_SHARED, Shared, SharePolicy
from bridge.model.job import Hold
from bridge.ports import NoStage, Planned


class SharingStages(Stages):
    """See `bridge.extensions.port.Stages`."""

    def after_plan(self, planned: Planned, cycle: CycleView) -> Planned:
        """Adds guests, and what becomes of those that run."""
        stage = cycle.policy.share
        policy = FormerGuests() if isinstance(stage, NoStage) else cast(SharePolicy, stage)
        shared = policy.share(cycle.world, planned.plan, cycle.context)
        if shared is NOTHING_SHARED:
            return planned
        found = with_shared(planned, shared, cycle)
        return replace(found, learnt={**found.learnt, **shared.learnt})


def with_shared(planned: Planned, shared: Shared, cycle: CycleView) -> Planned:
    """Returns the plan with what the share stage decides, without guests that break a rule.

    Args:
        planned: the plan without them.
        shared: the decisions of the share stage.
    """

    def tried(guests: Sequence[GuestStart], found: Planned) -> Planned:
        left_out = {each.job_id for each in shared.guests} - {each.job_id for each in guests}
        plan = having_shared(
            found.plan,
            quotas=shared.quotas.without(left_out),
            requeues=shared.requeues,
            extensions=shared.extensions,
        )
        again_s = min(plan.again_s, shared.again_s)
        return replace(found, plan=replace(plan, again_s=again_s))

    def with_these(guests: Sequence[GuestStart]) -> Planned | None:
        """None: they break a rule."""
        found = tried(guests, replace(planned, plan=with_guests(planned.plan, guests)))
        if cycle.is_legal(found.plan):
            return found
        if not shared.delays or not _may_go_beside(planned):
            return None
        found = tried(guests, _beside(planned, guests, cycle))
        return found if cycle.is_legal(found.plan) else None

    result = tried((), planned)
    if not shared.guests:
        return result
    if (found := with_these(shared.guests)) is not None:
        return found
    guests: list[GuestStart] = []
    for guest in shared.guests:
        if (found := with_these([*guests, guest])) is not None:
            guests.append(guest)
            result = found
    return result


def _may_go_beside(planned: Planned) -> bool:
    """Whether the queue can be planned again around guests: widths and places may change."""
    plan = planned.plan
    changes = len(plan.resizes) or len(plan.returns) or len(plan.start_widths)
    return not changes and planned.promises.kept_plan is None


def _beside(planned: Planned, guests: Sequence[GuestStart], cycle: CycleView) -> Planned:
    """The plan with these guests, and all other jobs planned again around them.

    Args:
        planned: whose rows the guests name; none of a job with several rows.
    """
    plan = planned.plan
    running, _ = guests_running(cycle.predicted, with_guests(plan, guests))
    jobs = cycle.predicted.jobs
    hold, text = jobs.hold.copy(), jobs.hold_text.copy()
    own = plan.job[[guest.row for guest in guests]]
    hold[own], text[own] = Hold.OTHER, "starts as a guest"
    world = running.with_jobs(jobs.with_columns(hold=hold, hold_text=text))
    again = cycle.planned_again(world)
    row_of = {job: row for row, job in enumerate(again.plan.job.tolist())}
    moved = [
        replace(guest, row=row_of[job]) for guest, job in zip(guests, own.tolist(), strict=True)
    ]
    return replace(again, plan=with_guests(again.plan, moved))
