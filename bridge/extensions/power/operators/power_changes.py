# SPDX-License-Identifier: Apache-2.0
"""Changes of the corridor of power by operators and events, in the service's process."""

import json

from bridge.errors import ConfigError
from bridge.extensions.power.corridor.corridor_switch import CorridorSwitch
from bridge.extensions.power.corridor.entry_log import Author, Wish
from bridge.extensions.power.operators.power_messages import (
    check_request,
    entry_message,
    step_messages,
    wish_of,
)
from bridge.rpc.operators.requester import Requester
from bridge.rpc.pb import operator_pb2 as pb
from bridge.units import DAY_S

MAX_OF_EVENTS = 200
"""Maximum number of entries of all events; the rest of the log is for operators."""
_GROUP = "event "


def group_of(event: str) -> str:
    """The group of the entries of an event."""
    return f"{_GROUP}{event}"


def change_corridor(
    corridor: CorridorSwitch, request: pb.CorridorRequest, who: Requester
) -> pb.CorridorReply:
    """Enters, removes or restores bounds.

    Raises:
        ConfigError: the request is invalid, or power is not bounded.
    """
    check_request(request)
    now_s, author = corridor.now_s, author_of(who)
    if request.HasField("undo"):
        entry = corridor.remove(request.undo, author)
    elif request.HasField("restore"):
        entry = corridor.restore(request.restore, author)
    else:
        (entry,) = corridor.enter([wish_of(request, now_s)], author)
    return pb.CorridorReply(
        entry=entry_message(entry, now_s),
        steps=step_messages(corridor.entries(), now_s, now_s + DAY_S),
        warnings=corridor.problems(),
    )


def author_of(who: Requester) -> Author:
    """A user as the author of entries."""
    return Author(f"{who.name} (uid {who.uid})", "operators' socket")


def take_event(corridor: CorridorSwitch, question: bytes) -> int:
    """Puts the bounds of an event of demand response in force, in place of those it had.

    Args:
        question: its id, its name for display, and a list of start, end and upper bound; as JSON.
            If that is empty, the event is withdrawn.

    Returns:
        How many entries were added and removed.

    Raises:
        ConfigError: power is not bounded, or the bounds are invalid.
    """
    event, name, bounds = json.loads(question)
    group = group_of(event)
    wishes = [Wish(start, end, upper_w=upper, reason=name) for start, end, upper in bounds]
    now_s, entry_log = corridor.now_s, corridor.entry_log()
    if wishes and all(wish.end_s <= now_s for wish in wishes):
        raise ConfigError("event", "it is over already")
    before = entry_log.of_group(group, now_s)
    others = [
        entry
        for entry in entry_log.entries
        if entry.group.startswith(_GROUP) and entry.group != group and entry.stands_at(now_s)
    ]
    if len(others) + len(wishes) > MAX_OF_EVENTS:
        raise ConfigError("event", f"more than {MAX_OF_EVENTS} intervals are in force: delete some")
    added = corridor.enter(wishes, Author(group, "demand response"), group)
    return len(added) + (len(before) if added or not wishes else 0)
