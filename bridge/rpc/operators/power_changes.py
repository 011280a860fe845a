# SPDX-License-Identifier: Apache-2.0
"""Changes of the corridor of power that operators ask for, in the service's process."""

from bridge.errors import ConfigError
from bridge.power.ledger import Author
from bridge.rpc.controller.corridor_switch import NOT_BOUNDED, CorridorSwitch
from bridge.rpc.operators.power_messages import (
    check_request,
    entry_message,
    step_messages,
    wish_of,
)
from bridge.rpc.pb import operator_pb2 as pb
from bridge.units import DAY_S


def change_corridor(
    corridor: CorridorSwitch | None, request: pb.CorridorRequest, author: Author
) -> pb.CorridorReply:
    """Enters, removes or restores bounds.

    Raises:
        ConfigError: the request makes no sense, or power is not bounded.
    """
    if corridor is None:
        raise ConfigError("power corridor", NOT_BOUNDED)
    check_request(request)
    now_s = corridor.now_s
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
