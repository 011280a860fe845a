# SPDX-License-Identifier: Apache-2.0
"""The corridor of power as wire messages, and back."""

from collections.abc import Iterator

from bridge.errors import ConfigError
from bridge.extensions.power.corridor.corridor_entries import OperatorEntry
from bridge.extensions.power.corridor.entry_log import Wish, check_bounds
from bridge.extensions.power.corridor.resolve import Entries, corridor_at, sources_at, steps
from bridge.extensions.power.corridor.sentences import source_text, state_text
from bridge.extensions.power.rules import NO_UPPER_W
from bridge.rpc.pb import operator_pb2 as pb
from bridge.units import NEVER

MAX_STEPS = 1000
MAX_SPAN_S = 10 * 366 * 86_400
"""Entries last, and begin, at most ten years from now."""
_NONE = -1


def entry_message(entry: OperatorEntry, now_s: int) -> pb.CorridorEntry:
    return pb.CorridorEntry(
        id=entry.id,
        author=entry.author,
        origin=entry.origin,
        reason=entry.reason,
        entered_s=entry.entered_s,
        from_s=entry.start_s,
        until_s=0 if entry.end_s == NEVER else entry.end_s,
        lower_w=entry.lower_w,
        upper_w=_NONE if entry.upper_w == NO_UPPER_W else entry.upper_w,
        removed_s=entry.removed_s,
        removed_by=entry.removed_by,
        state=state_text(entry, now_s),
    )


def step_messages(entries: Entries, now_s: int, until_s: int) -> Iterator[pb.CorridorStep]:
    """The bounds from now on; at most `MAX_STEPS`."""
    corridor = corridor_at(entries, now_s)
    for count, (start, end, lower, upper) in enumerate(steps(corridor, now_s, until_s)):
        if count == MAX_STEPS:
            return
        lower_from, upper_from = sources_at(entries, start)
        yield pb.CorridorStep(
            from_s=start,
            until_s=end,
            lower_w=lower,
            upper_w=_NONE if upper == NO_UPPER_W else upper,
            lower_by=source_text(lower_from),
            upper_by=source_text(upper_from),
        )


def wish_of(request: pb.CorridorRequest, now_s: int) -> Wish:
    """The requested bounds.

    Raises:
        ConfigError: they are invalid, or have ended.
    """
    start_s = request.from_s or now_s
    end_s = request.until_s or NEVER
    if request.duration_s:
        if request.until_s:
            raise ConfigError("power corridor", "give an end or a duration, not both")
        end_s = start_s + request.duration_s
    for name, at_s in (("from", start_s), ("until", end_s)):
        if at_s != NEVER and not 0 <= at_s <= now_s + MAX_SPAN_S:
            raise ConfigError("power corridor", f"{name} must lie within the next ten years")
    if end_s <= now_s:
        raise ConfigError("power corridor", "it is over already: give a later --until")
    upper = request.upper_w if request.HasField("upper_w") else None
    wish = Wish(
        start_s=start_s,
        end_s=end_s,
        lower_w=request.lower_w if request.HasField("lower_w") else None,
        upper_w=NO_UPPER_W if upper == _NONE else upper,
        reason=request.reason,
    )
    check_bounds(wish)
    return wish


def check_request(request: pb.CorridorRequest) -> None:
    """Raises unless a request has exactly one action.

    Raises:
        ConfigError: it has several, or none.
    """
    bounds = request.HasField("lower_w") or request.HasField("upper_w")
    if bounds + request.HasField("undo") + request.HasField("restore") != 1:
        raise ConfigError("power corridor", "give bounds, an entry to undo, or one to restore")
