# SPDX-License-Identifier: Apache-2.0
"""Adds to a plan what the share stage decides: all guests, or else as many as break no rule."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from bridge.model.coscheduling import GuestStart
from bridge.model.plan import Plan
from bridge.planning.sharing.guest_rows import with_guests
from bridge.ports import Planned, Shared


class GuestReplan(Protocol):
    """Plans the queue again around guests."""

    def may_go_beside(self, planned: Planned) -> bool:
        """Whether that can be done: widths and places may change."""

    def beside(self, planned: Planned, guests: Sequence[GuestStart]) -> Planned:
        """The plan with these guests, and all other jobs planned again around them."""


def with_shared(
    planned: Planned, shared: Shared, legal: Callable[[Plan], bool], replan: GuestReplan
) -> Planned:
    """Returns the plan with what the share stage decides, without guests that break a rule.

    Args:
        planned: the plan without them.
        shared: the decisions of the share stage.
        legal: whether a plan keeps all rules.
        replan: plans the queue again, for guests that may delay others.
    """

    def tried(guests: Sequence[GuestStart], found: Planned) -> Planned:
        left_out = {each.job_id for each in shared.guests} - {each.job_id for each in guests}
        plan = replace(
            found.plan,
            quotas=shared.quotas.without(left_out),
            requeues=shared.requeues,
            extensions=shared.extensions,
            again_s=min(found.plan.again_s, shared.again_s),
        )
        return replace(found, plan=plan)

    def with_these(guests: Sequence[GuestStart]) -> Planned | None:
        """None: they break a rule."""
        found = tried(guests, replace(planned, plan=with_guests(planned.plan, guests)))
        if legal(found.plan):
            return found
        if not shared.delays or not replan.may_go_beside(planned):
            return None
        found = tried(guests, replan.beside(planned, guests))
        return found if legal(found.plan) else None

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
