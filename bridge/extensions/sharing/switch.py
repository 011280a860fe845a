# SPDX-License-Identifier: Apache-2.0
"""Whether jobs may share nodes at present; operators and policies can end it for the whole site."""

from collections.abc import Iterable
from typing import Final

from bridge.extensions.sharing.counting import pairs
from bridge.extensions.sharing.kept_keys import APART
from bridge.extensions.sharing.leaving import NOT_NOW
from bridge.extensions.sharing.orders import Orders, cpus_of
from bridge.extensions.sharing.slots import Slots
from bridge.model.learnt import Learning, Learnt
from bridge.ports import State

NAME: Final = "coscheduling"
"""The name of this part of `bridge.ports.State.learnt`."""
OFF: Final = "off"
"""Key: [since, Unix seconds; 1: a policy did it (0: an operator)]. With a user appended: jobs of
this user are no hosts since then."""


_OF_USER: Final = OFF + APART


def off_since_s(state: State) -> int | None:
    """Since when no jobs share nodes; None: they may."""
    numbers = state.learnt_by(NAME).known.get(OFF)
    return None if numbers is None else int(numbers[0])


def by_policy(state: State) -> bool:
    """Whether a policy has ended sharing, as the mean harm was too large."""
    numbers = state.learnt_by(NAME).known.get(OFF)
    return numbers is not None and len(numbers) > 1 and bool(numbers[1])


def turned_off(before: Learnt, now_s: int, *, by_policy: bool) -> Learnt:
    """The state after sharing ends."""
    learning = Learning(before)
    learning.known[OFF] = [now_s, int(by_policy)]
    return learning.done()


def turned_on(before: Learnt) -> Learnt:
    """The state after sharing is switched on again."""
    learning = Learning(before)
    for key in learning.known.in_order():
        learning.known.pop(key)
    return learning.done()


def stopped(before: Learnt, users: Iterable[str], now_s: int) -> Learnt:
    """The state after the jobs of some users may no longer be hosts."""
    learning = Learning(before)
    for user in users:
        learning.known[_OF_USER + user] = [now_s, 1]
    return learning.done()


def stopped_users(state: State) -> frozenset[str]:
    """Users whose jobs may not be hosts at present."""
    keys = state.learnt_by(NAME).known
    return frozenset(key.removeprefix(_OF_USER) for key in keys if key.startswith(_OF_USER))


def send_away(slots: Slots, orders: Orders, *, off: bool) -> set[int]:
    """Requeues guests that may no longer share; returns the rows of those that stay.

    They may not where the rules do not permit it any more, or one of the two users.

    Args:
        orders: gets the requeues; a guest that may not be requeued is held to the floor.
        off: no jobs share nodes at present.
    """
    running, stay = slots.snapshot.running, set()
    for guest, host in pairs(running).items():
        job_id, cpus = str(running.id[guest]), cpus_of(slots.snapshot, guest)
        if not off and _permitted(slots, guest, host):
            stay.add(guest)
        elif running.requeue[guest]:
            orders.requeue(job_id, cpus, NOT_NOW)
        else:
            orders.floor(job_id, cpus)
    return stay


def _permitted(slots: Slots, guest: int, host: int) -> bool:
    running = slots.snapshot.running
    rules = slots.rules(int(running.partition[host]))
    if rules is None:
        return False
    of_host, of_guest = (
        (str(running.user[row]), str(running.account[row])) for row in (host, guest)
    )
    stated = running.coschedule
    allowed = rules.allows_host(int(stated[host])) and rules.allows_guest(int(stated[guest]))
    return allowed and rules.together(of_host, of_guest)
